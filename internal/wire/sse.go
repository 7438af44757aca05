package wire

import "time"

// An SSE cuts an event stream as the HTML standard says (section 9.2.6): lines
// end with CR, LF or both, one leading BOM is dropped, a blank line dispatches
// what has data, and a block without its blank line is not dispatched.
//
// The zero value is ready once Sink is set.
type SSE struct {
	Sink Sink

	counts Counts
	bom    int  // bytes of a leading BOM seen; -1: past it
	skipLF bool // the last byte was a CR, whose LF may follow
	line   line
	block  block
	quick  quick
	last   text // the name of the last frame
	id     text // the last event id
	hasID  bool
	retry  int64 // in milliseconds; 0: none
}

// A block is what came since the last blank line.
type block struct {
	begun   bool // a line of it came that isn't a comment
	told    bool // so did something that the sink knows of
	data    bool // so did a data line
	skipped bool // so did data that the sink didn't want
	use     Use
	name    text
	hasID   bool
	id      text
}

// Write takes the next piece of the body.
func (s *SSE) Write(p []byte) {
	if s.bom >= 0 {
		p = s.dropBOM(p)
	}
	if s.quick.held > 0 {
		p = s.refill(p)
	}
	s.quick.plain = unasked
	for len(p) > 0 {
		if s.skipLF {
			if s.skipLF = false; p[0] == '\n' {
				p = p[1:]
				continue
			}
		}
		if s.fresh() {
			if p = s.fast(p); len(p) == 0 || s.hold(p) {
				return
			}
		}
		p = s.exact(p)
	}
}

// Rest says what lies behind the last frame, were this the end of the body.
func (s *SSE) Rest() Rest {
	s.Settle()
	switch {
	case s.bom > 0:
		return Torn // a part of a BOM, or of a line
	case s.line.stage == inValue && s.line.field == fieldNone && !s.block.begun:
		return Clean // in a comment
	case s.line.stage != inName || s.line.n > 0:
		return Torn
	case s.block.data:
		return Ripe
	case s.block.begun:
		return Torn
	}
	return Clean
}

// Settle tells the sink what is held of a frame that is not whole yet.
func (s *SSE) Settle() {
	p := s.quick.hold[:s.quick.held]
	s.quick.held = 0
	for len(p) > 0 {
		p = s.exact(p)
	}
}

// Counts returns how many frames there were.
func (s *SSE) Counts() Counts { return s.counts }

// Last returns the name of the last frame.
func (s *SSE) Last() []byte {
	if s.quick.last {
		return s.quick.name()
	}
	return s.last.bytes()
}

// ID returns the last event id that is in force, and whether one ever was. An
// id that is too long to be kept is empty.
func (s *SSE) ID() ([]byte, bool) {
	if s.id.over {
		return nil, s.hasID
	}
	return s.id.bytes(), s.hasID
}

// Retry returns the reconnection time that the server asked for. 0: none.
func (s *SSE) Retry() time.Duration { return time.Duration(s.retry) * time.Millisecond }

const bom = "\xef\xbb\xbf"

// dropBOM takes a leading byte order mark away.
func (s *SSE) dropBOM(p []byte) []byte {
	for len(p) > 0 && s.bom >= 0 {
		if p[0] != bom[s.bom] {
			seen := s.bom
			s.bom = -1
			s.exact([]byte(bom[:seen]))
			break
		}
		p = p[1:]
		if s.bom++; s.bom == len(bom) {
			s.bom = -1
		}
	}
	return p
}

// fresh reports whether the next byte begins a block.
func (s *SSE) fresh() bool {
	return !s.skipLF && !s.block.begun && s.line.stage == inName && s.line.n == 0
}

// dispatch ends the block at its blank line.
func (s *SSE) dispatch() {
	b := &s.block
	if b.hasID {
		s.id.set(&b.id)
		s.hasID = true
	}
	if b.data {
		s.counts.add(b.use)
		s.last.set(&b.name)
		s.quick.last = false
	}
	if b.told {
		s.Sink.Done(Ending{Use: b.use, Frame: b.data, Partial: b.skipped && b.use == Read})
	}
	b.reset()
}

// reset forgets the block.
func (b *block) reset() {
	b.begun, b.told, b.data, b.skipped, b.hasID, b.use = false, false, false, false, false, Read
	b.name.reset()
}

// add counts a frame.
func (c *Counts) add(use Use) {
	c.Frames++
	if use == Ping {
		c.Pings++
	}
}
