package rubicontest

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
)

// A Proxy is a forward proxy that answers CONNECT by a list of statuses. With
// 200 it connects to where the client wants to go. It takes no other requests.
type Proxy struct {
	URL  string // http://host:port
	Addr string // host:port

	hub      *hub
	script   []int
	connects atomic.Int64
}

// NewProxy starts a proxy that answers the n-th CONNECT with the n-th status;
// the last repeats, and without any it is 200. With 407 comes a
// Proxy-Authenticate, with every refusal a Proxy-Status (RFC 9209) and a body.
// It panics if it can't listen. The caller closes it.
func NewProxy(statuses ...int) *Proxy {
	p := &Proxy{hub: newHub(), script: statuses}
	p.Addr = p.hub.listener.Addr().String()
	p.URL = "http://" + p.Addr
	p.hub.run(p.serve)
	return p
}

// Proxy returns the proxy's URL, for [http.Transport].
func (p *Proxy) Proxy(*http.Request) (*url.URL, error) { return url.Parse(p.URL) }

// Connects returns the number of CONNECT requests that were received.
func (p *Proxy) Connects() int { return int(p.connects.Load()) }

// Close ends the proxy, its tunnels and its goroutines.
func (p *Proxy) Close() { p.hub.close() }

// serve answers the CONNECT on c.
func (p *Proxy) serve(c *conn) {
	r := bufio.NewReader(c)
	req, err := http.ReadRequest(r)
	if err != nil {
		return
	}
	if req.Method != http.MethodConnect {
		reply(c, http.StatusNotImplemented)
		return
	}
	n := int(p.connects.Add(1))
	status := at(p.script, n-1)
	if status != 0 && status != http.StatusOK {
		reply(c, status)
		return
	}
	target, err := p.hub.dial(req.Host)
	if err != nil {
		reply(c, http.StatusBadGateway)
		return
	}
	defer p.hub.remove(target)
	if _, err := fmt.Fprint(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err == nil {
		join(c, target, r)
	}
}

// reply refuses what was asked for.
func reply(c *conn, status int) {
	auth, body := "", "refused by the proxy\n"
	if status == http.StatusProxyAuthRequired {
		auth = "Proxy-Authenticate: Basic realm=\"rubicontest\"\r\n"
	}
	_, _ = fmt.Fprintf(c, "HTTP/1.1 %d %s\r\n%sProxy-Status: rubicontest; received-status=%d\r\n"+
		"Connection: close\r\nContent-Length: %d\r\n\r\n%s", status, http.StatusText(status), auth, status, len(body), body)
}
