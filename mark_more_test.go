package rubicon_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"golang.org/x/oauth2"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// The headers of the first and of a later attempt of a Stainless SDK.
var (
	firstOf  = []string{"X-Stainless-Retry-Count", "0"}
	secondOf = []string{"X-Stainless-Retry-Count", "1"}
)

// A lossy base loses every request, and counts them.
type lossy struct{ calls int }

func (l *lossy) RoundTrip(req *http.Request) (*http.Response, error) {
	l.calls++
	req.Body.Close()
	return nil, errors.New("lost")
}

// sends reports whether one RoundTrip of req over tr reaches the base.
func (l *lossy) sends(tr *rubicon.Transport, req *http.Request) bool {
	before := l.calls
	if res, err := tr.RoundTrip(req); err == nil {
		res.Body.Close()
	}
	return l.calls > before
}

// TestMarkedTogether: of the first attempts that bear one name and come at
// once, one is sent.
func TestMarkedTogether(t *testing.T) {
	for range 20 {
		release := make(chan struct{})
		s, tr := handler(t, rubicontest.H1, func(http.ResponseWriter, *http.Request) { <-release })
		var wg, refused sync.WaitGroup
		refused.Add(7)
		for range 8 {
			req := attemptOf(t, s.URL, "x", marks[0].first...)
			wg.Go(func() {
				if got := sendRequest(tr, req); errors.Is(got.err, rubicon.ErrInProgress) {
					refused.Done()
				}
			})
		}
		refused.Wait()
		close(release)
		wg.Wait()
		wantCounts(t, s, 1, 1)
	}
}

// TestMarkedKeyStays: a retry that is known by its contents goes out under the
// key of the first attempt, or the licence of the key would cover two effects.
func TestMarkedKeyStays(t *testing.T) {
	s, tr := start(t, rubicontest.H1, rubicontest.Act().Stall(), rubicontest.Act().Answer(200, "done"))
	tr.Endpoints = []rubicon.Endpoint{{Match: func(*http.Request) bool { return true }, KeyHeader: "X-Request-Key", Retention: time.Hour}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		eventually(t, "the first request", func() bool { return len(s.Received()) == 1 })
		cancel()
	}()
	sendRequest(tr, attemptOf(t, s.URL, "x", firstOf...).WithContext(ctx))
	check(t, sendRequest(tr, attemptOf(t, s.URL, "x", secondOf...)), 200, nil)
	all := s.Received()
	if len(all) != 2 || all[0].Header.Get("X-Request-Key") == "" || all[0].Header.Get("X-Request-Key") != all[1].Header.Get("X-Request-Key") {
		t.Errorf("%d requests: %v", len(all), all)
	}
}

// TestMarkedTarget: one key for two targets, or two callers, makes two calls,
// and the licence of one is none of the other's.
func TestMarkedTarget(t *testing.T) {
	base := new(lossy)
	tr := &rubicon.Transport{Base: base, Endpoints: []rubicon.Endpoint{}, Backoff: quick}
	keyed := append([]string{"Idempotency-Key", "k1"}, firstOf...)
	put := attemptOf(t, "http://a.example/1", "x", keyed...)
	put.Method = http.MethodPut
	base.sends(tr, put)
	for _, c := range []struct {
		url    string
		header []string
		sent   bool
	}{
		{"http://a.example/1", nil, true}, // it is a POST
		{"http://A.example/1", nil, false},
		{"https://a.example/1", nil, true},
		{"http://b.example/1", nil, true},
		{"http://a.example/2", nil, true},
		{"http://a.example/1?x=1", nil, true},
		{"http://a.example/1", []string{"Authorization", "Bearer a"}, true},
		{"http://a.example/1", []string{"Authorization", "Bearer b"}, true},
		{"http://a.example/1", []string{"Api-Key", "a"}, true},
		{"http://a.example/1", []string{"X-Goog-Api-Key", "a"}, true},
	} {
		before := base.calls
		if sent := base.sends(tr, attemptOf(t, c.url, "x", append(c.header, keyed...)...)); sent != c.sent || base.calls > before+1 {
			t.Errorf("%s %v: sent %d times", c.url, c.header, base.calls-before)
		}
	}
}

// TestDeclaredRetry: what a declared retry is taken for, by the request before
// it.
func TestDeclaredRetry(t *testing.T) {
	once := func(req *http.Request) *http.Request { req.GetBody = nil; return req }
	first := func(body string) *http.Request { return attemptOf(t, "http://a.example/?q=1", body, firstOf...) }
	second := func(method, query, body string) *http.Request {
		req := attemptOf(t, "http://a.example/?q="+query, body, secondOf...)
		req.Method = method
		return req
	}
	for name, c := range map[string]struct {
		first, second *http.Request
		sent          bool
	}{
		"the same":      {first("x"), second("POST", "1", "x"), false},
		"another query": {first("x"), second("POST", "2", "x"), true},
		"another body":  {first("x"), second("POST", "1", "y"), true},
		"PATCH":         {first("x"), second("PATCH", "1", "x"), true},
		"unread bodies": {once(first("x")), once(second("POST", "1", "y")), true},
		"unread after":  {first("x"), once(second("POST", "1", "x")), true},
	} {
		base := new(lossy)
		tr := &rubicon.Transport{Base: base}
		base.sends(tr, c.first)
		if sent := base.sends(tr, c.second); sent != c.sent {
			t.Errorf("%s: sent %v", name, sent)
		}
	}
}

// TestDeclaredRetryOfSuccess: a retry of what succeeded may be that of a twin,
// and is sent.
func TestDeclaredRetryOfSuccess(t *testing.T) {
	s, tr := start(t, rubicontest.H1, rubicontest.Act().Answer(200, "done"))
	for _, header := range [][]string{firstOf, secondOf} {
		check(t, sendRequest(tr, attemptOf(t, s.URL, "x", header...)), 200, nil)
	}
	wantCounts(t, s, 2, 2)
}

// TestTwins: two calls alike that are under way at the same time are both sent,
// where their server can tell them apart or nobody can.
func TestTwins(t *testing.T) {
	for name, header := range map[string][]string{"key": append([]string{"Idempotency-Key", "k1"}, firstOf...), "content": secondOf} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			release := make(chan struct{})
			tr := &rubicon.Transport{Endpoints: []rubicon.Endpoint{}, Backoff: func() backoff.BackOff { return &backoff.StopBackOff{} }}
			tr.Base = roundTripper(func(req *http.Request) (*http.Response, error) {
				req.Body.Close()
				if calls.Add(1) == 1 {
					return response(req, 429, nil, ""), nil
				}
				<-release
				return response(req, 200, nil, ""), nil
			})
			check(t, sendRequest(tr, attemptOf(t, "http://a.example", "x", firstOf...)), 429, nil)
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() { check(t, sendRequest(tr, attemptOf(t, "http://a.example", "x", header...)), 200, nil) })
			}
			defer wg.Wait()
			defer close(release)
			eventually(t, "both", func() bool { return calls.Load() == 3 })
		})
	}
}

// TestMarkedRejection: what a call's server did not let in may be sent by its
// next attempt, which may know better.
func TestMarkedRejection(t *testing.T) {
	s, tr := start(t, rubicontest.H1, rubicontest.Read().Answer(401, ""), rubicontest.Act().Answer(200, "done"))
	check(t, sendRequest(tr, attemptOf(t, s.URL, "x", marks[0].first...)), 401, nil)
	check(t, sendRequest(tr, attemptOf(t, s.URL, "x", marks[0].later...)), 200, nil)
}

// TestMarkedAfterFailure: a call that failed for good may be made again under
// its name: AWS throttles with 400, and its SDK repeats that.
func TestMarkedAfterFailure(t *testing.T) {
	s, tr := start(t, rubicontest.H1, rubicontest.Read().Answer(400, "ThrottlingException"), rubicontest.Act().Answer(200, "done"))
	check(t, sendRequest(tr, attemptOf(t, s.URL, "x", marks[0].first...)), 400, nil)
	check(t, sendRequest(tr, attemptOf(t, s.URL, "x", marks[0].later...)), 200, nil)
}

// TestMarkedRunning: a call that is under way is not forgotten for others.
func TestMarkedRunning(t *testing.T) {
	base := new(lossy)
	entered := make(chan bool)
	tr := &rubicon.Transport{Base: roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.URL.Path == "/slow" {
			entered <- true
			<-req.Context().Done()
		}
		return base.RoundTrip(req)
	})}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	slow := attemptOf(t, "http://a.example/slow", "x", marks[0].first...)
	var wg sync.WaitGroup
	wg.Go(func() { tr.RoundTrip(slow.WithContext(ctx)) })
	<-entered
	for i := range 1030 {
		base.sends(tr, attemptOf(t, "http://a.example", "x", "Amz-Sdk-Invocation-Id", fmt.Sprint(i)))
	}
	if _, err := tr.RoundTrip(slow.Clone(t.Context())); !errors.Is(err, rubicon.ErrInProgress) {
		t.Error(err)
	}
	cancel()
	wg.Wait()
}

// TestMarksAreSecret: a transport in use does not print what it knows its calls
// by: the query may hold a key.
func TestMarksAreSecret(t *testing.T) {
	tr := &rubicon.Transport{Base: new(lossy)}
	for _, header := range [][]string{firstOf, append([]string{"Idempotency-Key", "hushhush"}, firstOf...), {"Amz-Sdk-Invocation-Id", "hushhush"}} {
		tr.RoundTrip(attemptOf(t, "http://a.example/?key=hushhush", "hushhush", header...))
	}
	checkSecret(t, tr)
}

// TestMarkedForgotten: a call is remembered for five minutes after its last
// attempt ended, however long that took.
func TestMarkedForgotten(t *testing.T) {
	for _, c := range []struct {
		takes, waits time.Duration
		sent         bool
	}{
		{0, 4 * time.Minute, false},
		{0, 6 * time.Minute, true},
		{10 * time.Minute, 4 * time.Minute, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			base := new(lossy)
			tr := &rubicon.Transport{Base: roundTripper(func(req *http.Request) (*http.Response, error) {
				time.Sleep(c.takes)
				return base.RoundTrip(req)
			})}
			base.sends(tr, attemptOf(t, "http://a.example", "x", marks[0].first...))
			time.Sleep(c.waits)
			if sent := base.sends(tr, attemptOf(t, "http://a.example", "x", marks[0].later...)); sent != c.sent {
				t.Errorf("%+v", c)
			}
		})
	}
}

// TestMarkedOldest: the calls that are forgotten first are those that were not
// seen for longest.
func TestMarkedOldest(t *testing.T) {
	base := new(lossy)
	tr := &rubicon.Transport{Base: base}
	named := func(i int) *http.Request {
		return attemptOf(t, "http://a.example", "x", "Amz-Sdk-Invocation-Id", fmt.Sprint(i))
	}
	base.sends(tr, attemptOf(t, "http://a.example", "x", firstOf...))
	for i := range 500 {
		base.sends(tr, named(i))
	}
	base.sends(tr, attemptOf(t, "http://a.example", "x", firstOf...)) // replaces the first
	if base.sends(tr, named(0)) {                                     // refused, and seen
		t.Error("a call was forgotten too early")
	}
	for i := range 600 {
		base.sends(tr, named(500+i))
	}
	for name, c := range map[string]struct {
		req  *http.Request
		sent bool
	}{
		"content":    {attemptOf(t, "http://a.example", "x", secondOf...), false},
		"seen again": {named(0), false},
		"last":       {named(1099), false},
		"oldest":     {named(1), true},
	} {
		if sent := base.sends(tr, c.req); sent != c.sent {
			t.Errorf("%s: sent %v", name, sent)
		}
	}
}

// An alias is a body whose GetBody rewinds it and returns it, as azcore's does.
type alias struct{ *strings.Reader }

func (alias) Close() error { return nil }

// aliased gives req such a body.
func aliased(req *http.Request, body string) *http.Request {
	b := alias{strings.NewReader(body)}
	req.Body, req.ContentLength = b, int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) {
		_, err := b.Seek(0, io.SeekStart)
		return b, err
	}
	return req
}

// TestAliasedBody: a body that was read to know the call goes out whole, also
// where its GetBody is itself.
func TestAliasedBody(t *testing.T) {
	const rpc = `{"jsonrpc":"2.0","id":7,"method":"tools/call"}`
	for name, c := range map[string]struct {
		body          string
		first, second []string
	}{
		"MCP":              {rpc, []string{"Mcp-Session-Id", "s"}, nil},
		"MCP, long":        {rpc + strings.Repeat(" ", 2<<20), []string{"Mcp-Session-Id", "s"}, nil},
		"MCP notification": {`{"id":null,"method":"n"}`, []string{"Mcp-Session-Id", "s"}, []string{"Mcp-Session-Id", "s"}},
		"declared retry":   {"x", firstOf, secondOf},
		"unknown retry":    {"x", secondOf, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, tr := start(t, rubicontest.H1, rubicontest.Read().Answer(429, ""), rubicontest.Act().Answer(200, ""))
			tr.Backoff = func() backoff.BackOff { return &backoff.StopBackOff{} }
			sendRequest(tr, aliased(attemptOf(t, s.URL, "", c.first...), c.body))
			if c.second != nil {
				check(t, sendRequest(tr, aliased(attemptOf(t, s.URL, "", c.second...), c.body)), 200, nil)
			}
			for _, r := range s.Received() {
				if kept := min(len(c.body), 64<<10); len(r.Body) < kept || !strings.HasPrefix(c.body, string(r.Body)) { // the server keeps no more
					t.Errorf("%d bytes of %d were sent", len(r.Body), len(c.body))
				}
			}
		})
	}
}

// TestAliasedBodyInUse: a body is not read for the sake of remembering the call
// while net/http sends it, after an answer that came early.
func TestAliasedBodyInUse(t *testing.T) {
	answered, got := make(chan bool), make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		w.WriteHeader(http.StatusInternalServerError)
		w.(http.Flusher).Flush()
		<-answered
		body, _ := io.ReadAll(req.Body)
		got <- string(body)
	}))
	defer s.Close()
	var long strings.Builder
	for i := range 1 << 20 {
		fmt.Fprintf(&long, "%07d\n", i)
	}
	tr := &rubicon.Transport{Base: s.Client().Transport, Budget: rubicon.Budget{Attempts: 1}}
	res, err := tr.RoundTrip(aliased(attemptOf(t, s.URL, "", firstOf...), long.String()))
	close(answered)
	if err != nil || res.StatusCode != 500 {
		t.Fatal(res, err)
	}
	defer res.Body.Close()
	if body := <-got; body != long.String() {
		t.Errorf("%d bytes of %d were sent as they are", len(body), long.Len())
	}
}

// TestMarkedRedirects: the hops of a redirect that keeps the method are no
// retries of its call.
func TestMarkedRedirects(t *testing.T) {
	for _, m := range marks {
		if m.once {
			continue
		}
		s, tr := handler(t, rubicontest.H1, func(w http.ResponseWriter, req *http.Request) {
			if to := map[string]string{"/1": "/2", "/2": "/3"}[req.URL.Path]; to != "" {
				http.Redirect(w, req, to, http.StatusTemporaryRedirect)
			}
		})
		check(t, sendRequest(tr, attemptOf(t, s.URL+"/1", m.body, m.first...)), 200, nil)
		wantCounts(t, s, 3, 3)
	}
}

// TestDialectOfAuth: an error of the credential ends the SDK's loop where
// somebody must act, and tells what is known of the request.
func TestDialectOfAuth(t *testing.T) {
	for _, c := range []struct {
		kind  rubicon.AuthKind
		lost  bool // an earlier attempt was
		local string
	}{
		{rubicon.AuthReconnect, false, "refused"},
		{rubicon.AuthMisconfigured, false, "refused"},
		{rubicon.AuthTransient, false, ""},
		{rubicon.AuthReconnect, true, "ambiguous"},
	} {
		script := []rubicontest.Fault{rubicontest.Read().Answer(401, "")}
		if c.lost {
			script = append([]rubicontest.Fault{rubicontest.Act().Close()}, script...)
		}
		s, tr := start(t, rubicontest.H1, script...)
		tr.Repeat = rubicon.Effect
		tr.Auth = &rubicon.Auth{Origins: []string{s.URL}, Credential: rubicon.NewCredential(&oauth2.Token{AccessToken: "old"},
			func(context.Context, *oauth2.Token) (*oauth2.Token, error) {
				return nil, &rubicon.AuthError{Kind: c.kind}
			})}
		for _, header := range [][]string{nil, goSDK} {
			res, err := tr.RoundTrip(attemptOf(t, s.URL, "x", header...))
			local := ""
			if err == nil {
				local = res.Header.Get(rubicon.LocalHeader)
				_, err = io.ReadAll(res.Body)
				res.Body.Close()
			}
			var failed *rubicon.AuthError
			if !errors.As(err, &failed) || failed.Kind != c.kind || errors.Is(err, rubicon.ErrAmbiguous) != c.lost {
				t.Errorf("%+v: %v", c, err)
			}
			if header != nil && local != c.local {
				t.Errorf("%+v: %q", c, local)
			}
			c.lost = false // the script is over
			c.local = map[bool]string{true: "refused"}[c.local != ""]
		}
	}
}

// TestNotDiscouraged: an answer after which the SDK may ask again is the
// server's own, also where this attempt's own context leaves no time.
func TestNotDiscouraged(t *testing.T) {
	later := http.Header{"Retry-After": {"30"}}
	for _, c := range []struct {
		method string
		status int
		repeat rubicon.Kind
		h      http.Header
		want   string
	}{
		{"POST", 429, rubicon.Auto, later, ""},
		{"POST", 503, rubicon.Effect, later, ""},
		{"POST", 503, rubicon.Auto, later, "false"},
		{"POST", 429, rubicon.Auto, http.Header{"Retry-After": {"300"}}, "false"}, // beyond the budget
		{"GET", 404, rubicon.Auto, nil, ""},
		{"POST", 404, rubicon.Auto, nil, ""}, // nothing keeps a further attempt back
		{"POST", 409, rubicon.Auto, nil, "false"},
	} {
		tr := &rubicon.Transport{Repeat: c.repeat, Base: roundTripper(func(req *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: c.status, Header: c.h.Clone(), Body: http.NoBody, Request: req}, nil // a nil Header is legal
		})}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		req := attemptOf(t, "http://a.example", "x", goSDK...).WithContext(ctx)
		req.Method = c.method
		res, err := tr.RoundTrip(req)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Header.Get("X-Should-Retry"); got != c.want {
			t.Errorf("%s %d %v: %q, want %q", c.method, c.status, c.h, got, c.want)
		}
	}
}
