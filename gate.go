package rubicon

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

// This file holds rule P: the one proof that rests on how net/http's HTTP/2
// client works inside.
//
// When an HTTP/2 request fails because its context ended, RoundTrip returns at
// once, while the goroutine that writes the request may still be on its way to
// the wire; that no header block was seen at that moment proves nothing. But
// that goroutine does one thing under the connection's write lock immediately
// before it encodes and writes the header block: it polls the request's own
// context, by a call of its Done method, and gives up if the channel is
// closed. A context of our own type sees that call.
//
// Done records, for each call while an HTTP/2 connection is in use, who called
// and whether the channel was closed already. Then, of a failed RoundTrip that
// obtained a connection gotConn times and wrote no header block,
//
//	polls == gotConn and not early
//
// proves that no header block was ever written, nor ever will be:
//
//  1. A last poll that found the channel closed ("late") is followed by giving
//     up, not by a write.
//  2. A last poll that comes after RoundTrip returned is followed by giving up
//     too: before it returns an error, RoundTrip aborts the stream, and the
//     same select looks at that first.
//  3. A last poll that found the channel open ("early") is recorded before it
//     returns, so before the write, so before RoundTrip can return an error
//     that this write could have caused. It forbids the claim.
//  4. Nothing is reset between the tries of one RoundTrip: an early poll of
//     the first forbids a claim about the last.
//  5. polls counts the calls of Done by ClientConn.roundTrip, which makes
//     exactly one a try. That they equal the connections obtained shows that
//     every try used this very context. A context with a deadline derived
//     below us would be polled in our place, and leave polls at zero.
//  6. A caller that is not known here, early, forbids the claim. So does a Go
//     release that renames what is known here.
//
// What remains is a release that keeps the names and drops the poll.
// gateKnown therefore admits only releases under which TestRuleP and TestChaos
// have passed.

// A pollClass says which part of net/http called Done.
type pollClass uint8

const (
	pollUnknown  pollClass = iota // or the last poll: counts as a write to come, if early
	pollTry                       // ClientConn.roundTrip: one a try
	pollHarmless                  // a wait that no write of a header block follows
)

// attemptContext is the outermost context of one attempt. It answers for the
// attempt's trace, and watches Done as rule P asks. It is never reused: a dial
// or a writer may look at it after RoundTrip has returned.
type attemptContext struct {
	context.Context
	trace *httptrace.ClientTrace // nil: the parent answers
	base  *http.Transport        // nil: Base is something else
	stop  context.CancelFunc     // not nil: stops a resend over HTTP/2
	armed atomic.Bool            // an HTTP/2 connection is, or was, in use
	polls atomic.Int32           // calls of pollTry
	early atomic.Bool            // an early call of pollUnknown
}

// Value implements [context.Context].
func (c *attemptContext) Value(key any) any {
	if c.trace != nil && key == traceKey {
		return c.trace
	}
	return c.Context.Value(key)
}

// Done implements [context.Context]. It returns the parent's very channel, so
// that contexts derived from it need no goroutine.
func (c *attemptContext) Done() <-chan struct{} {
	done := c.Context.Done()
	if !c.armed.Load() {
		return done
	}
	early := true
	select {
	case <-done:
		early = false
	default:
	}
	var pc [1]uintptr
	runtime.Callers(2, pc[:])
	switch class := classOf(pc[0]); {
	case class == pollTry:
		c.polls.Add(1)
	case class == pollUnknown && early:
		c.early.Store(true)
	}
	return done
}

// tried reports whether a try over HTTP/2 was seen, as far as that can be seen.
func (c *attemptContext) tried() bool { return c.polls.Load() > 0 || !gateKnown }

// String keeps the context's values out of messages.
func (c *attemptContext) String() string { return "rubicon.attempt" }

// pollClasses remembers the class of a return address.
var pollClasses sync.Map // uintptr → pollClass

// classOf returns the class of the function that pc is in.
func classOf(pc uintptr) pollClass {
	if class, ok := pollClasses.Load(pc); ok {
		return class.(pollClass)
	}
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	class := classify(frame.Function)
	pollClasses.Store(pc, class)
	return class
}

// classify returns the class of the function name. The names are those of
// net/http's own copy of the HTTP/2 client up to Go 1.26 and of
// net/http/internal/http2 from Go 1.27 on.
func classify(function string) pollClass {
	name, ours := strings.CutPrefix(function, "net/http.")
	if !ours {
		name, ours = strings.CutPrefix(function, "net/http/internal/http2.")
	}
	switch {
	case strings.HasPrefix(function, "context."):
		return pollHarmless
	case !ours || !gateKnown:
		return pollUnknown
	case strings.HasSuffix(name, "lientConn).roundTrip"):
		return pollTry
	case strings.Contains(name, "lientConn).roundTrip.func"),
		strings.HasSuffix(name, "lientStream).writeRequest"),
		strings.HasSuffix(name, "ransport).RoundTripOpt"):
		return pollHarmless
	}
	return pollUnknown // encodeAndWriteHeaders, and all that is new
}

// traceKey is the key under which a context holds its httptrace.ClientTrace.
// It is private to httptrace, which asks for it in the open.
var traceKey = func() any {
	var probe keyProbe
	httptrace.ContextClientTrace(&probe)
	return probe.key
}()

// keyProbe is a context that remembers what it was asked for.
type keyProbe struct {
	context.Context
	key any
}

// Value implements [context.Context].
func (p *keyProbe) Value(key any) any {
	p.key = key
	return nil
}
