package contract

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestClosing compares with a look at each byte.
func TestClosing(t *testing.T) {
	parts := []string{`"`, `\`, `\\`, "a", "bcdefgh", "\x7f\x80\xff", "東京", " ", "\n", "\x1f", "!#[]"}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		text := []byte(`"`)
		for range r.IntN(12) {
			text = append(text, parts[r.IntN(len(parts))]...)
		}
		for _, p := range [][]byte{text, append(bytes.Repeat([]byte{'"'}, r.IntN(40)), text...)} {
			at := len(p) - len(text) + 1
			if got, want := closing(p, at), closingSlowly(p, at); got != want {
				t.Fatalf("%q from %d: %d, want %d", p, at, got, want)
			}
		}
	}
}

// TestSpecial tries each byte at each place among others.
func TestSpecial(t *testing.T) {
	for b := range 256 {
		for at := range 8 {
			for _, other := range []byte{'a', '"', 0, 0x80, 0xff} {
				var want, w uint64
				for i := range 8 {
					c := other
					if i == at {
						c = byte(b)
					}
					w |= uint64(c) << (8 * i)
					if c == '"' || c < ' ' {
						want |= 1 << i
					}
				}
				if got := special(w); got != want {
					t.Fatalf("%#x: %b, want %b", w, got, want)
				}
			}
		}
	}
}

// A chunkMaker makes chunks that differ as those of real streams do, and in
// everything else that may matter.
type chunkMaker struct{ *rand.Rand }

func (m chunkMaker) pick(of ...string) string { return of[m.IntN(len(of))] }

// chunk returns a chunk: mostly one of a few kinds, with another text in it.
func (m chunkMaker) chunk() string {
	text := m.pick("", "a", " the", `\"`, `\\`, `\\\"`, `\n\n`, `\u0022`, `[DONE]`, `\"finish_reason\":\"stop\"`, `}],\"x\":`, "東京", "\x7f", strings.Repeat("long ", 9), "tab\there")
	reason := "null"
	if m.IntN(300) == 0 {
		reason = m.pick(`"stop"`, `"length"`, `"error"`, `""`)
	}
	index := m.pick("0", "0", "0", "1")
	extra := m.pick("", "", "", "", `,"usage":null`, `,"obfuscation":"`+text+`"`, `,"error":null`)
	if m.IntN(400) == 0 {
		extra = m.pick(`,"error":{"message":"m"}`, `,"error":"m"`, `,"object":"chat.completion.done"`, `,"id":"other"`, `}`, `,`)
	}
	kind := m.pick("content", "content", "content", "reasoning")
	return fmt.Sprintf(`{"id":"c1","object":"chat.completion.chunk","created":1774963590,"choices":[{"index":%s,"delta":{"%s":"%s"},"finish_reason":%s}]%s}`, index, kind, text, reason, extra)
}

// delta returns an event of a response: mostly one of a few kinds, with another
// text and another position in it.
func (m chunkMaker) delta(i int, quoted bool) string {
	text := m.pick("", "a", " the", `\"`, `\\`, `","sequence_number":9,"x":"`)
	at := fmt.Sprint(m.IntN(3) + i*7)
	if quoted {
		at = `"` + m.pick("", "", "", `\\`, `\u0030`) + at + `"`
	}
	if m.IntN(30) == 0 {
		at = m.pick("", `"7"`, `"\u0037"`, `"a\\b"`, "null", "-1", "1e3", `{"sequence_number":5}`)
	}
	kind := m.pick("output_text.delta", "output_text.delta", "output_text.delta", "reasoning.delta")
	if m.IntN(300) == 0 {
		kind = m.pick("completed", "failed", "created")
	}
	return fmt.Sprintf(`{"item_id":"i","delta":"%s","sequence_number":%s,"type":"response.%s"%s}`, text, at, kind, m.pick("", "", `,"n":1`, `,"n":22`, `,"n":-3.5e9`, `,"n":`, `,`))
}

// body returns a stream of chunks and of what may come between them.
func (m chunkMaker) body() []byte {
	var b bytes.Buffer
	responses, quoted := m.IntN(3) == 0, m.IntN(2) == 0
	for i := range m.IntN(60) {
		if responses && m.IntN(4) == 0 {
			fmt.Fprintf(&b, "event: response.output_text.delta\ndata: {\"sequence_number\":%d,\"type\":\"response.output_text.delta\"}\n\n", i*7)
		}
		b.WriteString(m.pick("data: ", "data: ", "data: ", "data: ", "data:"))
		if responses {
			b.WriteString(m.delta(i, quoted))
		} else {
			b.WriteString(m.chunk())
		}
		b.WriteString(m.pick("\n\n", "\n\n", "\n\n", "\n\n", "\n\n", "\n\n", "\n\n", "\n\n", "\r\n\r\n", "\r\r"))
		switch m.IntN(60) {
		case 0:
			b.WriteString(m.pick(": ping\n\n", "event: error\n", "data: {\"type\":\"ping\"}\n\n", "id: 1\n", "data: half\n", "error: {}\n\n", "\n", "event: x\ndata: {}\n\n"))
		case 1:
			b.WriteString(m.pick("data: [DONE]\n\n", ""))
		}
	}
	body := b.Bytes()
	return body[:len(body)-m.IntN(min(len(body), 40)+1)]
}

// TestShapes judges streams whose chunks are known by their shape, and byte by
// byte, where none is.
func TestShapes(t *testing.T) {
	set, err := NewSet(Known()...)
	if err != nil {
		t.Fatal(err)
	}
	m := chunkMaker{rand.New(rand.NewPCG(7, 7))}
	known := 0
	for range 1500 {
		body := m.body()
		whole := set.Watch(Answer{ContentType: "text/event-stream"})
		for rest := body; len(rest) > 0; {
			n := min(len(rest), 1+m.IntN(3000))
			whole.Write(rest[:n])
			rest = rest[n:]
		}
		bytewise := set.Watch(Answer{ContentType: "text/event-stream"})
		for i := range body {
			bytewise.engine.framer.Settle() // so that nothing is in one piece
			bytewise.Write(body[i : i+1])
		}
		if got, want := whole.End(), bytewise.End(); got != want {
			t.Fatalf("%q:\n got %+v\nwant %+v", body, got, want)
		}
		if s := whole.engine.shapes; s != nil {
			known += s.n
		}
	}
	if known < 100 {
		t.Errorf("%d shapes were learned: this tests nothing", known)
	}
}

// TestShapesPay counts the chunks that are scanned in a stream as services
// send it: a few, whatever its length.
func TestShapesPay(t *testing.T) {
	for name, frame := range map[string]string{
		"openai":     `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"%s"},"logprobs":null,"finish_reason":null}],"obfuscation":"%s"}` + "\n\n",
		"openrouter": `data: {"id":"g1","provider":"%s","model":"m","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"%s"},"finish_reason":null,"native_finish_reason":null}]}` + "\n\n",
		"arguments":  `data: {"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"%s"}}]},"finish_reason":null}],"p":"%s"}` + "\n\n",
	} {
		set, err := NewSet(openAIChat())
		if err != nil {
			t.Fatal(err)
		}
		scans := 0
		read := set.rules[0].Read
		set.rules[0].Read = func(f *Frame, p *Progress) bool {
			scans++
			return read(f, p)
		}
		w := set.Watch(Answer{ContentType: "text/event-stream"})
		for i := range 1000 {
			fmt.Fprintf(w, frame, strings.Repeat("x", i%7), strings.Repeat("y", i%11))
		}
		if scans > 12 {
			t.Errorf("%s: %d of 1000 chunks were scanned", name, scans)
		}
		if end := w.End(); end.Events != 1000 {
			t.Errorf("%s: %d events", name, end.Events)
		}
	}
}
