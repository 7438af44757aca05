package rubicontest_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rubicon-go/rubicon/rubicontest"
)

// Connections that fail before a request is seen. The next one is served.
func TestAccept(t *testing.T) {
	dead := fails(io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed)
	anyError := func(r reply) string {
		if r.err == nil {
			return "want an error"
		}
		return ""
	}
	tests := []struct {
		accept rubicontest.Accept
		want   verdict
		tls    bool
	}{
		// An HTTP/2 connection that dies at once has an untyped error of its own.
		{rubicontest.CloseConn, anyError, false},
		{rubicontest.ResetConn, anyError, false},
		{rubicontest.CloseConn, dead, true},
		{rubicontest.ResetConn, dead, true},
		{rubicontest.PlaintextConn, func(r reply) string {
			var e tls.RecordHeaderError
			if !errors.As(r.err, &e) || string(e.RecordHeader[:]) != "HTTP/" {
				return "want a record header error"
			}
			return ""
		}, true},
		{rubicontest.UntrustedConn, func(r reply) string {
			var e x509.UnknownAuthorityError
			if !errors.As(r.err, &e) {
				return "want an unknown authority"
			}
			return ""
		}, true},
		{rubicontest.WrongHostConn, func(r reply) string {
			var e x509.HostnameError
			if !errors.As(r.err, &e) {
				return "want a wrong host"
			}
			return ""
		}, true},
		{rubicontest.NeedCertConn, func(r reply) string {
			// The alert races with the request: the second text is HTTP/2's, the
			// third comes when the request's body was still being written.
			for _, text := range []string{"certificate required", "client conn could not be established", "closed network connection"} {
				if failsWith(text)(r) == "" {
					return ""
				}
			}
			return "want the alert"
		}, true},
	}
	for _, p := range protocols {
		for _, tt := range tests {
			if tt.tls && p == rubicontest.H1 {
				continue
			}
			t.Run(p.String()+"/"+tt.accept.String(), func(t *testing.T) {
				s := start(t, rubicontest.Config{Protocol: p, Accept: []rubicontest.Accept{tt.accept, rubicontest.ServeConn}})
				tr := s.Transport()
				if r := post(t, tr, s.URL); tt.want(r) != "" {
					t.Errorf("got %d, %v; %s", r.status, r.err, tt.want(r))
				}
				wantCounts(t, s, 0, 0)
				wantOK(t, post(t, tr, s.URL))
				wantCounts(t, s, 1, 1)
			})
		}
	}
}

// A TCP connection that never becomes a TLS one.
func TestSilentConn(t *testing.T) {
	for _, p := range protocols[1:] {
		t.Run(p.String(), func(t *testing.T) {
			s := start(t, rubicontest.Config{Protocol: p, Accept: []rubicontest.Accept{rubicontest.SilentConn}})
			tr := s.Transport()
			tr.TLSHandshakeTimeout = 20 * time.Millisecond
			if r := post(t, tr, s.URL); r.err == nil || !strings.Contains(r.err.Error(), "TLS handshake timeout") {
				t.Errorf("got %d, %v; want a handshake timeout", r.status, r.err)
			}
			await(t, s, func(c rubicontest.Counts) bool { return c.Connections == 1 && c.Open == 0 })
			wantCounts(t, s, 0, 0)
		})
	}
}

// Nothing is read from a mute connection, so that writing comes to a halt.
func TestMuteConn(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.String(), func(t *testing.T) {
			s := start(t, rubicontest.Config{Protocol: p, Accept: []rubicontest.Accept{rubicontest.MuteConn}})
			tr := s.Transport()
			tr.DialContext = smallWrites
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			body := &counter{Reader: strings.NewReader(strings.Repeat("x", 8<<20))}
			req := request(t, ctx, "POST", s.URL, "")
			req.Body = io.NopCloser(body)
			if r := send(tr, req); !errors.Is(r.err, context.DeadlineExceeded) {
				t.Errorf("got %d, %v; want the deadline", r.status, r.err)
			}
			wantCounts(t, s, 0, 0)
			tr.CloseIdleConnections()
			s.Close()
			if n := body.count(); n > 1<<20 {
				t.Errorf("%d bytes of the body were taken; want a stop long before the end", n)
			}
		})
	}
}

// smallWrites connects with a small send buffer.
func smallWrites(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(8 << 10)
	}
	return c, err
}

// A counter counts what is read.
type counter struct {
	io.Reader
	n atomic.Int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// count returns how much was read.
func (c *counter) count() int { return int(c.n.Load()) }

// The pool of RootCAs is for clients that the caller makes.
func TestRootCAs(t *testing.T) {
	s := start(t, rubicontest.Config{Protocol: rubicontest.H1TLS})
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.RootCAs()}}
	defer tr.CloseIdleConnections()
	wantOK(t, post(t, tr, strings.Replace(s.URL, "127.0.0.1", "localhost", 1)))
	if plain := start(t, rubicontest.Config{}); !plain.RootCAs().Equal(x509.NewCertPool()) {
		t.Error("a server without TLS has something to trust")
	}
}
