package bench

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A traffic is a stream whose events differ as those of real services do.
type traffic struct {
	body   []byte
	events int // that a decoder hands on
}

// words are pieces of output as models produce it.
var words = []string{
	" the", " of", ",", " and", `\n\n`, " a", " request", `\"quoted\"`, " idempotent", " zwölf", " 東京", ".", " retry", " licence", "ing",
	" x", " unambiguous", "- ", ` \\u00e9`, " point of no return",
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// streamSize is the length of the streams: a long answer, several times over.
const streamSize = 1 << 20

// chat returns a stream of OpenAI's Chat Completions: 256 bytes an event.
func chat() traffic {
	random := rand.New(rand.NewPCG(1, 2))
	return play("", `data: {"id":"c1","object":"chat.completion.chunk","created":1774963590,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n", 1, func(b *bytes.Buffer) {
		word := words[random.IntN(len(words))]
		pad := make([]byte, max(0, random.IntN(25)-len(word)))
		for i := range pad {
			pad[i] = letters[random.IntN(len(letters))]
		}
		fmt.Fprintf(b, `data: {"id":"chatcmpl-DPTOw1rXwhFHGo7azuFvwEu9na8jQ","object":"chat.completion.chunk","created":1774963590,"model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{"content":"%s"},"logprobs":null,"finish_reason":null}],"obfuscation":"%s"}`+"\n\n", word, pad)
	})
}

// claude returns a stream of Anthropic's Messages: 126 bytes an event.
func claude() traffic {
	random := rand.New(rand.NewPCG(1, 2))
	begin := "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"model\":\"m\"}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
	end := "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":3}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	return play(begin, end, 5, func(b *bytes.Buffer) {
		fmt.Fprintf(b, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"%s\"}%s}\n\n",
			words[random.IntN(len(words))], "        "[:random.IntN(8)])
	})
}

// play makes a stream of about streamSize; n events are in begin and end.
func play(begin, end string, n int, next func(*bytes.Buffer)) traffic {
	var b bytes.Buffer
	b.WriteString(begin)
	for ; b.Len() < streamSize; n++ {
		next(&b)
	}
	b.WriteString(end)
	return traffic{body: b.Bytes(), events: n}
}

// pieceSize is the size of the pieces in which streams are read: net/http's.
const pieceSize = 4 << 10

// A stub is a base whose answers have the same head and body.
type stub struct {
	contentType string
	body        []byte
}

// RoundTrip implements [http.RoundTripper].
func (s *stub) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		req.Body.Close()
	}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
		Header: http.Header{"Content-Type": {s.contentType}},
		Body:   &pieces{rest: s.body}, Request: req,
	}, nil
}

// pieces are a body that is read in pieces.
type pieces struct{ rest []byte }

// Read implements [io.Reader].
func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[:min(len(p.rest), pieceSize)])
	p.rest = p.rest[n:]
	return n, nil
}

// Close implements [io.Closer].
func (p *pieces) Close() error { return nil }

// serve starts a server that answers every request with body, and returns a
// base for it and its URL. Both end with the test.
func serve(tb testing.TB, contentType string, body []byte) (*http.Transport, string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		for rest := body; len(rest) > 0; {
			n, err := w.Write(rest[:min(len(rest), pieceSize)])
			if err != nil {
				return
			}
			rest = rest[n:]
		}
	}))
	tb.Cleanup(s.Close)
	base := &http.Transport{}
	tb.Cleanup(base.CloseIdleConnections)
	return base, s.URL
}
