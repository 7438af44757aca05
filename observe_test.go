package rubicon_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"golang.org/x/net/http2"
	"golang.org/x/oauth2"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// onGotConn returns ctx with a trace of the caller's own that calls f.
func onGotConn(ctx context.Context, f func()) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { f() }})
}

// one makes one attempt of a request of kind k and returns what became of it.
// change, if not nil, is applied to the request.
func one(t *testing.T, base http.RoundTripper, k shape, url string, change func(*http.Request) *http.Request) (rubicon.Attempt, told) {
	t.Helper()
	ctx, op := begin(t, rubicon.Intent{Budget: rubicon.Budget{Attempts: 1}})
	req := k.request(ctx, url)
	if change != nil {
		req = change(req)
	}
	var got told
	res, err := (&rubicon.Transport{Base: base}).RoundTrip(req)
	if err != nil {
		got.err = err
	} else {
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		got = told{res.StatusCode, string(b), err}
	}
	all := op.Attempts()
	if len(all) != 1 {
		t.Fatalf("%d attempts (%+v)", len(all), got)
	}
	return all[0], got
}

// wantAmbiguous fails unless the attempt failed, and is said to have been sent
// perhaps.
func wantAmbiguous(t *testing.T, a rubicon.Attempt, got told) {
	t.Helper()
	if got.err == nil || !a.Ambiguous() || a.Proof != rubicon.ProofNone {
		t.Errorf("%+v, told %+v: want an attempt that may have acted", a.Evidence, got)
	}
}

// The tests TestTrapNN hold twenty ways in which a failed request seems to prove
// that it was not sent, and does not.

// Trap 1: the final error is about the last try. The request was applied, and
// then nobody listened any more.
//
// O19: stripe/stripe-go#1523, the variant.
func TestTrap01FinalErrorIsLastTry(t *testing.T) {
	for _, k := range shapes {
		t.Run("h1/"+k.name, func(t *testing.T) {
			x := newSite(t, script(rubicontest.Act(), rubicontest.Act().CloseListener().Close()))
			x.warm(t, 1)
			a, got := one(t, x.base, k, x.url, nil)
			wantAmbiguous(t, a, got)
			wantCounts(t, x.s, 2, 2)
		})
		t.Run("h2/"+k.name, func(t *testing.T) {
			x := newSite(t, rubicontest.Config{Protocol: rubicontest.H2, Script: []rubicontest.Fault{
				rubicontest.Act(), rubicontest.Act().CloseListener().ResetStream(http2.ErrCodeProtocol)}})
			x.warm(t, 1)
			a, got := one(t, x.base, k, x.url, nil)
			wantAmbiguous(t, a, got)
			wantCounts(t, x.s, 2, 2)
		})
	}
}

// Trap 2: the cancellation cause. net/http returns it as the request's error,
// and an errgroup's is the error of a sibling.
func TestTrap02CauseIsSiblings(t *testing.T) {
	causes := refusals(t)
	causes["dial"] = &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for name, cause := range causes {
		for _, p := range allThree {
			for _, k := range few {
				t.Run(strings.Join([]string{name, p.String(), k.name}, "/"), func(t *testing.T) {
					x := newSite(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{rubicontest.Act().Stall()}})
					a, got := one(t, x.base, k, x.url, func(req *http.Request) *http.Request {
						ctx, cancel := context.WithCancelCause(req.Context())
						go func() {
							_ = x.s.Await(t.Context(), func(c rubicontest.Counts) bool { return c.Effects == 1 })
							cancel(cause)
						}()
						return req.WithContext(ctx)
					})
					wantAmbiguous(t, a, got)
				})
			}
		}
	}
}

// Trap 3: on HTTP/2, with an ended context, no hook has fired when RoundTrip
// returns, and the server has the request. This is the scenario "in its own
// slow write" of TestRuleP, told as one request.
func TestTrap03NoHookOnHTTP2(t *testing.T) {
	x := newRig(t, byPath(nil))
	req, finish := ends[0].arrange(shapes[1].request(t.Context(), x.s.URL+"/slow"))
	got := x.endInWrite(t, transported, req, finish)
	checkClaim(t, got, rubicon.ProofNone)
	if n := x.saw(t, "/slow"); n != 1 {
		t.Errorf("the server saw it %d times", n)
	}
}

// Trap 4: a deadline that was added below leaves the context above alive. See
// "deadline below" of TestRuleP; a base of another type is not asked at all.
func TestTrap04DeadlineBelow(t *testing.T) {
	x := newRig(t, byPath(nil))
	entered := x.hold(beforeBytes)
	base := below{x.base, func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		go func() {
			<-entered
			cancel()
		}()
		return ctx, cancel
	}}
	a, got := one(t, base, shapes[4], x.s.URL+"/slow", nil)
	wantAmbiguous(t, a, got)
	if n := x.saw(t, "/slow"); n != 1 {
		t.Errorf("the server saw it %d times", n)
	}
}

// Trap 5: http.Client.Timeout ends a request by Request.Cancel too, which
// leaves the context alive.
func TestTrap05RequestCancel(t *testing.T) {
	for _, p := range allThree {
		for _, k := range shapes {
			t.Run(p.String()+"/"+k.name, func(t *testing.T) {
				x := newSite(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{rubicontest.Act().Stall()}})
				a, got := one(t, x.base, k, x.url, func(req *http.Request) *http.Request {
					req, cancel := ends[3].arrange(req)
					go func() {
						_ = x.s.Await(t.Context(), func(c rubicontest.Counts) bool { return c.Effects == 1 })
						cancel()
					}()
					return req
				})
				wantAmbiguous(t, a, got)
			})
		}
	}
}

// Trap 6: WroteRequest without an error, and WroteHeaders, although no byte
// left; WroteRequest with an error although the request was applied.
func TestTrap06WroteHooksLie(t *testing.T) {
	traced := func(req *http.Request) (*http.Request, *hookCounts) {
		var c hookCounts
		return req.WithContext(c.trace(req.Context())), &c
	}
	t.Run("nothing left", func(t *testing.T) {
		x := newSite(t, rubicontest.Config{})
		x.dies(0)
		var c *hookCounts
		a, got := one(t, x.base, shapes[1], x.url, func(req *http.Request) *http.Request {
			req, c = traced(req)
			return req
		})
		wantAmbiguous(t, a, got)
		x.settle(t)
		wantCounts(t, x.s, 0, 0)
		if c.get("WroteHeaders") != 1 || c.get("WroteRequest") != 1 {
			t.Errorf("the trap is not there: %v", c.all())
		}
	})
	t.Run("applied", func(t *testing.T) {
		x := newSite(t, script(rubicontest.Act().Close()))
		var c *hookCounts
		body := strings.Repeat("x", 64<<10)
		a, got := one(t, x.base, shapes[2], x.url, func(req *http.Request) *http.Request {
			req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body+"and more")), int64(len(body))
			req, c = traced(req)
			return req
		})
		wantAmbiguous(t, a, got)
		x.settle(t)
		wantCounts(t, x.s, 1, 1)
		if c.get("WroteRequest with an error") != 1 {
			t.Errorf("the trap is not there: %v", c.all())
		}
	})
}

// Trap 7: a failed dial need not be this request's: another connection may
// rescue it. Its hooks come late, and must find nothing of another attempt.
func TestTrap07FailedDialOfAnother(t *testing.T) {
	release := make(chan struct{})
	x := newSite(t, script(rubicontest.Act().Until(release)))
	var dials atomic.Int32
	fail, failed := make(chan struct{}), make(chan struct{})
	x.base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dials.Add(1) == 1 {
			return x.dial(ctx, network, addr)
		}
		close(failed)
		<-fail
		return nil, errors.New("no route")
	}
	first := make(chan error, 1)
	go func() {
		first <- send(context.Background(), x.base, http.MethodGet, x.url, "").err
	}()
	arrives(t, x.s, "the first", func(c rubicontest.Counts) bool { return c.Requests == 1 })
	go func() {
		<-failed // the second waits for a connection
		close(release)
	}()
	var c hookCounts
	a, got := one(t, x.base, shapes[1], x.url, func(req *http.Request) *http.Request {
		return req.WithContext(c.trace(req.Context()))
	})
	check(t, got, 200, nil)
	if err := <-first; err != nil {
		t.Error(err)
	}
	close(fail)
	if a.Verdict != rubicon.VerdictSucceeded || a.Resends != 0 {
		t.Errorf("%+v", a)
	}
	wantCounts(t, x.s, 2, 2)
}

// Trap 7: a dialer that makes requests of its own with the context that it is
// given calls the hooks of the request that it dials for, from elsewhere.
func TestTrap07NestedRequestInDial(t *testing.T) {
	for _, p := range allThree {
		for _, k := range shapes {
			t.Run(p.String()+"/"+k.name, func(t *testing.T) {
				tokens := rubicontest.NewServer(rubicontest.H2)
				defer tokens.Close()
				source := tokens.Transport()
				x := newSite(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{rubicontest.Act(), rubicontest.Act().Close()}})
				x.base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
					if got := send(ctx, source, http.MethodGet, tokens.URL, ""); got.err != nil {
						return nil, got.err
					}
					return x.dial(ctx, network, addr)
				}
				_, got := one(t, x.base, k, x.url, nil)
				check(t, got, 200, nil)
				a, got := one(t, x.base, k, x.url, nil)
				wantAmbiguous(t, a, got)
			})
		}
	}
}

// Trap 8: a connection counts as reused that was dialed for another request
// and never used: net/http takes that for a license to send a keyed request
// again.
func TestTrap08ReusedButNeverUsed(t *testing.T) {
	for _, k := range shapes {
		t.Run(k.name, func(t *testing.T) {
			noConnections(t)
			release := make(chan struct{})
			x := newSite(t, script(rubicontest.Act().Until(release), rubicontest.Act().Answer(200, "ok").Close(), rubicontest.Act().Close()))
			x.base.MaxIdleConnsPerHost = 2
			var dials atomic.Int32
			dialing, dial := make(chan struct{}), make(chan struct{})
			x.base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if dials.Add(1) == 2 {
					close(dialing)
					<-dial
				}
				return x.dial(ctx, network, addr)
			}
			first, second := make(chan told, 1), make(chan told, 1)
			go func() { first <- send(context.Background(), x.base, http.MethodGet, x.url, "") }()
			arrives(t, x.s, "the first", func(c rubicontest.Counts) bool { return c.Requests == 1 })
			go func() { second <- send(context.Background(), x.base, http.MethodGet, x.url, "") }()
			<-dialing
			close(release) // the second goes over the first's connection, which is closed then
			check(t, <-first, 200, nil)
			check(t, <-second, 200, nil)
			eventually(t, "the end of the first connection", func() bool { return x.closed.Load() == 1 })
			close(dial) // and the connection that was dialed for it is left
			arrives(t, x.s, "the second connection", func(c rubicontest.Counts) bool { return c.Connections == 2 })
			eventually(t, "an idle connection", func() bool { return goroutinesIn("http.(*persistConn).readLoop(") == 1 })

			reused := false
			a, got := one(t, x.base, k, x.url, func(req *http.Request) *http.Request {
				return req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
					GotConn: func(i httptrace.GotConnInfo) { reused = reused || i.Reused },
				}))
			})
			if !reused {
				t.Error("the trap is not there")
			}
			wantAmbiguous(t, a, got)
			requests := 3
			if k.safe() {
				requests = 4 // net/http sends it again
			}
			wantCounts(t, x.s, requests, requests)
		})
	}
}

// Trap 9: GetConn may be missing on HTTP/2. Nothing is claimed without it
// where no connection was told of either.
func TestTrap09GetConnMissing(t *testing.T) {
	for _, seen := range []rubicon.Seen{{Trusted: true, Alive: true}, {Trusted: true}, {Trusted: true, HTTP2: true}} {
		if e := seen.Evidence(); e != (rubicon.Evidence{Reach: rubicon.ReachSent}) {
			t.Errorf("%+v is %+v", seen, e)
		}
	}
	// Many at once, on a cold transport, are how it comes about.
	s := rubicontest.NewServer(rubicontest.H2, rubicontest.Act().ResetStream(http2.ErrCodeInternal))
	defer s.Close()
	base := s.Transport()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			got := watched(nil).try(base, shapes[1].request(t.Context(), s.URL))
			checkClaim(t, got, rubicon.ProofNone)
			if got.seen.GotConn != 1 || got.seen.Wrote != 1 || got.seen.Polls != 1 {
				t.Errorf("seen %+v", got.seen)
			}
		})
	}
	wg.Wait()
	wantCounts(t, s, 50, 50)
}

// Trap 10: an *http.Transport is no guarantee. What can be checked is checked:
// a foreign HTTP/2, and a scheme that net/http does not speak.
func TestTrap10TransportInDisguise(t *testing.T) {
	hookless := func(s *rubicontest.Server) roundTripper {
		base := s.Transport()
		return func(req *http.Request) (*http.Response, error) {
			req = req.Clone(context.WithoutCancel(t.Context()))
			req.URL.Scheme, _, _ = strings.Cut(s.URL, ":")
			return base.RoundTrip(req)
		}
	}
	for _, k := range shapes {
		for _, scheme := range []string{"unix", "http"} {
			t.Run("RegisterProtocol "+scheme+"/"+k.name, func(t *testing.T) {
				s := rubicontest.NewServer(rubicontest.H1, rubicontest.Act().Close())
				defer s.Close()
				base := new(http.Transport)
				base.RegisterProtocol(scheme, hookless(s))
				a, got := one(t, base, k, scheme+strings.TrimPrefix(s.URL, "http"), nil)
				wantAmbiguous(t, a, got)
				wantCounts(t, s, 1, 1)
			})
		}
		t.Run("TLSNextProto/"+k.name, func(t *testing.T) {
			s := rubicontest.NewServer(rubicontest.H2, rubicontest.Act().Close())
			defer s.Close()
			base := s.Transport()
			base.Protocols = nil
			base.TLSClientConfig.NextProtos = []string{"h2"}
			other := hookless(s)
			base.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{
				"h2": func(_ string, c *tls.Conn) http.RoundTripper {
					c.Close()
					return other
				},
			}
			a, got := one(t, base, k, s.URL, nil)
			wantAmbiguous(t, a, got)
			wantCounts(t, s, 1, 1)
		})
		t.Run("http.ClientConn/"+k.name, func(t *testing.T) {
			s := rubicontest.NewServer(rubicontest.H2, rubicontest.Act().Close())
			defer s.Close()
			c, err := s.Transport().NewClientConn(t.Context(), "https", s.Addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			a, got := one(t, c, k, s.URL, nil)
			wantAmbiguous(t, a, got)
			wantCounts(t, s, 1, 1)
		})
	}
}

// Trap 11: a connection that writes all, and says that it wrote nothing.
// net/http itself sends such a request again, where it may.
func TestTrap11ConnectionLies(t *testing.T) {
	for _, k := range shapes {
		t.Run(k.name, func(t *testing.T) {
			x := newSite(t, script(rubicontest.Act(), rubicontest.Act().Stall(), rubicontest.Act()))
			x.warm(t, 1)
			effects := 2 // the warm-up and the request
			if k.opaque {
				effects = 1 // the body would follow in another Write
			}
			lie := func(c net.Conn, p []byte) (int, error) {
				x.write.Store(nil) // once
				if _, err := c.Write(p); err != nil {
					return 0, err
				}
				arrives(t, x.s, "the request", func(c rubicontest.Counts) bool { return c.Requests == 2 && c.Effects >= effects })
				return 0, errors.New("nothing was written")
			}
			x.write.Store(&lie)
			a, got := one(t, x.base, k, x.url, nil)
			if k.body {
				wantAmbiguous(t, a, got)
				wantCounts(t, x.s, 2, effects)
				return
			}
			// Nothing tells net/http not to: there is no body to withhold.
			check(t, got, 200, nil)
			wantCounts(t, x.s, 3, 3)
			if a.Resends != 1 {
				t.Errorf("%d resends told, want 1", a.Resends)
			}
		})
	}
}

// Trap 12: without GetBody, net/http tells of a refusal by a text alone; and a
// guard by the context loses it. The text is known, and lets the request be
// sent again; what was cut off stays ambiguous.
func TestTrap12RefusalByText(t *testing.T) {
	for name, refusal := range map[string]rubicontest.Fault{
		"REFUSED_STREAM": rubicontest.Read().RefuseStream(),
		"GOAWAY":         rubicontest.Read().GoAwayBelow(http2.ErrCodeNo),
	} {
		for _, k := range shapes {
			t.Run(name+"/"+k.name, func(t *testing.T) {
				s := rubicontest.NewServer(rubicontest.H2, refusal, rubicontest.Act())
				defer s.Close()
				tr := &rubicon.Transport{Base: s.Transport(), Backoff: quick}
				ctx, op := begin(t, rubicon.Intent{})
				got := sendRequest(tr, k.request(ctx, s.URL))
				switch {
				case k.opaque:
					check(t, got, 0, rubicon.ErrNotRewindable)
					wantCounts(t, s, 1, 0)
					if op.Outcome() != rubicon.Refused {
						t.Errorf("outcome %v", op.Outcome())
					}
				case k.method == http.MethodPost && !k.body:
					check(t, got, 0, rubicon.ErrAmbiguous)
					wantCounts(t, s, 1, 0)
				default: // DELETE is idempotent
					check(t, got, 200, nil)
					wantCounts(t, s, 2, 1)
				}
				if all := op.Attempts(); k.body && all[0].Reach != rubicon.ReachSent {
					t.Errorf("%+v", all)
				}
			})
		}
	}
}

// Trap 13: WithClientTrace changes the trace that it is given, so that one
// which serves several requests calls ever more of the callers' hooks.
func TestTrap13CallersTraceDoesNotPileUp(t *testing.T) {
	both(t, func(t *testing.T, p rubicontest.Protocol) {
		s, tr := start(t, p)
		var c hookCounts
		ctx := c.trace(t.Context())
		for n := 1; n <= 20; n++ {
			check(t, send(ctx, tr, http.MethodPost, s.URL, "{}"), 200, nil)
			eventually(t, "the hook", func() bool { return c.get("WroteRequest") >= n })
			if got := c.get("GotConn"); got != n {
				t.Fatalf("after %d requests GotConn was called %d times", n, got)
			}
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { check(t, send(ctx, tr, http.MethodPost, s.URL, "{}"), 200, nil) })
		}
		wg.Wait()
		if got := c.get("GotConn"); got != 28 {
			t.Errorf("GotConn was called %d times for 28 requests", got)
		}
	})
}

// Trap 14: a stream error may be net/http's own. An answer without a status is
// one.
func TestTrap14LocalStreamError(t *testing.T) {
	// HEADERS for stream 1, END_HEADERS and END_STREAM, with one field that is
	// "accept-charset", and no status.
	noStatus := "\x00\x00\x01\x01\x05\x00\x00\x00\x01\x8f"
	for _, k := range shapes {
		t.Run(k.name, func(t *testing.T) {
			s := rubicontest.NewServer(rubicontest.H2, rubicontest.Act().Raw(noStatus).Stall())
			defer s.Close()
			a, got := one(t, s.Transport(), k, s.URL, nil)
			wantAmbiguous(t, a, got)
			if text := fmt.Sprint(got.err); !strings.Contains(text, "PROTOCOL_ERROR") {
				t.Errorf("the trap is not there: %v", got.err)
			}
			wantCounts(t, s, 1, 1)
		})
	}
}

// Trap 15: that a server closed an idle connection is the last word of a
// request of which an earlier try was applied.
func TestTrap15ClosedIdleAfterAll(t *testing.T) {
	for _, p := range h1both {
		t.Run(p.String(), func(t *testing.T) {
			noConnections(t)
			x := newSite(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{
				rubicontest.Act(), rubicontest.Act(), rubicontest.Act().CloseListener().Close()}})
			x.warm(t, 2)
			n := 0
			a, got := one(t, x.base, shapes[0], x.url, func(req *http.Request) *http.Request {
				return req.WithContext(onGotConn(req.Context(), func() {
					if n++; n == 2 { // the second idle connection goes before it is written to
						eventually(t, "the end of the first", func() bool { return goroutinesIn("persistConn).writeLoop(") == 1 })
						x.closeIdle(t)
						eventually(t, "net/http notices", func() bool { return goroutinesIn("persistConn).writeLoop(") == 0 })
					}
				}))
			})
			if n != 2 {
				t.Errorf("the trap is not there: %d connections obtained", n)
			}
			wantAmbiguous(t, a, got)
			wantCounts(t, x.s, 3, 3)
		})
	}
}

// Trap 16: the last stream of a GOAWAY says nothing to one who does not know
// the stream of its own.
func TestTrap16GoAwayAbove(t *testing.T) {
	for _, code := range []http2.ErrCode{http2.ErrCodeNo, http2.ErrCodeInternal, http2.ErrCodeEnhanceYourCalm} {
		for _, k := range shapes {
			t.Run(code.String()+"/"+k.name, func(t *testing.T) {
				s := rubicontest.NewServer(rubicontest.H2, rubicontest.Act().GoAwayAbove(code).Close())
				defer s.Close()
				a, got := one(t, s.Transport(), k, s.URL, nil)
				wantAmbiguous(t, a, got)
				if s.Effects() == 0 {
					t.Error("the server did not act")
				}
			})
		}
	}
}

// A lateReader is a connection whose reads are told of only when the test says
// so: what the peer did is not noticed until then.
type lateReader struct {
	net.Conn
	from <-chan struct{}
	late *atomic.Bool
}

// Read implements [net.Conn].
func (c lateReader) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.late.Load() {
		<-c.from
	}
	return n, err
}

// Trap 17: a FIN that arrived before the request was written does not prove
// that the peer reads no more.
func TestTrap17HalfClosed(t *testing.T) {
	for _, k := range shapes {
		t.Run(k.name, func(t *testing.T) {
			l, err := net.Listen("tcp4", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			acted, notice := make(chan string, 1), make(chan struct{})
			halfClose, halfClosed := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(notice)
				c, err := l.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				r := bufio.NewReader(c)
				if _, err := http.ReadRequest(r); err != nil {
					return
				}
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				<-halfClose
				_ = c.(*net.TCPConn).CloseWrite()
				close(halfClosed)
				if req, err := http.ReadRequest(r); err == nil {
					acted <- req.Method
				}
			}()
			var late atomic.Bool
			var dials atomic.Int32
			base := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				if dials.Add(1) > 1 {
					return nil, errors.New("no more")
				}
				c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
				return lateReader{c, notice, &late}, err
			}}
			defer base.CloseIdleConnections()
			res, err := base.RoundTrip(shapes[0].request(t.Context(), "http://"+l.Addr().String()))
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			late.Store(true) // what comes from here on is not told of
			close(halfClose)
			<-halfClosed
			a, got := one(t, base, k, "http://"+l.Addr().String(), nil)
			wantAmbiguous(t, a, got)
			<-notice
			if len(acted) != 1 || <-acted != k.method {
				t.Error("the peer did not read the request")
			}
		})
	}
}

// Trap 18: behind a proxy, "not sent" means: not to the proxy.
func TestTrap18Proxy(t *testing.T) {
	for _, k := range shapes {
		t.Run(k.name, func(t *testing.T) {
			proxy := rubicontest.NewServer(rubicontest.H1, rubicontest.Act().Close())
			defer proxy.Close()
			to := func(addr string) *http.Transport {
				return &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: addr})}
			}
			a, got := one(t, to(proxy.Addr), k, "http://origin.test/", nil)
			wantAmbiguous(t, a, got)
			wantCounts(t, proxy, 1, 1)

			r := rubicontest.NewRefused()
			defer r.Close()
			a, _ = one(t, to(r.Addr), k, "http://origin.test/", nil)
			if a.Proof != rubicon.ProofNoConnection {
				t.Errorf("%+v", a.Evidence)
			}
		})
	}
}

// Trap 19: a connection that was closed before the request was written, of
// which net/http did not know: the system took the bytes. This half of O2
// can't be proven, and is said to be so.
func TestTrap19StaleRace(t *testing.T) {
	for _, p := range h1both {
		for _, k := range shapes {
			t.Run(p.String()+"/"+k.name, func(t *testing.T) {
				x := newSite(t, rubicontest.Config{Protocol: p})
				notice := make(chan struct{})
				var late atomic.Bool
				var dials atomic.Int32
				x.base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
					if dials.Add(1) > 1 {
						return nil, errors.New("no more")
					}
					c, err := x.dial(ctx, network, addr)
					return lateReader{c, notice, &late}, err
				}
				x.warm(t, 1)
				late.Store(true)
				x.closeIdle(t)
				arrives(t, x.s, "the end", func(c rubicontest.Counts) bool { return c.Open == 0 })
				var once sync.Once
				write := func(c net.Conn, p []byte) (int, error) {
					n, err := c.Write(p)
					once.Do(func() { close(notice) })
					return n, err
				}
				x.write.Store(&write)
				a, got := one(t, x.base, k, x.url, nil)
				wantAmbiguous(t, a, got)
				wantCounts(t, x.s, 1, 1) // the warm-up alone
			})
		}
	}
}

// Trap 20: an early answer may be lost to an error of the upload.
func TestTrap20EarlyAnswer(t *testing.T) {
	both(t, func(t *testing.T, p rubicontest.Protocol) {
		for range 5 {
			x := newSite(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{rubicontest.ReadHeader().Answer(413, "too large")}})
			a, got := one(t, x.base, shapes[1], x.url, uploading)
			switch {
			case got.err != nil && got.status == 0:
				wantAmbiguous(t, a, got)
			case got.status != 413 || a.Verdict != rubicon.VerdictFailed:
				t.Errorf("told %+v, %+v", got, a)
			}
			if x.s.Requests() != 1 {
				t.Errorf("%d requests", x.s.Requests())
			}
		}
	})
}

// hookCounts counts the calls of a caller's own httptrace hooks.
type hookCounts struct {
	mu sync.Mutex
	n  map[string]int
}

// add counts a call.
func (c *hookCounts) add(hook string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[hook]++
}

// get returns the calls of one hook.
func (c *hookCounts) get(hook string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[hook]
}

// all returns the calls of each hook.
func (c *hookCounts) all() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.n)
}

// trace returns ctx with hooks that are counted.
func (c *hookCounts) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:              func(string) { c.add("GetConn") },
		GotConn:              func(httptrace.GotConnInfo) { c.add("GotConn") },
		GotFirstResponseByte: func() { c.add("GotFirstResponseByte") },
		Wait100Continue:      func() { c.add("Wait100Continue") },
		DNSStart:             func(httptrace.DNSStartInfo) { c.add("DNSStart") },
		DNSDone:              func(httptrace.DNSDoneInfo) { c.add("DNSDone") },
		ConnectStart:         func(string, string) { c.add("ConnectStart") },
		ConnectDone:          func(string, string, error) { c.add("ConnectDone") },
		TLSHandshakeStart:    func() { c.add("TLSHandshakeStart") },
		TLSHandshakeDone:     func(tls.ConnectionState, error) { c.add("TLSHandshakeDone") },
		WroteHeaderField:     func(string, []string) { c.add("WroteHeaderField") },
		WroteHeaders:         func() { c.add("WroteHeaders") },
		WroteRequest: func(i httptrace.WroteRequestInfo) {
			c.add("WroteRequest")
			if i.Err != nil {
				c.add("WroteRequest with an error")
			}
		},
	})
}

// O29: golang/go#18305. The caller's own hooks are called exactly as a plain
// transport calls them.
func TestEvidenceO29CallersHooks(t *testing.T) {
	type play func(t *testing.T, through func(http.RoundTripper) http.RoundTripper, k shape) map[string]int
	plays := map[string]play{
		"lost on a warm connection": func(t *testing.T, through func(http.RoundTripper) http.RoundTripper, k shape) map[string]int {
			x := newSite(t, script(rubicontest.Act(), rubicontest.Act().CloseListener().Close()))
			x.warm(t, 1)
			var c hookCounts
			res, err := through(x.base).RoundTrip(k.request(c.trace(t.Context()), x.url))
			if err == nil {
				res.Body.Close()
				t.Error("no error")
			}
			wantCounts(t, x.s, 2, 2)
			eventually(t, "the last dial", func() bool { return c.get("ConnectStart") == c.get("ConnectDone") })
			return c.all()
		},
	}
	for _, p := range allThree {
		plays["answered over "+p.String()] = func(t *testing.T, through func(http.RoundTripper) http.RoundTripper, k shape) map[string]int {
			x := newSite(t, rubicontest.Config{Protocol: p})
			var c hookCounts
			for range 2 { // on a new connection, and on a warm one
				res, err := through(x.base).RoundTrip(k.request(c.trace(t.Context()), x.url))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, res.Body); err != nil {
					t.Error(err)
				}
				res.Body.Close()
			}
			eventually(t, "the last hook", func() bool { return c.get("WroteRequest") == 2 })
			return c.all()
		}
	}
	for name, play := range plays {
		for _, k := range shapes {
			if name == "lost on a warm connection" && k.keyed {
				continue // a plain transport sends it again
			}
			t.Run(name+"/"+k.name, func(t *testing.T) {
				plain := play(t, func(rt http.RoundTripper) http.RoundTripper { return rt }, k)
				ours := play(t, func(rt http.RoundTripper) http.RoundTripper {
					return roundTripper(func(req *http.Request) (*http.Response, error) {
						ctx, op := rubicon.Begin(req.Context(), rubicon.Intent{Budget: rubicon.Budget{Attempts: 1}})
						defer op.End()
						return (&rubicon.Transport{Base: rt}).RoundTrip(req.WithContext(ctx))
					})
				}, k)
				if !maps.Equal(plain, ours) {
					t.Errorf("hooks called %v\na plain transport calls %v", ours, plain)
				}
			})
		}
	}
	t.Run("keyed", func(t *testing.T) {
		x := newSite(t, script(rubicontest.Act(), rubicontest.Act().CloseListener().Close()))
		x.warm(t, 1)
		var c hookCounts
		ctx, op := begin(t, rubicon.Intent{Budget: rubicon.Budget{Attempts: 2}})
		got := sendRequest(&rubicon.Transport{Base: x.base, Backoff: quick}, shapes[3].request(c.trace(ctx), x.url))
		check(t, got, 0, rubicon.ErrAmbiguous)
		wantCounts(t, x.s, 2, 2)
		if c.get("WroteRequest") != 1 || op.Outcome() != rubicon.Ambiguous {
			t.Errorf("%v, %v", c.all(), op.Outcome())
		}
	})
}

// A recording base keeps the requests that it is handed.
type recording struct {
	base http.RoundTripper
	mu   sync.Mutex
	all  []*http.Request
}

// RoundTrip implements [http.RoundTripper].
func (r *recording) RoundTrip(req *http.Request) (*http.Response, error) {
	kept := *req
	kept.Header = req.Header.Clone()
	r.mu.Lock()
	r.all = append(r.all, &kept)
	r.mu.Unlock()
	return r.base.RoundTrip(req)
}

// TestEvidencePermissionsAreTaken: the copy that Base is handed permits no
// resend of a request with an unsafe method, and the server gets all of it.
func TestEvidencePermissionsAreTaken(t *testing.T) {
	methods := []string{"", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPost,
		http.MethodPut, http.MethodPatch, http.MethodDelete, "PURGE", "get"}
	safe := map[string]bool{"": true, "GET": true, "HEAD": true, "OPTIONS": true, "TRACE": true}
	keys := []string{"Idempotency-Key", "X-Idempotency-Key"}
	both(t, func(t *testing.T, p rubicontest.Protocol) {
		for _, method := range methods {
			for _, body := range []bool{false, true} {
				t.Run(fmt.Sprintf("%q with body %v", method, body), func(t *testing.T) {
					s := rubicontest.NewServer(p)
					defer s.Close()
					base := &recording{base: s.Transport()}
					ctx, _ := begin(t, rubicon.Intent{})
					req := shape{method: method, body: body}.request(ctx, s.URL)
					for i, key := range keys {
						req.Header.Set(key, fmt.Sprintf("key %d", i))
					}
					res, err := (&rubicon.Transport{Base: base}).RoundTrip(req)
					if err != nil {
						t.Fatal(err)
					}
					res.Body.Close()
					out, in := base.all[0], s.Received()[0]
					if safe[method] {
						if body && out.GetBody == nil || out.Header[keys[0]] == nil {
							t.Errorf("a safe request was changed: %v", out.Header)
						}
					} else {
						if out.GetBody != nil {
							t.Error("Base was given GetBody")
						}
						for _, key := range keys {
							if _, ok := out.Header[key]; ok {
								t.Errorf("Base was given %s: %v", key, out.Header)
							}
						}
					}
					for i, key := range keys {
						if got := in.Header.Get(key); got != fmt.Sprintf("key %d", i) {
							t.Errorf("the server was given %s: %q", key, got)
						}
					}
					if want := map[bool]string{true: `{"amount":100}`}[body]; string(in.Body) != want {
						t.Errorf("the server was given the body %q", in.Body)
					}
				})
			}
		}
	})
}

// TestEvidenceKeyWithoutValue: a header that has a name and no value is not
// sent, and permits net/http to send the request again all the same.
func TestEvidenceKeyWithoutValue(t *testing.T) {
	for _, key := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		for _, k := range few[1:] {
			for _, values := range [][]string{{}, {"k1"}} {
				t.Run(fmt.Sprintf("%s %q/%s", key, values, k.name), func(t *testing.T) {
					x := newSite(t, script(rubicontest.Act(), rubicontest.Act(), rubicontest.Act(), rubicontest.Act().Close()))
					x.warm(t, 3)
					a, got := one(t, x.base, k, x.url, func(req *http.Request) *http.Request {
						req.Header[key] = values
						return req
					})
					wantAmbiguous(t, a, got)
					wantCounts(t, x.s, 4, 4)
					if in := x.s.Received()[3].Header[key]; len(in) != len(values) {
						t.Errorf("the server was given %s: %q", key, in)
					}
				})
			}
		}
	}
}

// O19: stripe/stripe-go#1523. A key, and three idle connections that each act
// and close: one delivery, and an ambiguous error. A safe request can't be
// prevented from being sent again, so its resends count as attempts.
func TestEvidenceO19Resends(t *testing.T) {
	for _, k := range shapes {
		for _, p := range h1both {
			t.Run(p.String()+"/"+k.name, func(t *testing.T) {
				x := newSite(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{
					rubicontest.Act(), rubicontest.Act(), rubicontest.Act(), rubicontest.Act().Close()}})
				x.warm(t, 3)
				ctx, op := begin(t, rubicon.Intent{Budget: rubicon.Budget{Attempts: 4}})
				tr := &rubicon.Transport{Base: x.base, Backoff: quick}
				got := sendRequest(tr, k.request(ctx, x.url))
				requests := x.s.Requests() - 3
				told := 0
				for _, a := range op.Attempts() {
					told += 1 + a.Resends
				}
				if told != requests {
					t.Errorf("%d attempts told, the server saw %d requests", told, requests)
				}
				switch {
				case k.safe(), k.method == http.MethodDelete:
					check(t, got, 0, rubicon.ErrBudget)
					if requests != 4 {
						t.Errorf("%d requests, want 4: as many as the budget has", requests)
					}
				default:
					check(t, got, 0, rubicon.ErrAmbiguous)
					if requests != 1 {
						t.Errorf("%d requests, want 1", requests)
					}
				}
			})
		}
	}
}

// TestEvidenceCutOff: a request without a body, of an unsafe method, is cut
// off at its second connection over HTTP/2: net/http repeats it on grounds
// that are no proof (golang/go#47635, golang/go#52459).
func TestEvidenceCutOff(t *testing.T) {
	for name, fault := range map[string]rubicontest.Fault{
		"REFUSED_STREAM":         rubicontest.Read().RefuseStream(),
		"acted, REFUSED_STREAM":  rubicontest.Act().RefuseStream(),
		"acted, PROTOCOL_ERROR":  rubicontest.Act().ResetStream(http2.ErrCodeProtocol),
		"GOAWAY below":           rubicontest.Read().GoAwayBelow(http2.ErrCodeNo),
		"REFUSED_STREAM, closed": rubicontest.Act().RefuseStream().Close(),
	} {
		for _, method := range []string{http.MethodPost, http.MethodDelete, http.MethodPut, "PURGE"} {
			for _, warm := range []int{0, 1} {
				t.Run(fmt.Sprintf("%s/%s/%d warm", name, method, warm), func(t *testing.T) {
					faults := []rubicontest.Fault{rubicontest.Act(), fault}
					x := newSite(t, rubicontest.Config{Protocol: rubicontest.H2, Script: faults[1-warm:]})
					x.warm(t, warm)
					before := x.s.Counts()
					a, got := one(t, x.base, shape{method: method}, x.url, nil)
					wantAmbiguous(t, a, got)
					x.settle(t)
					if n := x.s.Requests() - before.Requests; n != 1 {
						t.Errorf("the server saw %d requests, want 1", n)
					}
					if errors.Is(got.err, context.Canceled) {
						t.Errorf("our own cut-off is told as the caller's cancellation: %v", got.err)
					}
					if a.Resends != 0 {
						t.Errorf("%d resends told, and none arrived", a.Resends)
					}
				})
			}
		}
	}
}

// TestEvidenceUntrusted: a base that is not an *http.Transport itself, or not
// with net/http's own HTTP/2, never yields a proof.
func TestEvidenceUntrusted(t *testing.T) {
	r := rubicontest.NewRefused()
	defer r.Close()
	s := rubicontest.NewServer(rubicontest.H1, rubicontest.Act().Close())
	defer s.Close()
	hidden := s.Transport()
	for _, k := range shapes {
		a, _ := one(t, new(http.Transport), k, r.URL, nil)
		if a.Proof != rubicon.ProofNoConnection {
			t.Errorf("%s over the transport itself: %+v", k.name, a.Evidence)
		}
		for name, base := range map[string]http.RoundTripper{
			"func": roundTripper(new(http.Transport).RoundTrip),
			"fallback": roundTripper(func(req *http.Request) (*http.Response, error) {
				first := k.request(context.WithoutCancel(t.Context()), s.URL) // of which no hook tells
				if res, err := hidden.RoundTrip(first); err == nil {
					return res, nil
				}
				return new(http.Transport).RoundTrip(req)
			}),
			"embedded": struct{ *http.Transport }{new(http.Transport)},
			"pointer":  &recording{base: new(http.Transport)},
			"oauth2": &oauth2.Transport{Source: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "t"}),
				Base: new(http.Transport)},
			//lint:ignore SA1019 callers still have it
			"x/net": &http2.Transport{AllowHTTP: true, DialTLSContext: func(context.Context, string, string, *tls.Config) (net.Conn, error) {
				return nil, errors.New("no dial")
			}},
		} {
			a, got := one(t, base, k, r.URL, nil)
			if got.err == nil || a.Evidence != (rubicon.Evidence{Reach: rubicon.ReachSent}) {
				t.Errorf("%s over %s: %+v (%v)", k.name, name, a.Evidence, got.err)
			}
		}
	}
	wantCounts(t, s, len(shapes), len(shapes))
}

// TestEvidenceConfigureTransport: x/net's HTTP/2 in an *http.Transport. Up to
// Go 1.26 it is another client, and not believed; from Go 1.27 on it is a name
// for net/http's own, and believed.
func TestEvidenceConfigureTransport(t *testing.T) {
	for _, k := range shapes {
		t.Run(k.name, func(t *testing.T) {
			x := coldRig(t, byPath(nil))
			x.base.Protocols = nil
			//lint:ignore SA1019 callers still call it
			if err := http2.ConfigureTransport(x.base); err != nil {
				t.Fatal(err)
			}
			check(t, send(t.Context(), x.base, http.MethodGet, x.s.URL+"/warm", ""), 200, nil)

			req, finish := ends[0].arrange(k.request(t.Context(), x.s.URL+"/slow"))
			got := x.endInWrite(t, transported, req, finish)
			checkClaim(t, got, rubicon.ProofNone)
			if n := x.saw(t, "/slow"); n != 1 {
				t.Errorf("the server saw it %d times", n)
			}

			r := rubicontest.NewRefused()
			defer r.Close()
			a, _ := one(t, x.base, k, "https://"+r.Addr, nil)
			if proven := a.Verdict == rubicon.VerdictNotApplied; proven != (goRelease() >= 27) {
				t.Errorf("%s: %+v", t.Name(), a.Evidence)
			}
		})
	}
}

// TestEvidenceBaseThatRepeats: a base that repeats requests by itself is
// refused, with an error that says what to do, and the body is closed.
func TestEvidenceBaseThatRepeats(t *testing.T) {
	s := rubicontest.NewServer(rubicontest.H1)
	defer s.Close()
	retrying := func() http.RoundTripper {
		c := retryablehttp.NewClient()
		c.HTTPClient.Transport, c.Logger = s.Transport(), nil
		return &retryablehttp.RoundTripper{Client: c}
	}
	token := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "t"})
	for name, base := range map[string]http.RoundTripper{
		"retryablehttp":                   retrying(),
		"rubicon":                         &rubicon.Transport{Base: s.Transport()},
		"oauth2 over retryablehttp":       &oauth2.Transport{Source: token, Base: retrying()},
		"oauth2 over rubicon":             &oauth2.Transport{Source: token, Base: &rubicon.Transport{}},
		"oauth2 over oauth2 over rubicon": &oauth2.Transport{Base: &oauth2.Transport{Base: &rubicon.Transport{}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				for _, in := range []bool{false, true} {
					ctx := t.Context()
					if in {
						ctx, _ = begin(t, rubicon.Intent{})
					}
					body := &closeCounter{Reader: strings.NewReader("{}")}
					req, err := http.NewRequestWithContext(ctx, method, s.URL, body)
					if err != nil {
						t.Fatal(err)
					}
					res, err := (&rubicon.Transport{Base: base}).RoundTrip(req)
					if err == nil {
						res.Body.Close()
					}
					if !errors.Is(err, rubicon.ErrBase) || body.closed.Load() != 1 {
						t.Errorf("%v, and the body was closed %d times", err, body.closed.Load())
					}
				}
			}
		})
	}
	wantCounts(t, s, 0, 0)
	// One that does not repeat is left alone.
	over := &oauth2.Transport{Source: token, Base: s.Transport()}
	check(t, send(t.Context(), &rubicon.Transport{Base: over}, http.MethodPost, s.URL, "{}"), 200, nil)
}

// TestEvidenceContextReachesBase: the request's values and its end reach Base,
// and the connections below it, whatever the transport adds.
func TestEvidenceContextReachesBase(t *testing.T) {
	both(t, func(t *testing.T, p rubicontest.Protocol) {
		for _, k := range shapes {
			s := rubicontest.NewServer(p)
			defer s.Close()
			inner := s.Transport()
			var dialed any
			inner.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				dialed = ctx.Value(valueKey{})
				return (&net.Dialer{}).DialContext(ctx, network, addr)
			}
			base := &recording{base: inner}
			ctx, _ := begin(t, rubicon.Intent{})
			ctx, cancel := context.WithTimeout(context.WithValue(ctx, valueKey{}, "mine"), time.Hour)
			defer cancel()
			res, err := (&rubicon.Transport{Base: base}).RoundTrip(k.request(ctx, s.URL))
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			got := base.all[0].Context()
			deadline, ok := got.Deadline()
			want, _ := ctx.Deadline()
			if got.Value(valueKey{}) != "mine" || dialed != "mine" || !ok || !deadline.Equal(want) {
				t.Errorf("%s: value %v, dialed with %v, deadline %v", k.name, got.Value(valueKey{}), dialed, deadline)
			}
			if rubicon.FromContext(got) == nil {
				t.Errorf("%s: the operation is lost", k.name)
			}
			if strings.Contains(fmt.Sprint(got), "mine") {
				t.Errorf("%s: a value of the context is printed: %v", k.name, got)
			}
			cancel()
			<-got.Done()
		}
	})
}

// TestEvidenceRequestUnmodified: the caller's request is not modified, and is
// the one that the answer names.
func TestEvidenceRequestUnmodified(t *testing.T) {
	ok := rubicontest.Act()
	for name, script := range map[string][]rubicontest.Fault{
		"answered":  {ok},
		"twice":     {rubicontest.Read().Answer(429, ""), ok},
		"not found": {rubicontest.Read().Answer(404, "")},
	} {
		for _, k := range shapes {
			for _, in := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/operation %v", name, k.name, in), func(t *testing.T) {
					both(t, func(t *testing.T, p rubicontest.Protocol) {
						s, tr := start(t, p, script...)
						ctx := t.Context()
						if in {
							ctx, _ = begin(t, rubicon.Intent{})
						}
						req := k.request(ctx, s.URL+"/path?q=1")
						before, header := *req, req.Header.Clone()
						res, err := tr.RoundTrip(req)
						if err != nil {
							t.Fatal(err)
						}
						defer res.Body.Close()
						if res.Request != req {
							t.Error("the answer names another request")
						}
						if !maps.EqualFunc(req.Header, header, func(a, b []string) bool { return reflect.DeepEqual(a, b) }) {
							t.Errorf("header %v, was %v", req.Header, header)
						}
						if req.Body != before.Body || req.URL != before.URL || req.Context() != ctx ||
							(req.GetBody == nil) != (before.GetBody == nil) || req.ContentLength != before.ContentLength ||
							req.Host != before.Host || req.Close != before.Close || req.Method != before.Method {
							t.Errorf("%+v, was %+v", req, before)
						}
					})
				})
			}
		}
	}
}

// O30: open-telemetry/opentelemetry-go-contrib#1628. After 101 the body is the
// connection: it passes untouched, and no limit applies.
func TestEvidenceO30Upgrade(t *testing.T) {
	const short, head = 20 * time.Millisecond, time.Second
	for _, test := range []struct {
		name  string
		k     shape
		stall rubicon.Stall
		idle  time.Duration
	}{
		{"GET", shapes[0], rubicon.Stall{Bytes: short}, 3 * short},
		{"POST", shapes[1], rubicon.Stall{Bytes: short}, 3 * short},
		{"no body", shapes[4], rubicon.Stall{Bytes: short}, 3 * short},
		{"limit of the head", shapes[4], rubicon.Stall{Head: head}, head + short},
		{"no limit", shapes[0], rubicon.Stall{}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := rubicontest.NewServer(rubicontest.H1, rubicontest.Read().Upgrade())
			defer s.Close()
			ctx := t.Context()
			if test.name != "no limit" {
				ctx, _ = begin(t, rubicon.Intent{})
			}
			req := test.k.request(ctx, s.URL)
			req.Header.Set("Connection", "Upgrade")
			req.Header.Set("Upgrade", "echo")
			res, err := (&rubicon.Transport{Base: s.Transport(), Stall: test.stall}).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			conn, ok := res.Body.(io.ReadWriteCloser)
			if res.StatusCode != 101 || !ok || res.Request != req {
				t.Fatalf("%d with a %T for a body, for %p", res.StatusCode, res.Body, res.Request)
			}
			for _, idle := range []time.Duration{0, test.idle} {
				time.Sleep(idle) // what is tested is that silence does no harm
				text := strings.Repeat("x", 1<<10)
				if _, err := io.WriteString(conn, text); err != nil {
					t.Fatal(err)
				}
				buf := make([]byte, len(text))
				if _, err := io.ReadFull(conn, buf); err != nil || string(buf) != text {
					t.Fatalf("%d bytes came back, %v", len(buf), err)
				}
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			if _, err := conn.Read(make([]byte, 1)); err == nil {
				t.Error("Close did not end it")
			}
		})
	}
}

// TestEvidenceTrailers: trailers survive, and are there when the body has been
// read.
func TestEvidenceTrailers(t *testing.T) {
	both(t, func(t *testing.T, p rubicontest.Protocol) {
		for _, k := range shapes {
			for _, tr := range []*rubicon.Transport{{}, {Stall: rubicon.Stall{Head: time.Minute, Bytes: time.Minute}}} {
				for _, in := range []bool{false, true} {
					for _, contentType := range []string{"text/plain", "text/event-stream"} {
						s := rubicontest.NewServer(p, rubicontest.Act().Answer(200, "data: x\n\n").
							Header("Content-Type", contentType).Trailer("X-Sum", "42"))
						defer s.Close()
						ctx := t.Context()
						if in {
							ctx, _ = begin(t, rubicon.Intent{})
						}
						res, err := (&rubicon.Transport{Base: s.Transport(), Stall: tr.Stall}).RoundTrip(k.request(ctx, s.URL))
						if err != nil {
							t.Fatal(err)
						}
						if _, ok := res.Trailer["X-Sum"]; !ok {
							t.Errorf("%s: the trailer was not announced: %v", k.name, res.Trailer)
						}
						if b, err := io.ReadAll(res.Body); err != nil || string(b) != "data: x\n\n" {
							t.Errorf("%s: read %q, %v", k.name, b, err)
						}
						res.Body.Close()
						if got := res.Trailer.Get("X-Sum"); got != "42" {
							t.Errorf("%s: trailer %q", k.name, got)
						}
					}
				}
			}
		}
	})
}

// idleCloser is a base that counts calls of CloseIdleConnections.
type idleCloser struct {
	roundTripper
	calls *atomic.Int32
}

// CloseIdleConnections counts a call.
func (c idleCloser) CloseIdleConnections() { c.calls.Add(1) }

// TestEvidenceCloseIdleConnections: it is forwarded, to any base that has it.
func TestEvidenceCloseIdleConnections(t *testing.T) {
	both(t, func(t *testing.T, p rubicontest.Protocol) {
		s, tr := start(t, p)
		client := &http.Client{Transport: tr}
		check(t, send(t.Context(), tr, http.MethodPost, s.URL, "{}"), 200, nil)
		if n := s.Counts().Open; n != 1 {
			t.Fatalf("%d connections", n)
		}
		eventually(t, "the end of the idle connection", func() bool {
			client.CloseIdleConnections()
			return s.Counts().Open == 0
		})
	})
	var calls atomic.Int32
	(&rubicon.Transport{Base: idleCloser{calls: &calls}}).CloseIdleConnections()
	if calls.Load() != 1 {
		t.Errorf("%d calls", calls.Load())
	}
	(&rubicon.Transport{Base: roundTripper(nil)}).CloseIdleConnections()
}
