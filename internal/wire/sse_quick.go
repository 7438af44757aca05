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
// block.
func (s *SSE) fast(p []byte) []byte {
	if p = s.known(p); len(p) == 0 || !s.isPlain(p) {
		return p
	}
	q := &s.quick
	var latest []byte // data of the last frame of which only the last is wanted
	for {
		named, rest := false, p
		if n := q.n; n > 0 && len(p) >= n && string(p[:n]) == string(q.line[:n]) {
			named, rest = true, p[n:]
		}
		if len(rest) < 7 || string(rest[:5]) != "data:" {
			if !named && s.learn(p) {
				continue
			}
			break
		}
		lf := bytes.IndexByte(rest, '\n')
		if lf < 0 || lf+1 == len(rest) || rest[lf+1] != '\n' {
			break
		}
		data, block := rest[5:lf], p
		p = rest[lf+2:]
		if named {
			s.counts.add(q.use)
			q.last = true
			if q.use == Last {
				latest = data
			}
			continue
		}
		latest = s.latest(latest)
		s.counted(1)
		s.Sink.Whole(block[:lf+2], lf-len(trimSpace(data)), lf)
		p = s.known(p)
	}
	s.latest(latest)
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

// latest tells the data of the last frame, if there is one.
func (s *SSE) latest(data []byte) []byte {
	if data != nil {
		s.Sink.Latest(trimSpace(data))
	}
	return nil
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
	if len(p) > holdSize || !s.isPlain(p) || blockEnd(p) >= 0 {
		return false
	}
	s.quick.held = copy(s.quick.hold[:], p)
	return true
}

// refill takes from p what is missing of the block that is held, and returns
// the rest of p.
func (s *SSE) refill(p []byte) []byte {
	q := &s.quick
	end := s.heldEnd(p)
	n := end
	if end < 0 {
		n = len(p)
	}
	if q.held+n > holdSize || hasCR(p[:n]) {
		s.Settle()
		return p
	}
	q.held += copy(q.hold[q.held:], p[:n])
	if end >= 0 {
		s.release()
	}
	return p[n:]
}

// heldEnd returns how much of p belongs to the block that is held, or -1 if
// all of it does and that is not all.
func (s *SSE) heldEnd(p []byte) int {
	if len(p) > 0 && p[0] == '\n' && s.quick.hold[s.quick.held-1] == '\n' {
		return 1
	}
	return blockEnd(p)
}

// release takes the block that is held, which is whole.
func (s *SSE) release() {
	p := s.quick.hold[:s.quick.held]
	s.quick.held, s.quick.plain = 0, yes
	p = s.fast(p)
	for len(p) > 0 {
		p = s.exact(p)
	}
}

// blockEnd returns the index behind the first blank line in p, or -1. p has no
// CR.
func blockEnd(p []byte) int {
	for from := 0; ; {
		lf := bytes.IndexByte(p[from:], '\n')
		if lf < 0 || from+lf+1 == len(p) {
			return -1
		}
		if from += lf + 1; p[from] == '\n' {
			return from + 1
		}
	}
}
