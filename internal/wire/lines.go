package wire

import "bytes"

// A Lines cuts a body into lines that end with LF, as newline-delimited JSON
// has them. Blank lines are no frames; a CR before the LF is white space. What
// lies behind the last LF is no frame either, but may be a whole value: that is
// for the sink to find out.
//
// The zero value is ready once Sink is set.
type Lines struct {
	Sink Sink

	counts Counts
	begun  bool // data of the current line was told
	hold   [holdSize]byte
	held   int
}

// Write takes the next piece of the body.
func (l *Lines) Write(p []byte) {
	for len(p) > 0 {
		if !l.begun && l.held == 0 {
			p = l.known(p)
		}
		lf := bytes.IndexByte(p, '\n')
		if lf < 0 {
			l.keep(p)
			return
		}
		l.end(p[:lf+1])
		p = p[lf+1:]
	}
}

// known takes lines that the sink knows and returns the rest.
func (l *Lines) known(p []byte) []byte {
	n, frames := l.Sink.Match(p)
	l.counts.Frames += frames
	return p[n:]
}

// end takes the last piece of a line, with its LF.
func (l *Lines) end(p []byte) {
	if l.held > 0 && l.held+len(p) <= holdSize {
		l.held += copy(l.hold[l.held:], p)
		p = l.hold[:l.held]
		l.held = 0
		if p = l.known(p); len(p) == 0 {
			return
		}
	}
	l.Settle()
	switch data := p[:len(p)-1]; {
	case l.begun:
		l.tell(data)
		l.counts.Frames++
		l.Sink.Done(Ending{Frame: true})
		l.begun = false
	case !isBlank(data):
		l.counts.Frames++
		l.Sink.Whole(p, 0, len(data))
	}
}

// keep holds p, which has no line end, or tells it if it can't be held.
func (l *Lines) keep(p []byte) {
	if !l.begun && l.held+len(p) <= holdSize {
		l.held += copy(l.hold[l.held:], p)
		return
	}
	l.Settle()
	l.tell(p)
}

// tell tells a piece of the current line, unless nothing but white space came
// of it so far.
func (l *Lines) tell(p []byte) {
	if l.begun || !isBlank(p) {
		l.begun = true
		l.Sink.Data(p)
	}
}

// Settle tells the sink what is held of a line that is not whole yet.
func (l *Lines) Settle() {
	if l.held > 0 {
		p := l.hold[:l.held]
		l.held = 0
		l.tell(p)
	}
}

// Rest says what lies behind the last frame, were this the end of the body.
func (l *Lines) Rest() Rest {
	l.Settle()
	if l.begun {
		return Torn
	}
	return Clean
}

// Counts returns how many frames there were.
func (l *Lines) Counts() Counts { return l.counts }
