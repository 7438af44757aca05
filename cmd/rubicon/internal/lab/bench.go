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

// settling is how long settle waits at most.
const settling = 5 * time.Second

// errPatience is the cause with which a row ends that takes too long.
var errPatience = errors.New("lab: the row takes too long")

// A dial connects to an address, as [net.Dialer.DialContext] does.
type dial func(ctx context.Context, network, addr string) (net.Conn, error)

// A bench is what one client and one fault stand on. What a fault sets up, it
// sets up here.
type bench struct {
	ctx    context.Context         // the caller's
	cancel context.CancelCauseFunc // ends it

	server *rubicontest.Server
	proxy  *rubicontest.Proxy // nil: none
	url    string             // of what the caller asks for
	base   *http.Transport    // makes the client's attempts
	dial   dial               // makes base's connections
	dials  atomic.Int64       // how many it was asked for
	served atomic.Int64       // how many of them led to the server

	head      time.Duration      // how long the client waits for the head of an answer; 0: for ever
	whole     time.Duration      // how long it waits for a whole answer; 0: for ever, as Rubicon does
	stall     rubicon.Stall      // how long Rubicon bears silence besides
	endpoints []rubicon.Endpoint // what Rubicon knows of the server
	layers    bool               // see Fault

	wait    sync.Once
	waiting chan struct{} // closed when the client waits before another attempt
	group   sync.WaitGroup
	closers []func()
}

// meet makes c meet f and returns what became of it.
func meet(ctx context.Context, f *Fault, c client) result {
	b := newBench(ctx, f)
	defer b.close()
	before := b.server.Counts()
	last := b.call(f, c)
	b.settle(ctx)
	b.close()
	after := b.server.Counts()
	attempts := after.Requests - before.Requests
	if f.count != nil {
		attempts = f.count(b)
	}
	return result{attempts, after.Effects - before.Effects, told(last)}
}

// call has the caller use c. It returns what the caller was told, and if that
// is a failure, all that the operation knows of it.
func (b *bench) call(f *Fault, c client) reply {
	client := &http.Client{Transport: c.transport(b)}
	client.Timeout = b.whole
	ctx, op := rubicon.Begin(b.ctx, f.intent)
	defer op.End()
	b.ctx = ctx
	if f.during != nil {
		b.group.Go(func() { f.during(b) })
	}
	requests := f.requests
	if requests == nil {
		requests = []request{{}}
	}
	caller := naive
	if f.layers {
		caller = layered
	}
	last := caller(b, client, requests)
	if last.failed() { // who was told of success does not ask
		last.err = op.Err(last.err)
	}
	return last
}

// newBench starts what f needs.
func newBench(ctx context.Context, f *Fault) *bench {
	b := &bench{layers: f.layers, waiting: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	limit := time.AfterFunc(patience, func() { b.cancel(errPatience) })
	b.onClose(func() { limit.Stop() })

	warm := make(chan struct{})
	b.serve(f, rubicontest.Read().Until(warm))
	b.connect(f)
	if f.setup != nil {
		f.setup(b)
	}
	b.warmUp(f.idle, warm)
	return b
}

// serve starts the server. It does first to as many requests as are to fill the
// pool, and then what f says.
func (b *bench) serve(f *Fault, first rubicontest.Fault) {
	config := f.server()
	filling := slices.Repeat([]rubicontest.Fault{first}, f.idle)
	config.Script = slices.Concat(filling, config.Script)
	b.server = config.Start()
	b.onClose(b.server.Close)
	b.url = b.server.URL + "/payments"
}

// connect makes what the client reaches the server with.
func (b *bench) connect(f *Fault) {
	b.dial = new(net.Dialer).DialContext
	b.base = b.server.Transport()
	b.base.MaxIdleConnsPerHost = f.idle
	b.base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		b.dials.Add(1)
		c, err := b.dial(ctx, network, addr)
		if err == nil && c.RemoteAddr().String() == b.server.Addr {
			b.served.Add(1)
		}
		return c, err
	}
}

// warmUp puts n connections into the pool: as many requests are held until all
// of them have one.
func (b *bench) warmUp(n int, all chan struct{}) {
	var group sync.WaitGroup
	for range n {
		group.Go(func() { ask(b, &http.Client{Transport: b.base}, request{method: http.MethodGet}) })
	}
	_ = b.server.Await(b.ctx, func(c rubicontest.Counts) bool { return c.Requests >= n })
	close(all)
	group.Wait()
}

// waits notes that the client waits.
func (b *bench) waits() { b.wait.Do(func() { close(b.waiting) }) }

// settle waits until the server is through with all that the client has sent,
// on a machine that is slow as well: a request whose client no longer waits may
// still be acted upon.
func (b *bench) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	b.base.CloseIdleConnections()
	b.server.Thaw()
	_ = b.server.Await(ctx, func(c rubicontest.Counts) bool {
		return int64(c.Connections) >= b.served.Load() && c.Open == 0
	})
}

// onClose has c called at the end; what was begun last ends first.
func (b *bench) onClose(c func()) { b.closers = append(b.closers, c) }

// close ends everything on the bench and returns when it has ended. It may be
// called again.
func (b *bench) close() {
	b.cancel(nil)
	b.group.Wait()
	b.base.CloseIdleConnections()
	for _, c := range slices.Backward(b.closers) {
		c()
	}
	b.closers = nil
}
