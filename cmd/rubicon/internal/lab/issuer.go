package lab

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/rubicon-go/rubicon/rubicontest"
)

// What became of a grant.
const (
	alive   = "alive"
	killed  = "killed"  // by the client: a refresh token was used twice
	leaked  = "leaked"  // by the client: alive, and another host has seen a token of it
	revoked = "revoked" // by its user, beforehand
	none    = "none"    // there was none, but an API key
)

// An issuer is an authorization server with one grant. It rotates refresh
// tokens: each is good once, and one that is used twice kills the grant (RFC
// 9700 section 4.14.2). The first access token, access-0, is good for nothing
// any more, whatever its expiry says.
type issuer struct {
	slow time.Duration // how long an answer is held while no second request comes

	mu     sync.Mutex
	issued int           // tokens; the last one is good
	asked  int           // how often one was asked for
	twice  chan struct{} // closed when that is twice
	state  string        // of the grant
}

// newIssuer returns an issuer whose grant is alive.
func newIssuer() *issuer { return &issuer{twice: make(chan struct{}), state: alive} }

// ServeHTTP is the token endpoint.
func (s *issuer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	n, ok := s.refresh(req.PostFormValue("refresh_token"))
	if s.slow > 0 {
		select {
		case <-s.twice:
		case <-time.After(s.slow):
		}
	}
	answer := map[string]any{"error": "invalid_grant"}
	status := http.StatusBadRequest
	if ok {
		status = http.StatusOK
		answer = map[string]any{
			"access_token": fmt.Sprint("access-", n), "refresh_token": fmt.Sprint("refresh-", n),
			"token_type": "Bearer", "expires_in": 3600,
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

// refresh spends a refresh token and returns the number of the next one.
func (s *issuer) refresh(token string) (n int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked++; s.asked == 2 {
		close(s.twice)
	}
	if s.state == revoked {
		return 0, false
	}
	if s.state == killed || token != fmt.Sprint("refresh-", s.issued) {
		s.state = killed
		return 0, false
	}
	s.issued++
	return s.issued, true
}

// takes reports whether req has a token that the API has to take.
func (s *issuer) takes(req rubicontest.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == alive && s.issued > 0 && req.Header.Get("Authorization") == fmt.Sprint("Bearer access-", s.issued)
}

// seen notes what another host was sent.
func (s *issuer) seen(req rubicontest.Request) {
	if req.Header.Get("Authorization") != "" {
		s.set(leaked)
	}
}

// set says what became of the grant.
func (s *issuer) set(state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
}

// grant returns what became of the grant.
func (s *issuer) grant() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}
