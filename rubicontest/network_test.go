package rubicontest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	neturl "net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/rubicon-go/rubicon/rubicontest"
)

// O32: the proxy's refusals reach the client's hook, the origin sees nothing
// of them, and the tunnel carries all protocols.
func TestProxy(t *testing.T) {
	for _, p := range protocols[1:] {
		t.Run(p.String(), func(t *testing.T) {
			proxy := rubicontest.NewProxy(503, 407, 403, 200)
			defer proxy.Close()
			s := start(t, rubicontest.Config{Protocol: p})
			tr := s.Transport()
			tr.Proxy = proxy.Proxy
			var seen []*http.Response
			tr.OnProxyConnectResponse = func(_ context.Context, _ *neturl.URL, _ *http.Request, res *http.Response) error {
				seen = append(seen, res)
				return nil
			}
			for _, status := range []int{503, 407, 403} {
				if r := post(t, tr, s.URL); r.err == nil || r.err.Error() != http.StatusText(status) {
					t.Errorf("got %d, %v; want %s", r.status, r.err, http.StatusText(status))
				}
			}
			wantCounts(t, s, 0, 0)
			wantOK(t, post(t, tr, s.URL))
			wantCounts(t, s, 1, 1)
			if n := proxy.Connects(); n != 4 {
				t.Errorf("%d CONNECTs; want 4", n)
			}
			if len(seen) != 4 || seen[1].Header.Get("Proxy-Authenticate") == "" || seen[0].Header.Get("Proxy-Status") == "" {
				t.Errorf("the hook saw %v", seen)
			}
		})
	}
}

// A proxy passes on how the server ends, and answers 502 if there is none.
func TestProxyPassesEnds(t *testing.T) {
	proxy := rubicontest.NewProxy()
	defer proxy.Close()
	s := start(t, rubicontest.Config{Protocol: rubicontest.H1TLS, Script: []rubicontest.Fault{
		rubicontest.Act().Close(), rubicontest.Act().Reset(),
	}})
	tr := s.Transport()
	tr.Proxy = proxy.Proxy
	for _, want := range []verdict{fails(io.EOF, net.ErrClosed), fails(syscall.ECONNRESET, net.ErrClosed)} {
		if r := post(t, tr, s.URL); want(r) != "" {
			t.Errorf("got %d, %v; %s", r.status, r.err, want(r))
		}
	}
	wantCounts(t, s, 2, 2)
	none := rubicontest.NewRefused()
	defer none.Close()
	if r := post(t, tr, "https://"+none.Addr); r.err == nil || r.err.Error() != "Bad Gateway" {
		t.Errorf("got %d, %v; want the proxy's 502", r.status, r.err)
	}
	tr.Proxy = nil
	if r := post(t, tr, proxy.URL); r.status != 501 {
		t.Errorf("got %d, %v; want 501 for what isn't CONNECT", r.status, r.err)
	}
}

// Names get the answers of the script, the same for both kinds of address.
func TestResolver(t *testing.T) {
	s := start(t, rubicontest.Config{})
	url := strings.Replace(s.URL, "127.0.0.1", "api.test", 1)
	resolver := rubicontest.NewResolver(rubicontest.NXDomain, rubicontest.ServFail, rubicontest.ServFail, rubicontest.Loopback)
	defer resolver.Close()
	tr := s.Transport()
	tr.DialContext = resolver.DialContext

	var e *net.DNSError
	if r := post(t, tr, url); !errors.As(r.err, &e) || !e.IsNotFound || e.IsTemporary {
		t.Errorf("got %d, %v; want no such host", r.status, r.err)
	}
	if n := resolver.Lookups(); n != 1 {
		t.Errorf("%d lookups; want 1", n)
	}
	if r := post(t, tr, url); !errors.As(r.err, &e) || e.IsNotFound || !e.IsTemporary {
		t.Errorf("got %d, %v; want a server failure", r.status, r.err)
	}
	wantCounts(t, s, 0, 0)
	wantOK(t, post(t, tr, url))
	wantCounts(t, s, 1, 1)
	wantOK(t, post(t, tr, s.URL)) // an address needs no name server
	if n := resolver.Lookups(); n != 4 {
		t.Errorf("%d lookups; want 4", n)
	}
}

// A name server that is silent is waited for until the caller gives up.
func TestResolverNoReply(t *testing.T) {
	resolver := rubicontest.NewResolver(rubicontest.NoReply)
	defer resolver.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := resolver.LookupHost(ctx, "api.test.")
	var e *net.DNSError
	if !errors.As(err, &e) || !e.IsTimeout {
		t.Errorf("got %v; want a timeout", err)
	}
	if n := resolver.Lookups(); n != 1 {
		t.Errorf("%d lookups; want 1", n)
	}
}

// The name server speaks TCP as well, and ignores what is no question.
func TestResolverTCP(t *testing.T) {
	resolver := rubicontest.NewResolver()
	defer resolver.Close()
	junk, err := resolver.Dial(patient(t), "udp", "")
	if err != nil {
		t.Fatal(err)
	}
	defer junk.Close()
	if _, err := junk.Write([]byte("junk")); err != nil {
		t.Fatal(err)
	}
	c, err := resolver.Dial(patient(t), "tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ask := dnsmessage.Message{
		Header: dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{
			Name: dnsmessage.MustNewName("api.test."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET,
		}},
	}
	packed, err := ask.Pack()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(append([]byte{0, byte(len(packed))}, packed...)); err != nil {
		t.Fatal(err)
	}
	var length [2]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, int(length[0])<<8|int(length[1]))
	if _, err := io.ReadFull(c, buf); err != nil {
		t.Fatal(err)
	}
	var got dnsmessage.Message
	if err := got.Unpack(buf); err != nil || got.ID != 7 || len(got.Answers) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// O37: the flow dies without a word; another connection works.
func TestRelay(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.String(), func(t *testing.T) {
			dropped := make(chan struct{})
			s := start(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{
				rubicontest.Act().Stream("one", "two").Cut(3).Until(dropped).Close(), {},
			}})
			relay := rubicontest.NewRelay(s.Addr)
			defer relay.Close()
			url := strings.Replace(s.URL, s.Addr, relay.Addr, 1)
			ctx, cancel := context.WithCancel(patient(t))
			defer cancel()
			tr := s.Transport()
			res, err := tr.RoundTrip(request(t, ctx, "GET", url, ""))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			var got [3]byte
			if _, err := io.ReadFull(res.Body, got[:]); err != nil || string(got[:]) != "one" {
				t.Fatalf("got %q, %v", got, err)
			}
			relay.Drop()
			close(dropped)
			await(t, s, func(c rubicontest.Counts) bool { return c.Played == 1 })
			end := make(chan error)
			go func() {
				_, err := res.Body.Read(got[:])
				end <- err
			}()
			select {
			case err := <-end:
				t.Fatalf("the body ended with %v; want silence", err)
			case <-time.After(50 * time.Millisecond):
			}
			wantOK(t, post(t, s.Transport(), url))
			if n := relay.Connections(); n != 2 {
				t.Errorf("%d connections; want 2", n)
			}
			cancel()
			if err := <-end; !errors.Is(err, context.Canceled) {
				t.Errorf("the body ended with %v; want cancellation", err)
			}
		})
	}
}

// A relay without a server behind it takes the connection and resets it.
func TestRelayToNowhere(t *testing.T) {
	none := rubicontest.NewRefused()
	defer none.Close()
	relay := rubicontest.NewRelay(none.Addr)
	defer relay.Close()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	if r := post(t, tr, "http://"+relay.Addr); r.err == nil {
		t.Errorf("got %d; want an error", r.status)
	}
}

// Connections are refused as often as they are tried, and nobody else can
// listen there.
func TestRefused(t *testing.T) {
	none := rubicontest.NewRefused()
	defer none.Close()
	tr := &http.Transport{}
	for range 100 {
		if r := post(t, tr, none.URL); !errors.Is(r.err, syscall.ECONNREFUSED) {
			t.Fatalf("got %d, %v; want connection refused", r.status, r.err)
		}
	}
	if l, err := net.Listen("tcp4", none.Addr); err == nil {
		_ = l.Close()
		t.Error("the address can be listened on")
	}
}

// O1: an address that answers no SYN.
func TestUnanswered(t *testing.T) {
	none, err := rubicontest.NewUnanswered()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			tr := &http.Transport{DialContext: (&net.Dialer{Timeout: 200 * time.Millisecond}).DialContext}
			r := post(t, tr, none.URL)
			var e *net.OpError
			if !errors.As(r.err, &e) || e.Op != "dial" || !e.Timeout() {
				t.Errorf("got %d, %v; want no connection in time", r.status, r.err)
			}
		})
	}
	all.Wait()
}
