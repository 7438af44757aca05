package rubicon_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// TestOrigins: a token goes to the listed origin, however that is written, and
// nowhere else.
func TestOrigins(t *testing.T) {
	for _, c := range []struct {
		listed, url, host string
		goes              bool
	}{
		{"https://a.example", "https://a.example/x", "", true},
		{"https://a.example/", "https://a.example:443/x", "", true},
		{"https://a.example:443", "https://A.EXAMPLE/x", "", true},
		{"HTTPS://A.Example", "https://a.example/x", "a.example", true},
		{"https://a.example:8443", "https://a.example:8443", "A.example:8443", true},
		{"https://[2001:db8::1]", "https://[2001:db8::1]:443/", "", true},
		{"http://localhost:80", "http://localhost/", "", true},
		{"http://[::1]", "http://[::1]:80/", "", true},
		{"https://a.example", "http://a.example/x", "", false},
		{"https://a.example", "http://a.example:443/x", "", false},
		{"https://a.example", "https://a.example:80/x", "", false},
		{"https://a.example", "https://a.example./x", "", false},
		{"https://a.example", "https://b.a.example/x", "", false},
		{"https://a.example", "https://a.example.evil.example/x", "", false},
		{"https://a.example", "https://a.example@evil.example/x", "", false},
		{"https://a.example", "https://evil.example/https://a.example", "", false},
		{"https://a.example", "https://evil.example/x", "a.example", false},
		{"https://a.example", "https://a.example/x", "evil.example", false},
		{"https://a.example", "https://a.example/x", "a.example:8443", false},
		{"https://[2001:db8::1]", "https://[2001:db8::1:443]/", "", false},
		{"http://localhost", "https://localhost/", "", false},
		{"http://localhost", "http://localhost:443/", "", false},
		{"http://localhost", "http://localhost:8080/", "", false},
	} {
		tr := &rubicon.Transport{
			Base: roundTripper(func(req *http.Request) (*http.Response, error) {
				if got := req.Header.Get("Authorization") == "Bearer key-1"; got != c.goes {
					t.Errorf("%+v: %v", c, got)
				}
				return response(req, 200, nil, ""), nil
			}),
			Auth: &rubicon.Auth{Credential: rubicon.Static("key-1"), Origins: []string{c.listed}},
		}
		for _, method := range []string{"GET", "POST"} {
			req, err := http.NewRequest(method, c.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host, req.URL.User = c.host, nil
			if res, err := tr.RoundTrip(req); err != nil || len(req.Header) != 0 || res.Request != req {
				t.Errorf("%v; the caller's header is %v", err, req.Header)
			}
		}
	}
}

// TestTokenOfAChain: in a chain of redirects the token goes as far as it keeps
// to the listed origin, and does not come back with it.
func TestTokenOfAChain(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, method := range []string{"GET", "POST"} {
			var listed, other string
			var got []string
			hops := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				got = append(got, req.URL.Path+" "+req.Header.Get("Authorization"))
				if to := map[string]string{"/1": listed + "/2", "/2": other + "/3", "/3": listed + "/4", "/4": listed + "/5"}[req.URL.Path]; to != "" {
					http.Redirect(w, req, to, status)
				}
			})
			a, b := httptest.NewServer(hops), httptest.NewServer(hops)
			listed, other = a.URL, b.URL
			base := new(http.Transport)
			client := &http.Client{Transport: &rubicon.Transport{Base: base, Auth: &rubicon.Auth{Credential: rubicon.Static("key-1"), Origins: []string{listed}}}}
			check(t, send(t.Context(), client.Transport, method, listed+"/1", ""), 200, nil)
			base.CloseIdleConnections()
			a.Close()
			b.Close()
			if want := "[/1 Bearer key-1 /2 Bearer key-1 /3  /4  /5 ]"; fmt.Sprint(got) != want {
				t.Errorf("%s %d: %q", method, status, got)
			}
		}
	}
}

// TestReplacedDuringRenewal: a token that is put in place during a renewal, and
// is rejected too, is renewed in its turn.
func TestReplacedDuringRenewal(t *testing.T) {
	s := newIssuer(t)
	hang, grants := make(chan bool), 0
	c := rubicon.NewCredential(&oauth2.Token{AccessToken: "old"}, func(context.Context, *oauth2.Token) (*oauth2.Token, error) {
		if grants++; grants == 1 {
			hang <- true
			<-hang
			return &oauth2.Token{AccessToken: "late"}, nil
		}
		return &oauth2.Token{AccessToken: "access-0"}, nil
	})
	replaced := make(chan bool, 4)
	s.reject = func(w http.ResponseWriter, req *http.Request) {
		switch req.Header.Get("Authorization") {
		case "Bearer late":
			t.Error("a token was used that came after it was replaced")
		case "Bearer new":
			replaced <- true
		}
		w.WriteHeader(http.StatusUnauthorized)
	}
	client := s.client(t, c)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { post(t, client, s.api.URL, "x") })
	<-hang
	if err := c.Replace(t.Context(), &oauth2.Token{AccessToken: "new"}); err != nil {
		t.Fatal(err)
	}
	wg.Go(func() {
		if status, _, err := post(t, client, s.api.URL, "x"); status != 200 || err != nil {
			t.Errorf("with the new token: %d %v", status, err)
		}
	})
	<-replaced
	hang <- true
}

// TestUselessRenewal: a path that rejects every token costs one renewal, also
// where another path of its origin takes the new one in between.
func TestUselessRenewal(t *testing.T) {
	s := newIssuer(t)
	client := s.client(t, s.credential(t))
	s.serve = func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/bad" {
			if status, _, err := post(t, client, s.api.URL+"/good", "x"); status != 200 || err != nil {
				t.Error(status, err)
			}
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
	for range 5 {
		if status, _, err := post(t, client, s.api.URL+"/bad", "x"); status != 401 || err != nil {
			t.Error(status, err)
		}
	}
	if n := s.requests.Load(); n > 2 { // the first token is rejected by both
		t.Errorf("%d token requests", n)
	}
}

// TestEndDuringRenewal: nothing is sent for an operation that ended while its
// credential was renewed, and its caller gets the rejection.
func TestEndDuringRenewal(t *testing.T) {
	for _, key := range []string{"", t.Name()} {
		s := newIssuer(t)
		ctx, op := rubicon.Begin(t.Context(), rubicon.Intent{Key: rubicon.Key{Name: key}})
		s.answer = func(http.ResponseWriter, *http.Request) bool { op.End(); return false }
		client := s.client(t, s.credential(t))
		s.revoke()
		check(t, send(ctx, client.Transport, http.MethodPost, s.api.URL, "x"), 401, nil)
		if op.Outcome() != rubicon.Refused {
			t.Error(op.Outcome())
		}
		s.wantCalls(t, 1, 1)
	}
}

// A flaky journal fails at some of its steps.
type flaky struct {
	rubicon.MemoryJournal
	step  int
	fails func(step int) bool
}

func (f *flaky) next() error {
	if f.step++; f.fails(f.step) {
		return errors.New("disk full")
	}
	return nil
}

func (f *flaky) Begin(ctx context.Context, p rubicon.Proposal) (rubicon.Ticket, error) {
	if err := f.next(); err != nil {
		return rubicon.Ticket{}, err
	}
	return f.MemoryJournal.Begin(ctx, p)
}

func (f *flaky) Observe(ctx context.Context, ticket rubicon.Ticket, fact rubicon.Fact) error {
	if err := f.next(); err != nil {
		return err
	}
	return f.MemoryJournal.Observe(ctx, ticket, fact)
}

// TestRenewalWithAFlakyJournal: wherever the journal of a named operation
// fails, a rejected request is sent twice at most, and an answer that came is
// returned.
func TestRenewalWithAFlakyJournal(t *testing.T) {
	for from := range 8 {
		for _, lasts := range []bool{false, true} {
			s := newIssuer(t)
			client := s.client(t, s.credential(t))
			client.Transport.(*rubicon.Transport).Journal = &flaky{fails: func(step int) bool { return step == from || lasts && step > from }}
			s.revoke()
			ctx, op := begin(t, named(t))
			got := send(ctx, client.Transport, http.MethodPost, s.api.URL, "x")
			hits, outcome := s.hits.Load(), op.Outcome()
			switch {
			case hits == 0 && errors.Is(got.err, rubicon.ErrJournal) && outcome == rubicon.Unsent:
			case hits == 1 && got.status == 401 && outcome == rubicon.Refused:
			case hits == 2 && got.status == 200 && outcome == rubicon.Succeeded:
			default:
				t.Errorf("from step %d, %v: %d requests, %v, %v", from, lasts, hits, got, outcome)
			}
		}
	}
}

// TestSendsOfARejection: whatever comes in between, a request is sent again
// once because of its credential.
func TestSendsOfARejection(t *testing.T) {
	for _, method := range []string{"POST", "PUT", "GET"} {
		for _, budget := range []rubicon.Budget{{}, {Attempts: 1}, {Attempts: 10, Sends: 10, Replays: 10}} {
			var n, grants int
			script := []int{401, 503, 401, 503, 401}
			s, tr := handler(t, rubicontest.H1, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(script[n%len(script)])
				n++
			})
			tr.Budget = budget
			tr.Endpoints = []rubicon.Endpoint{{Match: func(*http.Request) bool { return true }, Refusals: []rubicon.Answer{{Status: 503}}}}
			tr.Auth = &rubicon.Auth{Origins: []string{s.URL}, Credential: rubicon.NewCredential(&oauth2.Token{AccessToken: "t0"},
				func(context.Context, *oauth2.Token) (*oauth2.Token, error) {
					grants++
					return &oauth2.Token{AccessToken: "t" + strconv.Itoa(grants)}, nil
				})}
			want := told{status: 401}
			sends := 3
			if budget.Attempts == 1 {
				want.status, sends = 503, 2
			}
			check(t, send(t.Context(), tr, method, s.URL, ""), want.status, nil)
			if n != sends || grants != 1 {
				t.Errorf("%s %v: %d sends, %d grants", method, budget, n, grants)
			}
		}
	}
}

// TestAnswersAsTheyCame: an answer has the same status, header, body and
// trailer as without a Transport, with a credential and without.
func TestAnswersAsTheyCame(t *testing.T) {
	both(t, func(t *testing.T, p rubicontest.Protocol) {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			status, _ := strconv.Atoi(req.URL.Path[1:])
			w.Header().Set("Trailer", "X-Trailer")
			w.Header()["X-Twice"] = []string{"a", "b"}
			w.Header().Set("Date", "today")
			w.WriteHeader(status)
			if status != 204 && status != 304 {
				io.WriteString(w, "its own ")
				w.(http.Flusher).Flush()
				io.WriteString(w, "body")
			}
			w.Header().Set("X-Trailer", "t")
		}))
		if s.EnableHTTP2 = p == rubicontest.H2; s.EnableHTTP2 {
			s.StartTLS()
		} else {
			s.Start()
		}
		defer s.Close()
		bare := s.Client().Transport
		transports := []http.RoundTripper{
			&rubicon.Transport{Base: bare, Backoff: quick, Budget: rubicon.Budget{Attempts: 2}},
			&rubicon.Transport{Base: bare, Backoff: quick, Budget: rubicon.Budget{Attempts: 2},
				Auth: &rubicon.Auth{Credential: rubicon.Static("key-1"), Origins: []string{s.URL}}},
		}
		for _, method := range []string{"GET", "HEAD", "POST", "PUT"} {
			for _, status := range []int{200, 201, 202, 204, 206, 300, 303, 304, 307, 400, 401, 403, 404, 407, 408, 409, 412, 421, 425, 429, 499, 500, 502, 503, 504, 529, 599} {
				url := fmt.Sprint(s.URL, "/", status)
				want := portrait(t, bare, method, url)
				for i, rt := range transports {
					if got := portrait(t, rt, method, url); got != want {
						t.Errorf("%s, transport %d: %s, want %s", method, i, got, want)
					}
				}
			}
		}
	})
}

// portrait returns all that can be seen of an answer.
func portrait(t *testing.T, rt http.RoundTripper, method, url string) string {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), method, url, nil)
	res, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
	return fmt.Sprint(res.Status, res.StatusCode, res.Proto, res.Header, res.ContentLength, res.TransferEncoding, res.Uncompressed,
		res.Close, res.TLS != nil, string(body), err, res.Trailer)
}

// TestRenewalsUnderStress: callers that come, go and are rejected at the same
// time spend no refresh token twice.
func TestRenewalsUnderStress(t *testing.T) {
	s := newIssuer(t)
	c := s.credential(t)
	c.Pause = time.Nanosecond
	var spent sync.Map
	s.answer = func(_ http.ResponseWriter, req *http.Request) bool {
		if _, twice := spent.LoadOrStore(req.FormValue("refresh_token"), true); twice {
			t.Error("a refresh token was spent twice")
		}
		return false
	}
	client := s.client(t, c)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 40 {
				if (i+n)%8 == 0 {
					s.revoke()
				}
				ctx, cancel := context.WithCancel(t.Context())
				if n%4 == 0 {
					stop := time.AfterFunc(time.Duration(n*50)*time.Microsecond, cancel)
					defer stop.Stop()
				}
				got := send(ctx, client.Transport, []string{"POST", "GET"}[n%2], s.api.URL, "")
				cancel()
				var failed *rubicon.AuthError
				if errors.As(got.err, &failed) {
					t.Error(got.err)
				}
			}
		})
	}
	wg.Wait()
}

// TestCallbacksOfACredential: what a credential calls may ask it, and send with
// the client that it is the credential of, without being waited for in vain.
func TestCallbacksOfACredential(t *testing.T) {
	s := newIssuer(t)
	c := s.credential(t)
	client := s.client(t, c)
	c.Client, c.Store = client, asking{c}
	told := make(chan error, 2)
	c.Renewed = func(rubicon.Renewal) {
		_, err := c.Token()
		told <- err
	}
	s.revoke()
	if status, _, err := post(t, client, s.api.URL, "x"); status != 200 || err != nil {
		t.Error(status, err)
	}
	if err := <-told; err != nil {
		t.Error(err)
	}
	s.wantCalls(t, 1, 2)
}

// asking is a store that asks its credential, and keeps nothing.
type asking struct{ c *rubicon.Credential }

func (a asking) Update(_ context.Context, renew func(*oauth2.Token) (*oauth2.Token, error)) error {
	_, _ = a.c.String(), a.c.LogValue()
	_, err := renew(nil)
	_, _ = a.c.Token()
	return err
}

// TestSecretsOfARequest: no value that a caller is handed prints what its
// request holds.
func TestSecretsOfARequest(t *testing.T) {
	s, tr := start(t, rubicontest.H1, rubicontest.Act().Close())
	tr.Auth = &rubicon.Auth{Credential: rubicon.Static("key-1"), Origins: []string{s.URL}}
	ctx, op := begin(t, rubicon.Intent{})
	req := attemptOf(t, s.URL+"/?q=hushhush", "hushhush", "X-Secret", "hushhush", "Cookie", "c=hushhush").WithContext(ctx)
	_, err := tr.RoundTrip(req)
	if !errors.Is(err, rubicon.ErrAmbiguous) {
		t.Fatal(err)
	}
	checkSecret(t, err)
	checkSecret(t, op)
	checkSecret(t, op.Attempts())
	checkSecret(t, op.Err(nil))
	checkSecret(t, tr.Auth)
	if strings.Contains(fmt.Sprint(ctx), "hushhush") {
		t.Error("the context shows it")
	}
}

// granting returns a grant that counts its calls and gives a token that lasts
// for life.
func granting(calls *int, life time.Duration) rubicon.Grant {
	return func(context.Context, *oauth2.Token) (*oauth2.Token, error) {
		*calls++
		return &oauth2.Token{AccessToken: fmt.Sprint("granted-", *calls), Expiry: time.Now().Add(life)}, nil
	}
}

// TestEarlyRenewal: a token is renewed a tenth of its life before it expires, at
// most ten seconds.
func TestEarlyRenewal(t *testing.T) {
	for _, c := range []struct{ life, fresh, stale time.Duration }{
		{time.Hour, time.Hour - 11*time.Second, time.Hour - 9*time.Second},
		{20 * time.Second, 17 * time.Second, 19 * time.Second},
		{time.Second, 0, 950 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			cred := rubicon.NewCredential(&oauth2.Token{AccessToken: "first", Expiry: time.Now().Add(c.life)}, granting(&calls, time.Hour))
			time.Sleep(c.fresh)
			if tok, err := cred.Token(); err != nil || tok.AccessToken != "first" {
				t.Errorf("%v after %v: %v %v", c.life, c.fresh, tok, err)
			}
			time.Sleep(c.stale - c.fresh)
			if tok, err := cred.Token(); err != nil || tok.AccessToken != "granted-1" {
				t.Errorf("%v after %v: %v %v", c.life, c.stale, tok, err)
			}
		})
	}
}

// TestPauseDoubles: where renewing does not help, it is tried again ever less
// often, up to four pauses apart.
func TestPauseDoubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		tr := &rubicon.Transport{Base: roundTripper(func(req *http.Request) (*http.Response, error) { return response(req, 401, nil, ""), nil })}
		tr.Auth = &rubicon.Auth{Credential: rubicon.NewCredential(&oauth2.Token{AccessToken: "first"}, granting(&calls, 24*time.Hour)), Origins: []string{"https://a.example"}}
		var at []time.Duration
		for begun, last := time.Now(), 0; time.Since(begun) < 8*time.Minute; time.Sleep(time.Second) {
			send(t.Context(), tr, http.MethodPost, "https://a.example", "")
			if calls > last {
				at, last = append(at, time.Since(begun).Round(2*time.Second)), calls
			}
		}
		if fmt.Sprint(at) != "[0s 30s 1m30s 3m30s 5m30s 7m30s]" {
			t.Errorf("renewed at %v", at)
		}
	})
}

// TestLateAfterReplace: a rejection of a token that was replaced since asks for
// no renewal, and a credential holds a copy of what it was given.
func TestLateAfterReplace(t *testing.T) {
	calls := 0
	own := &oauth2.Token{AccessToken: "old"}
	c := rubicon.NewCredential(own, granting(&calls, time.Hour))
	own.AccessToken, own.Expiry = "spoilt", time.Now().Add(-time.Hour)
	var seen []string
	tr := &rubicon.Transport{Auth: &rubicon.Auth{Credential: c, Origins: []string{"https://a.example"}}}
	tr.Base = roundTripper(func(req *http.Request) (*http.Response, error) {
		seen = append(seen, req.Header.Get("Authorization"))
		if len(seen) > 1 {
			return response(req, 200, nil, ""), nil
		}
		next := &oauth2.Token{AccessToken: "new"}
		if err := c.Replace(req.Context(), next); err != nil {
			t.Error(err)
		}
		next.AccessToken = "spoilt"
		return response(req, 401, nil, ""), nil
	})
	check(t, send(t.Context(), tr, http.MethodPost, "https://a.example", "x"), 200, nil)
	if fmt.Sprint(seen) != "[Bearer old Bearer new]" || calls != 0 {
		t.Errorf("%q, %d grants", seen, calls)
	}
}

// TestWithoutGrant: a token that nobody can renew is sent, whatever the clock
// says; one that a store may have is taken from there.
func TestWithoutGrant(t *testing.T) {
	past := time.Now().Add(-time.Hour)
	for _, c := range []struct {
		store rubicon.Store
		want  string
	}{
		{nil, "[Bearer old]"},
		{&shelf{tok: &oauth2.Token{AccessToken: "stored"}}, "[Bearer stored]"},
	} {
		var seen []string
		cred := rubicon.NewCredential(&oauth2.Token{AccessToken: "old", Expiry: past}, nil)
		cred.Store = c.store
		tr := &rubicon.Transport{Auth: &rubicon.Auth{Credential: cred, Origins: []string{"https://a.example"}}}
		tr.Base = roundTripper(func(req *http.Request) (*http.Response, error) {
			seen = append(seen, req.Header.Get("Authorization"))
			return response(req, 200, nil, ""), nil
		})
		check(t, send(t.Context(), tr, http.MethodPost, "https://a.example", "x"), 200, nil)
		if fmt.Sprint(seen) != c.want {
			t.Errorf("%q, want %q", seen, c.want)
		}
	}
}

// TestTokenRequestOfItsOwnClient: a token request that goes to a listed origin,
// by the client whose credential it renews, does not wait for itself.
func TestTokenRequestOfItsOwnClient(t *testing.T) {
	s := newIssuer(t)
	conf := s.config()
	conf.Endpoint.AuthStyle = oauth2.AuthStyleInParams // no Authorization of its own
	grant, err := rubicon.RefreshGrant(conf)
	if err != nil {
		t.Fatal(err)
	}
	c := rubicon.NewCredential(&oauth2.Token{AccessToken: "old", RefreshToken: "refresh-0"}, grant)
	client := s.client(t, c)
	auth := client.Transport.(*rubicon.Transport).Auth
	auth.Origins = append(auth.Origins, s.auth.URL)
	c.Client = client
	s.answer = func(_ http.ResponseWriter, req *http.Request) bool {
		if got := req.Header.Get("Authorization"); got != "" {
			t.Errorf("the token request holds %q", got)
		}
		return false
	}
	if status, _, err := post(t, client, s.api.URL, "x"); status != 200 || err != nil {
		t.Error(status, err)
	}
	s.wantCalls(t, 1, 2)
}

// TestGrantsSendSafely: what a grant sends goes by TLS or stays on the machine,
// follows no redirect, and ends with the renewal even where the grant has no
// use for a context.
func TestGrantsSendSafely(t *testing.T) {
	var hits atomic.Int64
	left := make(chan bool, 1)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer elsewhere.Close()
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/hang" {
			io.Copy(io.Discard, req.Body) // only then is it noticed that the client has gone
			<-req.Context().Done()
			left <- true
			return
		}
		http.Redirect(w, req, elsewhere.URL, http.StatusTemporaryRedirect)
	}))
	defer endpoint.Close()
	for _, c := range []struct {
		url  string
		kind rubicon.AuthKind
	}{
		{endpoint.URL + "/redirect", rubicon.AuthTransient},
		{endpoint.URL + "/hang", rubicon.AuthTransient},
		{"http://192.0.2.1/token", rubicon.AuthMisconfigured},
	} {
		cred := rubicon.NewCredential(nil, func(ctx context.Context, _ *oauth2.Token) (*oauth2.Token, error) {
			res, err := ctx.Value(oauth2.HTTPClient).(*http.Client).Post(c.url, "", strings.NewReader("hushhush"))
			if err != nil {
				return nil, err
			}
			res.Body.Close()
			return nil, fmt.Errorf("status %d", res.StatusCode)
		})
		cred.Timeout = 200 * time.Millisecond
		ended := make(chan bool)
		cred.Renewed = func(rubicon.Renewal) { close(ended) }
		_, err := cred.Token()
		var failed *rubicon.AuthError
		if !errors.As(err, &failed) || failed.Kind != c.kind {
			t.Errorf("%s: %v", c.url, err)
		}
		<-ended
	}
	<-left
	if hits.Load() != 0 {
		t.Error("a token request was redirected")
	}
}

// TestNoRefreshToken: without one there is nothing to ask with.
func TestNoRefreshToken(t *testing.T) {
	s := newIssuer(t)
	grant, err := rubicon.RefreshGrant(s.config())
	if err != nil {
		t.Fatal(err)
	}
	client := s.client(t, rubicon.NewCredential(&oauth2.Token{AccessToken: "access-9"}, grant))
	if _, _, err := post(t, client, s.api.URL, "x"); !errors.Is(err, rubicon.ErrReconnect) {
		t.Errorf("told %v", err)
	}
	s.wantCalls(t, 0, 1)
}

// TestLeftAlone: a token endpoint that asks to be left alone is, for longer
// than the pause.
func TestLeftAlone(t *testing.T) {
	s := newIssuer(t)
	s.answer = func(w http.ResponseWriter, req *http.Request) bool {
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	c := s.credential(t)
	c.Pause = time.Nanosecond
	client := s.client(t, c)
	s.revoke()
	for range 3 {
		post(t, client, s.api.URL, "x")
	}
	s.wantCalls(t, 1, 3)
}

// TestShortLife: a token with a short life is used in it.
func TestShortLife(t *testing.T) {
	calls := 0
	c := rubicon.NewCredential(&oauth2.Token{AccessToken: "short", Expiry: time.Now().Add(8 * time.Second)},
		func(context.Context, *oauth2.Token) (*oauth2.Token, error) { calls++; return nil, nil })
	if tok, err := c.Token(); err != nil || tok.AccessToken != "short" || calls != 0 {
		t.Errorf("%v, %v, %d calls", tok, err, calls)
	}
}

// A patient store tells how long it may take.
type patientStore struct{ left time.Duration }

func (s *patientStore) Update(ctx context.Context, renew func(*oauth2.Token) (*oauth2.Token, error)) error {
	deadline, _ := ctx.Deadline()
	s.left = time.Until(deadline)
	_, err := renew(nil)
	return err
}

// TestTimeToKeep: what is granted at the last moment can still be kept.
func TestTimeToKeep(t *testing.T) {
	store := new(patientStore)
	c := rubicon.NewCredential(nil, func(context.Context, *oauth2.Token) (*oauth2.Token, error) {
		return &oauth2.Token{AccessToken: "late"}, nil
	})
	c.Store, c.Timeout = store, time.Second
	if _, err := c.Token(); err != nil || store.left < 3*time.Second {
		t.Errorf("%v, %v left", err, store.left)
	}
}

// TestExpiredBetweenAttempts: an answer that came is returned, also where the
// token has expired since and can't be renewed for another attempt.
func TestExpiredBetweenAttempts(t *testing.T) {
	s := newIssuer(t)
	s.answer = func(w http.ResponseWriter, req *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	s.reject = func(w http.ResponseWriter, req *http.Request) {
		time.Sleep(400 * time.Millisecond)
		w.WriteHeader(http.StatusTooManyRequests)
	}
	grant, err := rubicon.RefreshGrant(s.config())
	if err != nil {
		t.Fatal(err)
	}
	client := s.client(t, rubicon.NewCredential(&oauth2.Token{AccessToken: "access-9", RefreshToken: "r", Expiry: time.Now().Add(300 * time.Millisecond)}, grant))
	client.Transport.(*rubicon.Transport).Backoff = quick
	if status, _, err := post(t, client, s.api.URL, "x"); status != 429 || err != nil {
		t.Error(status, err)
	}
	s.wantCalls(t, 1, 1)
}
