package rubicontest_test

// Public reports, played to plain net/http. What it does in each is the ground
// that Rubicon stands on.

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/rubicon-go/rubicon/rubicontest"
)

// replayable sends a POST that net/http takes the right to send again on
// HTTP/1.1: it has GetBody and a key.
func replayable(t *testing.T, rt http.RoundTripper, url string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(patient(t), "POST", url, strings.NewReader("pay"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", "k")
	return send(rt, req)
}

// O19: three idle connections that act and close: one call, four effects.
func TestStaleConnections(t *testing.T) {
	for _, p := range protocols[:2] {
		t.Run(p.String(), func(t *testing.T) {
			warm := make(chan struct{})
			s := start(t, rubicontest.Config{Protocol: p, Choose: func(r rubicontest.Request) rubicontest.Fault {
				if r.Method == "GET" {
					return rubicontest.Read().Until(warm)
				}
				return rubicontest.Act().Close()
			}})
			tr := s.Transport()
			tr.MaxIdleConnsPerHost = 3
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() { wantOK(t, send(tr, request(t, patient(t), "GET", s.URL, ""))) })
			}
			await(t, s, func(c rubicontest.Counts) bool { return c.Requests == 3 })
			close(warm)
			all.Wait()
			if r := replayable(t, tr, s.URL); r.err == nil {
				t.Errorf("got %d; want an error", r.status)
			}
			// One on each idle connection that was back in the pool, and one
			// on a fresh connection.
			if n := s.Effects(); n < 2 || n > 4 {
				t.Errorf("%d effects; want 2 to 4", n)
			}
		})
	}
}

// O29, and O19's variant: applied, then the listener is gone. The error is
// that of a dial, which reads as if nothing had been sent.
func TestAppliedThenGone(t *testing.T) {
	for _, p := range protocols[:2] {
		t.Run(p.String(), func(t *testing.T) {
			s := start(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{
				rubicontest.Read(), rubicontest.Act().CloseListener().Close(),
			}})
			tr := s.Transport()
			wantOK(t, send(tr, request(t, patient(t), "GET", s.URL, "")))
			if r := replayable(t, tr, s.URL); !errors.Is(r.err, syscall.ECONNREFUSED) {
				t.Errorf("got %d, %v; want connection refused", r.status, r.err)
			}
			wantCounts(t, s, 2, 1)
		})
	}
	s := start(t, rubicontest.Config{Protocol: rubicontest.H2, Script: []rubicontest.Fault{
		rubicontest.Act().CloseListener().GoAwayBelow(http2.ErrCodeNo),
	}})
	if r := replayable(t, s.Transport(), s.URL); !errors.Is(r.err, syscall.ECONNREFUSED) {
		t.Errorf("h2: got %d, %v; want connection refused", r.status, r.err)
	}
	wantCounts(t, s, 1, 1)
}

// O26: every other attempt is told 401, some with the connection closed.
func TestUnauthorized(t *testing.T) {
	closing := rubicontest.Act().Answer(401, "who?").Header("Connection", "close")
	keeping := rubicontest.Act().Answer(401, "who?")
	made := rubicontest.Act().Answer(201, "")
	for _, p := range protocols {
		t.Run(p.String(), func(t *testing.T) {
			s := rubicontest.NewServer(p, closing, made, keeping, made)
			defer s.Close()
			tr := s.Transport()
			body := strings.Repeat("m", 1821)
			for i, status := range []int{401, 201, 401, 201} {
				if r := send(tr, request(t, patient(t), "PUT", s.URL, body)); r.status != status || r.err != nil {
					t.Errorf("request %d: %d, %v; want %d", i+1, r.status, r.err, status)
				}
			}
			for _, r := range s.Received() {
				if r.Length != 1821 || r.Sum != sha256.Sum256([]byte(body)) {
					t.Errorf("request %d: %d bytes", r.N, r.Length)
				}
			}
			if n := s.Connections(); n != 2 {
				t.Errorf("%d connections; want 2", n)
			}
		})
	}
}

// O28: an early 401 while the upload is running, then one that is read; the
// server tells what it got.
func TestEarlyUnauthorized(t *testing.T) {
	body := strings.Repeat("x", 1<<20)
	for _, p := range protocols {
		t.Run(p.String(), func(t *testing.T) {
			s := start(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{
				rubicontest.ReadHeader().Answer(401, "").Drain(),
				rubicontest.Act().Handle(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					sum := sha256.New()
					_, _ = io.Copy(sum, r.Body)
					_, _ = fmt.Fprintf(w, "%x", sum.Sum(nil))
				})),
			}})
			tr := s.Transport()
			if r := send(tr, request(t, patient(t), "POST", s.URL, body)); r.status != 401 {
				t.Errorf("got %d, %v; want 401", r.status, r.err)
			}
			r := send(tr, request(t, patient(t), "POST", s.URL, body))
			if want := fmt.Sprintf("%x", sha256.Sum256([]byte(body))); r.body != want {
				t.Errorf("got %q, %v; want %s", r.body, r.err, want)
			}
		})
	}
}

// O2: an idle connection that the server closes as it is reused. Whatever the
// client is told, the server knows what it saw.
func TestIdleTimeout(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.String(), func(t *testing.T) {
			s := start(t, rubicontest.Config{Protocol: p, Choose: func(r rubicontest.Request) rubicontest.Fault {
				if r.Method == "GET" {
					return rubicontest.Read().Answer(200, "warm").Wait(2 * time.Millisecond).Close()
				}
				return rubicontest.Act()
			}})
			tr := s.Transport()
			told := 0
			for range 20 {
				if r := send(tr, request(t, patient(t), "GET", s.URL, "")); r.err != nil {
					continue // the connection before it was stale
				}
				time.Sleep(rand.N(4 * time.Millisecond))
				if r := post(t, tr, s.URL); r.status == 200 {
					told++
				}
			}
			if s.Effects() < told {
				t.Errorf("%d effects, but %d answers", s.Effects(), told)
			}
			if told == 0 {
				t.Error("no request was ever answered")
			}
		})
	}
}

// Many clients, random faults: the counts agree with what the hooks were told,
// an answered request was acted upon, and the server is as good as new when the
// storm is over.
func TestManyAtOnce(t *testing.T) {
	faults := []rubicontest.Fault{
		{}, rubicontest.Act().Close(), rubicontest.Act().Reset(), rubicontest.ReadHeader().Reset(),
		rubicontest.Act().Answer(503, "busy"), rubicontest.ReadBody(100).Close(), rubicontest.Act().Stall(),
		rubicontest.ReadHeader().Answer(413, "no"), rubicontest.Act().Stream("a", "b", "c").Cut(2).Reset(),
		rubicontest.Read().Wait(time.Millisecond).Act().Close(), {}, {}, {},
	}
	h2only := []rubicontest.Fault{
		rubicontest.Read().RefuseStream(), rubicontest.Act().ResetStream(http2.ErrCodeCancel),
		rubicontest.Read().GoAwayBelow(http2.ErrCodeNo), rubicontest.Act().GoAwayAbove(http2.ErrCodeInternal).Close(),
	}
	for _, p := range protocols {
		t.Run(p.String(), func(t *testing.T) {
			all := faults
			if p == rubicontest.H2 {
				all = append(all[:len(all):len(all)], h2only...)
			}
			var seen, acted atomic.Int64
			var calm atomic.Bool
			s := start(t, rubicontest.Config{
				Protocol: p,
				Choose: func(rubicontest.Request) rubicontest.Fault {
					if calm.Load() {
						return rubicontest.Act()
					}
					return all[rand.IntN(len(all))]
				},
				Seen:   func(rubicontest.Request) { seen.Add(1) },
				Effect: func(rubicontest.Request) { acted.Add(1) },
				Accept: []rubicontest.Accept{rubicontest.ResetConn, rubicontest.CloseConn, rubicontest.ServeConn},
			})
			tr := s.Transport()
			var workers sync.WaitGroup
			var ok atomic.Int64
			for range 8 {
				workers.Go(func() {
					for range 25 {
						if once(t, tr, s.URL) {
							ok.Add(1)
						}
					}
				})
			}
			workers.Wait()
			calm.Store(true)
			wantOK(t, post(t, s.Transport(), s.URL))
			ok.Add(1)
			s.Close()
			c := s.Counts()
			if int64(c.Requests) != seen.Load() || int64(c.Effects) != acted.Load() || c.Open != 0 {
				t.Errorf("counts %+v, but %d seen and %d acted upon", c, seen.Load(), acted.Load())
			}
			if int64(c.Effects) < ok.Load() {
				t.Errorf("%d effects for %d answers", c.Effects, ok.Load())
			}
			told := 0
			for _, r := range s.Received() {
				if r.Acted {
					told++
				}
			}
			if told != c.Effects {
				t.Errorf("%d requests were acted upon; counted %d", told, c.Effects)
			}
		})
	}
}

// once sends a POST and reports whether it was answered as by default.
func once(t *testing.T, tr *http.Transport, url string) bool {
	req := request(t, timeLimited(t, 50*time.Millisecond), "POST", url, strings.Repeat("x", rand.IntN(20_000)+1))
	r := send(tr, req)
	return r.status == 200 && r.body == "ok\n" && r.err == nil
}
