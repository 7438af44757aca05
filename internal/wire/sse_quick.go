package wire

import "bytes"

// A quick is what lets an SSE take plain blocks at the pace of a search for
// line feeds: an event line, perhaps none, one data line, a blank line, no CR.
// That covers nearly all of what model services send. Everything else goes the
// exact way, and both must tell the same.
type quick struct {
	line [maxLine]byte // the last event line that was not to be read, its end included
	n    int
	use  Use  // what was said of it
	last bool // it was the last frame's

	hold [holdSize]byte // the beginning of a block that lies astride two pieces
	held int

	plain answer // whether the rest of the piece that is written has no CR
}

// maxLine is the length of the longest event line that is remembered.
const maxLine = 128

// name returns the name in the remembered line.
func (q *quick) name() []byte { return eventName(q.line[:q.n-1]) }

// eventName returns the name in an event line.
func eventName(line []byte) []byte { return trimSpace(line[len("event:"):]) }

// trimSpace drops the one space that may follow a colon.
func trimSpace(value []byte) []byte {
	if len(value) > 0 && value[0] == ' ' {
		return value[1:]
	}
	return value
}

// fast takes plain blocks that are whole and returns the rest. p begins a
// block and isn't empty.
func (s *SSE) fast(p []byte) []byte {
	if p[0] == 'd' {
		if p = s.known(p); len(p) == 0 {
			return nil
		}
	}
	if s.isPlain(p) {
		return s.lf(p)
	}
	return s.crlf(p)
}

// lf takes blocks of which no line has a CR.
func (s *SSE) lf(p []byte) []byte {
	q := &s.quick
	var latest []byte // data of the last frame of which only the last is wanted
	for len(p) > 0 {
		from := 0 // where the data line begins
		if n := q.n; n > 0 && len(p) >= n && string(p[:n]) == string(q.line[:n]) {
			from = n
		}
		line := p[from:]
		if len(line) < 7 || string(line[:5]) != "data:" {
			if from == 0 && s.learn(p) {
				continue
			}
			break
		}
		end := bytes.IndexByte(line, '\n')
		if end < 0 || end+1 == len(line) || line[end+1] != '\n' {
			break
		}
		block := p[:from+end+2]
		p = line[end+2:]
		if from == 0 {
			s.latest(&latest)
			p = s.unnamed(block, end, p)
			continue
		}
		s.counts.add(q.use)
		q.last = true
		if q.use == Last {
			latest = line[5:end]
		}
	}
	s.latest(&latest)
	return p
}

// unnamed takes a nameless block, whose data line ends at the given index, and
// what the sink knows of p, which follows it.
func (s *SSE) unnamed(block []byte, end int, p []byte) []byte {
	s.counted(1)
	s.Sink.Whole(block, end-len(trimSpace(block[5:end])), end)
	return s.known(p)
}

// crlf takes nameless blocks of one line whose lines end with CR and LF, and
// returns the rest. p begins a block.
func (s *SSE) crlf(p []byte) []byte {
	for len(p) > 0 && p[0] == 'd' {
		cr := bytes.IndexByte(p, '\r')
		if cr < 5 || len(p) < cr+4 || string(p[:5]) != "data:" || string(p[cr:cr+4]) != "\r\n\r\n" ||
			bytes.IndexByte(p[:cr], '\n') >= 0 {
			break
		}
		p = s.unnamed(p[:cr+4], cr, p[cr+4:])
	}
	return p
}

// known takes nameless blocks that the sink knows and returns the rest.
func (s *SSE) known(p []byte) []byte {
	n, frames := s.Sink.Match(p)
	if frames > 0 {
		s.counted(frames)
	}
	return p[n:]
}

// counted counts nameless frames.
func (s *SSE) counted(frames int64) {
	s.counts.Frames += frames
	s.last.reset()
	s.quick.last = false
}

// An answer is yes or no, if it was asked for.
type answer uint8

const (
	unasked answer = iota
	yes
	no
)

// isPlain reports whether the piece that is written has no CR, from p on.
func (s *SSE) isPlain(p []byte) bool {
	if s.quick.plain == unasked {
		s.quick.plain = yes
		if hasCR(p) {
			s.quick.plain = no
		}
	}
	return s.quick.plain == yes
}

// latest tells the data of the last frame of which only the last is wanted, if
// it was not told yet.
func (s *SSE) latest(data *[]byte) {
	if *data != nil {
		s.Sink.Latest(trimSpace(*data))
		*data = nil
	}
}

// learn remembers the event line at the start of p if its frames are not to be
// read. It reports whether it did.
func (s *SSE) learn(p []byte) bool {
	if len(p) < 7 || string(p[:6]) != "event:" {
		return false
	}
	lf := bytes.IndexByte(p, '\n')
	if lf < 0 || lf+1 > maxLine {
		return false
	}
	use := s.Sink.Name(Event, eventName(p[:lf]))
	s.Sink.Done(Ending{Use: use}) // that was but a question
	if use == Read {
		return false
	}
	q := &s.quick
	if q.last {
		s.last.reset()
		s.last.add(q.name())
		q.last = false
	}
	q.n, q.use = copy(q.line[:], p[:lf+1]), use
	return true
}

// hold keeps p, the beginning of a block, until the rest of it comes. It
// reports whether it did: not if p is long, or has more than a beginning.
func (s *SSE) hold(p []byte) bool {
	if len(p) > holdSize || blockEnd(p) >= 0 {
		return false
	}
	s.quick.held = copy(s.quick.hold[:], p)
	return true
}

// refill takes from p what is missing of the block that is held, and returns
// the rest of p.
func (s *SSE) refill(p []byte) []byte {
	q := &s.quick
	before := q.held
	q.held += copy(q.hold[before:], p)
	end := blockEnd(q.hold[:q.held])
	switch {
	case end >= 0:
		q.held = end
		s.release()
		return p[end-before:]
	case q.held-before == len(p):
		return nil
	}
	p = p[q.held-before:]
	s.Settle()
	return p
}

// release takes the block that is held, which is whole.
func (s *SSE) release() {
	p := s.quick.hold[:s.quick.held]
	s.quick.held, s.quick.plain = 0, unasked
	p = s.fast(p)
	for len(p) > 0 {
		p = s.exact(p)
	}
}

// blockEnd returns the index behind the first blank line in p, which begins a
// block, or -1.
func blockEnd(p []byte) int {
	for at := 0; ; {
		n := lineEnd(p[at:])
		if at+n == len(p) {
			return -1
		}
		blank := n == 0
		at += n + 1
		if p[at-1] == '\r' && at < len(p) && p[at] == '\n' {
			at++
		}
		if blank {
			return at
		}
	}
}
