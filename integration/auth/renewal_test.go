package auth

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/rubicon-go/rubicon"
)

// failures makes n requests at the same time and returns how many failed with
// an AuthError of the given kind.
func failures(client *http.Client, url string, n int, kind rubicon.AuthKind) int64 {
	var count atomic.Int64
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			var failed *rubicon.AuthError
			if a := post(client, url, "x"); errors.As(a.err, &failed) && failed.Kind == kind {
				count.Add(1)
			}
		})
	}
	wg.Wait()
	return count.Load()
}

// TestDeadGrant: that a grant is dead is found out once, by a thousand requests
// whose rejections come spread over a second.
func TestDeadGrant(t *testing.T) {
	site, fosite := newFosite(t)
	c := site.credential(t)
	client := site.client(t, c)
	fosite.end()
	const n = 1000
	site.rejectApart(n, time.Millisecond)
	if failed := failures(client, site.api.URL, n, rubicon.AuthReconnect); failed != n {
		t.Errorf("%d of %d requests failed for the dead grant", failed, n)
	}
	site.wantCalls(t, 1, n)

	// The user connects again.
	again, _ := newFosite(t)
	site.server, site.first = again.server, again.first
	site.onReject(nil)
	if err := c.Replace(t.Context(), again.first); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, client, site.api.URL, 200)
	site.wantCalls(t, 1, n+1)
}

// TestFailedEndpoint: as before, where the token endpoint is out of order.
func TestFailedEndpoint(t *testing.T) {
	site, _ := newSmall(t)
	site.onAnswer(fail(503, ""))
	site.revoke()
	const n = 1000
	site.rejectApart(n, time.Millisecond)
	if failed := failures(site.client(t, site.credential(t)), site.api.URL, n, rubicon.AuthTransient); failed != n {
		t.Errorf("%d of %d requests failed for the endpoint", failed, n)
	}
	site.wantCalls(t, 1, n)

	t.Run("control: singleflight", func(t *testing.T) {
		site, _ := newSmall(t)
		site.onAnswer(fail(503, ""))
		site.revoke()
		const n = 100
		site.rejectApart(n, 10*time.Millisecond)
		storm(&http.Client{Transport: newSingleflight(t, site)}, site.api.URL, n)
		if got := site.requests.Load(); got < 2 {
			t.Errorf("%d token requests", got)
		}
	})
}

// TestBadOrigin: an origin that rejects every token costs the others nothing.
func TestBadOrigin(t *testing.T) {
	site, _ := newFosite(t)
	var bad atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		bad.Add(1)
		unauthorized(w, "Bearer")
	}))
	defer other.Close()
	transport := site.transport(t, site.credential(t))
	transport.Auth.Origins = append(transport.Auth.Origins, other.URL)
	client := &http.Client{Transport: transport}
	const n = 50
	for range n {
		wantStatus(t, client, site.api.URL, 200)
		wantStatus(t, client, other.URL, 401)
	}
	site.wantCalls(t, 1, n)
	if bad.Load() != n+1 {
		t.Errorf("%d requests at the bad origin, want %d", bad.Load(), n+1)
	}
}

// TestUnchanged: a source that returns what was rejected has not renewed
// anything: the rejection is the answer, for those too whose token has expired
// in the meantime.
func TestUnchanged(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { unauthorized(w, "Bearer") }))
	defer api.Close()
	same := &oauth2.Token{AccessToken: "same", Expiry: time.Now().Add(time.Second)}
	started, release := make(chan struct{}), make(chan struct{})
	var calls atomic.Int64
	c := rubicon.NewCredential(same, func(context.Context, *oauth2.Token) (*oauth2.Token, error) {
		if calls.Add(1) == 1 {
			close(started)
			<-release
		}
		again := *same
		return &again, nil
	})
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	client := &http.Client{Transport: &rubicon.Transport{Base: base, Auth: &rubicon.Auth{Credential: c, Origins: []string{api.URL}}}}
	answers := make(chan answer, 2)
	go func() { answers <- post(client, api.URL, "forces") }()
	<-started
	time.Sleep(time.Until(same.Expiry))
	go func() { answers <- post(client, api.URL, "has expired") }()
	time.Sleep(20 * time.Millisecond) // it may join, or come later: either is right
	close(release)
	for range 2 {
		if a := <-answers; a.status != 401 || a.body != "rejected" || a.err != nil {
			t.Errorf("%d %q %v", a.status, a.body, a.err)
		}
	}
}

// TestAdopted: a token that another process has stored, and that is rejected
// as well, is no renewal that did not help.
func TestAdopted(t *testing.T) {
	site, _ := newFosite(t)
	c := rubicon.NewCredential(&oauth2.Token{AccessToken: "old", RefreshToken: "spent"}, site.grant(t))
	c.Client, c.Store = tokenClient(t), &lapsing{tok: site.first}
	client := site.client(t, c)
	site.revoke()
	if a := post(client, site.api.URL, "x"); a.status != 401 && a.status != 200 {
		t.Errorf("%d %v", a.status, a.err)
	}
	wantStatus(t, client, site.api.URL, 200)
	if n := site.requests.Load(); n != 1 {
		t.Errorf("%d token requests", n)
	}
	site.wantAlive(t, c)
}

// A broken store keeps what it has, and fails as it is told to.
type broken struct {
	lapsing
	fail error  // in place of calling renew
	lose func() // after that
}

var errOutOfOrder = errors.New("out of order")

// Update implements [rubicon.Store].
func (s *broken) Update(ctx context.Context, renew func(*oauth2.Token) (*oauth2.Token, error)) error {
	if s.fail != nil {
		return s.fail
	}
	return s.lapsing.Update(ctx, func(stored *oauth2.Token) (*oauth2.Token, error) {
		tok, err := renew(stored)
		if s.lose != nil {
			s.lose()
		}
		return tok, err
	})
}

// TestBrokenStore: a store that can't be used is no reason to ask, one that
// panics none to lose what was granted, and neither one to forget that a grant
// is dead.
func TestBrokenStore(t *testing.T) {
	t.Run("before", func(t *testing.T) {
		site, _ := newFosite(t)
		c := site.credential(t)
		store := &broken{lapsing: lapsing{tok: site.first}, fail: errOutOfOrder}
		c.Store, c.Pause = store, time.Nanosecond
		client := site.client(t, c)
		site.revoke()
		wantAuthError(t, post(client, site.api.URL, "").err, rubicon.AuthTransient)
		site.wantCalls(t, 0, 1)
		store.fail = nil
		wantStatus(t, client, site.api.URL, 200)
		site.wantCalls(t, 1, 3)
	})
	t.Run("panics after", func(t *testing.T) {
		site, _ := newFosite(t)
		c := site.credential(t)
		store := &broken{lapsing: lapsing{tok: site.first}, lose: func() { panic("save") }}
		c.Store, c.Pause = store, time.Nanosecond
		client := site.client(t, c)
		site.revoke()
		if a := post(client, site.api.URL, ""); a.status != 200 {
			t.Errorf("%d %v", a.status, a.err)
		}
		store.lose = nil
		site.wantAlive(t, c)
	})
	t.Run("dead", func(t *testing.T) {
		site, fosite := newFosite(t)
		c := site.credential(t)
		store := &broken{lapsing: lapsing{tok: site.first}}
		c.Store, c.Pause = store, time.Nanosecond
		client := site.client(t, c)
		fosite.end()
		wantAuthError(t, post(client, site.api.URL, "").err, rubicon.AuthReconnect)
		store.fail = errOutOfOrder
		if a := post(client, site.api.URL, ""); a.err == nil {
			t.Errorf("%d", a.status)
		}
		store.fail = nil
		for range 3 {
			wantAuthError(t, post(client, site.api.URL, "").err, rubicon.AuthReconnect)
		}
		if n := site.requests.Load(); n != 1 {
			t.Errorf("%d token requests", n)
		}
	})
}
