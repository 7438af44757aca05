package contract

import "bytes"

// geminiInteractions is the contract of the Gemini Interactions API.
//
// Events are named by their event_type, which the data repeats.
// interaction.completed (early on: interaction.complete) ends the stream, with
// the interaction's status; an event "done" with [DONE] follows (Google,
// "Interactions API"). An interaction that requires an action has answered: its
// function calls are whole. One that ran out of budget, or that requires
// continuation, has not. The position is the event_id in the data, not the SSE
// id; streams that can't be resumed have none.
func geminiInteractions() Contract {
	return Contract{
		Protocol: "gemini-interactions",
		Framing:  SSE,
		Paths: []string{
			"event_type", "interaction?", "interaction.id", "interaction.status", "interaction_id", "status",
			"index?", "step?", "content?", "delta?", "error", "error.type", "error.code", "error.message",
		},
		Cursor: "event_id",
		Names:  namesOfInteractions,
		Claim:  claimInteractions,
		Read:   readInteractions,
	}
}

// namesOfInteractions spares the scan of what carries output.
func namesOfInteractions(name []byte) Use {
	switch string(name) {
	case "step.start", "step.delta", "step.stop", "content.start", "content.delta", "content.stop":
		return Latest
	}
	return Read
}

// claimInteractions takes an event by its type, together with what such an
// event must have.
func claimInteractions(_ *Answer, f *Frame) Claim {
	kind := f.Get("event_type")
	switch {
	case bytes.HasPrefix(kind, []byte("interaction.")):
		if f.Kind("interaction") == Object || f.Kind("interaction_id") == String {
			return Yes
		}
	case bytes.HasPrefix(kind, []byte("step.")) || bytes.HasPrefix(kind, []byte("content.")):
		if f.Kind("index") == Number && (f.Kind("delta") == Object || f.Kind("step") == Object || f.Kind("content") == Object) {
			return Yes
		}
	case string(kind) == "error" && f.Kind("error") == Object:
		return Yes
	}
	return Maybe
}

// readInteractions reads an event by the type that its data gives.
func readInteractions(f *Frame, p *Progress) bool {
	p.ID(f.Get("interaction.id"))
	p.ID(f.Get("interaction_id"))
	switch kind := f.Get("event_type"); string(kind) {
	case "interaction.completed", "interaction.complete":
		endInteraction(p, f.Get("interaction.status"))
	case "interaction.status_update":
		if status := f.Get("status"); isBrokenOff(status) {
			p.Fail(status, nil, nil)
		}
	default:
		if f.Named("error") || f.Has("error") {
			failAs(f, p)
			return true
		}
		return isInteraction(kind) || f.Named("done")
	}
	return true
}

// isInteraction reports whether events of the protocol have the type.
func isInteraction(kind []byte) bool {
	area, _, found := bytes.Cut(kind, []byte("."))
	switch string(area) {
	case "interaction", "step", "content":
		return found
	}
	return false
}

// endInteraction notes the status with which an interaction ended.
func endInteraction(p *Progress, status []byte) {
	switch string(status) {
	case "failed", "cancelled":
		p.Fail(status, nil, nil)
	case "incomplete", "budget_exceeded", "requires_continuation":
		p.Stop(Incomplete, status)
		p.Finish(Incomplete)
	default:
		p.Stop(Completed, status)
		p.Finish(Completed)
	}
}

// isBrokenOff reports whether a status says that an interaction will not be
// completed.
func isBrokenOff(status []byte) bool {
	return string(status) == "failed" || string(status) == "cancelled"
}
