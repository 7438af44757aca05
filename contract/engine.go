package contract

import (
	"math/bits"

	"github.com/rubicon-go/rubicon/internal/wire"
)

// An engine takes the frames of one body. It looks for the contract that
// governs it, and then has it read them. It is the framer's sink.
type engine struct {
	set    *Set
	answer Answer
	phase  phase
	alive  uint64 // the rules that may still govern
	spare  uint64 // those that govern if no other does
	asked  int    // frames that all of them were asked about
	rule   *rule
	p      Progress

	name    short
	origin  Origin
	named   bool // a name came, and the frame is not ended
	use     wire.Use
	begun   bool // so did data
	framing Framing
	framer  framer
	junk    int64 // lines that are no JSON value, and so no events
	scan    scanner
	tap     *tap    // of what is wrapped; nil: nothing is
	stray   *strays // nil: there were none
	frame   Frame
	inner   Frame    // the same without its wrapping
	scratch Progress // for claims

	cursor position
	latest latest
	shapes *shapes // nil: none yet
}

// A phase is what an engine does with frames.
type phase uint8

const (
	seeking phase = iota // looks for the contract
	judging              // has it read them
	idle                 // nothing: no contract governs
)

// maxAsked is after how many frames nobody is asked any more.
const maxAsked = 32

// watch prepares for a body that is cut as f says.
func (e *engine) watch(s *Set, a Answer, f Framing) {
	e.set, e.answer, e.framing = s, a, f
	for i := range s.rules {
		if s.rules[i].Framing&f != 0 {
			e.alive |= 1 << i
			if s.rules[i].outer != nil && e.tap == nil {
				e.tap = new(tap)
			}
		}
	}
	if e.alive == 0 {
		e.phase = idle
	}
}

// Name implements [wire.Sink].
func (e *engine) Name(kind wire.Kind, name []byte) wire.Use {
	e.name.reset()
	e.name.add(name)
	e.named = true
	e.origin = Event
	if kind != wire.Event {
		e.origin = Exception
	}
	e.use = e.wanted(name)
	return e.use
}

// wanted returns what is wanted of the frame that has begun.
func (e *engine) wanted(name []byte) wire.Use {
	switch {
	case e.phase == idle:
		return wire.Skip
	case e.phase == seeking || e.origin != Event || e.rule.Names == nil:
		return wire.Read
	}
	return wire.Use(e.rule.Names(name))
}

// Data implements [wire.Sink].
func (e *engine) Data(p []byte) {
	if e.phase == idle {
		return
	}
	if !e.begun {
		e.begin()
	}
	e.scan.feed(p)
}

// begin begins the data of a frame.
func (e *engine) begin() {
	e.settle()
	e.narrow()
	e.begun = true
	data, outer := e.set.seek, e.set.seek
	if e.rule != nil {
		data, outer = e.rule.trie, e.rule.outer
	}
	if e.tap == nil || e.origin != Event {
		e.scan.reset(data)
		return
	}
	e.tap.reset(data)
	e.scan.reset(outer)
	e.scan.tap = e.tap
}

// narrow drops the rules of the other framing when a body of JSON begins: by
// its type alone it could be values as well as the elements of an array.
func (e *engine) narrow() {
	if e.framing != Values|Elements {
		return
	}
	e.framing = Values
	if e.framer.(*wire.JSON).IsArray() {
		e.framing = Elements
	}
	for i := range e.set.rules {
		if e.set.rules[i].Framing&e.framing == 0 {
			e.alive &^= 1 << i
		}
	}
}

// Done implements [wire.Sink].
func (e *engine) Done(d wire.Ending) {
	if d.Frame && e.phase != idle {
		if !e.begun {
			e.begin() // the data is empty
		}
		switch {
		case d.Use == wire.Read:
			e.take(e.view(d.Partial))
		case d.Use == wire.Last:
			e.follow()
		}
	}
	e.end()
	if e.stray != nil {
		if f := e.stray.take(e); f != nil && e.phase != idle {
			e.take(f)
		}
	}
}

// end forgets the frame.
func (e *engine) end() {
	e.begun, e.named, e.origin, e.use = false, false, Event, wire.Read
	e.name.reset()
}

// Match implements [wire.Sink].
func (e *engine) Match(p []byte) (int, int64) {
	if e.shapes == nil || e.shapes.edits != e.p.edits {
		return 0, 0
	}
	n, chunks, cursor := e.shapes.match(p)
	if len(cursor) > 0 {
		e.cursor.set(cursor)
		e.latest.n = 0
	}
	return n, chunks
}

// Whole implements [wire.Sink].
func (e *engine) Whole(block []byte, from, to int) {
	if e.phase == idle {
		return
	}
	e.end()
	e.begin()
	e.scan.noting = true
	e.scan.feed(block[from:to])
	before, rule := e.p.edits, e.rule
	e.take(e.view(false))
	if before == e.p.edits && rule == e.rule && e.repeats() && len(block) <= maxShape {
		e.learn(block, from)
	}
	e.end()
}

// view returns the frame that is read, as the contract sees it.
func (e *engine) view(partial bool) *Frame {
	f := &e.frame
	*f = Frame{Name: e.name.bytes(), Origin: e.origin, vals: &e.scan.vals, paths: e.scan.trie.paths}
	f.state = qualityOf(&e.scan, partial)
	f.text = trim(e.scan.raw.bytes())
	return f
}

// unwrapped returns f as a contract sees it whose data is wrapped.
func (e *engine) unwrapped(f *Frame) *Frame {
	if f.Origin != Event || f.state != sound {
		return f
	}
	e.inner = *f
	e.inner.vals, e.inner.paths = &e.tap.scan.vals, e.tap.scan.trie.paths
	if !e.tap.whole() {
		e.inner.state = broken
	}
	return &e.inner
}

// qualityOf returns what is known of data that was scanned.
func qualityOf(s *scanner, partial bool) quality {
	switch text := trim(s.raw.bytes()); {
	case partial:
		return broken
	case s.whole():
		return sound
	case looksJSON(text):
		return broken
	}
	return plain
}

// looksJSON reports whether text begins as a JSON text of some length does.
// [DONE] does not.
func looksJSON(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	switch text[0] {
	case '{', '"':
		return true
	case '[':
		return len(text) == 1 || text[1] < 'A' || text[1] > 'Z'
	}
	return false
}

// take takes a frame that ended.
func (e *engine) take(f *Frame) {
	if e.framing == Lines && f.state != sound {
		e.junk++ // such as the length of a chunk that some recorder left in
		return
	}
	if e.phase == seeking {
		e.seek(f)
	}
	if e.rule == nil {
		return
	}
	if e.rule.outer != nil {
		f = e.unwrapped(f)
	}
	if !e.rule.read(f, &e.p) && f.state != broken {
		e.foreign()
	}
	e.follow()
}

// seek asks the rules that are left about a frame.
func (e *engine) seek(f *Frame) {
	if e.rule = e.claimant(f); !isKeepAlive(f) {
		e.asked++
	}
	if e.rule == nil && (e.alive == 0 || e.asked == maxAsked) {
		e.rule = e.otherwise()
		e.phase = idle
	}
	if e.rule != nil {
		e.phase = judging
		if e.rule.outer == nil {
			e.tap = nil
		}
	}
}

// isKeepAlive reports whether f says only that the peer is alive: some gateways
// send many of them while a request waits for its turn.
func isKeepAlive(f *Frame) bool {
	switch string(f.Name) {
	case "ping", "keepalive", "keep-alive", "heartbeat":
		return true
	}
	return f.Is("type", "ping") || f.Is("type", "keepalive")
}

// claimant returns the first rule that claims the answer, or nil. What is no
// event tells nothing behind events that nobody knows: a stream of text may have
// lines that were not made data.
func (e *engine) claimant(f *Frame) *rule {
	if f.Origin == Stray && e.asked > 0 {
		return nil
	}
	f.late = e.asked > 0
	if s, ok := e.framer.(source); ok {
		f.id, _ = s.ID()
	}
	for i := range e.set.rules {
		r := &e.set.rules[i]
		if e.alive>>i&1 == 0 {
			continue
		}
		view := f
		if r.outer != nil {
			view = e.unwrapped(f)
		}
		e.scratch = Progress{}
		switch r.claim(&e.answer, view, &e.scratch) {
		case Yes:
			return r
		case No:
			e.alive &^= 1 << i
		case Otherwise:
			e.alive &^= 1 << i
			e.spare |= 1 << i
		}
	}
	return nil
}

// otherwise returns the first rule that governs where no other does, or nil.
func (e *engine) otherwise() *rule {
	if e.spare == 0 {
		return nil
	}
	return &e.set.rules[bits.TrailingZeros64(e.spare)]
}

// read has the contract read a frame.
func (r *rule) read(f *Frame, p *Progress) bool {
	before := *p
	known := r.Read(f, p)
	if f.state == broken && p.edits != before.edits {
		after := *p
		if *p = before; after.failed && !before.failed {
			p.failed, p.failure = true, after.failure
			p.edits++
		}
	}
	if f.vals.full {
		p.lose()
	}
	return known
}

// foreign counts a frame that the contract doesn't know. A stream with mostly
// such frames was claimed wrongly.
func (e *engine) foreign() {
	e.p.foreign++
	e.p.edits++
}
