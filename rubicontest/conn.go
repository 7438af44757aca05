package rubicontest

import (
	"crypto/tls"
	"io"
	"net"
	"sync"
	"time"
)

// smallBuffer is the receive buffer of a connection that is never read. The
// system may round it up.
const smallBuffer = 4 << 10

// lingerLimit bounds how long a failed TLS handshake waits for the client to
// read the alert and leave.
const lingerLimit = 2 * time.Second

// A conn is an accepted connection. Reads and writes wait while it is frozen.
type conn struct {
	net.Conn // TCP
	id       int
	done     chan struct{} // closed when the connection is
	ended    sync.Once

	mu     sync.Mutex
	thawed chan struct{} // nil: not frozen; closed when it thaws
	idle   bool          // no request is in progress
	front  net.Conn      // what HTTP is spoken over: the conn itself or TLS
}

// newConn returns a conn over raw.
func newConn(raw net.Conn) *conn {
	c := &conn{Conn: raw, done: make(chan struct{})}
	c.front = c
	return c
}

// Read reads what the client sent, unless the connection is frozen. What
// arrives while it is frozen is held until it thaws.
func (c *conn) Read(p []byte) (int, error) {
	if err := c.pass(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	if passed := c.pass(); passed != nil {
		return 0, passed
	}
	return n, err
}

// Write writes p unless the connection is frozen.
func (c *conn) Write(p []byte) (int, error) {
	if err := c.pass(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// A gate reads what was buffered above the TCP connection, unless that is
// frozen: TLS and bufio read ahead.
type gate struct {
	io.Reader
	conn *conn
}

// Read waits while the connection is frozen.
func (g gate) Read(p []byte) (int, error) {
	if err := g.conn.pass(); err != nil {
		return 0, err
	}
	n, err := g.Reader.Read(p)
	if passed := g.conn.pass(); passed != nil {
		return 0, passed
	}
	return n, err
}

// Close closes the TCP connection.
func (c *conn) Close() error {
	err := net.ErrClosed
	c.ended.Do(func() {
		close(c.done)
		err = c.Conn.Close()
	})
	return err
}

// pass waits while the connection is frozen. It returns an error if it is
// closed first.
func (c *conn) pass() error {
	for {
		c.mu.Lock()
		thawed := c.thawed
		c.mu.Unlock()
		if thawed == nil {
			return nil
		}
		select {
		case <-thawed:
		case <-c.done:
			return net.ErrClosed
		}
	}
}

// freeze stops reading and writing.
func (c *conn) freeze() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.thawed == nil {
		c.thawed = make(chan struct{})
	}
}

// thaw ends freeze.
func (c *conn) thaw() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.thawed != nil {
		close(c.thawed)
		c.thawed = nil
	}
}

// setIdle says whether a request is in progress.
func (c *conn) setIdle(idle bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = idle
}

// closeIdle closes the connection if it is idle, and reports whether it was.
func (c *conn) closeIdle() bool {
	c.mu.Lock()
	idle := c.idle && !c.isClosed()
	c.idle = false
	c.mu.Unlock()
	if idle {
		c.hangUp()
	}
	return idle
}

// isClosed reports whether the connection was closed on this side.
func (c *conn) isClosed() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// hangUp closes the connection as a server does, with a close_notify over TLS.
func (c *conn) hangUp() {
	c.mu.Lock()
	front, frozen := c.front, c.thawed != nil
	c.mu.Unlock()
	if frozen { // a close_notify could not be written
		c.abort()
		return
	}
	_ = front.Close()
}

// abort closes the TCP connection without a word.
func (c *conn) abort() { _ = c.Close() }

// reset closes the connection with an RST.
func (c *conn) reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.abort()
}

// linger reads until the client has gone, for at most limit if limit is
// positive. What was sent before it is then sure to be seen: closing with
// unread bytes would reset the connection.
func (c *conn) linger(limit time.Duration) {
	if limit > 0 {
		_ = c.SetReadDeadline(time.Now().Add(limit))
	}
	_, _ = io.Copy(io.Discard, c)
}

// accept accepts connections until the listener is closed.
func (s *Server) accept() {
	for {
		raw, err := s.listener.Accept()
		if err != nil {
			return
		}
		c := newConn(raw)
		s.update(func(n *Counts) {
			n.Connections++
			n.Open++
			c.id = n.Connections
		})
		if s.add(c) {
			s.group.Go(func() { s.serveConn(c) })
		} else {
			s.remove(c)
		}
	}
}

// add enters c among the open connections, unless the server has ended.
func (s *Server) add(c *conn) bool {
	s.state.Lock()
	defer s.state.Unlock()
	if s.ended {
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

// remove closes c and takes it from the open connections.
func (s *Server) remove(c *conn) {
	c.abort()
	s.state.Lock()
	delete(s.conns, c)
	s.state.Unlock()
	s.update(func(n *Counts) { n.Open-- })
}

// serveConn does to c what is to happen to it at once, and then serves it.
func (s *Server) serveConn(c *conn) {
	defer s.remove(c)
	a := at(s.config.Accept, c.id-1)
	if size := s.config.ReadBuffer; size > 0 {
		_ = c.Conn.(*net.TCPConn).SetReadBuffer(size)
	}
	switch a {
	case CloseConn:
		return
	case ResetConn:
		c.reset()
		return
	case SilentConn:
		c.linger(0)
		return
	case PlaintextConn:
		_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
		c.linger(lingerLimit)
		return
	case MuteConn:
		_ = c.Conn.(*net.TCPConn).SetReadBuffer(smallBuffer)
	}
	if s.certs != nil && !s.handshake(c, a) {
		c.linger(lingerLimit)
		return
	}
	if a == MuteConn || s.isFrozen() {
		c.freeze()
	}
	if s.config.Protocol == H2 {
		s.serveH2(c)
	} else {
		s.serveH1(c)
	}
}

// isFrozen reports whether new connections are frozen.
func (s *Server) isFrozen() bool {
	s.state.Lock()
	defer s.state.Unlock()
	return s.frozen
}

// handshake does the TLS handshake as a says, and reports whether it came to
// an end that both sides agree with.
func (s *Server) handshake(c *conn, a Accept) bool {
	config := &tls.Config{Certificates: []tls.Certificate{s.certs.good}, NextProtos: []string{"http/1.1"}}
	if s.config.Protocol == H2 {
		config.NextProtos = []string{"h2"}
	}
	switch a {
	case UntrustedConn:
		config.Certificates[0] = s.certs.untrusted
	case WrongHostConn:
		config.Certificates[0] = s.certs.elsewhere
	case NeedCertConn:
		config.ClientAuth, config.MinVersion = tls.RequireAnyClientCert, tls.VersionTLS13
	}
	t := tls.Server(c, config)
	if t.Handshake() != nil {
		return false
	}
	c.mu.Lock()
	c.front = t
	c.mu.Unlock()
	return true
}
