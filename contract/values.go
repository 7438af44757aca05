package contract

// A Kind is the kind of a JSON value.
type Kind uint8

const (
	Absent Kind = iota // there is no such value
	Null
	False
	True
	Number
	String
	Object
	Array
)

// Bounds of what is kept of one frame. A chunk with more choices than fit is
// not fully known, and a longer text is kept up to its bound. An array has no
// bound to its length, so what is behind its first element leaves room for what
// comes once: a message of many parts may stand before the state of a task.
const (
	maxValues   = 96
	maxElements = 80
	maxText     = 512
	maxTexts    = 2048
	maxEach     = 1024
)

// A values holds the values of a frame that paths led to, in their order.
type values struct {
	n    int
	full bool // there were more
	drop bool // the last one was one of these
	list [maxValues]found
	used int
	text [maxTexts]byte
}

// A found is a value.
type found struct {
	leaf  int16
	kind  Kind
	some  bool  // a container that isn't empty, or a string of which only the kind is kept
	cut   bool  // its text was longer
	index int32 // in the innermost array of its path
	from  uint16
	size  uint16
}

// reset forgets all.
func (v *values) reset() { v.n, v.used, v.full, v.drop = 0, 0, false, false }

// begin adds a value without text and returns its index. What does not fit is
// dropped, and its text with it: the index is -1.
func (v *values) begin(leaf int16, k Kind, index int32) int16 {
	limit := maxValues
	if index > 0 {
		limit = maxElements
	}
	if v.drop = v.n >= limit; v.drop {
		v.full = true
		return -1
	}
	v.list[v.n] = found{leaf: leaf, kind: k, index: index, from: uint16(v.used)}
	v.n++
	return int16(v.n - 1)
}

// add adds text to the last value.
func (v *values) add(p []byte) {
	if v.drop {
		return
	}
	last, limit := &v.list[v.n-1], maxTexts
	if last.index > 0 {
		limit = maxEach
	}
	end := max(v.used, min(limit, int(last.from)+maxText))
	n := copy(v.text[v.used:end], p)
	last.size += uint16(n)
	last.cut = last.cut || n < len(p)
	v.used += n
}

// fill notes that the container at the given index isn't empty.
func (v *values) fill(at int16) {
	if at >= 0 {
		v.list[at].some = true
	}
}

// bytes returns the text of a value.
func (v *values) bytes(f *found) []byte { return v.text[f.from : f.from+f.size : f.from+f.size] }

// A short is the beginning of a text.
type short struct {
	n    int
	over bool // there was more
	b    [128]byte
}

// add adds p, as far as it fits.
func (t *short) add(p []byte) {
	n := copy(t.b[t.n:], p)
	t.n += n
	t.over = t.over || n < len(p)
}

// bytes returns what is kept.
func (t *short) bytes() []byte { return t.b[:t.n] }

// reset empties t.
func (t *short) reset() { t.n, t.over = 0, false }
