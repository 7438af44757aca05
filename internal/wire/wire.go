// Package wire cuts the bodies of streamed answers into frames.
//
// A framer is fed a body in pieces of any size and tells a [Sink] what frames
// lie in it: [SSE], [Lines], [JSON], [Sequence] and [EventStream]. It keeps no
// frame and knows no limit to the length of one: what it holds has a fixed
// size, whatever the body does. A frame that does not arrive whole is never
// reported as a frame.
//
// Framers are not safe for concurrent use.
package wire

// A Sink takes what a framer finds. All slices are valid during the call only.
type Sink interface {
	// Name tells the name of the frame that has begun, and asks what is wanted
	// of its data. It may come again for the same frame, and after some of its
	// data: the last one holds. A frame without a name is read.
	Name(kind Kind, name []byte) Use

	// Data takes the next piece of the data of a frame that is read.
	Data(p []byte)

	// Stray takes a piece of what is in a body and in no frame of it, and may
	// still say something: see [Field].
	Stray(f Field, p []byte)

	// Done ends what Name, Data and Stray began. What was not ended so did not
	// arrive whole.
	Done(e Ending)

	// Whole takes a nameless frame that lay in one piece: Data and Done. block
	// is all of its bytes, up to and with the line ends that end it, of which
	// block[from:to] is the data. There is no line end before these.
	Whole(block []byte, from, to int)

	// Match is shown bytes that begin with a frame. It returns how many bytes
	// at their start, and frames, are blocks that the sink knows to tell it
	// nothing that it was not told by earlier ones. They are not told.
	Match(p []byte) (n int, frames int64)

	// Latest takes the data of the latest frame of which [Last] was said, if
	// that lay in one piece. Earlier ones are not told.
	Latest(data []byte)
}

// A Kind says what a named frame is.
type Kind uint8

const (
	Event     Kind = iota // an event of the protocol
	Exception             // an error of the service, by its type (event stream)
	Error                 // an error below the service, by its code; its data is text (event stream)
)

// A Use says what is wanted of a frame's data.
type Use uint8

const (
	Read Use = iota // all of it
	Last            // it, unless another such frame follows at once
	Skip            // nothing
	Ping            // nothing, and the frame says only that the peer is alive
)

// A Field says what a stray line of an SSE body is.
type Field uint8

const (
	Bare       Field = iota // a line that begins as a line of JSON may, its end included
	ErrorField              // the value of a field named error, with a line feed at its end
)

// An Ending says how a frame ended.
type Ending struct {
	Use     Use  // what was wanted of it in the end
	Frame   bool // it is a frame; else only a name or stray text came
	Partial bool // it is read, but some of its data was skipped before
	Dropped bool // it came, but proved damaged
}

// Counts says what a framer has seen.
type Counts struct {
	Frames int64 // that arrived whole
	Pings  int64 // of these, frames of which Ping was said
}

// A Rest says what of a body lies behind its last frame.
type Rest uint8

const (
	Clean   Rest = iota // nothing
	Ripe                // a frame whose every line is terminated, and that only lacks its own end
	Torn                // a part of a frame
	Damaged             // what can't be framed
)

// holdSize is how much of a straddling frame is held, so that it can be handed
// on in one piece. A longer one goes through in pieces.
const holdSize = 1 << 10

// isSpace reports whether b is white space between JSON values (RFC 8259
// section 2).
func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\r' || b == '\t' }

// isBlank reports whether p is white space alone.
func isBlank(p []byte) bool {
	for _, b := range p {
		if !isSpace(b) {
			return false
		}
	}
	return true
}
