package rubicontest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// errGone says that the client has gone, or given up the stream.
var errGone = errors.New("rubicontest: the client has gone")

// An h2stream is an exchange over HTTP/2.
type h2stream struct {
	h2       *h2conn
	id       uint32
	received *received
	dead     chan struct{} // closed when the client has gone

	// The connection's mutex guards these.
	data   []byte // of the body, not read yet
	ended  bool   // the client has sent all
	gone   bool   // the client has gone, or given up the stream
	window int64  // for sending

	continued bool    // the client was told to send the body, or needs no telling
	sent      *answer // the answer whose head was sent
	finished  bool    // it was sent whole
}

// serve plays what happens to the request.
func (s *h2stream) serve(p plan) {
	defer s.h2.drop(s)
	regular := s.h2.server.serve(s, s.h2.conn, s.received, p)
	if !regular || !s.finished {
		return
	}
	if !s.received.Complete { // RFC 9113 section 8.1: the client need not send the rest
		s.resetStream(http2.ErrCodeNo)
	}
}

// lose marks the stream as given up. The connection's mutex is held.
func (s *h2stream) lose() {
	if !s.gone {
		s.gone = true
		close(s.dead)
	}
}

// mayAct reports whether the stream may still be acted upon.
func (s *h2stream) mayAct() bool { return s.h2.mayAct(s.id) }

// read reads the body until n bytes of it have been read, or all.
func (s *h2stream) read(n int64) error {
	server := s.h2.server
	for !s.received.Complete && (n < 0 || s.received.Length < n) {
		if err := s.letContinue(); err != nil {
			return err
		}
		limit := int64(firstWindow)
		if n >= 0 {
			limit = n - s.received.Length
		}
		p, err := s.take(limit)
		server.read(s.received, p)
		if err == io.EOF {
			server.complete(s.received)
		} else if err != nil {
			return err
		} else if err := s.giveWindow(len(p)); err != nil {
			return err
		}
	}
	return nil
}

// take returns the next bytes of the body. With the last ones comes io.EOF.
func (s *h2stream) take(limit int64) ([]byte, error) {
	h := s.h2
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(s.data) == 0 && !s.ended && !s.gone {
		h.changed.Wait()
	}
	n := min(int64(len(s.data)), limit)
	p := s.data[:n:n]
	s.data = s.data[n:]
	switch {
	case len(s.data) == 0 && s.ended:
		return p, io.EOF
	case len(p) == 0:
		return nil, errGone
	}
	return p, nil
}

// giveWindow lets the client send n bytes more.
func (s *h2stream) giveWindow(n int) error {
	return s.h2.write(func(w *http2.Framer) error { return w.WriteWindowUpdate(s.id, uint32(n)) })
}

// letContinue tells a client that waits for it to send the body.
func (s *h2stream) letContinue() error {
	if s.continued || s.sent != nil {
		return nil
	}
	return s.inform(http.StatusContinue)
}

// inform sends an informational answer.
func (s *h2stream) inform(status int) error {
	s.continued = s.continued || status == http.StatusContinue
	return s.fields(false, func(add func(name, value string)) { add(":status", fmt.Sprint(status)) })
}

// fields sends the header block that fill gives.
func (s *h2stream) fields(end bool, fill func(add func(name, value string))) error {
	h := s.h2
	return h.write(func(w *http2.Framer) error {
		h.block.Reset()
		fill(func(name, value string) {
			_ = h.encoder.WriteField(hpack.HeaderField{Name: strings.ToLower(name), Value: value})
		})
		block := h.block.Bytes()
		first := block[:min(len(block), frameLimit)]
		rest := block[len(first):]
		err := w.WriteHeaders(http2.HeadersFrameParam{
			StreamID: s.id, BlockFragment: first, EndStream: end, EndHeaders: len(rest) == 0,
		})
		for err == nil && len(rest) > 0 {
			next := rest[:min(len(rest), frameLimit)]
			rest = rest[len(next):]
			err = w.WriteContinuation(s.id, len(rest) == 0, next)
		}
		return err
	})
}

// head sends the head of a. That the connection is not to be used again is said
// before it, so that a client that has the answer knows.
func (s *h2stream) head(a *answer) error {
	if s.sent = a; a.closes() {
		s.goAway(false, http2.ErrCodeNo)
	}
	return s.fields(false, func(add func(name, value string)) {
		add(":status", fmt.Sprint(a.status))
		if a.framing == byLength && hasBody(a.status) && a.header.Get("Content-Length") == "" {
			add("content-length", fmt.Sprint(a.length()))
		}
		for name := range a.trailer {
			add("trailer", name)
		}
		addAll(a.header, add)
	})
}

// addAll adds the fields of h, without those that HTTP/2 does not have
// (RFC 9113 section 8.2.2).
func addAll(h http.Header, add func(name, value string)) {
	for name, values := range h {
		switch strings.ToLower(name) {
		case "connection", "keep-alive", "transfer-encoding", "upgrade":
			continue
		}
		for _, v := range values {
			add(name, v)
		}
	}
}

// write sends a piece of the body as fast as the client lets it.
func (s *h2stream) write(piece string) error {
	if !hasBody(s.sent.status) || s.received.Method == http.MethodHead {
		return nil
	}
	for p := []byte(piece); len(p) > 0; {
		n, err := s.takeWindow(len(p))
		if err != nil {
			return err
		}
		if err := s.h2.write(func(w *http2.Framer) error { return w.WriteData(s.id, false, p[:n]) }); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// takeWindow waits until something may be sent, and returns how much of n.
func (s *h2stream) takeWindow(n int) (int, error) {
	h := s.h2
	h.mu.Lock()
	defer h.mu.Unlock()
	for min(s.window, h.window) <= 0 && !s.gone {
		h.changed.Wait()
	}
	if s.gone {
		return 0, errGone
	}
	got := min(int64(n), frameLimit, s.window, h.window)
	s.window -= got
	h.window -= got
	return int(got), nil
}

// finish ends the answer.
func (s *h2stream) finish() error {
	s.finished = true
	if len(s.sent.trailer) > 0 {
		return s.fields(true, func(add func(name, value string)) { addAll(s.sent.trailer, add) })
	}
	return s.h2.write(func(w *http2.Framer) error { return w.WriteData(s.id, true, nil) })
}

// raw writes bytes as they are.
func (s *h2stream) raw(text string) error {
	return s.h2.write(func(*http2.Framer) error {
		_, err := io.Copy(s.h2.conn.front, bytes.NewBufferString(text))
		return err
	})
}

// stall waits until the client has gone.
func (s *h2stream) stall() { <-s.dead }

// upgrade is for HTTP/1.1.
func (s *h2stream) upgrade() { panic("rubicontest: HTTP/2 has no upgrade") }

// closeConn closes the connection.
func (s *h2stream) closeConn() { s.h2.conn.hangUp() }

// resetConn resets the connection.
func (s *h2stream) resetConn() { s.h2.conn.reset() }

// resetStream resets the stream.
func (s *h2stream) resetStream(code http2.ErrCode) {
	_ = s.h2.write(func(w *http2.Framer) error { return w.WriteRSTStream(s.id, code) })
}

// goAway says that the client should go. Of other streams it says the truth:
// those that it excludes won't be acted upon, and it excludes none that were.
// Where it can't exclude this one for that, a reset says the same.
func (s *h2stream) goAway(below bool, code http2.ErrCode) {
	last := s.lastToKeep(below)
	_ = s.h2.write(func(w *http2.Framer) error { return w.WriteGoAway(last, code, nil) })
	if below && last >= s.id {
		s.resetStream(http2.ErrCodeRefusedStream)
	}
}

// lastToKeep returns the last stream that a GOAWAY may name, and notes it.
func (s *h2stream) lastToKeep(below bool) uint32 {
	h := s.h2
	h.mu.Lock()
	defer h.mu.Unlock()
	last := h.last
	if below {
		last = before(s.id)
		if h.acted > s.id {
			last = h.acted
		}
	}
	h.lastKept = min(h.lastKept, last)
	return h.lastKept
}
