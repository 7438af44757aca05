package contract_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rubicon-go/rubicon/contract"
)

// ownVictims are the streams of the protocols that most services speak.
var ownVictims = []victim{
	{"openai-chat", sseType, event, concat,
		[]string{"", `{"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}`},
		"", `{"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":OUTPUT,"tool_calls":[{"function":{MEMBER}}]},"logprobs":{MEMBER},"finish_reason":null}],"error":null,"obfuscation":OUTPUT}`,
		[]string{doneMarker, `"finish_reason":"stop"`, `{"choices":[{"index":0,"finish_reason":"stop"}]}`, `{"error":{"message":"x"}}`, `"error":{"message":"x"}`, `"object":"chat.completion.done"`}},
	{"openai-chat", sseType, event, concat,
		[]string{"", `{"id":"c1","object":"text_completion","choices":[{"index":0,"text":"a","finish_reason":null}]}`},
		"", `{"id":"c1","object":"text_completion","choices":[{"finish_reason" : null,"text":OUTPUT,"logprobs":[{MEMBER}],"index":0}]}`,
		[]string{doneMarker, `"finish_reason":"length"`, `"error":"x"`}},
	{"openai-responses", sseType, event, concat,
		[]string{"response.created", `{"type":"response.created","response":{"id":"r1"},"sequence_number":0}`},
		"response.output_text.delta", `{"type":"response.output_text.delta","item_id":"i","delta":OUTPUT,"logprobs":[{MEMBER}],"sequence_number":4}`,
		[]string{`{"type":"response.completed"}`, `"type":"response.failed"`, `{"type":"error","code":"x"}`, `{"error":{"message":"x"}}`, doneMarker}},
	{"openai-responses", sseType, event, concat,
		[]string{"", `{"type":"response.created","response":{"id":"r1"},"sequence_number":0}`},
		"", `{"item_id":"i","delta":OUTPUT,"logprobs":[{MEMBER}],"sequence_number":4,"type":"response.output_text.delta"}`,
		[]string{`{"type":"response.completed"}`, `"type":"response.incomplete"`, `{"error":{"message":"x"}}`}},
	{"anthropic-messages", sseType, event, concat,
		[]string{"message_start", `{"type":"message_start","message":{"id":"m1"}}`},
		"content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"partial_json":OUTPUT,"input":{MEMBER}}}`,
		[]string{`{"type":"message_stop"}`, `"stop_reason":"end_turn"`, `event: message_stop`, `{"type":"error","error":{"type":"x"}}`}},
	{"anthropic-messages", sseType, event, concat,
		[]string{"", `{"type":"message_start","message":{"id":"m1"}}`},
		"", `{"index":0,"delta":{"partial_json":OUTPUT,"input":{MEMBER}},"type":"content_block_delta"}`,
		[]string{`{"type":"message_stop"}`, `"delta":{"stop_reason":"end_turn"}`, `{"type":"error","error":{"type":"x"}}`, `"error":{"type":"x"}`}},
	{"gemini-generatecontent", sseType, event, concat,
		[]string{"", `{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"modelVersion":"g"}`},
		"", `{"candidates":[{"content":{"parts":[{"text":OUTPUT,"functionCall":{"args":{MEMBER}}}]}}],"modelVersion":"g"}`,
		[]string{`"finishReason":"STOP"`, `{"candidates":[{"finishReason":"STOP"}]}`, `{"error":{"code":500,"status":"INTERNAL"}}`, `"promptFeedback":{"blockReason":"SAFETY"}`}},
	{"ollama", "application/x-ndjson", line, concat,
		[]string{"", `{"model":"l","created_at":"t","message":{"content":"a"},"done":false}`},
		"", `{"model":"l","created_at":"t","message":{"content":OUTPUT,"tool_calls":[{MEMBER}]},"done":false}`,
		[]string{`"done":true`, `{"done":true}`, `"done_reason":"stop"`, `"error":"x"`, `"status":"success"`}},
}

// line is a line of newline-delimited JSON.
func line(_, data string) string { return data + "\n" }

// TestHostileOutput has models say what would end their streams, often enough
// in a row that the frames are known by their shape. Nothing of it ends one.
func TestHostileOutput(t *testing.T) {
	s := known(t)
	for _, v := range ownVictims {
		for _, terminal := range v.terminals {
			for _, output := range forms(terminal) {
				for _, member := range members(terminal) {
					checkHarmless(t, s, v, v.body(t, output, member))
				}
			}
		}
	}
}

// body returns a stream that carries hostile output: harmless frames, the
// output, harmless frames of the same shape, the output again.
func (v *victim) body(t *testing.T, output, member string) string {
	t.Helper()
	frames := []string{v.frame(v.begin[0], v.begin[1])}
	for _, text := range []string{`"a"`, `"bb"`, output, `"c"`, output, `""`, output} {
		data := strings.NewReplacer("OUTPUT", text, "MEMBER", member).Replace(v.carrier)
		if !json.Valid([]byte(data)) {
			t.Fatalf("%s: %s is no JSON", v.protocol, data)
		}
		frames = append(frames, v.frame(v.name, data))
	}
	return v.join(frames)
}

// checkHarmless fails unless the stream is interrupted, however it comes.
func checkHarmless(t *testing.T, s *contract.Set, v victim, body string) {
	t.Helper()
	for _, size := range []int{len(body), 1, 61} {
		got := endOf(s, contract.Answer{ContentType: v.contentType}, body, size)
		if got.State != contract.Interrupted || got.Protocol != v.protocol || got.Complete || got.Torn {
			t.Fatalf("%s in pieces of %d: %v of %q (complete %v, torn %v): %s", v.protocol, size, got.State, got.Protocol, got.Complete, got.Torn, body)
		}
	}
}

// TestTerminals has the same texts where they belong, in the forms that a
// search for them would miss.
func TestTerminals(t *testing.T) {
	chunk := func(rest string) string {
		return unnamed(`{"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":null}],"error":null}`, rest)
	}
	checkEndings(t, "openai-chat", sseType, []ending{
		{"spaces", chunk("{ \"choices\" : [ { \"finish_reason\" :\t\"stop\" , \"index\" : 0 } ] }"), "completed op=c1 stop"},
		{"escaped key", chunk(`{"\u0063hoices":[{"finish\u005freason":"\u0073top"}]}`), "completed op=c1 stop"},
		{"two keys, the last counts", chunk(`{"choices":[{"finish_reason":null,"finish_reason":"stop"}]}`), "completed op=c1 stop"},
		{"two keys, the last is null", chunk(`{"choices":[{"finish_reason":"stop","finish_reason":null}]}`), "interrupted op=c1"},
		{"error is null", chunk(`{"error":null,"choices":[{"finish_reason":"stop"}],"error": null}`), "completed op=c1 stop"},
		{"error is empty", chunk(`{"error":{},"choices":[{"finish_reason":"stop"}]}`), "completed op=c1 stop"},
		{"reason is empty", chunk(`{"choices":[{"index":0,"finish_reason":""}]}`), "interrupted op=c1"},
		{"nested error", chunk(`{"choices":[{"finish_reason":"stop","delta":{"error":{"message":"x"}}}]}`), "completed op=c1 stop"},
		{"error behind all", chunk(`{"choices":[{"finish_reason":"stop"}]}`) + unnamed(`{"x":[{"y":{}}],"error":{"message":"late","code":502}}`), "failed op=c1 /502/late"},
		{"error, then the marker", chunk(`{"error":{"message":"m","type":"t"}}`) + unnamed(doneMarker), "failed op=c1 t//m"},
		{"text of an error", chunk(`{"error":"m"}`), "failed op=c1 //m"},
		{"reason error", chunk(`{"choices":[{"finish_reason":"error"}]}`) + unnamed(doneMarker), "failed op=c1 error//"},
		{"error event", chunk(`{"choices":[]}`) + named("error", `{"error":{"message":"m","code":"c"}}`), "failed op=c1 /c/m"},
		{"error event of text", chunk(`{"choices":[]}`) + named("error", `upstream gone`), "failed op=c1 //upstream gone"},
		{"error field", chunk(`{"choices":[]}`) + "error: {\"error\":{\"message\":\"m\"}}\n\n", "failed op=c1 //m"},
		{"error field, cut", chunk(`{"choices":[]}`) + "error: {\"error\":{\"message\":\"m\"}}\n", "failed op=c1 //m"},
		{"half an error field", chunk(`{"choices":[]}`) + "error: {\"error\":{\"mess", "interrupted op=c1"},
		{"bare error", chunk(`{"choices":[]}`) + "{\n \"error\": {\n  \"message\": \"m\"\n }\n}\n\n", "failed op=c1 //m"},
		{"bare error without its line end", chunk(`{"choices":[]}`) + "{\"error\":{\"message\":\"m\"}}", "failed op=c1 //m"},
		{"bare text that is no error", chunk(`{"choices":[]}`) + "{\"note\":1}\n\n" + unnamed(doneMarker), "completed op=c1"},
		{"merged frames", chunk("{\"choices\":[{\"delta\":{\"content\":\"ha\nevent: error\ndata: {\"error\":{\"message\":\"m\"}}"), "failed op=c1 //"},
		{"merged frames without a name", chunk("{\"choices\":[{\"delta\":{\"content\":\"ha\ndata: {\"error\":{\"message\":\"m\"}}"), "interrupted op=c1"},
		{"merged with the marker", chunk("{\"choices\":[{\"delta\":{\"content\":\"ha\ndata: [DONE]"), "interrupted op=c1"},
		{"marker in lines", chunk(`{"choices":[]}`) + "data: [DO\ndata: NE]\n\n", "interrupted op=c1"},
		{"marker in a string", chunk(`{"choices":[]}`) + unnamed(`"[DONE]"`), "interrupted op=c1"},
		{"marker with space around it", chunk(`{"choices":[]}`) + "data:  [DONE] \n\n", "completed op=c1"},
		{"half an error behind the reason", chunk(`{"choices":[{"finish_reason":"stop"}]}`) + "data: {\"error\":{\"message\":\"m", "interrupted op=c1 complete stop"},
		{"half a marker behind the reason", chunk(`{"choices":[{"finish_reason":"stop"}]}`) + "data: [DO", "completed op=c1 stop"},
		{"marker without its blank line", chunk(`{"choices":[]}`) + "data: [DONE]\n", "interrupted op=c1 complete"},
		{"reason without its blank line", chunk(`{"choices":[{"finish_reason":"stop"}]}`[:0]) + "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n", "interrupted op=c1"},
		{"second choice", chunk(`{"choices":[{"index":0,"finish_reason":"stop"},{"index":1,"delta":{}}]}`), "interrupted op=c1 stop"},
		{"second choice, done", chunk(`{"choices":[{"index":1,"finish_reason":"length"},{"index":0,"finish_reason":"stop"}]}`), "incomplete op=c1 length"},
		{"choice beyond what can be followed", chunk(`{"choices":[{"index":4000,"finish_reason":"stop"},{"index":0,"finish_reason":"stop"}]}`), "interrupted op=c1 stop"},
		{"more choices than can be followed", chunk(`{"choices":[` + strings.Repeat(`{"index":0,"finish_reason":"stop"},`, 30) + strings.Repeat(`{"index":1},`, 30) + `{"index":0}]}`), "interrupted op=c1 stop"},
		{"the same, with the marker", chunk(`{"choices":[{"index":4000,"finish_reason":"stop"}]}`) + unnamed(doneMarker), "completed op=c1 stop"},
	})
	begun := named("message_start", `{"type":"message_start","message":{"id":"m1"}}`)
	checkEndings(t, "anthropic-messages", sseType, []ending{
		{"type comes last", begun + named("", `{"delta":{"type":"x","stop_reason":"end_turn"},"type":"message_delta"}`) + named("", `{"x":1,"type":"message_stop"}`), "completed op=m1 end_turn"},
		{"escaped type", begun + unnamed(`{"\u0074ype":"message_\u0073top"}`), "completed op=m1"},
		{"name without data", begun + "event: message_stop\n\n", "interrupted op=m1"},
		{"stop reason alone", begun + named("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`), "interrupted op=m1 complete end_turn"},
		{"cut in the stop reason", begun + "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n", "interrupted op=m1"},
		{"cut in the end", begun + "event: message_stop\ndata: {\"type\":\"message_st", "interrupted op=m1"},
		{"cut in the end's blank line", begun + "event: message_stop\ndata: {\"type\":\"message_stop\"}\n", "interrupted op=m1 complete"},
		{"half a delta merged with the end", begun + "event: content_block_delta\ndata: {\"type\":\"content\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", "interrupted op=m1"},
		{"half a delta merged with an error", begun + "event: content_block_delta\ndata: {\"type\":\"content\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n", "failed op=m1 //"},
		{"error", begun + named("error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), "failed op=m1 overloaded_error//Overloaded"},
		{"unknown events", begun + named("news", `{"type":"news"}`) + named("message_stop", `{"type":"message_stop"}`), "completed op=m1"},
		{"pause", begun + named("message_delta", `{"type":"message_delta","delta":{"stop_reason":"pause_turn"}}`) + named("message_stop", `{"type":"message_stop"}`), "incomplete op=m1 pause_turn"},
		{"begun anew in the same words", unnamed(`{"type":"message_start","message":{"id":"m1"}}`, `{"type":"message_start","message":{"id":"m1"}}`, `{"type":"message_start","message":{"id":"m1"}}`,
			`{"type":"message_stop"}`, `{"type":"message_start","message":{"id":"m1"}}`), "interrupted op=m1"},
		{"begun anew behind the end", begun + named("message_stop", `{"type":"message_stop"}`) + named("message_start", `{"type":"message_start","message":{"id":"m2"}}`), "interrupted op=m2"},
	})
	response := named("response.created", `{"type":"response.created","response":{"id":"r1"},"sequence_number":0}`)
	checkEndings(t, "openai-responses", sseType, []ending{
		{"error at the top", response + named("error", `{"type":"error","code":"c","message":"m","sequence_number":3}`), "failed op=r1 at=3 /c/m"},
		{"error further in", response + named("error", `{"type":"error","sequence_number":3,"error":{"type":"t","code":"c","message":"m"}}`), "failed op=r1 at=3 t/c/m"},
		{"failed", response + unnamed(`{"sequence_number":4,"response":{"error":{"message":"m","code":"c"}},"type":"response.failed"}`), "failed op=r1 at=4 /c/m"},
		{"cancelled", response + unnamed(`{"type":"response.cancelled","response":{"id":"r1"},"sequence_number":4}`), "failed op=r1 at=4 //"},
		{"cut in the end", response + "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":", "interrupted op=r1 at=0 complete"},
		{"cut in the end's name", response + "event: response.comple", "interrupted op=r1 at=0"},
		{"resumed behind the beginning", named("response.output_text.delta", `{"type":"response.output_text.delta","item_id":"i","delta":"a","sequence_number":7}`), "interrupted at=7"},
		{"filtered", response + unnamed(`{"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}},"sequence_number":4}`), "incomplete op=r1 at=4 content_filter"},
	})
	candidate := unnamed(`{"candidates":[{"content":{}}],"responseId":"g1"}`)
	checkEndings(t, "gemini-generatecontent", sseType, []ending{
		{"last line without its blank line", candidate + "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n", "completed op=g1 STOP"},
		{"last line cut", candidate + "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}", "interrupted op=g1"},
		{"blocked", unnamed(`{"promptFeedback":{"blockReason":"SAFETY"},"responseId":"g1"}`), "incomplete op=g1 SAFETY"},
		{"continuation", candidate + unnamed(`{"candidates":[{"finishReason":"CONTINUATION"}]}`), "incomplete op=g1 CONTINUATION"},
		{"numbers", candidate + unnamed(`{"candidates":[{"finishReason":1}]}`), "completed op=g1 1"},
		{"no reason yet", candidate + unnamed(`{"candidates":[{"finishReason":0}]}`), "interrupted op=g1"},
		{"second candidate", candidate + unnamed(`{"candidates":[{"index":1}]}`) + unnamed(`{"candidates":[{"index":0,"finishReason":"STOP"}]}`), "interrupted op=g1 STOP"},
		{"error alone", "{\"error\": {\"code\": 503,\n\"message\":\"m\", \"status\":\"UNAVAILABLE\"}}\n\n", "failed UNAVAILABLE/503/m"},
		{"error as data", candidate + unnamed(`{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}`), "failed op=g1 UNAVAILABLE/503/m"},
	})
	const running = `{"model":"l","message":{"content":"a"},"done":false}` + "\n"
	checkEndings(t, "ollama", "application/x-ndjson", []ending{
		{"reason alone", running + `{"model":"l","done_reason":"stop"}` + "\n", "completed stop"},
		{"no line end", running + `{"model":"l","done":true,"done_reason":"length"}`, "incomplete length"},
		{"a long line", running + `{"model":"l","message":{"content":"` + strings.Repeat("x", 1<<20) + `"},"done":false}` + "\n" + `{"model":"l","done":true}` + "\n", "completed"},
		{"error", running + `{"error":"m"}` + "\n", "failed //m"},
		{"cut", running + `{"model":"l","done":tr`, "interrupted"},
		{"cut before the brace", running + `{"model":"l","done":true`, "interrupted complete"},
	})
}
