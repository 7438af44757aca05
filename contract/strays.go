package contract

import "github.com/rubicon-go/rubicon/internal/wire"

// A strays reads what stands in an SSE body and is no event, and may still be
// an error of the peer: JSON without a field name, and the value of a field
// named error. A strict reader of events never sees either.
type strays struct {
	scan  scanner
	field wire.Field
	begun bool
	deaf  bool // to the rest of a line
	ended bool // the last line that came is whole
}

// Stray implements [wire.Sink].
func (e *engine) Stray(f wire.Field, p []byte) {
	if e.phase == idle {
		return
	}
	if e.stray == nil {
		e.stray = new(strays)
	}
	e.stray.add(e, f, p)
}

// add takes a piece. Bare JSON begins with a brace; other bare lines before it
// say nothing.
func (s *strays) add(e *engine, f wire.Field, p []byte) {
	lineEnd := len(p) == 1 && p[0] == '\n'
	s.ended = lineEnd
	switch {
	case s.deaf:
		s.deaf = !lineEnd
	case s.begun && s.field == f:
		s.scan.feed(p)
	case f == wire.Bare && len(p) > 0 && p[0] != '{':
		s.deaf = !lineEnd
	default:
		s.begun, s.field = true, f
		s.scan.reset(e.set.seek)
		if e.rule != nil {
			s.scan.reset(e.rule.trie)
		}
		s.scan.feed(p)
	}
}

// take returns what came as a frame, and forgets it. Nil: nothing whole came.
func (s *strays) take(e *engine) *Frame {
	f := s.view(e)
	s.begun, s.deaf = false, false
	return f
}

// view returns what came as a frame, or nil.
func (s *strays) view(e *engine) *Frame {
	whole := s.ended
	if s.field == wire.Bare {
		whole = s.scan.whole()
	}
	if !s.begun || !whole {
		return nil
	}
	f := &e.frame
	*f = Frame{Origin: Stray, vals: &s.scan.vals, paths: s.scan.trie.paths}
	f.state = qualityOf(&s.scan, false)
	f.text = trim(s.scan.raw.bytes())
	if s.field == wire.ErrorField {
		f.Name = errorName
	}
	return f
}

var errorName = []byte("error")
