package contract

import "bytes"

// A chunk of output differs from the one before it in little but the text that
// was produced: a shape is a chunk that said nothing new, with holes in place
// of those strings. A later chunk that is equal to it, up to the insides of
// strings that no path leads to, is the same to every contract, and need not be
// scanned. The comparison follows the same quotes and escapes as a scan, so
// nothing in a string can end it. That holds until something new is said.
type shape struct {
	size  int
	data  [maxShape]byte
	spans spans
	holes [maxHoles]span
	n     int // of holes
}

// A span is the inside of a string in a text.
type span struct{ from, to uint16 }

// A spans is the strings of a text that no path leads to, as far as they fit.
type spans struct {
	n       int
	open    bool
	list    [24]span
	differs uint32 // those that were seen to differ
}

// Bounds of what is remembered. A longer chunk, or one of which more strings
// change, is scanned each time.
const (
	maxShape  = 512
	maxHoles  = 8
	maxShapes = 4
)

// begin notes where a string begins.
func (s *spans) begin(on bool, at int) {
	if on && s.n < len(s.list) {
		s.open = true
		s.list[s.n].from = uint16(at)
	}
}

// end notes where it ends.
func (s *spans) end(on bool, at int) {
	if on && s.open {
		s.open = false
		s.list[s.n].to = uint16(at)
		s.n++
	}
}

// A shapes holds the last few shapes of a stream: those of several choices, or
// of text and reasoning, alternate.
type shapes struct {
	edits  int64 // of the progress, when they were seen
	misses int   // since one fitted
	n      int
	last   int // the one that fitted last
	next   int // the one that makes way for another
	list   [maxShapes]shape
}

// match reports whether data is, to every contract, a chunk that said nothing
// new while the progress was the same.
func (s *shapes) match(data []byte, edits int64) bool {
	if s == nil || s.n == 0 || s.edits != edits {
		return false
	}
	if s.list[s.last].fits(data) {
		s.misses = 0
		return true
	}
	for i := range s.n {
		if i != s.last && s.list[i].fits(data) {
			s.last, s.misses = i, 0
			return true
		}
	}
	s.misses++
	return false
}

// fits reports whether data differs from the shape in its holes only.
func (s *shape) fits(data []byte) bool {
	from := 0
	for i := range s.n {
		h := s.holes[i]
		piece := s.data[from:h.from]
		if len(data) < len(piece) || string(data[:len(piece)]) != string(piece) {
			return false
		}
		data = data[len(piece):]
		n := closing(data)
		if n < 0 {
			return false
		}
		data, from = data[n:], int(h.to)
	}
	return string(data) == string(s.data[from:s.size])
}

// closing returns the index of the quote that ends the string at the start of
// p, or -1.
func closing(p []byte) int {
	n := bytes.IndexByte(p, '"')
	if n <= 0 || p[n-1] != '\\' {
		return n
	}
	for i := 0; i < len(p); i++ { // backslashes pair up from the start
		switch p[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// repeats reports whether the frame that was scanned may be remembered.
func (e *engine) repeats() bool {
	return e.rule != nil && e.rule.outer == nil && (e.rule.Cursor == "" || e.rule.Cursor == EventID) &&
		e.scan.state == done && !e.scan.vals.full && e.scan.size <= maxShape
}

// learn remembers a chunk that said nothing new. Where hardly any chunk fits
// it seldom tries.
func (e *engine) learn(data []byte) {
	if e.shapes == nil {
		e.shapes = new(shapes)
	}
	s := e.shapes
	if s.edits != e.p.edits {
		s.edits, s.n, s.last, s.next = e.p.edits, 0, 0, 0
	}
	if s.misses > 32 && s.misses%16 != 0 {
		return
	}
	for i := range s.n {
		if s.list[i].widen(data, &e.scan.spans) {
			s.last = i
			return
		}
	}
	s.last = s.next
	s.list[s.next].set(data, &e.scan.spans)
	s.next = (s.next + 1) % maxShapes
	s.n = max(s.n, s.last+1)
}

// set makes s the shape of data, without holes.
func (s *shape) set(data []byte, found *spans) {
	s.size = copy(s.data[:], data)
	s.spans = *found
	s.spans.differs = 0
	s.n = 0
}

// widen makes holes in s so that data fits, if the two are equal but for
// strings that no path leads to. It reports whether they are.
func (s *shape) widen(data []byte, found *spans) bool {
	if s.spans.n != found.n {
		return false
	}
	differs := s.spans.differs
	from, own := 0, 0
	for i := range found.n {
		f, o := found.list[i], s.spans.list[i]
		if string(data[from:f.from]) != string(s.data[own:o.from]) {
			return false
		}
		if string(data[f.from:f.to]) != string(s.data[o.from:o.to]) {
			differs |= 1 << i
		}
		from, own = int(f.to), int(o.to)
	}
	if string(data[from:]) != string(s.data[own:s.size]) {
		return false
	}
	s.set(data, found)
	s.spans.differs = differs
	s.punch()
	return true
}

// punch makes holes of the strings that differ. If there are too many, none of
// the rest is one.
func (s *shape) punch() {
	for i := range s.spans.n {
		if s.spans.differs>>i&1 != 0 && s.n < maxHoles {
			s.holes[s.n] = s.spans.list[i]
			s.n++
		}
	}
}
