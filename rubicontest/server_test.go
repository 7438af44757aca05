package rubicontest_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rubicon-go/rubicon/rubicontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds waits for what is certain to come.
const patience = 20 * time.Second

var protocols = []rubicontest.Protocol{rubicontest.H1, rubicontest.H1TLS, rubicontest.H2}

// start starts a server that ends with the test.
func start(t *testing.T, c rubicontest.Config) *rubicontest.Server {
	t.Helper()
	s := c.Start()
	t.Cleanup(s.Close)
	return s
}

// patient returns a context that ends the test if what is certain doesn't come.
func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// request returns a request whose body can't be sent twice.
func request(t *testing.T, ctx context.Context, method, url, body string) *http.Request {
	t.Helper()
	var r io.Reader
	if body != "" {
		r = struct{ io.Reader }{strings.NewReader(body)}
	}
	req, err := http.NewRequestWithContext(ctx, method, url, r)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// A reply is what a client was told.
type reply struct {
	status  int
	body    string
	header  http.Header
	trailer http.Header
	err     error // of RoundTrip, or of reading the body
}

// send sends req over rt and reads the answer.
func send(rt http.RoundTripper, req *http.Request) reply {
	res, err := rt.RoundTrip(req)
	if err != nil {
		return reply{err: err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, string(body), res.Header, res.Trailer, err}
}

// post sends a small POST that net/http does not send twice.
func post(t *testing.T, rt http.RoundTripper, url string) reply {
	t.Helper()
	return send(rt, request(t, patient(t), "POST", url, "hello"))
}

// await waits until done is true of the server's counts.
func await(t *testing.T, s *rubicontest.Server, done func(rubicontest.Counts) bool) {
	t.Helper()
	if err := s.Await(patient(t), done); err != nil {
		t.Fatalf("counts stand at %+v: %v", s.Counts(), err)
	}
}

// wantOK fails the test unless r is the answer that a server gives by default.
func wantOK(t *testing.T, r reply) {
	t.Helper()
	if r.status != 200 || r.body != "ok\n" || r.err != nil {
		t.Errorf("got %d %q, %v; want 200 ok", r.status, r.body, r.err)
	}
}

// wantCounts fails the test unless the server saw and did this much.
func wantCounts(t *testing.T, s *rubicontest.Server, requests, effects int) {
	t.Helper()
	if s.Requests() != requests || s.Effects() != effects {
		t.Errorf("server saw %d requests and acted %d times; want %d and %d",
			s.Requests(), s.Effects(), requests, effects)
	}
}

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
	for fault, want := range map[*rubicontest.Fault]string{
		{}:                                "act",
		&base:                             "act, wait 1ns",
		&closed:                           "act, wait 1ns, close",
		&reset:                            "act, wait 1ns, reset",
		&answer:                           "act, wait 1ns, answer 503",
		&cut:                              "act, wait 1ns, answer 503 cut at 1",
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
	s := start(t, rubicontest.Config{Script: []rubicontest.Fault{answer, hinted}})
	tr := s.Transport()
	if r := post(t, tr, s.URL); r.header.Get("Retry-After") != "" {
		t.Error("a header that was added to a copy is in the original's answer")
	}
	if r := post(t, tr, s.URL); r.header.Get("Retry-After") != "1" {
		t.Errorf("header %v; want Retry-After", r.header)
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

// eventually waits for what happens just after an event that can be awaited.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	for ctx := patient(t); !done(); time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatal("it did not happen")
		}
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

// timeLimited returns a context that ends after d.
func timeLimited(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}
