package contract_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/rubicon-go/rubicon/contract"
)

// crlf returns text whose lines end with CR and LF.
func crlf(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }

// cr returns text whose lines end with CR alone.
func cr(text string) string { return strings.ReplaceAll(text, "\n", "\r") }

func TestCohere(t *testing.T) {
	begun := named("message-start", `{"type":"message-start","id":"m1","delta":{"message":{"role":"assistant"}}}`,
		"content-delta", `{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"a"}}}}`)
	ended := func(reason string) string {
		return named("message-end", `{"type":"message-end","delta":{"finish_reason":"`+reason+`","usage":{}}}`)
	}
	done := unnamed(doneMarker)
	checkEndings(t, "cohere-v2", sseType, []ending{
		{"whole", begun + ended("COMPLETE") + done, "completed op=m1 COMPLETE"},
		{"without marker", begun + ended("STOP_SEQUENCE"), "completed op=m1 STOP_SEQUENCE"},
		{"tool", begun + ended("TOOL_CALL") + done, "completed op=m1 TOOL_CALL"},
		{"limit", begun + ended("MAX_TOKENS") + done, "incomplete op=m1 MAX_TOKENS"},
		{"error", begun + ended("ERROR") + done, "failed op=m1 ERROR//"},
		{"error with text", begun + named("message-end", `{"type":"message-end","delta":{"finish_reason":"ERROR","error":"bad luck"}}`) + done,
			"failed op=m1 ERROR//bad luck"},
		{"limit of input", begun + ended("ERROR_LIMIT"), "failed op=m1 ERROR_LIMIT//"},
		{"timeout", begun + ended("TIMEOUT"), "failed op=m1 TIMEOUT//"},
		{"error event", begun + named("error", `{"message":"internal"}`), "failed op=m1 //internal"},
		{"cut", begun, "interrupted op=m1"},
		{"marker alone", begun + done, "interrupted op=m1"},
		{"cut in the end", begun + cut(ended("COMPLETE"), 1), "interrupted op=m1 complete"},
		{"without names", unnamed(`{"type":"message-start","id":"m2","delta":{"message":{}}}`,
			`{"type":"message-end","delta":{"finish_reason":"COMPLETE"}}`), "completed op=m2 COMPLETE"},
	})
}

func TestTGI(t *testing.T) {
	const (
		token = `{"index":1,"token":{"id":7,"text":"a","logprob":-0.1,"special":false},"generated_text":null,"details":null}`
		last  = `{"index":2,"token":{"id":2,"text":"","logprob":0,"special":true},"generated_text":"","details":null}`
	)
	detailed := func(reason string) string {
		return `{"index":2,"token":{"id":2,"text":"b"},"generated_text":"ab","details":{"finish_reason":"` + reason + `","seed":null}}`
	}
	checkEndings(t, "tgi", sseType, []ending{
		{"whole", unnamed(token, last), "completed"},
		{"no space behind the colon", strings.ReplaceAll(unnamed(token, last), "data: ", "data:"), "completed"},
		{"end of sequence", unnamed(token, detailed("eos_token")), "completed eos_token"},
		{"limit", unnamed(token, detailed("length")), "incomplete length"},
		{"keep-alive", ":\n\n" + unnamed(token) + ":\n\n", "interrupted"},
		{"cut", unnamed(token, token), "interrupted"},
		{"failure", unnamed(token, `{"error":"Request failed during generation: x","error_type":"generation"}`),
			"failed generation//Request failed during generation: x"},
		{"failure alone", unnamed(`{"error":"Model is overloaded","error_type":"overloaded"}`), "failed overloaded//Model is overloaded"},
		{"failure behind the end", unnamed(token, last, `{"error":"x","error_type":"incomplete_generation_stream"}`), "failed incomplete_generation_stream//x"},
	})
}

func TestWatsonx(t *testing.T) {
	result := func(id, reason string) string {
		return "id: " + id + "\nevent: message\ndata: " + `{"model_id":"ibm/g","created_at":"2024-03-10T14:40:37Z","results":[{"generated_text":"a","stop_reason":"` + reason + `"}]}` + "\n\n"
	}
	chat := func(id, finish string) string {
		return "id: " + id + "\nevent: message\ndata: " + `{"id":"chatcmpl-1","object":"chat.completion.chunk","model_id":"ibm/g","created_at":"2025-01-01T00:00:00Z","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":` + finish + `}]}` + "\n\n"
	}
	const empty = "id: 1\nevent: message\ndata: {}\n\n"
	checkEndings(t, "watsonx", sseType, []ending{
		{"whole", result("1", "not_finished") + result("2", "eos_token"), "completed at=2 eos_token"},
		{"empty first event", empty + result("2", "eos_token"), "completed at=2 eos_token"},
		{"close", result("1", "stop_sequence") + "id: 2\nevent: close\ndata: {}\n\n", "completed at=2 stop_sequence"},
		{"limit", result("1", "max_tokens"), "incomplete at=1 max_tokens"},
		{"time", result("1", "time_limit"), "incomplete at=1 time_limit"},
		{"cut", empty + result("2", "not_finished"), "interrupted at=2"},
		{"close alone", result("1", "not_finished") + "id: 2\nevent: close\ndata: {}\n\n", "interrupted at=2"},
		{"error", result("1", "not_finished") + "id: 2\nevent: error\ndata: {\"errors\":[{\"code\":\"downstream_request_failed\",\"message\":\"x\"}],\"trace\":\"t\",\"status_code\":500}\n\n",
			"failed at=2 /downstream_request_failed/x"},
		{"error first", named("error", `{"errors":[{"code":"model_not_supported","message":"x"}],"trace":"t"}`), "failed /model_not_supported/x"},
		{"error as reason", result("1", "error"), "failed at=1 error//"},
		{"chat", chat("1", "null") + chat("2", `"stop"`) +
			"id: 3\nevent: message\ndata: " + `{"id":"chatcmpl-1","model_id":"ibm/g","choices":[],"usage":{}}` + "\n\n", "completed op=chatcmpl-1 at=3 stop"},
		{"chat limit", chat("1", `"length"`), "incomplete op=chatcmpl-1 at=1 length"},
		{"chat cut", chat("1", "null"), "interrupted op=chatcmpl-1 at=1"},
	})
}

func TestReplicate(t *testing.T) {
	s := known(t)
	for _, r := range []ending{
		{"whole", "event: output\nid: 1690212292:0\ndata: Once\n\nevent: done\nid: 1690212293:0\ndata: {}\n\n:408: 408 Request Timeout\n", "completed at=1690212293:0"},
		{"text of several lines", "event: output\nid: 1:0\ndata: event: done\ndata: \ndata: {}\n\n", "interrupted at=1:0"},
		{"cut", ": hi\n\nevent: output\nid: 1:0\ndata: Once\n\n", "interrupted at=1:0"},
		{"canceled", "event: output\nid: 1:0\ndata: a\n\nevent: done\nid: 1:1\ndata: {\"reason\":\"canceled\"}\n\n", "failed at=1:1 canceled//"},
		{"error", "event: error\nid: 1:0\ndata: {\"detail\":\"out of memory\"}\n\nevent: done\nid: 1:1\ndata: {\"reason\":\"error\"}\n\n", "failed at=1:1 //out of memory"},
		{"error of text", "event: output\nid: 1:0\ndata: a\n\nevent: error\ndata: Internal\n\n", "failed at=1:0 //Internal"},
	} {
		w := s.Watch(contract.Answer{ContentType: sseType, URL: &url.URL{Scheme: "https", Host: "stream.replicate.com"}})
		w.Write([]byte(r.body))
		if got := w.End(); describe(got) != r.want || got.Protocol != "replicate" {
			t.Errorf("%s: %q of %q, want %q", r.name, describe(got), got.Protocol, r.want)
		}
	}
	// The names alone are anybody's.
	if got := end(s, sseType, []byte(named("output", "a"))); got.State != contract.Unjudged {
		t.Errorf("output of somebody: %v of %q", got.State, got.Protocol)
	}
}
