package contract

import "bytes"

// vercelUI is the contract of the UI message stream of Vercel's AI SDK.
//
// Data-only events with a type; finish ends the message, and data: [DONE] the
// stream. An abort is an end as well, and an error event a failure; that a tool
// failed is neither (AI SDK, "Stream Protocols").
func vercelUI() Contract {
	return Contract{
		Protocol: "vercel-ui",
		Framing:  SSE,
		Paths: []string{
			"type", "messageId", "id?", "delta?", "request?",
			"errorText", "reason", "finishReason",
		},
		Claim: claimVercelUI,
		Read:  readVercelUI,
	}
}

// claimVercelUI takes an answer that says what it is, and events by their type
// together with what they have. The parts of a language model, which the SDK
// has between itself and a gateway, look alike and end otherwise.
func claimVercelUI(a *Answer, f *Frame) Claim {
	if a.Header.Get("X-Vercel-Ai-Ui-Message-Stream") != "" {
		return Yes
	}
	switch string(f.Get("type")) {
	case "stream-start":
		return No
	case "start":
		return yesIf(f.Kind("messageId") == String)
	case "start-step":
		return yesIf(f.Kind("request") == Absent)
	case "text-delta", "reasoning-delta":
		return yesIf(f.Kind("id") == String && f.Kind("delta") == String)
	case "error":
		return yesIf(f.Kind("errorText") == String)
	}
	return Maybe
}

// yesIf returns Yes if there is reason for it, else Maybe.
func yesIf(reason bool) Claim {
	if reason {
		return Yes
	}
	return Maybe
}

// readVercelUI reads an event by its type.
func readVercelUI(f *Frame, p *Progress) bool {
	switch string(f.Get("type")) {
	case "start":
		p.ID(f.Get("messageId"))
	case "finish":
		p.Stop(stopOfVercel(f.Get("finishReason")), f.Get("finishReason"))
	case "abort":
		p.Stop(Incomplete, reasonOr(f.Get("reason"), "abort"))
		p.Finish(Incomplete)
	case "error":
		p.Fail(nil, nil, f.Get("errorText"))
	case "":
		if string(f.Text()) == doneMarker {
			p.Finish(Completed)
			return true
		}
		return false
	default:
		return isVercelPart(f.Get("type"))
	}
	return true
}

// isVercelPart reports whether the parts of a message have the type. Behind a
// hyphen it says what happens to the part, or the name of one's own data.
func isVercelPart(kind []byte) bool {
	area, _, _ := bytes.Cut(kind, []byte("-"))
	switch string(area) {
	case "start", "finish", "text", "reasoning", "tool", "data", "source", "file", "message":
		return true
	}
	return false
}

// stopOfVercel returns what a finish reason means. Most streams give none.
func stopOfVercel(reason []byte) State {
	switch string(reason) {
	case "length", "content-filter":
		return Incomplete
	}
	return Completed
}

// reasonOr returns reason, or a word for it if there is none.
func reasonOr(reason []byte, word string) []byte {
	if len(reason) > 0 {
		return reason
	}
	return []byte(word)
}
