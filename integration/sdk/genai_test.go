package sdk

import (
	"context"
	"net/http"
	"testing"

	"google.golang.org/genai"
	"google.golang.org/genai/interactions/models/interactions"
	"google.golang.org/genai/interactions/models/operations"
	"google.golang.org/genai/interactions/retry"
)

// geminiFamily is the Gemini API, which documents no answer as a refusal but
// the rate limit.
var geminiFamily = family{
	host:    "generativelanguage.googleapis.com",
	busy:    problem{503, `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`},
	denied:  problem{401, `{"error":{"code":401,"message":"Request had invalid authentication credentials.","status":"UNAUTHENTICATED"}}`},
	limited: problem{429, `{"error":{"code":429,"message":"Resource exhausted.","status":"RESOURCE_EXHAUSTED"}}`},
}

// What the Gemini API answers.
var (
	geminiWhole = answer{
		kind:   "application/json",
		pieces: []string{`{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"hello"}]},"finishReason":"STOP"}],"responseId":"r1","modelVersion":"m"}`},
	}
	geminiStream = answer{
		kind: "text/event-stream",
		pieces: []string{
			sse("", `{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"hel"}]}}],"responseId":"r1","modelVersion":"m"}`),
			sse("", `{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"lo"}]}}],"responseId":"r1","modelVersion":"m"}`),
			sse("", `{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":""}]},"finishReason":"STOP"}],"responseId":"r1","modelVersion":"m"}`),
		},
		end:     2,
		failure: sse("", `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`),
		cause:   "UNAVAILABLE",
	}
	interactionWhole = answer{
		kind:   "application/json",
		pieces: []string{`{"id":"hello","created":"2026-03-30T22:20:00Z","updated":"2026-03-30T22:20:00Z","status":"completed"}`},
	}
	interactionStream = answer{
		kind: "text/event-stream",
		pieces: []string{
			sse("interaction.created", `{"interaction":{"id":"i1","status":"in_progress","object":"interaction","model":"m"},"event_type":"interaction.created"}`),
			sse("step.start", `{"index":0,"step":{"type":"model_output"},"event_type":"step.start"}`),
			sse("step.delta", `{"index":0,"delta":{"text":"hello","type":"text"},"event_type":"step.delta"}`),
			sse("step.stop", `{"index":0,"event_type":"step.stop"}`),
			sse("interaction.completed", `{"interaction":{"id":"i1","status":"completed","object":"interaction","model":"m","created":"2026-05-15T18:52:17Z","updated":"2026-05-15T18:52:17Z"},"event_type":"interaction.completed"}`),
			sse("done", `[DONE]`),
		},
		end:     4,
		failure: sse("error", `{"event_type":"error","error":{"code":"internal","message":"boom"}}`),
		cause:   "internal",
	}
)

func genaiClients() []client {
	return []client{
		{name: "genai", family: &geminiFamily, answer: geminiWhole, open: genaiUnary(nil)},
		{name: "genai with RetryOptions", family: &geminiFamily, answer: geminiWhole, open: genaiUnary(quickRetries()), plain: 5},
		{name: "genai interactions", family: &geminiFamily, answer: interactionWhole, open: genaiInteraction},
		{name: "genai, streamed", family: &geminiFamily, answer: geminiStream, open: genaiStream(nil)},
		{name: "genai with RetryOptions, streamed", family: &geminiFamily, answer: geminiStream, open: genaiStream(quickRetries()), plain: 5},
		{name: "genai interactions, streamed", family: &geminiFamily, answer: interactionStream, open: genaiInteractionStream},
	}
}

// quickRetries are the SDK's own retries, with shorter waits.
func quickRetries() *genai.HTTPRetryOptions {
	return &genai.HTTPRetryOptions{InitialDelay: genai.Ptr(pause.Seconds()), MaxDelay: genai.Ptr(pause.Seconds()), Jitter: genai.Ptr(0.0)}
}

func newGenAI(t *testing.T, hc *http.Client, url string, retries *genai.HTTPRetryOptions) *genai.Client {
	c, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		Backend: genai.BackendGeminiAPI, APIKey: "key", HTTPClient: hc,
		HTTPOptions: genai.HTTPOptions{BaseURL: url, RetryOptions: retries},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func genaiUnary(retries *genai.HTTPRetryOptions) func(*testing.T, *http.Client, string) call {
	return func(t *testing.T, hc *http.Client, url string) call {
		c := newGenAI(t, hc, url, retries)
		return func(ctx context.Context) (string, error) {
			res, err := c.Models.GenerateContent(ctx, "m", genai.Text("hi"), nil)
			if err != nil {
				return "", err
			}
			return res.Text(), nil
		}
	}
}

func genaiStream(retries *genai.HTTPRetryOptions) func(*testing.T, *http.Client, string) call {
	return func(t *testing.T, hc *http.Client, url string) call {
		c := newGenAI(t, hc, url, retries)
		return func(ctx context.Context) (text string, err error) {
			for res, err := range c.Models.GenerateContentStream(ctx, "m", genai.Text("hi"), nil) {
				if err != nil {
					return text, err
				}
				text += res.Text()
			}
			return text, nil
		}
	}
}

// interactionRequest asks for an interaction.
func interactionRequest(stream bool) operations.CreateInteractionRequest {
	input := interactions.NewInteractionsInput([]interactions.Content{{TextContent: &interactions.TextContent{Text: "hi"}}})
	return operations.CreateInteractionRequest{Body: operations.NewCreateInteractionRequestBody(
		interactions.CreateModelInteraction{Model: "m", Input: &input, Stream: &stream},
	)}
}

// interactionRetries are the SDK's own retries, with shorter waits.
func interactionRetries() operations.Option {
	return operations.WithRetries(retry.Config{
		Strategy:              "attempt-count-backoff",
		Backoff:               &retry.BackoffStrategy{InitialInterval: 1, MaxInterval: 2, Exponent: 1, MaxElapsedTime: 30_000},
		RetryConnectionErrors: true,
		MaxRetries:            genai.Ptr(4),
	})
}

func genaiInteraction(t *testing.T, hc *http.Client, url string) call {
	c := newGenAI(t, hc, url, nil)
	return func(ctx context.Context) (string, error) {
		res, err := c.Interactions.Create(ctx, interactionRequest(false), interactionRetries())
		if err != nil {
			return "", err
		}
		return *res.Interaction.ID, nil
	}
}

func genaiInteractionStream(t *testing.T, hc *http.Client, url string) call {
	c := newGenAI(t, hc, url, nil)
	return func(ctx context.Context) (text string, err error) {
		res, err := c.Interactions.Create(ctx, interactionRequest(true), interactionRetries())
		if err != nil {
			return "", err
		}
		s := res.InteractionSSEStreamEvent
		defer func() { _ = s.Close() }()
		for s.Next() {
			if s.Value().Data.StepDelta != nil {
				text = "hello"
			}
		}
		return text, s.Err()
	}
}
