package wire

// A headers reads the headers of an event stream frame as they come: name
// length and name, type of the value, the value. It keeps the values of those
// that say what the frame is.
type headers struct {
	at      step
	left    int  // bytes of the step that are to come
	long    int  // length of a value, as far as it is read
	name    text // of the header
	keep    *text
	message text // :message-type
	event   text // :event-type
	// of an exception or error
	exception text // :exception-type
	code      text // :error-code
	text      text // :error-message
}

// A step is a place in a header.
type step uint8

const (
	nameLength step = iota
	nameBytes
	valueType
	valueLength
	valueBytes
)

// reset prepares for the headers of another frame.
func (h *headers) reset() {
	h.at = nameLength
	for _, t := range []*text{&h.message, &h.event, &h.exception, &h.code, &h.text} {
		t.reset()
	}
}

// kind returns what names the frame.
func (h *headers) kind() *text {
	switch string(h.message.bytes()) {
	case "exception":
		return &h.exception
	case "error":
		return &h.code
	}
	return &h.event
}

// take takes a piece of the headers.
func (h *headers) take(p []byte) {
	for len(p) > 0 {
		switch h.at {
		case nameLength:
			h.name.reset()
			h.left, h.at = int(p[0]), nameBytes
			p = p[1:]
		case nameBytes:
			p = h.bytes(p, &h.name)
		case valueType:
			h.open(p[0])
			p = p[1:]
		case valueLength:
			h.long = h.long<<8 | int(p[0])
			if h.left--; h.left == 0 {
				h.left, h.at = h.long, valueBytes
			}
			p = p[1:]
		case valueBytes:
			p = h.bytes(p, h.keep)
		}
		h.advance()
	}
}

// bytes takes bytes of a name or a value into t, if that isn't nil.
func (h *headers) bytes(p []byte, t *text) []byte {
	n := min(h.left, len(p))
	if t != nil {
		t.add(p[:n])
	}
	h.left -= n
	return p[n:]
}

// advance goes on when nothing is to come of a name or a value.
func (h *headers) advance() {
	if h.left > 0 {
		return
	}
	switch h.at {
	case nameBytes:
		h.at = valueType
	case valueBytes:
		h.at = nameLength
	}
}

// open begins a value of the given type.
func (h *headers) open(kind byte) {
	h.keep, h.long, h.at = nil, 0, valueBytes
	switch kind {
	case 0, 1: // true, false
		h.left = 0
	case 2: // byte
		h.left = 1
	case 3: // short
		h.left = 2
	case 4: // integer
		h.left = 4
	case 5, 8: // long, timestamp
		h.left = 8
	case 9: // UUID
		h.left = 16
	default: // 6, 7: bytes, string
		h.left, h.at = 2, valueLength
		h.keep = h.known()
	}
}

// known returns where the value of the header goes, or nil.
func (h *headers) known() *text {
	switch string(h.name.bytes()) {
	case ":message-type":
		return &h.message
	case ":event-type":
		return &h.event
	case ":exception-type":
		return &h.exception
	case ":error-code":
		return &h.code
	case ":error-message":
		return &h.text
	}
	return nil
}
