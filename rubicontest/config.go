package rubicontest

import "fmt"

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

// String says in words what happens to the connection.
func (a Accept) String() string {
	names := [...]string{
		"serve", "close", "reset", "mute", "silent", "plaintext", "untrusted", "wrong host", "need certificate",
	}
	if int(a) < len(names) {
		return names[a]
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
