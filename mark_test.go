package rubicon_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// attemptOf returns a request as an SDK would make it for one more attempt of
// the same call.
func attemptOf(t *testing.T, url, body string, header ...string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return req
}

// marks are the ways in which SDKs say which call an attempt belongs to: the
// headers of the first and of a later attempt.
var marks = []struct {
	name         string
	first, later []string
	body         string
	once         bool // the body can be read only once
}{
	{"AWS", []string{"Amz-Sdk-Invocation-Id", "i1", "Amz-Sdk-Request", "attempt=1; max=3"}, []string{"Amz-Sdk-Invocation-Id", "i1", "Amz-Sdk-Request", "attempt=2; max=3"}, "x", true},
	{"AWS, signed", []string{"Amz-Sdk-Invocation-Id", "i1", "Authorization", "AWS4-HMAC-SHA256 Credential=AKID/20261201/us-east-1/x, Signature=1"}, []string{"Amz-Sdk-Invocation-Id", "i1", "Authorization", "AWS4-HMAC-SHA256 Credential=AKID/20261201/us-east-1/x, Signature=2"}, "x", true},
	{"GCS token", []string{"X-Goog-Gcs-Idempotency-Token", "g1"}, []string{"X-Goog-Gcs-Idempotency-Token", "g1"}, "x", false},
	{"gccl", []string{"X-Goog-Api-Client", "gl-go/1.26 gccl-invocation-id/g1 gccl-attempt-count/1"}, []string{"X-Goog-Api-Client", "gl-go/1.26 gccl-invocation-id/g1 gccl-attempt-count/2"}, "x", false},
	{"Stainless", []string{"X-Stainless-Retry-Count", "0"}, []string{"X-Stainless-Retry-Count", "1"}, "x", false},
	{"Stainless with a key", []string{"X-Stainless-Retry-Count", "0", "Idempotency-Key", "k1"}, []string{"X-Stainless-Retry-Count", "1", "Idempotency-Key", "k1"}, "x", false},
	{"MCP", []string{"Mcp-Session-Id", "s1"}, []string{"Mcp-Session-Id", "s1"}, `{"jsonrpc":"2.0","id":7,"method":"tools/call"}`, false},
}

// TestMarkedAttempts: an attempt that says that it belongs to a call which may
// have acted is refused, and nothing is sent for it.
func TestMarkedAttempts(t *testing.T) {
	for _, m := range marks {
		t.Run(m.name, func(t *testing.T) {
			s, tr := start(t, rubicontest.H1, rubicontest.Act().Close(), rubicontest.Act().Answer(200, "again"))
			for i, header := range [][]string{m.first, m.later, m.later} {
				req := attemptOf(t, s.URL, m.body, header...)
				if m.once {
					req.GetBody = nil
				}
				got := sendRequest(tr, req)
				if !errors.Is(got.err, rubicon.ErrAmbiguous) {
					t.Errorf("attempt %d: %v", i+1, got)
				}
			}
			wantCounts(t, s, 1, 1)
		})
	}
}

// TestMarkedCallsGoOn: where the earlier attempts are proven not applied, a
// later one is sent, with its body whole, as far as the one budget of the call
// allows.
func TestMarkedCallsGoOn(t *testing.T) {
	for _, m := range marks {
		t.Run(m.name, func(t *testing.T) {
			s, tr := start(t, rubicontest.H1, rubicontest.Act().Answer(429, ""), rubicontest.Act().Answer(429, ""), rubicontest.Act().Answer(200, "done"))
			tr.Budget = rubicon.Budget{Attempts: 2, Sends: 1}
			first := sendRequest(tr, attemptOf(t, s.URL, m.body, m.first...))
			if first.status != 429 || first.err != nil {
				t.Fatal(first)
			}
			second := sendRequest(tr, attemptOf(t, s.URL, m.body, m.later...))
			if !errors.Is(second.err, rubicon.ErrBudget) {
				t.Errorf("beyond the budget: %v", second)
			}
			if n := len(s.Received()); n != 2 {
				t.Errorf("%d requests", n)
			}
			for _, r := range s.Received() {
				if string(r.Body) != m.body {
					t.Errorf("the server was given %q", r.Body)
				}
			}
		})
	}
}

// TestNotJoined: what only looks like an attempt of the same call is a call of
// its own.
func TestNotJoined(t *testing.T) {
	mcp := []string{"Mcp-Session-Id", "s1"}
	for name, pair := range map[string][2]*http.Request{
		"no mark":                  {attemptOf(t, "http://a", "x"), attemptOf(t, "http://a", "x")},
		"another invocation":       {attemptOf(t, "http://a", "x", "Amz-Sdk-Invocation-Id", "1"), attemptOf(t, "http://a", "x", "Amz-Sdk-Invocation-Id", "2")},
		"another credential":       {attemptOf(t, "http://a", "x", "Amz-Sdk-Invocation-Id", "1", "X-Api-Key", "a"), attemptOf(t, "http://a", "x", "Amz-Sdk-Invocation-Id", "1", "X-Api-Key", "b")},
		"first attempts alike":     {attemptOf(t, "http://a", "x", "X-Stainless-Retry-Count", "0"), attemptOf(t, "http://a", "x", "X-Stainless-Retry-Count", "0")},
		"another body":             {attemptOf(t, "http://a", "x", "X-Stainless-Retry-Count", "0"), attemptOf(t, "http://a", "y", "X-Stainless-Retry-Count", "1")},
		"another path":             {attemptOf(t, "http://a/1", "x", "X-Stainless-Retry-Count", "0"), attemptOf(t, "http://a/2", "x", "X-Stainless-Retry-Count", "1")},
		"a bare key":               {attemptOf(t, "http://a", "x", "Idempotency-Key", "k"), attemptOf(t, "http://a", "x", "Idempotency-Key", "k")},
		"notifications":            {attemptOf(t, "http://a", `{"jsonrpc":"2.0","method":"n"}`, mcp...), attemptOf(t, "http://a", `{"jsonrpc":"2.0","method":"n"}`, mcp...)},
		"another JSON-RPC id":      {attemptOf(t, "http://a", `{"id":1,"method":"n"}`, mcp...), attemptOf(t, "http://a", `{"id":2,"method":"n"}`, mcp...)},
		"another session":          {attemptOf(t, "http://a", `{"id":1,"method":"n"}`, mcp...), attemptOf(t, "http://a", `{"id":1,"method":"n"}`, "Mcp-Session-Id", "s2")},
		"a session and no JSON":    {attemptOf(t, "http://a", `x`, mcp...), attemptOf(t, "http://a", `x`, mcp...)},
		"a response of the client": {attemptOf(t, "http://a", `{"id":1,"result":{}}`, mcp...), attemptOf(t, "http://a", `{"id":1,"result":{}}`, mcp...)},
	} {
		t.Run(name, func(t *testing.T) {
			s, tr := start(t, rubicontest.H1, rubicontest.Act().Close(), rubicontest.Act().Answer(200, "done"))
			for i, req := range pair {
				req.URL.Scheme, req.URL.Host, req.Host = "http", s.Addr, ""
				got := sendRequest(tr, req)
				if i == 0 != errors.Is(got.err, rubicon.ErrAmbiguous) {
					t.Errorf("request %d: %v", i+1, got)
				}
			}
			wantCounts(t, s, 2, 2)
		})
	}
}

// TestMarkedTransports: what one transport knows of a call says nothing at
// another server, nor in another transport.
func TestMarkedTransports(t *testing.T) {
	s1, tr := start(t, rubicontest.H1, rubicontest.Act().Close())
	s2, other := start(t, rubicontest.H1, rubicontest.Act().Answer(200, "done"))
	header := marks[0].first
	if got := sendRequest(tr, attemptOf(t, s1.URL, "x", header...)); !errors.Is(got.err, rubicon.ErrAmbiguous) {
		t.Fatal(got)
	}
	for _, rt := range []*rubicon.Transport{tr, other} {
		if got := sendRequest(rt, attemptOf(t, s2.URL, "x", header...)); got.status != 200 {
			t.Error(got)
		}
	}
}

// TestMarkedAtOnce: an attempt of a call that is under way is refused.
func TestMarkedAtOnce(t *testing.T) {
	s, tr := start(t, rubicontest.H1, rubicontest.Act().Stall(), rubicontest.Act().Answer(200, "again"))
	req := func() *http.Request { return attemptOf(t, s.URL, "x", marks[0].first...) }
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { sendRequest(tr, req().WithContext(ctx)) })
	eventually(t, "the first request", func() bool { return len(s.Received()) == 1 })
	if got := sendRequest(tr, req()); !errors.Is(got.err, rubicon.ErrInProgress) {
		t.Error(got)
	}
	cancel()
	wg.Wait()
	if got := sendRequest(tr, req()); !errors.Is(got.err, rubicon.ErrAmbiguous) {
		t.Error(got)
	}
	wantCounts(t, s, 1, 1)
}

// TestMarkedIsBounded: more calls than are remembered, and the oldest is
// forgotten, not the last.
func TestMarkedIsBounded(t *testing.T) {
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		req.Body.Close()
		return nil, errors.New("lost")
	})
	tr := &rubicon.Transport{Base: base, Budget: rubicon.Budget{Attempts: 1}}
	call := func(i int) error {
		_, err := tr.RoundTrip(attemptOf(t, "http://a.example", "x", "Amz-Sdk-Invocation-Id", fmt.Sprint(i)))
		var e *rubicon.Error
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		return e
	}
	const more = 1030
	for i := range more {
		call(i)
	}
	for i, attempts := range map[int]int{0: 1, more - 1: 1, more - 1000: 1} {
		var e *rubicon.Error
		errors.As(call(i), &e)
		if e.Attempts != attempts {
			t.Errorf("call %d: %d attempts", i, e.Attempts)
		}
	}
}

// goSDK is how OpenAI's SDK for Go marks its requests, and genai how Google's.
var (
	goSDK = []string{"X-Stainless-Lang", "go", "X-Stainless-Retry-Count", "0"}
	genai = []string{"X-Goog-Api-Client", "google-genai-sdk/1.77.0 gl-go/go1.26.8"}
)

// TestDialect: SDKs that go on after any error are given a response in its
// place, which says that it is local, and ends with the error. Nobody else is.
func TestDialect(t *testing.T) {
	python := []string{"X-Stainless-Lang", "python", "X-Stainless-Retry-Count", "0"}
	for _, c := range []struct {
		name   string
		header []string
		plain  bool
		local  bool
	}{
		{"OpenAI", goSDK, false, true},
		{"genai", genai, false, true},
		{"switched off", goSDK, true, false},
		{"Python", python, false, false},
		{"genai for Python", []string{"X-Goog-Api-Client", "google-genai-sdk/1.0 gl-python/3.12"}, false, false},
		{"through a proxy", append([]string{"Via", "1.1 gateway"}, goSDK...), false, false},
		{"forwarded", append([]string{"X-Forwarded-For", "10.0.0.1"}, genai...), false, false},
		{"forwarded, by the standard", append([]string{"Forwarded", "for=10.0.0.1"}, goSDK...), false, false},
		{"nobody known", nil, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, tr := start(t, rubicontest.H1, rubicontest.Act().Close())
			tr.PlainErrors = c.plain
			res, err := tr.RoundTrip(attemptOf(t, s.URL, "x", c.header...))
			if !c.local {
				if !errors.Is(err, rubicon.ErrAmbiguous) {
					t.Errorf("%v %v", res, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != 400 || res.Header.Get("X-Should-Retry") != "false" || res.Header.Get(rubicon.LocalHeader) != "ambiguous" || !strings.Contains(res.Status, "local") {
				t.Errorf("%v %v", res.Status, res.Header)
			}
			if body, err := io.ReadAll(res.Body); len(body) > 0 || !errors.Is(err, rubicon.ErrAmbiguous) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("its body is %q, %v", body, err)
			}
			wantCounts(t, s, 1, 1)
		})
	}
}

// TestDialectIsForStops: an error after which sending is allowed, or with which
// the caller's context ended, is returned as it is.
func TestDialectIsForStops(t *testing.T) {
	r := rubicontest.NewRefused()
	defer r.Close()
	tr := &rubicon.Transport{Base: new(http.Transport), Budget: rubicon.Budget{Attempts: 1}}
	if _, err := tr.RoundTrip(attemptOf(t, r.URL, "x", goSDK...)); err == nil {
		t.Error("an error after which sending is allowed was not returned")
	}
	s, held := start(t, rubicontest.H1, rubicontest.Act().Stall())
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		eventually(t, "the request", func() bool { return len(s.Received()) == 1 })
		cancel()
	}()
	if _, err := held.RoundTrip(attemptOf(t, s.URL, "x", goSDK...).WithContext(ctx)); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// TestDiscouraged: an answer after which a further attempt would be refused
// says so, in the header that the SDK reads, and is the server's otherwise.
func TestDiscouraged(t *testing.T) {
	for _, c := range []struct {
		status int
		budget rubicon.Budget
		header []string
		want   string
	}{
		{500, rubicon.Budget{}, goSDK, "false"},
		{200, rubicon.Budget{}, goSDK, "false"}, // its body may yet be cut
		{409, rubicon.Budget{}, goSDK, "false"},
		{429, rubicon.Budget{Attempts: 1}, goSDK, "false"},
		{401, rubicon.Budget{}, goSDK, ""},
		{500, rubicon.Budget{}, append([]string{"Via", "x"}, goSDK...), ""},
		{500, rubicon.Budget{}, nil, ""},
	} {
		s, tr := start(t, rubicontest.H1, rubicontest.Act().Answer(c.status, "its own"))
		tr.Budget = c.budget
		res, err := tr.RoundTrip(attemptOf(t, s.URL, "x", c.header...))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if got := res.Header.Get("X-Should-Retry"); got != c.want || res.StatusCode != c.status || string(body) != "its own" || res.Header.Get(rubicon.LocalHeader) != "" {
			t.Errorf("%d %v: %q, %d %q", c.status, c.header, got, res.StatusCode, body)
		}
	}
}

// TestNamedCallInOneOperation: an SDK whose bodies can be read once says that
// two requests are attempts of one call.
func TestNamedCallInOneOperation(t *testing.T) {
	s, tr := start(t, rubicontest.H1, rubicontest.Act().Close(), rubicontest.Act().Answer(200, "again"))
	ctx, op := begin(t, rubicon.Intent{})
	for _, id := range []string{"i1", "i1", "i2"} {
		req := attemptOf(t, s.URL, "x", "Amz-Sdk-Invocation-Id", id).WithContext(ctx)
		req.GetBody = nil
		got := sendRequest(tr, req)
		if id == "i1" != errors.Is(got.err, rubicon.ErrAmbiguous) {
			t.Errorf("%s: %v", id, got)
		}
	}
	if op.Outcome() != rubicon.Ambiguous {
		t.Error(op.Outcome())
	}
	wantCounts(t, s, 2, 2)
}

// TestTokenRequestBindsNoKey: an SDK that asks for a token in the middle of a
// named call does not take its key for that.
func TestTokenRequestBindsNoKey(t *testing.T) {
	s, tr := start(t, rubicontest.H1, rubicontest.Act().Answer(200, "done"))
	ctx, _ := begin(t, named(t))
	for _, r := range []struct{ path, body string }{
		{"/v1/oauth/token", `{"grant_type":"urn:ietf:params:oauth:grant-type:jwt-bearer"}`},
		{"/token", "grant_type=refresh_token&refresh_token=r"},
		{"/v1/messages", "x"},
	} {
		if got := send(ctx, tr, http.MethodPost, s.URL+r.path, r.body); got.status != 200 {
			t.Errorf("%s: %v", r.path, got)
		}
	}
	if got := send(ctx, tr, http.MethodPost, s.URL+"/token", "buy=1"); !errors.Is(got.err, rubicon.ErrMismatch) {
		t.Errorf("a purchase of tokens: %v", got)
	}
	for _, r := range s.Received() {
		if len(r.Body) == 0 {
			t.Errorf("%s went out without its body", r.Path)
		}
	}
}

// TestOutlives: what reads goes on with the context of an operation that has
// ended, and so does the end of an MCP session. Nothing else is sent.
func TestOutlives(t *testing.T) {
	s, tr := start(t, rubicontest.H1, rubicontest.Act().Answer(200, "done"))
	ctx, op := begin(t, rubicon.Intent{})
	op.End()
	for _, c := range []struct {
		method, session string
		ok              bool
	}{{"GET", "", true}, {"GET", "s1", true}, {"DELETE", "s1", true}, {"DELETE", "", false}, {"POST", "s1", false}, {"PUT", "", false}} {
		req, _ := http.NewRequestWithContext(ctx, c.method, s.URL, nil)
		if c.session != "" {
			req.Header.Set("Mcp-Session-Id", c.session)
		}
		if got := sendRequest(tr, req); c.ok != (got.status == 200) || !c.ok && !errors.Is(got.err, rubicon.ErrEnded) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestKeyUsedAgain: who sends a request with the same idempotency key again
// after its answer asks for what its server remembers. A retry that an SDK
// declares does not.
func TestKeyUsedAgain(t *testing.T) {
	keyed := rubicon.Endpoint{Match: func(*http.Request) bool { return true }, KeyHeader: "Idempotency-Key", Retention: time.Hour}
	for _, c := range []struct {
		name      string
		endpoints []rubicon.Endpoint
		header    []string // of the second request, beside the key
		requests  int
	}{
		{"documented", []rubicon.Endpoint{keyed}, nil, 2},
		{"first attempt", []rubicon.Endpoint{}, []string{"X-Stainless-Retry-Count", "0"}, 2},
		{"declared retry", []rubicon.Endpoint{}, []string{"X-Stainless-Retry-Count", "1"}, 1},
	} {
		s, tr := start(t, rubicontest.H1, rubicontest.Act().Answer(200, "done"))
		tr.Endpoints = c.endpoints
		first := attemptOf(t, s.URL, "x", "Idempotency-Key", "k1", "X-Stainless-Retry-Count", "0")
		if got := sendRequest(tr, first); got.status != 200 {
			t.Fatal(got)
		}
		got := sendRequest(tr, attemptOf(t, s.URL, "x", append([]string{"Idempotency-Key", "k1"}, c.header...)...))
		if again := c.requests == 2; again != (got.status == 200) || !again && !errors.Is(got.err, rubicon.ErrSettled) {
			t.Errorf("%s: %v", c.name, got)
		}
		wantCounts(t, s, c.requests, c.requests)
	}
}
