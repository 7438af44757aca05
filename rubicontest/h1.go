package rubicontest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"golang.org/x/net/http2"
)

// errUnread is what reading says of a request that isn't to be read.
var errUnread = errors.New("rubicontest: the request is not read")

// serveH1 serves one HTTP/1.1 connection.
func (s *Server) serveH1(c *conn) {
	r := bufio.NewReader(gate{c.front, c})
	for s.serveH1Request(c, r) {
	}
	c.hangUp()
}

// serveH1Request serves the next request on c and reports whether another may
// follow.
func (s *Server) serveH1Request(c *conn, r *bufio.Reader) bool {
	c.setIdle(true)
	_, err := r.Peek(1)
	c.setIdle(false)
	if err != nil || c.isClosed() {
		return false
	}
	x := &h1{server: s, conn: c, reader: r, writer: bufio.NewWriter(c.front), received: &received{}}
	if f, ok := s.nextUnread(); ok {
		s.play(x, c, x.received, f, nil)
		return false
	}
	if x.request, err = http.ReadRequest(r); err != nil {
		return false
	}
	return s.serve(x, c, x.received, x.enter()) && x.reusable()
}

// An h1 is an exchange over HTTP/1.1.
type h1 struct {
	server   *Server
	conn     *conn
	reader   *bufio.Reader
	writer   *bufio.Writer
	request  *http.Request // nil if it isn't read
	received *received

	continued bool    // the client was told to send the body, or needs no telling
	sent      *answer // the answer whose head was sent
}

// enter books the request and returns what to do with it.
func (x *h1) enter() plan {
	q := x.request
	x.continued = !strings.EqualFold(q.Header.Get("Expect"), "100-continue")
	x.received.Request = Request{
		Conn: x.conn.id, Method: q.Method, Host: q.Host, Path: q.RequestURI, Header: q.Header.Clone(),
	}
	x.received.secure = x.server.certs != nil
	p := x.server.arrive(x.received, true)
	if q.Body == http.NoBody {
		x.server.complete(x.received)
	}
	return p
}

// reusable reports whether another request may follow on the connection.
func (x *h1) reusable() bool {
	switch {
	case x.sent == nil, x.sent.framing == byClose, x.request.Close, !x.received.Complete:
		return false
	}
	return !x.sent.closes()
}

// mayAct reports that the request may be acted upon.
func (x *h1) mayAct() bool { return true }

// read reads the body until n bytes of it have been read, or all.
func (x *h1) read(n int64) error {
	if x.request == nil {
		return errUnread
	}
	buf := make([]byte, 32<<10)
	for !x.received.Complete && (n < 0 || x.received.Length < n) {
		if err := x.letContinue(); err != nil {
			return err
		}
		p := buf
		if n >= 0 {
			p = buf[:min(int64(len(buf)), n-x.received.Length)]
		}
		got, err := x.request.Body.Read(p)
		x.server.read(x.received, p[:got])
		if err == io.EOF {
			x.server.complete(x.received)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// letContinue tells a client that waits for it to send the body.
func (x *h1) letContinue() error {
	if x.continued || x.sent != nil {
		return nil
	}
	return x.inform(http.StatusContinue)
}

// inform sends an informational answer.
func (x *h1) inform(status int) error {
	x.continued = x.continued || status == http.StatusContinue
	return x.raw(fmt.Sprintf("HTTP/1.1 %d %s\r\n\r\n", status, http.StatusText(status)))
}

// raw writes s as it is.
func (x *h1) raw(s string) error {
	_, _ = x.writer.WriteString(s)
	return x.writer.Flush()
}

// head sends the head of a.
func (x *h1) head(a *answer) error {
	x.sent = a
	h := a.header.Clone()
	if h == nil {
		h = http.Header{}
	}
	switch {
	case !hasBody(a.status):
	case a.framing == byLength && h.Get("Content-Length") == "":
		h.Set("Content-Length", fmt.Sprint(a.length()))
	case a.framing == byChunks:
		h.Set("Transfer-Encoding", "chunked")
		for name := range a.trailer {
			h.Add("Trailer", name)
		}
	case a.framing == byClose:
		h.Set("Connection", "close")
	}
	_, _ = fmt.Fprintf(x.writer, "HTTP/1.1 %03d %s\r\n", a.status, http.StatusText(a.status))
	_ = h.Write(x.writer)
	_, _ = x.writer.WriteString("\r\n")
	if len(a.pieces) == 0 && a.cut >= 0 {
		return x.writer.Flush()
	}
	return nil
}

// bodiless reports whether the answer that is being sent has no body.
func (x *h1) bodiless() bool {
	return x.sent == nil || !hasBody(x.sent.status) || x.request != nil && x.request.Method == http.MethodHead
}

// write sends a piece of the body.
func (x *h1) write(piece string) error {
	switch {
	case x.bodiless() || piece == "":
	case x.sent.framing == byChunks:
		_, _ = fmt.Fprintf(x.writer, "%x\r\n%s\r\n", len(piece), piece)
	default:
		_, _ = x.writer.WriteString(piece)
	}
	return x.writer.Flush()
}

// finish ends the answer.
func (x *h1) finish() error {
	if !x.bodiless() && x.sent.framing == byChunks {
		_, _ = x.writer.WriteString("0\r\n")
		_ = x.sent.trailer.Write(x.writer)
		_, _ = x.writer.WriteString("\r\n")
	}
	return x.writer.Flush()
}

// stall waits until the client has gone. While part of the body is unread,
// only the server's end is noticed.
func (x *h1) stall() {
	if x.received.Complete {
		_, _ = io.Copy(io.Discard, x.reader)
		return
	}
	<-x.conn.done
}

// upgrade switches to the protocol that was asked for, which is always echo.
func (x *h1) upgrade() {
	if x.raw("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+
		x.request.Header.Get("Upgrade")+"\r\n\r\n") == nil {
		_, _ = io.Copy(x.conn.front, x.reader)
	}
}

// closeConn closes the connection.
func (x *h1) closeConn() { x.conn.hangUp() }

// resetConn resets the connection.
func (x *h1) resetConn() { x.conn.reset() }

// resetStream is for HTTP/2.
func (x *h1) resetStream(http2.ErrCode) { panic("rubicontest: HTTP/1.1 has no streams") }

// goAway is for HTTP/2.
func (x *h1) goAway(bool, http2.ErrCode) { panic("rubicontest: HTTP/1.1 has no GOAWAY") }

// closes reports whether the answer says that the connection is closed after it.
func (a *answer) closes() bool { return strings.EqualFold(a.header.Get("Connection"), "close") }

// hasBody reports whether answers with this status have a body.
func hasBody(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// length returns the length of the body, uncut.
func (a *answer) length() int {
	n := 0
	for _, p := range a.pieces {
		n += len(p)
	}
	return n
}
