package rubicontest

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// Lookup is how a name server answers.
type Lookup uint8

const (
	Loopback Lookup = iota // the name is 127.0.0.1
	NXDomain               // there is no such name
	ServFail               // the server can't say now
	NoReply                // nothing comes
)

// A Resolver is a [net.Resolver] that asks a name server on loopback, over UDP
// and TCP. Only what it is asked reaches that server: addresses, localhost and
// the names in the system's hosts file do not.
type Resolver struct {
	*net.Resolver

	udp    net.PacketConn
	hub    *hub // for TCP
	script []Lookup

	mu      sync.Mutex // guards what follows
	asked   map[question]int
	lookups int
}

// A question is what a client can ask about a name.
type question struct {
	name string
	kind dnsmessage.Type
}

// NewResolver starts a name server that gives the n-th question about a name
// the n-th answer; the last repeats, and without any it is Loopback. Questions
// for A and AAAA are counted apart, so that both get the same answer. A client
// asks again after ServFail and NoReply: Go's does so once, so that one failed
// lookup takes two lines. It panics if it can't listen. The caller closes it.
func NewResolver(script ...Lookup) *Resolver {
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		panic("rubicontest: " + err.Error())
	}
	r := &Resolver{udp: udp, hub: newHub(), script: script, asked: map[question]int{}}
	r.Resolver = &net.Resolver{PreferGo: true, Dial: r.dial}
	r.hub.group.Go(r.serveUDP)
	r.hub.run(r.serveTCP)
	return r
}

// DialContext connects to addr, asking the resolver for its name as it stands,
// without the system's search list. It is for [http.Transport].
func (r *Resolver) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err == nil && net.ParseIP(host) == nil {
		addr = net.JoinHostPort(strings.TrimSuffix(host, ".")+".", port)
	}
	d := net.Dialer{Resolver: r.Resolver}
	return d.DialContext(ctx, network, addr)
}

// Lookups returns how often an IPv4 address was asked for.
func (r *Resolver) Lookups() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lookups
}

// Close ends the name server and its goroutines.
func (r *Resolver) Close() {
	_ = r.udp.Close()
	r.hub.close()
}

// dial connects to the name server, whatever the system's is called.
func (r *Resolver) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	var d net.Dialer
	if strings.HasPrefix(network, "tcp") {
		return d.DialContext(ctx, "tcp4", r.hub.listener.Addr().String())
	}
	return d.DialContext(ctx, "udp4", r.udp.LocalAddr().String())
}

// serveUDP answers datagrams until the socket is closed.
func (r *Resolver) serveUDP() {
	buf := make([]byte, 64<<10)
	for {
		n, from, err := r.udp.ReadFrom(buf)
		if err != nil {
			return
		}
		if out := r.reply(buf[:n]); out != nil {
			_, _ = r.udp.WriteTo(out, from)
		}
	}
}

// serveTCP answers what comes on c, each message after its length.
func (r *Resolver) serveTCP(c *conn) {
	for {
		var length [2]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			return
		}
		in := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(c, in); err != nil {
			return
		}
		if out := r.reply(in); out != nil {
			_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...))
		}
	}
}

// reply returns the answer to the message in, or nil if there is none.
func (r *Resolver) reply(in []byte) []byte {
	var p dnsmessage.Parser
	head, err := p.Start(in)
	if err != nil {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	lookup := r.next(q)
	if lookup == NoReply {
		return nil
	}
	out := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: head.ID, Response: true, Authoritative: true,
			RecursionDesired: head.RecursionDesired, RecursionAvailable: true,
		},
		Questions: []dnsmessage.Question{q},
	}
	switch {
	case lookup == NXDomain:
		out.RCode = dnsmessage.RCodeNameError
	case lookup == ServFail:
		out.RCode = dnsmessage.RCodeServerFailure
	case q.Type == dnsmessage.TypeA:
		out.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
			Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
		}}
	}
	packed, err := out.Pack()
	if err != nil {
		return nil
	}
	return packed
}

// next takes the answer to q.
func (r *Resolver) next(q dnsmessage.Question) Lookup {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := question{name: strings.ToLower(q.Name.String()), kind: q.Type}
	n := r.asked[key]
	r.asked[key]++
	if q.Type == dnsmessage.TypeA {
		r.lookups++
	}
	return at(r.script, n)
}
