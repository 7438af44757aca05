package rubicon_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strconv"
	"testing"
	"time"

	"github.com/rubicon-go/rubicon"
)

// A stub is a base that builds a small answer. Traced, it calls the hooks as a
// *http.Transport would, so that all of the evidence is gathered over it.
type stub struct {
	traced bool
	fail   bool // before a header block is written
}

// RoundTrip implements [http.RoundTripper].
func (s *stub) RoundTrip(req *http.Request) (*http.Response, error) {
	if s.traced {
		if trace := httptrace.ContextClientTrace(req.Context()); trace != nil {
			trace.GetConn("")
			trace.GotConn(httptrace.GotConnInfo{})
			if !s.fail {
				trace.WroteHeaders()
			}
		}
	}
	if req.Body != nil {
		req.Body.Close()
	}
	if s.fail {
		return nil, errors.New("failed")
	}
	return &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(answer)), ContentLength: int64(len(answer)),
		Request: req,
	}, nil
}

var answer = []byte(`{"ok":true}`)

// proves fails unless t gathers the evidence of a failed POST over its stub:
// what is measured must be the whole path.
func proves(b *testing.B, t *rubicon.Transport) {
	b.Helper()
	s := t.Base.(*stub)
	s.fail = true
	defer func() { s.fail = false }()
	ctx, op := rubicon.Begin(context.Background(), rubicon.Intent{Budget: rubicon.Budget{Attempts: 1}})
	defer op.End()
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.test/", bytes.NewReader(answer))
	t.RoundTrip(req)
	if got := op.Attempts(); len(got) != 1 || got[0].Proof != rubicon.ProofNoHeader {
		b.Fatalf("the evidence was not gathered: %+v", got)
	}
}

// BenchmarkRoundTrip measures one RoundTrip over the stub, beside the stub
// itself. Every variant gives each call a request of its own and a body from
// GetBody; the ones with an operation begin and end it.
func BenchmarkRoundTrip(b *testing.B) {
	rubiconOver := func(endpoints ...rubicon.Endpoint) *rubicon.Transport {
		t := &rubicon.Transport{Base: &stub{traced: true}, Endpoints: endpoints}
		rubicon.StandIn(t, new(http.Transport))
		proves(b, t)
		return t
	}
	keyed := rubicon.Endpoint{Match: func(*http.Request) bool { return true }, KeyHeader: "Idempotency-Key", Retention: 24 * time.Hour}
	unnamed := func(int) *rubicon.Intent { return &rubicon.Intent{} }
	named := func(i int) *rubicon.Intent {
		return &rubicon.Intent{Key: rubicon.Key{Scope: "bench", Name: strconv.Itoa(i)}}
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		b.Run(method+"/stub", func(b *testing.B) { roundTrips(b, &stub{}, method, nil) })
		b.Run(method+"/rubicon", func(b *testing.B) { roundTrips(b, rubiconOver(), method, nil) })
		b.Run(method+"/operation", func(b *testing.B) { roundTrips(b, rubiconOver(), method, unnamed) })
	}
	b.Run("POST/keyed operation", func(b *testing.B) {
		t := rubiconOver(keyed)
		t.Journal = &rubicon.MemoryJournal{Limit: 1 << 10}
		roundTrips(b, t, http.MethodPost, named)
	})
}

// roundTrips measures rt.
func roundTrips(b *testing.B, rt http.RoundTripper, method string, intent func(int) *rubicon.Intent) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var body io.Reader
	if method == http.MethodPost {
		body = bytes.NewReader(bytes.Repeat([]byte("x"), 1<<10))
	}
	template, err := http.NewRequest(method, "http://api.test/v1/things", body)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		ctx := ctx
		var op *rubicon.Operation
		if intent != nil {
			ctx, op = rubicon.Begin(ctx, *intent(i))
		}
		req := template.WithContext(ctx)
		if req.GetBody != nil {
			req.Body, _ = req.GetBody()
		}
		res, err := rt.RoundTrip(req)
		if err != nil {
			b.Fatal(err)
		}
		res.Body.Close()
		if op != nil {
			op.End()
		}
	}
}

// BenchmarkLoopback measures a POST over a real connection. Its times are the
// machine's; its allocations are ours.
func BenchmarkLoopback(b *testing.B) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Write(answer)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	plain := httptest.NewServer(server.Config.Handler)
	defer plain.Close()
	for _, proto := range []struct {
		name string
		url  string
		base *http.Transport
	}{
		{"h1", plain.URL, &http.Transport{}},
		{"h2", server.URL, server.Client().Transport.(*http.Transport)},
	} {
		defer proto.base.CloseIdleConnections()
		b.Run(proto.name+"/bare", func(b *testing.B) { posts(b, proto.base, proto.url) })
		b.Run(proto.name+"/rubicon", func(b *testing.B) { posts(b, &rubicon.Transport{Base: proto.base}, proto.url) })
	}
}

// posts measures POSTs of 1 KiB to url.
func posts(b *testing.B, rt http.RoundTripper, url string) {
	payload := bytes.Repeat([]byte("x"), 1<<10)
	b.ReportAllocs()
	for b.Loop() {
		req, _ := http.NewRequest(http.MethodPost, url, bytes.NewReader(payload))
		res, err := rt.RoundTrip(req)
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
}
