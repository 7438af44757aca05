package sdk

import (
	"bytes"
	"context"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
)

// bedrockFamily is Amazon Bedrock's runtime.
var bedrockFamily = family{
	host:    "bedrock-runtime.us-east-1.amazonaws.com",
	busy:    problem{503, `{"__type":"ServiceUnavailableException","message":"Try again later."}`},
	denied:  problem{401, `{"__type":"UnrecognizedClientException","message":"The security token is invalid."}`},
	limited: problem{429, `{"__type":"ThrottlingException","message":"Too many requests."}`},
}

// What Bedrock answers.
var (
	converseWhole = answer{
		kind:   "application/json",
		pieces: []string{`{"output":{"message":{"role":"assistant","content":[{"text":"hello"}]}},"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2},"metrics":{"latencyMs":1}}`},
	}
	converseStream = answer{
		kind: "application/vnd.amazon.eventstream",
		pieces: []string{
			awsEvent("messageStart", `{"role":"assistant"}`),
			awsEvent("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"hel"}}`),
			awsEvent("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"lo"}}`) + awsEvent("contentBlockStop", `{"contentBlockIndex":0}`),
			awsEvent("messageStop", `{"stopReason":"end_turn"}`),
			awsEvent("metadata", `{"usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2},"metrics":{"latencyMs":1}}`),
		},
		end:     3,
		failure: awsException("modelStreamErrorException", `{"message":"boom"}`),
		cause:   "modelStreamErrorException",
	}
)

// awsEvent is an event in AWS's framing.
func awsEvent(name, payload string) string {
	return awsMessage(payload, ":message-type", "event", ":event-type", name, ":content-type", "application/json")
}

// awsException is an exception in AWS's framing.
func awsException(name, payload string) string {
	return awsMessage(payload, ":message-type", "exception", ":exception-type", name, ":content-type", "application/json")
}

// awsMessage is a message with the header fields in pairs.
func awsMessage(payload string, fields ...string) string {
	m := eventstream.Message{Payload: []byte(payload)}
	for i := 0; i < len(fields); i += 2 {
		m.Headers.Set(fields[i], eventstream.StringValue(fields[i+1]))
	}
	var b bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
		panic(err) // the table is wrong
	}
	return b.String()
}

func bedrockClients() []client {
	return []client{
		{name: "bedrock converse", family: &bedrockFamily, answer: converseWhole, open: bedrockConverse, plain: 3},
		{name: "bedrock converse, streamed", family: &bedrockFamily, answer: converseStream, open: bedrockConverseStream, plain: 3},
	}
}

func newBedrock(hc *http.Client, url string) *bedrockruntime.Client {
	return bedrockruntime.New(bedrockruntime.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(url), HTTPClient: hc,
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
}

// bedrockPrompt is the prompt.
var bedrockPrompt = []types.Message{{
	Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: "hi"}},
}}

func bedrockConverse(_ *testing.T, hc *http.Client, url string) call {
	c := newBedrock(hc, url)
	return func(ctx context.Context) (string, error) {
		res, err := c.Converse(ctx, &bedrockruntime.ConverseInput{ModelId: aws.String("m"), Messages: bedrockPrompt})
		if err != nil {
			return "", err
		}
		return res.Output.(*types.ConverseOutputMemberMessage).Value.Content[0].(*types.ContentBlockMemberText).Value, nil
	}
}

// bedrockConverseStream has a client for each call: the streams of one client
// share a decoder without a lock (smithy-go v1.28.9).
func bedrockConverseStream(_ *testing.T, hc *http.Client, url string) call {
	return func(ctx context.Context) (text string, err error) {
		c := newBedrock(hc, url)
		res, err := c.ConverseStream(ctx, &bedrockruntime.ConverseStreamInput{ModelId: aws.String("m"), Messages: bedrockPrompt})
		if err != nil {
			return "", err
		}
		s := res.GetStream()
		defer func() { _ = s.Close() }()
		for e := range s.Events() {
			if d, ok := e.(*types.ConverseStreamOutputMemberContentBlockDelta); ok {
				text += d.Value.Delta.(*types.ContentBlockDeltaMemberText).Value
			}
		}
		return text, s.Err()
	}
}
