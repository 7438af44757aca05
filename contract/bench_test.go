package contract_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rubicon-go/rubicon/contract"
)

// benchSize is the length of the streams: longer than any cache.
const benchSize = 64 << 20

// A traffic is a kind of stream. Its events differ as those of real services
// do: in the text, in random padding, in counters.
type traffic struct {
	name, contentType string
	begin             string
	next              func(*writer) // writes the next event
}

// A writer makes a stream.
type writer struct {
	bytes.Buffer
	*rand.Rand
	n int // events so far
}

// words are pieces of output as models produce it.
var words = []string{
	" the", " of", ",", " and", `\n\n`, " a", " request", `\"quoted\"`, " idempotent", " zwölf", " 東京", ".", " retry", " licence", "ing",
	" x", " unambiguous", "- ", ` \\u00e9`, " point of no return",
}

// word returns one of them.
func (w *writer) word() string { return words[w.IntN(len(words))] }

// padding returns as many random letters as bring text and them to about n.
func (w *writer) padding(text string, n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	pad := make([]byte, max(0, w.IntN(n)+n/4-len(text)))
	for i := range pad {
		pad[i] = letters[w.IntN(len(letters))]
	}
	return string(pad)
}

var traffics = []traffic{
	{"openai", sseType, "", func(w *writer) { // 256 bytes an event
		text := w.word()
		fmt.Fprintf(w, `data: {"id":"chatcmpl-DPTOw1rXwhFHGo7azuFvwEu9na8jQ","object":"chat.completion.chunk","created":1774963590,"model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{"content":"%s"},"logprobs":null,"finish_reason":null}],"obfuscation":"%s"}`+"\n\n", text, w.padding(text, 20))
	}},
	{"anthropic", sseType, named("message_start", `{"type":"message_start","message":{"id":"msg_1"}}`), func(w *writer) { // 126 bytes an event
		if w.n%100 == 99 {
			w.WriteString("event: ping\ndata: {\"type\": \"ping\"}\n\n")
			return
		}
		fmt.Fprintf(w, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"%s\"}%s}\n\n", w.word(), strings.Repeat(" ", w.IntN(8)))
	}},
	{"responses", sseType, named("response.created", `{"type":"response.created","response":{"id":"r1"},"sequence_number":0}`), func(w *writer) {
		text := w.word()
		fmt.Fprintf(w, "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":%d,\"item_id\":\"msg_67ccf18f64008190a39b619f4c8455ef\",\"output_index\":0,\"content_index\":0,\"delta\":\"%s\",\"logprobs\":[],\"obfuscation\":\"%s\"}\n\n", w.n+1, text, w.padding(text, 20))
	}},
	{"responses-unnamed", sseType, unnamed(`{"type":"response.created","response":{"id":"r1"},"sequence_number":0}`), func(w *writer) {
		fmt.Fprintf(w, "data: {\"content_index\":0,\"delta\":\"%s\",\"item_id\":\"msg_b0b1c3\",\"logprobs\":[],\"output_index\":0,\"sequence_number\":%d,\"type\":\"response.output_text.delta\"}\n\n", w.word(), w.n+1)
	}},
	{"gemini", sseType, "", func(w *writer) {
		fmt.Fprintf(w, "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"%s%s%s\"}],\"role\": \"model\"},\"index\": 0}],\"usageMetadata\": {\"promptTokenCount\": 7,\"candidatesTokenCount\": %d,\"totalTokenCount\": %d},\"modelVersion\": \"gemini-2.5-flash\",\"responseId\": \"fwCzaajKAZDmz7IP9Pvy-AE\"}\r\n\r\n", w.word(), w.word(), w.word(), w.n, w.n+7)
	}},
	{"ollama", "application/x-ndjson", "", func(w *writer) {
		fmt.Fprintf(w, `{"model":"llama3","created_at":"2024-05-24T20:26:46.%06dZ","message":{"role":"assistant","content":"%s"},"done":false}`+"\n", w.n%1000000, w.word())
	}},
	{"logprobs", sseType, "", func(w *writer) {
		fmt.Fprintf(w, `data: {"id":"c1","object":"chat.completion.chunk","created":1774963590,"model":"gpt-4o","choices":[{"index":0,"delta":{"content":"%s"},"logprobs":{"content":[{"token":"%s","logprob":-%d.%d,"bytes":[%d,%d]}]},"finish_reason":null}]}`+"\n\n", w.word(), w.word(), w.IntN(9), w.n, w.IntN(255), w.IntN(255))
	}},
}

// body returns a stream of benchSize and the number of its events.
func (t *traffic) body() ([]byte, int64) {
	w := &writer{Rand: rand.New(rand.NewPCG(1, 2))}
	w.WriteString(t.begin)
	if t.begin != "" {
		w.n++
	}
	for ; w.Len() < benchSize; w.n++ {
		t.next(w)
	}
	return w.Bytes(), int64(w.n)
}

// A source reads a body in pieces of one size, or event by event.
type source struct {
	body []byte
	ends []int // where pieces end
	at   int   // index of the next of them
	pos  int
}

// newSource returns a source. Size 0: by event, that is up to a blank line, or
// to the end of a line of JSON.
func newSource(body []byte, size int) *source {
	s := &source{body: body}
	end := []byte("\n\n")
	switch {
	case body[0] == '{':
		end = end[:1]
	case bytes.HasSuffix(body, []byte("\r\n")):
		end = []byte("\r\n\r\n")
	}
	for at := 0; at < len(body); {
		if size > 0 {
			at = min(at+size, len(body))
		} else {
			at += bytes.Index(body[at:], end) + len(end)
		}
		s.ends = append(s.ends, at)
	}
	return s
}

// Read implements [io.Reader].
func (s *source) Read(p []byte) (int, error) {
	if s.at == len(s.ends) {
		return 0, io.EOF
	}
	n := copy(p, s.body[s.pos:s.ends[s.at]])
	s.pos = s.ends[s.at]
	s.at++
	return n, nil
}

// rewind goes back to the beginning.
func (s *source) rewind() { s.at, s.pos = 0, 0 }

// A nothing takes bytes and does nothing.
type nothing struct{ io.Writer }

func (nothing) Write(p []byte) (int, error) { return len(p), nil }

// newlines takes bytes and looks for line feeds: what any reader of lines must
// do at least.
type newlines struct{ n int }

func (l *newlines) Write(p []byte) (int, error) {
	for rest := p; ; l.n++ {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		rest = rest[i+1:]
	}
}

// BenchmarkStream reads a stream and shows each piece to nobody (read), to a
// search for line feeds, to a watcher of everything that is known.
func BenchmarkStream(b *testing.B) {
	set := known(b)
	for _, t := range traffics {
		body, events := t.body()
		for _, size := range []int{0, 4 << 10, 32 << 10} {
			src := newSource(body, size)
			for _, who := range []string{"read", "newlines", "watch"} {
				b.Run(fmt.Sprintf("%s/%s/%s", t.name, sizeName(size), who), func(b *testing.B) {
					benchStream(b, src, events, func() io.Writer {
						switch who {
						case "read":
							return nothing{}
						case "newlines":
							return &newlines{}
						}
						return set.Watch(contract.Answer{ContentType: t.contentType})
					})
				})
			}
		}
	}
}

// sizeName names the size of reads.
func sizeName(size int) string {
	if size == 0 {
		return "event"
	}
	return fmt.Sprintf("%dK", size>>10)
}

// benchStream reads src to the end, into what to returns.
func benchStream(b *testing.B, src *source, events int64, to func() io.Writer) {
	buf := make([]byte, 32<<10)
	b.SetBytes(int64(len(src.body)))
	b.ReportAllocs()
	for b.Loop() {
		src.rewind()
		w := to()
		for {
			n, err := src.Read(buf)
			if err != nil {
				break
			}
			w.Write(buf[:n])
		}
		if w, ok := w.(*contract.Watcher); ok && w.End().Events != events {
			b.Fatalf("%+v, want %d events", w.End(), events)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(events), "ns/event")
}
