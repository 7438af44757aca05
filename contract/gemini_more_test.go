package contract_test

import "testing"

func TestGeminiArray(t *testing.T) {
	const (
		first = `{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"responseId":"r1"}`
		other = `{"candidates":[{"index":1,"content":{"parts":[{"text":"b"}]}}],"usageMetadata":{}}`
		stop  = `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{}}`
		stop1 = `{"candidates":[{"index":1,"finishReason":1}]}`
	)
	checkEndings(t, "gemini-json-array", "application/json; charset=UTF-8", []ending{
		{"whole", "[" + first + "\n,\n" + stop + "]", "completed op=r1 STOP"},
		{"one element", "[" + stop + "]\n", "completed STOP"},
		{"not closed", "[" + first + "," + stop, "interrupted op=r1 complete STOP"},
		{"cut behind a comma", "[" + first + ",", "interrupted op=r1"},
		{"cut in the first element", "[" + first[:60], "interrupted"},
		{"closed without a reason", "[" + first + "]", "interrupted op=r1"},
		{"one of two candidates", "[" + first + "," + other + "," + stop1 + "]", "interrupted op=r1 1"},
		{"both", "[" + first + "," + other + "," + stop1 + "," + stop + "]", "completed op=r1 STOP"},
		{"limit", "[" + first + `,{"candidates":[{"finishReason":"MAX_TOKENS"}]}]`, "incomplete op=r1 MAX_TOKENS"},
		{"limit as a number", "[" + first + `,{"candidates":[{"finishReason":2}]}]`, "incomplete op=r1 2"},
		{"blocked", `[{"promptFeedback":{"blockReason":"SAFETY"}}]`, "incomplete SAFETY"},
		{"failure in it", "[" + first + `,{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}]`,
			"failed op=r1 UNAVAILABLE/503/overloaded"},
		{"failure behind a reason", "[" + stop + `,{"error":{"code":499,"message":"","status":"CANCELLED"}}]`,
			"failed CANCELLED/499/"},
		{"failure alone", `[{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED","details":[]}}]`,
			"failed RESOURCE_EXHAUSTED/429/slow down"},
		{"failure that is not closed", `[{"error":{"code":500,"message":"x","status":"INTERNAL"}}`, "failed INTERNAL/500/x"},
	})
	// Arrays of others are nobody's, however they end.
	checkEndings(t, "", jsonType, []ending{
		{"election", `[{"candidates":[{"name":"Ada"}]},{"candidates":[]}]`, "unjudged"},
		{"batch", `[{"error":{"code":1,"message":"x","status":"BAD"}},{"ok":true}]`, "unjudged"},
		{"one answer", `{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{}}`, "unjudged"},
		{"texts", `["candidates",{"text":"finishReason"}]`, "unjudged"},
	})
}

func TestGeminiInteractions(t *testing.T) {
	const (
		created = `{"event_type":"interaction.created","event_id":"e1","interaction":{"id":"v1_a","status":"in_progress"}}`
		start   = `{"event_type":"step.start","index":0,"event_id":"e2","step":{"type":"model_output"}}`
		delta   = `{"event_type":"step.delta","index":0,"event_id":"e3","delta":{"type":"text","text":"hi"}}`
	)
	begun := named("interaction.created", created, "step.start", start)
	ended := func(status string) string {
		return named("interaction.completed",
			`{"event_type":"interaction.completed","event_id":"e9","interaction":{"id":"v1_a","status":"`+status+`"}}`)
	}
	done := named("done", "[DONE]")
	checkEndings(t, "gemini-interactions", sseType, []ending{
		{"whole", begun + named("step.delta", delta) + ended("completed") + done, "completed op=v1_a at=e9 completed"},
		{"without done", begun + ended("completed"), "completed op=v1_a at=e9 completed"},
		{"without names", unnamed(created, delta), "interrupted op=v1_a at=e3"},
		{"old names", unnamed(`{"event_type":"interaction.start","interaction":{"id":"v1_b"}}`,
			`{"event_type":"content.delta","index":0,"delta":{}}`,
			`{"event_type":"interaction.complete","interaction":{"id":"v1_b","status":"completed"}}`), "completed op=v1_b completed"},
		{"action", begun + ended("requires_action") + done, "completed op=v1_a at=e9 requires_action"},
		{"incomplete", begun + ended("incomplete") + done, "incomplete op=v1_a at=e9 incomplete"},
		{"budget", begun + ended("budget_exceeded") + done, "incomplete op=v1_a at=e9 budget_exceeded"},
		{"continuation", begun + ended("requires_continuation") + done, "incomplete op=v1_a at=e9 requires_continuation"},
		{"failed", begun + ended("failed") + done, "failed op=v1_a at=e9 failed//"},
		{"cancelled", begun + ended("cancelled") + done, "failed op=v1_a at=e9 cancelled//"},
		{"status", begun + named("interaction.status_update",
			`{"event_type":"interaction.status_update","interaction_id":"v1_a","status":"failed"}`), "failed op=v1_a at=e2 failed//"},
		{"error", begun + named("error", `{"event_type":"error","event_id":"e4","error":{"code":"internal","message":"boom"}}`) + done,
			"failed op=v1_a at=e4 /internal/boom"},
		{"error of text", begun + named("step.delta", delta, "error", "overloaded"), "failed op=v1_a at=e3 //overloaded"},
		{"error first", unnamed(`{"event_type":"error","error":{"code":"quota","message":"none left"}}`), "failed /quota/none left"},
		{"cut", begun + named("step.delta", delta), "interrupted op=v1_a at=e3"},
		{"done alone", begun + done, "interrupted op=v1_a at=e2"},
		{"resumed in the middle", named("step.delta", delta) + ended("completed"), "completed op=v1_a at=e9 completed"},
		{"cut in the end", begun + cut(ended("completed"), 2), "interrupted op=v1_a at=e2 complete"},
		{"unknown event", begun + unnamed(`{"event_type":"interaction.new_thing"}`) + ended("completed"), "completed op=v1_a at=e9 completed"},
	})
	checkEndings(t, "", sseType, []ending{
		{"events of somebody", unnamed(`{"event_type":"content.published","index":0}`, `{"event_type":"step.done"}`), "unjudged"},
	})
}

// cut returns text without its last n bytes.
func cut(text string, n int) string { return text[:len(text)-n] }
