package rubicon_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// retryable returns the ready client over tr, with short waits.
func retryable(tr *rubicon.Transport) *retryablehttp.Client {
	c := rubicon.NewRetryableClient(tr)
	c.RetryWaitMin, c.RetryWaitMax = time.Millisecond, 2*time.Millisecond
	return c
}

// TestRetryableStops: the loop above stops at once where the request may have
// acted, and returns the error, or the answer, that there is.
func TestRetryableStops(t *testing.T) {
	for name, fault := range map[string]rubicontest.Fault{
		"lost": rubicontest.Act().Close(),
		"500":  rubicontest.Act().Answer(500, "broken"),
		"429":  rubicontest.Act().Answer(429, "slow down"),
		"404":  rubicontest.Act().Answer(404, "nothing here"),
	} {
		t.Run(name, func(t *testing.T) {
			s, tr := start(t, rubicontest.H1, fault)
			tr.Budget = rubicon.Budget{Attempts: 1}
			for _, client := range []*http.Client{retryable(tr).StandardClient(), {Transport: &retryablehttp.RoundTripper{Client: retryable(tr)}}} {
				before := s.Counts().Requests
				res, err := client.Post(s.URL, "text/plain", strings.NewReader("x"))
				if name == "lost" != errors.Is(err, rubicon.ErrAmbiguous) {
					t.Errorf("%v %v", res, err)
				}
				var own *rubicon.Error
				if err != nil && !errors.As(err, &own) {
					t.Errorf("the type was lost: %v", err)
				}
				if err == nil {
					res.Body.Close()
				}
				if n := s.Counts().Requests - before; n != 1 {
					t.Errorf("%d requests", n)
				}
			}
		})
	}
}

// TestRetryableGoesOn: after a proof that nothing was sent the loop goes on,
// also beyond the transport's own budget, unless an operation's is spent.
func TestRetryableGoesOn(t *testing.T) {
	r := rubicontest.NewRefused()
	defer r.Close()
	for _, c := range []struct {
		operation bool
		budget    rubicon.Budget
		attempts  int
	}{
		{false, rubicon.Budget{Attempts: 1}, 5},
		{true, rubicon.Budget{Attempts: 2}, 2},
	} {
		attempts := 0
		tr := &rubicon.Transport{Base: new(http.Transport), Budget: c.budget, Backoff: quick, Trace: &rubicon.Trace{
			AttemptStart: func(_ context.Context, _ rubicon.AttemptInfo) { attempts++ },
		}}
		ctx := t.Context()
		if c.operation {
			ctx, _ = begin(t, rubicon.Intent{})
		}
		req, err := retryablehttp.NewRequestWithContext(ctx, "POST", r.URL, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = retryable(tr).Do(req)
		var own *rubicon.Error
		if !errors.As(err, &own) || own.Outcome != rubicon.Unsent {
			t.Errorf("%v", err)
		}
		if attempts != c.attempts {
			t.Errorf("%+v: %d attempts", c, attempts)
		}
	}
}

// TestRetryableCalls: the loop above does not call again where that is of no
// use: the operation's budget is spent, or no attempt would fare better.
func TestRetryableCalls(t *testing.T) {
	r := rubicontest.NewRefused()
	defer r.Close()
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	defer untrusted.Close()
	for name, c := range map[string]struct {
		url       string
		operation bool
	}{
		"budget":      {r.URL, true},
		"certificate": {untrusted.URL, false},
	} {
		calls := 0
		client := retryable(&rubicon.Transport{Base: new(http.Transport), Budget: rubicon.Budget{Attempts: 2}, Backoff: quick})
		client.RequestLogHook = func(retryablehttp.Logger, *http.Request, int) { calls++ }
		ctx := t.Context()
		if c.operation {
			ctx, _ = begin(t, rubicon.Intent{})
		}
		req, err := retryablehttp.NewRequestWithContext(ctx, "POST", c.url, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Do(req)
		var own *rubicon.Error
		if !errors.As(err, &own) || own.Outcome != rubicon.Unsent || calls != 1 {
			t.Errorf("%s: %d calls, %v", name, calls, err)
		}
	}
}

// TestRetryableOfOthers: an error that no Transport made proves nothing.
func TestRetryableOfOthers(t *testing.T) {
	if again, err := rubicon.CheckRetry(t.Context(), nil, errors.New("connection refused")); again || err != nil {
		t.Errorf("%v %v", again, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if again, err := rubicon.CheckRetry(ctx, nil, nil); again || err != nil {
		t.Errorf("%v %v", again, err)
	}
}

// TestRetryBackoff: what the answer asks for is waited for.
func TestRetryBackoff(t *testing.T) {
	res := &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {"100"}}}
	if d := rubicon.RetryBackoff(time.Second, 4*time.Second, 0, res); d < 99*time.Second || d > 100*time.Second {
		t.Error(d)
	}
	for attempt, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second} {
		if d := rubicon.RetryBackoff(time.Second, 4*time.Second, attempt, nil); d != want {
			t.Error(attempt, d)
		}
	}
}

// TestBackoffStops: cenkalti/backoff's own loop stops where nothing may be sent
// again, goes on where it may, and returns our error.
func TestBackoffStops(t *testing.T) {
	s, tr := start(t, rubicontest.H1, rubicontest.Act().Close())
	r := rubicontest.NewRefused()
	defer r.Close()
	for url, want := range map[string]int{s.URL: 1, r.URL: 4} {
		calls := 0
		err := backoff.Retry(func() error {
			calls++
			return send(t.Context(), tr, http.MethodPost, url, "x").err
		}, backoff.WithMaxRetries(&backoff.ZeroBackOff{}, 3))
		var own *rubicon.Error
		if calls != want || !errors.As(err, &own) {
			t.Errorf("%d calls, %v", calls, err)
		}
	}
}
