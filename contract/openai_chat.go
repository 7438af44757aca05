package contract

import "bytes"

// openAIChat is the contract of Chat Completions, of the legacy completions,
// and of the many services that look alike: Azure OpenAI, Mistral, Groq, xAI,
// DeepSeek, Together, OpenRouter, vLLM, llama.cpp, LiteLLM, Perplexity, Writer
// and others.
//
// Data-only events; each choice gets a finish_reason; data: [DONE] ends the
// stream (OpenAI, API reference, "Streaming"). A reason for every choice that
// was seen suffices, because Writer, Perplexity and some gateways send no
// [DONE]; [DONE] alone suffices too, because Snowflake sends no reasons and
// LiteLLM one for the first choice only. An error wins over both: vLLM and
// OpenRouter send [DONE] after it. A reason that was once given holds, though a
// usage chunk may say null again (OpenRouter).
func openAIChat() Contract {
	return Contract{
		Protocol: "openai-chat",
		Framing:  SSE,
		Paths: []string{
			"id", "object", "type", "model?", "choices",
			"choices[]", "choices[].index", "choices[].finish_reason",
			"choices[].delta?", "choices[].text?", "choices[].message?",
			"choices[].error?", "choices[].error.code", "choices[].error.message",
			"error", "error.type", "error.code", "error.message", "code", "message",
		},
		EOF:   EOFAfterStop,
		Claim: claimChat,
		Read:  readChat,
	}
}

// claimChat takes a chunk by its choices, and an error in OpenAI's envelope.
func claimChat(_ *Answer, f *Frame) Claim {
	return yesIf(isChunk(f) || isChatError(f))
}

// isChatError reports whether f is an error in OpenAI's envelope. As the first
// event it need not have more than a message; behind events of others it must
// have the envelope's members, for a log has errors too.
func isChatError(f *Frame) bool {
	switch {
	case f.late:
		return f.Has("error.message") && f.Kind("error.type") != Absent && f.Kind("error.code") != Absent && !f.Has("type")
	case f.Origin == Stray || f.Named("error"):
		return f.Has("error")
	}
	return f.Kind("error") == Object && f.Has("error.message") && !f.Has("type")
}

// isChunk reports whether f has choices as a chunk has them. Azure's first one
// has an empty list.
func isChunk(f *Frame) bool {
	if f.Kind("choices") != Array {
		return false
	}
	if bytes.HasPrefix(f.Get("object"), []byte("chat.completion")) || f.Is("object", "text_completion") {
		return true
	}
	if !f.Has("choices") {
		return f.Kind("model") == String && f.Kind("id") == String
	}
	return f.KindAt("choices[]", 0) == Object &&
		(f.Kind("choices[].delta") == Object || f.Kind("choices[].message") == Object ||
			f.Kind("choices[].text") == String && f.Kind("model") == String ||
			f.Kind("choices[].finish_reason") != Absent)
}

// readChat reads a chunk, an error or the marker.
func readChat(f *Frame, p *Progress) bool {
	switch {
	case string(f.Text()) == doneMarker:
		p.Finish(Completed)
		return true
	case f.Named("error") || f.Has("error"):
		p.ID(f.Get("id"))
		failAs(f, p)
		return true
	case f.Is("object", "error"): // of servers that have no envelope for it
		p.Fail(f.Get("type"), f.Get("code"), f.Get("message"))
		return true
	case f.Is("type", "ping"): // of gateways to Anthropic
		p.Ping()
		return true
	case f.Kind("choices") != Array:
		return f.Has("object") || f.Has("id")
	}
	p.ID(f.Get("id"))
	for i := range f.Len("choices[]") {
		readChoice(f, p, i)
	}
	if f.Is("object", "chat.completion.done") { // Perplexity
		p.Finish(Completed)
	}
	return true
}

// readChoice reads the i-th element of choices, which is not always the choice
// of that index.
func readChoice(f *Frame, p *Progress, i int) {
	index := 0
	if text := f.At("choices[].index", i); text != nil {
		index = decimal(text)
	}
	reason := f.At("choices[].finish_reason", i)
	code, message := f.At("choices[].error.code", i), f.At("choices[].error.message", i)
	switch outcome := outcomeOfChat(reason); {
	case f.KindAt("choices[].error", i) == Object && (code != nil || message != nil): // OpenRouter
		p.Fail(nil, code, message)
	case outcome == Failed:
		p.Fail(reason, nil, nil)
	case outcome == Unjudged:
		p.Part(index)
	default:
		p.StopPart(index, outcome, reason)
	}
}

// outcomeOfChat returns what a finish_reason means. Unjudged: it is none.
// Gateways to Claude and to Gemini are known to pass on their words for it.
func outcomeOfChat(reason []byte) State {
	switch string(reason) {
	case "", "null", "FINISH_REASON_UNSPECIFIED":
		return Unjudged
	case "error", "network_error": // Mistral, OpenRouter; Z.ai
		return Failed
	case "length", "content_filter", "model_length", "insufficient_system_resource",
		"sensitive", "abort", // Z.ai; vLLM
		"max_tokens", "refusal", "pause_turn", "model_context_window_exceeded",
		"MAX_TOKENS", "SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII":
		return Incomplete
	}
	return Completed
}

// doneMarker is the data of the last event of OpenAI's streams.
const doneMarker = "[DONE]"

// failAs notes the error that f reports, in the shape that most services use:
// error.type, error.code, error.message; or a text.
func failAs(f *Frame, p *Progress) {
	message := f.Get("error.message")
	if message == nil {
		message = f.Get("error")
	}
	if message == nil {
		message = f.Text()
	}
	p.Fail(f.Get("error.type"), f.Get("error.code"), message)
}
