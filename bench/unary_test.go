package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"golang.org/x/oauth2"

	"github.com/rubicon-go/rubicon"
)

var (
	answer  = []byte(`{"ok":true}`)
	payload = bytes.Repeat([]byte("x"), 1<<10)
)

// A contestant makes calls over a base, each as its users would.
type contestant struct {
	name   string
	over   func(base http.RoundTripper, origin string) http.RoundTripper
	intent func(i int) *rubicon.Intent // of call i; nil: none
}

var contestants = []contestant{
	{"raw", func(base http.RoundTripper, _ string) http.RoundTripper { return base }, nil},
	{"x-oauth2", func(base http.RoundTripper, _ string) http.RoundTripper {
		return &oauth2.Transport{Base: base, Source: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "token"})}
	}, nil},
	{"go-retryablehttp", func(base http.RoundTripper, _ string) http.RoundTripper {
		client := retryablehttp.NewClient()
		client.Logger, client.HTTPClient.Transport = nil, base
		return &retryablehttp.RoundTripper{Client: client}
	}, nil},
	{"rubicon", func(base http.RoundTripper, _ string) http.RoundTripper { return &rubicon.Transport{Base: base} }, nil},
	{"rubicon-auth", func(base http.RoundTripper, origin string) http.RoundTripper {
		return &rubicon.Transport{Base: base, Auth: &rubicon.Auth{
			Credential: rubicon.NewCredential(&oauth2.Token{AccessToken: "token", Expiry: time.Now().Add(24 * time.Hour)}, grant),
			Origins:    []string{origin},
		}}
	}, nil},
	{"rubicon-operation", func(base http.RoundTripper, _ string) http.RoundTripper { return &rubicon.Transport{Base: base} },
		func(int) *rubicon.Intent { return new(rubicon.Intent) }},
	{"rubicon-keyed", keyed, func(i int) *rubicon.Intent {
		return &rubicon.Intent{Key: rubicon.Key{Scope: "bench", Name: strconv.Itoa(i)}}
	}},
}

// grant is never called.
func grant(context.Context, *oauth2.Token) (*oauth2.Token, error) {
	return nil, errors.New("the token is good")
}

// keyed returns a transport that sends the operation's key and keeps its record.
func keyed(base http.RoundTripper, _ string) http.RoundTripper {
	return &rubicon.Transport{
		Base:    base,
		Journal: &rubicon.MemoryJournal{Limit: 1 << 10},
		Endpoints: []rubicon.Endpoint{{
			Match: func(*http.Request) bool { return true }, KeyHeader: "Idempotency-Key", Retention: 24 * time.Hour,
		}},
	}
}

// A caller makes one call after another.
type caller struct {
	contestant
	rt       http.RoundTripper
	template *http.Request
	n        int
	buf      []byte
}

// newCaller returns one whose requests are like each other.
func newCaller(ctx context.Context, c contestant, base http.RoundTripper, method, url string) (*caller, error) {
	var body io.Reader
	if method == http.MethodPost {
		body = bytes.NewReader(payload)
	}
	template, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	return &caller{contestant: c, rt: c.over(base, template.URL.Scheme+"://"+template.URL.Host), template: template, buf: make([]byte, 1<<10)}, nil
}

// call makes one call and returns the answer's body, until the next call.
func (c *caller) call() ([]byte, error) {
	ctx := c.template.Context()
	if c.intent != nil {
		with, op := rubicon.Begin(ctx, *c.intent(c.n))
		defer op.End()
		ctx = with
	}
	c.n++
	req := c.template.WithContext(ctx)
	if req.GetBody != nil {
		req.Body, _ = req.GetBody()
	}
	res, err := c.rt.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	n, err := io.ReadFull(res.Body, c.buf)
	if err == io.ErrUnexpectedEOF {
		err = nil
	}
	return c.buf[:n], err
}

// calls makes n calls.
func (c *caller) calls(n int) error {
	for range n {
		if _, err := c.call(); err != nil {
			return err
		}
	}
	return nil
}

// allocations returns how often and how much each of n calls allocates.
func (c *caller) allocations(n int) (count, size float64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = c.calls(n)
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(n), float64(after.TotalAlloc-before.TotalAlloc) / float64(n), err
}

// BenchmarkUnary: see the package's documentation.
func BenchmarkUnary(b *testing.B) {
	unary(b, &stub{"application/json", answer}, "https://api.test/v1/things", 500)
}

// BenchmarkLoopback: see the package's documentation.
func BenchmarkLoopback(b *testing.B) {
	base, url := serve(b, "application/json", answer)
	unary(b, base, url, 50)
}

// unary measures every contestant over base, in turns of n calls.
func unary(b *testing.B, base http.RoundTripper, url string, n int) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		for _, c := range contestants {
			b.Run(method+"/"+c.name, func(b *testing.B) {
				raw, err := newCaller(b.Context(), contestants[0], base, method, url)
				if err != nil {
					b.Fatal(err)
				}
				this, err := newCaller(b.Context(), c, base, method, url)
				if err != nil {
					b.Fatal(err)
				}
				m := turns(b, func() error { return raw.calls(n) }, func() error { return this.calls(n) })
				count, size, err := this.allocations(n)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(each(m[1], n), "ns/call")
				b.ReportMetric(ratio(m[1], m[0]), "x-raw")
				b.ReportMetric(count, "allocs/call")
				b.ReportMetric(size, "B/call")
			})
		}
	}
}

// TestUnaryWork: every contestant hands on the same answer to the same request,
// in one attempt.
func TestUnaryWork(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		for _, c := range contestants {
			t.Run(fmt.Sprintf("%s %s", method, c.name), func(t *testing.T) {
				base := &recorder{stub: stub{"application/json", answer}}
				caller, err := newCaller(t.Context(), c, base, method, "https://api.test/v1/things")
				if err != nil {
					t.Fatal(err)
				}
				for range 3 {
					if got, err := caller.call(); err != nil || !bytes.Equal(got, answer) {
						t.Errorf("got %q, %v", got, err)
					}
				}
				want := ""
				if method == http.MethodPost {
					want = string(payload)
				}
				if len(base.got) != 3 || base.got[0] != want || base.got[2] != want {
					t.Errorf("%d requests %.20q, want 3 of %.20q", len(base.got), base.got, want)
				}
				if key := base.key; (key != "") != (c.name == "rubicon-keyed" && method == http.MethodPost) {
					t.Errorf("the key is %q", key)
				}
			})
		}
	}
}

// A recorder is a stub that notes the bodies that it got.
type recorder struct {
	stub
	got []string
	key string
}

// RoundTrip implements [http.RoundTripper].
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
	}
	r.got = append(r.got, string(body))
	for name, values := range req.Header {
		if http.CanonicalHeaderKey(name) == "Idempotency-Key" && len(values) > 0 {
			r.key = values[0]
		}
	}
	return r.stub.RoundTrip(req)
}
