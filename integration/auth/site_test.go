package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/rubicon-go/rubicon"
)

// A site is an authorization server and an API that takes its tokens.
type site struct {
	auth, api *httptest.Server
	first     *oauth2.Token // good, and good for an hour as far as the clock says
	server

	requests atomic.Int64 // at the token endpoint
	hits     atomic.Int64 // at the API

	mu     sync.Mutex
	answer func(http.ResponseWriter, *http.Request) bool
	serve  http.HandlerFunc
	reject http.HandlerFunc
	closed bool
}

// onAnswer sets what answers at the token endpoint; if it returns false it has
// not, and the server does.
func (s *site) onAnswer(f func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// onServe sets how the API answers a request that is let in.
func (s *site) onServe(f http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serve = f
}

// onReject sets how the API answers a request that is not let in.
func (s *site) onReject(f http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reject = f
}

// wantAsked waits until the token endpoint was asked n times.
func (s *site) wantAsked(t *testing.T, n int64) {
	t.Helper()
	for start := time.Now(); s.requests.Load() < n; time.Sleep(time.Millisecond) {
		if time.Since(start) > 30*time.Second {
			t.Fatalf("%d token requests, want %d", s.requests.Load(), n)
		}
	}
}

// close makes the API reject every token.
func (s *site) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// hooks returns what is set.
func (s *site) hooks() (answer func(http.ResponseWriter, *http.Request) bool, serve, reject http.HandlerFunc, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answer, s.serve, s.reject, s.closed
}

// A server is what is behind a site.
type server interface {
	http.Handler                                  // the token endpoint
	good(ctx context.Context, access string) bool // whether the API takes the token
	revoke()                                      // makes it reject all access tokens there are; the grant lives
}

// newSite starts a site in front of s, whose grant begins with the token first.
func newSite(t *testing.T, s server, first *oauth2.Token) *site {
	site := &site{server: s, first: first}
	site.auth = httptest.NewServer(http.HandlerFunc(site.token))
	site.api = httptest.NewServer(http.HandlerFunc(site.resource))
	t.Cleanup(site.auth.Close)
	t.Cleanup(site.api.Close)
	return site
}

// token is the token endpoint.
func (s *site) token(w http.ResponseWriter, req *http.Request) {
	s.requests.Add(1)
	answer, _, _, _ := s.hooks()
	if answer == nil || !answer(w, req) {
		s.ServeHTTP(w, req)
	}
}

// resource is the API: it answers with the body that it got.
func (s *site) resource(w http.ResponseWriter, req *http.Request) {
	s.hits.Add(1)
	access, _ := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	_, serve, reject, closed := s.hooks()
	switch good := !closed && s.good(req.Context(), access); {
	case !good && reject != nil:
		reject(w, req)
	case !good:
		unauthorized(w, `Bearer realm="api", error="invalid_token"`)
	case serve != nil:
		serve(w, req)
	default:
		echo(w, req)
	}
}

// echo answers with the body of the request. Before it is read whole, a server
// over HTTP/1 can't answer.
func echo(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Write(body)
}

// unauthorized rejects a request.
func unauthorized(w http.ResponseWriter, challenge string) {
	w.Header().Set("WWW-Authenticate", challenge)
	w.WriteHeader(http.StatusUnauthorized)
	io.WriteString(w, "rejected")
}

// fail returns a token endpoint that answers with the given status and text.
func fail(status int, text string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, text)
		return true
	}
}

// config returns the client of the site.
func (s *site) config() *oauth2.Config {
	return &oauth2.Config{
		ClientID: "client", ClientSecret: "hushhush",
		Endpoint: oauth2.Endpoint{TokenURL: s.auth.URL, AuthStyle: oauth2.AuthStyleInHeader},
	}
}

// grant returns the grant of the site.
func (s *site) grant(t *testing.T) rubicon.Grant {
	t.Helper()
	grant, err := rubicon.RefreshGrant(s.config())
	if err != nil {
		t.Fatal(err)
	}
	return grant
}

// credential returns a credential that begins with the first token.
func (s *site) credential(t *testing.T) *rubicon.Credential {
	t.Helper()
	c := rubicon.NewCredential(s.first, s.grant(t))
	c.Client = tokenClient(t)
	return c
}

// tokenClient returns a client that leaves no connection behind.
func tokenClient(t *testing.T) *http.Client {
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	return &http.Client{Transport: base}
}

// transport returns a transport that puts c on requests to the API.
func (s *site) transport(t *testing.T, c *rubicon.Credential) *rubicon.Transport {
	base := &http.Transport{MaxIdleConnsPerHost: 200}
	t.Cleanup(base.CloseIdleConnections)
	return &rubicon.Transport{Base: base, Auth: &rubicon.Auth{Credential: c, Origins: []string{s.api.URL}}}
}

// client returns a client over transport.
func (s *site) client(t *testing.T, c *rubicon.Credential) *http.Client {
	return &http.Client{Transport: s.transport(t, c)}
}

// wantCalls checks how often the token endpoint and the API were asked.
func (s *site) wantCalls(t *testing.T, requests, hits int64) {
	t.Helper()
	if n := s.requests.Load(); n != requests {
		t.Errorf("%d token requests, want %d", n, requests)
	}
	if n := s.hits.Load(); n != hits {
		t.Errorf("%d requests at the API, want %d", n, hits)
	}
}

// wantAlive checks that the grant behind c can still be renewed.
func (s *site) wantAlive(t *testing.T, c *rubicon.Credential) {
	t.Helper()
	before := s.requests.Load()
	s.revoke()
	wantStatus(t, s.client(t, c), s.api.URL, 200)
	if n := s.requests.Load() - before; n != 1 {
		t.Errorf("%d token requests for one more renewal", n)
	}
}

// An answer is what became of a request.
type answer struct {
	status int
	body   string
	err    error
}

// post posts body.
func post(client *http.Client, url, body string) answer {
	return postContext(context.Background(), client, url, body)
}

// postContext posts body under ctx.
func postContext(ctx context.Context, client *http.Client, url, body string) answer {
	req, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	return do(client, req)
}

// do makes a request and reads its answer.
func do(client *http.Client, req *http.Request) answer {
	res, err := client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, string(text), err}
}

// wantStatus posts something and checks what comes of it.
func wantStatus(t *testing.T, client *http.Client, url string, status int) {
	t.Helper()
	if a := post(client, url, "something"); a.status != status || a.err != nil || status == 200 && a.body != "something" {
		t.Errorf("%d %q %v, want %d", a.status, a.body, a.err, status)
	}
}

// storm makes n requests at the same time, some that only read, and returns how
// many were answered 200 with what they had sent.
func storm(client *http.Client, url string, n int) int64 {
	var ok atomic.Int64
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			method, body := "POST", fmt.Sprint("request ", i)
			if i%4 == 0 {
				method, body = "GET", ""
			}
			req, err := http.NewRequest(method, url, strings.NewReader(body))
			if err != nil {
				return
			}
			if a := do(client, req); a.status == 200 && a.body == body {
				ok.Add(1)
			}
		})
	}
	wg.Wait()
	return ok.Load()
}

// A small server rotates refresh tokens, and takes the access token it issued
// last. A refresh token that is used twice kills the grant (RFC 9700 section
// 4.14.2).
type small struct {
	mu      sync.Mutex
	n       int
	revoked bool
	dead    bool

	refresh func() string // the refresh token that is good
}

// newSmall starts a site in front of a small server.
func newSmall(t *testing.T) (*site, *small) {
	s := new(small)
	s.refresh = func() string { return s.issued().RefreshToken }
	return newSite(t, s, s.issued()), s
}

// issued returns the token that is good.
func (s *small) issued() *oauth2.Token {
	return &oauth2.Token{
		AccessToken: fmt.Sprintf("access-%d", s.n), RefreshToken: fmt.Sprintf("refresh-%d", s.n),
		TokenType: "Bearer", Expiry: time.Now().Add(time.Hour),
	}
}

// ServeHTTP implements [http.Handler].
func (s *small) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead || req.FormValue("refresh_token") != s.refresh() {
		s.dead = true
		fail(http.StatusBadRequest, `{"error":"invalid_grant"}`)(w, req)
		return
	}
	s.n++
	s.revoked = false
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{
		"access_token": s.issued().AccessToken, "refresh_token": s.issued().RefreshToken,
		"token_type": "Bearer", "expires_in": 3600,
	})
}

func (s *small) good(_ context.Context, access string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.revoked && !s.dead && access == s.issued().AccessToken
}

func (s *small) revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked = true
}
