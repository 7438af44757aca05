package sdk

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	sashabaranov "github.com/sashabaranov/go-openai"
)

func sashabaranovClients() []client {
	return []client{
		{name: "sashabaranov chat", family: &openaiFamily, answer: chatWhole, open: sashabaranovChat},
		{name: "sashabaranov chat, streamed", family: &openaiFamily, answer: chatStream, open: sashabaranovStream},
	}
}

func newSashabaranov(hc *http.Client, url string) *sashabaranov.Client {
	config := sashabaranov.DefaultConfig("key")
	config.BaseURL = url + "/v1"
	config.HTTPClient = hc
	return sashabaranov.NewClientWithConfig(config)
}

// sashabaranovRequest asks for a completion.
var sashabaranovRequest = sashabaranov.ChatCompletionRequest{
	Model:    "m",
	Messages: []sashabaranov.ChatCompletionMessage{{Role: sashabaranov.ChatMessageRoleUser, Content: "hi"}},
}

func sashabaranovChat(_ *testing.T, hc *http.Client, url string) call {
	c := newSashabaranov(hc, url)
	return func(ctx context.Context) (string, error) {
		res, err := c.CreateChatCompletion(ctx, sashabaranovRequest)
		if err != nil {
			return "", err
		}
		return res.Choices[0].Message.Content, nil
	}
}

func sashabaranovStream(_ *testing.T, hc *http.Client, url string) call {
	c := newSashabaranov(hc, url)
	return func(ctx context.Context) (text string, err error) {
		s, err := c.CreateChatCompletionStream(ctx, sashabaranovRequest)
		if err != nil {
			return "", err
		}
		defer func() { _ = s.Close() }()
		for {
			chunk, err := s.Recv()
			if errors.Is(err, io.EOF) {
				return text, nil
			}
			if err != nil {
				return text, err
			}
			for _, choice := range chunk.Choices {
				text += choice.Delta.Content
			}
		}
	}
}
