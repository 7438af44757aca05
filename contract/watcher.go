package contract

import "github.com/rubicon-go/rubicon/internal/wire"

// A Watcher follows one body. It must be fed all of the body's bytes, decoded
// from any content coding, in pieces of any size; when is up to the caller, so
// that the reader need not wait. It holds a few KiB, however long the body and
// its events are, and allocates nothing for an event. It is not safe for
// concurrent use.
type Watcher struct {
	engine engine
	bytes  int64
}

// Watch returns a watcher for the body of the given answer. Nil: its content
// type is neither one of the [Framing]s' nor one that a contract of the set
// names.
func (s *Set) Watch(a Answer) *Watcher {
	if a.ContentType == "" {
		a.ContentType = a.Header.Get("Content-Type")
	}
	f := s.framing(a.ContentType)
	if f == 0 {
		return nil
	}
	w := newWatcher(f)
	w.engine.watch(s, a, f)
	return w
}

// Write takes the next piece of the body. It implements [io.Writer], never
// fails, and keeps nothing of p.
func (w *Watcher) Write(p []byte) (int, error) {
	w.bytes += int64(len(p))
	w.engine.framer.Write(p)
	return len(p), nil
}

// Operation returns the server's id of the operation, as soon as it was seen in
// an event. Empty: not yet.
func (w *Watcher) Operation() string { return w.engine.p.operation }

// Failed reports whether the peer has reported a failure, which is how the
// stream ends whatever follows.
func (w *Watcher) Failed() bool { return w.engine.rule != nil && w.engine.p.failed }

// Progress returns how many events came that show progress: neither comments
// nor pings.
func (w *Watcher) Progress() int64 {
	c := w.engine.framer.Counts()
	return c.Frames - c.Pings - w.engine.p.pings
}

// An End says how a stream would end if its body ended here.
type End struct {
	State State

	// Legal: the body may end here. So it is at the protocol's own end, where
	// the protocol has none, at the end of an MCP leg that can be resumed, and
	// where nobody can judge.
	Legal bool

	// Complete: the stream is interrupted, but all output was there: a stop
	// reason was dispatched, or the cut fell inside the terminal event. Nobody
	// should pay for it again.
	Complete bool

	// ByEOF: the protocol has no end of its own, and State is what it is only if
	// the body has ended by itself. A cut after a whole event leaves it open.
	ByEOF bool

	// Torn: a part of an event lies behind the last whole one.
	Torn bool

	// Protocol is that of the contract that governs. Empty: none does.
	Protocol string

	// Reason is the stop reason in the peer's words: length.
	Reason string

	// Failure is what the peer reported, if State is Failed.
	Failure Failure

	// Operation is the server's id of the operation, as the body gives it.
	Operation string

	// Cursor is the last position that the protocol offers for reading on.
	Cursor string

	// EventID: the body had an event id (SSE).
	EventID bool

	// Events is the number of whole events: dispatched ones (SSE), lines,
	// elements, messages.
	Events int64

	// Last is the name of the last whole event. Empty: it had none.
	Last string

	// Bytes is the length of the body.
	Bytes int64
}

// End says how the stream would end if its body ended here. More may be
// written afterwards.
func (w *Watcher) End() End {
	e := &w.engine
	e.framer.Settle()
	if !e.begun {
		e.settle()
	}
	v := w.judge()
	end := End{
		Torn:      v.rest != wire.Clean,
		Reason:    v.p.reason,
		Failure:   v.p.failure,
		Operation: v.p.operation,
		Cursor:    string(v.cursor.b[:v.cursor.n]),
		Events:    v.frames,
		Bytes:     w.bytes,
	}
	if v.rule != nil {
		end.Protocol = v.rule.Protocol
	}
	if n, ok := w.engine.framer.(namer); ok {
		end.Last = string(n.Last())
	}
	if s, ok := w.engine.framer.(source); ok {
		var id []byte
		id, end.EventID = s.ID()
		if v.rule == nil || v.rule.Cursor == EventID {
			end.Cursor = string(id)
		}
	}
	end.State, end.Legal, end.Complete = v.state(end.EventID)
	end.ByEOF = v.rule != nil && v.rule.EOF == EOFEnds && v.p.finished == Unjudged && end.State != Failed
	return end
}
