package rubicontest

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"sync"
)

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
	arriving sync.Mutex // held while a request is counted and gets its line
	closed   chan struct{}
	group    sync.WaitGroup

	state  sync.Mutex // guards what follows
	line   int        // of the script, next
	frozen bool
	ended  bool
	conns  map[*conn]struct{}
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

// A plan is what is to be done with a request, as far as that is known when its
// header block is complete.
type plan struct {
	fault    Fault   // unless Choose is asked
	key      string  // "": the request has none
	first    *repeat // what is known of the first request with the key
	isRepeat bool    // the request isn't that one
}

// arrive books a request whose header block is complete, and plans what to do
// with it if it is to be served. Requests get their lines in the order in which
// they are counted.
func (s *Server) arrive(r *received, served bool) plan {
	s.arriving.Lock()
	s.enter(r)
	var p plan
	if served {
		p = s.plan(r)
	}
	s.arriving.Unlock()
	if s.config.Seen != nil {
		s.config.Seen(s.view(r))
	}
	return p
}

// plan takes a line of the script for r, unless it is a repeat.
func (s *Server) plan(r *received) (p plan) {
	if s.config.Dedupe != "" {
		p.key = r.Header.Get(s.config.Dedupe)
	}
	if p.key != "" {
		p.first, p.isRepeat = s.repeats.begin(p.key)
	}
	if s.config.Choose == nil && !p.isRepeat {
		p.fault = s.next()
	}
	return p
}

// next takes the next line of the script.
func (s *Server) next() Fault {
	s.state.Lock()
	defer s.state.Unlock()
	s.line++
	return at(s.config.Script, s.line-1)
}

// choose returns the Fault for r.
func (s *Server) choose(r *received, p plan) Fault {
	if s.config.Choose == nil {
		return p.fault.normal()
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
// no proxy and speaks the server's protocol only. Its connections end with the
// server.
func (s *Server) Transport() *http.Transport {
	t := &http.Transport{Protocols: new(http.Protocols)}
	t.Protocols.SetHTTP1(s.config.Protocol != H2)
	t.Protocols.SetHTTP2(s.config.Protocol == H2)
	if s.certs != nil {
		t.TLSClientConfig = &tls.Config{RootCAs: s.RootCAs()}
	}
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
}

// end marks the server as ended and reports whether it was not before.
func (s *Server) end() bool {
	s.state.Lock()
	defer s.state.Unlock()
	was := s.ended
	s.ended = true
	return !was
}
