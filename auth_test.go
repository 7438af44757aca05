package rubicon_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/rubicon-go/rubicon"
)

// An issuer is an authorization server that rotates refresh tokens, and an API
// that takes the tokens which it issued last. A refresh token that is used
// twice kills the grant (RFC 9700 section 4.14.2).
type issuer struct {
	auth, api *httptest.Server

	mu      sync.Mutex
	n       int    // tokens issued
	revoked bool   // the current access token is
	dead    bool   // the grant is
	last    string // the refresh token that is good

	requests atomic.Int64 // at the token endpoint
	hits     atomic.Int64 // at the API

	answer func(w http.ResponseWriter, req *http.Request) bool // of the token endpoint; true: it has answered
	serve  http.HandlerFunc                                    // of the API, for a request that is let in
	reject http.HandlerFunc                                    // of the API, for one that is not
}

func newIssuer(t *testing.T) *issuer {
	s := &issuer{last: "refresh-0"}
	s.auth = httptest.NewServer(http.HandlerFunc(s.token))
	s.api = httptest.NewServer(http.HandlerFunc(s.resource))
	t.Cleanup(s.auth.Close)
	t.Cleanup(s.api.Close)
	return s
}

// token is the token endpoint.
func (s *issuer) token(w http.ResponseWriter, req *http.Request) {
	s.requests.Add(1)
	if s.answer != nil && s.answer(w, req) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if s.dead || req.FormValue("refresh_token") != s.last {
		s.dead = true
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"error":"invalid_grant"}`)
		return
	}
	s.n++
	s.revoked, s.last = false, fmt.Sprintf("refresh-%d", s.n)
	json.NewEncoder(w).Encode(map[string]any{
		"access_token": fmt.Sprintf("access-%d", s.n), "refresh_token": s.last, "token_type": "Bearer", "expires_in": 3600,
	})
}

// resource is the API.
func (s *issuer) resource(w http.ResponseWriter, req *http.Request) {
	s.hits.Add(1)
	s.mu.Lock()
	good := !s.revoked && !s.dead && req.Header.Get("Authorization") == fmt.Sprintf("Bearer access-%d", s.n)
	s.mu.Unlock()
	switch {
	case !good && s.reject != nil:
		s.reject(w, req)
	case !good:
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		http.Error(w, "rejected", http.StatusUnauthorized)
	case s.serve != nil:
		s.serve(w, req)
	default:
		io.Copy(w, req.Body)
	}
}

// revoke makes the API reject the current token.
func (s *issuer) revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked = true
}

// config returns the client of the issuer.
func (s *issuer) config() *oauth2.Config {
	return &oauth2.Config{
		ClientID: "client", ClientSecret: "hushhush",
		Endpoint: oauth2.Endpoint{TokenURL: s.auth.URL, AuthStyle: oauth2.AuthStyleInHeader},
	}
}

// credential returns a credential whose token is good, and good for an hour.
func (s *issuer) credential(t *testing.T) *rubicon.Credential {
	t.Helper()
	grant, err := rubicon.RefreshGrant(s.config())
	if err != nil {
		t.Fatal(err)
	}
	return rubicon.NewCredential(&oauth2.Token{AccessToken: "access-0", RefreshToken: "refresh-0", Expiry: time.Now().Add(time.Hour)}, grant)
}

// client returns a client that puts c on requests to the API.
func (s *issuer) client(t *testing.T, c *rubicon.Credential) *http.Client {
	base := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(base.CloseIdleConnections)
	return &http.Client{Transport: &rubicon.Transport{
		Base: base, Auth: &rubicon.Auth{Credential: c, Origins: []string{s.api.URL}},
	}}
}

// post posts body and returns the status and body of the answer.
func post(t *testing.T, client *http.Client, url, body string) (int, string, error) {
	t.Helper()
	res, err := client.Post(url, "text/plain", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	return res.StatusCode, string(got), err
}

// wantCalls checks how often the token endpoint and the API were asked.
func (s *issuer) wantCalls(t *testing.T, requests, hits int64) {
	t.Helper()
	if n := s.requests.Load(); n != requests {
		t.Errorf("%d token requests, want %d", n, requests)
	}
	if n := s.hits.Load(); n != hits {
		t.Errorf("%d requests at the API, want %d", n, hits)
	}
}

// TestRejected: a token that is rejected although the clock thinks well of it
// is renewed once, and the request sent again.
func TestRejected(t *testing.T) {
	s := newIssuer(t)
	client := s.client(t, s.credential(t))
	s.revoke()
	if status, body, err := post(t, client, s.api.URL, "a body"); status != 200 || body != "a body" || err != nil {
		t.Errorf("%d %q %v", status, body, err)
	}
	s.wantCalls(t, 1, 2)
	s.revoke()
	res, err := client.Get(s.api.URL)
	if err != nil || res.StatusCode != 200 {
		t.Fatal(res, err)
	}
	res.Body.Close()
	s.wantCalls(t, 2, 4)
	for range 3 { // on the short path
		res, err := client.Get(s.api.URL)
		if err != nil || res.StatusCode != 200 || res.Request.Header.Get("Authorization") != "" {
			t.Fatal(res, err)
		}
		res.Body.Close()
	}
	s.wantCalls(t, 2, 7)
}

// TestRejectedAtOnce has a thousand requests rejected together.
func TestRejectedAtOnce(t *testing.T) {
	s := newIssuer(t)
	const n = 1000
	var all sync.WaitGroup
	all.Add(n)
	s.reject = func(w http.ResponseWriter, req *http.Request) {
		all.Done()
		all.Wait()
		w.WriteHeader(http.StatusUnauthorized)
	}
	client := s.client(t, s.credential(t))
	s.revoke()
	var ok atomic.Int64
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if status, _, err := post(t, client, s.api.URL, "x"); status == 200 && err == nil {
				ok.Add(1)
			}
		})
	}
	wg.Wait()
	if ok.Load() != n {
		t.Errorf("%d of %d requests succeeded", ok.Load(), n)
	}
	s.wantCalls(t, 1, 2*n)
}

// TestRejectedLate has a request rejected that holds a token which was renewed
// since: it is sent again with the newer one.
func TestRejectedLate(t *testing.T) {
	s := newIssuer(t)
	late := make(chan bool)
	s.reject = func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/late" {
			<-late
		}
		w.WriteHeader(http.StatusUnauthorized)
	}
	client := s.client(t, s.credential(t))
	s.revoke()
	var wg sync.WaitGroup
	wg.Go(func() {
		if status, _, err := post(t, client, s.api.URL+"/late", "x"); status != 200 || err != nil {
			t.Errorf("late: %d %v", status, err)
		}
	})
	for s.hits.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if status, _, err := post(t, client, s.api.URL, "x"); status != 200 || err != nil {
		t.Errorf("%d %v", status, err)
	}
	close(late)
	wg.Wait()
	s.wantCalls(t, 1, 4)
}

// TestRejectedAgain has an API that rejects every token: the second rejection
// is the caller's, and the token endpoint is left alone for a while.
func TestRejectedAgain(t *testing.T) {
	s := newIssuer(t)
	s.serve = func(w http.ResponseWriter, req *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, "no, and no again")
	}
	s.reject = s.serve
	client := s.client(t, s.credential(t))
	for range 50 {
		if status, body, err := post(t, client, s.api.URL, "x"); status != 401 || body != "no, and no again" || err != nil {
			t.Fatalf("%d %q %v", status, body, err)
		}
	}
	s.wantCalls(t, 1, 51)
}

// TestRenewalOfOneOrigin: an origin that rejects everything does not keep
// another from a renewal of its own.
func TestRenewalOfOneOrigin(t *testing.T) {
	s := newIssuer(t)
	never := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { w.WriteHeader(401) }))
	defer never.Close()
	client := s.client(t, s.credential(t))
	transport := client.Transport.(*rubicon.Transport)
	transport.Auth.Origins = append(transport.Auth.Origins, never.URL)
	for range 20 {
		if status, _, err := post(t, client, never.URL, "x"); status != 401 || err != nil {
			t.Fatal(status, err)
		}
		if status, _, err := post(t, client, s.api.URL, "x"); status != 200 || err != nil {
			t.Fatal(status, err)
		}
	}
	if n := s.requests.Load(); n != 1 {
		t.Errorf("%d token requests, want 1", n)
	}
	s.revoke()
	if status, _, err := post(t, client, s.api.URL, "x"); status != 200 || err != nil {
		t.Error(status, err)
	}
	if n := s.requests.Load(); n != 2 {
		t.Errorf("%d token requests, want 2", n)
	}
}

// TestRenewedNotRewindable: a request whose body can't be sent again gets its 401, and
// the next one the new token.
func TestRenewedNotRewindable(t *testing.T) {
	s := newIssuer(t)
	var renewed []error
	client := s.client(t, s.credential(t))
	client.Transport.(*rubicon.Transport).Trace = &rubicon.Trace{
		Renewed: func(_ context.Context, info rubicon.RenewedInfo) { renewed = append(renewed, info.Err) },
	}
	s.reject = func(w http.ResponseWriter, req *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, "rejected")
	}
	s.revoke()
	res, err := client.Post(s.api.URL, "text/plain", io.MultiReader(strings.NewReader("one "), strings.NewReader("shot")))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	if res.StatusCode != 401 || string(body) != "rejected" || err != nil {
		t.Errorf("%d %q %v", res.StatusCode, body, err)
	}
	if len(renewed) != 1 || renewed[0] != nil {
		t.Errorf("told of renewals: %v", renewed)
	}
	s.wantCalls(t, 1, 1)
	if status, _, err := post(t, client, s.api.URL, "x"); status != 200 || err != nil {
		t.Error(status, err)
	}
	s.wantCalls(t, 1, 2)
}

// TestRejectedForGood has rejections that another token does not mend.
func TestRejectedForGood(t *testing.T) {
	for _, c := range []struct {
		status    int
		challenge string
	}{
		{401, `Bearer error="insufficient_scope", scope="admin"`},
		{403, `Bearer error="insufficient_scope", scope="admin"`},
		{401, `Bearer error="insufficient_user_authentication", max_age=5`},
		{401, `Bearer realm="", error="insufficient_claims", claims="e30="`},
		{401, `DPoP error="use_dpop_nonce"`},
		{400, `DPoP error="use_dpop_nonce"`},
		{401, `Basic realm="x"`},
		{401, `Bearer error="invalid_token", Bearer error="insufficient_scope"`},
		{401, `Bearer error="insufficient_scope", Bearer error="invalid_token"`},
		{401, `Bearer error="invalid_request"`},
		{403, ``},
		{407, ``},
	} {
		s := newIssuer(t)
		s.serve = func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("WWW-Authenticate", c.challenge)
			w.WriteHeader(c.status)
		}
		s.reject = s.serve
		client := s.client(t, s.credential(t))
		if status, _, err := post(t, client, s.api.URL, "x"); status != c.status || err != nil {
			t.Errorf("%d %s: %d %v", c.status, c.challenge, status, err)
		}
		s.wantCalls(t, 0, 1)
	}
}

// TestClassify: a caller's own classifier finds a rejection in a 403, and can't
// find one in insufficient_scope.
func TestClassify(t *testing.T) {
	for challenge, requests := range map[string]int64{"": 1, `Bearer error="insufficient_scope"`: 0} {
		s := newIssuer(t)
		s.reject = func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("WWW-Authenticate", challenge)
			w.WriteHeader(http.StatusForbidden)
		}
		client := s.client(t, s.credential(t))
		client.Transport.(*rubicon.Transport).Auth.Classify = func(res *http.Response) rubicon.Rejection {
			if res.StatusCode == http.StatusForbidden {
				return rubicon.RejectionRenewable
			}
			return rubicon.RejectionNone
		}
		s.revoke()
		status, _, err := post(t, client, s.api.URL, "x")
		if want := map[int64]int{1: 200, 0: 403}[requests]; status != want || err != nil {
			t.Errorf("%q: %d %v", challenge, status, err)
		}
		s.wantCalls(t, requests, 1+requests)
	}
}

// TestStatic: an API key is put where its server looks for it, and a rejection
// is the caller's.
func TestStatic(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		got = append(got, req.Header.Get("X-Api-Key")+"|"+req.Header.Get("Authorization"))
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, "incorrect key")
	}))
	defer server.Close()
	for header, want := range map[string]string{"x-api-key": "key-1|", "": "|Bearer key-1"} {
		got = nil
		base := new(http.Transport)
		client := &http.Client{Transport: &rubicon.Transport{Base: base, Auth: &rubicon.Auth{
			Credential: rubicon.Static("key-1"), Origins: []string{server.URL}, Header: header,
			Classify: func(*http.Response) rubicon.Rejection { return rubicon.RejectionRenewable },
		}}}
		status, body, err := post(t, client, server.URL, "x")
		if status != 401 || body != "incorrect key" || err != nil {
			t.Errorf("%q: %d %q %v", header, status, body, err)
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("%q: the server was given %q", header, got)
		}
		base.CloseIdleConnections()
	}
}

// TestCallersHeader: a header that the caller has set stays, even an empty one,
// and a rejection of it is the caller's.
func TestCallersHeader(t *testing.T) {
	s := newIssuer(t)
	var got []string
	s.reject = func(w http.ResponseWriter, req *http.Request) {
		got = append(got, strings.Join(req.Header["Authorization"], ","))
		w.WriteHeader(http.StatusUnauthorized)
	}
	client := s.client(t, s.credential(t))
	for _, header := range []http.Header{{"Authorization": {"Basic x"}}, {"authorization": {"Basic y"}}, {"Authorization": {""}}} {
		req, _ := http.NewRequest("POST", s.api.URL, strings.NewReader("x"))
		req.Header = header
		res, err := client.Do(req)
		if err != nil || res.StatusCode != 401 {
			t.Fatal(res, err)
		}
		res.Body.Close()
	}
	if fmt.Sprint(got) != "[Basic x Basic y ]" {
		t.Errorf("the server was given %q", got)
	}
	s.wantCalls(t, 0, 3)
}

// TestExpired: a token that has expired is renewed before anything is sent, and
// where that fails nothing is.
func TestExpired(t *testing.T) {
	for _, dead := range []bool{false, true} {
		s := newIssuer(t)
		s.dead = dead
		grant, err := rubicon.RefreshGrant(s.config())
		if err != nil {
			t.Fatal(err)
		}
		client := s.client(t, rubicon.NewCredential(&oauth2.Token{AccessToken: "old", RefreshToken: "refresh-0", Expiry: time.Now().Add(-time.Hour)}, grant))
		for i := range 3 {
			status, _, err := post(t, client, s.api.URL, "x")
			var failed *rubicon.AuthError
			switch {
			case !dead && (status != 200 || err != nil):
				t.Errorf("%d %v", status, err)
			case dead && (!errors.As(err, &failed) || failed.Kind != rubicon.AuthReconnect || failed.Rejected != nil || !errors.Is(err, rubicon.ErrReconnect)):
				t.Errorf("call %d: %v", i, err)
			}
		}
		s.wantCalls(t, 1, map[bool]int64{false: 3}[dead])
	}
}

// TestRenewalHangs: the wait for a renewal ends with its caller's context or
// its own time, and a caller that leaves does not end it. The error holds the
// answer that was rejected. Once the endpoint is back, all is well.
func TestRenewalHangs(t *testing.T) {
	s := newIssuer(t)
	var back atomic.Bool
	left := make(chan bool, 1)
	s.answer = func(w http.ResponseWriter, req *http.Request) bool {
		if back.Load() {
			return false
		}
		req.ParseForm() // net/http notices that a client has left once the body was read
		<-req.Context().Done()
		left <- true
		return true
	}
	s.reject = func(w http.ResponseWriter, req *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, "expired, it seems")
	}
	c := s.credential(t)
	c.Timeout, c.Pause = 300*time.Millisecond, time.Millisecond
	client := s.client(t, c)
	s.revoke()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		req, _ := http.NewRequestWithContext(ctx, "POST", s.api.URL, strings.NewReader("x"))
		if _, err := client.Do(req); !errors.Is(err, context.Canceled) {
			t.Errorf("the caller that left: %v", err)
		}
	})
	for s.requests.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	wg.Wait()
	_, _, err := post(t, client, s.api.URL, "x")
	var failed *rubicon.AuthError
	if !errors.As(err, &failed) || failed.Kind != rubicon.AuthTransient || !failed.Retryable() || errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the caller that stayed: %v", err)
	}
	if failed.Rejected == nil || failed.Rejected.StatusCode != 401 {
		t.Fatalf("the answer was lost: %+v", failed.Rejected)
	}
	if body, err := io.ReadAll(failed.Rejected.Body); string(body) != "expired, it seems" || err != nil {
		t.Errorf("its body: %q %v", body, err)
	}
	<-left
	back.Store(true)
	time.Sleep(2 * time.Millisecond) // the pause
	if status, _, err := post(t, client, s.api.URL, "x"); status != 200 || err != nil {
		t.Errorf("%d %v", status, err)
	}
}

// TestRenewalIsAnAllowanceOfItsOwn: it works where no retry is allowed, spends
// none, and can be forbidden by itself.
func TestRenewalIsAnAllowanceOfItsOwn(t *testing.T) {
	for _, b := range []rubicon.Budget{
		{Attempts: 1},
		{Sends: rubicon.None, Replays: rubicon.None},
		{Attempts: 1, Refreshes: rubicon.None},
	} {
		s := newIssuer(t)
		client := s.client(t, s.credential(t))
		transport := client.Transport.(*rubicon.Transport)
		transport.Throttle = &rubicon.Throttle{Tokens: 1}
		s.revoke()
		ctx, op := rubicon.Begin(t.Context(), rubicon.Intent{Budget: b})
		req, _ := http.NewRequestWithContext(ctx, "POST", s.api.URL, strings.NewReader("x"))
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		op.End()
		if b.Refreshes == rubicon.None {
			s.wantCalls(t, 0, 1)
			if res.StatusCode != 401 || op.Outcome() != rubicon.Refused {
				t.Errorf("%v: %d, %v", b, res.StatusCode, op.Outcome())
			}
			continue
		}
		s.wantCalls(t, 1, 2)
		if res.StatusCode != 200 || op.Outcome() != rubicon.Succeeded {
			t.Errorf("%v: %d, %v", b, res.StatusCode, op.Outcome())
		}
	}
}

// TestRejectedInOneOperation: the requests of one operation that are rejected
// together are all sent again.
func TestRejectedInOneOperation(t *testing.T) {
	s := newIssuer(t)
	client := s.client(t, s.credential(t))
	s.revoke()
	ctx, op := rubicon.Begin(t.Context(), rubicon.Intent{})
	defer op.End()
	var all sync.WaitGroup
	all.Add(10)
	s.reject = func(w http.ResponseWriter, req *http.Request) {
		all.Done()
		all.Wait()
		w.WriteHeader(http.StatusUnauthorized)
	}
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			req, _ := http.NewRequestWithContext(ctx, "POST", fmt.Sprintf("%s/%d", s.api.URL, i), strings.NewReader("x"))
			res, err := client.Do(req)
			if err != nil || res.StatusCode != 200 {
				t.Error(res, err)
				return
			}
			res.Body.Close()
		})
	}
	wg.Wait()
	s.wantCalls(t, 1, 20)
}

// TestRenewalOverOneConnection: the rejected answer holds no connection while the token is
// renewed, which may have to come over the same.
func TestRenewalOverOneConnection(t *testing.T) {
	s := newIssuer(t)
	token := s.api.Config.Handler.(http.HandlerFunc)
	s.api.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/token" {
			s.token(w, req)
			return
		}
		token(w, req)
	})
	s.reject = func(w http.ResponseWriter, req *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		w.Write(make([]byte, 60<<10))
	}
	base := &http.Transport{MaxConnsPerHost: 1}
	defer base.CloseIdleConnections()
	conf := s.config()
	conf.Endpoint.TokenURL = s.api.URL + "/token"
	grant, err := rubicon.RefreshGrant(conf)
	if err != nil {
		t.Fatal(err)
	}
	c := rubicon.NewCredential(&oauth2.Token{AccessToken: "access-0", RefreshToken: "refresh-0"}, grant)
	transport := &rubicon.Transport{Base: base, Auth: &rubicon.Auth{Credential: c, Origins: []string{s.api.URL}}}
	client := &http.Client{Transport: transport}
	c.Client = client // which needs the credential itself, and must not wait for it
	s.revoke()
	if status, _, err := post(t, client, s.api.URL, "x"); status != 200 || err != nil {
		t.Error(status, err)
	}
	s.wantCalls(t, 1, 2)
}

// TestLongRejection: an answer too long to keep does not prevent a renewal.
func TestLongRejection(t *testing.T) {
	s := newIssuer(t)
	s.reject = func(w http.ResponseWriter, req *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		w.Write(make([]byte, 300<<10))
	}
	client := s.client(t, s.credential(t))
	s.revoke()
	if status, _, err := post(t, client, s.api.URL, "x"); status != 200 || err != nil {
		t.Error(status, err)
	}
	s.revoke()
	res, err := client.Post(s.api.URL, "", io.MultiReader(strings.NewReader("x"), strings.NewReader("y")))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if n, err := io.Copy(io.Discard, res.Body); n != 300<<10 || err != nil || res.StatusCode != 401 {
		t.Error(res.StatusCode, n, err)
	}
}

// TestTokenEndpoint has the token endpoint fail in its many ways: what each
// means, that the error tells it, and that it is asked once.
func TestTokenEndpoint(t *testing.T) {
	answer := func(status int, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, req *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Retry-After", "1200")
			w.WriteHeader(status)
			io.WriteString(w, body)
			return true
		}
	}
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		kind   rubicon.AuthKind
		code   string
	}{
		"dead":           {answer(400, `{"error":"invalid_grant"}`), rubicon.AuthReconnect, "invalid_grant"},
		"dead, 401":      {answer(401, `{"error":"invalid_grant"}`), rubicon.AuthReconnect, "invalid_grant"},
		"dead, 500":      {answer(500, `{"error":"invalid_grant"}`), rubicon.AuthReconnect, "invalid_grant"},
		"GitHub":         {answer(200, `{"error":"bad_refresh_token"}`), rubicon.AuthReconnect, "bad_refresh_token"},
		"client":         {answer(401, `{"error":"invalid_client"}`), rubicon.AuthMisconfigured, "invalid_client"},
		"scope":          {answer(400, `{"error":"invalid_scope"}`), rubicon.AuthMisconfigured, "invalid_scope"},
		"spent at Exact": {answer(401, `{"error":"unauthorized_client"}`), rubicon.AuthMisconfigured, "unauthorized_client"},
		"request":        {answer(400, `{"error":"invalid_request"}`), rubicon.AuthAmbiguous, "invalid_request"},
		"a proxy's page": {answer(403, `<html>no</html>`), rubicon.AuthAmbiguous, ""},
		"unknown code":   {answer(400, `{"error":"hushhush"}`), rubicon.AuthAmbiguous, "other"},
		"own code":       {answer(400, `{"error":"gone_fishing"}`), rubicon.AuthReconnect, "gone_fishing"},
		"busy":           {answer(503, ``), rubicon.AuthTransient, ""},
		"limit":          {answer(429, `{}`), rubicon.AuthTransient, ""},
		"unavailable":    {answer(400, `{"error":"temporarily_unavailable"}`), rubicon.AuthTransient, "temporarily_unavailable"},
		"nothing":        {answer(200, ``), rubicon.AuthTransient, ""},
		"no token":       {answer(200, `{}`), rubicon.AuthTransient, ""},
		"a login page":   {answer(200, `<html>`), rubicon.AuthTransient, ""},
		"junk expiry":    {answer(200, `{"access_token":"x","expires_in":"soon"}`), rubicon.AuthTransient, ""},
		"lost":           {func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }, rubicon.AuthTransient, ""},
		"sent elsewhere": {func(w http.ResponseWriter, req *http.Request) bool {
			http.Redirect(w, req, "http://127.0.0.1:1/steal", http.StatusTemporaryRedirect)
			return true
		}, rubicon.AuthTransient, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newIssuer(t)
			s.answer = c.answer
			cred := s.credential(t)
			cred.Codes = map[string]rubicon.AuthKind{"gone_fishing": rubicon.AuthReconnect}
			client := s.client(t, cred)
			s.revoke()
			for range 3 { // what failed is remembered
				_, _, err := post(t, client, s.api.URL, "x")
				var failed *rubicon.AuthError
				if !errors.As(err, &failed) {
					t.Fatalf("%v", err)
				}
				if failed.Kind != c.kind || failed.Code != c.code {
					t.Errorf("%v %q, want %v %q", failed.Kind, failed.Code, c.kind, c.code)
				}
				if failed.Rejected == nil || errors.Is(err, rubicon.ErrReconnect) != (c.kind == rubicon.AuthReconnect) || failed.Retryable() == (c.kind == rubicon.AuthReconnect || c.kind == rubicon.AuthMisconfigured) {
					t.Errorf("%+v", failed)
				}
				if failed.Status != 0 && failed.Status != 307 && failed.Code != "" && failed.RetryAfter != 10*time.Minute {
					t.Errorf("asked to be left alone for %v", failed.RetryAfter)
				}
				checkSecret(t, err)
			}
			s.wantCalls(t, 1, 3)
		})
	}
}

// TestDoubt: a grant of which three answers in a row leave open whether it is
// alive is taken for dead.
func TestDoubt(t *testing.T) {
	s := newIssuer(t)
	s.answer = func(w http.ResponseWriter, req *http.Request) bool {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"error":"invalid_request"}`)
		return true
	}
	c := s.credential(t)
	c.Pause = time.Nanosecond
	client := s.client(t, c)
	s.revoke()
	for i := range 6 {
		_, _, err := post(t, client, s.api.URL, "x")
		if dead := errors.Is(err, rubicon.ErrReconnect); dead != (i >= 2) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	s.wantCalls(t, 3, 6)
	s.answer, s.last = nil, "refresh-new"
	if err := c.Replace(t.Context(), &oauth2.Token{AccessToken: "new", RefreshToken: "refresh-new"}); err != nil {
		t.Fatal(err)
	}
	if status, _, err := post(t, client, s.api.URL, "x"); status != 200 || err != nil {
		t.Error(status, err)
	}
}

// TestBrokenGrants: a grant that panics, or ends its goroutine, or goes on
// beyond its time, ends its renewal as an error, and hides what it panicked
// with.
func TestBrokenGrants(t *testing.T) {
	release := make(chan bool)
	for name, grant := range map[string]rubicon.Grant{
		"panics": func(context.Context, *oauth2.Token) (*oauth2.Token, error) { panic("hushhush") },
		"exits":  func(context.Context, *oauth2.Token) (*oauth2.Token, error) { runtime.Goexit(); return nil, nil },
		"hangs":  func(context.Context, *oauth2.Token) (*oauth2.Token, error) { <-release; return nil, nil },
		"empty":  func(context.Context, *oauth2.Token) (*oauth2.Token, error) { return nil, nil },
	} {
		c := rubicon.NewCredential(&oauth2.Token{}, grant)
		c.Timeout = 50 * time.Millisecond
		ended := make(chan rubicon.Renewal, 1)
		c.Renewed = func(r rubicon.Renewal) { ended <- r }
		_, err := c.Token()
		var failed *rubicon.AuthError
		if !errors.As(err, &failed) || failed.Kind != rubicon.AuthTransient {
			t.Errorf("%s: %v", name, err)
		}
		checkSecret(t, err)
		if name == "hangs" {
			close(release)
		}
		if r := <-ended; r.Err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestUnchanged: a grant that gives the rejected token again did not help.
func TestUnchanged(t *testing.T) {
	s := newIssuer(t)
	var calls atomic.Int64
	c := rubicon.NewCredential(&oauth2.Token{AccessToken: "same"}, rubicon.SourceGrant(func(context.Context) (oauth2.TokenSource, error) {
		calls.Add(1)
		return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "same"}), nil
	}))
	client := s.client(t, c)
	for range 5 {
		if status, _, err := post(t, client, s.api.URL, "x"); status != 401 || err != nil {
			t.Error(status, err)
		}
	}
	if calls.Load() != 1 {
		t.Errorf("the grant was called %d times", calls.Load())
	}
	s.wantCalls(t, 0, 5)
}

// TestAuthChecked: what can't work, or is not safe, is refused before anything
// is sent.
func TestAuthChecked(t *testing.T) {
	key := rubicon.Static("key-1")
	for want, auth := range map[string]*rubicon.Auth{
		"Credential is nil":  {Origins: []string{"https://a.example"}},
		"Origins is empty":   {Credential: key},
		"must be https":      {Credential: key, Origins: []string{"http://a.example"}},
		"must be https, or":  {Credential: key, Origins: []string{"http://127.0.0.1.a.example"}},
		"scheme, host":       {Credential: key, Origins: []string{"a.example"}},
		"is not scheme":      {Credential: key, Origins: []string{"https://a.example/path"}},
		"not scheme, host":   {Credential: key, Origins: []string{"https://user:hushhush@a.example"}},
		"https, or http to ": {Credential: key, Origins: []string{"ftp://a.example"}},
	} {
		_, err := (&http.Client{Transport: &rubicon.Transport{Auth: auth}}).Get("https://a.invalid")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		checkSecret(t, err)
	}
	for want, conf := range map[string]oauth2.Endpoint{
		"AuthStyle":     {TokenURL: "https://a.example"},
		"must be https": {TokenURL: "http://a.example", AuthStyle: oauth2.AuthStyleInParams},
		"no URL":        {TokenURL: "https://a.example:hushhush/", AuthStyle: oauth2.AuthStyleInParams},
	} {
		if _, err := rubicon.RefreshGrant(&oauth2.Config{Endpoint: conf}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		_, err := rubicon.ClientCredentialsGrant(&clientcredentials.Config{TokenURL: conf.TokenURL, AuthStyle: conf.AuthStyle})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		checkSecret(t, err)
	}
}

// checkSecret checks that no way of printing v prints one of the test's
// secrets.
func checkSecret(t *testing.T, v any) {
	t.Helper()
	var b strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		fmt.Fprintf(&b, verb+"\n", v)
	}
	slog.New(slog.NewTextHandler(&b, nil)).Info("text", "v", v)
	slog.New(slog.NewJSONHandler(&b, nil)).Info("json", "v", v)
	text, _ := json.Marshal(v)
	b.Write(text)
	for err, _ := v.(error); err != nil; err = errors.Unwrap(err) {
		fmt.Fprintf(&b, "%v %#v", err, err)
	}
	for _, secret := range []string{"hushhush", "access-", "refresh-", "key-1"} {
		if strings.Contains(b.String(), secret) {
			t.Errorf("%T shows %q:\n%s", v, secret, b.String())
		}
	}
}

// TestSecrets: what holds tokens does not show them.
func TestSecrets(t *testing.T) {
	s := newIssuer(t)
	c := s.credential(t)
	client := s.client(t, c)
	checkSecret(t, c)
	checkSecret(t, rubicon.Static("key-1"))
	checkSecret(t, client.Transport.(*rubicon.Transport).Auth)
	checkSecret(t, *client.Transport.(*rubicon.Transport).Auth)
	c.Renewed = func(r rubicon.Renewal) { checkSecret(t, r) }
	s.answer = func(w http.ResponseWriter, req *http.Request) bool { // echoes all it was sent
		body, _ := io.ReadAll(req.Body)
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "%s hushhush %v", body, req.Header)
		return true
	}
	s.revoke()
	_, _, err := post(t, client, s.api.URL, "x")
	checkSecret(t, err)
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) || answer.Response == nil || answer.Response.StatusCode != 500 || answer.Response.Request != nil {
		t.Errorf("%v: %+v", err, answer)
	}
}

// TestTokenOfAnError: an error of a Base that prints its request does not show
// the token.
func TestTokenOfAnError(t *testing.T) {
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("failed: %v", req.Header)
	})
	transport := &rubicon.Transport{Base: base, Auth: &rubicon.Auth{Credential: rubicon.Static("key-1"), Origins: []string{"https://a.example"}}}
	_, err := (&http.Client{Transport: transport}).Post("https://a.example", "", nil)
	if err == nil || !strings.Contains(err.Error(), "failed:") {
		t.Errorf("%v", err)
	}
	checkSecret(t, err)
}

// TestPathsOfOneOrigin: a path that rejects every token costs one renewal, also
// where another path of its origin takes them.
func TestPathsOfOneOrigin(t *testing.T) {
	s := newIssuer(t)
	s.serve = func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/bad" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
	client := s.client(t, s.credential(t))
	for range 20 {
		for path, want := range map[string]int{"/good": 200, "/bad": 401} {
			if status, _, err := post(t, client, s.api.URL+path, "x"); status != want && s.requests.Load() > 0 || err != nil {
				t.Fatal(path, status, err)
			}
		}
	}
	if n := s.requests.Load(); n > 2 { // the first token is rejected by both
		t.Errorf("%d token requests", n)
	}
}

// A shelf is a store in memory, for one process.
type shelf struct {
	mu   sync.Mutex
	tok  *oauth2.Token
	save func() error // called before a token is kept
}

func (s *shelf) Update(_ context.Context, renew func(*oauth2.Token) (*oauth2.Token, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tok, err := renew(s.tok)
	if err != nil || tok == nil {
		return err
	}
	if s.save != nil {
		if err := s.save(); err != nil {
			return err
		}
	}
	s.tok = tok
	return nil
}

// TestStore: the token that another process has put there is taken without a
// request, and one that it has to renew is kept before it is used.
func TestStore(t *testing.T) {
	s := newIssuer(t)
	store := new(shelf)
	first, second := s.credential(t), s.credential(t)
	first.Store, second.Store = store, store
	s.revoke()
	s.serve = func(w http.ResponseWriter, req *http.Request) {
		if got := "Bearer " + store.tok.AccessToken; got != req.Header.Get("Authorization") {
			t.Errorf("%s was sent, and %s kept", req.Header.Get("Authorization"), got)
		}
	}
	for _, c := range []*rubicon.Credential{first, second, first} {
		if status, _, err := post(t, s.client(t, c), s.api.URL, "x"); status != 200 || err != nil {
			t.Error(status, err)
		}
	}
	s.wantCalls(t, 1, 5)
	// What another process has put there is rejected too: one renewal mends it.
	third := s.credential(t)
	third.Store = store
	s.revoke()
	post(t, s.client(t, third), s.api.URL, "x")
	if status, _, err := post(t, s.client(t, third), s.api.URL, "x"); status != 200 || err != nil {
		t.Error(status, err)
	}
	if n := s.requests.Load(); n != 2 {
		t.Errorf("%d token requests", n)
	}
}

// TestStoreFails: a token that can't be kept is used all the same, told once,
// and not mistaken for an older one at the next renewal.
func TestStoreFails(t *testing.T) {
	for name, save := range map[string]func() error{
		"error": func() error { return errors.New("disk full") },
		"panic": func() error { panic("disk full") },
		"exit":  func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := newIssuer(t)
			store := &shelf{tok: &oauth2.Token{AccessToken: "access-0", RefreshToken: "refresh-0", Expiry: time.Now().Add(time.Hour)}, save: save}
			c := s.credential(t)
			c.Store = store
			told := make(chan rubicon.Renewal, 2)
			c.Renewed = func(r rubicon.Renewal) { told <- r }
			client := s.client(t, c)
			for range 2 {
				s.revoke()
				if status, _, err := post(t, client, s.api.URL, "x"); status != 200 || err != nil {
					t.Error(status, err)
				}
				if r := <-told; r.Err != nil || r.Unsaved == nil || r.Adopted {
					t.Errorf("%+v", r)
				}
			}
			s.wantCalls(t, 2, 4)
			store.save = nil
			s.revoke()
			if status, _, err := post(t, client, s.api.URL, "x"); status != 200 || err != nil || store.tok.RefreshToken != "refresh-3" {
				t.Error(status, err, store.tok.RefreshToken)
			}
		})
	}
}

// TestStoreOutOfOrder: a store that can't be used is out of order for the time
// being, and what is known of a dead grant stays known.
func TestStoreOutOfOrder(t *testing.T) {
	s := newIssuer(t)
	s.dead = true
	c := s.credential(t)
	store := &broken{Store: new(shelf)}
	c.Store, c.Pause = store, time.Nanosecond
	client := s.client(t, c)
	for i, err := range []error{nil, io.ErrClosedPipe, nil, nil} {
		store.err = err
		_, _, got := post(t, client, s.api.URL, "x")
		if dead := errors.Is(got, rubicon.ErrReconnect); dead != (err == nil) {
			t.Errorf("call %d: %v", i, got)
		}
	}
	s.wantCalls(t, 1, 4)
}

// A broken store fails before it is read.
type broken struct {
	rubicon.Store
	err error
}

func (b *broken) Update(ctx context.Context, renew func(*oauth2.Token) (*oauth2.Token, error)) error {
	if b.err != nil {
		return b.err
	}
	return b.Store.Update(ctx, renew)
}

// TestLoserAdopts: where the store's lock has lapsed, an invalid_grant may only
// say that another process was faster: its token is taken.
func TestLoserAdopts(t *testing.T) {
	s := newIssuer(t)
	store := &shelf{tok: &oauth2.Token{AccessToken: "access-0", RefreshToken: "refresh-0"}}
	c := s.credential(t)
	c.Store = store
	s.n, s.last = 1, "refresh-1"
	s.answer = func(w http.ResponseWriter, req *http.Request) bool {
		store.tok = &oauth2.Token{AccessToken: "access-1", RefreshToken: "refresh-1"} // the other's
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"error":"invalid_grant"}`)
		return true
	}
	if status, _, err := post(t, s.client(t, c), s.api.URL, "x"); status != 200 || err != nil {
		t.Error(status, err)
	}
	s.wantCalls(t, 1, 2)
}

// TestCredentialWithoutToken: the first token may come from the grant.
func TestCredentialWithoutToken(t *testing.T) {
	grant := func(context.Context, *oauth2.Token) (*oauth2.Token, error) {
		return &oauth2.Token{AccessToken: "first"}, nil
	}
	for name, c := range map[string]*rubicon.Credential{"zero": {Grant: grant}, "nil": rubicon.NewCredential(nil, grant)} {
		if tok, err := c.Token(); err != nil || tok.AccessToken != "first" {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.Replace(t.Context(), nil); err == nil {
			t.Errorf("%s: no token was taken for one", name)
		}
	}
	if _, err := new(rubicon.Credential).Token(); err == nil || !strings.Contains(err.Error(), "no Grant") {
		t.Errorf("%v", err)
	}
}

// TestCredentialIsASource: a Credential feeds what asks for a TokenSource.
func TestCredentialIsASource(t *testing.T) {
	s := newIssuer(t)
	grant, err := rubicon.RefreshGrant(s.config())
	if err != nil {
		t.Fatal(err)
	}
	var source oauth2.TokenSource = rubicon.NewCredential(&oauth2.Token{RefreshToken: "refresh-0"}, grant)
	for range 3 {
		if tok, err := source.Token(); err != nil || tok.AccessToken != "access-1" {
			t.Errorf("%v %v", tok, err)
		}
	}
	s.wantCalls(t, 1, 0)
}

// TestAuthErrorStopsLoops: layers above stop where somebody must act first, and
// find the error.
func TestAuthErrorStopsLoops(t *testing.T) {
	for _, code := range []string{"invalid_grant", "temporarily_unavailable"} {
		s := newIssuer(t)
		s.answer = func(w http.ResponseWriter, req *http.Request) bool {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":%q}`, code)
			return true
		}
		client := s.client(t, s.credential(t))
		s.revoke()
		calls := 0
		err := backoff.Retry(func() error {
			calls++
			_, _, err := post(t, client, s.api.URL, "x")
			return err
		}, backoff.WithMaxRetries(&backoff.ZeroBackOff{}, 2))
		var failed *rubicon.AuthError
		if dead := code == "invalid_grant"; !errors.As(err, &failed) || dead != (calls == 1) {
			t.Errorf("%s: %d calls, %v", code, calls, err)
		}
		req := attemptOf(t, s.api.URL, "x", goSDK...)
		res, err := client.Do(req)
		if code != "invalid_grant" {
			if !errors.As(err, &failed) {
				t.Errorf("%v %v", res, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if _, err := io.ReadAll(res.Body); !errors.Is(err, rubicon.ErrReconnect) || res.Header.Get(rubicon.LocalHeader) == "" {
			t.Errorf("%v %v", res.Header, err)
		}
	}
}
