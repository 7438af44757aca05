package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	anthropicstream "github.com/anthropics/anthropic-sdk-go/packages/ssestream"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	openaistream "github.com/openai/openai-go/v3/packages/ssestream"
	sashabaranov "github.com/sashabaranov/go-openai"

	"github.com/rubicon-go/rubicon"
)

// An sdk makes a request for a stream to url over rt, decodes the answer, writes
// its output to text, and counts its events.
type sdk struct {
	name    string
	traffic func() traffic
	decode  func(ctx context.Context, rt http.RoundTripper, url string, text io.Writer) (int, error)
}

var sdks = []sdk{
	{"openai-go", chat, openaiGo},
	{"sashabaranov", chat, sashabaranovGo},
	{"anthropic-sdk-go", claude, anthropicGo},
}

func openaiGo(ctx context.Context, rt http.RoundTripper, url string, text io.Writer) (int, error) {
	client := openai.NewClient(openaioption.WithHTTPClient(&http.Client{Transport: rt}), openaioption.WithBaseURL(url),
		openaioption.WithAPIKey("key"), openaioption.WithMaxRetries(0))
	stream := client.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{
		Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hi")},
	})
	n := 0
	for ; stream.Next(); n++ {
		for _, choice := range stream.Current().Choices {
			io.WriteString(text, choice.Delta.Content)
		}
	}
	return n, errors.Join(stream.Err(), stream.Close())
}

func sashabaranovGo(ctx context.Context, rt http.RoundTripper, url string, text io.Writer) (int, error) {
	config := sashabaranov.DefaultConfig("key")
	config.BaseURL, config.HTTPClient = url, &http.Client{Transport: rt}
	stream, err := sashabaranov.NewClientWithConfig(config).CreateChatCompletionStream(ctx, sashabaranov.ChatCompletionRequest{
		Model: "m", Messages: []sashabaranov.ChatCompletionMessage{{Role: "user", Content: "Hi"}},
	})
	if err != nil {
		return 0, err
	}
	defer stream.Close()
	for n := 0; ; n++ {
		event, err := stream.Recv()
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		for _, choice := range event.Choices {
			io.WriteString(text, choice.Delta.Content)
		}
	}
}

func anthropicGo(ctx context.Context, rt http.RoundTripper, url string, text io.Writer) (int, error) {
	client := anthropic.NewClient(anthropicoption.WithHTTPClient(&http.Client{Transport: rt}), anthropicoption.WithBaseURL(url),
		anthropicoption.WithAPIKey("key"), anthropicoption.WithMaxRetries(0))
	stream := client.Messages.NewStreaming(ctx, anthropic.MessageNewParams{
		Model: "m", MaxTokens: 1, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Hi"))},
	})
	n := 0
	for ; stream.Next(); n++ {
		io.WriteString(text, stream.Current().Delta.Text)
	}
	return n, errors.Join(stream.Err(), stream.Close())
}

// drain makes a request for a stream and shows the answer's body to w.
func drain(ctx context.Context, rt http.RoundTripper, w io.Writer, buf []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.test/v1/stream", nil)
	if err != nil {
		return err
	}
	res, err := rt.RoundTrip(req)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(w, struct{ io.Reader }{res.Body}, buf)
	return errors.Join(err, res.Body.Close())
}

// nowhere takes bytes and does nothing.
type nowhere struct{}

// Write implements [io.Writer].
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkSDK: see the package's documentation.
func BenchmarkSDK(b *testing.B) {
	for _, s := range sdks {
		t := s.traffic()
		local, url := serve(b, "text/event-stream", t.body)
		fixed := &stub{"text/event-stream", t.body}
		for _, over := range []struct {
			name string
			base http.RoundTripper
			url  string
		}{{"stub", fixed, "http://api.test/v1"}, {"loopback", local, url}} {
			b.Run(s.name+"/"+over.name, func(b *testing.B) {
				decode := func(rt http.RoundTripper) func() error {
					return func() error {
						n, err := s.decode(b.Context(), rt, over.url, nowhere{})
						if n != t.events && err == nil {
							err = fmt.Errorf("%d events of %d", n, t.events)
						}
						return err
					}
				}
				buf := make([]byte, pieceSize)
				read := func(rt http.RoundTripper) func() error {
					return func() error { return drain(b.Context(), rt, nowhere{}, buf) }
				}
				m := turns(b, decode(over.base), decode(&rubicon.Transport{Base: over.base}),
					read(fixed), read(&rubicon.Transport{Base: fixed}))
				b.ReportMetric(each(m[0], t.events), "ns/event")
				b.ReportMetric(100*(ratio(m[1], m[0])-1), "added-%")
				b.ReportMetric(100*ratio(m[3]-m[2], m[0]), "share-%")
			})
		}
	}
}

// A lines decodes the lines of an answer's body, and no JSON.
type lines struct {
	name    string
	traffic func() traffic
	count   func(*http.Response) (int, error)
}

var lineDecoders = []lines{
	{"openai-go", chat, func(res *http.Response) (n int, err error) {
		d := openaistream.NewDecoder(res)
		for ; d.Next(); n++ {
		}
		return n - 1, d.Err() // without [DONE]
	}},
	{"anthropic-sdk-go", claude, func(res *http.Response) (n int, err error) {
		d := anthropicstream.NewDecoder(res)
		for ; d.Next(); n++ {
		}
		return n, d.Err()
	}},
}

// decode makes a request over rt and counts what l finds.
func (l lines) decode(ctx context.Context, rt http.RoundTripper) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.test/v1/stream", nil)
	if err != nil {
		return 0, err
	}
	res, err := rt.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	return l.count(res)
}

// newlines counts line feeds: what any reader of lines must do at least.
type newlines struct{ n int }

// Write implements [io.Writer].
func (l *newlines) Write(p []byte) (int, error) {
	for rest := p; ; l.n++ {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		rest = rest[i+1:]
	}
}

// BenchmarkLines: see the package's documentation.
func BenchmarkLines(b *testing.B) {
	for _, l := range lineDecoders {
		t := l.traffic()
		fixed := &stub{"text/event-stream", t.body}
		guarded := &rubicon.Transport{Base: fixed}
		b.Run(l.name, func(b *testing.B) {
			buf := make([]byte, pieceSize)
			m := turns(b,
				func() error { return drain(b.Context(), guarded, nowhere{}, buf) },
				func() error { return drain(b.Context(), fixed, new(newlines), buf) },
				func() error { _, err := l.decode(b.Context(), fixed); return err },
			)
			b.ReportMetric(float64(len(t.body))/m[0].Seconds()/1e6, "MB/s")
			b.ReportMetric(ratio(m[1], m[0]), "x-newlines")
			b.ReportMetric(ratio(m[2], m[0]), "x-lines")
		})
	}
}

// TestSDKWork: with a Transport below it or not, from a stub or over loopback,
// an SDK hands on the same events and text, and all of them.
func TestSDKWork(t *testing.T) {
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			want := s.traffic()
			fixed := &stub{"text/event-stream", want.body}
			local, url := serve(t, fixed.contentType, fixed.body)
			var first string
			for _, rt := range []http.RoundTripper{fixed, &rubicon.Transport{Base: fixed}, local, &rubicon.Transport{Base: local}} {
				var text bytes.Buffer
				n, err := s.decode(t.Context(), rt, url, &text)
				if first == "" {
					first = text.String()
				}
				if err != nil || n != want.events || text.Len() == 0 || text.String() != first {
					t.Errorf("%T: %d events of %d, %d bytes of text of %d, %v", rt, n, want.events, text.Len(), len(first), err)
				}
			}
		})
	}
}

// TestLinesWork: the line decoders and the guarded body see the whole stream.
func TestLinesWork(t *testing.T) {
	for _, l := range lineDecoders {
		want := l.traffic()
		fixed := &stub{"text/event-stream", want.body}
		if n, err := l.decode(t.Context(), fixed); n != want.events || err != nil {
			t.Errorf("%s: %d events of %d, %v", l.name, n, want.events, err)
		}
		ctx, op := rubicon.Begin(t.Context(), rubicon.Intent{})
		defer op.End()
		var got bytes.Buffer
		err := drain(ctx, &rubicon.Transport{Base: fixed}, &got, make([]byte, pieceSize))
		if err != nil || !bytes.Equal(got.Bytes(), want.body) || op.Outcome() != rubicon.Succeeded {
			t.Errorf("%s: %d bytes of %d, %v, outcome %v", l.name, got.Len(), len(want.body), err, op.Outcome())
		}
	}
}
