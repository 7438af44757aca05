package rubicontest_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rubicon-go/rubicon/rubicontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds waits for what is certain to come.
const patience = 20 * time.Second

var protocols = []rubicontest.Protocol{rubicontest.H1, rubicontest.H1TLS, rubicontest.H2}

// start starts a server that ends with the test.
func start(t *testing.T, c rubicontest.Config) *rubicontest.Server {
	t.Helper()
	s := c.Start()
	t.Cleanup(s.Close)
	return s
}

// patient returns a context that ends the test if what is certain doesn't come.
func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// request returns a request whose body can't be sent twice.
func request(t *testing.T, ctx context.Context, method, url, body string) *http.Request {
	t.Helper()
	var r io.Reader
	if body != "" {
		r = struct{ io.Reader }{strings.NewReader(body)}
	}
	req, err := http.NewRequestWithContext(ctx, method, url, r)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// A reply is what a client was told.
type reply struct {
	status  int
	body    string
	header  http.Header
	trailer http.Header
	err     error // of RoundTrip, or of reading the body
}

// send sends req over rt and reads the answer.
func send(rt http.RoundTripper, req *http.Request) reply {
	res, err := rt.RoundTrip(req)
	if err != nil {
		return reply{err: err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, string(body), res.Header, res.Trailer, err}
}

// post sends a small POST that net/http does not send twice.
func post(t *testing.T, rt http.RoundTripper, url string) reply {
	t.Helper()
	return send(rt, request(t, patient(t), "POST", url, "hello"))
}

// await waits until done is true of the server's counts.
func await(t *testing.T, s *rubicontest.Server, done func(rubicontest.Counts) bool) {
	t.Helper()
	if err := s.Await(patient(t), done); err != nil {
		t.Fatalf("counts stand at %+v: %v", s.Counts(), err)
	}
}

// wantOK fails the test unless r is the answer that a server gives by default.
func wantOK(t *testing.T, r reply) {
	t.Helper()
	if r.status != 200 || r.body != "ok\n" || r.err != nil {
		t.Errorf("got %d %q, %v; want 200 ok", r.status, r.body, r.err)
	}
}

// wantCounts fails the test unless the server saw and did this much.
func wantCounts(t *testing.T, s *rubicontest.Server, requests, effects int) {
	t.Helper()
	if s.Requests() != requests || s.Effects() != effects {
		t.Errorf("server saw %d requests and acted %d times; want %d and %d",
			s.Requests(), s.Effects(), requests, effects)
	}
}

// eventually waits for what happens just after an event that can be awaited.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	for ctx := patient(t); !done(); time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatal("it did not happen")
		}
	}
}

// timeLimited returns a context that ends after d.
func timeLimited(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}
