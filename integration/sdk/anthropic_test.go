package sdk

import (
	"context"
	"net/http"
	"testing"

	anthropic "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	anthropic2 "github.com/anthropics/anthropic-sdk-go/v2"
	option2 "github.com/anthropics/anthropic-sdk-go/v2/option"
)

// anthropicFamily is Anthropic. Its overload is documented as "overloaded_error"
// with status 529 (Anthropic, "Errors").
var anthropicFamily = family{
	host:    "api.anthropic.com",
	busy:    problem{529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`},
	refuses: true,
	denied:  problem{401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"},"request_id":"req_1"}`},
	limited: problem{429, `{"type":"error","error":{"type":"rate_limit_error","message":"Too many requests"},"request_id":"req_1"}`},
}

// anthropicBatches is the same server, where nothing is documented of a path
// that leaves work behind.
var anthropicBatches = func() family {
	f := anthropicFamily
	f.refuses = false
	return f
}()

// What the Messages API answers.
var (
	messagesWhole = answer{
		kind:   "application/json",
		pieces: []string{`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`},
	}
	messagesStream = answer{
		kind: "text/event-stream",
		pieces: []string{
			sse("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}`) +
				sse("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`),
			sse("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hel"}}`),
			sse("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}`) +
				sse("content_block_stop", `{"type":"content_block_stop","index":0}`),
			sse("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}`),
			sse("message_stop", `{"type":"message_stop"}`),
		},
		end:     3,
		failure: sse("error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`),
		cause:   "overloaded_error",
	}
	batchWhole = answer{
		kind:   "application/json",
		pieces: []string{`{"id":"msgbatch_1","type":"message_batch","processing_status":"in_progress","request_counts":{"processing":1,"succeeded":0,"errored":0,"canceled":0,"expired":0},"ended_at":null,"created_at":"2026-01-01T00:00:00Z","expires_at":"2026-01-02T00:00:00Z","archived_at":null,"cancel_initiated_at":null,"results_url":null}`},
		text:   "msgbatch_1",
	}
)

func anthropicClients() []client {
	return []client{
		{name: "anthropic v1 messages", family: &anthropicFamily, answer: messagesWhole, open: anthropic1, plain: 3},
		{name: "anthropic v2 messages", family: &anthropicFamily, answer: messagesWhole, open: anthropicV2, plain: 3},
		{name: "anthropic v2 batches", family: &anthropicBatches, answer: batchWhole, open: anthropicV2Batches},
		{name: "anthropic v1 messages, streamed", family: &anthropicFamily, answer: messagesStream, open: anthropic1Stream, plain: 3},
		{name: "anthropic v2 messages, streamed", family: &anthropicFamily, answer: messagesStream, open: anthropicV2Stream, plain: 3},
	}
}

// Parameters that ask for a message.
var (
	messageParams = anthropic.MessageNewParams{
		Model: "m", MaxTokens: 16,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hi"))},
	}
	messageParams2 = anthropic2.MessageNewParams{
		Model: "m", MaxTokens: 16,
		Messages: []anthropic2.MessageParam{anthropic2.NewUserMessage(anthropic2.NewTextBlock("hi"))},
	}
)

func newAnthropic(hc *http.Client, url string) anthropic.Client {
	return anthropic.NewClient(option.WithAPIKey("key"), option.WithBaseURL(url), option.WithHTTPClient(hc))
}

func newAnthropic2(hc *http.Client, url string) anthropic2.Client {
	return anthropic2.NewClient(option2.WithAPIKey("key"), option2.WithBaseURL(url), option2.WithHTTPClient(hc))
}

func anthropic1(_ *testing.T, hc *http.Client, url string) call {
	c := newAnthropic(hc, url)
	return func(ctx context.Context) (string, error) {
		res, err := c.Messages.New(ctx, messageParams)
		if err != nil {
			return "", err
		}
		return res.Content[0].Text, nil
	}
}

func anthropicV2(_ *testing.T, hc *http.Client, url string) call {
	c := newAnthropic2(hc, url)
	return func(ctx context.Context) (string, error) {
		res, err := c.Messages.New(ctx, messageParams2)
		if err != nil {
			return "", err
		}
		return res.Content[0].Text, nil
	}
}

func anthropicV2Batches(_ *testing.T, hc *http.Client, url string) call {
	c := newAnthropic2(hc, url)
	return func(ctx context.Context) (string, error) {
		res, err := c.Messages.Batches.New(ctx, anthropic2.MessageBatchNewParams{
			Requests: []anthropic2.MessageBatchNewParamsRequest{{
				CustomID: "one",
				Params: anthropic2.MessageBatchNewParamsRequestParams{
					Model: "m", MaxTokens: 16, Messages: messageParams2.Messages,
				},
			}},
		})
		if err != nil {
			return "", err
		}
		return res.ID, nil
	}
}

// Neither stream is closed, as many a program leaves it.
func anthropic1Stream(_ *testing.T, hc *http.Client, url string) call {
	c := newAnthropic(hc, url)
	return func(ctx context.Context) (text string, err error) {
		s := c.Messages.NewStreaming(ctx, messageParams)
		for s.Next() {
			text += s.Current().Delta.Text
		}
		return text, s.Err()
	}
}

func anthropicV2Stream(_ *testing.T, hc *http.Client, url string) call {
	c := newAnthropic2(hc, url)
	return func(ctx context.Context) (text string, err error) {
		s := c.Messages.NewStreaming(ctx, messageParams2)
		for s.Next() {
			text += s.Current().Delta.Text
		}
		return text, s.Err()
	}
}
