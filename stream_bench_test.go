package rubicon_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/contract"
)

// A traffic is a kind of stream whose events differ as those of real services
// do: in the text, in random padding.
type traffic struct {
	name             string
	begin, end       string
	beginN, endN     int64  // events in them
	event            string // two verbs: the text and the padding
	padding          string // the letters of the padding
	paddingMax       int
	paddingShortened bool // by the text, so that events are of one length or nearly
}

// traffics are the two that differ most: without event names every event has to
// be looked into.
var traffics = []traffic{
	{ // 256 bytes an event
		name: "chat", end: chatStop + chatUsage + chatDone, endN: 3,
		event:   `data: {"id":"chatcmpl-DPTOw1rXwhFHGo7azuFvwEu9na8jQ","object":"chat.completion.chunk","created":1774963590,"model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{"content":"%s"},"logprobs":null,"finish_reason":null}],"obfuscation":"%s"}` + "\n\n",
		padding: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", paddingMax: 25, paddingShortened: true,
	},
	{ // 126 bytes an event
		name: "claude", begin: claudeStart, beginN: 1, end: claudePing + claudeDelta + claudeStop, endN: 3,
		event:   "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"%s\"}%s}\n\n",
		padding: " ", paddingMax: 8,
	},
}

// words are pieces of output as models produce it.
var words = []string{
	" the", " of", ",", " and", `\n\n`, " a", " request", `\"quoted\"`, " idempotent", " zwölf", " 東京", ".", " retry", " licence", "ing",
	" x", " unambiguous", "- ", ` \\u00e9`, " point of no return",
}

// body returns a stream of about size bytes and the number of its events.
func (k traffic) body(size int) ([]byte, int64) {
	random := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	b.Grow(size + 1<<10)
	b.WriteString(k.begin)
	n := k.beginN
	for ; b.Len() < size; n++ {
		word := words[random.IntN(len(words))]
		pad := make([]byte, random.IntN(k.paddingMax))
		if k.paddingShortened {
			pad = pad[:max(0, len(pad)-len(word))]
		}
		for i := range pad {
			pad[i] = k.padding[random.IntN(len(k.padding))]
		}
		fmt.Fprintf(&b, k.event, word, pad)
	}
	b.WriteString(k.end)
	return b.Bytes(), n + k.endN
}

// An outlet is a base whose answers all have the same body, read in pieces of
// one size, or event by event.
type outlet struct {
	body []byte
	ends []int // where pieces end
	res  http.Response
}

// newOutlet returns one. Size 0: by event, that is up to a blank line.
func newOutlet(body []byte, size int) *outlet {
	o := &outlet{body: body, res: http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
		Header: http.Header{"Content-Type": {"text/event-stream"}},
	}}
	for at := 0; at < len(body); {
		if size > 0 {
			at = min(at+size, len(body))
		} else {
			at += bytes.Index(body[at:], []byte("\n\n")) + 2
		}
		o.ends = append(o.ends, at)
	}
	return o
}

// RoundTrip implements [http.RoundTripper].
func (o *outlet) RoundTrip(req *http.Request) (*http.Response, error) {
	res := o.res
	res.Body, res.Request = &flow{outlet: o}, req
	return &res, nil
}

// A flow is one body of an outlet.
type flow struct {
	*outlet
	at, pos int
}

// Read implements [io.Reader].
func (f *flow) Read(p []byte) (int, error) {
	if f.at == len(f.ends) {
		return 0, io.EOF
	}
	n := copy(p, f.body[f.pos:f.ends[f.at]])
	if f.pos += n; f.pos == f.ends[f.at] {
		f.at++
	}
	return n, nil
}

// Close implements [io.Closer].
func (f *flow) Close() error { return nil }

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

// nowhere takes bytes and does nothing. Unlike [io.Discard] it lets the reader
// choose the size of its buffer.
type nowhere struct{}

// Write implements [io.Writer].
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

// drain makes a POST over rt in a context of its own, and copies the answer's
// body to w through buf.
func drain(ctx context.Context, rt http.RoundTripper, w io.Writer, buf []byte) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.test/v1/stream", nil)
	if err != nil {
		return 0, err
	}
	res, err := rt.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	n, err := io.CopyBuffer(w, struct{ io.Reader }{res.Body}, buf)
	return n, errors.Join(err, res.Body.Close())
}

// BenchmarkGuardedBody reads a stream of 64 MiB through a transport (guarded),
// beside the same without one, read by nobody (copy) and by a search for line
// feeds (newlines). The pieces are events, 4 KiB and 32 KiB. Its allocations
// are those of a whole stream, its request included.
func BenchmarkGuardedBody(b *testing.B) {
	for _, kind := range traffics {
		body, events := kind.body(64 << 20)
		for _, size := range []struct {
			name string
			n    int
		}{{"event", 0}, {"4K", 4 << 10}, {"32K", 32 << 10}} {
			o := newOutlet(body, size.n)
			tr := &rubicon.Transport{Base: o}
			for _, who := range []struct {
				name string
				rt   http.RoundTripper
				w    io.Writer
			}{{"copy", o, nowhere{}}, {"newlines", o, new(newlines)}, {"guarded", tr, nowhere{}}} {
				b.Run(kind.name+"/"+size.name+"/"+who.name, func(b *testing.B) {
					buf := make([]byte, 32<<10)
					b.SetBytes(int64(len(body)))
					b.ReportAllocs()
					for b.Loop() {
						if n, err := drain(b.Context(), who.rt, who.w, buf); err != nil || n != int64(len(body)) {
							b.Fatalf("%d bytes of %d, %v", n, len(body), err)
						}
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(events), "ns/event")
				})
			}
		}
	}
}

// TestGuardedBodyWork: what the benchmark measures is the whole work: all events
// are seen, the end is proven, the bytes are the same.
func TestGuardedBodyWork(t *testing.T) {
	for _, kind := range traffics {
		body, events := kind.body(1 << 20)
		for _, size := range []int{0, 4 << 10, 32 << 10} {
			t.Run(fmt.Sprint(kind.name, " ", size), func(t *testing.T) {
				var end contract.End
				tr := &rubicon.Transport{Base: newOutlet(body, size), Trace: &rubicon.Trace{
					AnswerEnd: func(_ context.Context, a rubicon.AnswerInfo) { end = a.End },
				}}
				ctx, op := begin(t, rubicon.Intent{})
				var got bytes.Buffer
				if _, err := drain(ctx, tr, &got, make([]byte, 32<<10)); err != nil || !bytes.Equal(got.Bytes(), body) {
					t.Errorf("%d bytes of %d, %v", got.Len(), len(body), err)
				}
				if end.Events != events || end.State != contract.Completed || end.Bytes != int64(len(body)) || op.Outcome() != rubicon.Succeeded {
					t.Errorf("%+v, outcome %v, want %d events", end, op.Outcome(), events)
				}
			})
		}
	}
}

// TestGuardedBodyAllocates: a stream costs a few allocations, however many
// events it has.
func TestGuardedBodyAllocates(t *testing.T) {
	for _, kind := range traffics {
		count := func(size int) float64 {
			body, _ := kind.body(size)
			o := newOutlet(body, 0)
			tr := &rubicon.Transport{Base: o}
			buf := make([]byte, 32<<10)
			run := func(rt http.RoundTripper) float64 {
				return testing.AllocsPerRun(5, func() {
					if _, err := drain(t.Context(), rt, nowhere{}, buf); err != nil {
						t.Error(err)
					}
				})
			}
			return run(tr) - run(o)
		}
		short, long := count(64<<10), count(1<<20)
		t.Logf("%s: %v allocations a stream and its request", kind.name, long)
		if long > 2*short {
			t.Errorf("%s: %v allocations for 64 KiB, %v for 1 MiB", kind.name, short, long)
		}
	}
}
