package rubicontest

// A Relay stands between clients and a server and carries bytes both ways,
// until it is told to lose them: the connection that died without a word.
type Relay struct {
	Addr string // host:port, for clients to connect to

	hub    *hub
	target string
}

// NewRelay starts a relay to the server at target, a host and port. It panics
// if it can't listen. The caller closes it.
func NewRelay(target string) *Relay {
	r := &Relay{hub: newHub(), target: target}
	r.Addr = r.hub.listener.Addr().String()
	r.hub.run(r.serve)
	return r
}

// Drop makes the connections that are open now carry nothing more, in either
// direction and without being closed: each side sees silence, and as much can
// be sent as buffers hold. Connections made later are not concerned.
func (r *Relay) Drop() { r.hub.each((*conn).freeze) }

// Connections returns the number of connections that clients made.
func (r *Relay) Connections() int { return r.hub.connections() }

// Close ends the relay, its connections and its goroutines.
func (r *Relay) Close() { r.hub.close() }

// serve carries what c sends to the server, and back. If the server does not
// take the connection, c is reset.
func (r *Relay) serve(c *conn) {
	target, err := r.hub.dial(r.target)
	if err != nil {
		c.reset()
		return
	}
	defer r.hub.remove(target)
	join(c, target, c)
}
