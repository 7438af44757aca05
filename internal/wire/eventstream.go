package wire

import (
	"encoding/binary"
	"hash/crc32"
)

// An EventStream cuts an AWS event stream (content type
// application/vnd.amazon.eventstream): a prelude of the two lengths and their
// CRC-32, headers, payload, CRC-32 of all before it. A frame counts once both
// checksums are right; behind one that is damaged nothing can be read.
//
// The zero value is ready once Sink is set.
type EventStream struct {
	Sink Sink

	counts Counts
	part   part
	buf    [12]byte // of a prelude or a checksum
	n      int
	crc    uint32
	left   int64 // bytes of the part that are to come
	body   int64 // bytes of the payload
	use    Use
	head   headers
	last   text // the name of the last frame
}

// A part is a part of a frame.
type part uint8

const (
	prelude part = iota
	headed
	payload
	checksum
	ruined
)

// Sizes of the prelude and of the checksum behind the payload.
const (
	preludeSize  = 12
	checksumSize = 4
)

// Write takes the next piece of the body.
func (e *EventStream) Write(p []byte) {
	for len(p) > 0 && e.part != ruined {
		switch e.part {
		case prelude:
			p = e.fill(p, preludeSize)
			if e.n == preludeSize {
				e.begin()
			}
		case checksum:
			p = e.fill(p, checksumSize)
			if e.n == checksumSize {
				e.end()
			}
		default:
			n := min(e.left, int64(len(p)))
			e.take(p[:n])
			e.left -= n
			p = p[n:]
		}
		e.advance()
	}
}

// fill collects up to size bytes in buf.
func (e *EventStream) fill(p []byte, size int) []byte {
	n := copy(e.buf[e.n:size], p)
	e.n += n
	return p[n:]
}

// begin checks the prelude.
func (e *EventStream) begin() {
	total := binary.BigEndian.Uint32(e.buf[0:])
	head := binary.BigEndian.Uint32(e.buf[4:])
	sum := binary.BigEndian.Uint32(e.buf[8:])
	const frame = preludeSize + checksumSize
	if crc32.ChecksumIEEE(e.buf[:8]) != sum || uint64(total) < uint64(head)+frame {
		e.ruin()
		return
	}
	e.crc = crc32.ChecksumIEEE(e.buf[:preludeSize])
	e.part, e.n = headed, 0
	e.left, e.body = int64(head), int64(total-head-frame)
	e.head.reset()
}

// take takes a piece of the headers or of the payload.
func (e *EventStream) take(p []byte) {
	e.crc = crc32.Update(e.crc, crc32.IEEETable, p)
	switch {
	case e.part == headed:
		e.head.take(p)
	case e.use == Read || e.use == Last:
		if len(p) > 0 {
			e.Sink.Data(p)
		}
	}
}

// advance goes on to the next part when there is nothing to come of this one.
func (e *EventStream) advance() {
	if e.part == headed && e.left == 0 {
		e.part, e.left = payload, e.body
		e.use = e.name()
	}
	if e.part == payload && e.left == 0 {
		e.part, e.n = checksum, 0
	}
}

// name tells the sink what the headers say.
func (e *EventStream) name() Use {
	h := &e.head
	kind := Event
	switch string(h.message.bytes()) {
	case "exception":
		kind = Exception
	case "error":
		kind = Error
	}
	use := e.Sink.Name(kind, h.kind().bytes())
	if kind == Error && use == Read {
		e.Sink.Data(h.text.bytes())
	}
	return use
}

// end checks the checksum.
func (e *EventStream) end() {
	if binary.BigEndian.Uint32(e.buf[:]) != e.crc {
		e.ruin()
		e.Sink.Done(Ending{Dropped: true})
		return
	}
	e.part, e.n = prelude, 0
	e.counts.add(e.use)
	e.last.set(e.head.kind())
	e.Sink.Done(Ending{Use: e.use, Frame: true})
}

// ruin ends all reading.
func (e *EventStream) ruin() { e.part = ruined }

// Settle does nothing: nothing is held.
func (e *EventStream) Settle() {}

// Rest says what lies behind the last frame, were this the end of the body.
func (e *EventStream) Rest() Rest {
	switch {
	case e.part == ruined:
		return Damaged
	case e.part == prelude && e.n == 0:
		return Clean
	}
	return Torn
}

// Counts returns how many frames there were.
func (e *EventStream) Counts() Counts { return e.counts }

// Last returns the name of the last frame.
func (e *EventStream) Last() []byte { return e.last.bytes() }
