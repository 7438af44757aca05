package rubicontest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/rubicon-go/rubicon/contract"
)

// maxPlaces is how many strings of a recording get a text put into them.
const maxPlaces = 64

// hostile puts the text of the frame that proves the end into the strings that
// come before it. A harmless text in the same place shows what must come of it.
func (r *recordingCheck) hostile(before, frame []byte) error {
	all := strs(before)
	step := max(1, len(all)/maxPlaces)
	for i := 0; i < len(all); i += step {
		for _, text := range hostileTexts(frame) {
			if err := r.stained(before, all[i], text); err != nil {
				return err
			}
		}
	}
	return nil
}

// stained puts text at the start and in place of one string.
func (r *recordingCheck) stained(body []byte, at span, text []byte) error {
	for _, end := range []int{at.from, at.to} {
		want := judge(r.set, r.Answer, stain(body, span{at.from, end}, []byte("rubicon")))
		got := judge(r.set, r.Answer, stain(body, span{at.from, end}, text))
		if got.State != want.State {
			return fmt.Errorf("with the text %s in the string at byte %d it is %v; want %v", text, at.from, got.State, want.State)
		}
	}
	return nil
}

// hostileTexts returns the frame as it can stand in a string: all of it, with
// what separates frames around it, and its data alone.
func hostileTexts(frame []byte) [][]byte {
	trimmed := bytes.TrimSpace(frame)
	texts := [][]byte{quoted(append([]byte("\n\n"), frame...)), quoted(trimmed)}
	for line := range bytes.Lines(trimmed) {
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			texts = append(texts, quoted(bytes.TrimSpace(data)))
		}
	}
	return texts
}

// quoted returns text as it stands between the quotes of a JSON string.
func quoted(text []byte) []byte {
	b, err := json.Marshal(string(text))
	if err != nil {
		panic(err) // a string always has a form
	}
	return b[1 : len(b)-1]
}

// A span is what lies between two quotes.
type span struct{ from, to int }

// strs returns the strings in the JSON of a body that are values. None goes
// over a line.
func strs(body []byte) []span {
	var all []span
	for i := 0; i < len(body); i++ {
		if body[i] != '"' {
			continue
		}
		s := span{from: i + 1, to: closing(body, i+1)}
		if s.to == len(body) || body[s.to] != '"' {
			continue // it is no string after all
		}
		if i = s.to; !bytes.HasPrefix(bytes.TrimLeft(body[i+1:], " \t"), []byte(":")) {
			all = append(all, s)
		}
	}
	return all
}

// closing returns where the string that begins at i ends, or the line.
func closing(body []byte, i int) int {
	for ; i < len(body) && body[i] != '"' && body[i] != '\n'; i++ {
		if body[i] == '\\' {
			i++
		}
	}
	return min(i, len(body))
}

// stain returns body with text in place of s.
func stain(body []byte, s span, text []byte) []byte {
	return slices.Concat(body[:s.from], text, body[s.to:])
}

// strangers are whole answers of protocols that a contract is likely to meet.
var strangers = []struct{ protocol, contentType, body string }{
	{"Chat Completions", "text/event-stream", `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}

data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

`},
	{"Anthropic Messages", "text/event-stream", `event: message_start
data: {"type":"message_start","message":{"id":"m","role":"assistant","content":[]}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}

event: message_stop
data: {"type":"message_stop"}

`},
	{"MCP", "text/event-stream", `event: message
data: {"jsonrpc":"2.0","id":1,"result":{"content":[]}}

`},
	{"Ollama", "application/x-ndjson", `{"model":"m","message":{"role":"assistant","content":"hi"},"done":false}
{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}
`},
	{"an API", "application/json", `{"id":"1","type":"thing","status":"open","error":null,"items":[{"id":"2"}]}
`},
}

// checkStrangers checks that the contract of s takes none of the strangers for
// an answer of its own that went wrong.
func checkStrangers(s *contract.Set) []error {
	var faults []error
	for _, other := range strangers {
		a := contract.Answer{ContentType: other.contentType}
		if s.Watch(a) == nil {
			continue
		}
		if e := judge(s, a, []byte(other.body)); e.State == contract.Interrupted || e.State == contract.Failed {
			faults = append(faults, fmt.Errorf("rubicon: a whole answer of %s is taken for one that is %v", other.protocol, e.State))
		}
	}
	return faults
}
