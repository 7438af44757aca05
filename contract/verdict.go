package contract

import "github.com/rubicon-go/rubicon/internal/wire"

// A verdict is what a stream would come to if its body ended here: the
// progress, and what the rest behind the last event adds to it.
type verdict struct {
	rule   *rule
	p      Progress
	rest   wire.Rest
	cursor position
	frames int64
	pings  int64
	open   bool // the body is an array that is not closed
	ending bool // the rest is a part of the event that ends the stream
	amiss  bool // the rest is a part of a failure
	more   bool // the rest is a part of another output than those with a stop reason
}

// judge weighs what lies behind the last event.
func (w *Watcher) judge() verdict {
	e := &w.engine
	c := e.framer.Counts()
	v := verdict{p: e.p, cursor: e.cursor, rule: e.rule, rest: e.framer.Rest(), frames: c.Frames - e.junk, pings: c.Pings}
	if o, ok := e.framer.(opener); ok {
		v.open = o.Open()
	}
	if f := e.pending(); f != nil {
		v.weigh(e, f)
	}
	if f := e.pendingStray(); f != nil && (v.rule != nil || !e.begun) && v.adopt(e, f) {
		v.fails(f)
	}
	if v.rule == nil && e.phase == seeking {
		v.rule = v.byAnswer(e)
	}
	return v
}

// byAnswer returns the rule that governs an answer in which no frame tells it,
// or nil. What governs if no other does needs a body that is framed as it says:
// bytes without a frame in them are no such body, whatever their type.
func (v *verdict) byAnswer(e *engine) *rule {
	alive, spare := e.alive, e.spare
	defer func() { e.alive, e.spare = alive, spare }()
	e.inner = Frame{state: plain}
	if r := e.claimant(&e.inner); r != nil || v.frames == 0 && v.rest != wire.Clean {
		return r
	}
	return e.otherwise()
}

// pending returns what came of a frame that is not ended, or nil.
func (e *engine) pending() *Frame {
	if e.phase == idle || !e.named && !e.begun || e.use != wire.Read {
		return nil
	}
	if !e.begun {
		e.begin() // a name alone
	}
	return e.view(false)
}

// pendingStray returns what came of a stray that is not ended, if that is
// whole.
func (e *engine) pendingStray() *Frame {
	if e.phase == idle || e.stray == nil {
		return nil
	}
	return e.stray.view(e)
}

// weigh takes a frame that is not ended into account. A value that merely
// lacks what separates it from the next is a frame. A block of an SSE body that
// merely lacks its blank line was not dispatched: it can report a failure, and
// an end only where the contract takes a line for it. Half a frame proves
// nothing.
func (v *verdict) weigh(e *engine, f *Frame) {
	if !v.adopt(e, f) {
		return
	}
	if v.rule.outer != nil {
		f = e.unwrapped(f)
	}
	switch {
	case f.state == sound && e.framing&(Lines|Values|Elements|Sequence) != 0:
		v.rule.read(f, &v.p)
		v.rest = wire.Clean
		v.frames++
		v.follow(f)
	case f.state != broken && v.rest == wire.Ripe:
		v.line(f)
	default:
		v.half(f)
	}
}

// trust makes the values of a part of a frame visible, as far as they came.
func (f *Frame) trust() {
	if f.state == broken {
		f.state = sound
	}
}

// follow notes the cursor of a frame.
func (v *verdict) follow(f *Frame) {
	if v.rule.Cursor == "" || v.rule.Cursor == EventID {
		return
	}
	if c := f.Get(v.rule.Cursor); len(c) > 0 {
		v.cursor.set(c)
	}
}

// adopt makes sure that there is a contract, be it by half a frame.
func (v *verdict) adopt(e *engine, f *Frame) bool {
	if v.rule == nil {
		alive, spare, state := e.alive, e.spare, f.state
		f.trust()
		v.rule = e.claimant(f)
		e.alive, e.spare, f.state = alive, spare, state
	}
	return v.rule != nil
}

// line takes a block without its blank line.
func (v *verdict) line(f *Frame) {
	q := v.p
	v.rule.read(f, &q)
	switch {
	case q.failed:
		v.p = q
	case v.rule.EOF == EOFAfterLine && q.ended():
		v.p, v.rest = q, wire.Clean
	default:
		v.ending = q.finished != Unjudged
		v.more = v.p.ended() && !q.ended()
	}
}

// fails takes a stray that is whole: all it can be is a failure.
func (v *verdict) fails(f *Frame) {
	q := v.p
	if v.rule.read(f, &q); q.failed {
		v.p = q
	}
}

// half takes a part of a frame.
func (v *verdict) half(f *Frame) {
	q := v.p
	f.trust()
	v.rule.Read(f, &q)
	v.amiss = q.failed && !v.p.failed
	v.ending = q.finished != Unjudged
	v.more = v.p.ended() && !q.ended()
}

// state returns the state, whether the body may end so, and whether all output
// was there although it is interrupted.
func (v *verdict) state(eventID bool) (s State, legal, complete bool) {
	ended := v.p.ended()
	switch {
	case v.rule == nil:
		return Unjudged, true, false
	case v.p.failed:
		return Failed, true, false
	case v.p.finished != Unjudged && !v.open:
		return v.p.finished, true, false
	case v.misfit():
		return Unjudged, true, false
	case v.more:
		return Interrupted, false, false
	case v.amiss || v.open:
		return Interrupted, false, ended || v.p.finished != Unjudged
	}
	switch v.rule.EOF {
	case EOFAfterStop, EOFAfterLine:
		if ended {
			return v.p.stopped, true, false
		}
	case EOFEnds:
		if v.rest == wire.Clean {
			return max(Completed, v.p.stopped), true, false
		}
	case EOFAfterID:
		return Interrupted, eventID, ended || v.ending
	}
	return Interrupted, false, ended || v.ending
}

// misfit reports whether most events are none of the protocol's: then the
// contract claimed the stream wrongly.
func (v *verdict) misfit() bool {
	return 2*v.p.foreign > v.frames-v.pings-v.p.pings
}
