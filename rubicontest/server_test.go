package rubicontest_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rubicon-go/rubicon/rubicontest"
)

func TestServerZero(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.String(), func(t *testing.T) {
			s := start(t, rubicontest.Config{Protocol: p})
			tr := s.Transport()
			for range 3 {
				wantOK(t, post(t, tr, s.URL))
			}
			wantCounts(t, s, 3, 3)
			if n := s.Connections(); n != 1 {
				t.Errorf("%d connections for three requests in turn; want 1", n)
			}
		})
	}
}

// Each request gets its line, and the last line repeats.
func TestScript(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.String(), func(t *testing.T) {
			s := rubicontest.NewServer(p,
				rubicontest.Act().Answer(201, "first"),
				rubicontest.Read().Answer(202, ""),
				rubicontest.Act().Answer(503, "last"))
			defer s.Close()
			tr := s.Transport()
			for i, want := range []reply{{status: 201, body: "first"}, {status: 202}, {status: 503, body: "last"}, {status: 503, body: "last"}} {
				if got := post(t, tr, s.URL); got.status != want.status || got.body != want.body || got.err != nil {
					t.Errorf("request %d: %d %q %v; want %d %q", i+1, got.status, got.body, got.err, want.status, want.body)
				}
			}
			wantCounts(t, s, 4, 3)
		})
	}
}

func TestReceived(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.String(), func(t *testing.T) {
			s := start(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{
				rubicontest.Act(), rubicontest.ReadHeader().Answer(200, "ok\n").Drain(),
			}})
			tr := s.Transport()
			long := strings.Repeat("x", 100_000)
			req := request(t, patient(t), "PUT", s.URL+"/orders/1?q=a%20b", long)
			req.Header.Set("Idempotency-Key", "k")
			wantOK(t, send(tr, req))
			wantOK(t, send(tr, request(t, patient(t), "GET", s.URL, "")))
			await(t, s, func(c rubicontest.Counts) bool { return c.Played == 2 })

			got := s.Received()
			if len(got) != 2 {
				t.Fatalf("%d requests; want 2", len(got))
			}
			if k := got[0].Header.Get("Idempotency-Key"); k != "k" {
				t.Errorf("key %q; want k", k)
			}
			want := []rubicontest.Request{{
				N: 1, Conn: 1, Stream: 1, Method: "PUT", Host: s.Addr, Path: "/orders/1?q=a%20b",
				Body: []byte(long[:64<<10]), Length: 100_000, Sum: sha256.Sum256([]byte(long)), Complete: true, Acted: true,
			}, {
				N: 2, Conn: 1, Stream: 3, Method: "GET", Host: s.Addr, Path: "/",
				Sum: sha256.Sum256(nil), Complete: true,
			}}
			for i := range got {
				got[i].Header = nil
				if p != rubicontest.H2 {
					want[i].Stream = 0
				}
				if !reflect.DeepEqual(got[i], want[i]) {
					t.Errorf("got\n%.300v; want\n%.300v", got[i], want[i])
				}
			}
		})
	}
}

// What Received can tell of is bounded; the counts are not.
func TestReceivedIsBounded(t *testing.T) {
	s := start(t, rubicontest.Config{})
	tr := s.Transport()
	for range 1001 {
		wantOK(t, post(t, tr, s.URL))
	}
	wantCounts(t, s, 1001, 1001)
	if n := len(s.Received()); n != 1000 {
		t.Errorf("%d requests are kept; want 1000", n)
	}
}

// Await says why it gave up, and what it waits for may come from elsewhere.
func TestAwait(t *testing.T) {
	s := start(t, rubicontest.Config{})
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if err := s.Await(ctx, func(c rubicontest.Counts) bool { return c.Requests > 0 }); err != reason {
		t.Errorf("got %v; want the context's cause", err)
	}
	var all sync.WaitGroup
	for n := range 3 {
		all.Go(func() { await(t, s, func(c rubicontest.Counts) bool { return c.Effects > n }) })
	}
	tr := s.Transport()
	for range 3 {
		wantOK(t, post(t, tr, s.URL))
	}
	all.Wait()
}

// Seen and Choose are told each request once, before anything happens to it,
// and Effect each time the server acts, before the answer.
func TestHooks(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.String(), func(t *testing.T) {
			var mu sync.Mutex
			var seen, chosen, acted []string
			s := start(t, rubicontest.Config{
				Protocol: p,
				Choose: func(r rubicontest.Request) rubicontest.Fault {
					mu.Lock()
					defer mu.Unlock()
					chosen = append(chosen, r.Path)
					if r.Path == "/safe" {
						return rubicontest.Read()
					}
					return rubicontest.Act().Close()
				},
				Seen: func(r rubicontest.Request) {
					mu.Lock()
					defer mu.Unlock()
					seen = append(seen, r.Path)
				},
				Effect: func(r rubicontest.Request) {
					mu.Lock()
					defer mu.Unlock()
					acted = append(acted, r.Path+" "+string(r.Body))
				},
			})
			tr := s.Transport()
			wantOK(t, post(t, tr, s.URL+"/safe"))
			if r := post(t, tr, s.URL+"/pay"); r.err == nil {
				t.Errorf("got %d; want an error", r.status)
			}
			mu.Lock()
			defer mu.Unlock()
			both := []string{"/safe", "/pay"}
			if !slices.Equal(seen, both) || !slices.Equal(chosen, both) || !slices.Equal(acted, []string{"/pay hello"}) {
				t.Errorf("saw %q, chose for %q, acted on %q", seen, chosen, acted)
			}
		})
	}
}

// A script that the protocol can't play is a mistake that shows at once.
func TestStartPanics(t *testing.T) {
	for name, c := range map[string]rubicontest.Config{
		"stream reset on h1": {Script: []rubicontest.Fault{rubicontest.Act().RefuseStream()}},
		"goaway on h1":       {Protocol: rubicontest.H1TLS, Script: []rubicontest.Fault{{}, rubicontest.Act().GoAwayAbove(0)}},
		"upgrade on h2":      {Protocol: rubicontest.H2, Script: []rubicontest.Fault{rubicontest.Read().Upgrade()}},
		"unread on h2":       {Protocol: rubicontest.H2, Script: []rubicontest.Fault{rubicontest.Unread().Close()}},
		"acting unread":      {Script: []rubicontest.Fault{rubicontest.Unread().Act()}},
		"handling unread":    {Script: []rubicontest.Fault{rubicontest.Unread().Handle(http.NotFoundHandler())}},
		"tls fault on h1":    {Accept: []rubicontest.Accept{rubicontest.UntrustedConn}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if r, ok := recover().(string); !ok || !strings.HasPrefix(r, "rubicontest: ") {
					t.Errorf("got %v; want a panic that says what is wrong", r)
				}
			}()
			c.Start().Close()
		})
	}
	for name, build := range map[string]func() rubicontest.Fault{
		"header": func() rubicontest.Fault { return rubicontest.Act().Header("A", "b") },
		"cut":    func() rubicontest.Fault { return rubicontest.Act().Answer(200, "x").Act().Cut(1) },
		"end":    func() rubicontest.Fault { return rubicontest.Act().End() },
	} {
		t.Run(name+" of no answer", func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it was taken")
				}
			}()
			_ = build()
		})
	}
}

// A Fault is a value: extending it leaves it, and its other extensions, alone.
func TestFaultIsAValue(t *testing.T) {
	base := rubicontest.Act().Wait(time.Nanosecond)
	closed, reset := base.Close(), base.Reset()
	answer := base.Answer(503, "no")
	hinted, cut := answer.Header("Retry-After", "1"), answer.Cut(1)
	thenClosed, thenReset := answer.Close(), answer.Reset()
	for fault, want := range map[*rubicontest.Fault]string{
		{}:                                "act",
		&base:                             "act, wait 1ns",
		&closed:                           "act, wait 1ns, close",
		&reset:                            "act, wait 1ns, reset",
		&answer:                           "act, wait 1ns, answer 503",
		&cut:                              "act, wait 1ns, answer 503 cut at 1",
		&thenClosed:                       "act, wait 1ns, answer 503, close",
		&thenReset:                        "act, wait 1ns, answer 503, reset",
		ptr(rubicontest.Read()):           "read",
		ptr(rubicontest.Unread().Reset()): "read nothing, reset",
		ptr(rubicontest.ReadHeader().Inform(103).Raw("x")):               "read header, inform 103, write raw bytes",
		ptr(rubicontest.ReadBody(7).ResetStream(8)):                      "read 7 bytes, RST_STREAM CANCEL",
		ptr(rubicontest.Act().GoAwayBelow(0).Close()):                    "act, GOAWAY below NO_ERROR, close",
		ptr(rubicontest.Act().GoAwayAbove(2).Freeze()):                   "act, GOAWAY above INTERNAL_ERROR, freeze",
		ptr(rubicontest.Act().Handle(http.NotFoundHandler()).Until(nil)): "act, answer by handler, hold",
	} {
		if got := fault.String(); got != want {
			t.Errorf("got %q; want %q", got, want)
		}
	}
	_ = hinted.Header("X-More", "1")
	s := start(t, rubicontest.Config{Script: []rubicontest.Fault{answer, hinted}})
	tr := s.Transport()
	if r := post(t, tr, s.URL); r.header.Get("Retry-After") != "" {
		t.Error("a header that was added to a copy is in the original's answer")
	}
	if r := post(t, tr, s.URL); r.header.Get("Retry-After") != "1" || r.header.Get("X-More") != "" {
		t.Errorf("header %v; want Retry-After and no more", r.header)
	}
}

func ptr(f rubicontest.Fault) *rubicontest.Fault { return &f }

func TestProtocolAndAcceptStrings(t *testing.T) {
	got := []string{rubicontest.H1.String(), rubicontest.H1TLS.String(), rubicontest.H2.String(), rubicontest.Protocol(9).String(),
		rubicontest.ServeConn.String(), rubicontest.NeedCertConn.String(), rubicontest.Accept(99).String()}
	want := []string{"h1", "h1-tls", "h2", "Protocol(9)", "serve", "need certificate", "Accept(99)"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q; want %q", got, want)
	}
}
