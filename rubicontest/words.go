package rubicontest

import (
	"fmt"
	"strings"
)

// String says in words what happens, such as "read header, answer 413, close".
func (f Fault) String() string {
	f = f.normal()
	var words []string
	switch f.want {
	case wantPart:
		words = append(words, fmt.Sprintf("read %d bytes", f.bytes))
	case wantHeader:
		words = append(words, "read header")
	case wantNothing:
		words = append(words, "read nothing")
	default:
		words = append(words, "read")
	}
	for _, s := range f.steps {
		words = append(words, s.String())
	}
	if f.want == wantAll && len(words) > 1 {
		words = words[1:]
	}
	return strings.Join(words, ", ")
}

// String says in words what s does.
func (s step) String() string {
	switch s.verb {
	case doWait:
		return "wait " + s.wait.String()
	case doInform:
		return fmt.Sprintf("inform %d", s.status)
	case doAnswer:
		return s.answer.String()
	case doResetStream:
		return "RST_STREAM " + s.code.String()
	case doGoAwayBelow:
		return "GOAWAY below " + s.code.String()
	case doGoAwayAbove:
		return "GOAWAY above " + s.code.String()
	}
	return s.verb.String()
}

// String names the steps that need no more than a name.
func (v verb) String() string {
	switch v {
	case doAct:
		return "act"
	case doUntil:
		return "hold"
	case doDrain:
		return "drain"
	case doRaw:
		return "write raw bytes"
	case doCloseListener:
		return "close listener"
	case doFreeze:
		return "freeze"
	case doEnd:
		return "end"
	case doClose:
		return "close"
	case doReset:
		return "reset"
	case doStall:
		return "stall"
	case doUpgrade:
		return "upgrade"
	}
	return fmt.Sprintf("verb(%d)", uint8(v))
}

// String says in words what is answered.
func (a *answer) String() string {
	text := fmt.Sprintf("answer %d", a.status)
	if a.handler != nil {
		text = "answer by handler"
	}
	if a.cut >= 0 {
		text += fmt.Sprintf(" cut at %d", a.cut)
	}
	return text
}
