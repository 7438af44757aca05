package contract

import "bytes"

// A Frame is one event, line, element or message of a stream, as a [Contract]
// sees it: its name and the values that the contract's paths lead to. It and
// what its methods return are valid during the call only.
type Frame struct {
	// Name is the event's name: of the event line (SSE), of the event or
	// exception type (AWS event stream). Empty: it has none.
	Name []byte

	// Origin says what the frame is, if it is more or less than an event.
	Origin Origin

	vals  *values
	paths []string
	state quality
	text  []byte
	id    []byte // the last event id (SSE), if a claim is asked for
	late  bool   // it is asked for, and was for earlier frames that nobody knew
}

// An Origin says where in a stream a frame comes from.
type Origin uint8

const (
	Event     Origin = iota // the protocol's own event
	Exception               // an exception or error message of an AWS event stream
	Stray                   // what stands between the events of an SSE body and is none: bare JSON, or the value of a field named error
)

// A quality says what is known of a frame's data.
type quality uint8

const (
	sound  quality = iota // one JSON value
	plain                 // text
	broken                // JSON that is no single value, or not whole
)

// Named reports whether the frame has the given name.
func (f *Frame) Named(name string) bool { return string(f.Name) == name }

// Text returns the data of a frame that isn't JSON, without white space around
// it, if it is short: [DONE] for one.
func (f *Frame) Text() []byte {
	if f.state != plain {
		return nil
	}
	return f.text
}

// JSON reports whether the data is one JSON value.
func (f *Frame) JSON() bool { return f.state == sound }

// Kind returns the kind of the value that path leads to. Of values at the same
// path, as of an object with two equal keys, the last one counts: that is how
// JSON is commonly read.
func (f *Frame) Kind(path string) Kind {
	if v := f.find(path, -1); v != nil {
		return v.kind
	}
	return Absent
}

// Get returns the text of the string or number that path leads to: at most 512
// bytes of it, without escapes. Nil: there is none.
func (f *Frame) Get(path string) []byte { return f.scalar(f.find(path, -1)) }

// Is reports whether path leads to the given string or number.
func (f *Frame) Is(path, text string) bool { return string(f.Get(path)) == text && text != "" }

// Has reports whether path leads to something: not to null, false or 0, nor to
// what is empty.
func (f *Frame) Has(path string) bool {
	v := f.find(path, -1)
	if v == nil {
		return false
	}
	switch v.kind {
	case String:
		return v.size > 0 || v.some
	case Object, Array:
		return v.some
	case Number:
		return string(f.vals.bytes(v)) != "0"
	}
	return v.kind > False
}

// Len returns the number of elements that a path that ends with [] leads to.
func (f *Frame) Len(path string) int {
	n := 0
	for i := range f.all() {
		if v := &f.vals.list[i]; f.paths[v.leaf] == path {
			n = max(n, int(v.index)+1)
		}
	}
	return n
}

// At is Get for the i-th element of the innermost array in path.
func (f *Frame) At(path string, i int) []byte { return f.scalar(f.find(path, i)) }

// KindAt is Kind for the i-th element of the innermost array in path.
func (f *Frame) KindAt(path string, i int) Kind {
	if v := f.find(path, i); v != nil {
		return v.kind
	}
	return Absent
}

// all returns how many values there are to look at.
func (f *Frame) all() int {
	if f.state != sound {
		return 0
	}
	return f.vals.n
}

// find returns the last value at path, with the given index unless that is
// negative.
func (f *Frame) find(path string, index int) *found {
	for i := f.all() - 1; i >= 0; i-- {
		v := &f.vals.list[i]
		if (index < 0 || int(v.index) == index) && f.paths[v.leaf] == path {
			return v
		}
	}
	return nil
}

// scalar returns the text of a string or a number.
func (f *Frame) scalar(v *found) []byte {
	if v == nil || v.kind != String && v.kind != Number {
		return nil
	}
	return f.vals.bytes(v)
}

// trim returns text without white space around it.
func trim(text []byte) []byte { return bytes.TrimSpace(text) }

// decimal returns the small number that text is, or -1.
func decimal(text []byte) int {
	if len(text) == 0 || len(text) > 6 {
		return -1
	}
	n := 0
	for _, b := range text {
		if b < '0' || b > '9' {
			return -1
		}
		n = n*10 + int(b-'0')
	}
	return n
}
