package lab

import (
	"net/http"
	"testing"

	"github.com/rubicon-go/rubicon/rubicontest"
)

func TestProbe(t *testing.T) {
	h1t := func(sc ...rubicontest.Fault) func() rubicontest.Config {
		return func() rubicontest.Config { return rubicontest.Config{Protocol: rubicontest.H1TLS, Script: sc} }
	}
	fs := []Fault{
		{Name: "413close", server: h1(rubicontest.ReadHeader().Answer(413, "x")), requests: []request{upload}},
		{Name: "413h2", server: h2(rubicontest.ReadHeader().Answer(413, "x")), requests: []request{upload}},
		{Name: "sib-h2", server: h2(rubicontest.Act().Stall()), during: cancelBySibling},
		{Name: "put503", server: h1(rubicontest.Act().Answer(503, "")), requests: []request{{method: http.MethodPut}}},
		{Name: "putclose", server: h1(rubicontest.Act().Close()), requests: []request{{method: http.MethodPut}}},
		{Name: "h2close", server: h2(rubicontest.Act().Close())},
		{Name: "h2reset", server: h2(rubicontest.Act().Reset())},
		{Name: "h2listener", server: h2(rubicontest.Act().CloseListener().ResetStream(1)), idle: 1},
		{Name: "h2refusedalways", server: h2(rubicontest.Read().RefuseStream())},
		{Name: "goawaybelow-err", server: h2(rubicontest.Read().GoAwayBelow(2))},
		{Name: "get-h2dead", server: h2(rubicontest.Read().Freeze(), rubicontest.Read()), setup: pinging, requests: []request{{method: http.MethodGet}}},
		{Name: "get-refused-h2", server: h2(rubicontest.Read().RefuseStream()), requests: []request{{method: http.MethodGet}}},
		{Name: "get-stale", server: h1(rubicontest.Read().Close()), idle: 3, requests: []request{{method: http.MethodGet}}},
		{Name: "needcert", server: h1tls(rubicontest.NeedCertConn)},
		{Name: "acceptclose", server: func() rubicontest.Config { return rubicontest.Config{Accept: []rubicontest.Accept{rubicontest.CloseConn}} }},
		{Name: "unread", server: h1(rubicontest.Unread().Close())},
		{Name: "tls-upload-reset", server: h1t(rubicontest.ReadBody(64 << 10).Act().Reset()), requests: []request{upload}},
		{Name: "keyed-503", server: deduping(rubicontest.Act().Answer(503, "x")), setup: documented},
		{Name: "keyed-429", server: deduping(rubicontest.Read().Answer(429, "x"), rubicontest.Act()), setup: documented},
		{Name: "keyed-mism", server: deduping(), setup: documented, requests: []request{{key: "a"}, {key: "a", body: "other"}}},
		{Name: "layers-503", server: h1(rubicontest.Act().Answer(503, "")), layers: true},
		{Name: "layers-429", server: h1(rubicontest.Read().Answer(429, "")), layers: true},
		{Name: "layers-keyed", server: h1(rubicontest.Act().Close()), setup: documented, layers: true},
	}
	for range 4 {
		run(t.Context(), fs, clients[2:], func(r Row) { t.Logf("%-18s %s", r.Fault, r.Got()) })
		t.Log()
	}
}
