package contract_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rubicon-go/rubicon/contract"
)

// What gateways are known to do to the streams of Chat Completions.
const (
	gateFirst = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`
	gateText  = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}`
	gateStop  = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	gateUsage = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"total_tokens":3}}`
	azureHead = `{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]}`
	azureTail = `{"choices":[{"content_filter_offsets":{"check_offset":1},"content_filter_results":{"error":{"code":"content_filter_error","message":"x"}},"finish_reason":null,"index":0}],"created":0,"id":"","model":"","object":""}`
)

// checkGateway judges bodies of one protocol, whole and at each byte.
func checkGateway(t *testing.T, protocol, contentType string, rows []ending) {
	t.Helper()
	checkEndings(t, protocol, contentType, rows)
	s := known(t)
	for _, r := range rows {
		checkPrefixes(t, s, contract.Answer{ContentType: contentType}, r)
	}
}

// checkPrefixes fails if an end is claimed before there is one, or is taken
// back, or if it changes anything to be asked at each byte.
func checkPrefixes(t *testing.T, s *contract.Set, a contract.Answer, r ending) {
	t.Helper()
	whole := endOf(s, a, r.body, len(r.body))
	proven := func(e contract.End) bool { return e.State != contract.Interrupted && e.State != contract.Unjudged }
	w := s.Watch(a)
	before := w.End()
	for i := range len(r.body) {
		w.Write([]byte{r.body[i]})
		now := w.End()
		if proven(now) && !proven(whole) || proven(before) && !proven(now) {
			t.Errorf("%s: %v, %v after %d bytes, %v in the end", r.name, before.State, now.State, i+1, whole.State)
			return
		}
		before = now
	}
	if before != whole {
		t.Errorf("%s: asked at each byte\n got %+v\nwant %+v", r.name, before, whole)
	}
}

// gateEnd is the end of the only choice, for a reason.
func gateEnd(reason string) string { return strings.Replace(gateStop, `"stop"`, reason, 1) }

func TestGatewaysOfChat(t *testing.T) {
	begun := unnamed(gateFirst, gateText)
	const keep = ": OPENROUTER PROCESSING\n\n"
	checkGateway(t, "openai-chat", sseType, []ending{
		{"comments between", keep + keep + unnamed(gateFirst) + ": keep-alive\n\n" + unnamed(gateText) + keep + unnamed(gateStop, gateUsage, doneMarker), "completed op=c1 stop"},
		{"comments alone behind output", begun + keep + keep, "interrupted op=c1"},
		{"names of its own", named("message", gateFirst, "completion", gateStop, "done", doneMarker), "completed op=c1 stop"},
		{"no space", "data:" + gateFirst + "\n\ndata:" + gateStop + "\n\ndata:[DONE]\n\n", "completed op=c1 stop"},
		{"usage says null again", begun + unnamed(gateStop, gateEnd("null"), gateUsage), "completed op=c1 stop"},
		{"choices are null", begun + unnamed(gateStop, `{"id":"c1","object":"chat.completion.chunk","choices":null,"usage":{}}`), "completed op=c1 stop"},
		{"errors that are none", unnamed(strings.Replace(gateStop, `"id"`, `"error":null,"id"`, 1), strings.Replace(gateUsage, `"id"`, `"error":"","id"`, 1),
			strings.Replace(gateUsage, `"id"`, `"error":0,"id"`, 1), strings.Replace(gateUsage, `"id"`, `"error":false,"id"`, 1)), "completed op=c1 stop"},
		{"empty events", named("ping", "{}") + begun + named("ping", "{}", "ping", "{}", "ping", "{}", "ping", "{}") + unnamed(gateStop, doneMarker), "completed op=c1 stop"},
		{"Azure", unnamed(azureHead, gateFirst, gateText, gateStop, azureTail, doneMarker), "completed op=c1 stop"},
		{"Azure without the marker", unnamed(azureHead, gateFirst, gateText, gateStop, azureTail), "completed op=c1 stop"},
		{"Azure, cut", unnamed(azureHead, gateFirst, gateText, azureTail), "interrupted op=c1"},
		{"Azure, filtered", unnamed(azureHead, gateFirst, gateEnd(`"content_filter"`), doneMarker), "incomplete op=c1 content_filter"},
		{"reason as text for none", unnamed(gateFirst, gateEnd(`"null"`)), "interrupted op=c1"},
		{"reason of Gemini for none", unnamed(gateFirst, gateEnd(`"FINISH_REASON_UNSPECIFIED"`)), "interrupted op=c1"},
		{"reason of Claude", unnamed(gateFirst, gateEnd(`"max_tokens"`), doneMarker), "incomplete op=c1 max_tokens"},
		{"reason of Gemini", unnamed(gateFirst, gateEnd(`"MAX_TOKENS"`), doneMarker), "incomplete op=c1 MAX_TOKENS"},
		{"filter of Gemini", unnamed(gateFirst, gateEnd(`"SAFETY"`), doneMarker), "incomplete op=c1 SAFETY"},
		{"filter of Z.ai", unnamed(gateFirst, gateEnd(`"sensitive"`), doneMarker), "incomplete op=c1 sensitive"},
		{"failure of Z.ai", unnamed(gateFirst, gateEnd(`"network_error"`), doneMarker), "failed op=c1 network_error//"},
		{"refusal", unnamed(gateFirst, gateEnd(`"refusal"`), doneMarker), "incomplete op=c1 refusal"},
		{"aborted", unnamed(gateFirst, gateEnd(`"abort"`), doneMarker), "incomplete op=c1 abort"},
		{"no resources", unnamed(gateFirst, gateEnd(`"insufficient_system_resource"`), doneMarker), "incomplete op=c1 insufficient_system_resource"},
		{"end of Together", unnamed(gateFirst, gateEnd(`"eos"`), doneMarker), "completed op=c1 eos"},
		{"OpenRouter's error", begun + unnamed(`{"id":"c1","object":"chat.completion.chunk","error":{"code":502,"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`),
			"failed op=c1 /502/Provider disconnected"},
		{"OpenRouter's error, first", keep + unnamed(`{"id":"gen-1","object":"chat.completion.chunk","error":{"code":502,"message":"no"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`),
			"failed op=gen-1 /502/no"},
		{"error in a choice", begun + unnamed(`{"id":"c1","choices":[{"index":0,"delta":{"content":""},"finish_reason":null,"error":{"code":429,"message":"slow down"}}]}`, doneMarker),
			"failed op=c1 /429/slow down"},
		{"error in a choice, with its reason", begun + unnamed(`{"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"error","error":{"code":429,"message":"slow down"}}]}`, doneMarker),
			"failed op=c1 /429/slow down"},
		{"error of a choice that is none", begun + unnamed(strings.Replace(gateStop, `"delta":{}`, `"delta":{"error":{"message":"x"}},"error":{}`, 1)), "completed op=c1 stop"},
		{"error as an object", begun + unnamed(`{"object":"error","message":"out of memory","type":"InternalServerError","code":500}`, doneMarker),
			"failed op=c1 InternalServerError/500/out of memory"},
		{"vLLM's error", begun + unnamed(`{"error":{"object":"error","message":"m","type":"BadRequestError","param":null,"code":400}}`, doneMarker), "failed op=c1 BadRequestError/400/m"},
		{"LiteLLM's error", begun + unnamed(`{"error":{"message":"m","type":"None","param":"None","code":"500"}}`), "failed op=c1 None/500/m"},
		{"Groq's error", begun + named("error", `{"error":{"message":"m","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"{\"finish_reason\":\"stop\"}","status_code":400}}`),
			"failed op=c1 invalid_request_error/tool_use_failed/m"},
		{"TGI's error", begun + unnamed(`{"error":"Request failed during generation","error_type":"generation"}`, doneMarker), "failed op=c1 //Request failed during generation"},
		{"answer that was not streamed", unnamed(`{"id":"c1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}`), "completed op=c1 stop"},
		{"legacy completion", unnamed(`{"id":"c1","object":"text_completion","choices":[{"text":"a","index":0,"finish_reason":null}]}`, `{"id":"c1","object":"text_completion","choices":[{"text":"","index":0,"finish_reason":"stop"}]}`, doneMarker), "completed op=c1 stop"},
		{"legacy completion without its name", unnamed(`{"id":"c1","model":"m","choices":[{"text":"a"}]}`), "interrupted op=c1"},
		{"Snowflake", unnamed(`{"id":"","model":"","created":0,"choices":[{"delta":{"content":"a","role":"assistant"},"index":0}]}`, `{"choices":[{"delta":{"content":"b"}}],"usage":{}}`, doneMarker), "completed"},
		{"Perplexity", "data: " + gateText + "\r\n\r\n: ping\r\n\r\ndata: {\"id\":\"c1\",\"object\":\"chat.completion.done\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\r\n\r\n", "completed op=c1 stop"},
	})
	second := strings.Replace(gateText, `"index":0`, `"index":1`, 1)
	checkEndings(t, "openai-chat", sseType, []ending{ // these prefixes look whole
		{"half a second choice behind the first one", unnamed(gateFirst, gateStop) + "data: " + cut(second, 20), "interrupted op=c1 stop"},
		{"a second choice without its blank line", unnamed(gateFirst, gateStop) + "data: " + second + "\n", "interrupted op=c1 stop"},
		{"half a chunk of the first one", unnamed(gateFirst, gateStop) + "data: " + cut(gateText, 20), "completed op=c1 stop"},
		{"half the usage", unnamed(gateFirst, gateStop) + "data: " + cut(gateUsage, 5), "completed op=c1 stop"},
	})
	checkGateway(t, "openai-chat", sseType, []ending{
		{"error behind an event of the gateway's", unnamed(`{"conversation":"1"}`, `{"error":{"message":"m","type":"server_error","param":null,"code":null}}`, doneMarker), "failed server_error//m"},
	})
	waiting := strings.Repeat(named("ping", `{"type":"ping"}`), 50)
	checkGateway(t, "openai-chat", sseType, []ending{
		{"a long wait", waiting + begun, "interrupted op=c1"},
		{"a long wait with empty events", strings.Repeat("event: keepalive\ndata:\n\n", 50) + begun, "interrupted op=c1"},
	})
}

func TestGatewaysOfResponses(t *testing.T) {
	const (
		created = `{"type":"response.created","sequence_number":0,"response":{"id":"r1","status":"in_progress"}}`
		text    = `{"type":"response.output_text.delta","sequence_number":4,"item_id":"i","delta":"a"}`
	)
	end := func(kind, rest string) string {
		return unnamed(created, text, `{"type":"`+kind+`","sequence_number":5,"response":{"id":"r1",`+rest+`}}`)
	}
	checkGateway(t, "openai-responses", sseType, []ending{
		{"queued", unnamed(`{"type":"response.queued","sequence_number":0,"response":{"id":"r1","status":"queued"}}`), "interrupted op=r1 at=0"},
		{"completed", end("response.completed", `"status":"completed"`) + unnamed(doneMarker), "completed op=r1 at=5"},
		{"completed, by its status not", end("response.completed", `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}`), "incomplete op=r1 at=5 max_output_tokens"},
		{"completed, by its status failed", end("response.completed", `"status":"failed","error":{"code":"server_error","message":"m"}`), "failed op=r1 at=5 /server_error/m"},
		{"done", end("response.done", `"status":"completed"`) + unnamed(doneMarker), "completed op=r1 at=5"},
		{"done, incomplete", end("response.done", `"status":"incomplete","incomplete_details":{"reason":"content_filter"}`), "incomplete op=r1 at=5 content_filter"},
		{"done, cancelled", end("response.done", `"status":"cancelled"`), "failed op=r1 at=5 //"},
		{"done, by its name", named("response.created", created, "response.done", `{"type":"response.done","sequence_number":5,"response":{"status":"completed"}}`), "completed op=r1 at=5"},
		{"incomplete", end("response.incomplete", `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}`), "incomplete op=r1 at=5 max_output_tokens"},
		{"cancelled", end("response.cancelled", `"status":"cancelled"`), "failed op=r1 at=5 //"},
		{"the marker alone", unnamed(created, text, doneMarker), "interrupted op=r1 at=4"},
		{"keep-alives", unnamed(created, `{"type":"keepalive","sequence_number":3}`), "interrupted op=r1 at=3"},
	})
}

func TestGatewaysOfClaude(t *testing.T) {
	const (
		start = `{"type":"message_start","message":{"id":"m1","role":"assistant","stop_reason":null}}`
		text  = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`
		delta = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}`
		stop  = `{"type":"message_stop"}`
		ping  = `{"type":"ping"}`
	)
	checkGateway(t, "anthropic-messages", sseType, []ending{
		{"pings", named("message_start", start, "ping", ping, "ping", ping, "ping", ping, "ping", ping), "interrupted op=m1"},
		{"names dropped", unnamed(start, ping, text, delta, stop), "completed op=m1 end_turn"},
		{"names changed", named("message", start, "message", text, "message", delta, "message", stop), "completed op=m1 end_turn"},
		{"marker behind the end", named("message_start", start, "content_block_delta", text, "message_delta", delta, "message_stop", stop) + unnamed(doneMarker), "completed op=m1 end_turn"},
		{"marker in the end's place", unnamed(start, text, delta, doneMarker), "interrupted op=m1 complete end_turn"},
		{"error behind an event of the gateway's", unnamed(`{"conversation":"1"}`, `{"type":"error","error":{"type":"overloaded_error","message":"m"}}`), "failed overloaded_error//m"},
		{"error is null", unnamed(start, `{"type":"message_delta","error":null,"delta":{"stop_reason":"end_turn"}}`, stop), "completed op=m1 end_turn"},
		{"events that are not known", unnamed(start, `{"type":"news"}`, text, delta, stop), "completed op=m1 end_turn"},
		{"comments", ": ping\n\n" + unnamed(start) + ": ping\n\n", "interrupted op=m1"},
	})
}

func TestGatewaysOfOthers(t *testing.T) {
	checkGateway(t, "gemini-generatecontent", sseType, []ending{
		{"marker behind the end", unnamed(`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP","index":0}],"usageMetadata":{},"modelVersion":"g"}`, doneMarker), "completed STOP"},
		{"usage behind the end", unnamed(`{"candidates":[{"content":{"role":"model"},"finishReason":"STOP"}]}`, `{"usageMetadata":{},"modelVersion":"g","responseId":"r1"}`), "completed op=r1 STOP"},
		{"blocked, with its usage", unnamed(`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{},"modelVersion":"g","responseId":"r1"}`), "incomplete op=r1 PROHIBITED_CONTENT"},
		{"ratings first", unnamed(`{"candidates":[{"index":0,"safetyRatings":[]}]}`), "interrupted"},
		{"empty candidates first", unnamed(`{"candidates":[],"modelVersion":"g"}`), "interrupted"},
	})
	checkGateway(t, "ollama", "application/x-ndjson", []ending{
		{"loaded", `{"model":"m","created_at":"t","response":"","done":true,"done_reason":"load"}` + "\n", "completed load"},
		{"unloaded", `{"model":"m","created_at":"t","message":{"role":"assistant","content":""},"done_reason":"unload","done":true}` + "\n", "completed unload"},
		{"error null", `{"model":"m","created_at":"t","response":"a","done":false,"error":null}` + "\n" + `{"model":"m","created_at":"t","response":"","done":true}` + "\n", "completed"},
	})
	checkGateway(t, "ollama", jsonType, []ending{
		{"typed as JSON", `{"model":"m","created_at":"t","response":"a","done":false}` + "\n" + `{"model":"m","created_at":"t","response":"","done":true,"done_reason":"length"}`, "incomplete length"},
		{"typed as JSON, cut", `{"model":"m","created_at":"t","response":"a","done":false}` + "\n", "interrupted"},
	})
	checkGateway(t, "cohere-v2", sseType, []ending{
		{"error", unnamed(`{"id":"m","type":"message-start","delta":{"message":{}}}`, `{"type":"message-end","delta":{"finish_reason":"ERROR","error":"boom"}}`, doneMarker), "failed op=m ERROR//boom"},
		{"limit", unnamed(`{"id":"m","type":"message-start","delta":{"message":{}}}`, `{"type":"message-end","delta":{"finish_reason":"MAX_TOKENS"}}`, doneMarker), "incomplete op=m MAX_TOKENS"},
		{"cut", unnamed(`{"id":"m","type":"message-start","delta":{"message":{}}}`, `{"type":"content-delta","index":0,"delta":{}}`), "interrupted op=m"},
	})
	checkGateway(t, "vercel-ui", sseType, []ending{
		{"all that may come", unnamed(`{"type":"start","messageId":"u1"}`, `{"type":"start-step"}`, `{"type":"reasoning-start","id":"0"}`, `{"type":"text-start","id":"1"}`,
			`{"type":"text-delta","id":"1","delta":"a"}`, `{"type":"tool-input-available","toolCallId":"c"}`, `{"type":"data-weather","data":{}}`, `{"type":"source-url","sourceId":"s"}`,
			`{"type":"file","url":"u"}`, `{"type":"message-metadata"}`, `{"type":"finish-step"}`), "interrupted op=u1"},
	})
	checkGateway(t, "replicate", sseType, []ending{
		{"whole", ": hi\n\nevent: output\nid: 1690212292:0\ndata: Once\n\nevent: done\nid: 1690212293:0\ndata: {}\n\n:408: 408 Request Timeout\n", "completed at=1690212293:0"},
		{"cut", ": hi\n\nevent: output\nid: 1690212292:0\ndata: Once\n\n", "interrupted at=1690212292:0"},
		{"error", "event: error\nid: 1690212292:0\ndata: {\"detail\":\"boom\"}\n\nevent: done\nid: 1690212292:1\ndata: {\"reason\":\"error\"}\n\n", "failed at=1690212292:1 //boom"},
	})
}

// TestStrangers has whole streams of others that look like somebody's. None of
// them is interrupted or failed, whatever they say.
func TestStrangers(t *testing.T) {
	s := known(t)
	for _, r := range []struct{ name, contentType, body string }{
		{"quiz", sseType, unnamed(`{"question":"Capital of France?","choices":[{"text":"Paris"},{"text":"Rome"}]}`, `{"answer":0}`)},
		{"quiz alone", sseType, unnamed(`{"question":"2+2","choices":[{"index":0,"text":"4"}]}`)},
		{"configurator", sseType, unnamed(`{"model":"S60","choices":[]}`, `{"model":"V70","choices":[]}`)},
		{"election", sseType, unnamed(`{"candidates":[{"name":"Ada","votes":1}]}`, `{"candidates":[{"name":"Ada","votes":2}]}`)},
		{"no votes", sseType, unnamed(`{"candidates":[]}`)},
		{"chat of one's own", sseType, unnamed(`{"type":"start","messageId":"1"}`, `{"type":"token","text":"a"}`, `{"type":"token","text":"b"}`, `{"type":"end"}`)},
		{"another", sseType, unnamed(`{"type":"message_start","message":{"text":""}}`, `{"type":"token","text":"a"}`, `{"type":"message_end"}`)},
		{"interactions of one's own", sseType, unnamed(`{"event_type":"interaction.begin","interaction_id":"1"}`, `{"event_type":"word"}`, `{"event_type":"bye"}`)},
		{"message of one's own", sseType, unnamed(`{"type":"message-start","id":"1","delta":{}}`, `{"type":"word"}`, `{"type":"bye"}`)},
		{"text with a line of JSON", sseType, "data: This is what it says:\n{\"error\":{\"message\":\"boom\"}}\n\ndata: Does that help?\n\n"},
		{"text with a line of JSON, later", sseType, "data: This is what it says:\n\ndata: \n{\"error\":{\"message\":\"boom\"}}\n\n"},
		{"text with a line of JSON, last", sseType, "data: This is what it says:\n{\"error\":{\"message\":\"boom\"}}\n"},
		{"text with a line that says error", sseType, "data: The log:\nerror: {\"error\":{\"message\":\"boom\"}}\n\n"},
		{"log with errors", sseType, unnamed(`{"level":"info","text":"up"}`, `{"level":"error","error":{"message":"disk full"}}`, `{"level":"info","text":"down"}`)},
		{"log with types of errors", sseType, unnamed(`{"type":"info","text":"up"}`, `{"type":"error","error":{"type":"TypeError","message":"x is undefined"}}`, `{"type":"info","text":"down"}`)},
		{"items, one in error", sseType, named("item", `{"n":1}`, "error", `{"error":"no such item","n":2}`, "item", `{"n":3}`, "done", `{}`)},
		{"log", sseType, "event: output\nid: 4:2\ndata: a\n\nevent: output\nid: 4:3\ndata: b\n\n"},
		{"log with clocks", sseType, "event: output\nid: 12:30:00\ndata: a\n\n"},
		{"log with other ids", sseType, "event: output\nid: 1690212292-0\ndata: a\n\n"},
		{"log with ids like times", sseType, "event: output\nid: 1690212292:a\ndata: a\n\n"},
		{"log with long ids", sseType, "event: output\nid: 16902122920000000:1\ndata: a\n\n"},
		{"other names", sseType, "event: tick\nid: 1690212292:0\ndata: a\n\n"},
		{"trainings", "application/x-ndjson", `{"model":"resnet","epoch":1,"done":false}` + "\n" + `{"model":"vgg","epoch":1,"done":false}` + "\n"},
		{"statuses", "application/x-ndjson", `{"status":"ok"}` + "\n" + `{"status":"done"}` + "\n"},
		{"rows", "application/x-ndjson", `{"type":"ADDED","object":"x"}` + "\n"},
		{"events as lines", "application/x-ndjson", unnamed(gateFirst, gateText)},
		{"events as JSON", jsonType, unnamed(gateFirst, gateText)},
		{"lines as events", sseType, gateFirst + "\n" + gateText + "\n"},
		{"search", jsonType, `[{"candidates":[{"content":"x"}]}]`},
	} {
		for _, size := range []int{1, 7, len(r.body)} {
			got := endOf(s, contract.Answer{ContentType: r.contentType}, r.body, size)
			if got.State == contract.Interrupted || got.State == contract.Failed || !got.Legal {
				t.Errorf("%s in pieces of %d: %v of %q", r.name, size, got.State, got.Protocol)
			}
		}
	}
}

// TestWrongTypes has the recordings under types that are not theirs, as
// gateways answer. No whole one is held to be cut, and no cut one to be whole;
// but whoever listens with GET may come to the end of anything.
func TestWrongTypes(t *testing.T) {
	s := known(t)
	for _, r := range append(recordings(t), framed(t)...) {
		for _, contentType := range []string{sseType, "application/x-ndjson", jsonType, "application/json-seq", messageType} {
			for _, method := range []string{"", http.MethodGet, http.MethodPost} {
				got := endOf(s, contract.Answer{ContentType: contentType, Method: method}, string(r.body), 4096).State
				ended := got == contract.Completed && method != http.MethodGet || got == contract.Incomplete
				accused := got == contract.Interrupted || got == contract.Failed
				if accused && states[r.end] != got || ended && (r.end == "interrupted" || r.end == "failed") {
					t.Errorf("%s (%s) as %q: %v, is %s", method, r.file, contentType, got, r.end)
				}
			}
		}
	}
}
