package rubicon_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// A tap dials connections, over which a test may have its own way to write,
// and counts those to its server and those that were closed.
type tap struct {
	server string
	write  atomic.Pointer[func(c net.Conn, p []byte) (int, error)]
	dialed atomic.Int32
	closed atomic.Int32
}

// dial is for http.Transport.DialContext.
func (d *tap) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if addr == d.server {
		d.dialed.Add(1)
	}
	return &tappedConn{Conn: c, tap: d}, nil
}

// A tappedConn is a connection of a tap.
type tappedConn struct {
	net.Conn
	tap  *tap
	once sync.Once
}

// Write implements [net.Conn].
func (c *tappedConn) Write(p []byte) (int, error) {
	if write := c.tap.write.Load(); write != nil {
		return (*write)(c.Conn, p)
	}
	return c.Conn.Write(p)
}

// Close implements [net.Conn].
func (c *tappedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { c.tap.closed.Add(1) })
	return err
}

// A site is a server and what reaches it.
type site struct {
	s    *rubicontest.Server
	base *http.Transport
	url  string
	*tap
	req func(*http.Request) *http.Request // what a row does to each request; nil: nothing
}

// newSite starts a server. It has no connection yet.
func newSite(t *testing.T, c rubicontest.Config) *site {
	t.Helper()
	s := c.Start()
	t.Cleanup(s.Close)
	x := &site{s: s, base: s.Transport(), url: s.URL, tap: &tap{server: s.Addr}}
	x.base.DialContext = x.dial
	return x
}

// newUnanswered returns an address that answers no SYN, where the system can
// have one.
func newUnanswered(t *testing.T) *rubicontest.Unanswered {
	t.Helper()
	u, err := rubicontest.NewUnanswered()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.Close)
	return u
}

// noConnections waits until the connections of earlier tests have ended.
func noConnections(t *testing.T) {
	t.Helper()
	eventually(t, "the end of earlier connections", func() bool { return goroutinesIn("net/http.(*persistConn).") == 0 })
}

// settle waits until whatever was on its way to the server has arrived.
func (x *site) settle(t *testing.T) {
	t.Helper()
	x.write.Store(nil)
	eventually(t, "the end of all connections", func() bool {
		x.base.CloseIdleConnections()
		n := x.s.Counts()
		return n.Open == 0 && n.Connections >= int(x.dialed.Load())
	})
}

// warm makes n idle connections to the server.
func (x *site) warm(t *testing.T, n int) {
	t.Helper()
	if n == 0 {
		return
	}
	x.base.MaxIdleConnsPerHost = n
	var all []*http.Response
	for range n {
		res, err := x.base.RoundTrip(shapes[0].request(t.Context(), x.url+"/warm"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, res)
	}
	for _, res := range all { // each held its connection until now
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
}

// closeIdle makes the server close the one connection that is idle.
func (x *site) closeIdle(t *testing.T) {
	t.Helper()
	eventually(t, "an idle connection", func() bool { return x.s.CloseIdle() == 1 })
}

// A want is what is expected of one attempt.
type want struct {
	proof    rubicon.Proof // of what did not happen; ProofNone: it may have
	requests int           // that the server saw; see anyNumber
	effects  int
	status   int // of the answer, where there is one
}

const (
	anyNumber = -1                 // of requests or effects
	anyProof  = rubicon.Proof(255) // any, as long as it is true
)

// A row of the matrix is a fault, and what is expected of each kind of request
// that meets it. The wants are looked up by the kind's name, then "bodyless"
// or "body", then "".
type row struct {
	name      string
	protocols []rubicontest.Protocol
	config    rubicontest.Config
	warm      int // idle connections, made by requests that the script has to answer
	setup     func(t *testing.T, x *site)
	slow      bool // one kind of request is enough
	bodies    bool // only requests with a body meet it
	want      map[string]want
}

// kinds returns the kinds of request that the row is played with.
func (r row) kinds() []shape {
	_, alike := r.want[""]
	switch {
	case r.slow:
		return few[1:2]
	case r.bodies:
		return shapes[1:4]
	case alike && len(r.want) == 1:
		return few
	}
	return shapes
}

// of returns what is expected of kind k.
func (r row) of(k shape) want {
	group := "bodyless"
	if k.body {
		group = "body"
	}
	for _, name := range []string{k.name, group, ""} {
		if w, ok := r.want[name]; ok {
			return w
		}
	}
	panic("no expectation for " + k.name)
}

var (
	h1only   = []rubicontest.Protocol{rubicontest.H1}
	h1both   = []rubicontest.Protocol{rubicontest.H1, rubicontest.H1TLS}
	h2only   = []rubicontest.Protocol{rubicontest.H2}
	overTLS  = []rubicontest.Protocol{rubicontest.H1TLS, rubicontest.H2}
	allThree = []rubicontest.Protocol{rubicontest.H1, rubicontest.H1TLS, rubicontest.H2}
)

// all is an expectation that every kind of request shares.
func all(w want) map[string]want { return map[string]want{"": w} }

// script is a server's script.
func script(faults ...rubicontest.Fault) rubicontest.Config {
	return rubicontest.Config{Script: faults}
}

// unconnected is what is expected where no connection was obtained.
var unconnected = all(want{proof: rubicon.ProofNoConnection})

// acted is what is expected of a request that was acted upon once, whatever
// became of its answer.
var acted = all(want{requests: 1, effects: 1})

// changed makes a row change each of its requests.
func changed(change func(*http.Request)) func(*testing.T, *site) {
	return func(_ *testing.T, x *site) {
		x.req = func(req *http.Request) *http.Request {
			change(req)
			return req
		}
	}
}

// matrix holds the faults that decide a verdict.
var matrix = []row{
	// Before there is a connection.
	{name: "no such host", protocols: allThree, want: unconnected, setup: func(t *testing.T, x *site) {
		r := rubicontest.NewResolver(rubicontest.NXDomain)
		t.Cleanup(r.Close)
		x.base.DialContext = r.DialContext
		x.url = strings.Replace(x.url, "127.0.0.1", "api.rubicon.test", 1)
	}},
	{name: "name server fails", protocols: h1only, want: unconnected, setup: func(t *testing.T, x *site) {
		r := rubicontest.NewResolver(rubicontest.ServFail)
		t.Cleanup(r.Close)
		x.base.DialContext = r.DialContext
		x.url = strings.Replace(x.url, "127.0.0.1", "api.rubicon.test", 1)
	}},
	{name: "refused", protocols: allThree, want: unconnected, setup: func(t *testing.T, x *site) {
		r := rubicontest.NewRefused()
		t.Cleanup(r.Close)
		x.url = strings.Replace(x.url, x.s.Addr, r.Addr, 1)
	}},
	{name: "never established", protocols: h1only, slow: true, want: unconnected, setup: func(t *testing.T, x *site) {
		u := newUnanswered(t)
		x.base.DialContext = (&net.Dialer{Timeout: 50 * time.Millisecond}).DialContext
		x.url = u.URL
	}},
	{name: "the dialer's own error", protocols: allThree, want: unconnected, setup: func(t *testing.T, x *site) {
		x.base.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, io.ErrUnexpectedEOF }
	}},
	{name: "ends during the dial", protocols: allThree, want: unconnected, setup: func(t *testing.T, x *site) {
		dialing := make(chan struct{})
		x.base.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			close(dialing)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		x.req = func(req *http.Request) *http.Request {
			ctx, cancel := context.WithCancel(req.Context())
			go func() {
				<-dialing
				cancel()
			}()
			return req.WithContext(ctx)
		}
	}},
	{name: "ends in the queue for a connection", protocols: h1both, want: unconnected,
		config: script(rubicontest.Read().Stream("x").Cut(1).Stall()),
		setup: func(t *testing.T, x *site) {
			x.base.MaxConnsPerHost = 1
			holder, err := x.base.RoundTrip(shapes[0].request(t.Context(), x.url+"/warm"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { holder.Body.Close() })
			x.req = func(req *http.Request) *http.Request {
				ctx, cancel := context.WithCancel(req.Context())
				go func() {
					eventually(t, "a request in the queue", func() bool { return goroutinesIn("http.(*Transport).getConn(") > 0 })
					cancel()
					holder.Body.Close()
				}()
				return req.WithContext(ctx)
			}
		}},
	{name: "unknown authority", protocols: overTLS, want: unconnected,
		config: rubicontest.Config{Accept: []rubicontest.Accept{rubicontest.UntrustedConn}}},
	{name: "wrong host", protocols: overTLS, want: unconnected,
		config: rubicontest.Config{Accept: []rubicontest.Accept{rubicontest.WrongHostConn}}},
	{name: "closed in the handshake", protocols: overTLS, want: unconnected,
		config: rubicontest.Config{Accept: []rubicontest.Accept{rubicontest.CloseConn}}},
	{name: "reset in the handshake", protocols: overTLS, want: unconnected,
		config: rubicontest.Config{Accept: []rubicontest.Accept{rubicontest.ResetConn}}},
	{name: "plain HTTP for a handshake", protocols: overTLS, want: unconnected,
		config: rubicontest.Config{Accept: []rubicontest.Accept{rubicontest.PlaintextConn}}},
	{name: "handshake without end", protocols: overTLS, slow: true, want: unconnected,
		config: rubicontest.Config{Accept: []rubicontest.Accept{rubicontest.SilentConn}},
		setup:  func(_ *testing.T, x *site) { x.base.TLSHandshakeTimeout = 50 * time.Millisecond }},
	{name: "CONNECT 503", protocols: overTLS, want: unconnected, setup: throughProxy(503)},
	{name: "CONNECT 407", protocols: overTLS, want: unconnected, setup: throughProxy(407)},
	{name: "proxy refused", protocols: allThree, want: unconnected, setup: func(t *testing.T, x *site) {
		r := rubicontest.NewRefused()
		t.Cleanup(r.Close)
		x.base.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: r.Addr})
	}},
	{name: "SOCKS proxy refused", protocols: allThree, want: unconnected, setup: func(t *testing.T, x *site) {
		r := rubicontest.NewRefused()
		t.Cleanup(r.Close)
		x.base.Proxy = http.ProxyURL(&url.URL{Scheme: "socks5", Host: r.Addr})
	}},

	// What net/http refuses by itself, before it asks for a connection, or
	// when it has one.
	{name: "invalid header", protocols: allThree, want: all(want{proof: rubicon.ProofInvalid}),
		setup: changed(func(req *http.Request) { req.Header["X y"] = []string{"z"} })},
	{name: "invalid header value", protocols: allThree, want: all(want{proof: rubicon.ProofInvalid}),
		setup: changed(func(req *http.Request) { req.Header["X"] = []string{"a\nb"} })},
	{name: "invalid trailer", protocols: allThree, want: all(want{proof: rubicon.ProofInvalid}),
		setup: changed(func(req *http.Request) { req.Trailer = http.Header{"X y": {"z"}} })},
	{name: "no host", protocols: allThree, want: all(want{proof: rubicon.ProofInvalid}),
		setup: changed(func(req *http.Request) { req.URL.Host = "" })},
	{name: "unknown scheme", protocols: allThree, want: all(want{proof: rubicon.ProofInvalid}),
		setup: changed(func(req *http.Request) { req.URL.Scheme = "gopher" })},
	{name: "control character in the URL", protocols: h1both, want: all(want{proof: rubicon.ProofNoHeader}),
		setup: changed(func(req *http.Request) { req.URL.RawQuery = "a\x01b" })},

	// HTTP/1, with a connection.
	{name: "certificate required", protocols: h1both[1:], want: all(want{proof: anyProof}),
		config: rubicontest.Config{Accept: []rubicontest.Accept{rubicontest.NeedCertConn}}},
	{name: "accepted and closed", protocols: h1only, want: all(want{proof: anyProof}),
		config: rubicontest.Config{Accept: []rubicontest.Accept{rubicontest.CloseConn}}},
	{name: "closed unread", protocols: h1both, config: script(rubicontest.Unread().Close()),
		want: all(want{proof: rubicon.ProofNone})},
	{name: "acted, closed", protocols: allThree, config: script(rubicontest.Act().Close()), want: acted},
	{name: "acted, reset", protocols: allThree, config: script(rubicontest.Act().Reset()), want: acted},
	{name: "stale, acted, closed", protocols: h1both, warm: 1,
		config: script(rubicontest.Act(), rubicontest.Act().Close()),
		want:   map[string]want{"": {requests: 1, effects: 1}, "GET": {requests: 2, effects: 2}}},
	{name: "stale, acted, reset", protocols: h1both, warm: 1,
		config: script(rubicontest.Act(), rubicontest.Act().Reset()),
		want:   map[string]want{"": {requests: 1, effects: 1}, "GET": {requests: 2, effects: 2}}},
	// O19: three idle connections, each of which acts and closes.
	{name: "three stale, acted, closed", protocols: h1both, warm: 3,
		config: script(rubicontest.Act(), rubicontest.Act(), rubicontest.Act(), rubicontest.Act().Close()),
		want:   map[string]want{"": {requests: 1, effects: 1}, "GET": {requests: 4, effects: 4}}},
	{name: "the head does not come", protocols: allThree, slow: true, config: script(rubicontest.Act().Stall()), want: acted,
		setup: func(_ *testing.T, x *site) { x.base.ResponseHeaderTimeout = 50 * time.Millisecond }},
	{name: "garbage for a head", protocols: allThree, config: script(rubicontest.Act().Raw("\x00 no protocol\r\n\r\n").Close()), want: acted},
	{name: "half a head", protocols: h1both, config: script(rubicontest.Act().Raw("HTTP/1.1 20").Close()), want: acted},
	{name: "103, closed", protocols: h1both, config: script(rubicontest.Act().Inform(103).Close()), want: acted},
	{name: "reset in the upload", protocols: allThree, bodies: true, config: script(rubicontest.ReadBody(64 << 10).Act().Reset()), want: acted,
		setup: func(_ *testing.T, x *site) { x.req = uploading }},
	{name: "the body fails", protocols: allThree, bodies: true, config: script(rubicontest.Act().Answer(200, "")),
		want:  all(want{requests: anyNumber, effects: 0}),
		setup: func(_ *testing.T, x *site) { x.req = breaking }},
	{name: "long header cut in the middle", protocols: h1only, want: all(want{proof: rubicon.ProofNoHeader}),
		setup: func(_ *testing.T, x *site) {
			x.dies(4096)
			x.req = func(req *http.Request) *http.Request {
				req.Header.Set("X-Long", strings.Repeat("x", 8<<10))
				return req
			}
		}},
	{name: "short header cut in the middle", protocols: h1only, want: all(want{}),
		setup: func(_ *testing.T, x *site) { x.dies(10) }},
	{name: "nothing can be written", protocols: h1only, want: all(want{}),
		setup: func(_ *testing.T, x *site) { x.dies(0) }},

	// HTTP/2.
	{name: "REFUSED_STREAM", protocols: h2only, config: script(rubicontest.Read().RefuseStream(), rubicontest.Act()),
		want: map[string]want{
			"body":     {proof: rubicon.ProofRefused, requests: 1},
			"bodyless": {requests: 1}, // net/http's resend is cut off, with it the word
			"GET":      {requests: 2, effects: 1, status: 200},
		}},
	{name: "GOAWAY below", protocols: h2only, config: script(rubicontest.Read().GoAwayBelow(http2.ErrCodeNo), rubicontest.Act()),
		want: map[string]want{
			"body":     {proof: rubicon.ProofGoAway, requests: 1},
			"bodyless": {requests: 1},
			"GET":      {requests: 2, effects: 1, status: 200},
		}},
	{name: "GOAWAY below with an error", protocols: h2only,
		config: script(rubicontest.Read().GoAwayBelow(http2.ErrCodeEnhanceYourCalm).Close()),
		want:   all(want{proof: rubicon.ProofGoAway, requests: 1})},
	{name: "GOAWAY above, closed", protocols: h2only,
		config: script(rubicontest.Act().GoAwayAbove(http2.ErrCodeNo).Close()), want: acted},
	{name: "GOAWAY above with an error, closed", protocols: h2only,
		config: script(rubicontest.Act().GoAwayAbove(http2.ErrCodeInternal).Close()), want: acted},
	{name: "acted, PROTOCOL_ERROR", protocols: h2only,
		config: script(rubicontest.Act().ResetStream(http2.ErrCodeProtocol), rubicontest.Act()),
		want:   map[string]want{"": {requests: 1, effects: 1}, "GET": protocolErrorGET}},
	{name: "acted, INTERNAL_ERROR", protocols: h2only, config: script(rubicontest.Act().ResetStream(http2.ErrCodeInternal)), want: acted},
	{name: "acted, NO_ERROR", protocols: h2only, config: script(rubicontest.Act().ResetStream(http2.ErrCodeNo)), want: acted},
	{name: "acted, CANCEL", protocols: h2only, config: script(rubicontest.Act().ResetStream(http2.ErrCodeCancel)), want: acted},
	{name: "acted, ENHANCE_YOUR_CALM", protocols: h2only, config: script(rubicontest.Act().ResetStream(http2.ErrCodeEnhanceYourCalm)), want: acted},
	{name: "acted, HTTP_1_1_REQUIRED", protocols: h2only, config: script(rubicontest.Act().ResetStream(http2.ErrCodeHTTP11Required)), want: acted},
	{name: "acted, STREAM_CLOSED", protocols: h2only, config: script(rubicontest.Act().ResetStream(http2.ErrCodeStreamClosed)), want: acted},
	{name: "stale, closed", protocols: h2only, warm: 1, want: all(want{proof: anyProof, requests: anyNumber, effects: anyNumber, status: anyNumber}),
		setup: func(t *testing.T, x *site) { x.closeIdle(t) }},
}

// protocolErrorGET is what a GET meets whose stream is reset with
// PROTOCOL_ERROR: up to Go 1.26 net/http repeats it.
var protocolErrorGET = func() want {
	if goRelease() < 27 {
		return want{requests: 2, effects: 2, status: 200}
	}
	return want{requests: 1, effects: 1}
}()

// throughProxy makes a row go through a proxy that refuses with status.
func throughProxy(status int) func(*testing.T, *site) {
	return func(t *testing.T, x *site) {
		p := rubicontest.NewProxy(status)
		t.Cleanup(p.Close)
		x.base.Proxy = p.Proxy
	}
}

// uploading gives req a body of 4 MiB, which can be read again if it could.
func uploading(req *http.Request) *http.Request {
	body := strings.Repeat("x", 4<<20)
	opaque := req.GetBody == nil
	next, err := http.NewRequestWithContext(req.Context(), req.Method, req.URL.String(), strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	next.Header = req.Header
	if opaque {
		next.GetBody = nil
	}
	return next
}

// errBody is what a body fails with.
var errBody = errors.New("the body's own error")

// breaking gives req a body that fails after its first bytes.
func breaking(req *http.Request) *http.Request {
	opaque := req.GetBody == nil
	req = req.Clone(req.Context())
	get := func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader("first"), failing{errBody})), nil
	}
	req.Body, _ = get()
	req.ContentLength = 100
	if !opaque {
		req.GetBody = get
	}
	return req
}

// failing is a reader that fails.
type failing struct{ err error }

// Read implements [io.Reader].
func (f failing) Read([]byte) (int, error) { return 0, f.err }

// dies makes connections fail after n bytes more.
func (x *site) dies(n int) {
	left := n
	write := func(c net.Conn, p []byte) (int, error) {
		m, _ := c.Write(p[:min(left, len(p))])
		if left -= m; m < len(p) {
			return m, io.ErrClosedPipe
		}
		return m, nil
	}
	x.write.Store(&write)
}

// TestEvidenceMatrix makes one attempt of each kind under each fault, and
// holds what the server saw, what the attempt is said to be, and that the one
// does not contradict the other.
func TestEvidenceMatrix(t *testing.T) {
	for _, r := range matrix {
		for _, p := range r.protocols {
			for _, k := range r.kinds() {
				t.Run(strings.Join([]string{r.name, p.String(), k.name}, "/"), func(t *testing.T) {
					r.play(t, p, k)
				})
			}
		}
	}
}

// play makes one attempt of kind k over p.
func (r row) play(t *testing.T, p rubicontest.Protocol, k shape) {
	c := r.config
	c.Protocol = p
	x := newSite(t, c)
	x.warm(t, r.warm)
	if r.setup != nil {
		r.setup(t, x)
	}
	before := x.s.Counts()
	ctx, op := begin(t, rubicon.Intent{Budget: rubicon.Budget{Attempts: 1}})
	req := k.request(ctx, x.url+"/")
	if x.req != nil {
		req = x.req(req)
	}
	res, err := (&rubicon.Transport{Base: x.base}).RoundTrip(req)
	status := 0
	if err == nil {
		status = res.StatusCode
		res.Body.Close()
	}
	x.settle(t)
	now := x.s.Counts()
	r.judge(t, k, op, status, err, now.Requests-before.Requests, now.Effects-before.Effects)
}

// judge compares what happened with what was expected, and what was claimed
// with the truth.
func (r row) judge(t *testing.T, k shape, op *rubicon.Operation, status int, err error, requests, effects int) {
	t.Helper()
	w := r.of(k)
	attempts := op.Attempts()
	if len(attempts) != 1 {
		t.Fatalf("%d attempts (%v)", len(attempts), err)
	}
	a := attempts[0]
	if err == nil != (w.status != 0) && w.status != anyNumber || w.status > 0 && status != w.status {
		t.Errorf("told %d %v, want status %d", status, err, w.status)
	}
	if w.requests != anyNumber && requests != w.requests || w.effects != anyNumber && effects != w.effects {
		t.Errorf("the server saw %d requests and acted %d times, want %d and %d (%v)", requests, effects, w.requests, w.effects, err)
	}
	checkTruth(t, a.Evidence, requests, effects)
	// A try that found its connection gone may count, though nothing arrived.
	if k.safe() && requests > 0 && (a.Resends < requests-1 || a.Resends > requests-1 && w.requests != anyNumber) {
		t.Errorf("%d resends told, the server saw %d requests", a.Resends, requests)
	}
	want := rubicon.Evidence{Reach: rubicon.ReachSent}
	switch w.proof {
	case rubicon.ProofNone:
	case rubicon.ProofRefused, rubicon.ProofGoAway:
		want = rubicon.Evidence{Reach: rubicon.ReachSent, Verdict: rubicon.VerdictNotApplied, Proof: w.proof}
	default:
		want = rubicon.Evidence{Verdict: rubicon.VerdictNotApplied, Proof: w.proof}
	}
	if err != nil && w.proof != anyProof && a.Evidence != want {
		t.Errorf("evidence %+v, want %+v (%v)", a.Evidence, want, err)
	}
}

// checkTruth fails if e claims of an attempt what the server knows better.
func checkTruth(t *testing.T, e rubicon.Evidence, requests, effects int) {
	t.Helper()
	if e.Verdict != rubicon.VerdictNotApplied {
		return
	}
	refused := e.Proof == rubicon.ProofRefused || e.Proof == rubicon.ProofGoAway
	if effects > 0 || requests > 0 && !refused {
		t.Errorf("FALSE PROOF %q: the server saw %d requests and acted %d times", e.Proof, requests, effects)
	}
	if refused != (e.Reach == rubicon.ReachSent) {
		t.Errorf("proof %q with reach %v", e.Proof, e.Reach)
	}
}

// TestEvidenceNotCalled: a request whose context has ended is not handed to
// Base, and nothing is left in flight.
func TestEvidenceNotCalled(t *testing.T) {
	for _, k := range shapes {
		for _, named := range []bool{false, true} {
			called := 0
			tr := &rubicon.Transport{Base: roundTripper(func(*http.Request) (*http.Response, error) {
				called++
				return nil, errors.New("called")
			})}
			in := rubicon.Intent{}
			if named {
				in.Key.Name = t.Name() + k.name
			}
			ctx, op := begin(t, in)
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			_, err := tr.RoundTrip(k.request(ctx, "http://127.0.0.1:1/"))
			if called != 0 || !errors.Is(err, context.Canceled) || op.Outcome() != rubicon.Unsent {
				t.Errorf("%s: called %d times, %v, %v", k.name, called, op.Outcome(), err)
			}
		}
	}
}

// TestEvidenceO1Timeouts: two timeouts look the same. Which of them may be
// sent again is a matter of what the attempt did.
//
// O1: golang/go#44844.
func TestEvidenceO1Timeouts(t *testing.T) {
	attempt := func(t *testing.T, base *http.Transport, url string, limit time.Duration) []rubicon.Attempt {
		tr := &rubicon.Transport{Base: base, Backoff: quick, Stall: rubicon.Stall{Head: limit}}
		ctx, op := begin(t, rubicon.Intent{Budget: rubicon.Budget{Attempts: 2}})
		got := send(ctx, tr, http.MethodPost, url, "{}")
		if !errors.Is(got.err, rubicon.ErrStalled) {
			t.Errorf("told %+v, want the limit", got)
		}
		return op.Attempts()
	}
	unsent := func(t *testing.T, all []rubicon.Attempt) {
		if len(all) != 2 || all[0].Proof != rubicon.ProofNoConnection || all[1].Proof != rubicon.ProofNoConnection {
			t.Errorf("%+v, want two attempts that were not sent", all)
		}
	}
	t.Run("no handshake of TCP", func(t *testing.T) {
		u := newUnanswered(t)
		base := &http.Transport{DialContext: (&net.Dialer{Timeout: 2 * time.Second}).DialContext}
		unsent(t, attempt(t, base, u.URL, 50*time.Millisecond))
	})
	t.Run("no handshake of TLS", func(t *testing.T) {
		s := rubicontest.Config{Protocol: rubicontest.H1TLS, Accept: []rubicontest.Accept{rubicontest.SilentConn}}.Start()
		defer s.Close()
		unsent(t, attempt(t, s.Transport(), s.URL, 50*time.Millisecond))
		if s.Requests() != 0 {
			t.Errorf("%d requests", s.Requests())
		}
	})
	t.Run("no answer", func(t *testing.T) {
		s := rubicontest.NewServer(rubicontest.H1, rubicontest.Act().Stall())
		defer s.Close()
		all := attempt(t, s.Transport(), s.URL, 400*time.Millisecond)
		if len(all) != 1 || !all[0].Ambiguous() {
			t.Errorf("%+v, want one attempt that may have acted", all)
		}
		wantCounts(t, s, 1, 1)
	})
}

// O2: golang/go#22158, variant A: the connection is closed before the request
// is written, which is stopped there. The caller's own hook waits until
// net/http has noticed. The other half of that race, where the bytes of the
// request are in the system's hands, is ambiguous by nature: TestTrap19.
func TestEvidenceO2ClosedBeforeTheWrite(t *testing.T) {
	for _, p := range h1both {
		for _, k := range shapes {
			t.Run(p.String()+"/"+k.name, func(t *testing.T) {
				noConnections(t)
				x := newSite(t, rubicontest.Config{Protocol: p})
				x.warm(t, 1)
				ctx, op := begin(t, rubicon.Intent{Budget: rubicon.Budget{Attempts: 2}})
				var first sync.Once
				ctx = onGotConn(ctx, func() {
					first.Do(func() {
						x.closeIdle(t)
						eventually(t, "net/http notices", func() bool { return goroutinesIn("persistConn).writeLoop(") == 0 })
					})
				})
				req := k.request(ctx, x.url)
				res, err := (&rubicon.Transport{Base: x.base, Backoff: quick}).RoundTrip(req)
				if k.opaque {
					x.notRewindable(t, op, err)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				if res.StatusCode != 200 {
					t.Errorf("told %d", res.StatusCode)
				}
				wantCounts(t, x.s, 2, 2) // the warm-up and the request
				all := op.Attempts()
				if k.safe() {
					return // net/http itself sends it again
				}
				want := rubicon.Evidence{Verdict: rubicon.VerdictNotApplied, Proof: rubicon.ProofNoHeader}
				if len(all) != 2 || all[0].Evidence != want || all[1].Reason != rubicon.ReasonSend {
					t.Errorf("%+v, want one that was proven not sent, and one more", all)
				}
			})
		}
	}
}

// notRewindable fails unless the one attempt of op was proven not sent and err
// says that its body can't be sent again.
func (x *site) notRewindable(t *testing.T, op *rubicon.Operation, err error) {
	t.Helper()
	all := op.Attempts()
	if len(all) != 1 || all[0].Proof != rubicon.ProofNoHeader || !errors.Is(err, rubicon.ErrNotRewindable) {
		t.Errorf("%+v, %v", all, err)
	}
	if errors.Is(err, rubicon.ErrAmbiguous) {
		t.Errorf("what was not sent is ambiguous: %v", err)
	}
	wantCounts(t, x.s, 1, 1)
}

// O2, variant B: the server reads the second request and closes without an
// answer.
func TestEvidenceO2ClosedAfterTheRead(t *testing.T) {
	for _, k := range shapes {
		t.Run(k.name, func(t *testing.T) {
			x := newSite(t, script(rubicontest.Act(), rubicontest.Act().Close(), rubicontest.Act().Close(), rubicontest.Act()))
			x.warm(t, 1)
			ctx, op := begin(t, rubicon.Intent{Budget: rubicon.Budget{Attempts: 2}})
			got := sendRequest(&rubicon.Transport{Base: x.base, Backoff: quick}, k.request(ctx, x.url))
			switch {
			case k.safe(): // sent twice by net/http, which spends the budget
				check(t, got, 0, rubicon.ErrBudget)
				wantCounts(t, x.s, 3, 3)
			case k.method == http.MethodDelete: // idempotent
				check(t, got, 0, rubicon.ErrBudget)
				wantCounts(t, x.s, 3, 3)
			default:
				check(t, got, 0, rubicon.ErrAmbiguous)
				wantCounts(t, x.s, 2, 2)
			}
			if op.Outcome() != rubicon.Ambiguous {
				t.Errorf("outcome %v", op.Outcome())
			}
		})
	}
}

// O27: golang/go#62450. Each connection takes one stream and refuses the
// others, so that most of the requests have to be sent again.
func TestEvidenceO27HiddenReader(t *testing.T) {
	play := func(t *testing.T, k shape, n int) (all []told) {
		s := rubicontest.Config{Protocol: rubicontest.H2, StreamsPerConn: 1}.Start()
		t.Cleanup(s.Close)
		tr := &rubicon.Transport{Base: s.Transport(), Backoff: quick, Budget: rubicon.Budget{Attempts: 60, Sends: 60}}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				req := k.request(t.Context(), s.URL)
				req.Close = true
				got := sendRequest(tr, req)
				mu.Lock()
				defer mu.Unlock()
				all = append(all, got)
			})
		}
		wg.Wait()
		if ok := count(all, func(g told) bool { return g.status == 200 }); ok != s.Effects() {
			t.Errorf("%d were told of success, the server acted %d times", ok, s.Effects())
		}
		return all
	}
	t.Run("with GetBody", func(t *testing.T) {
		for _, got := range play(t, shapes[1], 30) {
			check(t, got, 200, nil)
		}
	})
	t.Run("hidden", func(t *testing.T) {
		for _, got := range play(t, shapes[2], 15) {
			if got.err == nil {
				continue
			}
			e, ok := errors.AsType[*rubicon.Error](got.err)
			if !ok || !errors.Is(got.err, rubicon.ErrNotRewindable) || e.Outcome != rubicon.Refused && e.Outcome != rubicon.Unsent {
				t.Errorf("told %v, want that the body can't be sent again, and that nothing was applied", got.err)
			}
		}
	})
}

// TestEvidenceUntouchedBody: a connection that goes away while a request waits
// for a stream of it. Nothing was written of the request. net/http gives up,
// since it has closed the body, and we send it again.
func TestEvidenceUntouchedBody(t *testing.T) {
	for _, k := range shapes {
		t.Run(k.name, func(t *testing.T) {
			goAway := make(chan struct{})
			c := byPath(map[string]rubicontest.Fault{
				"/holder": rubicontest.Act().Stream("some").Cut(4).Until(goAway).GoAwayAbove(http2.ErrCodeNo).End(),
			})
			c.MaxStreams = 1
			x := coldRig(t, c)
			holder, err := x.base.RoundTrip(shapes[1].request(t.Context(), x.s.URL+"/holder"))
			if err != nil {
				t.Fatal(err)
			}
			defer holder.Body.Close()
			ctx, op := begin(t, rubicon.Intent{Budget: rubicon.Budget{Attempts: 2}})
			got := x.begin(k.request(ctx, x.s.URL+"/queued"))
			eventually(t, "a request that waits for a stream", func() bool {
				return goroutinesIn("lientConn).awaitOpenSlotForStreamLocked") == 1
			})
			close(goAway)
			if _, err := io.Copy(io.Discard, holder.Body); err != nil {
				t.Error(err)
			}
			if !k.opaque {
				check(t, <-got, 200, nil)
				x.wantOnce(t, k, op)
				return
			}
			check(t, <-got, 0, rubicon.ErrNotRewindable)
			if n := x.saw(t, "/queued"); n != 0 || op.Outcome() != rubicon.Unsent {
				t.Errorf("the server saw it %d times, outcome %v", n, op.Outcome())
			}
		})
	}
}

// TestEvidenceUntouchedBodyElsewhere: the same, where net/http has another
// connection at hand. It sends the request there, with the body that it has
// closed and not read, as it does without us.
func TestEvidenceUntouchedBodyElsewhere(t *testing.T) {
	for _, k := range shapes {
		t.Run(k.name, func(t *testing.T) {
			c := byPath(nil)
			c.MaxStreams = 3
			x := coldRig(t, c)
			x.base = x.lax(t)
			waiting := func(n int) {
				t.Helper()
				eventually(t, fmt.Sprintf("%d requests on their way", n), func() bool { return goroutinesIn("lientStream).writeRequest") == n })
			}
			entered := x.hold(beforeBytes)
			slow := x.begin(shapes[0].request(t.Context(), x.s.URL+"/slow"))
			<-entered
			last := shapes[0].request(t.Context(), x.s.URL+"/last") // of its connection
			last.Close = true
			closing := x.begin(last)
			waiting(2)
			ctx, op := begin(t, rubicon.Intent{Budget: rubicon.Budget{Attempts: 1}})
			got := x.begin(k.request(ctx, x.s.URL+"/queued"))
			waiting(3)
			check(t, <-x.begin(shapes[0].request(t.Context(), x.s.URL+"/elsewhere")), 200, nil)
			x.let()
			check(t, <-slow, 200, nil)
			check(t, <-closing, 200, nil)
			check(t, <-got, 200, nil)
			x.wantOnce(t, k, op)
		})
	}
}

// lax returns a transport, with one warm connection, that makes another where
// all streams are taken.
func (x *rig) lax(t *testing.T) *http.Transport {
	t.Helper()
	base := x.s.Transport()
	base.DialContext = x.dial
	check(t, send(t.Context(), base, http.MethodGet, x.s.URL+"/warm", ""), 200, nil)
	return base
}

// begin sends req as a user does.
func (x *rig) begin(req *http.Request) <-chan told {
	got := make(chan told, 1)
	go func() { got <- sendRequest(&rubicon.Transport{Base: x.base, Backoff: quick}, req) }()
	return got
}

// wantOnce fails unless the server saw a queued request of kind k once, whole.
func (x *rig) wantOnce(t *testing.T, k shape, op *rubicon.Operation) {
	t.Helper()
	if n := x.saw(t, "/queued"); n != 1 || op.Outcome() != rubicon.Succeeded {
		t.Errorf("the server saw it %d times, outcome %v", n, op.Outcome())
	}
	for _, r := range x.s.Received() {
		if r.Path == "/queued" && k.body != (len(r.Body) > 0) {
			t.Errorf("the server was given %q", r.Body)
		}
	}
}

// count returns how many of list are as is says.
func count[T any](list []T, is func(T) bool) int {
	n := 0
	for _, v := range list {
		if is(v) {
			n++
		}
	}
	return n
}

// O35: kubernetes/kubernetes#117251. The connection dies without a word after
// the request: ambiguous for what may have acted, and it is not used again.
func TestEvidenceO35ConnectionLost(t *testing.T) {
	var gets atomic.Int32
	s := rubicontest.Config{Protocol: rubicontest.H2, Choose: func(r rubicontest.Request) rubicontest.Fault {
		switch {
		case r.Path == "/lost":
			return rubicontest.Act().Freeze()
		case r.Path == "/get" && gets.Add(1) == 1:
			return rubicontest.Read().Stall()
		}
		return rubicontest.Act()
	}}.Start()
	defer s.Close()
	base := s.Transport()
	base.HTTP2 = &http.HTTP2Config{SendPingTimeout: 100 * time.Millisecond, PingTimeout: 300 * time.Millisecond}
	tr := &rubicon.Transport{Base: base, Backoff: quick, Budget: rubicon.Budget{Attempts: 2}}
	check(t, send(t.Context(), tr, http.MethodGet, s.URL+"/warm", ""), 200, nil)

	get := make(chan told, 1)
	go func() { get <- send(t.Context(), tr, http.MethodGet, s.URL+"/get", "") }()
	arrives(t, s, "the GET", func(c rubicontest.Counts) bool { return c.Requests == 2 })
	ctx, op := begin(t, rubicon.Intent{})
	got := send(ctx, tr, http.MethodPost, s.URL+"/lost", "{}")
	check(t, got, 0, rubicon.ErrAmbiguous)
	if all := op.Attempts(); len(all) != 1 || !all[0].Ambiguous() {
		t.Errorf("%+v", all)
	}
	check(t, <-get, 200, nil)
	check(t, send(t.Context(), tr, http.MethodPost, s.URL+"/next", "{}"), 200, nil)
	lost := 0
	for _, r := range s.Received() {
		if r.Path == "/lost" {
			lost++
		} else if r.Path == "/next" && r.Conn == 1 {
			t.Error("the dead connection was used again")
		}
	}
	if lost != 1 {
		t.Errorf("the POST arrived %d times", lost)
	}
}

// O32: golang/go#30560. A proxy that refuses a tunnel: nothing was sent, 503
// may pass, 407 does not.
func TestEvidenceO32ProxyRefuses(t *testing.T) {
	for _, test := range []struct {
		statuses []int
		status   int // that the caller is told
		connects int
		refused  int // status of the refusal, in the error
	}{
		{[]int{503, 200}, 200, 2, 0},
		{[]int{502, 504, 200}, 200, 3, 0},
		{[]int{407}, 0, 1, 407},
		{[]int{403}, 0, 1, 403},
		{[]int{503}, 0, 3, 503},
	} {
		t.Run(fmt.Sprint(test.statuses), func(t *testing.T) {
			s := rubicontest.NewServer(rubicontest.H1TLS)
			defer s.Close()
			p := rubicontest.NewProxy(test.statuses...)
			defer p.Close()
			base := s.Transport()
			defer base.CloseIdleConnections()
			base.Proxy, base.OnProxyConnectResponse = p.Proxy, rubicon.ProxyConnectResponse
			ctx, op := begin(t, rubicon.Intent{Budget: rubicon.Budget{Attempts: 3}})
			got := send(ctx, &rubicon.Transport{Base: base, Backoff: quick}, http.MethodPost, s.URL, "{}")
			if got.status != test.status || p.Connects() != test.connects {
				t.Errorf("told %d %v after %d CONNECTs, want %d after %d", got.status, got.err, p.Connects(), test.status, test.connects)
			}
			if test.refused == 0 {
				wantCounts(t, s, 1, 1)
				return
			}
			wantCounts(t, s, 0, 0)
			if e, ok := errors.AsType[*rubicon.ProxyError](got.err); !ok || e.Status != test.refused {
				t.Errorf("told %v, want the proxy's %d", got.err, test.refused)
			}
			if op.Outcome() != rubicon.Unsent {
				t.Errorf("outcome %v", op.Outcome())
			}
		})
	}
}

// TestEvidenceTLSConnOfOwnType: a connection from DialTLSContext that is not a
// *tls.Conn and says that it speaks HTTP/2. From Go 1.27 on it does, and what
// proves nothing on HTTP/2 must not be taken for proof on HTTP/1.
func TestEvidenceTLSConnOfOwnType(t *testing.T) {
	for _, k := range shapes {
		t.Run(k.name, func(t *testing.T) {
			x := coldRig(t, byPath(nil))
			config := &tls.Config{RootCAs: x.s.RootCAs(), NextProtos: []string{"h2"}}
			x.base.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := x.dial(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				config := config.Clone()
				config.ServerName, _, _ = net.SplitHostPort(addr)
				secure := tls.Client(c, config)
				return ownConn{secure, secure.ConnectionState}, secure.HandshakeContext(ctx)
			}
			if got := send(t.Context(), x.base, http.MethodGet, x.s.URL+"/warm", ""); got.err != nil {
				if goRelease() >= 27 {
					t.Fatal(got.err)
				}
				t.Skip("HTTP/2 needs a *tls.Conn")
			}
			req, finish := ends[0].arrange(k.request(t.Context(), x.s.URL+"/slow"))
			got := x.endInWrite(t, transported, req, finish)
			if n := x.saw(t, "/slow"); n != 1 {
				t.Errorf("the server saw it %d times", n)
			}
			checkClaim(t, got, rubicon.ProofNone)
		})
	}
}

// An ownConn is a connection over TLS that is not a *tls.Conn.
type ownConn struct {
	net.Conn
	state func() tls.ConnectionState
}

// ConnectionState tells net/http what was negotiated.
func (c ownConn) ConnectionState() tls.ConnectionState { return c.state() }

// TestEvidenceBodyErrorIsNoRefusal: what a request's body failed with is not
// the peer's word about this request, however it reads.
func TestEvidenceBodyErrorIsNoRefusal(t *testing.T) {
	for name, cause := range refusals(t) {
		for _, p := range allThree {
			t.Run(p.String()+"/"+name, func(t *testing.T) {
				x := newSite(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{rubicontest.ReadBody(4).Act().Stall()}})
				r, w := io.Pipe()
				go func() {
					_, _ = io.WriteString(w, "some of the body")
					_ = x.s.Await(t.Context(), func(c rubicontest.Counts) bool { return c.Effects == 1 })
					w.CloseWithError(cause)
				}()
				ctx, op := begin(t, rubicon.Intent{Budget: rubicon.Budget{Attempts: 1}})
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.url, r)
				if err != nil {
					t.Fatal(err)
				}
				if _, err = (&rubicon.Transport{Base: x.base}).RoundTrip(req); err == nil {
					t.Fatal("no error")
				}
				checkTruth(t, op.Attempts()[0].Evidence, x.s.Requests(), x.s.Effects())
				if op.Outcome() != rubicon.Ambiguous {
					t.Errorf("outcome %v, want ambiguous (%v)", op.Outcome(), err)
				}
			})
		}
	}
}

// refusals returns errors with which net/http tells of refusals: of other
// requests.
func refusals(t *testing.T) map[string]error {
	t.Helper()
	s := rubicontest.NewServer(rubicontest.H2,
		rubicontest.Act().Answer(200, "abcdef").Cut(3).RefuseStream(),
		rubicontest.Read().RefuseStream(),
		rubicontest.Read().GoAwayBelow(http2.ErrCodeNo).Close())
	defer s.Close()
	base := s.Transport()
	res, err := base.RoundTrip(shapes[0].request(t.Context(), s.URL))
	if err != nil {
		t.Fatal(err)
	}
	_, typed := io.ReadAll(res.Body)
	res.Body.Close()
	_, text := base.RoundTrip(shapes[2].request(t.Context(), s.URL))
	_, goAway := base.RoundTrip(shapes[2].request(t.Context(), s.URL))
	base.CloseIdleConnections()
	all := map[string]error{
		"typed": typed, "wrapped": fmt.Errorf("upstream: %w", typed), "in a url.Error": &url.Error{Op: "Post", URL: s.URL, Err: typed},
		"text": text, "goaway": goAway,
		"goaway code": errors.New("http2: Transport received GOAWAY from server ErrCode:ENHANCE_YOUR_CALM"),
	}
	for name, err := range all {
		if err == nil || !strings.Contains(err.Error(), "REFUSED_STREAM") && !strings.Contains(err.Error(), "GOAWAY") {
			t.Fatalf("%s: not what it should be: %v", name, err)
		}
	}
	return all
}

// TestEvidenceDialErrorIsNoRefusal: nor is what a dialer said, after another
// try of the request may have acted.
func TestEvidenceDialErrorIsNoRefusal(t *testing.T) {
	for name, cause := range refusals(t) {
		for _, k := range []shape{shapes[0], shapes[4], shapes[5]} {
			t.Run(k.name+"/"+name, func(t *testing.T) {
				x := newSite(t, rubicontest.Config{Protocol: rubicontest.H2,
					Script: []rubicontest.Fault{rubicontest.Act().ResetStream(http2.ErrCodeProtocol)}})
				var dials atomic.Int32
				x.base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
					if dials.Add(1) > 1 {
						return nil, cause
					}
					return x.dial(ctx, network, addr)
				}
				ctx, op := begin(t, rubicon.Intent{Budget: rubicon.Budget{Attempts: 1}})
				_, err := (&rubicon.Transport{Base: x.base}).RoundTrip(k.request(ctx, x.url))
				if err == nil {
					t.Fatal("no error")
				}
				x.settle(t)
				checkTruth(t, op.Attempts()[0].Evidence, x.s.Requests(), x.s.Effects())
				if op.Outcome() != rubicon.Ambiguous {
					t.Errorf("outcome %v, want ambiguous (%v)", op.Outcome(), err)
				}
			})
		}
	}
}

// TestEvidenceAlgorithm holds the order and the conditions of the rules, one
// observation at a time: the smallest that proves, and each that lacks one of
// its conditions.
func TestEvidenceAlgorithm(t *testing.T) {
	type seen = rubicon.Seen
	sent := rubicon.Evidence{Reach: rubicon.ReachSent}
	not := func(p rubicon.Proof) rubicon.Evidence {
		return rubicon.Evidence{Verdict: rubicon.VerdictNotApplied, Proof: p}
	}
	refused := rubicon.Evidence{Reach: rubicon.ReachSent, Verdict: rubicon.VerdictNotApplied, Proof: rubicon.ProofRefused}
	for _, test := range []struct {
		name  string
		seen  seen
		want  rubicon.Evidence
		lacks map[string]func(*seen) // each takes the proof away
	}{
		{"rule 1", seen{Trusted: true, GetConn: 2}, not(rubicon.ProofNoConnection), map[string]func(*seen){
			"trust": func(s *seen) { s.Trusted = false }, "GetConn": func(s *seen) { s.GetConn = 0 },
			"no header": func(s *seen) { s.Wrote = 1 }, "no cut": func(s *seen) { s.Cut = true },
			"no connection": func(s *seen) { s.GotConn, s.HTTP2 = 1, true },
		}},
		{"HTTP/1", seen{Trusted: true, GetConn: 1, GotConn: 1}, not(rubicon.ProofNoHeader), map[string]func(*seen){
			"trust": func(s *seen) { s.Trusted = false }, "no header": func(s *seen) { s.Wrote = 1 },
			"HTTP/1": func(s *seen) { s.HTTP2 = true }, "no cut": func(s *seen) { s.Cut = true },
		}},
		{"rule 2", seen{Trusted: true, GetConn: 2, GotConn: 2, HTTP2: true, Alive: true, Early: true, Polls: 2},
			not(rubicon.ProofNoHeader), map[string]func(*seen){
				"trust": func(s *seen) { s.Trusted = false }, "no header": func(s *seen) { s.Wrote = 1 },
				"alive": func(s *seen) { s.Alive = false }, "every try": func(s *seen) { s.Polls = 1 },
			}},
		{"rule P", seen{Trusted: true, GetConn: 2, GotConn: 2, HTTP2: true, Polls: 2},
			not(rubicon.ProofNoPoll), map[string]func(*seen){
				"trust": func(s *seen) { s.Trusted = false }, "no header": func(s *seen) { s.Wrote = 1 },
				"no early poll": func(s *seen) { s.Early = true }, "every try": func(s *seen) { s.Polls = 1 },
				"no more": func(s *seen) { s.Polls = 3 },
			}},
		{"refusal", seen{Trusted: true, GetConn: 1, GotConn: 1, Wrote: 1, HTTP2: true, Alive: true, Early: true, Polls: 1, Refusal: rubicon.ProofRefused},
			refused, map[string]func(*seen){
				"trust": func(s *seen) { s.Trusted = false }, "one header": func(s *seen) { s.Wrote, s.GetConn, s.GotConn, s.Polls = 2, 2, 2, 2 },
				"HTTP/2": func(s *seen) { s.HTTP2 = false }, "alive": func(s *seen) { s.Alive = false },
				"no cut": func(s *seen) { s.Cut = true }, "the word": func(s *seen) { s.Refusal = rubicon.ProofNone },
				"every connection": func(s *seen) { s.GetConn = 2 },
			}},
		{"invalid", seen{Trusted: true, Invalid: true}, not(rubicon.ProofInvalid), map[string]func(*seen){
			"trust": func(s *seen) { s.Trusted = false }, "invalid": func(s *seen) { s.Invalid = false },
			"no header": func(s *seen) { s.Wrote = 1 },
		}},
	} {
		if got := test.seen.Evidence(); got != test.want {
			t.Errorf("%s: %+v is %+v, want %+v", test.name, test.seen, got, test.want)
		}
		for what, take := range test.lacks {
			s := test.seen
			take(&s)
			if got := s.Evidence(); got != sent {
				t.Errorf("%s without %q: %+v is %+v, want nothing proven", test.name, what, s, got)
			}
		}
	}
	if got := (seen{}).Evidence(); got != sent {
		t.Errorf("nothing seen is %+v", got)
	}
}
