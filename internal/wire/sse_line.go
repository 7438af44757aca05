package wire

import "bytes"

// A stage is a place in a line.
type stage uint8

const (
	inName     stage = iota // before the colon
	afterColon              // where one space is dropped
	inValue
)

// A field is what a line is about.
type field uint8

const (
	fieldNone field = iota // a comment, or a field that nobody knows
	fieldData
	fieldEvent
	fieldID
	fieldRetry
	fieldError // not of the standard: llama.cpp of old and its descendants
	fieldBare  // not of the standard: JSON without a field name (Google)
)

// A line is the line that is being read.
type line struct {
	stage  stage
	field  field
	name   [6]byte // longer than any that matters
	n      int
	value  text // of an event or id line
	digits bool // nothing else came in a retry line
	retry  int64
}

// exact takes p up to the end of a block and returns the rest.
func (s *SSE) exact(p []byte) []byte {
	for len(p) > 0 {
		if s.skipLF {
			if s.skipLF = false; p[0] == '\n' {
				p = p[1:]
				continue
			}
		}
		n := lineEnd(p)
		s.piece(p[:n])
		if n == len(p) {
			return nil
		}
		s.skipLF = p[n] == '\r'
		p = p[n+1:]
		if s.endLine() {
			return p
		}
	}
	return nil
}

// hasCR reports whether p has a CR.
func hasCR(p []byte) bool { return bytes.IndexByte(p, '\r') >= 0 }

// lineEnd returns the index of the first CR or LF in p, or its length. It looks
// no further than it must: a body may be all line ends.
func lineEnd(p []byte) int {
	for from, width := 0, 128; from < len(p); from, width = from+width, width*4 {
		q := p[from:min(from+width, len(p))]
		lf := bytes.IndexByte(q, '\n')
		if lf >= 0 {
			q = q[:lf]
		}
		if cr := bytes.IndexByte(q, '\r'); cr >= 0 {
			return from + cr
		}
		if lf >= 0 {
			return from + lf
		}
	}
	return len(p)
}

// piece takes a piece of a line.
func (s *SSE) piece(p []byte) {
	for len(p) > 0 {
		switch s.line.stage {
		case inName:
			p = s.fieldName(p)
		case afterColon:
			s.line.stage = inValue
			if p[0] == ' ' {
				p = p[1:]
			}
		case inValue:
			s.value(p)
			return
		}
	}
}

// fieldName takes what p has of the field's name.
func (s *SSE) fieldName(p []byte) []byte {
	l := &s.line
	if l.n == 0 && isBare(p[0]) {
		s.begin(fieldBare, inValue)
		return p
	}
	for i, b := range p {
		switch {
		case b == ':' && l.n == 0:
			l.stage = inValue // a comment
			return p[i+1:]
		case b == ':':
			s.begin(l.known(), afterColon)
			return p[i+1:]
		case l.n == len(l.name):
			s.begin(fieldNone, inValue)
			return p[i:]
		}
		l.name[l.n] = b
		l.n++
	}
	return nil
}

// isBare reports whether a line that starts with b is no field but may be a
// line of JSON.
func isBare(b byte) bool {
	switch b {
	case '{', '}', '[', ']', '"', ' ', '\t':
		return true
	}
	return false
}

// known returns the field that the name stands for.
func (l *line) known() field {
	switch string(l.name[:l.n]) {
	case "data":
		return fieldData
	case "event":
		return fieldEvent
	case "id":
		return fieldID
	case "retry":
		return fieldRetry
	case "error":
		return fieldError
	}
	return fieldNone
}

// begin begins the value of a field.
func (s *SSE) begin(f field, at stage) {
	s.line.field, s.line.stage = f, at
	s.block.begun = true
	switch f {
	case fieldData:
		if s.block.data {
			s.data(newline)
		}
		s.block.data, s.block.told = true, true
	case fieldEvent, fieldID:
		s.line.value.reset()
	case fieldRetry:
		s.line.digits, s.line.retry = true, 0
	}
}

var newline = []byte{'\n'}

// value takes a piece of a field's value.
func (s *SSE) value(p []byte) {
	switch s.line.field {
	case fieldData:
		s.data(p)
	case fieldEvent, fieldID:
		s.line.value.add(p)
	case fieldRetry:
		s.line.decimal(p)
	case fieldError:
		s.stray(ErrorField, p)
	case fieldBare:
		s.stray(Bare, p)
	}
}

// data hands on data that is wanted.
func (s *SSE) data(p []byte) {
	if s.block.use == Read || s.block.use == Last {
		s.Sink.Data(p)
	} else {
		s.block.skipped = true
	}
}

// stray hands on what is no field.
func (s *SSE) stray(f Field, p []byte) {
	s.block.told = true
	s.Sink.Stray(f, p)
}

// decimal adds digits to the reconnection time, within bounds: the standard
// takes a value of digits alone.
func (l *line) decimal(p []byte) {
	const limit = 1 << 40 // 34 years
	for _, b := range p {
		if b < '0' || b > '9' {
			l.digits = false
			return
		}
		l.retry = min(l.retry*10+int64(b-'0'), limit)
	}
}

// endLine ends the line and reports whether it ended the block.
func (s *SSE) endLine() bool {
	l := &s.line
	if l.stage == inName {
		if l.n == 0 {
			s.dispatch()
			return true
		}
		s.begin(l.known(), inValue) // a field without a colon
	}
	s.finish()
	l.stage, l.field, l.n = inName, fieldNone, 0
	return false
}

// finish puts the line's value into force.
func (s *SSE) finish() {
	l, b := &s.line, &s.block
	switch l.field {
	case fieldEvent:
		b.name.set(&l.value)
		b.use = s.Sink.Name(Event, b.name.bytes())
		b.told = true
	case fieldID:
		if bytes.IndexByte(l.value.bytes(), 0) < 0 {
			b.id.set(&l.value)
			b.hasID = true
		}
	case fieldRetry:
		if l.digits {
			s.retry = l.retry
		}
	case fieldError:
		s.stray(ErrorField, newline)
	case fieldBare:
		s.stray(Bare, newline)
	}
}

// A text is the beginning of a text.
type text struct {
	over bool // there was more
	n    int
	b    [256]byte
}

// add adds p, as far as it fits.
func (t *text) add(p []byte) {
	n := copy(t.b[t.n:], p)
	t.n += n
	t.over = t.over || n < len(p)
}

// set makes t a copy of u.
func (t *text) set(u *text) {
	t.reset()
	t.add(u.bytes())
	t.over = u.over
}

// bytes returns what is kept.
func (t *text) bytes() []byte { return t.b[:t.n] }

// reset empties t.
func (t *text) reset() { t.n, t.over = 0, false }
