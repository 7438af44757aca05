package contract

import "bytes"

// anthropic is the contract of the Messages API, also as Vertex serves it.
//
// Named events: message_start with the id, content blocks, message_delta with
// the stop_reason, message_stop; pings anywhere; unknown events are to be
// tolerated (Anthropic, "Streaming messages"). A stop_reason without
// message_stop says that the message was logically complete, not that the
// stream was. The event "error" reports what would have been a status. A second
// message_start, which gateways are known to splice in, begins anew.
func anthropic() Contract {
	return Contract{
		Protocol: "anthropic-messages",
		Framing:  SSE,
		Paths: []string{
			"type", "message?", "message.id", "delta.stop_reason",
			"error", "error.type", "error.code", "error.message",
		},
		Names: namesOfAnthropic,
		Claim: claimAnthropic,
		Read:  readAnthropic,
	}
}

// namesOfAnthropic spares the scan of what carries output.
func namesOfAnthropic(name []byte) Use {
	switch string(name) {
	case "content_block_delta", "content_block_start", "content_block_stop":
		return Skip
	case "ping":
		return Ping
	}
	return Read
}

// claimAnthropic takes a message that begins, and an error in Anthropic's
// envelope.
func claimAnthropic(_ *Answer, f *Frame) Claim {
	if f.Is("type", "message_start") && f.Kind("message") == Object ||
		isAnthropicError(f) && f.Kind("sequence_number") == Absent {
		return Yes
	}
	return Maybe
}

// isAnthropicError reports whether f is an error in Anthropic's envelope. Behind
// events of others the error's own type must be one of Anthropic's, which are
// named alike.
func isAnthropicError(f *Frame) bool {
	kind := f.Get("error.type")
	return f.Is("type", "error") && len(kind) > 0 && (!f.late || bytes.HasSuffix(kind, []byte("_error")))
}

// readAnthropic reads an event by the type that its data gives, which is its
// name.
func readAnthropic(f *Frame, p *Progress) bool {
	switch string(f.Get("type")) {
	case "message_start":
		p.Restart(f.Get("message.id"))
	case "message_delta":
		stopAnthropic(p, f.Get("delta.stop_reason"))
	case "message_stop":
		p.Finish(Completed)
	case "ping":
		p.Ping()
	case "content_block_delta", "content_block_start", "content_block_stop":
	default:
		if f.Named("error") || f.Is("type", "error") || f.Has("error") {
			failAs(f, p)
			return true
		}
		return false // to be tolerated, unless most events are such ones
	}
	return true
}

// stopAnthropic notes a stop reason. Bedrock and Vertex give the same.
func stopAnthropic(p *Progress, reason []byte) {
	switch string(reason) {
	case "":
	case "max_tokens", "pause_turn", "refusal", "model_context_window_exceeded":
		p.Stop(Incomplete, reason)
	default:
		p.Stop(Completed, reason)
	}
}
