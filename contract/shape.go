package contract

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
)

// A chunk of output differs from the one before it in little but the text that
// was produced: a shape is a chunk that said nothing new, with holes in place
// of strings and numbers. A later chunk that is equal to it, up to the insides
// of values that no path leads to, is the same to every contract, and need not
// be scanned. The comparison follows the same quotes and escapes as a scan, so
// nothing in a string can end it. That holds until something new is said.
type shape struct {
	size   int
	data   [maxShape]byte
	spans  spans
	holes  [maxHoles]span
	n      int  // of holes
	cursor span // of the chunk that fitted last; empty: it has none
}

// A span is the inside of a string, or a number, in a text.
type span struct {
	from, to uint16
	number   bool
	cursor   bool // it is the position that the chunk gives
}

// A spans is the values of a text that may differ, as far as they fit.
type spans struct {
	n       int
	open    bool
	list    [24]span
	differs uint32 // those that were seen to differ
}

// Bounds of what is remembered. A longer chunk, or one of which more values
// change, is scanned each time.
const (
	maxShape  = 512
	maxHoles  = 8
	maxShapes = 4
)

// begin notes where a value begins.
func (s *spans) begin(at int, number, cursor bool) {
	if s.n < len(s.list) && at < maxShape {
		s.open = true
		s.list[s.n] = span{from: uint16(at), number: number, cursor: cursor}
	}
}

// end notes where it ends.
func (s *spans) end(at int) {
	if s.open && at < maxShape {
		s.list[s.n].to = uint16(at)
		s.n++
	}
	s.open = false
}

// shift moves all of them.
func (s *spans) shift(by int) {
	for i := range s.n {
		s.list[i].from += uint16(by)
		s.list[i].to += uint16(by)
	}
}

// A shapes holds the last few shapes of a stream: those of several choices, or
// of text and reasoning, alternate.
type shapes struct {
	edits  int64 // of the progress, when they were seen
	misses int   // since one fitted
	n      int
	last   *shape // the one that fitted last
	next   int    // the one that makes way for another
	list   [maxShapes]shape
}

// match returns how many bytes at the start of p are chunks that fit a shape,
// how many chunks these are, and the cursor of the last one.
func (s *shapes) match(p []byte) (n int, chunks int64, cursor []byte) {
	for n < len(p) && s.n > 0 {
		size := s.last.fits(p[n:])
		if size == 0 {
			if size = s.other(p[n:]); size == 0 {
				s.misses++
				break
			}
		}
		if c := s.last.cursor; c.to > 0 {
			cursor = p[n+int(c.from) : n+int(c.to)]
		}
		n += size
		chunks++
	}
	if chunks > 0 {
		s.misses = 0
	}
	return n, chunks, cursor
}

// other tries the shapes that did not fit last.
func (s *shapes) other(p []byte) int {
	for i := range s.n {
		if shape := &s.list[i]; shape != s.last {
			if size := shape.fits(p); size > 0 {
				s.last = shape
				return size
			}
		}
	}
	return 0
}

// fits returns the length of the chunk at the start of p, if it differs from
// the shape in its holes only. 0: it does not.
func (s *shape) fits(p []byte) int {
	at, from := 0, 0
	for i := range s.n {
		h := &s.holes[i]
		piece := s.data[from:h.from]
		if len(p)-at < len(piece) || string(p[at:at+len(piece)]) != string(piece) {
			return 0
		}
		at += len(piece)
		start := at
		if h.number {
			at = numberEnd(p, at)
		} else if at = closing(p, at); at < 0 {
			return 0
		}
		if h.number && at == start {
			return 0
		}
		if h.cursor && !s.follow(p, start, at) {
			return 0
		}
		from = int(h.to)
	}
	piece := s.data[from:s.size]
	if len(p)-at < len(piece) || string(p[at:at+len(piece)]) != string(piece) {
		return 0
	}
	return at + len(piece)
}

// follow notes where the cursor is. It reports whether it can be taken as it
// stands there.
func (s *shape) follow(p []byte, from, to int) bool {
	if to > math.MaxUint16 || to == from || bytes.IndexByte(p[from:to], '\\') >= 0 {
		return false
	}
	s.cursor = span{from: uint16(from), to: uint16(to)}
	return true
}

// numberEnd returns the index behind the number at the given index of p.
func numberEnd(p []byte, at int) int {
	for at < len(p) && isNumber(p[at]) {
		at++
	}
	return at
}

// closing returns the index of the quote that ends the string whose inside
// begins at the given index of p. -1: there is none before a control character,
// such as the end of a line. It looks at sixteen bytes at a time, without a
// branch that depends on the string's length: lengths differ from chunk to
// chunk, and are what a processor can't predict.
func closing(p []byte, at int) int {
	start := at
	for len(p) >= 16 {
		from := min(at, len(p)-16)
		hits := (special(binary.LittleEndian.Uint64(p[from:])) |
			special(binary.LittleEndian.Uint64(p[from+8:]))<<8) >> (at - from)
		if hits == 0 {
			if at = from + 16; at == len(p) {
				return -1
			}
			continue
		}
		at += bits.TrailingZeros64(hits)
		switch {
		case p[at] != '"':
			return -1
		case p[at-1] != '\\':
			return at
		}
		break
	}
	return closingSlowly(p, start)
}

// special returns a bit for each of eight bytes that is a quote or a control
// character: with one bit turned over, these are the bytes up to 0x20.
func special(w uint64) uint64 {
	const ones, lows = 0x0101010101010101, 0x7f7f7f7f7f7f7f7f
	w ^= ones * ('"' ^ ' ')
	above := w&lows + ones*(0x7f-' ') | w // the high bit of each byte above 0x20
	return (^above &^ lows) * 0x0002040810204081 >> 56
}

// closingSlowly is closing, byte by byte.
func closingSlowly(p []byte, at int) int {
	for escaped := false; at < len(p) && p[at] >= ' '; at++ {
		switch {
		case escaped:
			escaped = false
		case p[at] == '\\':
			escaped = true
		case p[at] == '"':
			return at
		}
	}
	return -1
}

// repeats reports whether the frame that was scanned may be remembered.
func (e *engine) repeats() bool {
	return e.rule != nil && e.rule.outer == nil && e.scan.state == done && !e.scan.vals.full
}

// learn remembers a chunk that said nothing new, with all that frames it, and
// whose data begins at the given index. Where hardly any chunk fits it seldom
// tries.
func (e *engine) learn(block []byte, from int) {
	if e.shapes == nil {
		e.shapes = new(shapes)
	}
	s := e.shapes
	if s.edits != e.p.edits {
		s.edits, s.n, s.next = e.p.edits, 0, 0
	}
	if s.misses > 32 && s.misses%16 != 0 {
		return
	}
	e.scan.spans.shift(from)
	for i := range s.n {
		if s.list[i].widen(block, &e.scan.spans) {
			s.last = &s.list[i]
			return
		}
	}
	s.last = &s.list[s.next]
	s.last.set(block, &e.scan.spans)
	s.n = max(s.n, s.next+1)
	s.next = (s.next + 1) % maxShapes
}

// set makes s the shape of data, without holes.
func (s *shape) set(data []byte, found *spans) {
	s.size = copy(s.data[:], data)
	s.spans = *found
	s.spans.differs = 0
	s.cursor = span{}
	s.punch()
}

// widen makes holes in s so that data fits, if the two are equal but for the
// values that may differ. It reports whether they are.
func (s *shape) widen(data []byte, found *spans) bool {
	differs := s.spans.differs
	from, own := 0, 0
	for i := range found.n {
		f, o := found.list[i], s.spans.list[i]
		if i == s.spans.n || f.number != o.number || f.cursor != o.cursor ||
			string(data[from:f.from]) != string(s.data[own:o.from]) {
			return false
		}
		if string(data[f.from:f.to]) != string(s.data[o.from:o.to]) {
			differs |= 1 << i
		}
		from, own = int(f.to), int(o.to)
	}
	if found.n != s.spans.n || string(data[from:]) != string(s.data[own:s.size]) {
		return false
	}
	s.set(data, found)
	s.spans.differs = differs
	s.punch()
	return true
}

// punch makes holes of the values that differ, and of the cursor. If there are
// too many, none of the rest is one.
func (s *shape) punch() {
	s.n = 0
	for i := range s.spans.n {
		if v := s.spans.list[i]; (v.cursor || s.spans.differs>>i&1 != 0) && s.n < maxHoles {
			s.holes[s.n] = v
			s.n++
		}
	}
}
