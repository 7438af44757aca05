package contract

// bedrockInvoke is the contract of Bedrock's InvokeModelWithResponseStream.
//
// An event stream of chunks, each with a frame of the model's own protocol in
// base64 (AWS, API_runtime_ResponseStream): Claude's are the events of
// Messages, Nova's those of Converse, the others a chunk of text with a stop
// reason in the last one. To the last chunk Bedrock adds its metrics, so they
// end the stream of a model that is not known here. Exceptions are messages of
// their own.
func bedrockInvoke() Contract {
	return Contract{
		Protocol: "bedrock-invoke",
		Framing:  EventStream,
		Paths:    bedrockInvokePaths(),
		Inside:   "bytes",
		Claim:    claimInvoke,
		Read:     readInvoke,
	}
}

// bedrockInvokePaths returns what is looked at in the models' frames, and in
// exceptions.
func bedrockInvokePaths() []string {
	return append(append(awsPaths(), anthropic().Paths...),
		"messageStart?", "contentBlockStart?", "contentBlockDelta?", "contentBlockStop?",
		"messageStop?", "messageStop.stopReason", "metadata?",
		"outputText?", "completionReason", "totalOutputTextTokenCount?", guardrailAction,
		"completion?", "generation?", "stop_reason",
		"is_finished", "finish_reason", "generation_id",
		"outputs", "outputs[].stop_reason", "outputs[].text?",
		"choices", "choices[].stop_reason", "choices[].finish_reason", "id",
		invocationMetrics+"?",
	)
}

// What Bedrock itself adds to the models' frames.
const (
	invocationMetrics = "amazon-bedrock-invocationMetrics"
	guardrailAction   = "amazon-bedrock-guardrailAction"
)

// claimInvoke takes a chunk with a frame of a model.
func claimInvoke(_ *Answer, f *Frame) Claim {
	if f.Origin == Event && f.Named("chunk") && (modelOf(f) != noModel || f.Kind(invocationMetrics) == Object) {
		return Yes
	}
	return Maybe
}

// A model is a kind of models whose frames look alike.
type model uint8

const (
	noModel model = iota
	claude
	nova
	titan
	llama // and Claude's old completions
	command
	mistral // and others that list their outputs or choices
)

// modelOf returns the model whose frame f is.
func modelOf(f *Frame) model {
	switch {
	case f.Is("type", "message_start") && f.Kind("message") == Object, isClaude(f.Get("type")):
		return claude
	case isNova(f):
		return nova
	case f.Kind("outputText") == String:
		return titan
	case (f.Kind("generation") == String || f.Kind("completion") == String) && f.Kind("stop_reason") != Absent:
		return llama
	case f.Kind("is_finished") == True || f.Kind("is_finished") == False:
		return command
	case f.Kind("outputs[].text") == String || f.Kind("choices") == Array:
		return mistral
	}
	return noModel
}

// isClaude reports whether an event of Messages that is not the first one has
// the given type.
func isClaude(kind []byte) bool {
	switch string(kind) {
	case "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop", "ping", "error":
		return true
	}
	return false
}

// isNova reports whether f is an event of Converse as Nova sends it: an object
// in a member of its name.
func isNova(f *Frame) bool {
	return f.Kind("messageStart") == Object || f.Kind("contentBlockDelta") == Object ||
		f.Kind("contentBlockStart") == Object || f.Kind("contentBlockStop") == Object ||
		f.Kind("messageStop") == Object || f.Kind("metadata") == Object
}

// readInvoke reads a message.
func readInvoke(f *Frame, p *Progress) bool {
	if f.Origin == Exception {
		failAWS(f, p)
		return true
	}
	switch modelOf(f) {
	case claude:
		readAnthropic(f, p)
	case nova:
		endInvoke(p, f.Get("messageStop.stopReason"))
	case titan:
		endInvoke(p, reasonOfTitan(f))
	case llama:
		endInvoke(p, f.Get("stop_reason"))
	case command:
		p.ID(f.Get("generation_id"))
		if f.Kind("is_finished") == True {
			stopCohere(p, f.Get("finish_reason"), nil)
			p.Finish(Completed)
		}
	case mistral:
		p.ID(f.Get("id"))
		endInvoke(p, reasonOfMistral(f))
	}
	if f.Kind(invocationMetrics) == Object {
		p.Finish(Completed)
	}
	return f.Named("chunk")
}

// reasonOfTitan returns the reason of a chunk of Titan's. A chunk that a
// guardrail put in the place of the output has none, but the count of tokens
// that only a last chunk has.
func reasonOfTitan(f *Frame) []byte {
	reason := f.Get("completionReason")
	if reason == nil && f.Kind("totalOutputTextTokenCount") == Number && f.Is(guardrailAction, "INTERVENED") {
		return f.Get(guardrailAction)
	}
	return reason
}

// reasonOfMistral returns the reason of the first output.
func reasonOfMistral(f *Frame) []byte {
	for _, path := range []string{"outputs[].stop_reason", "choices[].finish_reason", "choices[].stop_reason"} {
		if reason := f.At(path, 0); len(reason) > 0 {
			return reason
		}
	}
	return nil
}

// endInvoke notes the stop reason of a last chunk. Empty: it is not the last.
func endInvoke(p *Progress, reason []byte) {
	switch string(reason) {
	case "":
		return
	case "length", "LENGTH", "max_tokens", "content_filter", "content_filtered", "CONTENT_FILTERED",
		"guardrail_intervened", "INTERVENED", "model_length", "model_context_window_exceeded":
		p.Stop(Incomplete, reason)
	case "error", "ERROR":
		p.Fail(reason, nil, nil)
	default:
		p.Stop(Completed, reason)
	}
	p.Finish(Completed)
}
