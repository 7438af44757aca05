package lab

import (
	"context"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/rubicon-go/rubicon"
)

// A client is one of those that meet the faults.
type client struct {
	name      string
	transport func(*bench) http.RoundTripper
	want      func(*wants) result
}

// clients are in the order of the rows.
var clients = [...]client{
	{"net/http", plain, func(w *wants) result { return w.nethttp }},
	{"retryablehttp", retrying, func(w *wants) result { return w.retryable }},
	{"rubicon", proving, func(w *wants) result { return w.rubicon }},
}

// pause is how long clients wait between attempts where the server asks for
// nothing.
const pause = 2 * time.Millisecond

// plain is net/http as it is.
func plain(b *bench) http.RoundTripper {
	b.base.ResponseHeaderTimeout = b.head
	return b.base
}

// retrying is go-retryablehttp over net/http.
func retrying(b *bench) http.RoundTripper { return retryingOver(b, plain(b)) }

// retryingOver is go-retryablehttp as it is, but for shorter waits: it retries
// four times.
func retryingOver(b *bench, base http.RoundTripper) http.RoundTripper {
	c := retryablehttp.NewClient()
	c.Logger = nil
	c.HTTPClient = &http.Client{Transport: base}
	c.RetryWaitMin, c.RetryWaitMax = pause, pause
	c.Backoff = func(least, most time.Duration, n int, res *http.Response) time.Duration {
		b.waits()
		return retryablehttp.DefaultBackoff(least, most, n, res)
	}
	return &retryablehttp.RoundTripper{Client: c}
}

// proving is Rubicon as it is, but for shorter waits. In layers it is below
// go-retryablehttp.
func proving(b *bench) http.RoundTripper {
	b.stall.Head, b.whole = b.head, 0
	b.base.OnProxyConnectResponse = rubicon.ProxyConnectResponse
	t := &rubicon.Transport{
		Base:      b.base,
		Backoff:   func() backoff.BackOff { return backoff.NewConstantBackOff(pause) },
		Endpoints: b.endpoints,
		Stall:     b.stall,
		Trace:     &rubicon.Trace{Wait: func(context.Context, rubicon.WaitInfo) { b.waits() }},
	}
	if b.layers {
		return retryingOver(b, t)
	}
	return t
}
