package sdk

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	anthropic "github.com/anthropics/anthropic-sdk-go"
	anthropic2 "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/openai/openai-go/v3"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// These are the days of somebody who sets option.WithHTTPClient to a client
// over the zero Transport, and nothing else.

// onTheDay runs test for OpenAI's and Anthropic's SDKs.
func onTheDay(t *testing.T, test func(*testing.T, *client)) {
	var list []client
	for _, name := range []string{
		"openai-go chat", "openai-go chat, streamed",
		"anthropic v1 messages", "anthropic v1 messages, streamed",
		"anthropic v2 messages", "anthropic v2 messages, streamed",
	} {
		list = append(list, *named(t, name))
	}
	each(t, list, test)
}

func TestDayOverload(t *testing.T) {
	onTheDay(t, func(t *testing.T, c *client) {
		wantGood(t, newBench(t, c, bare, c.family.busy.fault(), c.answer.good()).alone(patient(t)), 1, 2)
	})
}

func TestDayLost(t *testing.T) {
	onTheDay(t, func(t *testing.T, c *client) {
		r := newBench(t, c, bare, rubicontest.Act().Close(), c.answer.good()).alone(patient(t))
		if r.effects != 1 || r.attempts != 1 || !errors.Is(r.err, rubicon.ErrAmbiguous) {
			t.Errorf("%d effects, %d attempts, %v; want 1, 1, ambiguous", r.effects, r.attempts, r.err)
		}
		if r.err != nil && !strings.Contains(r.err.Error(), "Transport.Repeat") {
			t.Errorf("%v does not name the remedy", r.err)
		}
	})
}

func TestDayRefused(t *testing.T) {
	onTheDay(t, func(t *testing.T, c *client) {
		b := newBench(t, c, bare)
		b.refuse = 2
		wantGood(t, b.alone(patient(t)), 1, 1)
	})
}

// Nobody listens for good: the SDK's tries and ours do not multiply.
func TestDayDown(t *testing.T) {
	onTheDay(t, func(t *testing.T, c *client) {
		b := newBench(t, c, bare)
		b.refuse = 1000
		began := time.Now()
		r := b.alone(patient(t))
		if n := b.dials.Load(); n > 4 || r.err == nil {
			t.Errorf("%d dials, %v; want no more than 4, and an error", n, r.err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A rate limit is waited for, and what stays limited is the provider's own.
func TestDayLimited(t *testing.T) {
	const wait = 300 * time.Millisecond
	limited := func(c *client) rubicontest.Fault { return c.family.limited.fault().Header("Retry-After-Ms", "300") }
	t.Run("once", func(t *testing.T) {
		onTheDay(t, func(t *testing.T, c *client) {
			began := time.Now()
			wantGood(t, newBench(t, c, bare, limited(c), c.answer.good()).alone(patient(t)), 1, 2)
			if took := time.Since(began); took < wait {
				t.Errorf("it took %v; want no less than %v", took, wait)
			}
		})
	})
	t.Run("always", func(t *testing.T) {
		onTheDay(t, func(t *testing.T, c *client) {
			r := newBench(t, c, bare, limited(c)).alone(patient(t))
			if r.attempts > 4 || statusOf(r.err) != 429 {
				t.Errorf("%d attempts, %v; want no more than 4, and the provider's 429", r.attempts, r.err)
			}
		})
	})
}

// statusOf returns the status in an SDK's own error, or 0.
func statusOf(err error) int {
	var o *openai.Error
	var a *anthropic.Error
	var b *anthropic2.Error
	switch {
	case errors.As(err, &o):
		return o.StatusCode
	case errors.As(err, &a):
		return a.StatusCode
	case errors.As(err, &b):
		return b.StatusCode
	}
	return 0
}

// A stream that is cut, or that ends without its end, is an error, and is not
// asked for again.
func TestDayCut(t *testing.T) {
	for name, fault := range map[string]func(*answer) rubicontest.Fault{
		"cut": (*answer).cut, "quiet": (*answer).quiet,
	} {
		t.Run(name, func(t *testing.T) {
			onTheDay(t, func(t *testing.T, c *client) {
				if name == "quiet" && !c.answer.streams() {
					t.Skip("only a stream can")
				}
				r := newBench(t, c, bare, fault(&c.answer)).alone(patient(t))
				wantInterrupted(t, c, r)
			})
		})
	}
}

func TestDayUnauthorized(t *testing.T) {
	onTheDay(t, func(t *testing.T, c *client) {
		r := newBench(t, c, bare, c.family.denied.fault()).alone(patient(t))
		var ours *rubicon.Error
		if r.attempts != 1 || statusOf(r.err) != 401 || errors.As(r.err, &ours) {
			t.Errorf("%d attempts, %v; want 1, and the provider's 401", r.attempts, r.err)
		}
	})
}

// An answer that takes five minutes arrives.
func TestDaySlow(t *testing.T) {
	for _, name := range []string{"openai-go chat", "anthropic v1 messages", "anthropic v2 messages"} {
		t.Run(name, func(t *testing.T) {
			c := named(t, name)
			synctest.Test(t, func(t *testing.T) {
				const takes = 5 * time.Minute
				network := newPipes()
				server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					select {
					case <-time.After(takes):
					case <-r.Context().Done():
						return
					}
					w.Header().Set("Content-Type", c.answer.kind)
					_, _ = io.WriteString(w, strings.Join(c.answer.pieces, ""))
				})}
				go func() { _ = server.Serve(network) }()
				defer func() { _ = server.Close() }()
				base := http.DefaultTransport.(*http.Transport).Clone()
				base.DialContext = network.dial
				defer base.CloseIdleConnections()

				began := time.Now()
				text, err := c.open(t, &http.Client{Transport: &rubicon.Transport{Base: base}}, "http://"+c.family.host)(t.Context())
				if err != nil || text != c.answer.wanted() || time.Since(began) < takes {
					t.Errorf("got %q, %v after %v", text, err, time.Since(began))
				}
			})
		})
	}
}

// pipes are a network in memory, and the listener of its one server.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

// dial connects to the server.
func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements [net.Listener].
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

// Addr implements [net.Listener].
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }
