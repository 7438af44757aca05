package sdk

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/rubicon-go/rubicon"
)

// someFamily is a server of which nothing is known.
var someFamily = family{
	host:    "payments.internal",
	busy:    problem{503, `{"error":"try again later"}`},
	denied:  problem{401, `{"error":"who?"}`},
	limited: problem{429, `{"error":"too many"}`},
}

func retryableClients() []client {
	whole := answer{kind: "text/plain", pieces: []string{"hello"}}
	return []client{
		{name: "go-retryablehttp", family: &someFamily, answer: whole, open: retryable, plain: 5},
		{name: "go-retryablehttp, CheckRetry", family: &someFamily, answer: whole, open: retryableObeying},
	}
}

// retryable is the client as it is, but for shorter waits.
func retryable(_ *testing.T, hc *http.Client, url string) call {
	return retryableCall(newRetryable(hc), url)
}

// retryableObeying asks Rubicon before it goes on.
func retryableObeying(_ *testing.T, hc *http.Client, url string) call {
	c := newRetryable(hc)
	c.CheckRetry, c.Backoff, c.ErrorHandler = rubicon.CheckRetry, rubicon.RetryBackoff, rubicon.KeepAnswer
	return retryableCall(c, url)
}

func retryableCall(c *retryablehttp.Client, url string) call {
	return func(ctx context.Context) (string, error) {
		req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, url+"/payments", []byte("amount=5"))
		if err != nil {
			return "", err
		}
		res, err := c.Do(req)
		if err != nil {
			return "", err
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		if err == nil && res.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", res.Status, body)
		}
		return string(body), err
	}
}
