package rubicontest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rubicon-go/rubicon/rubicontest"
)

// Close ends what is stalled, waiting, held, frozen, half read or silent.
func TestCloseEndsAll(t *testing.T) {
	never := make(chan struct{})
	faults := []rubicontest.Fault{
		rubicontest.Act().Stall(), rubicontest.Act().Wait(time.Hour), rubicontest.Act().Until(never),
		rubicontest.Act().Freeze(), rubicontest.ReadHeader().Stall(), rubicontest.ReadBody(5).Stall(),
		rubicontest.Act().Answer(200, "abc").Cut(1).Stall(),
	}
	for _, p := range protocols {
		t.Run(p.String(), func(t *testing.T) {
			s := start(t, rubicontest.Config{Protocol: p, Script: faults})
			tr := s.Transport()
			var all sync.WaitGroup
			var open *io.PipeWriter // of a body that does not come to its end
			for range len(faults) + 1 {
				body, w := io.Pipe()
				first := open == nil
				if first {
					open = w
				}
				req := request(t, patient(t), "POST", s.URL, "")
				req.Body = body
				all.Go(func() {
					if r := send(tr, req); r.err == nil {
						t.Errorf("got %d %q; want an error", r.status, r.body)
					}
				})
				all.Go(func() {
					_, _ = io.WriteString(w, "hello")
					if !first {
						_ = w.Close()
					}
				})
			}
			await(t, s, func(c rubicontest.Counts) bool { return c.Requests >= 5 })
			s.Close()
			_ = open.Close() // net/http waits for the body's Read on HTTP/1.1
			all.Wait()
			s.Close()
			if n := s.Counts().Open; n != 0 {
				t.Errorf("%d connections are open after Close", n)
			}
		})
	}
}

// A stale keep-alive connection: closed while nobody looks.
func TestCloseIdle(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.String(), func(t *testing.T) {
			held := make(chan struct{})
			s := start(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{{}, rubicontest.Act().Until(held)}})
			idle, busy := s.Transport(), s.Transport()
			wantOK(t, post(t, idle, s.URL))
			await(t, s, func(c rubicontest.Counts) bool { return c.Played == 1 })
			answer := make(chan reply)
			go func() { answer <- send(busy, request(t, patient(t), "POST", s.URL, "x")) }()
			await(t, s, func(c rubicontest.Counts) bool { return c.Effects == 2 })
			eventually(t, func() bool { return s.CloseIdle() == 1 })
			await(t, s, func(c rubicontest.Counts) bool { return c.Open == 1 })
			close(held)
			wantOK(t, <-answer)
			wantCounts(t, s, 2, 2)
		})
	}
}

// Nothing passes while the server is frozen; afterwards all goes on.
func TestFreezeAndThaw(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.String(), func(t *testing.T) {
			s := start(t, rubicontest.Config{Protocol: p})
			old := s.Transport()
			wantOK(t, post(t, old, s.URL))
			s.Freeze()
			answers := make(chan reply)
			for _, tr := range []*http.Transport{old, s.Transport()} {
				go func() { answers <- send(tr, request(t, patient(t), "POST", s.URL, "x")) }()
			}
			select {
			case r := <-answers:
				t.Fatalf("got %+v from a frozen server", r)
			case <-time.After(50 * time.Millisecond):
			}
			if s.Requests() != 1 {
				t.Errorf("%d requests while frozen; want 1", s.Requests())
			}
			s.Thaw()
			wantOK(t, <-answers)
			wantOK(t, <-answers)
		})
	}
}

// A server that stops reading holds a client up inside a write, and with it
// every other request on the connection. When it reads again, what was given
// up meanwhile never arrives.
func TestWriteStall(t *testing.T) {
	s := start(t, rubicontest.Config{Protocol: rubicontest.H2, ReadBuffer: 4 << 10})
	tr := s.Transport()
	tr.DialContext = smallWrites
	wantOK(t, post(t, tr, s.URL))
	s.Freeze()
	upload := make(chan reply)
	body := &counter{Reader: strings.NewReader(strings.Repeat("x", 60<<10))}
	req := request(t, patient(t), "POST", s.URL+"/upload", "")
	req.Body = io.NopCloser(body)
	go func() { upload <- send(tr, req) }()
	eventually(t, func() bool { return body.count() > 0 })
	for last := -1; last != body.count(); time.Sleep(20 * time.Millisecond) {
		last = body.count()
	}
	r := send(tr, request(t, timeLimited(t, 50*time.Millisecond), "POST", s.URL+"/second", "x"))
	if !errors.Is(r.err, context.DeadlineExceeded) {
		t.Errorf("got %d, %v; want the deadline", r.status, r.err)
	}
	s.Thaw()
	wantOK(t, <-upload)
	wantOK(t, post(t, tr, s.URL))
	for _, r := range s.Received() {
		if r.Path == "/second" {
			t.Error("what was given up before it was written has arrived")
		}
	}
}
