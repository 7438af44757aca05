package contract_test

import "testing"

func TestOpenAIAssistants(t *testing.T) {
	run := func(status, more string) string {
		return named("thread.run."+status, `{"id":"run_1","object":"thread.run","thread_id":"thread_1","assistant_id":"asst_1","status":"`+status+`"`+more+`}`)
	}
	begun := run("created", "") + run("in_progress", `,"last_error":null,"incomplete_details":null`) +
		named("thread.message.delta", `{"id":"msg_1","object":"thread.message.delta","delta":{"content":[{"text":{"value":"hi"}}]}}`)
	done := named("done", "[DONE]")
	checkEndings(t, "openai-assistants", sseType, []ending{
		{"whole", begun + run("completed", "") + done, "completed op=run_1"},
		{"without done", begun + run("completed", ""), "completed op=run_1"},
		{"done alone", begun + done, "completed op=run_1"},
		{"thread first", named("thread.created", `{"id":"thread_1","object":"thread","metadata":{}}`) + begun, "interrupted op=run_1"},
		{"without names", unnamed(`{"id":"run_1","object":"thread.run","assistant_id":"asst_1","status":"queued"}`), "interrupted op=run_1"},
		{"step first", named("thread.run.step.created", `{"id":"step_1","object":"thread.run.step","run_id":"run_1","status":"in_progress"}`),
			"interrupted op=run_1"},
		{"message cut short", begun + named("thread.message.incomplete",
			`{"id":"msg_1","object":"thread.message","run_id":"run_1","status":"incomplete","incomplete_details":{"reason":"max_tokens"}}`) +
			run("completed", `,"incomplete_details":{"reason":"max_prompt_tokens"}`) + done, "completed op=run_1"},
		{"incomplete", begun + run("incomplete", `,"incomplete_details":{"reason":"max_completion_tokens"}`) + done,
			"incomplete op=run_1 max_completion_tokens"},
		{"action", begun + run("requires_action", `,"required_action":{"type":"submit_tool_outputs"}`) + done, "incomplete op=run_1 requires_action"},
		{"failed", begun + run("failed", `,"last_error":{"code":"rate_limit_exceeded","message":"quota"}`) + done,
			"failed op=run_1 failed/rate_limit_exceeded/quota"},
		{"cancelled", begun + run("cancelling", "") + run("cancelled", "") + done, "failed op=run_1 cancelled//"},
		{"expired", begun + run("expired", "") + done, "failed op=run_1 expired//"},
		{"error", begun + named("error", `{"code":null,"message":"The server had an error","param":null,"type":"server_error"}`) + done,
			"failed op=run_1 server_error//The server had an error"},
		{"nested error", begun + named("error", `{"error":{"code":"x","message":"y","type":"z"}}`), "failed op=run_1 z/x/y"},
		{"error of text", begun + named("error", "internal"), "failed op=run_1 //internal"},
		{"cut", begun, "interrupted op=run_1"},
		{"step failed, run not", begun + named("thread.run.step.failed",
			`{"id":"step_1","object":"thread.run.step","run_id":"run_1","status":"failed","last_error":{"code":"server_error"}}`), "interrupted op=run_1"},
		{"cut in the end", begun + cut(run("completed", ""), 1), "interrupted op=run_1 complete"},
	})
}

func TestOpenAIAudio(t *testing.T) {
	const (
		delta = `{"type":"transcript.text.delta","delta":"Hello"}`
		done  = `{"type":"transcript.text.done","text":"Hello","usage":{"type":"tokens"}}`
		sound = `{"type":"speech.audio.delta","audio":"UklGRg=="}`
		spent = `{"type":"speech.audio.done","usage":{"total_tokens":3}}`
	)
	checkEndings(t, "openai-audio", sseType, []ending{
		{"transcript", unnamed(delta, done, doneMarker), "completed"},
		{"without marker", unnamed(delta, done), "completed"},
		{"marker alone", unnamed(delta, doneMarker), "completed"},
		{"lines end with CRLF", crlf(unnamed(delta, done, doneMarker)), "completed"},
		{"lines end with CR", cr(unnamed(delta, done)), "completed"},
		{"speech", named("speech.audio.delta", sound, "speech.audio.done", spent), "completed"},
		{"speech cut", unnamed(sound, sound), "interrupted"},
		{"transcript cut", crlf(unnamed(delta, delta)), "interrupted"},
		{"cut in the end", unnamed(delta) + cut(unnamed(done), 1), "interrupted complete"},
		{"error", unnamed(delta, `{"type":"error","error":{"type":"server_error","code":"x","message":"y"}}`, doneMarker), "failed server_error/x/y"},
		{"flat error", unnamed(delta, `{"type":"error","code":"x","message":"y"}`), "failed /x/y"},
		{"bare error", unnamed(delta, `{"error":{"message":"y","type":"z"}}`), "failed z//y"},
		{"error field", unnamed(delta) + "error: {\"message\":\"y\"}\n\n", "failed //"},
		{"unknown event", unnamed(delta, `{"type":"transcript.text.new","x":1}`, done), "completed"},
	})
}

func TestOpenAIImages(t *testing.T) {
	const (
		part = `{"type":"image_generation.partial_image","b64_json":"iVBORw0=","partial_image_index":0}`
		done = `{"type":"image_generation.completed","b64_json":"iVBORw0=","usage":{}}`
		edit = `{"type":"image_edit.completed","b64_json":"iVBORw0="}`
	)
	checkEndings(t, "openai-images", sseType, []ending{
		{"whole", named("image_generation.partial_image", part, "image_generation.completed", done), "completed"},
		{"without names", unnamed(part, done, doneMarker), "completed"},
		{"edit", unnamed(edit), "completed"},
		{"cut", named("image_generation.partial_image", part), "interrupted"},
		{"error", unnamed(part, `{"type":"error","error":{"type":"image_generation_user_error","code":"moderation_blocked","message":"no"}}`),
			"failed image_generation_user_error/moderation_blocked/no"},
	})
}

// TestChatLookAlikes is about what services do that share the contract of Chat
// Completions.
func TestChatLookAlikes(t *testing.T) {
	const (
		text = `{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"a"}}]}`
		stop = `{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	)
	checkEndings(t, "openai-chat", sseType, []ending{
		{"Writer: no marker", unnamed(text, stop), "completed op=c1 stop"},
		{"Snowflake: no reason", unnamed(text, doneMarker), "completed op=c1"},
		{"Snowflake: neither", unnamed(text), "interrupted op=c1"},
		{"Perplexity: comments, CRLF", crlf(": ping\n\n" + unnamed(text) + ": ping\n\n" +
			unnamed(`{"id":"c1","object":"chat.completion.done","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)),
			"completed op=c1 stop"},
		{"Azure: empty first chunk", unnamed(`{"choices":[],"id":"","model":"","object":"","prompt_filter_results":[]}`, text, stop, doneMarker),
			"completed op=c1 stop"},
		{"Azure: filter", unnamed(text, `{"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}`, doneMarker),
			"incomplete op=c1 content_filter"},
		{"GPUStack: error line", unnamed(text) + "error: {\"code\":500,\"message\":\"out of slots\",\"type\":\"server_error\"}\n\n",
			"failed op=c1 //"},
		{"GPUStack: error line with an envelope", unnamed(text) + "error: {\"error\":{\"code\":500,\"message\":\"x\",\"type\":\"y\"}}\n\n", "failed op=c1 y/500/x"},
		{"GPUStack: error line, the last one", unnamed(text) + "error: {\"error\":{\"code\":500,\"message\":\"x\",\"type\":\"y\"}}\n", "failed op=c1 y/500/x"},
		{"TGI: error, then the marker", unnamed(text, `{"error":{"message":"x","http_status_code":422}}`, doneMarker), "failed op=c1 //x"},
	})
}
