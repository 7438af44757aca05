package contract

import "bytes"

// openAIResponses is the contract of the Responses API, of OpenAI and of the
// services that look alike: Azure OpenAI, DeepSeek, xAI, OpenRouter, Bedrock
// Mantle, Perplexity's Agent API.
//
// Events are named by their type, which the data repeats; Mantle and OpenRouter
// give it there only. response.completed, response.failed and
// response.incomplete end the stream (OpenAI, "Streaming events"); events may
// follow. An error event nests its error in practice, whereas the reference has
// its members at the top level; response.failed follows it. response.cancelled
// is a webhook event only and is taken for a failure. Look-alikes are known to
// say response.done, or response.completed of what the status says is not; so
// the status decides there. The position is the sequence_number.
func openAIResponses() Contract {
	return Contract{
		Protocol: "openai-responses",
		Framing:  SSE,
		Paths: []string{
			"type", "code", "message", "error", "error.type", "error.code", "error.message",
			"response?", "response.id", "response.status", "response.error.type", "response.error.code", "response.error.message",
			"response.incomplete_details.reason", "item_id?", "output_index?",
		},
		Cursor: "sequence_number",
		Names:  namesOfResponses,
		Claim:  claimResponses,
		Read:   readResponses,
	}
}

// namesOfResponses spares the scan of all but the events that concern the
// response as a whole.
func namesOfResponses(name []byte) Use {
	switch string(name) {
	case "response.created", "response.queued", "response.in_progress",
		"response.completed", "response.done", "response.failed", "response.incomplete", "response.cancelled":
		return Read
	case "keepalive":
		return Read
	}
	if bytes.HasPrefix(name, []byte("response.")) {
		return Latest
	}
	return Read
}

// claimResponses takes an event by its type, together with what such an event
// must have.
func claimResponses(_ *Answer, f *Frame) Claim {
	kind := f.Get("type")
	switch {
	case string(kind) == "error":
		if f.Kind("sequence_number") == Number {
			return Yes
		}
	case bytes.HasPrefix(kind, []byte("response.")):
		if f.Kind("response") == Object || f.Kind("sequence_number") == Number ||
			f.Kind("item_id") == String || f.Kind("output_index") == Number {
			return Yes
		}
	}
	return Maybe
}

// readResponses reads an event by the type that its data gives.
func readResponses(f *Frame, p *Progress) bool {
	p.ID(f.Get("response.id"))
	switch kind := f.Get("type"); string(kind) {
	case "response.completed", "response.done":
		endResponse(f, p, f.Get("response.status"))
	case "response.incomplete":
		endResponse(f, p, []byte("incomplete"))
	case "response.failed", "response.cancelled":
		endResponse(f, p, []byte("failed"))
	case "keepalive":
		p.Ping()
	case "error":
		failResponses(f, p)
	default:
		if f.Named("error") || f.Has("error") {
			failAs(f, p)
			return true
		}
		return bytes.HasPrefix(kind, []byte("response.")) || string(f.Text()) == doneMarker
	}
	return true
}

// endResponse notes the status with which a response ended.
func endResponse(f *Frame, p *Progress, status []byte) {
	switch string(status) {
	case "incomplete":
		p.Stop(Incomplete, f.Get("response.incomplete_details.reason"))
		p.Finish(Incomplete)
	case "failed", "cancelled":
		p.Fail(f.Get("response.error.type"), f.Get("response.error.code"), f.Get("response.error.message"))
	default:
		p.Finish(Completed)
	}
}

// failResponses reads an error event in either of its forms.
func failResponses(f *Frame, p *Progress) {
	if f.Has("error") {
		failAs(f, p)
		return
	}
	p.Fail(nil, f.Get("code"), f.Get("message"))
}
