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
			"error", "error.type", "error.code", "error.message",
		},
		EOF:   EOFAfterStop,
		Claim: claimChat,
		Read:  readChat,
	}
}

// claimChat takes a chunk by its choices, and an error in OpenAI's envelope.
func claimChat(_ *Answer, f *Frame) Claim {
	switch {
	case f.Origin == Stray || f.Named("error"):
		if f.Has("error") {
			return Yes
		}
	case isChunk(f) || f.Kind("error") == Object && f.Has("error.message") && !f.Has("type"):
		return Yes
	}
	return Maybe
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
		return f.Kind("model") == String
	}
	return f.KindAt("choices[]", 0) == Object &&
		(f.Kind("choices[].delta") == Object || f.Kind("choices[].message") == Object ||
			f.Kind("choices[].text") == String || f.Kind("choices[].finish_reason") != Absent)
}

// readChat reads a chunk, an error or the marker.
func readChat(f *Frame, p *Progress) bool {
	switch {
	case string(f.Text()) == doneMarker:
		p.Finish(Completed)
		return true
	case f.Named("error") || f.Has("error"):
		failAs(f, p)
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
	switch reason := f.At("choices[].finish_reason", i); string(reason) {
	case "":
		p.Part(index)
	case "error": // Mistral, OpenRouter
		p.Fail(reason, nil, nil)
	case "length", "content_filter", "model_length", "insufficient_system_resource":
		p.StopPart(index, Incomplete, reason)
	default:
		p.StopPart(index, Completed, reason)
	}
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
