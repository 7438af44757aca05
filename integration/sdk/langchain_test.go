package sdk

import (
	"context"
	"net/http"
	"testing"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/anthropic"
	"github.com/tmc/langchaingo/llms/ollama"
	"github.com/tmc/langchaingo/llms/openai"
)

func langchainClients() []client {
	return []client{
		{name: "langchaingo openai", family: &openaiFamily, answer: chatWhole, open: langchain(langchainOpenAI)},
		{name: "langchaingo anthropic", family: &anthropicFamily, answer: messagesWhole, open: langchain(langchainAnthropic)},
		{name: "langchaingo openai, streamed", family: &openaiFamily, answer: chatStream, open: langchainStream(langchainOpenAI)},
		{name: "langchaingo anthropic, streamed", family: &anthropicFamily, answer: messagesStream, open: langchainStream(langchainAnthropic)},
		{name: "langchaingo ollama, streamed", family: &ollamaFamily, answer: ollamaStream, open: langchainStream(langchainOllama)},
	}
}

// A maker makes a langchaingo model over hc, for the server at url.
type maker func(hc *http.Client, url string) (llms.Model, error)

func langchainOpenAI(hc *http.Client, url string) (llms.Model, error) {
	return openai.New(openai.WithToken("key"), openai.WithModel("m"), openai.WithBaseURL(url+"/v1"), openai.WithHTTPClient(hc))
}

func langchainAnthropic(hc *http.Client, url string) (llms.Model, error) {
	return anthropic.New(anthropic.WithToken("key"), anthropic.WithModel("m"), anthropic.WithBaseURL(url+"/v1"), anthropic.WithHTTPClient(hc))
}

func langchainOllama(hc *http.Client, url string) (llms.Model, error) {
	return ollama.New(ollama.WithModel("m"), ollama.WithServerURL(url), ollama.WithHTTPClient(hc))
}

// langchainPrompt is the prompt.
var langchainPrompt = []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "hi")}

func langchain(newModel maker) func(*testing.T, *http.Client, string) call {
	return func(t *testing.T, hc *http.Client, url string) call {
		model, err := newModel(hc, url)
		if err != nil {
			t.Fatal(err)
		}
		return func(ctx context.Context) (string, error) {
			res, err := model.GenerateContent(ctx, langchainPrompt, llms.WithMaxTokens(16))
			if err != nil {
				return "", err
			}
			return res.Choices[0].Content, nil
		}
	}
}

func langchainStream(newModel maker) func(*testing.T, *http.Client, string) call {
	return func(t *testing.T, hc *http.Client, url string) call {
		model, err := newModel(hc, url)
		if err != nil {
			t.Fatal(err)
		}
		return func(ctx context.Context) (text string, err error) {
			_, err = model.GenerateContent(ctx, langchainPrompt, llms.WithMaxTokens(16),
				llms.WithStreamingFunc(func(_ context.Context, chunk []byte) error {
					text += string(chunk)
					return nil
				}))
			return text, err
		}
	}
}
