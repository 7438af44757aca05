package wire

import (
	"encoding/binary"
	"math/bits"
)

// A JSON cuts a body of JSON values that follow one another, with or without
// white space between them (as a watch sends them), or the elements of one
// array that is sent piece by piece. What the first value begins with decides.
//
// The zero value is ready once Sink is set.
type JSON struct {
	Sink Sink

	counts Counts
	mode   mode
	at     place
	value  value
}

// A mode is what the body is.
type mode uint8

const (
	undecided mode = iota
	values
	array
)

// A place is where in the body the next byte lies.
type place uint8

const (
	between place = iota // before a value or, in an array, the first element
	inside               // in a value
	behind               // in an array, behind an element
	before               // in an array, behind a comma
	closed               // behind the array
	amiss                // behind what is no JSON; among values until the line ends
)

// Write takes the next piece of the body.
func (j *JSON) Write(p []byte) {
	for len(p) > 0 {
		if j.at == inside {
			n, whole := j.value.next(p)
			if n > 0 {
				j.Sink.Data(p[:n])
			}
			if p = p[n:]; whole {
				j.end()
			}
			continue
		}
		if !isSpace(p[0]) && j.step(p[0]) {
			continue // the byte belongs to what follows
		}
		if p[0] == '\n' && j.at == amiss && j.mode == values {
			j.at = between
		}
		p = p[1:]
	}
}

// step takes a byte between values, and reports whether that begins one.
func (j *JSON) step(b byte) bool {
	if j.mode == undecided {
		if b == '[' {
			j.mode = array
			return false
		}
		j.mode = values
	}
	switch {
	case j.at == closed || j.at == amiss:
		j.at = amiss
	case j.mode == array && b == ']' && j.at != before:
		j.at = closed
	case j.mode == array && b == ',' && j.at == behind:
		j.at = before
	case j.at != behind && beginsValue(b):
		j.at = inside
		j.value = value{}
		return true
	default:
		j.at = amiss
	}
	return false
}

// end ends a value.
func (j *JSON) end() {
	j.at = between
	if j.mode == array {
		j.at = behind
	}
	j.counts.Frames++
	j.Sink.Done(Ending{Frame: true})
}

// Settle does nothing: nothing is held.
func (j *JSON) Settle() {}

// Rest says what lies behind the last frame, were this the end of the body. A
// number or a name that ends with the body may be whole: that is for the sink
// to find out.
func (j *JSON) Rest() Rest {
	switch {
	case j.at == inside:
		return Torn
	case j.at == amiss:
		return Damaged
	}
	return Clean
}

// Open reports whether the body is an array that is not closed.
func (j *JSON) Open() bool { return j.mode == array && j.at != closed }

// IsArray reports whether the body is an array, as soon as it has begun.
func (j *JSON) IsArray() bool { return j.mode == array }

// Counts returns how many frames there were.
func (j *JSON) Counts() Counts { return j.counts }

// beginsValue reports whether a JSON value may begin with b.
func beginsValue(b byte) bool {
	switch b {
	case '{', '[', '"', '-', 't', 'f', 'n':
		return true
	}
	return '0' <= b && b <= '9'
}

// A value finds the end of a JSON value without knowing what is in it.
type value struct {
	depth   int
	quoted  bool // in a string
	escaped bool // behind a backslash
}

// next returns how much of p belongs to the value, and whether it ends there.
func (v *value) next(p []byte) (int, bool) {
	for i := 0; i < len(p); {
		if v.quoted {
			i += v.text(p[i:])
			if !v.quoted && v.depth == 0 {
				return i, true
			}
			continue
		}
		switch b := p[i]; {
		case b == '"':
			v.quoted = true
		case b == '{' || b == '[':
			v.depth++
		case b == '}' || b == ']':
			if v.depth == 0 {
				return i, true // a number or a name ended before it
			}
			if v.depth--; v.depth == 0 {
				return i + 1, true
			}
		case v.depth == 0 && (isSpace(b) || b == ','):
			return i, true
		}
		i++
	}
	return len(p), false
}

// text takes a part of a string and returns its length.
func (v *value) text(p []byte) int {
	if v.escaped {
		v.escaped = false
		return 1
	}
	n := TextEnd(p)
	if n == len(p) {
		return n
	}
	v.escaped = p[n] == '\\'
	v.quoted = p[n] != '"'
	return n + 1
}

// TextEnd returns the index of the first byte of p that is special in a JSON
// string: a quote, a backslash, or a line feed, which can't be in one. It
// returns the length of p if there is none.
func TextEnd(p []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(p); i += 8 {
		w := binary.LittleEndian.Uint64(p[i:])
		q, b, n := w^(ones*'"'), w^(ones*'\\'), w^(ones*'\n')
		// The lowest high bit of each term marks the first zero byte.
		if hit := ((q-ones)&^q | (b-ones)&^b | (n-ones)&^n) & highs; hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for ; i < len(p); i++ {
		if b := p[i]; b == '"' || b == '\\' || b == '\n' {
			return i
		}
	}
	return len(p)
}
