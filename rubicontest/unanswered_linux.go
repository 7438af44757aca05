package rubicontest

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// Unanswered is an address at which a connection is never established nor
// refused, as if a firewall dropped all packets. It is a listener whose queue
// is full; Linux then ignores further connections. It exists on Linux only.
//
// [http.Transport] goes on dialing when the request has ended, so a test should
// give its dialer a Timeout.
type Unanswered struct {
	Addr string // host:port
	URL  string // http://host:port

	listener net.Listener
	queued   []net.Conn
}

// fillTime is how long a connection may take before the queue counts as full,
// and fillLimit how many are tried.
const (
	fillTime  = 100 * time.Millisecond
	fillLimit = 16
)

// NewUnanswered holds an address. It returns an error if none can be had. The
// caller closes it.
func NewUnanswered() (*Unanswered, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	u := &Unanswered{Addr: l.Addr().String(), URL: "http://" + l.Addr().String(), listener: l}
	if err := u.fill(); err != nil {
		u.Close()
		return nil, err
	}
	return u, nil
}

// fill shrinks the queue and connects until nothing more is taken.
func (u *Unanswered) fill() error {
	raw, err := u.listener.(*net.TCPListener).SyscallConn()
	if err != nil {
		return err
	}
	var listening error
	if err := raw.Control(func(fd uintptr) { listening = syscall.Listen(int(fd), 0) }); err != nil {
		return err
	}
	if listening != nil {
		return listening
	}
	ignored := 0 // in a row: one alone may be a busy machine
	for range fillLimit {
		c, err := net.DialTimeout("tcp4", u.Addr, fillTime)
		if err == nil {
			u.queued = append(u.queued, c)
			ignored = 0
		} else if ignored++; ignored == 2 {
			return nil
		}
	}
	return errors.New("rubicontest: the queue of a listener does not fill")
}

// Close gives the address back. A connection that is still being tried fails.
func (u *Unanswered) Close() {
	for _, c := range u.queued {
		_ = c.Close()
	}
	_ = u.listener.Close()
}
