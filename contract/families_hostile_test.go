package contract_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rubicon-go/rubicon/contract"
)

// A victim is a stream that carries text of others, and what would end it.
type victim struct {
	protocol, contentType string
	frame                 func(name, data string) string
	join                  func(frames []string) string
	begin                 []string // names and data of the frames it begins with
	name, carrier         string   // a frame with output, which is a string at OUTPUT; a member can stand at MEMBER
	terminals             []string // data of frames that would end it
}

// concat joins the frames of bodies that need nothing between them.
func concat(frames []string) string { return strings.Join(frames, "") }

// bare is the frame of a body that has no names.
func bare(_, data string) string { return data }

// array makes an array of elements.
func array(frames []string) string { return "[" + strings.Join(frames, ",") + "]" }

// event is an SSE event.
func event(name, data string) string { return named(name, data) }

// eventMessage is a message of an AWS event stream.
func eventMessage(name, data string) string { return messages(name, data) }

// modelChunk is a chunk with data in base64.
func modelChunk(_, data string) string { return chunks(data) }

var victims = []victim{
	{"gemini-json-array", jsonType, bare, array,
		[]string{"", `{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{}}`},
		"", `{"candidates":[{"content":{"parts":[{"text":OUTPUT}],MEMBER}}],"usageMetadata":{}}`,
		[]string{`"finishReason":"STOP"`, `{"candidates":[{"finishReason":"STOP"}]}`, `{"error":{"code":500,"status":"INTERNAL"}}`, `]`}},
	{"gemini-interactions", sseType, event, concat,
		[]string{"interaction.created", `{"event_type":"interaction.created","interaction":{"id":"v1"}}`},
		"step.delta", `{"event_type":"step.delta","index":0,"delta":{"text":OUTPUT,MEMBER}}`,
		[]string{`{"event_type":"interaction.completed","interaction":{"status":"completed"}}`, `{"error":{"message":"x"}}`, doneMarker}},
	{"openai-assistants", sseType, event, concat,
		[]string{"thread.run.created", `{"id":"run_1","object":"thread.run","status":"queued","assistant_id":"a"}`},
		"thread.message.in_progress", `{"id":"msg_1","object":"thread.message","run_id":"run_1","metadata":{"t":OUTPUT,MEMBER}}`,
		[]string{`{"object":"thread.run","status":"completed"}`, `"object":"thread.run","status":"failed"`, `{"error":{"message":"x"}}`, doneMarker}},
	{"openai-audio", sseType, event, concat,
		[]string{"", `{"type":"transcript.text.delta","delta":"a"}`},
		"", `{"type":"transcript.text.delta","delta":OUTPUT,"logprobs":[{MEMBER}]}`,
		[]string{`{"type":"transcript.text.done","text":""}`, `{"type":"error"}`, doneMarker}},
	{"openai-images", sseType, event, concat,
		[]string{"", `{"type":"image_generation.partial_image","b64_json":"aa"}`},
		"", `{"type":"image_generation.partial_image","b64_json":OUTPUT,"usage":{MEMBER}}`,
		[]string{`{"type":"image_generation.completed"}`, `{"error":{"message":"x"}}`, doneMarker}},
	{"cohere-v2", sseType, event, concat,
		[]string{"message-start", `{"type":"message-start","id":"m1","delta":{"message":{}}}`},
		"", `{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":OUTPUT,MEMBER}}}}}`,
		[]string{`{"type":"message-end","delta":{"finish_reason":"COMPLETE"}}`, `"finish_reason":"ERROR"`, doneMarker}},
	{"tgi", sseType, event, concat,
		[]string{"", `{"token":{"id":1,"text":"a"},"generated_text":null,"details":null}`},
		"", `{"token":{"id":1,"text":OUTPUT,MEMBER},"generated_text":null,"details":null}`,
		[]string{`{"generated_text":"a"}`, `"generated_text":"a"`, `{"error":"x","error_type":"y"}`}},
	{"watsonx", sseType, event, concat,
		[]string{"message", `{"model_id":"m","created_at":"t","results":[{"generated_text":"a","stop_reason":"not_finished"}]}`},
		"message", `{"model_id":"m","created_at":"t","results":[{"generated_text":OUTPUT,"stop_reason":"not_finished","moderations":{MEMBER}}]}`,
		[]string{`"stop_reason":"eos_token"`, `{"results":[{"stop_reason":"eos_token"}]}`, `{"errors":[{"code":"x"}]}`, doneMarker}},
	{"bedrock-converse", messageType, eventMessage, concat,
		[]string{"messageStart", `{"role":"assistant"}`},
		"metadata", `{"usage":{"a":OUTPUT,MEMBER}}`,
		[]string{`{"stopReason":"end_turn"}`, `"stopReason":"end_turn"`, `messageStop`, `{"message":"x"}`}},
	{"bedrock-invoke", messageType, modelChunk, concat,
		[]string{"", `{"type":"message_start","message":{"id":"m"}}`},
		"", `{"type":"content_block_delta","delta":{"text":OUTPUT,"input":{MEMBER}}}`,
		[]string{`{"type":"message_stop"}`, `"stop_reason":"end_turn"`, `{"completionReason":"FINISH"}`,
			`{"amazon-bedrock-invocationMetrics":{}}`, `{"is_finished":true}`, `{"type":"error"}`}},
}

// forms returns the JSON strings in which a text may lie.
func forms(text string) []string {
	once, _ := json.Marshal(text)
	twice, _ := json.Marshal(string(once))
	lines, _ := json.Marshal("\n\ndata: " + text + "\n\nevent: done\ndata: " + text + "\n\n")
	return []string{string(once), string(twice), string(lines), string(escape(text)), string(escape(`","x":` + text + `,"y":"`)), `"\\\""`}
}

// members returns members that hold a text as a key, a value or, where it is
// JSON, as such.
func members(text string) []string {
	quoted, _ := json.Marshal(text)
	all := []string{`"m":0`, string(quoted) + ":1", `"type":` + string(quoted), `"s":[` + string(quoted) + `]`}
	if json.Valid([]byte(text)) {
		all = append(all, `"n":`+text, `"n":[`+text+`]`, `"\u0074ype":{"x":`+text+`}`)
	} else if json.Valid([]byte("{" + text + "}")) {
		all = append(all, `"n":{`+text+`}`, text)
	}
	return all
}

// TestHostileText has models say what would end their streams. Nothing of it
// does, in any place and any guise; the same bytes where they belong do.
func TestHostileText(t *testing.T) {
	s := known(t)
	for _, v := range victims {
		var begin []string
		for i := 0; i < len(v.begin); i += 2 {
			begin = append(begin, v.frame(v.begin[i], v.begin[i+1]))
		}
		for _, terminal := range v.terminals {
			for _, output := range forms(terminal) {
				for _, member := range members(terminal) {
					data := strings.NewReplacer("OUTPUT", output, "MEMBER", member).Replace(v.carrier)
					if !json.Valid([]byte(data)) {
						t.Fatalf("%s: %s is no JSON", v.protocol, data)
					}
					body := v.join(append(begin[:len(begin):len(begin)], v.frame(v.name, data)))
					if got := end(s, v.contentType, []byte(body)); got.State != contract.Interrupted || got.Protocol != v.protocol || got.Complete {
						t.Errorf("%s: %v of %q (complete %v) by %s", v.protocol, got.State, got.Protocol, got.Complete, data)
					}
				}
			}
		}
	}
}
