package rubicontest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rubicon-go/rubicon/rubicontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds waits for what is certain to come.
const patience = 10 * time.Second

// start starts a server that ends with the test.
func start(t *testing.T, c rubicontest.Config) *rubicontest.Server {
	t.Helper()
	s := c.Start()
	t.Cleanup(s.Close)
	return s
}

// call sends a request and returns the status and the body, or the error that
// net/http gave for either.
func call(t *testing.T, tr http.RoundTripper, method, url, body string) (int, string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, r)
	if err != nil {
		t.Fatal(err)
	}
	res, err := tr.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	return res.StatusCode, string(got), err
}

// await waits until done is true of the server's counts.
func await(t *testing.T, s *rubicontest.Server, done func(rubicontest.Counts) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Await(ctx, done); err != nil {
		t.Fatalf("counts stand at %+v: %v", s.Counts(), err)
	}
}

func TestSmoke(t *testing.T) {
	for _, p := range []rubicontest.Protocol{rubicontest.H1, rubicontest.H1TLS} {
		s := start(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{
			{},
			rubicontest.Act().Close(),
			rubicontest.Act().Reset(),
			rubicontest.ReadHeader().Answer(413, "too large"),
			rubicontest.Act().CloseListener().Close(),
		}})
		tr := s.Transport()
		defer tr.CloseIdleConnections()
		code, body, err := call(t, tr, "POST", s.URL+"/a?b", "hello")
		t.Log(p, code, body, err)
		code, body, err = call(t, tr, "POST", s.URL+"/a?b", "hello")
		t.Log(p, code, body, err)
		code, body, err = call(t, tr, "POST", s.URL+"/a?b", "hello")
		t.Log(p, code, body, err)
		code, body, err = call(t, tr, "POST", s.URL+"/a?b", "hello")
		t.Log(p, code, body, err)
		code, body, err = call(t, tr, "POST", s.URL+"/a?b", "hello")
		t.Log(p, code, body, err)
		code, body, err = call(t, tr, "POST", s.URL+"/a?b", "hello")
		t.Log(p, code, body, err)
		t.Logf("%+v", s.Counts())
	}
	r := rubicontest.NewRefused()
	defer r.Close()
	_, _, err := call(t, http.DefaultTransport, "POST", r.URL, "x")
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Error(err)
	}
}
