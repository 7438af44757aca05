package auth

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"sync"
	"testing"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"
)

// A naive transport is what many write: a rejected request renews the token,
// and is sent again.
type naive struct {
	base  http.RoundTripper
	renew func(context.Context, *oauth2.Token) error // with what was rejected

	mu  sync.Mutex
	tok *oauth2.Token
}

// newNaive returns one whose rejected requests renew each.
func newNaive(t *testing.T, site *site) *naive {
	base := &http.Transport{MaxIdleConnsPerHost: 200}
	t.Cleanup(base.CloseIdleConnections)
	n := &naive{base: base, tok: site.first}
	config := site.config()
	n.renew = func(ctx context.Context, rejected *oauth2.Token) error {
		ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: base})
		tok, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: rejected.RefreshToken}).Token()
		if err == nil {
			n.mu.Lock()
			n.tok = tok
			n.mu.Unlock()
		}
		return err
	}
	return n
}

// newSingleflight returns one whose rejected requests share the renewal that is
// under way, and do not look whether one is needed still.
func newSingleflight(t *testing.T, site *site) *naive {
	n := newNaive(t, site)
	var group singleflight.Group
	renew := n.renew
	n.renew = func(ctx context.Context, rejected *oauth2.Token) error {
		_, err, _ := group.Do("token", func() (any, error) { return nil, renew(ctx, rejected) })
		return err
	}
	return n
}

func (n *naive) token() *oauth2.Token {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.tok
}

// RoundTrip implements [http.RoundTripper].
func (n *naive) RoundTrip(req *http.Request) (*http.Response, error) {
	tok := n.token()
	res, err := n.send(req, tok)
	if err != nil || res.StatusCode != http.StatusUnauthorized || n.renew(req.Context(), tok) != nil {
		return res, err
	}
	res.Body.Close()
	again := req.Clone(req.Context())
	if req.GetBody != nil {
		again.Body, _ = req.GetBody()
	}
	return n.send(again, n.token())
}

func (n *naive) send(req *http.Request, tok *oauth2.Token) (*http.Response, error) {
	out := req.Clone(req.Context())
	tok.SetAuthHeader(out)
	return n.base.RoundTrip(out)
}

// TestControlNaive: what report 7 does to others.
func TestControlNaive(t *testing.T) {
	const n = 100
	t.Run("each renews", func(t *testing.T) {
		site, _ := newFosite(t)
		site.rejectFirst(n, 0)
		site.revoke()
		ok := storm(&http.Client{Transport: newNaive(t, site)}, site.api.URL, n)
		if got := site.requests.Load(); got != n || ok > n/2 {
			t.Errorf("%d token requests, %d of %d answered", got, ok, n)
		}
	})
	t.Run("singleflight", func(t *testing.T) {
		site, _ := newFosite(t)
		site.rejectFirst(n, 10*time.Millisecond)
		site.revoke()
		ok := storm(&http.Client{Transport: newSingleflight(t, site)}, site.api.URL, n)
		if got := site.requests.Load(); got < 2 {
			t.Errorf("%d token requests, %d of %d answered", got, ok, n)
		}
	})
	t.Run("x/oauth2", func(t *testing.T) {
		site, _ := newFosite(t)
		site.rejectFirst(n, 0)
		site.revoke()
		if ok := storm(naked(t, site), site.api.URL, n); ok != 0 {
			t.Errorf("%d of %d answered", ok, n)
		}
		site.wantCalls(t, 0, n)
	})
}

// rejectFirst is rejectApart for clients who come again with dead tokens.
func (s *site) rejectFirst(n int, apart time.Duration) {
	s.rejectApart(n, apart)
	_, _, first, _ := s.hooks()
	old := "Bearer " + s.first.AccessToken
	s.onReject(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") == old {
			first(w, req)
			return
		}
		unauthorized(w, `Bearer error="invalid_token"`)
	})
}

// privateKey returns a new key for a jwt.Config.
func privateKey(t *testing.T) []byte {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
}
