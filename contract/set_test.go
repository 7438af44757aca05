package contract_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/rubicon-go/rubicon/contract"
)

func TestNewSetRefuses(t *testing.T) {
	read := func(*contract.Frame, *contract.Progress) bool { return true }
	for name, c := range map[string]contract.Contract{
		"no protocol": {Framing: contract.SSE, Read: read},
		"no framing":  {Protocol: "x", Read: read},
		"no Read":     {Protocol: "x", Framing: contract.SSE},
		"bad path":    {Protocol: "x", Framing: contract.SSE, Read: read, Paths: []string{"a..b"}},
		"bad cursor":  {Protocol: "x", Framing: contract.SSE, Read: read, Cursor: "a."},
		"bad inside":  {Protocol: "x", Framing: contract.SSE, Read: read, Inside: ""[:0] + "."},
	} {
		if _, err := contract.NewSet(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	many := make([]contract.Contract, 65)
	for i := range many {
		many[i] = contract.Contract{Protocol: "x", Framing: contract.SSE, Read: read}
	}
	if _, err := contract.NewSet(many...); err == nil {
		t.Error("too many: no error")
	}
	if _, err := contract.NewSet(many[:64]...); err != nil {
		t.Error(err)
	}
}

// TestOther shows that an answer whose type is no stream's isn't watched.
func TestOther(t *testing.T) {
	s := known(t)
	for _, contentType := range []string{"", "text/html", "application/octet-stream", "audio/mpeg", "text/plain; charset=utf-8"} {
		if s.Watch(contract.Answer{ContentType: contentType}) != nil {
			t.Errorf("%q is watched", contentType)
		}
	}
	for _, contentType := range []string{"text/event-stream", "TEXT/Event-Stream ; charset=utf-8", "application/x-ndjson", "application/json"} {
		a := contract.Answer{Header: http.Header{"Content-Type": {contentType}}}
		if s.Watch(a) == nil {
			t.Errorf("%q is not watched", contentType)
		}
	}
}

// TestUnjudged has streams that nobody knows: whatever they look like, and
// wherever they are cut, they are not interrupted.
func TestUnjudged(t *testing.T) {
	s := known(t)
	for contentType, bodies := range map[string][]string{
		sseType: {
			"", ": only comments\n\n", "data: hello\n\n", "data: {\"choices\":[\"a\",\"b\"]}\n\n", "data: {\"type\":\"delta\",\"text\":\"a\"}\n\n",
			"data: {\"type\":\"ping\"}\n\ndata: 1\n\n", "event: message_start\ndata: {}\n\n", "data: {\"id\":\"x\",\"object\":\"thing\"}\n\n", "data: [DONE]\n\n",
			"id: 1\ndata: {\"done\":true}\n\n", strings.Repeat("data: {\"n\":1}\n\n", 100), "data: {\"finish_reason\":\"stop\"}\n\n",
			"data: {\"candidates\":3}\n\n", "data: {\"type\":\"error\",\"text\":\"not ours\"}\n\n", "data: {\"response\":{}}\n\n",
		},
		"application/x-ndjson": {"", "{\"row\":1}\n{\"row\":2}\n", "{\"status\":\"ok\"}\n", "{\"done\":false}\n", "{\"model\":\"x\"}\n", "x,y\n1,2\n", "{\"error\":\"not ours\"}\n"},
		jsonType:               {"", "{}", "[]", "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"choices\":[]}", "{\"a\":", "[1,2", "\"x\"", "{\"type\":\"ADDED\"}", "[{\"id\":1}]"},
		messageType:            {"", messages("Records", "a,b"), "\x00"},
	} {
		for _, body := range bodies {
			for _, text := range []string{body, cut(body, min(len(body), 1)), cut(body, min(len(body), 3))} {
				got := end(s, contentType, []byte(text))
				if got.State != contract.Unjudged || !got.Legal || got.Complete || got.Protocol != "" {
					t.Errorf("%q as %s: %+v", text, contentType, got)
				}
			}
		}
	}
}

// TestMisfit has streams that begin as somebody's and go on as nobody's.
func TestMisfit(t *testing.T) {
	s := known(t)
	const chunk = `{"id":"c1","choices":[{"index":0,"delta":{}}]}`
	for _, body := range []string{
		unnamed(chunk, `{"rows":1}`, `{"rows":2}`), unnamed(chunk) + named("tick", "1", "tick", "2"),
		unnamed(chunk) + strings.Repeat(unnamed(`{"a":1}`), 500),
	} {
		if got := end(s, sseType, []byte(body)); got.State != contract.Unjudged || !got.Legal {
			t.Errorf("%.200q: %+v", body, got)
		}
	}
	if got := end(s, sseType, []byte(unnamed(chunk, chunk, `{"rows":1}`))); got.State != contract.Interrupted {
		t.Errorf("one stranger among chunks: %+v", got)
	}
}

// byName is a contract that goes by the names of events alone.
func byName(claim func(*contract.Answer, *contract.Frame) contract.Claim) contract.Contract {
	return contract.Contract{
		Protocol: "acme", Framing: contract.SSE, Claim: claim,
		Read: func(f *contract.Frame, p *contract.Progress) bool {
			switch {
			case f.Named("end"):
				p.Finish(contract.Completed)
			case f.Named("fail"):
				p.Fail(f.Name, nil, nil)
			}
			return f.Named("end") || f.Named("fail") || f.Named("step")
		},
	}
}

// TestBrokenData shows that an event whose data was patched together ends
// nothing well, whatever its name.
func TestBrokenData(t *testing.T) {
	s, err := contract.NewSet(byName(nil))
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{
		named("step", "{}", "end", "{}"):                              "completed",
		named("step", "{}", "end", "done"):                            "completed",
		named("step", "{}") + "event: end\n\n":                        "interrupted",
		named("step", "{}", "end", `{"half`):                          "interrupted",
		named("step", "{}", "end", "{\"half\ndata: {}"):               "interrupted",
		named("step", "{}", "end", `{} {}`):                           "interrupted",
		named("step", "{}", "fail", `{"half`):                         "failed fail//",
		named("step", "{}") + "event: end\ndata: {}":                  "interrupted complete",
		named("step", "{}") + "event: end\ndata: {}\n":                "interrupted complete",
		named("step", "{}") + "event: en":                             "interrupted",
		named("step", "{}") + "data: {}\nevent: step\nevent: end\n\n": "completed",
	} {
		if got := describe(end(s, sseType, []byte(body))); got != want {
			t.Errorf("%q: %s, want %s", body, got, want)
		}
	}
}

// TestClaims shows who is taken when several could be.
func TestClaims(t *testing.T) {
	here := &url.URL{Scheme: "https", Host: "example.com", Path: "/v1/acme"}
	always := func(c contract.Claim) func(*contract.Answer, *contract.Frame) contract.Claim {
		return func(*contract.Answer, *contract.Frame) contract.Claim { return c }
	}
	byURL := func(a *contract.Answer, _ *contract.Frame) contract.Claim {
		if a.URL == nil || a.URL.Path != here.Path {
			return contract.No
		}
		return contract.Yes
	}
	second := func(_ *contract.Answer, f *contract.Frame) contract.Claim {
		if f.Named("second") {
			return contract.Yes
		}
		return contract.Maybe
	}
	named2 := func(protocol string, claim func(*contract.Answer, *contract.Frame) contract.Claim) contract.Contract {
		c := byName(claim)
		c.Protocol = protocol
		return c
	}
	for name, c := range map[string]struct {
		contracts []contract.Contract
		answer    contract.Answer
		body      string
		want      string
	}{
		"the first":          {[]contract.Contract{named2("a", always(contract.Yes)), named2("b", always(contract.Yes))}, contract.Answer{}, named("x", "1"), "a"},
		"by URL":             {[]contract.Contract{named2("a", byURL)}, contract.Answer{URL: here}, named("x", "1"), "a"},
		"by URL, no event":   {[]contract.Contract{named2("a", byURL)}, contract.Answer{URL: here}, "", "a"},
		"not by URL":         {[]contract.Contract{named2("a", byURL)}, contract.Answer{}, named("x", "1"), ""},
		"a later event":      {[]contract.Contract{named2("a", second)}, contract.Answer{}, named("x", "1", "second", "2"), "a"},
		"an event too late":  {[]contract.Contract{named2("a", second)}, contract.Answer{}, strings.Repeat(named("x", "1"), 32) + named("second", "2"), ""},
		"otherwise":          {[]contract.Contract{named2("a", always(contract.Otherwise)), named2("b", second)}, contract.Answer{}, named("x", "1", "x", "1"), "a"},
		"otherwise, but one": {[]contract.Contract{named2("a", always(contract.Otherwise)), named2("b", second)}, contract.Answer{}, named("x", "1", "second", "1"), "b"},
		"otherwise, late":    {[]contract.Contract{named2("a", always(contract.Otherwise)), named2("b", second)}, contract.Answer{}, strings.Repeat(named("x", "1"), 40), "a"},
		"otherwise, at once": {[]contract.Contract{named2("a", always(contract.Otherwise))}, contract.Answer{}, "", "a"},
		"by what Read knows": {[]contract.Contract{byName(nil)}, contract.Answer{}, named("x", "1", "step", "1"), "acme"},
		"by half an event":   {[]contract.Contract{byName(nil)}, contract.Answer{}, "event: step\ndata: {", "acme"},
		"another framing":    {[]contract.Contract{{Protocol: "l", Framing: contract.Lines, Read: byName(nil).Read}, byName(nil)}, contract.Answer{}, named("step", "1"), "acme"},
	} {
		s, err := contract.NewSet(c.contracts...)
		if err != nil {
			t.Fatal(err)
		}
		c.answer.ContentType = sseType
		if got := endOf(s, c.answer, c.body, 5).Protocol; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestMediaTypes has a content type of a contract's own.
func TestMediaTypes(t *testing.T) {
	s, err := contract.NewSet(contract.Contract{
		Protocol: "acme", Framing: contract.Lines | contract.SSE, MediaTypes: []string{"application/vnd.acme.rows"}, EOF: contract.EOFEnds,
		Read: func(f *contract.Frame, p *contract.Progress) bool { return f.JSON() },
	})
	if err != nil {
		t.Fatal(err)
	}
	got := end(s, "Application/VND.acme.rows; v=1", []byte("data: 1\n\n"))
	if got.Protocol != "acme" || got.State != contract.Completed || got.Events != 1 {
		t.Errorf("%+v", got)
	}
}

// TestProgress counts what stall limits go by.
func TestProgress(t *testing.T) {
	s := known(t)
	w := s.Watch(contract.Answer{ContentType: sseType})
	want := int64(0)
	for _, step := range []struct {
		body  string
		moves int64
		id    string
	}{
		{": comment\n\n", 0, ""},
		{named("message_start", `{"type":"message_start","message":{"id":"m1"}}`), 1, "m1"},
		{named("ping", `{"type":"ping"}`), 0, "m1"},
		{unnamed(`{"type":"ping"}`), 0, "m1"},
		{": comment\n\n\n\n", 0, "m1"},
		{"event: content_block_delta\ndata: {\"type\":\"content_", 0, "m1"},
		{"block_delta\"}\n\n", 1, "m1"},
		{strings.Repeat(named("content_block_delta", "{}"), 9), 9, "m1"},
		{strings.Repeat(named("ping", "{}"), 9), 0, "m1"},
	} {
		w.Write([]byte(step.body))
		want += step.moves
		if w.Progress() != want || w.Operation() != step.id {
			t.Errorf("after %q: %d of %q, want %d of %q", step.body, w.Progress(), w.Operation(), want, step.id)
		}
	}
	if got := w.End(); got.Events != 22 || got.Last != "ping" {
		t.Errorf("%+v", got)
	}
}
