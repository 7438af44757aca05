package rubicon

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// NewRetryableClient returns a go-retryablehttp client whose requests go through
// t, for programs that are built around one. Its loop goes on only where t says
// that sending is safe: see [CheckRetry]. Nil: a Transport's zero value.
func NewRetryableClient(t *Transport) *retryablehttp.Client {
	if t == nil {
		t = new(Transport)
	}
	c := retryablehttp.NewClient()
	c.HTTPClient = &http.Client{Transport: t}
	c.Logger = nil
	c.CheckRetry, c.Backoff, c.ErrorHandler = CheckRetry, RetryBackoff, KeepAnswer
	return c
}

// CheckRetry is a [retryablehttp.CheckRetry] for clients over a [Transport]. An
// answer is returned as it came: the transport has waited, and asked again, as
// far as that was allowed. After an error another round begins only if the
// transport's own proof allows it: nothing was applied, or a licence covers a
// replay, and the budget of the operation in ctx is not spent. An error that no
// Transport made proves nothing, and ends the loop.
func CheckRetry(ctx context.Context, _ *http.Response, err error) (bool, error) {
	if err == nil || ctx.Err() != nil { // the error tells that it ended
		return false, nil
	}
	var stop *stopError
	var own *Error
	switch {
	case errors.As(err, &stop), !errors.As(err, &own):
		return false, nil
	case own.Decision.Why == WhyHeld, FromContext(ctx) != nil && errors.Is(own, ErrBudget):
		return false, nil
	}
	return own.open, nil
}

// RetryBackoff is a [retryablehttp.Backoff] that waits as long as the answer
// asks, if there is one, else as go-retryablehttp does by default.
func RetryBackoff(shortest, longest time.Duration, attempt int, res *http.Response) time.Duration {
	if res != nil {
		if at := asked(res.Header, nil, time.Now()); !at.IsZero() {
			return time.Until(at)
		}
	}
	return retryablehttp.DefaultBackoff(shortest, longest, attempt, nil)
}

// KeepAnswer is a [retryablehttp.ErrorHandler] that returns what the last
// attempt brought, so that [errors.As] finds an [*Error] in it.
func KeepAnswer(res *http.Response, err error, _ int) (*http.Response, error) { return res, err }
