package rubicontest

import (
	"bytes"
	"io"
	"net/http"
	"time"

	"golang.org/x/net/http2"
)

// An exchange is one request and its answer, as the protocol carries them.
type exchange interface {
	mayAct() bool       // and note it; false: the client was told that it won't happen
	read(n int64) error // of the body, up to n bytes in all; negative: all
	inform(status int) error
	head(a *answer) error
	write(piece string) error // of the body, flushed
	finish() error
	raw(s string) error
	stall()
	upgrade()
	closeConn()
	resetConn()
	resetStream(code http2.ErrCode)
	goAway(below bool, code http2.ErrCode)
}

// A play is a Fault that is being carried out.
type play struct {
	server   *Server
	conn     *conn
	exchange exchange
	request  *received
	planned  *answer // nil: only a handler knows
	first    *repeat // where the result goes; nil: nobody asks again
	answered bool
	cut      bool // the answer was cut and not ended since
	over     bool // nothing can be answered any more
}

// okAnswer is what is answered where a Fault does not say.
func okAnswer() *answer {
	return &answer{status: http.StatusOK, pieces: []string{"ok\n"}, cut: -1}
}

// run carries f out and reports whether the exchange came to a regular end.
func (p *play) run(f Fault) bool {
	defer p.server.update(func(c *Counts) { c.Played++ })
	if !p.prepare(f) {
		return false
	}
	for _, s := range f.steps {
		if !p.step(s) {
			return false
		}
		p.over = p.over || s.verb.ends()
	}
	if !p.answered && !p.over && !p.answer(okAnswer()) {
		return false
	}
	if p.cut && !p.over {
		p.exchange.closeConn()
	}
	return !p.cut && !p.over
}

// prepare reads what f wants of the request.
func (p *play) prepare(f Fault) bool {
	switch f.want {
	case wantAll:
		return p.exchange.read(-1) == nil
	case wantPart:
		return p.exchange.read(f.bytes) == nil
	}
	return true
}

// step carries s out and reports whether the next may follow.
func (p *play) step(s step) bool {
	x := p.exchange
	switch s.verb {
	case doAct:
		return p.act()
	case doWait:
		return p.pause(s.wait)
	case doUntil:
		return p.hold(s.until)
	case doInform:
		return x.inform(s.status) == nil
	case doAnswer:
		return p.answer(s.answer)
	case doDrain:
		return x.read(-1) == nil
	case doRaw:
		p.answered = true
		return x.raw(s.text) == nil
	case doCloseListener:
		p.server.CloseListener()
	case doFreeze:
		p.conn.freeze()
		return p.conn.pass() == nil
	case doEnd:
		p.cut = false
		return x.finish() == nil
	case doClose:
		x.closeConn()
	case doReset:
		x.resetConn()
	case doStall:
		x.stall()
	case doUpgrade:
		x.upgrade()
	case doResetStream:
		x.resetStream(s.code)
	case doGoAwayBelow, doGoAwayAbove:
		x.goAway(s.verb == doGoAwayBelow, s.code)
	}
	return true
}

// act acts on the request and reports whether it did.
func (p *play) act() bool {
	s := p.server
	if !p.exchange.mayAct() {
		return false
	}
	s.ledger.act(p.request)
	if s.config.Effect != nil {
		s.config.Effect(s.view(p.request))
	}
	if p.first != nil {
		s.repeats.acted(p.first, s.view(p.request).print(), p.planned)
	}
	return true
}

// pause lets d pass, unless the server is closed first.
func (p *play) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-p.server.closed:
		return false
	}
}

// hold waits until c is closed, unless the server is closed first.
func (p *play) hold(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-p.server.closed:
		return false
	}
}

// answer sends a as far as it goes.
func (p *play) answer(a *answer) bool {
	if a.handler != nil {
		a = p.ask(a)
		if p.first != nil {
			p.server.repeats.settle(p.first, a)
		}
	}
	p.answered, p.cut = true, a.cut >= 0
	if p.exchange.head(a) != nil {
		return false
	}
	for i, piece := range a.sent() {
		if i > 0 && a.pace > 0 && !p.pause(a.pace) {
			return false
		}
		if p.exchange.write(piece) != nil {
			return false
		}
	}
	return p.cut || p.exchange.finish() == nil
}

// sent returns the pieces of the body as far as they are sent.
func (a *answer) sent() []string {
	if a.cut < 0 {
		return a.pieces
	}
	var out []string
	left := a.cut
	for _, piece := range a.pieces {
		out = append(out, piece[:min(left, len(piece))])
		if left -= len(piece); left <= 0 {
			break
		}
	}
	return out
}

// ask returns a with what its handler answers.
func (p *play) ask(a *answer) *answer {
	p.server.mu.Lock()
	r := p.request.snapshot()
	body := bytes.Clone(p.request.whole)
	p.server.mu.Unlock()
	w := &recorder{header: http.Header{}}
	a.handler.ServeHTTP(w, r.request(body, p.request.secure))
	b := *a
	b.handler, b.status, b.pieces = nil, w.status, nil
	if w.status == 0 {
		b.status = http.StatusOK
	}
	b.header = w.header
	for name, values := range a.header {
		b.header[name] = append(b.header[name], values...)
	}
	if w.body.Len() > 0 {
		b.pieces = []string{w.body.String()}
	}
	return &b
}

// request returns r as a handler knows it.
func (r *Request) request(body []byte, secure bool) *http.Request {
	scheme := "http://"
	if secure {
		scheme = "https://"
	}
	req, err := http.NewRequest(r.Method, scheme+r.Host+r.Path, io.NopCloser(bytes.NewReader(body)))
	if err != nil {
		req, _ = http.NewRequest(http.MethodGet, scheme+"invalid/", nil)
	}
	req.Header, req.Host, req.RequestURI = r.Header, r.Host, r.Path
	req.ContentLength = int64(len(body))
	return req
}

// A recorder keeps what a handler answers.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the header to be sent.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader keeps the status, the first one.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// Write keeps p as part of the body.
func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}
