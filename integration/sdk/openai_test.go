package sdk

import (
	"context"
	"net/http"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

// openaiFamily is OpenAI. Its overload is documented as "server_is_overloaded"
// and "service_unavailable_error" with status 503 (OpenAI, "Error codes").
var openaiFamily = family{
	host:    "api.openai.com",
	busy:    problem{503, `{"error":{"message":"The server is overloaded.","type":"service_unavailable_error","param":null,"code":"server_is_overloaded"}}`},
	refuses: true,
	denied:  problem{401, `{"error":{"message":"Incorrect API key provided.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`},
	limited: problem{429, `{"error":{"message":"Rate limit reached.","type":"requests","param":null,"code":"rate_limit_exceeded"}}`},
}

// What Chat Completions answer.
var (
	chatWhole = answer{
		kind:   "application/json",
		pieces: []string{`{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`},
	}
	chatStream = answer{
		kind: "text/event-stream",
		pieces: []string{
			sse("", `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"hel"},"finish_reason":null}]}`),
			sse("", `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":null}]}`),
			sse("", `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`),
			sse("", `[DONE]`),
		},
		end:     2,
		failure: sse("", `{"error":{"message":"boom","type":"server_error","param":null,"code":null}}`),
		cause:   "server_error",
	}
	responsesStream = answer{
		kind: "text/event-stream",
		pieces: []string{
			sse("response.created", `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}}`),
			sse("response.output_text.delta", `{"type":"response.output_text.delta","sequence_number":1,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"hel"}`),
			sse("response.output_text.delta", `{"type":"response.output_text.delta","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"lo"}`),
			sse("response.completed", `{"type":"response.completed","sequence_number":3,"response":{"id":"resp_1","object":"response","status":"completed","output":[]}}`),
		},
		end:     3,
		failure: sse("error", `{"type":"error","sequence_number":3,"error":{"type":"server_error","code":"server_error","message":"boom","param":null}}`),
		cause:   "server_error",
	}
)

// sse is a server-sent event.
func sse(name, data string) string {
	if name != "" {
		name = "event: " + name + "\n"
	}
	return name + "data: " + data + "\n\n"
}

func openaiClients() []client {
	return []client{
		{name: "openai-go chat", family: &openaiFamily, answer: chatWhole, open: openaiChat, plain: 3},
		{name: "openai-go chat, streamed", family: &openaiFamily, answer: chatStream, open: openaiChatStream, plain: 3},
		{name: "openai-go responses, streamed", family: &openaiFamily, answer: responsesStream, open: openaiResponsesStream, plain: 3},
	}
}

func newOpenAI(hc *http.Client, url string) openai.Client {
	return openai.NewClient(option.WithAPIKey("key"), option.WithBaseURL(url+"/v1/"), option.WithHTTPClient(hc))
}

// chatParams ask for a completion.
var chatParams = openai.ChatCompletionNewParams{
	Model:    "m",
	Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")},
}

func openaiChat(_ *testing.T, hc *http.Client, url string) call {
	c := newOpenAI(hc, url)
	return func(ctx context.Context) (string, error) {
		res, err := c.Chat.Completions.New(ctx, chatParams)
		if err != nil {
			return "", err
		}
		return res.Choices[0].Message.Content, nil
	}
}

func openaiChatStream(_ *testing.T, hc *http.Client, url string) call {
	c := newOpenAI(hc, url)
	return func(ctx context.Context) (text string, err error) {
		s := c.Chat.Completions.NewStreaming(ctx, chatParams)
		defer func() { _ = s.Close() }()
		for s.Next() {
			for _, choice := range s.Current().Choices {
				text += choice.Delta.Content
			}
		}
		return text, s.Err()
	}
}

func openaiResponsesStream(_ *testing.T, hc *http.Client, url string) call {
	c := newOpenAI(hc, url)
	return func(ctx context.Context) (text string, err error) {
		s := c.Responses.NewStreaming(ctx, responses.ResponseNewParams{
			Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hi")},
		})
		defer func() { _ = s.Close() }()
		for s.Next() {
			if e := s.Current(); e.Type == "response.output_text.delta" {
				text += e.Delta
			}
		}
		return text, s.Err()
	}
}
