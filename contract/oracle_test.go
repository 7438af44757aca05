package contract_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// A reader is somebody who has a whole frame before him, and says whether the
// stream has now proved its end. He may remember what he saw.
type reader func(name, text string, v map[string]any) bool

// readers are the protocols' readers, written as plainly as possible.
var readers = map[string]func() reader{
	"openai-chat":      chatReader,
	"openai-responses": responsesReader,
	"anthropic-messages": func() reader {
		return func(_, _ string, v map[string]any) bool { return v["type"] == "message_stop" }
	},
	"gemini-generatecontent": geminiReader,
	"ollama": func() reader {
		return func(_, _ string, v map[string]any) bool {
			return v["done"] == true || v["done_reason"] != nil || v["status"] == "success"
		}
	},
}

func chatReader() reader {
	open, closed := map[any]bool{}, map[any]bool{}
	return func(_, text string, v map[string]any) bool {
		choices, _ := v["choices"].([]any)
		for _, c := range choices {
			c := c.(map[string]any)
			open[c["index"]] = true
			if c["finish_reason"] != nil && c["finish_reason"] != "" {
				closed[c["index"]] = true
			}
		}
		return text == "[DONE]" || v["object"] == "chat.completion.done" || len(closed) > 0 && len(open) == len(closed)
	}
}

func responsesReader() reader {
	return func(_, _ string, v map[string]any) bool {
		return v["type"] == "response.completed" || v["type"] == "response.incomplete"
	}
}

func geminiReader() reader {
	open, closed := map[any]bool{}, map[any]bool{}
	return func(_, _ string, v map[string]any) bool {
		candidates, _ := v["candidates"].([]any)
		for _, c := range candidates {
			c := c.(map[string]any)
			open[c["index"]] = true
			if c["finishReason"] != nil {
				closed[c["index"]] = true
			}
		}
		return len(closed) > 0 && len(open) == len(closed)
	}
}

// lineEnds are protocols whose last event counts at the end of its line.
var lineEnds = map[string]bool{"gemini-generatecontent": true}

// evidence returns the length of the shortest prefix of a recording that proves
// its end. If none does it is longer than any.
func evidence(protocol string, r recording) int {
	make_, ok := readers[protocol]
	if !ok {
		panic(fmt.Sprintf("%s: protocol %q has no reader", r.file, protocol))
	}
	read := make_()
	lines := strings.HasPrefix(r.contentType, "application/x-ndjson")
	at, name, data := 0, "", []string(nil)
	for _, line := range bytes.SplitAfter(r.body, []byte("\n")) {
		at += len(line)
		text := strings.TrimRight(string(line), "\r\n")
		switch {
		case lines:
			if proves(read, "", text) {
				return at - len(line) + len(text) // the value is whole before its line is
			}
			continue
		case strings.HasPrefix(text, "event:"):
			name = strings.TrimSpace(text[len("event:"):])
		case strings.HasPrefix(text, "data:"):
			data = append(data, strings.TrimPrefix(text[len("data:"):], " "))
		}
		if whole := text == "" || lineEnds[protocol]; !whole || len(line) == len(text) && text != "" {
			continue
		}
		if len(data) > 0 && proves(read, name, strings.Join(data, "\n")) {
			if bytes.HasSuffix(line, []byte("\r\n")) {
				at-- // a CR ends a line
			}
			return at
		}
		if text == "" {
			name, data = "", nil
		}
	}
	return math.MaxInt
}

// proves shows a frame to the reader.
func proves(read reader, name, data string) bool {
	var v map[string]any
	if json.Unmarshal([]byte(data), &v) != nil {
		v = nil
	}
	return read(name, strings.TrimSpace(data), v)
}

// rewrite changes the JSON of each event.
func rewrite(body []byte, change func(any) []byte) []byte {
	var out bytes.Buffer
	for _, line := range bytes.SplitAfter(body, []byte("\n")) {
		var v any
		d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(line, []byte("data: "))))
		d.UseNumber()
		if !bytes.HasPrefix(line, []byte("data: {")) || d.Decode(&v) != nil {
			out.Write(line)
			continue
		}
		out.WriteString("data: ")
		out.Write(change(v))
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// spaced writes v with white space wherever it may be, but for line ends.
func spaced(v any) []byte {
	indented, _ := json.MarshalIndent(v, " \t", "\t ")
	return bytes.ReplaceAll(bytes.ReplaceAll(indented, []byte("\n"), []byte(" ")), []byte(`":`), []byte("\" \t:\t "))
}

// reversed writes v with the members of each object from back to front.
func reversed(v any) []byte {
	return appendReversed(nil, v, func(s string) []byte { b, _ := json.Marshal(s); return b })
}

// escaped writes v with every character of every string as \u.
func escaped(v any) []byte { return appendReversed(nil, v, escape) }

// escape writes s in escapes only.
func escape(s string) []byte {
	b := []byte{'"'}
	for _, r := range s {
		if r > 0xffff {
			r -= 0x10000
			b = fmt.Appendf(b, `\u%04X`, 0xd800+r>>10)
			r = 0xdc00 + r&0x3ff
		}
		b = fmt.Appendf(b, `\u%04x`, r)
	}
	return append(b, '"')
}

// appendReversed writes v, its strings as quote has them.
func appendReversed(b []byte, v any, quote func(string) []byte) []byte {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		slices.Reverse(keys)
		b = append(b, '{')
		for i, k := range keys {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(append(b, quote(k)...), ':')
			b = appendReversed(b, v[k], quote)
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendReversed(b, e, quote)
		}
		return append(b, ']')
	case string:
		return append(b, quote(v)...)
	}
	text, _ := json.Marshal(v)
	return append(b, text...)
}
