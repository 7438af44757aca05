package lab

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// patience is how long a row may take. It is far more than any needs.
const patience = time.Minute

// errPatience is the cause with which a row ends that takes too long.
var errPatience = errors.New("lab: the row takes too long")

// A bench is what one client and one fault stand on.
type bench struct {
	ctx    context.Context         // of the caller
	cancel context.CancelCauseFunc // the caller gives up
	server *rubicontest.Server
	url    string
	base   *http.Transport // what the client makes its attempts with
	dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	dials  atomic.Int64

	head      time.Duration // how long the client waits for the head of an answer; 0: for ever
	endpoints []rubicon.Endpoint
	layers    bool // the caller has go-retryablehttp among its layers
	proxy     *rubicontest.Proxy

	wait    sync.Once
	waiting chan struct{} // closed when the client waits before another attempt
	group   sync.WaitGroup
	closers []func()
}

// meet makes c meet f.
func meet(ctx context.Context, f *Fault, c client) result {
	b := newBench(ctx, f)
	defer b.close()
	before := b.server.Counts()

	client := &http.Client{Transport: c.transport(b)}
	caller := caller(naive)
	if f.caller != nil {
		caller = f.caller
	}
	intent := f.intent
	var op *rubicon.Operation
	b.ctx, op = rubicon.Begin(b.ctx, intent)
	if f.during != nil {
		b.group.Go(func() { f.during(b) })
	}
	last := caller(b, client, f.asked())
	last.err = op.Err(last.err)
	op.End()

	b.close()
	after := b.server.Counts()
	got := result{after.Requests - before.Requests, after.Effects - before.Effects, told(last)}
	if f.count != nil {
		got.attempts = f.count(b)
	}
	return got
}

// asked returns what the caller asks for.
func (f *Fault) asked() []request {
	if f.requests == nil {
		return []request{{}}
	}
	return f.requests
}

// newBench starts what f needs.
func newBench(ctx context.Context, f *Fault) *bench {
	b := &bench{waiting: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	limit := time.AfterFunc(patience, func() { b.cancel(errPatience) })
	b.closers = append(b.closers, func() { limit.Stop() })

	config := f.server()
	warm := make(chan struct{})
	config.Script = slices.Concat(slices.Repeat([]rubicontest.Fault{rubicontest.Read().Until(warm)}, f.idle), config.Script)
	b.server = config.Start()
	b.url = b.server.URL + "/payments"
	b.closers = append(b.closers, b.server.Close)

	b.base = b.server.Transport()
	b.base.MaxIdleConnsPerHost = f.idle
	b.dial = new(net.Dialer).DialContext
	b.base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		b.dials.Add(1)
		return b.dial(ctx, network, addr)
	}
	if f.setup != nil {
		f.setup(b)
	}
	b.warm(f.idle, warm)
	return b
}

// warm fills the pool with n connections: as many requests are held until all
// are there.
func (b *bench) warm(n int, all chan struct{}) {
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			do(b, &http.Client{Transport: b.base}, request{method: http.MethodGet})
		})
	}
	_ = b.server.Await(b.ctx, func(c rubicontest.Counts) bool { return c.Requests >= n })
	close(all)
	group.Wait()
}

// waits says that the client waits.
func (b *bench) waits() { b.wait.Do(func() { close(b.waiting) }) }

// close ends everything on the bench and returns when it has ended.
func (b *bench) close() {
	b.cancel(nil)
	b.group.Wait()
	b.base.CloseIdleConnections()
	for _, c := range slices.Backward(b.closers) {
		c()
	}
	b.closers = nil
}

