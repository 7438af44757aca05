package rubicon_test

import (
	"context"
	"errors"
	"fmt"
	"go/build/constraint"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// patience bounds waits for what is certain to come.
const patience = 30 * time.Second

// eventually returns when done is true, and ends the test if that never comes.
// It is for what tells nobody that it happened.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// arrives waits until the server's counts are as done says.
func arrives(t *testing.T, s *rubicontest.Server, what string, done func(rubicontest.Counts) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Await(ctx, done); err != nil {
		t.Fatalf("waited in vain: %s: %v, have %+v", what, err, s.Counts())
	}
}

// goroutinesIn returns how many goroutines have a function on their stack
// whose name contains all of parts, in one line.
func goroutinesIn(parts ...string) int {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	n := 0
	for _, stack := range strings.Split(string(buf), "\n\n") {
		if slices.ContainsFunc(strings.Split(stack, "\n"), func(line string) bool {
			return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) })
		}) {
			n++
		}
	}
	return n
}

// A shape is a kind of request that net/http treats in a way of its own.
type shape struct {
	name   string
	method string
	body   bool
	opaque bool // the body has no GetBody
	keyed  bool // there is an Idempotency-Key
}

// shapes are the kinds of request that the facts about net/http were gathered
// with, and a keyed request without a body.
var shapes = []shape{
	{name: "GET", method: http.MethodGet},
	{name: "POST", method: http.MethodPost, body: true},
	{name: "POST opaque", method: http.MethodPost, body: true, opaque: true},
	{name: "POST keyed", method: http.MethodPost, body: true, keyed: true},
	{name: "POST bodyless", method: http.MethodPost},
	{name: "DELETE bodyless keyed", method: http.MethodDelete, keyed: true},
}

// few are three of them, for what does not depend on the kind.
var few = []shape{shapes[0], shapes[1], shapes[4]}

// safe reports whether the request has a safe method.
func (k shape) safe() bool { return k.method == http.MethodGet }

// request returns a new request of the kind.
func (k shape) request(ctx context.Context, url string) *http.Request {
	var body io.Reader
	if k.body {
		body = strings.NewReader(`{"amount":100}`)
	}
	if k.opaque {
		body = struct{ io.Reader }{body}
	}
	req, err := http.NewRequestWithContext(ctx, k.method, url, body)
	if err != nil {
		panic(err)
	}
	if k.keyed {
		req.Header.Set("Idempotency-Key", "k1")
	}
	return req
}

// A holder dials connections whose Write can be made to wait, before its bytes
// leave or after.
type holder struct {
	mu      sync.Mutex
	dialed  int
	held    moment
	upTo    int           // the last connection that is held
	entered chan struct{} // closed when a Write waits
	release chan struct{}
}

// A moment is when a held Write waits.
type moment uint8

const (
	never moment = iota
	beforeBytes
	afterBytes
)

// hold makes every Write wait from now on, until let, on the connections that
// there are. The channel is closed when one does.
func (h *holder) hold(m moment) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held, h.upTo, h.entered, h.release = m, h.dialed, make(chan struct{}), make(chan struct{})
	return h.entered
}

// let lets every Write go on.
func (h *holder) let() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held != never {
		h.held = never
		close(h.release)
	}
}

// pass waits if writes of the n-th connection are held at m.
func (h *holder) pass(m moment, n int) {
	h.mu.Lock()
	held, release := h.held == m && n <= h.upTo, h.release
	if held {
		select {
		case <-h.entered:
		default:
			close(h.entered)
		}
	}
	h.mu.Unlock()
	if held {
		<-release
	}
}

// dial is for http.Transport.DialContext.
func (h *holder) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dialed++
	return &heldConn{c, h, h.dialed}, nil
}

// A heldConn is a connection of a holder.
type heldConn struct {
	net.Conn
	holder *holder
	n      int
}

// Write implements [net.Conn].
func (c *heldConn) Write(p []byte) (int, error) {
	c.holder.pass(beforeBytes, c.n)
	n, err := c.Conn.Write(p)
	c.holder.pass(afterBytes, c.n)
	return n, err
}

// A rig is a server and a transport to it whose writes can be held.
type rig struct {
	*holder
	s    *rubicontest.Server
	base *http.Transport
}

// newRig starts a server, and warms one connection to it up.
func newRig(t *testing.T, c rubicontest.Config) *rig {
	t.Helper()
	x := coldRig(t, c)
	check(t, send(t.Context(), x.base, http.MethodGet, x.s.URL+"/warm", ""), 200, nil)
	return x
}

// coldRig starts a server, and has no connection to it. Requests wait for a
// stream of the one that is made first.
func coldRig(t *testing.T, c rubicontest.Config) *rig {
	t.Helper()
	s := c.Start()
	t.Cleanup(s.Close)
	x := &rig{new(holder), s, s.Transport()}
	x.base.DialContext = x.dial
	x.base.HTTP2 = &http.HTTP2Config{StrictMaxConcurrentRequests: true}
	t.Cleanup(x.let)
	return x
}

// byPath makes a server do to a request what its path says. Others are
// answered.
func byPath(faults map[string]rubicontest.Fault) rubicontest.Config {
	return rubicontest.Config{
		Protocol: rubicontest.H2,
		Choose:   func(r rubicontest.Request) rubicontest.Fault { return faults[r.Path] },
	}
}

// saw ends all connections of the rig and returns how many requests for path
// the server saw. Whatever was on its way has arrived by then.
func (x *rig) saw(t *testing.T, path string) int {
	t.Helper()
	x.let()
	eventually(t, "the end of all connections", func() bool {
		x.base.CloseIdleConnections()
		return x.s.Counts().Open == 0
	})
	n := 0
	for _, r := range x.s.Received() {
		if r.Path == path {
			n++
		}
	}
	return n
}

// An end is a way in which a caller gives a request up.
type end struct {
	name string
	// arrange returns req with the means to end it, and what ends it.
	arrange func(req *http.Request) (*http.Request, func())
}

// ends are all such ways that net/http knows, but for http.Client.Timeout.
var ends = []end{
	{"cancel", func(req *http.Request) (*http.Request, func()) {
		ctx, cancel := context.WithCancel(req.Context())
		return req.WithContext(ctx), cancel
	}},
	{"cancel with a cause", func(req *http.Request) (*http.Request, func()) {
		ctx, cancel := context.WithCancelCause(req.Context())
		return req.WithContext(ctx), func() { cancel(&net.OpError{Op: "dial", Err: errors.New("a sibling's")}) }
	}},
	{"deadline", func(req *http.Request) (*http.Request, func()) {
		ctx := &deadlineContext{Context: req.Context(), done: make(chan struct{})}
		return req.WithContext(ctx), ctx.expire
	}},
	{"Request.Cancel", func(req *http.Request) (*http.Request, func()) {
		c := make(chan struct{})
		req = req.WithContext(req.Context())
		//lint:ignore SA1019 it is what is tested
		req.Cancel = c
		return req, func() { close(c) }
	}},
}

// A deadlineContext is a context, of a type that package context does not
// know, whose deadline passes when the test says so.
type deadlineContext struct {
	context.Context
	done    chan struct{}
	expired atomic.Bool
}

func (c *deadlineContext) Deadline() (time.Time, bool) { return time.Now().Add(time.Hour), true }
func (c *deadlineContext) Done() <-chan struct{}       { return c.done }
func (c *deadlineContext) Err() error {
	if c.expired.Load() {
		return context.DeadlineExceeded
	}
	return nil
}

func (c *deadlineContext) expire() {
	c.expired.Store(true)
	close(c.done)
}

// A trial is what became of one attempt.
type trial struct {
	err      error
	evidence rubicon.Evidence
	seen     rubicon.Seen // if it was watched
	alive    bool         // the request's own context had not ended
}

// A way makes one attempt of a request over base.
type way struct {
	name string
	try  func(base *http.Transport, req *http.Request) trial
}

// watched makes attempts through the seam. through stands before the
// transport as a base of the user's own type would; nil: nothing.
func watched(through func(http.RoundTripper) http.RoundTripper) way {
	return way{"watched", func(base *http.Transport, req *http.Request) trial {
		var rt http.RoundTripper = base
		if through != nil {
			rt = through(base)
		}
		res, seen, err := rubicon.Watch(rt, base, req)
		if err == nil {
			res.Body.Close()
			return trial{}
		}
		return trial{err, seen.Evidence(), seen, req.Context().Err() == nil}
	}}
}

// transported makes attempts as a user does.
var transported = way{"transport", func(base *http.Transport, req *http.Request) trial {
	ctx, op := rubicon.Begin(req.Context(), rubicon.Intent{Budget: rubicon.Budget{Attempts: 1}})
	defer op.End()
	res, err := (&rubicon.Transport{Base: base}).RoundTrip(req.WithContext(ctx))
	if err == nil {
		res.Body.Close()
		return trial{}
	}
	var e rubicon.Evidence
	if all := op.Attempts(); len(all) == 1 {
		e = all[0].Evidence
	} else {
		err = fmt.Errorf("%d attempts: %w", len(all), err)
	}
	return trial{err: err, evidence: e}
}}

// start makes an attempt on a goroutine of its own. What it came to is
// received from the channel.
func (w way) start(base *http.Transport, req *http.Request) <-chan trial {
	c := make(chan trial, 1)
	go func() { c <- w.try(base, req) }()
	return c
}

// A scenario forces the order of events that a proof has to survive. It makes
// an attempt of req, ends it, and returns what the attempt came to and whether
// the server saw it.
type scenario struct {
	name   string
	claims rubicon.Proof // ProofNone: nothing may be claimed
	sees   bool          // the server sees the request
	run    func(t *testing.T, w way, k shape, e end) (trial, bool)
}

// writing is where a request's goroutine is when it is about to write the
// header block, or does so.
const writing = "lientStream).encodeAndWriteHeaders"

var scenarios = []scenario{
	{
		// A peer stops reading while an upload is inside conn.Write, with the
		// write lock. A second request queues behind it, and ends.
		name: "behind a blocked writer", claims: rubicon.ProofNoPoll,
		run: func(t *testing.T, w way, k shape, e end) (trial, bool) {
			x := newRig(t, byPath(nil))
			upload, unblock := x.blockWriter(t)
			req, finish := e.arrange(k.request(t.Context(), x.s.URL+"/second"))
			got := w.start(x.base, req)
			eventually(t, "a writer at the lock", func() bool { return goroutinesIn(writing) == 1 })
			finish()
			result := <-got
			unblock()
			if err := <-upload; err != nil {
				t.Errorf("upload: %v", err)
			}
			return result, x.saw(t, "/second") > 0
		},
	},
	{
		// The same, but the second request ends inside the write of its own
		// header block: no hook has fired when RoundTrip returns.
		name: "in its own slow write", sees: true,
		run: func(t *testing.T, w way, k shape, e end) (trial, bool) {
			x := newRig(t, byPath(nil))
			entered := x.hold(beforeBytes)
			req, finish := e.arrange(k.request(t.Context(), x.s.URL+"/slow"))
			got := w.start(x.base, req)
			<-entered
			if goroutinesIn(writing) != 1 {
				t.Error("something else is being written")
			}
			finish()
			result := <-got
			return result, x.saw(t, "/slow") > 0
		},
	},
	{
		// Three requests behind one stream slot: one waits for the slot, two
		// for their turn to do so.
		name: "behind one stream slot", claims: rubicon.ProofNoPoll,
		run: func(t *testing.T, w way, k shape, e end) (trial, bool) {
			c := byPath(map[string]rubicontest.Fault{"/holder": rubicontest.Act().Stream("some").Cut(4).Stall()})
			c.MaxStreams = 1
			x := coldRig(t, c)
			holder, err := x.base.RoundTrip(shapes[1].request(t.Context(), x.s.URL+"/holder"))
			if err != nil {
				t.Fatal(err)
			}
			defer holder.Body.Close()

			var finish [3]func()
			var got [3]<-chan trial
			for i := range got {
				var req *http.Request
				req, finish[i] = e.arrange(k.request(t.Context(), x.s.URL+"/queued"))
				got[i] = w.start(x.base, req)
			}
			eventually(t, "one waits for the slot and two for their turn", func() bool {
				return goroutinesIn("lientConn).awaitOpenSlotForStreamLocked") == 1 &&
					goroutinesIn("lientStream).writeRequest") == 4
			})
			var all [3]trial
			for i := range got {
				finish[i]()
				all[i] = <-got[i]
				if all[i].evidence != all[0].evidence {
					t.Errorf("request %d: %+v, the first %+v", i, all[i].evidence, all[0].evidence)
				}
			}
			holder.Body.Close()
			return all[0], x.saw(t, "/queued") > 0
		},
	},
	{
		// The header block is out, the peer resets the stream, and the request
		// ends, all before Write has returned and told of the header block.
		name: "reset before the hook", sees: true,
		run: func(t *testing.T, w way, k shape, e end) (trial, bool) {
			return lateHook(t, w, k, e, http2.ErrCodeRefusedStream)
		},
	},
	{
		// The same with a code that net/http up to Go 1.26 takes as permission
		// to repeat: a second try begins, and ends.
		name: "PROTOCOL_ERROR before the hook", sees: true,
		run: func(t *testing.T, w way, k shape, e end) (trial, bool) {
			return lateHook(t, w, k, e, http2.ErrCodeProtocol)
		},
	},
}

// blockWriter makes an upload wait inside conn.Write of a part of its body.
// The function it returns lets it go on to its end, which is received from the
// channel.
func (x *rig) blockWriter(t *testing.T) (<-chan error, func()) {
	t.Helper()
	r, w := io.Pipe()
	req, err := http.NewRequest(http.MethodPost, x.s.URL+"/upload", r)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	before := x.s.Requests()
	go func() {
		res, err := x.base.RoundTrip(req)
		if err == nil {
			res.Body.Close()
		}
		done <- err
	}()
	arrives(t, x.s, "the upload's header", func(c rubicontest.Counts) bool { return c.Requests == before+1 })
	entered := x.hold(beforeBytes)
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		_, _ = io.WriteString(w, "part of the body")
	}()
	<-entered
	return done, func() {
		x.let()
		<-wrote
		w.Close()
	}
}

// lateHook is the scenario of a reset that arrives while Write has not
// returned.
func lateHook(t *testing.T, w way, k shape, e end, code http2.ErrCode) (trial, bool) {
	x := newRig(t, byPath(map[string]rubicontest.Fault{"/reset": rubicontest.ReadHeader().Act().ResetStream(code)}))
	entered := x.hold(afterBytes)
	req, finish := e.arrange(k.request(t.Context(), x.s.URL+"/reset"))
	got := w.start(x.base, req)
	<-entered
	eventually(t, "RoundTrip waits for its writer", func() bool { return goroutinesIn("lientConn).roundTrip.func") > 0 })
	finish()
	return <-got, x.saw(t, "/reset") > 0
}

// TestRuleP plays each forced scenario with each kind of request and each way
// to end it, as a user would and through the seam, and then shows that each
// unsound variant of the rules would have told a lie in one of them.
func TestRuleP(t *testing.T) {
	var all []finding
	for _, sc := range scenarios {
		for i, k := range shapes {
			for j, e := range ends {
				for _, w := range []way{watched(nil), transported} {
					if j != i%len(ends) && k.name != "POST" && k.name != "POST bodyless" {
						continue // two kinds meet every end, the others one each
					}
					t.Run(strings.Join([]string{sc.name, k.name, e.name, w.name}, "/"), func(t *testing.T) {
						got, saw := sc.run(t, w, k, e)
						all = append(all, finding{sc.name + ", " + k.name + ", " + e.name, got, saw, saw})
						if got.err == nil {
							t.Fatal("the attempt did not fail")
						}
						if saw != sc.sees {
							t.Errorf("the server saw the request: %v, want %v: the scenario is not what it says", saw, sc.sees)
						}
						checkClaim(t, got, sc.claims)
					})
				}
			}
		}
	}
	all = append(all, playBases(t)...)
	all = append(all, playReplays(t)...)
	t.Run("mutants", func(t *testing.T) { huntMutants(t, all) })
}

// checkClaim fails unless got is proven by want, or by nothing.
func checkClaim(t *testing.T, got trial, want rubicon.Proof) {
	t.Helper()
	e := rubicon.Evidence{Reach: rubicon.ReachSent}
	if want != rubicon.ProofNone {
		e = rubicon.Evidence{Verdict: rubicon.VerdictNotApplied, Proof: want}
	}
	if want == rubicon.ProofNoPoll && !rubicon.GateKnown {
		e = rubicon.Evidence{Reach: rubicon.ReachSent}
	}
	if got.evidence != e {
		t.Errorf("evidence %+v, want %+v (seen %+v, error %v)", got.evidence, e, got.seen, got.err)
	}
}

// below is a base that hands a context on that it derived itself.
type below struct {
	base   http.RoundTripper
	derive func(context.Context) (context.Context, context.CancelFunc)
}

// RoundTrip implements [http.RoundTripper].
func (b below) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := b.derive(req.Context())
	defer cancel()
	return b.base.RoundTrip(req.WithContext(ctx))
}

// valueKey is a context key.
type valueKey struct{}

// playBases watches attempts over bases that hand on another context than they
// were given. Rule P finds out by itself, where it is asked at all.
func playBases(t *testing.T) []finding {
	var all []finding
	for _, k := range shapes {
		// A deadline below: the attempt's context is alive, no header block
		// was told of, and the server has it.
		t.Run("deadline below/"+k.name, func(t *testing.T) {
			x := newRig(t, byPath(nil))
			expire := make(chan func(), 1)
			w := watched(func(rt http.RoundTripper) http.RoundTripper {
				return below{rt, func(ctx context.Context) (context.Context, context.CancelFunc) {
					d := &deadlineContext{Context: ctx, done: make(chan struct{})}
					expire <- d.expire
					return d, func() {}
				}}
			})
			got := x.endInWrite(t, w, k.request(t.Context(), x.s.URL+"/slow"), func() { (<-expire)() })
			saw := x.saw(t, "/slow") > 0
			all = append(all, finding{"deadline below, " + k.name, got, saw, saw})
			if !saw {
				t.Error("the scenario is not what it says: the server did not see the request")
			}
			checkClaim(t, got, rubicon.ProofNone)
		})
		// The same with a context of package context.
		t.Run("cancel below/"+k.name, func(t *testing.T) {
			x := newRig(t, byPath(nil))
			stop := make(chan func(), 1)
			w := watched(func(rt http.RoundTripper) http.RoundTripper {
				return below{rt, func(ctx context.Context) (context.Context, context.CancelFunc) {
					ctx, cancel := context.WithCancel(ctx)
					stop <- cancel
					return ctx, cancel
				}}
			})
			got := x.endInWrite(t, w, k.request(t.Context(), x.s.URL+"/slow"), func() { (<-stop)() })
			saw := x.saw(t, "/slow") > 0
			all = append(all, finding{"cancel below, " + k.name, got, saw, saw})
			checkClaim(t, got, rubicon.ProofNone)
		})
		// A value below hides nothing.
		t.Run("value below/"+k.name, func(t *testing.T) {
			w := watched(func(rt http.RoundTripper) http.RoundTripper {
				return below{rt, func(ctx context.Context) (context.Context, context.CancelFunc) {
					return context.WithValue(ctx, valueKey{}, 1), func() {}
				}}
			})
			got, saw := scenarios[0].run(t, w, k, ends[0])
			if saw {
				t.Error("the server saw the request")
			}
			checkClaim(t, got, rubicon.ProofNoPoll)
		})
		// A base that sends by a way without hooks, and then fails to dial.
		t.Run("fallback without hooks/"+k.name, func(t *testing.T) {
			s := rubicontest.NewServer(rubicontest.H1, rubicontest.Act().Close())
			defer s.Close()
			refused := rubicontest.NewRefused()
			defer refused.Close()
			base, other := s.Transport(), s.Transport()
			w := watched(func(rt http.RoundTripper) http.RoundTripper {
				return roundTripper(func(req *http.Request) (*http.Response, error) {
					hidden := req.WithContext(context.WithoutCancel(t.Context()))
					if res, err := other.RoundTrip(hidden); err == nil {
						return res, nil
					}
					req = req.Clone(req.Context())
					req.URL.Host = refused.Addr
					req.Body = http.NoBody
					return rt.RoundTrip(req)
				})
			})
			got := w.try(base, k.request(t.Context(), s.URL))
			all = append(all, finding{"fallback without hooks, " + k.name, got, s.Requests() > 0, s.Effects() > 0})
			if s.Effects() == 0 {
				t.Error("the scenario is not what it says: the server did not act")
			}
		})
	}
	return all
}

// endInWrite makes an attempt of req and calls finish while its header block
// is being written.
func (x *rig) endInWrite(t *testing.T, w way, req *http.Request, finish func()) trial {
	t.Helper()
	entered := x.hold(beforeBytes)
	got := w.start(x.base, req)
	<-entered
	finish()
	return <-got
}

// playReplays watches attempts that net/http makes more than one of.
func playReplays(t *testing.T) []finding {
	var all []finding
	get := shapes[0]
	t.Run("applied, then nobody listens", func(t *testing.T) {
		s := rubicontest.NewServer(rubicontest.H1, rubicontest.Act(), rubicontest.Act().CloseListener().Close())
		defer s.Close()
		base := s.Transport()
		check(t, send(t.Context(), base, http.MethodGet, s.URL, ""), 200, nil)
		got := watched(nil).try(base, get.request(t.Context(), s.URL))
		all = append(all, finding{"applied, then nobody listens", got, true, s.Effects() == 2})
		var op *net.OpError
		if !errors.As(got.err, &op) || op.Op != "dial" {
			t.Errorf("the scenario is not what it says: %v", got.err)
		}
		checkClaim(t, got, rubicon.ProofNone)
	})
	t.Run("applied, then refused", func(t *testing.T) {
		// On its second connection, the request is told that it was not
		// processed, in a way that net/http does not repeat.
		s := rubicontest.NewServer(rubicontest.H2, rubicontest.Act().ResetStream(http2.ErrCodeProtocol),
			rubicontest.Read().GoAwayBelow(http2.ErrCodeEnhanceYourCalm).Close())
		defer s.Close()
		base := s.Transport()
		defer base.CloseIdleConnections()
		got := watched(nil).try(base, shapes[4].request(t.Context(), s.URL))
		all = append(all, finding{"applied, then refused", got, true, s.Effects() > 0})
		checkClaim(t, got, rubicon.ProofNone)
	})
	return all
}

// A finding is what one attempt came to, and what the server knows of it.
type finding struct {
	scenario string
	trial
	saw   bool // its header block arrived
	acted bool
}

// A mutant is an unsound variant of one rule.
type mutant struct {
	name     string
	claims   func(trial) bool // that the request was not sent
	refusals bool             // it claims instead that the peer did not act
	until    int              // the Go release, 1.x, that took away what shows it; 0: none
}

var mutants = []mutant{
	{name: "no header block was told of, so none was written", claims: func(f trial) bool {
		return f.seen.GotConn > 0 && f.seen.Wrote == 0
	}},
	{name: "rule P without counting tries", claims: func(f trial) bool {
		return f.seen.GotConn > 0 && f.seen.Wrote == 0 && !f.seen.Early
	}},
	{name: "rule P without the last poll", claims: func(f trial) bool {
		return f.seen.GotConn > 0 && f.seen.Wrote == 0 && f.seen.Polls == f.seen.GotConn
	}},
	{name: "rule 2 without counting tries", claims: func(f trial) bool {
		return f.seen.GotConn > 0 && f.seen.Wrote == 0 && f.seen.Alive
	}},
	{name: "rule 2 by the context alone, without Request.Cancel", claims: func(f trial) bool {
		return f.seen.GotConn > 0 && f.seen.Wrote == 0 && f.seen.Polls == f.seen.GotConn && f.alive
	}},
	{name: "rule 1 although a connection was obtained", claims: func(f trial) bool {
		return f.seen.GetConn > 0 && f.seen.Wrote == 0
	}},
	{name: "rule 1 by the type of the error", claims: func(f trial) bool {
		var op *net.OpError
		return errors.As(f.err, &op) && op.Op == "dial"
	}},
	{name: "rule 1 over any base", claims: func(f trial) bool {
		return f.seen.GetConn > 0 && f.seen.GotConn == 0 && f.seen.Wrote == 0
	}},
	{name: "a refusal of the last of several tries", refusals: true, until: 27, claims: func(f trial) bool {
		return f.seen.Wrote >= 1 && f.seen.Refusal != rubicon.ProofNone
	}},
}

// huntMutants fails for each mutant that told no lie in all.
func huntMutants(t *testing.T, all []finding) {
	for _, m := range mutants {
		lies := slices.Collect(func(yield func(string) bool) {
			for _, f := range all {
				lie := f.saw
				if m.refusals {
					lie = f.acted
				}
				if f.seen != (rubicon.Seen{}) && lie && m.claims(f.trial) && !yield(f.scenario) {
					return
				}
			}
		})
		switch {
		case len(lies) > 0:
			t.Logf("%s: %d false proofs, one in %q", m.name, len(lies), lies[0])
		case m.until > 0 && goRelease() >= m.until:
			t.Logf("%s: Go 1.%d gives no occasion", m.name, goRelease())
		default:
			t.Errorf("%s: not caught", m.name)
		}
	}
}

// goRelease returns x of the Go release 1.x, as the build constraints know it.
func goRelease() int {
	var minor int
	if _, err := fmt.Sscanf(runtime.Version(), "go1.%d", &minor); err != nil {
		panic("no release: " + runtime.Version())
	}
	return minor
}

// TestRulePClientTimeout ends requests by http.Client.Timeout, which sets a
// deadline and Request.Cancel for a transport that it does not know.
func TestRulePClientTimeout(t *testing.T) {
	for _, k := range few {
		for _, sc := range []string{"behind a blocked writer", "in its own slow write"} {
			t.Run(sc+"/"+k.name, func(t *testing.T) {
				x := newRig(t, byPath(nil))
				blocked := sc == "behind a blocked writer"
				unblock := x.let
				var upload <-chan error
				if blocked {
					upload, unblock = x.blockWriter(t)
				} else {
					x.hold(beforeBytes)
				}
				ctx, op := begin(t, rubicon.Intent{Budget: rubicon.Budget{Attempts: 1}})
				client := &http.Client{
					Transport: &rubicon.Transport{Base: x.base},
					Timeout:   100 * time.Millisecond,
				}
				res, err := client.Do(k.request(ctx, x.s.URL+"/timed"))
				if err == nil {
					res.Body.Close()
					t.Fatal("no timeout")
				}
				unblock()
				if blocked {
					if err := <-upload; err != nil {
						t.Errorf("upload: %v", err)
					}
				}
				saw := x.saw(t, "/timed") > 0
				e := op.Attempts()[0].Evidence
				if claimed := e.Verdict == rubicon.VerdictNotApplied; claimed && saw || blocked && !claimed {
					t.Errorf("evidence %+v, server saw it: %v", e, saw)
				}
			})
		}
	}
}

// A poll is one call of Done, or another event beside it.
type poll struct {
	function string // that called Done; else what happened, in parentheses
	closed   bool   // the channel was closed by then
}

// A probe is a context that records who asks for its Done channel.
type probe struct {
	context.Context
	mu    sync.Mutex
	calls []poll
	on    func(function string) // if not nil, runs inside each call of Done
}

// Done implements [context.Context].
func (p *probe) Done() <-chan struct{} {
	function := asker()
	p.mu.Lock()
	on := p.on
	p.mu.Unlock()
	if on != nil {
		on(function)
	}
	done := p.Context.Done()
	closed := false
	select {
	case <-done:
		closed = true
	default:
	}
	p.note(poll{function, closed})
	return done
}

// note adds to the record.
func (p *probe) note(c poll) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, c)
}

// record returns what was recorded.
func (p *probe) record() []poll {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// asker returns the name of the function that asked for a Done channel, past
// this package's own.
func asker() string {
	pcs := make([]uintptr, 8)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if !strings.Contains(f.Function, "rubicon") || !more {
			return f.Function
		}
	}
}

// noteConn notes each Write in a probe.
type noteConn struct {
	net.Conn
	note func()
}

// Write implements [net.Conn].
func (c noteConn) Write(p []byte) (int, error) {
	c.note()
	return c.Conn.Write(p)
}

// TestRulePCallOrder records, for healthy HTTP/2 requests, who asks for the
// Done channel of the request's context and when, and compares that with what
// gate.go relies on.
func TestRulePCallOrder(t *testing.T) {
	for _, k := range shapes {
		t.Run(k.name, func(t *testing.T) {
			var current atomic.Pointer[probe]
			s := rubicontest.NewServer(rubicontest.H2)
			defer s.Close()
			base := s.Transport()
			base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
				return noteConn{c, func() {
					if p := current.Load(); p != nil {
						p.note(poll{function: "(write)"})
					}
				}}, err
			}
			defer base.CloseIdleConnections()
			check(t, send(t.Context(), base, http.MethodGet, s.URL+"/warm", ""), 200, nil)

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p := &probe{Context: ctx}
			current.Store(p)
			traced := httptrace.WithClientTrace(p, &httptrace.ClientTrace{
				GotConn:      func(httptrace.GotConnInfo) { p.note(poll{function: "(got)"}) },
				WroteHeaders: func() { p.note(poll{function: "(wrote)"}) },
			})
			res, err := base.RoundTrip(k.request(traced, s.URL))
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			eventually(t, "the hook", func() bool { return slices.Contains(p.record(), poll{function: "(wrote)"}) })
			checkOrder(t, p.record())
		})
	}
}

// checkOrder fails, saying what to do, unless a request that was sent asked
// for the Done channel as gate.go's proof supposes.
func checkOrder(t *testing.T, calls []poll) {
	t.Helper()
	at := func(function string) int {
		return slices.IndexFunc(calls, func(c poll) bool { return strings.HasSuffix(c.function, function) })
	}
	got, last, write, wrote := at("(got)"), at(writing), at("(write)"), at("(wrote)")
	tries, unknown := 0, 0
	for i, c := range calls {
		switch class := rubicon.PollClass(c.function); {
		case strings.HasPrefix(c.function, "("):
		case class == "try": // which may come after the writer is done
			tries++
		case class != "harmless" && got < i && i < wrote:
			unknown++
		}
	}
	fault := ""
	switch {
	case got < 0 || wrote < 0:
		fault = "the hooks GotConn and WroteHeaders did not fire"
	case last < 0:
		fault = "nothing called encodeAndWriteHeaders asked for the channel: the last poll has gone, or has another name"
	case last < got || write >= 0 && write < last || wrote < last:
		fault = "the last poll does not come between GotConn and the write"
	case tries != 1:
		fault = "ClientConn.roundTrip did not ask exactly once a try"
	case unknown != 1:
		fault = "a function that gate.go does not know asked before the header block was written, or the last poll is taken for harmless"
	}
	if fault == "" {
		return
	}
	var b strings.Builder
	for _, c := range calls {
		fmt.Fprintf(&b, "\n\t%-60s %s", c.function, rubicon.PollClass(c.function))
	}
	t.Errorf(`%s does not ask for a context's Done channel as gate.go supposes: %s.

What was seen, in order, with the class that gate.go gives it:%s

What is expected: after GotConn, one call by ClientConn.roundTrip (try) for each,
calls by clientStream.writeRequest (harmless), and exactly one by
clientStream.encodeAndWriteHeaders (last poll) under the connection's write
lock, before anything is written. Until net/http's HTTP/2 client was read anew
and classify, its comments and the proof in gate.go were brought in line with
it, exclude this release from the build constraint of gate_known.go.`, runtime.Version(), fault, b.String())
}

// TestRulePCallOrderIsLoud breaks the order in each way that checkOrder looks
// for.
func TestRulePCallOrderIsLoud(t *testing.T) {
	const pkg = "net/http.(*http2"
	good := []poll{
		{function: "(got)"}, {function: pkg + "ClientConn).roundTrip"}, {function: pkg + "clientStream).writeRequest"},
		{function: pkg + "clientStream).encodeAndWriteHeaders"}, {function: "(write)"}, {function: "(wrote)"},
	}
	without := func(i int) []poll { return slices.Delete(slices.Clone(good), i, i+1) }
	with := func(i int, c poll) []poll { return slices.Insert(slices.Clone(good), i, c) }
	if n := faultsOf(good); n != 0 {
		t.Errorf("the right order is reported")
	}
	for name, calls := range map[string][]poll{
		"no try":                without(1),
		"two tries":             with(2, good[1]),
		"no last poll":          without(3),
		"last poll after write": append(without(3)[:4:4], good[3], good[5]),
		"unknown caller":        with(2, poll{function: pkg + "clientStream).somethingNew"}),
		"renamed":               append(without(3)[:3:3], poll{function: pkg + "clientStream).writeHeaders"}, good[4], good[5]),
		"no hook":               without(5),
	} {
		if faultsOf(calls) == 0 {
			t.Errorf("%s: not reported", name)
		}
	}
}

// faultsOf returns how often checkOrder complains about calls.
func faultsOf(calls []poll) int {
	var spy testing.T
	checkOrder(&spy, calls)
	if spy.Failed() {
		return 1
	}
	return 0
}

// TestRulePLastPoll ends requests inside their last poll, and after it began:
// net/http must give up in both cases, which is what the proof rests on.
func TestRulePLastPoll(t *testing.T) {
	for _, k := range shapes {
		// The channel is closed by the time that the poll looks at it.
		t.Run("ended in the poll/"+k.name, func(t *testing.T) {
			x := newRig(t, byPath(nil))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p := &probe{Context: ctx, on: func(function string) {
				if strings.HasSuffix(function, writing) {
					cancel()
				}
			}}
			got := watched(nil).try(x.base, k.request(p, x.s.URL+"/never"))
			checkClaim(t, got, rubicon.ProofNoPoll)
			x.neverWritten(t, p)
		})
		// The attempt is over before the poll looks: the stream was aborted.
		for _, e := range ends {
			t.Run("over before the poll/"+k.name+"/"+e.name, func(t *testing.T) {
				x := newRig(t, byPath(nil))
				reached, goOn := make(chan struct{}), make(chan struct{})
				var once sync.Once
				req, finish := e.arrange(k.request(t.Context(), x.s.URL+"/never"))
				p := &probe{Context: req.Context(), on: func(function string) {
					if strings.HasSuffix(function, writing) {
						once.Do(func() { close(reached) })
						<-goOn
					}
				}}
				got := watched(nil).start(x.base, req.WithContext(p))
				<-reached
				finish()
				result := <-got
				close(goOn)
				checkClaim(t, result, rubicon.ProofNoPoll)
				x.neverWritten(t, p)
			})
		}
	}
}

// neverWritten fails if the request of p reached the server, or was never on
// its way.
func (x *rig) neverWritten(t *testing.T, p *probe) {
	t.Helper()
	eventually(t, "the last poll", func() bool {
		return slices.ContainsFunc(p.record(), func(c poll) bool { return strings.HasSuffix(c.function, writing) })
	})
	if n := x.saw(t, "/never"); n != 0 {
		t.Errorf("the server saw the request: net/http writes after a last poll that must stop it")
	}
}

// TestRulePAlive holds rule 2 on HTTP/2: a request that net/http gave up by
// itself, before it wrote the header block, while the caller still waits. The
// try asks for the channel before the writer's last poll, or after it.
func TestRulePAlive(t *testing.T) {
	const try = "lientConn).roundTrip"
	for _, k := range shapes {
		for _, last := range []string{writing, try} {
			t.Run(k.name+"/"+last+" comes last", func(t *testing.T) {
				s := rubicontest.NewServer(rubicontest.H2)
				defer s.Close()
				base := s.Transport()
				asked := make(chan struct{})
				var once sync.Once
				p := &probe{Context: t.Context(), on: func(function string) {
					switch {
					case strings.HasSuffix(function, last):
						<-asked
						if last == try {
							eventually(t, "the end of the writer", func() bool { return goroutinesIn(writing) == 0 })
						}
					case strings.HasSuffix(function, writing), strings.HasSuffix(function, try):
						once.Do(func() { close(asked) })
					}
				}}
				req := k.request(p, s.URL)
				req.Header.Set("Connection", "no field of HTTP/2") // which is found after the last poll
				got := watched(nil).try(base, req)
				if got.err == nil {
					t.Fatal("the scenario is not what it says: net/http sends it")
				}
				checkClaim(t, got, rubicon.ProofNoHeader)
				if s.Requests() != 0 {
					t.Errorf("%d requests arrived", s.Requests())
				}
			})
		}
	}
}

// TestRulePClasses holds the class of every function that calls Done, under
// the names of both places in which net/http has kept its HTTP/2 client.
func TestRulePClasses(t *testing.T) {
	const last, try, harmless = "last poll or unknown", "try", "harmless"
	for name, want := range map[string]string{
		"(*%sClientConn).roundTrip":                     try,
		"(*%sClientConn).roundTrip.func1":               harmless,
		"(*%sClientConn).roundTrip.func2.1":             harmless,
		"(*%sclientStream).writeRequest":                harmless,
		"(*%sTransport).RoundTripOpt":                   harmless,
		"(*%sclientStream).encodeAndWriteHeaders":       last,
		"(*%sclientStream).awaitFlowControl":            last,
		"(*%sclientStream).writeRequestBody":            last,
		"(*%sclientStream).somethingNew":                last,
		"(*%sClientConn).roundTripper":                  last,
		"(*%sClientConn).RoundTrip":                     last,
		"(*%sclientStream).writeRequest.func1":          last,
		"(*%sclientStream).encodeAndWriteHeaders.func1": last,
		"(*%sTransport).roundTrip":                      last,
		"%sencodeRequestHeaders":                        last,
	} {
		for prefix, bundled := range map[string]string{
			"net/http.": "http2", "net/http/internal/http2.": "",
		} {
			function := prefix + fmt.Sprintf(name, bundled)
			if got := rubicon.PollClass(function); got != want {
				t.Errorf("%s is %s, want %s", function, got, want)
			}
		}
	}
	for _, name := range []string{
		"golang.org/x/net/http2.(*ClientConn).roundTrip", "golang.org/x/net/http2.(*clientStream).writeRequest",
		"example.com/net/http.(*http2ClientConn).roundTrip", "net/httpx.(*http2ClientConn).roundTrip",
		"main.(*ClientConn).roundTrip", "contextual.(*T).Done", "a1.b2", "",
	} {
		if got := rubicon.PollClass(name); got != last {
			t.Errorf("%q is %s, want %s", name, got, last)
		}
	}
	for _, name := range []string{"context.propagateCancel", "context.(*cancelCtx).propagateCancel", "context.AfterFunc"} {
		if got := rubicon.PollClass(name); got != harmless {
			t.Errorf("%q is %s, want %s", name, got, harmless)
		}
	}
}

// TestRulePReleases holds that the two files of gateKnown divide all Go
// releases between them, and that the releases of this test run are the known
// ones.
func TestRulePReleases(t *testing.T) {
	lines := map[string]constraint.Expr{}
	for _, name := range []string{"gate_known.go", "gate_unknown.go"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(string(b), "\n")
		if lines[name], err = constraint.Parse(line); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	var known []int
	for release := 1; release <= 99; release++ {
		tags := func(tag string) bool {
			var minor int
			if _, err := fmt.Sscanf(tag, "go1.%d", &minor); err != nil {
				t.Fatalf("a tag that is no release: %s", tag)
			}
			return minor <= release
		}
		a, b := lines["gate_known.go"].Eval(tags), lines["gate_unknown.go"].Eval(tags)
		if a == b {
			t.Errorf("Go 1.%d has %s", release, map[bool]string{true: "both files", false: "neither file"}[a])
		}
		if a {
			known = append(known, release)
		}
	}
	if want := []int{26, 27}; !slices.Equal(known, want) {
		t.Errorf("rule P is admitted for the Go releases 1.%v, and TestRuleP has passed under 1.%v", known, want)
	}
	if !rubicon.GateKnown {
		t.Errorf("this is %s, under which rule P claims nothing", runtime.Version())
	}
}

// TestRulePPool holds that hooks which may still fire serve no other attempt.
// The header block of one request is told of after its attempt was over, and
// while another attempt is under way, which must not count it. The peer holds
// the write up by not reading: over a dialer of the test's own, no hooks would
// serve twice at all.
func TestRulePPool(t *testing.T) {
	refused := rubicontest.NewRefused()
	defer refused.Close()
	for range 2 { // the race detector makes sync.Pool forget at random
		s := rubicontest.NewServer(rubicontest.H2)
		defer s.Close()
		base := s.Transport()
		check(t, send(t.Context(), base, http.MethodGet, s.URL, ""), 200, nil)
		s.Freeze()
		req, finish := ends[0].arrange(shapes[1].request(t.Context(), s.URL))
		req.Header.Set("X-Long", strings.Repeat("x", 8<<20)) // more than the system takes
		got := transported.start(base, req)
		eventually(t, "a writer that waits for the peer", func() bool {
			return goroutinesIn(writing) == 1 && goroutinesIn("pollDesc).waitWrite(") == 1
		})
		finish()
		checkClaim(t, <-got, rubicon.ProofNone)

		meanwhile(t, refused.Addr, func() {
			s.Thaw()
			eventually(t, "the end of the write", func() bool { return goroutinesIn(writing) == 0 })
		})
	}
}

// TestRulePPoolReturns holds which hooks go back to the pool.
func TestRulePPoolReturns(t *testing.T) {
	for _, test := range []struct {
		got, wrote int
		back       bool
	}{
		{1, 1, true}, {2, 2, true},
		{1, 0, false}, {2, 1, false}, {3, 1, false}, // a hook may still come
		{0, 0, false}, {0, 1, false}, {1, 2, false}, // something else has called them
	} {
		if back := rubicon.Returns(test.got, test.wrote); back != test.back {
			t.Errorf("%d connections and %d header blocks: %v", test.got, test.wrote, back)
		}
	}
}

// meanwhile makes an attempt that finds nobody listening. It does what is given
// while the attempt is under way, and fails if that was counted as its own.
func meanwhile(t *testing.T, addr string, do func()) {
	t.Helper()
	base := &http.Transport{Proxy: func(*http.Request) (*url.URL, error) {
		do()
		return nil, nil
	}}
	checkClaim(t, transported.try(base, shapes[1].request(t.Context(), "http://"+addr)), rubicon.ProofNoConnection)
}

// TestRulePPoolUntrusted holds the same for a base that goes on after it has
// returned, as one that hedges does: its hooks come when they want, whether it
// had a whole exchange before or nothing.
func TestRulePPoolUntrusted(t *testing.T) {
	refused := rubicontest.NewRefused()
	defer refused.Close()
	for _, p := range []rubicontest.Protocol{rubicontest.H1, rubicontest.H2} {
		for _, exchanges := range []int{0, 1} {
			t.Run(fmt.Sprintf("%v after %d", p, exchanges), func(t *testing.T) {
				s := rubicontest.NewServer(p)
				defer s.Close()
				base := s.Transport()
				exchange := func(ctx context.Context) {
					if got := send(context.WithoutCancel(ctx), base, http.MethodGet, s.URL, ""); got.err != nil {
						t.Error(got.err)
					}
				}
				for range 5 {
					goOn, done := make(chan struct{}), make(chan struct{})
					tr := &rubicon.Transport{Base: roundTripper(func(req *http.Request) (*http.Response, error) {
						for range exchanges {
							exchange(req.Context())
						}
						go func() {
							defer close(done)
							<-goOn
							exchange(req.Context())
						}()
						return nil, errors.New("too slow")
					})}
					check(t, send(t.Context(), tr, http.MethodPost, s.URL, "{}"), 0, rubicon.ErrAmbiguous)
					meanwhile(t, refused.Addr, func() {
						close(goOn)
						<-done
					})
				}
			})
		}
	}
}

// TestRulePPoolDialer holds the same for a dialer that makes requests of its
// own with the context of a request that is over: another connection was free
// in the meantime.
func TestRulePPoolDialer(t *testing.T) {
	refused := rubicontest.NewRefused()
	defer refused.Close()
	tokens := rubicontest.NewServer(rubicontest.H1)
	defer tokens.Close()
	source := tokens.Transport()
	for range 5 {
		release, goOn, dialing, done := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
		s := rubicontest.NewServer(rubicontest.H1, rubicontest.Act().Until(release))
		defer s.Close()
		base := s.Transport()
		var dials atomic.Int32
		base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if dials.Add(1) == 1 {
				return (&net.Dialer{}).DialContext(ctx, network, addr)
			}
			defer close(done)
			close(dialing)
			<-goOn
			if got := send(context.WithoutCancel(ctx), source, http.MethodGet, tokens.URL, ""); got.err != nil {
				return nil, got.err
			}
			return nil, errors.New("no route")
		}
		first := make(chan told, 1)
		go func() { first <- send(context.Background(), base, http.MethodGet, s.URL, "") }()
		arrives(t, s, "the first", func(c rubicontest.Counts) bool { return c.Requests == 1 })
		second := make(chan told, 1)
		go func() {
			second <- send(context.Background(), &rubicon.Transport{Base: base}, http.MethodPost, s.URL, "{}")
		}()
		<-dialing
		close(release)
		check(t, <-first, 200, nil)
		check(t, <-second, 200, nil)
		meanwhile(t, refused.Addr, func() {
			close(goOn)
			<-done
		})
	}
}

// TestRulePSeesTheSend holds what the gate sees of a request that was sent.
func TestRulePSeesTheSend(t *testing.T) {
	x := newRig(t, byPath(map[string]rubicontest.Fault{"/reset": rubicontest.Act().ResetStream(http2.ErrCodeInternal)}))
	for _, k := range shapes {
		got := watched(nil).try(x.base, k.request(t.Context(), x.s.URL+"/reset"))
		want := rubicon.Seen{Trusted: true, HTTP2: true, Early: true, Alive: true, GetConn: 1, GotConn: 1, Wrote: 1, Polls: 1}
		if got.seen.GetConn == 0 {
			got.seen.GetConn = 1 // net/http may leave it out on HTTP/2
		}
		if got.seen != want {
			t.Errorf("%s: seen %+v, want %+v", k.name, got.seen, want)
		}
	}
}
