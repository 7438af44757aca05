package rubicontest

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
)

// Protocol is what a server speaks.
type Protocol uint8

const (
	H1    Protocol = iota // HTTP/1.1 over TCP
	H1TLS                 // HTTP/1.1 over TLS
	H2                    // HTTP/2 over TLS, and nothing else
)

// String returns "h1", "h1-tls" or "h2".
func (p Protocol) String() string {
	switch p {
	case H1:
		return "h1"
	case H1TLS:
		return "h1-tls"
	case H2:
		return "h2"
	}
	return fmt.Sprintf("Protocol(%d)", uint8(p))
}

// Accept is what happens to a connection when it is accepted.
type Accept uint8

const (
	ServeConn     Accept = iota // the script decides
	CloseConn                   // closed at once, unread
	ResetConn                   // reset at once, unread
	MuteConn                    // never read after a TLS handshake, with a small receive buffer
	SilentConn                  // the TLS handshake is never answered
	PlaintextConn               // the TLS handshake is answered with plain HTTP
	UntrustedConn               // the certificate is signed by nobody the client knows
	WrongHostConn               // the certificate is for another host
	NeedCertConn                // TLS 1.3, and the client must have a certificate
)

// acceptNames names what needs TLS; the rest is below needsTLS.
var acceptNames = [...]string{
	"serve", "close", "reset", "mute", "silent", "plaintext", "untrusted", "wrong host", "need certificate",
}

// String says in words what happens to the connection.
func (a Accept) String() string {
	if int(a) < len(acceptNames) {
		return acceptNames[a]
	}
	return fmt.Sprintf("Accept(%d)", uint8(a))
}

// needsTLS reports whether a makes sense over TLS only.
func (a Accept) needsTLS() bool { return a >= SilentConn }

// Config says what a server does. The zero value is an HTTP/1.1 server that
// acts on every request and answers 200.
type Config struct {
	Protocol Protocol

	// Script has what happens to the n-th request at index n-1; its last line
	// repeats. Empty: every request gets the zero Fault.
	Script []Fault

	// Choose, if not nil, is asked for a Fault in Script's stead, once for each
	// request as soon as its header block is complete. It is called from many
	// goroutines.
	Choose func(Request) Fault

	// Seen, if not nil, is called once for each request as soon as its header
	// block is complete, before anything happens to it: also for repeats and for
	// HTTP/2 streams that are refused, which Choose is not asked about. It is
	// called from many goroutines.
	Seen func(Request)

	// Effect, if not nil, is called each time the server acts, after the
	// effect has been counted and before anything else happens to the request.
	// It is called from many goroutines.
	Effect func(Request)

	// Accept has what happens to the n-th connection at index n-1; its last
	// entry repeats. Empty: all are served.
	Accept []Accept

	// Dedupe, if not empty, names the header field by which the server knows a
	// repeated request. The repeat is answered with the first answer, whole,
	// without an effect and without using up a line of the script. The same key
	// with another method, path or body is answered 422, and 409 as long as the
	// first request has not been acted upon. A key whose request was not acted
	// upon is forgotten.
	Dedupe string

	// ReadBuffer is the size in bytes of each connection's receive buffer.
	// Zero: the system decides.
	ReadBuffer int

	// MaxStreams is announced as SETTINGS_MAX_CONCURRENT_STREAMS on HTTP/2.
	// Streams above it are refused. Zero: no limit; negative: none are allowed.
	MaxStreams int

	// StreamsPerConn is the number of requests that an HTTP/2 connection takes
	// in its life. The first one more is refused by a GOAWAY that excludes it,
	// all of them with REFUSED_STREAM. Zero: no limit.
	StreamsPerConn int
}

// A Server plays a script on loopback. Its methods may be called from any
// goroutine.
type Server struct {
	URL  string // without a slash at the end
	Addr string // host:port

	ledger
	config   Config
	listener net.Listener
	certs    *certificates // nil without TLS
	repeats  repeats
	closed   chan struct{}
	group    sync.WaitGroup

	state      sync.Mutex // guards what follows
	line       int        // of the script, next
	frozen     bool
	ended      bool
	conns      map[*conn]struct{}
	transports []*http.Transport
}

// NewServer starts a server that plays script. It panics if it can't listen or
// if the script can't be played over p. The caller closes it.
func NewServer(p Protocol, script ...Fault) *Server {
	return Config{Protocol: p, Script: script}.Start()
}

// Start starts a server. It panics if it can't listen or if the script can't be
// played over the protocol. The caller closes the server.
func (c Config) Start() *Server {
	c.check()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		panic("rubicontest: " + err.Error())
	}
	s := &Server{
		URL: "http://" + l.Addr().String(), Addr: l.Addr().String(),
		config: c, listener: l, closed: make(chan struct{}), conns: map[*conn]struct{}{},
	}
	if c.Protocol != H1 {
		s.URL = "https://" + s.Addr
		s.certs = newCertificates()
	}
	s.group.Go(s.accept)
	return s
}

// check panics if what c asks for can't be played.
func (c Config) check() {
	for _, f := range c.Script {
		if err := f.check(c.Protocol); err != nil {
			panic(err.Error())
		}
	}
	for _, a := range c.Accept {
		if a.needsTLS() && c.Protocol == H1 {
			panic(fmt.Sprintf("rubicontest: %q needs TLS", a))
		}
	}
}

// at returns the n-th entry of list, its last if it is shorter, and the zero
// value if it is empty.
func at[T any](list []T, n int) (v T) {
	if len(list) == 0 {
		return v
	}
	return list[min(n, len(list)-1)]
}

// seen books a request whose header block is complete.
func (s *Server) seen(r *received) {
	s.enter(r)
	if s.config.Seen != nil {
		s.config.Seen(s.view(r))
	}
}

// next takes the Fault for r.
func (s *Server) next(r *received) Fault {
	if s.config.Choose == nil {
		s.state.Lock()
		defer s.state.Unlock()
		s.line++
		return at(s.config.Script, s.line-1).normal()
	}
	f := s.config.Choose(s.view(r)).normal()
	if err := f.check(s.config.Protocol); err != nil {
		panic(err.Error())
	}
	if f.want == wantNothing {
		panic("rubicontest: Choose is asked when the header has been read")
	}
	return f
}

// nextUnread takes the next line of the script if it reads nothing.
func (s *Server) nextUnread() (Fault, bool) {
	s.state.Lock()
	defer s.state.Unlock()
	f := at(s.config.Script, s.line)
	if s.config.Choose != nil || f.want != wantNothing {
		return Fault{}, false
	}
	s.line++
	return f, true
}

// Transport returns a new transport that trusts the server's certificate, uses
// no proxy and speaks the server's protocol only. Close closes its idle
// connections.
func (s *Server) Transport() *http.Transport {
	t := &http.Transport{Protocols: new(http.Protocols)}
	t.Protocols.SetHTTP1(s.config.Protocol != H2)
	t.Protocols.SetHTTP2(s.config.Protocol == H2)
	if s.certs != nil {
		t.TLSClientConfig = &tls.Config{RootCAs: s.RootCAs()}
	}
	s.state.Lock()
	defer s.state.Unlock()
	s.transports = append(s.transports, t)
	return t
}

// RootCAs returns a new pool with what a client must trust to trust the server.
// It is empty without TLS.
func (s *Server) RootCAs() *x509.CertPool {
	pool := x509.NewCertPool()
	if s.certs != nil {
		pool.AddCert(s.certs.root)
	}
	return pool
}

// CloseListener ends listening. Connections that were accepted live on, new
// ones are refused.
func (s *Server) CloseListener() { _ = s.listener.Close() }

// CloseIdle closes the connections on which no request is in progress, and
// returns how many there were.
func (s *Server) CloseIdle() int {
	n := 0
	for _, c := range s.open() {
		if c.closeIdle() {
			n++
		}
	}
	return n
}

// Freeze stops all reading and writing, on connections to come too, without
// closing anything.
func (s *Server) Freeze() {
	s.state.Lock()
	s.frozen = true
	s.state.Unlock()
	for _, c := range s.open() {
		c.freeze()
	}
}

// Thaw makes every connection go on that was frozen, by Freeze, by a Fault or
// by MuteConn.
func (s *Server) Thaw() {
	s.state.Lock()
	s.frozen = false
	s.state.Unlock()
	for _, c := range s.open() {
		c.thaw()
	}
}

// open returns the connections that are open.
func (s *Server) open() []*conn {
	s.state.Lock()
	defer s.state.Unlock()
	all := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		all = append(all, c)
	}
	return all
}

// Close ends listening and every connection, and returns when no goroutine of
// the server is left. It may be called again.
func (s *Server) Close() {
	if !s.end() {
		s.group.Wait()
		return
	}
	close(s.closed)
	s.CloseListener()
	for _, c := range s.open() {
		c.abort()
	}
	s.group.Wait()
	s.state.Lock()
	idle := slices.Clone(s.transports)
	s.state.Unlock()
	for _, t := range idle {
		t.CloseIdleConnections()
	}
}

// end marks the server as ended and reports whether it was not before.
func (s *Server) end() bool {
	s.state.Lock()
	defer s.state.Unlock()
	was := s.ended
	s.ended = true
	return !was
}
