package rubicon_test

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
	serve  http.HandlerFunc                                   // of the API, for a request that is let in
	reject http.HandlerFunc                                   // of the API, for one that is not
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

var _ = context.Background
