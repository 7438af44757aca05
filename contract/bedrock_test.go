package contract_test

import "testing"

func TestBedrockConverse(t *testing.T) {
	begun := messages("messageStart", `{"p":"ab","role":"assistant"}`,
		"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"a"},"p":"abc"}`)
	stop := func(reason string) string { return messages("messageStop", `{"p":"a","stopReason":"`+reason+`"}`) }
	usage := messages("metadata", `{"metrics":{"latencyMs":1},"usage":{"totalTokens":2}}`)
	checkEndings(t, "bedrock-converse", messageType, []ending{
		{"whole", begun + stop("end_turn") + usage, "completed end_turn"},
		{"without usage", begun + stop("end_turn"), "completed end_turn"},
		{"tool", begun + stop("tool_use") + usage, "completed tool_use"},
		{"limit", begun + stop("max_tokens") + usage, "incomplete max_tokens"},
		{"filter", begun + stop("content_filtered") + usage, "incomplete content_filtered"},
		{"guardrail", begun + stop("guardrail_intervened") + usage, "incomplete guardrail_intervened"},
		{"window", begun + stop("model_context_window_exceeded"), "incomplete model_context_window_exceeded"},
		{"throttled", begun + exception("throttlingException", `{"message":"too many"}`), "failed throttlingException//too many"},
		{"model error", begun + exception("modelStreamErrorException", `{"message":"m","originalMessage":"o","originalStatusCode":429}`),
			"failed modelStreamErrorException/429/m"},
		{"exception behind the stop", begun + stop("end_turn") + exception("internalServerException", `{"message":"x"}`), "failed internalServerException//x"},
		{"error message", begun + message("", ":message-type", "error", ":error-code", "InternalError", ":error-message", "it broke"), "failed InternalError//it broke"},
		{"cut at a boundary", begun, "interrupted"},
		{"cut in the exception", begun + cut(exception("throttlingException", `{"message":"too many"}`), 3), "interrupted"},
		{"cut in the stop", begun + cut(stop("end_turn"), 1), "interrupted complete"},
		{"damaged", begun + flip(stop("end_turn"), 30), "interrupted"},
		{"damaged checksum of the prelude", begun + flip(stop("end_turn"), 9), "interrupted"},
		{"damaged behind the stop", begun + stop("end_turn") + flip(usage, 40), "completed end_turn"},
		{"damaged at once", messages("messageStart", `{"role":"assistant"}`) + flip(begun, 20), "interrupted"},
		{"begins with a block", messages("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"a"}}`), "interrupted"},
	})
	checkEndings(t, "aws-eventstream", messageType, []ending{
		{"exception alone", exception("validationException", `{"message":"no"}`), "failed validationException//no"},
		{"exception of another kind", exception("serviceUnavailableException", `{"Message":"later"}`), "failed serviceUnavailableException//later"},
	})
	checkEndings(t, "", messageType, []ending{
		{"another service", messages("Records", "a,b\n", "Stats", "<Stats/>", "End", ""), "unjudged"},
		{"another service, cut", messages("PayloadPart", `{"role":"assistant","stopReason":null}`), "unjudged"},
	})
}

// flip returns text with one bit of the byte at i changed.
func flip(text string, i int) string {
	b := []byte(text)
	b[i] ^= 4
	return string(b)
}

func TestBedrockInvoke(t *testing.T) {
	const (
		metrics = `"amazon-bedrock-invocationMetrics":{"inputTokenCount":1}`
		start   = `{"type":"message_start","message":{"id":"msg_bdrk_1","role":"assistant"}}`
		delta   = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`
		stop    = `{"type":"message_stop",` + metrics + `}`
	)
	reason := func(r string) string { return `{"type":"message_delta","delta":{"stop_reason":"` + r + `"}}` }
	begun := chunks(start, delta)
	checkEndings(t, "bedrock-invoke", messageType, []ending{
		{"Claude", begun + chunks(reason("end_turn"), stop), "completed op=msg_bdrk_1 end_turn"},
		{"Claude, limit", begun + chunks(reason("max_tokens"), stop), "incomplete op=msg_bdrk_1 max_tokens"},
		{"Claude, refusal", begun + chunks(reason("refusal"), stop), "incomplete op=msg_bdrk_1 refusal"},
		{"Claude, no stop", begun + chunks(reason("end_turn")), "interrupted op=msg_bdrk_1 complete end_turn"},
		{"Claude, cut", begun, "interrupted op=msg_bdrk_1"},
		{"Claude, cut in the first frame", cut(chunks(start), 5), "interrupted"},
		{"Claude, error", begun + chunks(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), "failed op=msg_bdrk_1 overloaded_error//Overloaded"},
		{"Claude, exception", begun + exception("modelTimeoutException", `{"message":"slow"}`), "failed op=msg_bdrk_1 modelTimeoutException//slow"},
		{"Claude, old", chunks(`{"completion":"a","stop_reason":null}`, `{"completion":"","stop_reason":"max_tokens",`+metrics+`}`), "incomplete max_tokens"},
		{"Claude, old, cut", chunks(`{"completion":"a","stop_reason":null}`), "interrupted"},
		{"Nova", chunks(`{"messageStart":{"role":"assistant"}}`, `{"messageStop":{"stopReason":"end_turn"}}`, `{"metadata":{"usage":{}},`+metrics+`}`), "completed end_turn"},
		{"Nova, limit", chunks(`{"messageStart":{"role":"assistant"}}`, `{"messageStop":{"stopReason":"max_tokens"}}`), "incomplete max_tokens"},
		{"Nova, cut", chunks(`{"messageStart":{"role":"assistant"}}`, `{"contentBlockDelta":{"delta":{"text":"a"}}}`), "interrupted"},
		{"Titan", chunks(`{"outputText":"a","totalOutputTextTokenCount":null,"completionReason":null}`,
			`{"outputText":"b","totalOutputTextTokenCount":2,"completionReason":"FINISH",`+metrics+`}`), "completed FINISH"},
		{"Titan, limit", chunks(`{"outputText":"a","completionReason":"LENGTH"}`), "incomplete LENGTH"},
		{"Titan, filter", chunks(`{"outputText":"a","completionReason":"CONTENT_FILTERED"}`), "incomplete CONTENT_FILTERED"},
		{"Titan, blocked", chunks(`{"outputText":"no","totalOutputTextTokenCount":3.0,"amazon-bedrock-guardrailAction":"INTERVENED"}`), "incomplete INTERVENED"},
		{"Titan, masked and cut", chunks(`{"outputText":"a","totalOutputTextTokenCount":null,"completionReason":null,"amazon-bedrock-guardrailAction":"INTERVENED"}`), "interrupted"},
		{"Titan, cut", chunks(`{"outputText":"a","totalOutputTextTokenCount":null,"completionReason":null}`), "interrupted"},
		{"Llama", chunks(`{"generation":"a","stop_reason":null}`, `{"generation":"","stop_reason":"stop",`+metrics+`}`), "completed stop"},
		{"Llama, limit", chunks(`{"generation":"a","stop_reason":"length"}`), "incomplete length"},
		{"Llama, cut", chunks(`{"generation":"a","stop_reason":null}`), "interrupted"},
		{"Cohere", chunks(`{"text":"a","is_finished":false}`, `{"is_finished":true,"finish_reason":"COMPLETE",`+metrics+`}`), "completed COMPLETE"},
		{"Cohere, failed", chunks(`{"text":"a","is_finished":false}`, `{"is_finished":true,"finish_reason":"ERROR"}`), "failed ERROR//"},
		{"Cohere, cut", chunks(`{"text":"a","is_finished":false}`), "interrupted"},
		{"Mistral", chunks(`{"outputs":[{"text":"a","stop_reason":null}]}`, `{"outputs":[{"text":"","stop_reason":"stop"}],`+metrics+`}`), "completed stop"},
		{"Mistral, limit", chunks(`{"outputs":[{"text":"","stop_reason":"length"}]}`), "incomplete length"},
		{"Mistral, cut", chunks(`{"outputs":[{"text":"a","stop_reason":null}]}`), "interrupted"},
		{"chat", chunks(`{"id":"c1","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}`,
			`{"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, `{"id":"c1","choices":[],"usage":{},`+metrics+`}`), "completed op=c1 stop"},
		{"chat, cut", chunks(`{"id":"c1","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}`), "interrupted op=c1"},
		{"metrics alone", chunks(`{"type":"message_start","message":{}}`, `{"new":1,`+metrics+`}`), "completed"},
		{"damaged", begun + flip(chunks(stop), 70), "interrupted op=msg_bdrk_1"},
		{"outer members do not count", messages("chunk", `{"type":"message_stop","bytes":"`+base64Of(start)+`","completionReason":"FINISH"}`), "interrupted op=msg_bdrk_1"},
	})
	checkEndings(t, "", messageType, []ending{
		{"a model that is not known", chunks(`{"answer":"a"}`, `{"answer":"b"}`), "unjudged"},
	})
}

func TestBedrockAgent(t *testing.T) {
	text := chunks("Plan your trip: ", "first, {pack}.")
	trace := messages("trace", `{"agentId":"A","sessionId":"s","trace":{"orchestrationTrace":{}}}`)
	back := messages("returnControl", `{"invocationId":"i","invocationInputs":[{"functionInvocationInput":{}}]}`)
	checkEndings(t, "bedrock-agent", messageType, []ending{
		{"text", text, "completed"},
		{"traces and text", trace + trace + text, "completed"},
		{"text and traces", text + trace, "completed"},
		{"text that is JSON behind a trace", trace + chunks(`{"type":"message_start","message":{}}`), "completed"},
		{"control", trace + back, "incomplete returnControl"},
		{"control at once", back, "incomplete returnControl"},
		{"torn text", cut(text, 1), "interrupted"},
		{"torn trace", trace + cut(trace, 9), "interrupted"},
		{"torn at once", cut(chunks("Plan your trip"), 2), "interrupted"},
		{"damaged", trace + flip(text, 60), "interrupted"},
		{"exception", trace + text + exception("dependencyFailedException", `{"message":"lambda","resourceName":"r"}`), "failed dependencyFailedException//lambda"},
		{"exception behind text", text + exception("throttlingException", `{"message":"slow"}`), "failed throttlingException//slow"},
	})
}
