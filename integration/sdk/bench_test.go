package sdk

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// patience is how long anything may take. It is far more than anything needs.
const patience = time.Minute

// pause is how long loops wait that can be told to.
const pause = 2 * time.Millisecond

// A bench is what one client stands on: a server that plays a script, and the
// way to it. The server has the name that the client's provider has, so that
// presets know it.
type bench struct {
	t      *testing.T
	client *client
	server *rubicontest.Server
	base   *http.Transport
	call   call

	dials  atomic.Int64                                // connections that were asked for
	served atomic.Int64                                // of those, the ones that led to the server
	calls  atomic.Int64                                // RoundTrips that reached the transport under test
	aside  func(rubicontest.Request) rubicontest.Fault // for requests that are not the call's

	mu     sync.Mutex
	script []rubicontest.Fault // for the call's requests; the last repeats
	line   int                 // of the script, next
	refuse int                 // how many of the next dials are refused
	opened bool                // requests are the call's from now on
}

// A stack is what carries the requests of an SDK.
type stack func(*bench) http.RoundTripper

// plain is net/http as it is.
func plain(b *bench) http.RoundTripper { return b.base }

// proving is Rubicon as it is, but for shorter waits.
func proving(b *bench) http.RoundTripper {
	return &rubicon.Transport{
		Base:    b.base,
		Backoff: func() backoff.BackOff { return backoff.NewConstantBackOff(pause) },
	}
}

// bare is the zero Transport.
func bare(b *bench) http.RoundTripper { return &rubicon.Transport{Base: b.base} }

// under puts go-retryablehttp over s, as it is but for shorter waits.
func under(s stack) stack {
	return func(b *bench) http.RoundTripper {
		c := newRetryable(&http.Client{Transport: &counter{s(b), b}})
		return &retryablehttp.RoundTripper{Client: c}
	}
}

// obeying puts a go-retryablehttp client over Rubicon that asks it before it
// goes on.
func obeying(b *bench) http.RoundTripper {
	c := rubicon.NewRetryableClient(nil)
	c.HTTPClient = &http.Client{Transport: &counter{proving(b), b}}
	c.RetryWaitMin, c.RetryWaitMax = pause/2, pause
	return &retryablehttp.RoundTripper{Client: c}
}

// newRetryable returns a go-retryablehttp client over hc that waits no longer
// than it must.
func newRetryable(hc *http.Client) *retryablehttp.Client {
	c := retryablehttp.NewClient()
	c.Logger = nil
	c.HTTPClient = hc
	c.RetryWaitMin, c.RetryWaitMax = pause/2, pause
	return c
}

// A counter counts the RoundTrips of a bench's call.
type counter struct {
	next  http.RoundTripper
	bench *bench
}

// RoundTrip implements [http.RoundTripper].
func (c *counter) RoundTrip(req *http.Request) (*http.Response, error) {
	if isNotification(req) {
		req = req.Clone(req.Context())
		req.Header.Set(asideHeader, "notification")
	}
	if c.bench.isCall(req.Method, req.URL.Path, req.Header) {
		c.bench.calls.Add(1)
	}
	return c.next.RoundTrip(req)
}

// asideHeader marks requests that are not a call, for the server, which decides
// what to do before it has the body.
const asideHeader = "Bench-Aside"

// isNotification reports whether req is a notification of MCP, which its client
// sends when it likes.
func isNotification(req *http.Request) bool {
	if req.GetBody == nil || !strings.HasSuffix(req.URL.Path, "/mcp") {
		return false
	}
	body, err := req.GetBody()
	if err != nil {
		return false
	}
	defer func() { _ = body.Close() }()
	return strings.HasPrefix(messageIn(body).Method, "notifications/")
}

// newBench starts a server that plays script for c, and opens c over s.
func newBench(t *testing.T, c *client, s stack, script ...rubicontest.Fault) *bench {
	t.Helper()
	b := newServer(t, c, rubicontest.H1, script...)
	b.open(s)
	return b
}

// newServer starts a server that plays script for c.
func newServer(t *testing.T, c *client, p rubicontest.Protocol, script ...rubicontest.Fault) *bench {
	b := &bench{t: t, client: c, script: script, aside: func(r rubicontest.Request) rubicontest.Fault { return aside(c, r) }}
	b.server = rubicontest.Config{Protocol: p, Choose: b.choose}.Start()
	t.Cleanup(b.server.Close)
	b.base = b.server.Transport()
	b.base.DialContext = b.dial
	if tls := b.base.TLSClientConfig; tls != nil {
		tls.ServerName = "localhost"
	}
	t.Cleanup(b.base.CloseIdleConnections)
	return b
}

// open opens the client over s.
func (b *bench) open(s stack) {
	rt := s(b)
	if _, ok := rt.(*retryablehttp.RoundTripper); !ok {
		rt = &counter{rt, b}
	}
	b.call = b.client.open(b.t, &http.Client{Transport: rt}, b.url())
	b.mu.Lock()
	b.opened = true
	b.mu.Unlock()
}

// url is what the client is told to call.
func (b *bench) url() string {
	if b.base.TLSClientConfig != nil {
		return "https://" + b.client.family.host
	}
	return "http://" + b.client.family.host
}

// dial connects to the server, whatever its name, or is refused.
func (b *bench) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	b.dials.Add(1)
	addr := b.server.Addr
	if b.refusing() {
		nobody := rubicontest.NewRefused()
		defer nobody.Close()
		addr = nobody.Addr
	}
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err == nil {
		b.served.Add(1)
	}
	return c, err
}

// refusing reports whether the next dial is to be refused.
func (b *bench) refusing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuse--
	return b.refuse >= 0
}

// isCall reports whether a request is the call's, and not one that only makes
// it possible.
func (b *bench) isCall(method, path string, h http.Header) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opened && method == http.MethodPost && path != tokenPath && h.Get(asideHeader) == ""
}

// choose returns what happens to a request.
func (b *bench) choose(r rubicontest.Request) rubicontest.Fault {
	if !b.isCall(r.Method, r.Path, r.Header) {
		return b.aside(r)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.line++
	if len(b.script) == 0 {
		return b.client.answer.good()
	}
	return b.script[min(b.line, len(b.script))-1]
}

// A result is what became of one call.
type result struct {
	text string
	err  error // as the SDK returned it
	told error // as the operation tells it; err without one
	op   *rubicon.Operation

	want     string // the text of a whole answer
	effects  int    // times that the server acted; a key that it remembers counts once
	attempts int    // requests that the server saw
	calls    int    // RoundTrips that the SDK made
}

// alone makes a call without an operation.
func (b *bench) alone(ctx context.Context) result {
	text, err := b.call(ctx)
	return b.result(result{text: text, err: err, told: err})
}

// once makes a call as an operation.
func (b *bench) once(ctx context.Context, in rubicon.Intent) result {
	ctx, op := rubicon.Begin(ctx, in)
	defer op.End()
	text, err := b.call(ctx)
	return b.result(result{text: text, err: err, told: op.Err(err), op: op})
}

// result completes r with what the server saw.
func (b *bench) result(r result) result {
	b.settle()
	b.mu.Lock()
	defer b.mu.Unlock()
	r.effects, r.attempts, r.calls = b.effects(), b.line, int(b.calls.Load())
	r.want = b.client.answer.wanted()
	return r
}

// effects counts what the server did. One that documents a key does the same
// thing once.
func (b *bench) effects() int {
	key := b.client.family.key
	if key == "" {
		return b.server.Effects()
	}
	done := map[string]bool{}
	for _, r := range b.server.Received() {
		if r.Acted {
			done[r.Header.Get(key)] = true
		}
	}
	return len(done)
}

// settle waits until the server is through with all that the client has sent: a
// request for which nobody waits any more may still be acted upon.
func (b *bench) settle() {
	b.base.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := b.server.Await(ctx, func(c rubicontest.Counts) bool {
		return int64(c.Connections) >= b.served.Load() && c.Played >= c.Requests
	})
	if err != nil {
		b.t.Errorf("the server does not come to rest: %+v", b.server.Counts())
	}
}

// patient returns a context that ends a test which hangs.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// each runs test for every one of list, all at the same time.
func each(t *testing.T, list []client, test func(*testing.T, *client)) {
	for _, c := range slices.Clone(list) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			test(t, &c)
		})
	}
}
