package rubicontest

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
)

// A hub accepts connections on loopback and ends them together.
type hub struct {
	listener net.Listener
	life     context.Context // ends with the hub
	end      context.CancelFunc
	group    sync.WaitGroup

	mu       sync.Mutex // guards what follows
	ended    bool
	accepted int
	open     map[*conn]struct{}
}

// newHub listens and returns a hub that has yet to run. It panics if it can't
// listen.
func newHub() *hub {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		panic("rubicontest: " + err.Error())
	}
	h := &hub{listener: l, open: map[*conn]struct{}{}}
	h.life, h.end = context.WithCancel(context.Background())
	return h
}

// run calls serve for each connection that is accepted, in a goroutine of its
// own, and closes the connection when it returns.
func (h *hub) run(serve func(*conn)) {
	h.group.Go(func() {
		for {
			raw, err := h.listener.Accept()
			if err != nil {
				return
			}
			h.mu.Lock()
			h.accepted++
			h.mu.Unlock()
			c := newConn(raw)
			if h.add(c) {
				h.group.Go(func() {
					defer h.remove(c)
					serve(c)
				})
			}
		}
	})
}

// add enters c among the open connections. If the hub has ended, c is closed.
func (h *hub) add(c *conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		c.abort()
		return false
	}
	h.open[c] = struct{}{}
	return true
}

// remove closes c and takes it from the open connections.
func (h *hub) remove(c *conn) {
	c.abort()
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, c)
}

// each calls do for each open connection.
func (h *hub) each(do func(*conn)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.open {
		do(c)
	}
}

// connections returns the number of connections that were accepted.
func (h *hub) connections() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.accepted
}

// close ends listening and all connections, and waits for their goroutines.
func (h *hub) close() {
	h.mu.Lock()
	h.ended = true
	h.mu.Unlock()
	h.end()
	_ = h.listener.Close()
	h.each((*conn).abort)
	h.group.Wait()
}

// dial connects to addr. The hub's end ends the connection, and the attempt.
func (h *hub) dial(addr string) (*conn, error) {
	var d net.Dialer
	raw, err := d.DialContext(h.life, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := newConn(raw)
	if !h.add(c) {
		return nil, net.ErrClosed
	}
	return c, nil
}

// join carries bytes between a and b until both directions have ended. from is
// what was read from a already, and a itself. An end of one side is passed on
// as what it is: FIN as FIN, RST as RST.
func join(a, b *conn, from io.Reader) {
	var both sync.WaitGroup
	both.Go(func() { carry(b, a, from) })
	both.Go(func() { carry(a, b, b) })
	both.Wait()
}

// carry copies from, which reads src, to dst.
func carry(dst, src *conn, from io.Reader) {
	_, err := io.Copy(dst, from)
	switch {
	case err == nil:
		_ = dst.Conn.(*net.TCPConn).CloseWrite()
	case !errors.Is(err, net.ErrClosed):
		dst.reset()
		src.reset()
	}
}
