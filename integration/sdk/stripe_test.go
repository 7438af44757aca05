package sdk

import (
	"context"
	"net/http"
	"testing"

	"github.com/stripe/stripe-go/v84"
)

// stripeFamily is Stripe, which documents a key and no overload.
var stripeFamily = family{
	host:    "api.stripe.com",
	key:     "Idempotency-Key",
	busy:    problem{503, `{"error":{"type":"api_error","message":"Try again later."}}`},
	denied:  problem{401, `{"error":{"type":"invalid_request_error","message":"Invalid API Key provided."}}`},
	limited: problem{429, `{"error":{"type":"invalid_request_error","code":"rate_limit","message":"Too many requests."}}`},
}

func stripeClients() []client {
	return []client{{
		name: "stripe", family: &stripeFamily, open: stripeIntent, plain: 3,
		answer: answer{
			kind:   "application/json",
			pieces: []string{`{"id":"hello","object":"payment_intent","amount":500,"currency":"eur","status":"succeeded"}`},
		},
	}}
}

func stripeIntent(_ *testing.T, hc *http.Client, url string) call {
	b := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL: stripe.String(url), HTTPClient: hc, EnableTelemetry: stripe.Bool(false),
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
	})
	c := stripe.NewClient("sk_test_1", stripe.WithBackends(&stripe.Backends{API: b, Connect: b, Uploads: b}))
	return func(ctx context.Context) (string, error) {
		res, err := c.V1PaymentIntents.Create(ctx, &stripe.PaymentIntentCreateParams{
			Amount: stripe.Int64(500), Currency: stripe.String("eur"),
		})
		if err != nil {
			return "", err
		}
		return res.ID, nil
	}
}
