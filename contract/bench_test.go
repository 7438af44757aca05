package contract

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
)

const benchSize = 64 << 20

var words = []string{" the", " of", ",", " and", "\\n\\n", " a", " request", "\\\"quoted\\\"", " idempotent", " zwölf", " 東京", ".", " retry", " licence", "ing", " x", " unambiguous", "- "}

func chatBody(r *rand.Rand) ([]byte, int) {
	var b bytes.Buffer
	n := 0
	const abc = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	for b.Len() < benchSize {
		w := words[r.IntN(len(words))]
		pad := make([]byte, max(0, 5+r.IntN(24)-len(w)))
		for i := range pad {
			pad[i] = abc[r.IntN(len(abc))]
		}
		fmt.Fprintf(&b, `data: {"id":"chatcmpl-DPTOw1rXwhFHGo7azuFvwEu9na8jQ","object":"chat.completion.chunk","created":1774963590,"model":"gpt-4o-2024-08-06","service_tier":"default","choices":[{"index":0,"delta":{"content":"%s"},"logprobs":null,"finish_reason":null}],"obfuscation":"%s"}`+"\n\n", w, pad)
		n++
	}
	return b.Bytes(), n
}

func anthropicBody(r *rand.Rand) ([]byte, int) {
	var b bytes.Buffer
	n := 1
	b.WriteString("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\"}}\n\n")
	for b.Len() < benchSize {
		if n%100 == 0 {
			b.WriteString("event: ping\ndata: {\"type\": \"ping\"}\n\n")
			n++
		}
		fmt.Fprintf(&b, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"%s\"}}%*s\n\n", words[r.IntN(len(words))], r.IntN(8), "")
		n++
	}
	return b.Bytes(), n
}

// pieces cuts a body as reads of the given size would; 0: by event.
func pieces(body []byte, size int) [][]byte {
	var all [][]byte
	for len(body) > 0 {
		n := min(size, len(body))
		if size == 0 {
			n = bytes.Index(body, []byte("\n\n")) + 2
		}
		all = append(all, body[:n])
		body = body[n:]
	}
	return all
}

type pieceReader struct {
	all [][]byte
}

func (r *pieceReader) Read(p []byte) (int, error) {
	if len(r.all) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.all[0])
	r.all = r.all[1:]
	return n, nil
}

func BenchmarkStream(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	set, _ := NewSet(Known()...)
	for _, kind := range []string{"openai", "anthropic"} {
		body, events := chatBody(r)
		if kind == "anthropic" {
			body, events = anthropicBody(r)
		}
		for _, size := range []int{0, 4 << 10, 32 << 10} {
			all := pieces(body, size)
			buf := make([]byte, 32<<10)
			read := func(each func(p []byte)) {
				src := &pieceReader{all}
				for {
					n, err := src.Read(buf)
					if err != nil {
						return
					}
					each(buf[:n])
				}
			}
			name := fmt.Sprintf("%s/%d", kind, size)
			report := func(b *testing.B) {
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(events), "ns/event")
			}
			b.Run(name+"/read", func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				for b.Loop() {
					read(func(p []byte) {})
				}
				report(b)
			})
			b.Run(name+"/newlines", func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				for b.Loop() {
					lines := 0
					read(func(p []byte) {
						for {
							i := bytes.IndexByte(p, '\n')
							if i < 0 {
								break
							}
							lines++
							p = p[i+1:]
						}
					})
				}
				report(b)
			})
			b.Run(name+"/watch", func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					w := set.Watch(Answer{ContentType: "text/event-stream"})
					read(func(p []byte) { w.Write(p) })
					if e := w.End(); e.Events != int64(events) || e.State != Interrupted {
						b.Fatal(e)
					}
				}
				report(b)
			})
		}
	}
}
