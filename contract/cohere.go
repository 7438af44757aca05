package contract

import "bytes"

// cohere is the contract of Cohere's chat, version 2.
//
// Named events, the data repeats the name as type: message-start with the id,
// content, tool calls and citations in pieces, message-end with the
// finish_reason, then [DONE] (Cohere, "Streaming responses"). message-end
// suffices; [DONE] without it does not.
func cohere() Contract {
	return Contract{
		Protocol: "cohere-v2",
		Framing:  SSE,
		Paths: []string{
			"type", "id", "delta?", "delta.finish_reason", "delta.error", "message",
			"error", "error.type", "error.code", "error.message",
		},
		Names: namesOfCohere,
		Claim: claimCohere,
		Read:  readCohere,
	}
}

// namesOfCohere spares the scan of what carries output.
func namesOfCohere(name []byte) Use {
	switch string(name) {
	case "content-start", "content-delta", "content-end", "tool-plan-delta", "tool-call-start", "tool-call-delta",
		"tool-call-end", "citation-start", "citation-end":
		return Skip
	}
	return Read
}

// claimCohere takes a message that begins or ends.
func claimCohere(_ *Answer, f *Frame) Claim {
	if f.Is("type", "message-start") && f.Kind("delta") == Object && f.Kind("id") == String ||
		f.Is("type", "message-end") && f.Kind("delta.finish_reason") == String {
		return Yes
	}
	return Maybe
}

// readCohere reads an event by the type that its data gives.
func readCohere(f *Frame, p *Progress) bool {
	switch kind := f.Get("type"); string(kind) {
	case "message-start":
		p.ID(f.Get("id"))
	case "message-end":
		endCohere(f, p)
	default:
		switch {
		case f.Has("error"):
			failAs(f, p)
		case f.Named("error"):
			p.Fail(nil, nil, f.Get("message"))
		default:
			return isCoherePart(kind) || string(f.Text()) == doneMarker
		}
	}
	return true
}

// isCoherePart reports whether the parts of a message have the type.
func isCoherePart(kind []byte) bool {
	area, _, found := bytes.Cut(kind, []byte("-"))
	switch string(area) {
	case "message", "content", "tool", "citation":
		return found
	}
	return string(kind) == "debug"
}

// endCohere reads the end of a message.
func endCohere(f *Frame, p *Progress) {
	reason := f.Get("delta.finish_reason")
	stopCohere(p, reason, f.Get("delta.error"))
	p.Finish(Completed)
}

// stopCohere notes a finish reason. Those that begin with ERROR, and a timeout,
// are failures.
func stopCohere(p *Progress, reason, message []byte) {
	switch {
	case bytes.HasPrefix(reason, []byte("ERROR")) || string(reason) == "TIMEOUT":
		p.Fail(reason, nil, message)
	case string(reason) == "MAX_TOKENS" || string(reason) == "USER_CANCEL":
		p.Stop(Incomplete, reason)
	default:
		p.Stop(Completed, reason)
	}
}
