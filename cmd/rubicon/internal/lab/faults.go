package lab

import (
	"context"
	"fmt"
	"go/version"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// Error codes of HTTP/2 (RFC 9113 section 7).
const (
	noError       = 0x0
	protocolError = 0x1
)

// uploadSize is more than sockets buffer.
const uploadSize = 8 << 20

// Faults returns the faults of the lab. A new one is a new row.
func Faults() []Fault { return slices.Clone(faults) }

// faults has all of them.
var faults = slices.Concat(onTheWay, streams)

// onTheWay follows a request on its way: to a connection, to the server, back,
// and to those who wait above the client.
//
// What the first two clients do follows from the caller, who tries once more
// than the client: net/http makes one attempt a call unless it repeats it by
// itself, go-retryablehttp makes five. An O and a number name the public report
// that a row plays.
var onTheWay = []Fault{
	{
		Name:   "dns-nxdomain",
		About:  "the server's name does not exist",
		server: h1(),
		setup:  resolved(rubicontest.NXDomain),
		count:  dials,
		want: wants{
			nethttp:   result{2, 0, "error: no such host"},
			retryable: result{10, 0, "error: no such host"},
			rubicon:   result{2, 0, "unsent (no such host)"}, // once a call: asking again by itself would not help
		},
	},
	{
		Name:   "dns-servfail",
		About:  "the name server fails twice before it answers",
		server: h1(),
		setup:  resolved(failed, failed, failed, failed, rubicontest.Loopback), // two questions a lookup
		count:  dials,
		want: wants{
			nethttp:   result{2, 0, "error: lookup failed"},
			retryable: result{3, 1, "200"},
			rubicon:   result{3, 1, "200"},
		},
	},
	{
		Name:   "refused-always",
		About:  "nobody listens at the server's address",
		server: h1(),
		setup:  refused(1000),
		count:  dials,
		want: wants{
			nethttp:   result{2, 0, "error: connection refused"},
			retryable: result{10, 0, "error: connection refused"},
			rubicon:   result{4, 0, "unsent (budget)"},
		},
	},
	{
		Name:   "refused-twice",
		About:  "two connections are refused before the server is back",
		server: h1(),
		setup:  refused(2),
		count:  dials,
		want: wants{
			nethttp:   result{2, 0, "error: connection refused"},
			retryable: result{3, 1, "200"},
			rubicon:   result{3, 1, "200"},
		},
	},
	{
		Name:   "tls-untrusted",
		About:  "the server's certificate is signed by nobody the client knows",
		server: h1tls(rubicontest.UntrustedConn),
		count:  dials,
		want: wants{
			nethttp:   result{2, 0, "error: certificate"},
			retryable: result{2, 0, "error: certificate"},
			rubicon:   result{2, 0, "unsent (certificate)"},
		},
	},
	{
		Name:   "tls-silent", // O1
		About:  "two TLS handshakes are never answered: a timeout as in lost-head, but nothing was sent",
		server: h1tls(rubicontest.SilentConn, rubicontest.SilentConn, rubicontest.ServeConn),
		setup:  impatient(2, 100*time.Millisecond),
		count:  dials,
		want: wants{
			nethttp:   result{2, 0, "error: timeout"},
			retryable: result{3, 1, "200"},
			rubicon:   result{3, 1, "200"},
		},
	},
	{
		Name:   "proxy-503", // O32
		About:  "a proxy refuses two CONNECTs with 503 before it opens a tunnel",
		server: h1tls(),
		setup:  proxied(503, 503, 200),
		count:  connects,
		want: wants{
			nethttp:   result{2, 0, "error: Service Unavailable"},
			retryable: result{3, 1, "200"},
			rubicon:   result{3, 1, "200"},
		},
	},
	{
		Name:   "proxy-407", // O32
		About:  "a proxy refuses every CONNECT with 407",
		server: h1tls(),
		setup:  proxied(407),
		count:  connects,
		want: wants{
			nethttp:   result{2, 0, "error: proxy auth required"},
			retryable: result{10, 0, "error: proxy auth required"},
			rubicon:   result{2, 0, "unsent (proxy 407)"},
		},
	},
	{
		Name:     "upload-413",
		About:    "the server answers 413 in the middle of an upload and reads on",
		server:   h1(rubicontest.ReadHeader().Answer(413, "too large\n").Drain()),
		requests: []request{upload},
		want: wants{
			nethttp:   result{1, 0, "413"},
			retryable: result{1, 0, "413"},
			rubicon:   result{1, 0, "413"},
		},
	},
	{
		Name:     "upload-reset",
		About:    "the server acts on the first part of an upload and resets the connection",
		server:   h1(rubicontest.ReadBody(64 << 10).Act().Reset()),
		requests: []request{upload},
		want: wants{
			nethttp:   result{2, 2, "error: connection reset"},
			retryable: result{10, 10, "error: connection reset"},
			rubicon:   result{1, 1, "ambiguous"},
		},
	},
	{
		Name:   "lost-close", // O20
		About:  "the server acts and closes the connection before the head of its answer",
		server: h1(rubicontest.Act().Close()),
		want: wants{
			nethttp:   result{2, 2, "error: EOF"},
			retryable: result{10, 10, "error: EOF"},
			rubicon:   result{1, 1, "ambiguous"},
		},
	},
	{
		Name:   "lost-reset",
		About:  "the server acts and resets the connection before the head of its answer",
		server: h1(rubicontest.Act().Reset()),
		want: wants{
			nethttp:   result{2, 2, "error: connection reset"},
			retryable: result{10, 10, "error: connection reset"},
			rubicon:   result{1, 1, "ambiguous"},
		},
	},
	{
		Name:     "lost-deduped",
		About:    "as lost-close, but the caller sends a key and the server knows a repeated one",
		server:   deduping(rubicontest.Act().Close()),
		setup:    documented,
		requests: []request{{key: "invoice-77"}},
		want: wants{
			nethttp:   result{2, 1, "200"},
			retryable: result{2, 1, "200"},
			rubicon:   result{2, 1, "200"},
		},
	},
	{
		Name:   "lost-endpoint",
		About:  "as lost-deduped, but the caller sends no key: an Endpoint documents it",
		server: deduping(rubicontest.Act().Close(), rubicontest.Act()),
		setup:  documented,
		want: wants{
			nethttp:   result{2, 2, "200"},
			retryable: result{2, 2, "200"},
			rubicon:   result{2, 1, "200"},
		},
	},
	{
		Name:     "lost-read",
		About:    "the answer to a GET that reads what happened is lost once",
		server:   h1(rubicontest.Read().Close(), rubicontest.Read().Answer(200, "accepted\ndone\n")),
		requests: []request{{method: http.MethodGet}},
		want: wants{
			nethttp:   result{2, 0, "200"},
			retryable: result{2, 0, "200"},
			rubicon:   result{2, 0, "200"},
		},
	},
	{
		Name:   "lost-head", // O1, O4
		About:  "the server acts and never answers; clients wait for a head no longer than they are told",
		server: h1(rubicontest.Act().Stall()),
		setup:  headWithin(300 * time.Millisecond),
		want: wants{
			nethttp:   result{2, 2, "error: timeout"},
			retryable: result{10, 10, "error: timeout"},
			rubicon:   result{1, 1, "ambiguous (stalled)"},
		},
	},
	{
		Name:   "lost-listener", // O19
		About:  "a kept connection dies after the server acted, and then nobody listens any more",
		server: h1(rubicontest.Act().CloseListener().Close()),
		idle:   1,
		// Like many a caller, this one sends a key that the server may ignore.
		requests: []request{{key: "invoice-77"}},
		want: wants{
			nethttp:   result{1, 1, "error: connection refused"}, // looks as if nothing had been sent
			retryable: result{1, 1, "error: connection refused"},
			rubicon:   result{1, 1, "ambiguous"},
		},
	},
	{
		Name:     "stale-key", // O19
		About:    "three kept connections die after the server acted; the key is not documented",
		server:   h1(rubicontest.Act().Close()),
		idle:     3,
		requests: []request{{key: "invoice-77"}},
		want: wants{
			nethttp:   result{5, 5, "error: EOF"}, // net/http repeats the request on each of them
			retryable: result{13, 13, "error: EOF"},
			rubicon:   result{1, 1, "ambiguous"},
		},
	},
	{
		Name:   "h2-refused",
		About:  "the server refuses the stream once (REFUSED_STREAM)",
		server: h2(rubicontest.Read().RefuseStream(), rubicontest.Act()),
		want: wants{
			nethttp:   result{2, 1, "200"},
			retryable: result{2, 1, "200"},
			rubicon:   result{2, 1, "200"},
		},
	},
	{
		Name:   "goaway-below",
		About:  "the server says GOAWAY and that it has not seen the request",
		server: h2(rubicontest.Read().GoAwayBelow(noError), rubicontest.Act()),
		want: wants{
			nethttp:   result{2, 1, "200"},
			retryable: result{2, 1, "200"},
			rubicon:   result{2, 1, "200"},
		},
	},
	{
		Name:   "goaway-above",
		About:  "the server acts, says GOAWAY and that it has seen the request, and closes",
		server: h2(rubicontest.Act().GoAwayAbove(noError).Close()),
		want: wants{
			nethttp:   result{2, 2, "error: GOAWAY"},
			retryable: result{10, 10, "error: GOAWAY"},
			rubicon:   result{1, 1, "ambiguous"},
		},
	},
	{
		Name:  "h2-protocol",
		About: "the server acts and resets the stream with PROTOCOL_ERROR, twice; before Go 1.27, net/http takes that for a refusal",
		server: h2(rubicontest.Act().ResetStream(protocolError),
			rubicontest.Act().ResetStream(protocolError), rubicontest.Act()),
		want: wants{
			nethttp: byGo("go1.27",
				result{3, 3, "200"},
				result{2, 2, "error: PROTOCOL_ERROR"}),
			retryable: result{3, 3, "200"},
			rubicon:   result{1, 1, "ambiguous"},
		},
	},
	{
		Name:   "h2-dead", // O35
		About:  "the server acts, and the connection carries nothing any more; pings find that out",
		server: h2(rubicontest.Act().Freeze(), rubicontest.Act()),
		setup:  pinging,
		want: wants{
			nethttp:   result{2, 2, "200"},
			retryable: result{2, 2, "200"},
			rubicon:   result{1, 1, "ambiguous"},
		},
	},
	{
		Name:   "act-502", // O31
		About:  "the server acts, and a gateway answers 502",
		server: h1(rubicontest.Act().Answer(502, "bad gateway\n")),
		want:   unavailable(502),
	},
	{
		Name:   "act-503", // O31
		About:  "the server acts and answers 503",
		server: h1(rubicontest.Act().Answer(503, "unavailable\n")),
		want:   unavailable(503),
	},
	{
		Name:   "act-504", // O31
		About:  "the server acts, and a gateway answers 504",
		server: h1(rubicontest.Act().Answer(504, "timeout\n")),
		want:   unavailable(504),
	},
	{
		Name:   "wait-429", // O25
		About:  "the server answers 429 with Retry-After, and again to whoever comes too early",
		server: limited(time.Second),
		want: wants{
			nethttp:   result{1, 0, "429"},
			retryable: result{2, 1, "200"},
			rubicon:   result{2, 1, "200"},
		},
	},
	{
		Name:   "wait-canceled", // O21, O22
		About:  "the server answers 429 with Retry-After, and the caller gives up while the client waits",
		server: h1(rubicontest.Read().Answer(429, "").Header("Retry-After", "30"), rubicontest.Act()),
		during: cancelWait,
		want: wants{
			nethttp:   result{1, 0, "429"}, // it does not wait
			retryable: result{1, 0, "error: canceled"},
			rubicon:   result{1, 0, "refused (429, canceled)"},
		},
	},
	{
		Name:   "sibling-dial", // O21
		About:  "the server acts, and the caller's context ends because a sibling could not connect",
		server: h1(rubicontest.Act().Stall()),
		during: cancelBySibling,
		want: wants{
			nethttp:   result{1, 1, "error: connection refused"}, // looks as if nothing had been sent
			retryable: result{1, 1, "error: canceled"},
			rubicon:   result{1, 1, "ambiguous (canceled)"},
		},
	},
	{
		Name:     "key-mismatch",
		About:    "the caller asks for something else under the same key",
		server:   h1(),
		intent:   rubicon.Intent{Key: rubicon.Key{Scope: "lab", Name: "invoice-77"}},
		requests: []request{{key: "invoice-77", body: "amount=5"}, {key: "invoice-77", body: "amount=7"}},
		want: wants{
			nethttp:   result{2, 2, "200"},
			retryable: result{2, 2, "200"},
			rubicon:   result{1, 1, "mismatch"},
		},
	},
	{
		Name:   "layers-lost", // O3, O31
		About:  "as lost-close, below an application that tries 3 times, an SDK 3 and go-retryablehttp 5",
		server: h1(rubicontest.Act().Close()),
		layers: true,
		want: wants{
			nethttp:   result{9, 9, "error: EOF"}, // without the innermost layer
			retryable: result{45, 45, "error: EOF"},
			rubicon:   result{1, 1, "ambiguous"},
		},
	},
	{
		Name:   "layers-refused",
		About:  "as refused-always, below the same layers: one budget for all of them",
		server: h1(),
		setup:  refused(1000),
		layers: true,
		count:  dials,
		want: wants{
			nethttp:   result{9, 0, "error: connection refused"},
			retryable: result{45, 0, "error: connection refused"},
			rubicon:   result{4, 0, "unsent (budget)"},
		},
	},
}

// failed is a name server that fails.
const failed = rubicontest.ServFail

// upload is a request with a large body.
var upload = request{body: string(make([]byte, uploadSize))}

// unavailable is what is expected where the server acts and then answers with
// status each time.
func unavailable(status int) wants {
	return wants{
		nethttp:   result{2, 2, fmt.Sprint(status)},
		retryable: result{10, 10, "error: gave up"}, // and the answer is lost
		rubicon:   result{1, 1, fmt.Sprintf("ambiguous (%d)", status)},
	}
}

// byGo returns before if this is a release of Go before the named one, else
// since.
func byGo(release string, before, since result) result {
	if lang := version.Lang(runtime.Version()); lang != "" && version.Compare(lang, release) < 0 {
		return before
	}
	return since
}

// What follows makes servers.

// h1 is an HTTP/1.1 server with a script.
func h1(script ...rubicontest.Fault) func() rubicontest.Config {
	return func() rubicontest.Config { return rubicontest.Config{Script: script} }
}

// h1tls is an HTTP/1.1 server over TLS with a script for its connections.
func h1tls(script ...rubicontest.Accept) func() rubicontest.Config {
	return func() rubicontest.Config {
		return rubicontest.Config{Protocol: rubicontest.H1TLS, Accept: script}
	}
}

// h2 is an HTTP/2 server with a script.
func h2(script ...rubicontest.Fault) func() rubicontest.Config {
	return func() rubicontest.Config { return rubicontest.Config{Protocol: rubicontest.H2, Script: script} }
}

// deduping is an HTTP/1.1 server that knows a repeated request by its key.
func deduping(script ...rubicontest.Fault) func() rubicontest.Config {
	return func() rubicontest.Config {
		return rubicontest.Config{Script: script, Dedupe: "Idempotency-Key"}
	}
}

// limited is an HTTP/1.1 server that acts on nothing before wait is over from
// the first request on.
func limited(wait time.Duration) func() rubicontest.Config {
	return func() rubicontest.Config {
		opens := sync.OnceValue(func() time.Time { return time.Now().Add(wait) })
		return rubicontest.Config{Choose: func(rubicontest.Request) rubicontest.Fault {
			if time.Now().Before(opens()) {
				return rubicontest.Read().Answer(429, "").Header("Retry-After", fmt.Sprint(wait.Seconds()))
			}
			return rubicontest.Act()
		}}
	}
}

// What follows sets up what there is besides the server.

// resolved gives the server a name that a name server answers for.
func resolved(script ...rubicontest.Lookup) func(*bench) {
	return func(b *bench) {
		r := rubicontest.NewResolver(script...)
		b.onClose(r.Close)
		b.dial = r.DialContext
		_, port, _ := net.SplitHostPort(b.server.Addr)
		b.url = "http://lab.test:" + port + "/payments"
	}
}

// refused makes the first n connections go where nobody listens.
func refused(n int64) func(*bench) {
	return func(b *bench) {
		r := rubicontest.NewRefused()
		b.onClose(r.Close)
		dial := b.dial
		b.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if b.dials.Load() <= n {
				addr = r.Addr
			}
			return dial(ctx, network, addr)
		}
	}
}

// proxied puts a proxy between the client and the server.
func proxied(statuses ...int) func(*bench) {
	return func(b *bench) {
		b.proxy = rubicontest.NewProxy(statuses...)
		b.onClose(b.proxy.Close)
		b.base.Proxy = b.proxy.Proxy
	}
}

// pinging makes the client look after its HTTP/2 connections.
func pinging(b *bench) {
	b.base.HTTP2 = &http.HTTP2Config{
		SendPingTimeout: time.Second,
		PingTimeout:     time.Second,
	}
}

// impatient makes the client give up the first n connections after d.
func impatient(n int64, d time.Duration) func(*bench) {
	return func(b *bench) {
		dial := b.dial
		b.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			if err == nil && b.dials.Load() <= n {
				err = c.SetDeadline(time.Now().Add(d))
			}
			return c, err
		}
	}
}

// headWithin makes the client wait no longer than d for the head of an answer.
func headWithin(d time.Duration) func(*bench) { return func(b *bench) { b.head = d } }

// documented tells Rubicon what the server documents about its key.
func documented(b *bench) {
	b.endpoints = []rubicon.Endpoint{{
		Match:     func(req *http.Request) bool { return req.URL.Path == "/payments" },
		KeyHeader: "Idempotency-Key",
		Retention: 24 * time.Hour,
	}}
}

// What follows counts attempts where a request is not what is to be counted.

// dials counts connections that were asked for.
func dials(b *bench) int { return int(b.dials.Load()) }

// connects counts what a proxy was asked for.
func connects(b *bench) int { return b.proxy.Connects() }

// What follows happens while the caller waits.

// cancelWait gives up when the client waits before another attempt.
func cancelWait(b *bench) {
	select {
	case <-b.waiting:
		b.cancel(nil)
	case <-b.ctx.Done():
	}
}

// cancelBySibling connects to nobody when the server has acted, and gives
// everything up because that failed, as an errgroup does.
func cancelBySibling(b *bench) {
	if b.server.Await(b.ctx, func(c rubicontest.Counts) bool { return c.Effects > 0 }) != nil {
		return
	}
	r := rubicontest.NewRefused()
	defer r.Close()
	_, err := b.dial(b.ctx, "tcp", r.Addr)
	b.cancel(err)
}
