package auth

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/rubicon-go/rubicon"
)

var stress = flag.Duration("stress", 5*time.Second, "how long TestStress goes on")

// TestStress has workers ask an API whose tokens are revoked, by a server whose
// token endpoint fails, hangs and is slow, with callers that give up. Whatever
// happens, no refresh token is sent again after it was taken, no request is
// sent more than twice, and no renewal outlives its time.
func TestStress(t *testing.T) {
	site, small := newSmall(t)
	site.onAnswer(func(w http.ResponseWriter, req *http.Request) bool {
		switch rand.IntN(40) {
		case 0, 1:
			return fail(503, `{"error":"temporarily_unavailable"}`)(w, req)
		case 2, 3:
			return fail(502, "<html>")(w, req)
		case 4:
			return hang(req, nil) // until the renewal has had its time
		case 5, 6:
			time.Sleep(20 * time.Millisecond)
			return fail(500, "late")(w, req)
		case 7, 8, 9, 10, 11, 12:
			time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
		}
		return false
	})
	c := site.credential(t)
	c.Timeout, c.Pause = 300*time.Millisecond, 5*time.Millisecond
	store := new(receipts)
	store.tok.Store(site.first)
	c.Store = store
	// An answer that came too late was lost, and that can't be helped. So the
	// server takes a refresh token until the client has got the next.
	small.refresh = func() string { return store.tok.Load().RefreshToken }
	var renewals, ended atomic.Int64
	c.Renewed = func(r rubicon.Renewal) {
		renewals.Add(1)
		if r.Took > 10*time.Second {
			t.Errorf("a renewal took %v", r.Took)
		}
		if r.Err != nil {
			ended.Add(1)
		}
	}
	client, sends := site.client(t, c), new(counter)
	site.api.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		sends.count(req.Header.Get("Number"))
		site.resource(w, req)
	})

	ctx, cancel := context.WithTimeout(t.Context(), *stress)
	defer cancel()
	var number, ok, revoked atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for ctx.Err() == nil {
				n := fmt.Sprint(number.Add(1))
				if one(t, client, site.api.URL, n) {
					ok.Add(1)
				}
			}
		})
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			site.revoke()
			revoked.Add(1)
			time.Sleep(time.Duration(20+rand.IntN(100)) * time.Millisecond)
		}
	})
	wg.Wait()
	t.Logf("%d requests, %d answered, %d revocations, %d renewals of which %d failed, %d token requests",
		number.Load(), ok.Load(), revoked.Load(), renewals.Load(), ended.Load(), site.requests.Load())

	if n := sends.max(); n > 2 {
		t.Errorf("a request was sent %d times", n)
	}
	small.mu.Lock()
	if small.dead {
		t.Error("a refresh token was sent again after it was taken")
	}
	small.mu.Unlock()
	if revoked.Load() == 0 || renewals.Load() == 0 {
		t.Error("nothing was stressed")
	}
	for start := time.Now(); site.requests.Load() > renewals.Load() && time.Since(start) < 10*time.Second; {
		time.Sleep(time.Millisecond)
	}
	if got, want := renewals.Load(), site.requests.Load(); got < want {
		t.Errorf("%d renewals ended, %d token requests were made", got, want)
	}
	noRenewal(t)

	site.onAnswer(nil)
	time.Sleep(2 * c.Pause)
	for range 20 { // pauses may have doubled
		if post(client, site.api.URL, "").status == 200 {
			break
		}
		time.Sleep(c.Pause)
	}
	site.wantAlive(t, c)
}

// A receipts store knows what a client has got.
type receipts struct {
	mu  sync.Mutex
	tok atomic.Pointer[oauth2.Token]
}

// Update implements [rubicon.Store].
func (s *receipts) Update(_ context.Context, renew func(*oauth2.Token) (*oauth2.Token, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tok, err := renew(s.tok.Load())
	if tok != nil && err == nil {
		s.tok.Store(tok)
	}
	return err
}

// noRenewal checks that no goroutine of a renewal is left.
func noRenewal(t *testing.T) {
	t.Helper()
	var left string
	for range 1000 {
		buf := make([]byte, 1<<20)
		left = string(buf[:runtime.Stack(buf, true)])
		if !strings.Contains(left, "rubicon.(*Credential).run(") {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("a renewal has outlived its time:\n%s", left)
}

// one makes a request with a deadline that may be short.
func one(t *testing.T, client *http.Client, url, number string) bool {
	limit := 10 * time.Second
	if rand.IntN(3) == 0 {
		limit = time.Duration(1+rand.IntN(60)) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	method, body := "POST", number
	if rand.IntN(3) == 0 {
		method, body = "GET", ""
	}
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return false
	}
	req.Header.Set("Number", number)
	a := do(client, req)
	var failed *rubicon.AuthError
	switch {
	case a.status == 200:
		if a.body != body {
			t.Errorf("request %s was answered %q", number, a.body)
		}
		return true
	case a.status == 401, ctx.Err() != nil:
	case errors.Is(a.err, context.DeadlineExceeded): // a dialer's own clock may be ahead of the context's
	case errors.As(a.err, &failed) && failed.Retryable():
	default:
		t.Errorf("request %s: %d %v", number, a.status, a.err)
	}
	return false
}

// A counter counts by name.
type counter struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counter) count(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = make(map[string]int)
	}
	c.n[name]++
}

// max returns the highest count.
func (c *counter) max() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	most := 0
	for _, n := range c.n {
		most = max(most, n)
	}
	return most
}
