package sdk

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"github.com/ollama/ollama/api"
)

// ollamaFamily is a server of Ollama.
var ollamaFamily = family{
	host:    "ollama.internal",
	busy:    problem{503, `{"error":"server busy, please try again.  maximum pending requests exceeded"}`},
	denied:  problem{401, `{"error":"unauthorized"}`},
	limited: problem{429, `{"error":"too many requests"}`},
}

// What Ollama answers.
var (
	ollamaWhole = answer{
		kind:   "application/json",
		pieces: []string{`{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"hello"},"done":true,"done_reason":"stop"}`},
	}
	ollamaStream = answer{
		kind: "application/x-ndjson",
		pieces: []string{
			`{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"hel"},"done":false}` + "\n",
			`{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"lo"},"done":false}` + "\n",
			`{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}` + "\n",
		},
		end:     2,
		failure: `{"error":"boom"}` + "\n",
	}
	ollamaGenerated = answer{
		kind: "application/x-ndjson",
		pieces: []string{
			`{"model":"m","created_at":"2026-01-01T00:00:00Z","response":"hel","done":false}` + "\n",
			`{"model":"m","created_at":"2026-01-01T00:00:00Z","response":"lo","done":false}` + "\n",
			`{"model":"m","created_at":"2026-01-01T00:00:00Z","response":"","done":true,"done_reason":"stop"}` + "\n",
		},
		end:     2,
		failure: `{"error":"boom"}` + "\n",
	}
)

func ollamaClients() []client {
	return []client{
		{name: "ollama chat", family: &ollamaFamily, answer: ollamaWhole, open: ollamaChat(false)},
		{name: "ollama chat, streamed", family: &ollamaFamily, answer: ollamaStream, open: ollamaChat(true)},
		{name: "ollama generate, streamed", family: &ollamaFamily, answer: ollamaGenerated, open: ollamaGenerate},
	}
}

func newOllama(t *testing.T, hc *http.Client, base string) *api.Client {
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	return api.NewClient(u, hc)
}

func ollamaChat(stream bool) func(*testing.T, *http.Client, string) call {
	return func(t *testing.T, hc *http.Client, base string) call {
		c := newOllama(t, hc, base)
		return func(ctx context.Context) (text string, err error) {
			err = c.Chat(ctx, &api.ChatRequest{
				Model: "m", Stream: &stream, Messages: []api.Message{{Role: "user", Content: "hi"}},
			}, func(res api.ChatResponse) error {
				text += res.Message.Content
				return nil
			})
			return text, err
		}
	}
}

func ollamaGenerate(t *testing.T, hc *http.Client, base string) call {
	c := newOllama(t, hc, base)
	return func(ctx context.Context) (text string, err error) {
		err = c.Generate(ctx, &api.GenerateRequest{Model: "m", Prompt: "hi"}, func(res api.GenerateResponse) error {
			text += res.Response
			return nil
		})
		return text, err
	}
}
