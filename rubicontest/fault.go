package rubicontest

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/net/http2"
)

// A Fault says what happens to one request. It is a value that is built from
// left to right, in the order in which things happen, and it can be shared and
// extended. The zero Fault acts and answers 200 with the body "ok\n".
//
// It begins with how much of the request is read ([Act], [Read], [ReadHeader],
// [ReadBody], [Unread]). A request that is cut short before that much was read
// is not acted upon and not answered. A Fault that neither answers nor ends
// the exchange answers 200 with the body "ok\n".
type Fault struct {
	want  want
	bytes int64 // of the body, for wantPart
	steps []step
}

// want is how much of a request is read before the first step.
type want uint8

const (
	wantAll want = iota
	wantPart
	wantHeader
	wantNothing
)

// verb is what a step does.
type verb uint8

const (
	doAct verb = iota
	doWait
	doUntil
	doInform
	doAnswer
	doDrain
	doRaw
	doCloseListener
	doGoAwayAbove
	doFreeze
	// What follows ends the exchange.
	doEnd
	doClose
	doReset
	doStall
	doUpgrade
	doResetStream
	doGoAwayBelow
)

// ends reports whether nothing can be answered after v.
func (v verb) ends() bool { return v >= doEnd }

// A step is one thing that happens to a request.
type step struct {
	verb   verb
	status int // doInform
	wait   time.Duration
	until  <-chan struct{}
	text   string // doRaw
	code   http2.ErrCode
	answer *answer
}

// framing is how the end of an answer's body is told on HTTP/1.1.
type framing uint8

const (
	byLength framing = iota
	byChunks
	byClose
)

// An answer is a response, whole or cut.
type answer struct {
	status  int
	header  http.Header
	trailer http.Header
	pieces  []string // of the body, each written by itself
	framing framing
	cut     int // bytes of the body that are written; -1: all, and the end
	pace    time.Duration
	handler http.Handler // if not nil, gives status, header and pieces
}

// Act reads the whole request and acts on it.
func Act() Fault { return Read().Act() }

// Read reads the whole request and does not act on it.
func Read() Fault { return Fault{want: wantAll, steps: []step{}} }

// ReadHeader reads the header of the request and leaves its body unread.
func ReadHeader() Fault { return Fault{want: wantHeader, steps: []step{}} }

// ReadBody reads the header and the first n bytes of the body, or all of it if
// it is shorter.
func ReadBody(n int) Fault { return Fault{want: wantPart, bytes: int64(n), steps: []step{}} }

// Unread reads nothing: it takes effect when the first byte of a request is
// there, and the request does not count. It is for HTTP/1.1; for a connection
// that is never looked at, see [Accept].
func Unread() Fault { return Fault{want: wantNothing, steps: []step{}} }

// then returns f with one step more, and leaves f as it is.
func (f Fault) then(s step) Fault {
	f.steps = append(slices.Clip(f.steps), s)
	return f
}

// Act acts on the request.
func (f Fault) Act() Fault { return f.then(step{verb: doAct}) }

// Wait lets d pass.
func (f Fault) Wait(d time.Duration) Fault { return f.then(step{verb: doWait, wait: d}) }

// Until waits until c is closed.
func (f Fault) Until(c <-chan struct{}) Fault { return f.then(step{verb: doUntil, until: c}) }

// Inform sends an informational answer such as 103. Before a body that the
// client holds back for "Expect: 100-continue", the server sends 100 unasked.
func (f Fault) Inform(status int) Fault { return f.then(step{verb: doInform, status: status}) }

// Answer answers with a Content-Length. If the header says "Connection: close",
// the connection is closed after it. If the body of the request has not been
// read by then, the rest is not read either, and the connection is closed on
// HTTP/1.1, the stream reset with NO_ERROR on HTTP/2; see [Fault.Drain].
func (f Fault) Answer(status int, body string) Fault {
	a := &answer{status: status, cut: -1}
	if body != "" {
		a.pieces = []string{body}
	}
	return f.then(step{verb: doAnswer, answer: a})
}

// Stream answers 200 with a body of unknown length, each piece written and
// flushed by itself.
func (f Fault) Stream(pieces ...string) Fault {
	return f.then(step{verb: doAnswer, answer: &answer{
		status: http.StatusOK, pieces: slices.Clone(pieces), framing: byChunks, cut: -1,
	}})
}

// Handle answers as h does. h is called with the body as it was read, at most
// 16 MiB of it, and its answer is held until it returns.
func (f Fault) Handle(h http.Handler) Fault {
	return f.then(step{verb: doAnswer, answer: &answer{handler: h, cut: -1}})
}

// amend returns f with a changed copy of its last answer.
func (f Fault) amend(change func(*answer)) Fault {
	if len(f.steps) == 0 || f.steps[len(f.steps)-1].verb != doAnswer {
		panic("rubicontest: this must directly follow an answer")
	}
	last := f.steps[len(f.steps)-1]
	a := *last.answer
	a.header, a.trailer = a.header.Clone(), a.trailer.Clone()
	change(&a)
	last.answer = &a
	f.steps = append(slices.Clone(f.steps[:len(f.steps)-1]), last)
	return f
}

// Header adds a field to the header of the answer before it.
func (f Fault) Header(name, value string) Fault {
	return f.amend(func(a *answer) {
		if a.header == nil {
			a.header = http.Header{}
		}
		a.header.Add(name, value)
	})
}

// Trailer adds a field to the trailer of the answer before it, which is then
// sent in chunks.
func (f Fault) Trailer(name, value string) Fault {
	return f.amend(func(a *answer) {
		if a.trailer == nil {
			a.trailer = http.Header{}
		}
		a.trailer.Add(name, value)
		a.framing = byChunks
	})
}

// Chunked sends the answer before it in chunks, without a Content-Length.
func (f Fault) Chunked() Fault { return f.amend(func(a *answer) { a.framing = byChunks }) }

// UntilClose sends the answer before it with neither length nor chunks, so
// that only the end of the connection ends it.
func (f Fault) UntilClose() Fault { return f.amend(func(a *answer) { a.framing = byClose }) }

// Pace lets d pass before each piece of the answer before it but the first.
func (f Fault) Pace(d time.Duration) Fault { return f.amend(func(a *answer) { a.pace = d }) }

// Cut ends the answer before it after n bytes of its body, or after all of them
// without the sign that they were all. What follows says how: End, Close,
// Reset, Stall, ResetStream and so on. By itself it closes the connection.
func (f Fault) Cut(n int) Fault { return f.amend(func(a *answer) { a.cut = max(0, n) }) }

// Drain reads what is left of the request.
func (f Fault) Drain() Fault { return f.then(step{verb: doDrain}) }

// Raw writes s to the connection as it is.
func (f Fault) Raw(s string) Fault { return f.then(step{verb: doRaw, text: s}) }

// CloseListener ends listening: no further connection is accepted.
func (f Fault) CloseListener() Fault { return f.then(step{verb: doCloseListener}) }

// Freeze stops all reading and writing on the connection without closing it,
// until [Server.Thaw] or the server's Close.
func (f Fault) Freeze() Fault { return f.then(step{verb: doFreeze}) }

// End ends an answer that was cut as if it were whole: the last chunk on
// HTTP/1.1, END_STREAM on HTTP/2. It panics if there is no answer before it.
func (f Fault) End() Fault {
	if !slices.ContainsFunc(f.steps, func(s step) bool { return s.verb == doAnswer }) {
		panic("rubicontest: End must follow an answer")
	}
	return f.then(step{verb: doEnd})
}

// Close closes the connection. The system turns that into a reset if bytes of
// the request were left unread.
func (f Fault) Close() Fault { return f.then(step{verb: doClose}) }

// Reset resets the connection (RST).
func (f Fault) Reset() Fault { return f.then(step{verb: doReset}) }

// Stall does nothing more until the client has gone or the server is closed.
// On HTTP/2 other streams go on. Where a body is left unread on HTTP/1.1, that
// the client has gone is not noticed.
func (f Fault) Stall() Fault { return f.then(step{verb: doStall}) }

// Upgrade answers 101 with the protocol that the client asked for and then
// sends back what it is sent, until the client has gone. It is for HTTP/1.1.
func (f Fault) Upgrade() Fault { return f.then(step{verb: doUpgrade}) }

// ResetStream resets the stream with code. It is for HTTP/2.
func (f Fault) ResetStream(code http2.ErrCode) Fault {
	return f.then(step{verb: doResetStream, code: code})
}

// RefuseStream resets the stream with REFUSED_STREAM. It is for HTTP/2.
func (f Fault) RefuseStream() Fault { return f.ResetStream(http2.ErrCodeRefusedStream) }

// GoAwayBelow sends GOAWAY with a last stream before this one: the server says
// that it did not and will not act on it, whatever it did. Later streams are not
// acted upon either; if one was already, that one is named as the last, and
// this stream reset with REFUSED_STREAM. The connection stays open unless Close
// follows. It is for HTTP/2.
func (f Fault) GoAwayBelow(code http2.ErrCode) Fault {
	return f.then(step{verb: doGoAwayBelow, code: code})
}

// GoAwayAbove sends GOAWAY with this stream as the last: the server says that
// it may have acted on it. What follows may still answer. It is for HTTP/2.
func (f Fault) GoAwayAbove(code http2.ErrCode) Fault {
	return f.then(step{verb: doGoAwayAbove, code: code})
}

// normal returns f, or what the zero Fault stands for.
func (f Fault) normal() Fault {
	if f.steps == nil {
		return Act()
	}
	return f
}

// check returns an error if f can't be played over p.
func (f Fault) check(p Protocol) error {
	if p == H2 && f.want == wantNothing {
		return fmt.Errorf("rubicontest: %q needs HTTP/1.1", f)
	}
	for _, s := range f.steps {
		if f.want == wantNothing && s.needsRequest() {
			return fmt.Errorf("rubicontest: %q needs the request to be read", f)
		}
		switch s.verb {
		case doResetStream, doGoAwayBelow, doGoAwayAbove:
			if p != H2 {
				return fmt.Errorf("rubicontest: %q needs HTTP/2", f)
			}
		case doUpgrade:
			if p == H2 {
				return fmt.Errorf("rubicontest: %q needs HTTP/1.1", f)
			}
		}
	}
	return nil
}

// needsRequest reports whether s makes no sense where the request isn't read.
func (s step) needsRequest() bool {
	switch s.verb {
	case doAct, doDrain, doUpgrade:
		return true
	}
	return s.answer != nil && s.answer.handler != nil
}

// handles reports whether a handler wants the body.
func (f Fault) handles() bool {
	return slices.ContainsFunc(f.steps, func(s step) bool {
		return s.answer != nil && s.answer.handler != nil
	})
}
