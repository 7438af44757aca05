package rubicontest

import "net"

// Refused is an address at which connections are refused for as long as it is
// held. The port is bound by one end of an established connection, so that
// nobody can listen on it and no other connection is given it.
type Refused struct {
	Addr string // host:port
	URL  string // http://host:port

	ends [2]net.Conn
}

// NewRefused holds an address. It panics if none can be had. The caller closes
// it.
func NewRefused() *Refused {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		panic("rubicontest: " + err.Error())
	}
	defer func() { _ = l.Close() }()
	// Binding the local end by name keeps the system from sharing its port.
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}
	out, err := d.Dial("tcp4", l.Addr().String())
	if err != nil {
		panic("rubicontest: " + err.Error())
	}
	in, err := l.Accept()
	if err != nil {
		panic("rubicontest: " + err.Error())
	}
	addr := out.LocalAddr().String()
	return &Refused{Addr: addr, URL: "http://" + addr, ends: [2]net.Conn{out, in}}
}

// Close gives the address back.
func (r *Refused) Close() {
	for _, c := range r.ends {
		_ = c.Close()
	}
}
