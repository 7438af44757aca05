package rubicontest

import (
	"context"
	"crypto/sha256"
	"hash"
	"net/http"
	"slices"
	"sync"
)

const (
	requestLimit = 1000     // requests that Received can tell of
	bodyLimit    = 64 << 10 // bytes of each body that Received can show
	spoolLimit   = 16 << 20 // bytes of a body that a handler is given
)

// Counts is what a server has seen and done so far.
type Counts struct {
	Connections int // accepted
	Open        int // of those, not ended yet
	Requests    int // whose header block was complete
	Complete    int // of those, read to the end of the body
	Effects     int // times that the server acted
	Played      int // whose Fault, or repeated answer, is over
}

// A Request is what a server received.
type Request struct {
	N      int    // 1 for the first that the server received
	Conn   int    // the connection that it came on, 1 for the first
	Stream uint32 // the HTTP/2 stream; 0 on HTTP/1.1

	Method string
	Host   string
	Path   string // with the query, as it was on the wire
	Header http.Header

	Body     []byte   // what was read of the body, at most 64 KiB
	Length   int64    // bytes of the body that were read
	Sum      [32]byte // SHA-256 of those bytes
	Complete bool     // the body was read to its end
	Acted    bool     // the server acted on the request
}

// received is a Request in the making. Its ledger's mutex guards it.
type received struct {
	Request
	secure bool // it came over TLS
	sum    hash.Hash
	spool  bool   // whether whole is wanted
	whole  []byte // the body for a handler
}

// A ledger keeps a server's counts and requests.
type ledger struct {
	mu       sync.Mutex
	counts   Counts
	requests []*received
	changed  chan struct{} // closed at the next change; nil if nobody waits
}

// update changes the counts and wakes those that wait for a change.
func (l *ledger) update(change func(*Counts)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.counts)
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// Counts returns what the server has seen and done so far.
func (l *ledger) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// Connections returns the number of connections that were accepted.
func (l *ledger) Connections() int { return l.Counts().Connections }

// Requests returns the number of requests whose header block was complete.
// A request that the client sends twice counts twice.
func (l *ledger) Requests() int { return l.Counts().Requests }

// Effects returns how many times the server acted.
func (l *ledger) Effects() int { return l.Counts().Effects }

// Await returns nil as soon as done is true of the counts, and the context's
// cause if that ends first. done must not call the server.
func (l *ledger) Await(ctx context.Context, done func(Counts) bool) error {
	for {
		changed, ok := l.watch(done)
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// watch reports whether done is true of the counts, and if not, returns a
// channel that is closed when they change.
func (l *ledger) watch(done func(Counts) bool) (<-chan struct{}, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if done(l.counts) {
		return nil, true
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed, false
}

// Received returns the requests in the order in which their header blocks were
// complete, the first 1,000 at most. The caller owns what is returned; bodies
// that are still being read are shown as far as they have come.
func (l *ledger) Received() []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Request, len(l.requests))
	for i, r := range l.requests {
		out[i] = r.snapshot()
	}
	return out
}

// snapshot returns r as it is now. The ledger's mutex is held.
func (r *received) snapshot() Request {
	c := r.Request
	c.Header = c.Header.Clone()
	c.Body = slices.Clone(c.Body)
	if r.sum != nil {
		r.sum.Sum(c.Sum[:0])
	} else {
		c.Sum = sha256.Sum256(nil)
	}
	return c
}

// enter books a request whose header block is complete.
func (l *ledger) enter(r *received) {
	l.update(func(c *Counts) {
		c.Requests++
		r.N = c.Requests
		if len(l.requests) < requestLimit {
			l.requests = append(l.requests, r)
		}
	})
}

// read books p as the next bytes of r's body.
func (l *ledger) read(r *received, p []byte) {
	if len(p) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.sum == nil {
		r.sum = sha256.New()
	}
	r.sum.Write(p)
	r.Length += int64(len(p))
	r.Body = appendUpTo(r.Body, p, bodyLimit)
	if r.spool {
		r.whole = appendUpTo(r.whole, p, spoolLimit)
	}
}

// appendUpTo appends p to b as far as b stays within limit.
func appendUpTo(b, p []byte, limit int) []byte {
	return append(b, p[:min(len(p), max(0, limit-len(b)))]...)
}

// complete books the end of r's body.
func (l *ledger) complete(r *received) {
	l.update(func(c *Counts) {
		if !r.Complete {
			r.Complete = true
			c.Complete++
		}
	})
}

// act books the effect of r.
func (l *ledger) act(r *received) {
	l.update(func(c *Counts) {
		r.Acted = true
		c.Effects++
	})
}

// view returns r as it is now.
func (l *ledger) view(r *received) Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return r.snapshot()
}
