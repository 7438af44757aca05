package wire

import "bytes"

// A Sequence cuts a JSON text sequence (RFC 7464): each text follows an RS and
// is ended by an LF. A text that another RS cuts short, or that is a number or
// a name without its LF (section 2.4), did not arrive whole. What comes before
// the first RS is ignored.
//
// The zero value is ready once Sink is set.
type Sequence struct {
	Sink Sink

	counts Counts
	at     spot
	value  value
}

// A spot is where in a sequence the next byte lies.
type spot uint8

const (
	outside spot = iota // before an RS
	opened              // behind one
	within              // in a text
	ending              // behind a text, before its LF
)

const rs = 0x1e

// Write takes the next piece of the body.
func (s *Sequence) Write(p []byte) {
	for len(p) > 0 {
		if p[0] == rs {
			s.cut()
			s.at, s.value = opened, value{}
			p = p[1:]
			continue
		}
		n := len(p)
		if i := bytes.IndexByte(p, rs); i >= 0 {
			n = i
		}
		s.text(p[:n])
		p = p[n:]
	}
}

// text takes bytes between two RS.
func (s *Sequence) text(p []byte) {
	for len(p) > 0 {
		switch {
		case s.at == opened && !isSpace(p[0]):
			s.at = within
		case s.at == within:
			n, whole := s.value.next(p)
			s.Sink.Data(p[:n])
			if p = p[n:]; whole {
				s.at = ending
			}
		case s.at == ending && p[0] == '\n':
			s.end()
		case s.at == ending && !isSpace(p[0]):
			s.cut()
		default:
			p = p[1:]
		}
	}
}

// end ends a text that is whole.
func (s *Sequence) end() {
	s.at = outside
	s.counts.Frames++
	s.Sink.Done(Ending{Frame: true})
}

// cut ends a text that is not.
func (s *Sequence) cut() {
	if s.at == within || s.at == ending {
		s.Sink.Done(Ending{Dropped: true})
	}
	s.at = outside
}

// Settle does nothing: nothing is held.
func (s *Sequence) Settle() {}

// Rest says what lies behind the last frame, were this the end of the body.
func (s *Sequence) Rest() Rest {
	switch s.at {
	case outside:
		return Clean
	case ending:
		return Ripe
	}
	return Torn
}

// Counts returns how many frames there were.
func (s *Sequence) Counts() Counts { return s.counts }
