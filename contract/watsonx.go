package contract

// watsonx is the contract of IBM watsonx.ai: text generation, and chat, whose
// chunks are those of Chat Completions.
//
// Events are numbered by their SSE id. Each result has a stop_reason, which is
// not_finished until the last one; the body ends after it, without a marker
// (IBM, "watsonx.ai API", text generation stream). An error event lists errors.
func watsonx() Contract {
	return Contract{
		Protocol: "watsonx",
		Framing:  SSE,
		Paths: append(openAIChat().Paths, "model_id?", "created_at?", "results", "results[]",
			"results[].generated_text?", "results[].stop_reason",
			"errors", "errors[].code", "errors[].message", "trace?"),
		Cursor: EventID,
		EOF:    EOFAfterStop,
		Claim:  claimWatsonx,
		Read:   readWatsonx,
	}
}

// claimWatsonx takes a result or a chunk by its model_id, and errors by their
// trace.
func claimWatsonx(_ *Answer, f *Frame) Claim {
	switch {
	case f.Kind("model_id") == String && f.Kind("created_at") == String:
		if f.Kind("results[].generated_text") == String || f.Kind("choices") == Array {
			return Yes
		}
	case f.Kind("errors[].code") == String && f.Kind("trace") == String:
		return Yes
	}
	return Maybe
}

// readWatsonx reads results, a chunk, or errors.
func readWatsonx(f *Frame, p *Progress) bool {
	switch {
	case f.Has("errors"):
		p.Fail(nil, f.At("errors[].code", 0), f.At("errors[].message", 0))
	case f.Kind("results") == Array:
		for i := range f.Len("results[]") {
			stopWatsonx(p, i, f.At("results[].stop_reason", i))
		}
	default:
		return readChat(f, p)
	}
	return true
}

// stopWatsonx notes the stop reason of a result.
func stopWatsonx(p *Progress, i int, reason []byte) {
	switch string(reason) {
	case "", "not_finished", "NOT_FINISHED":
		p.Part(i)
	case "error", "ERROR":
		p.Fail(reason, nil, nil)
	case "max_tokens", "MAX_TOKENS", "token_limit", "TOKEN_LIMIT", "time_limit", "TIME_LIMIT", "cancelled", "CANCELLED":
		p.StopPart(i, Incomplete, reason)
	default:
		p.StopPart(i, Completed, reason)
	}
}
