package sdk

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/schema"
)

func einoClients() []client {
	return []client{
		{name: "eino-ext openai", family: &openaiFamily, answer: chatWhole, open: eino},
		{name: "eino-ext openai, streamed", family: &openaiFamily, answer: chatStream, open: einoStream},
	}
}

func newEino(t *testing.T, hc *http.Client, url string) *openai.ChatModel {
	m, err := openai.NewChatModel(context.Background(), &openai.ChatModelConfig{
		APIKey: "key", Model: "m", BaseURL: url + "/v1", HTTPClient: hc,
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// einoPrompt is the prompt.
var einoPrompt = []*schema.Message{schema.UserMessage("hi")}

func eino(t *testing.T, hc *http.Client, url string) call {
	m := newEino(t, hc, url)
	return func(ctx context.Context) (string, error) {
		res, err := m.Generate(ctx, einoPrompt)
		if err != nil {
			return "", err
		}
		return res.Content, nil
	}
}

func einoStream(t *testing.T, hc *http.Client, url string) call {
	m := newEino(t, hc, url)
	return func(ctx context.Context) (text string, err error) {
		s, err := m.Stream(ctx, einoPrompt)
		if err != nil {
			return "", err
		}
		defer s.Close()
		for {
			chunk, err := s.Recv()
			if errors.Is(err, io.EOF) {
				return text, nil
			}
			if err != nil {
				return text, err
			}
			text += chunk.Content
		}
	}
}
