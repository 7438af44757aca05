package contract

import "bytes"

// openAIAssistants is the contract of the runs of the Assistants API.
//
// Named events, each with the object that changed: a run, one of its steps, a
// message. The stream ends when the run is in a terminal state, or waits for
// the outputs of tools; an event "done" with [DONE] follows (OpenAI, API
// reference, "Assistants: streaming"). The run's own status decides: one is
// known to be completed although a message of it was cut short.
func openAIAssistants() Contract {
	return Contract{
		Protocol: "openai-assistants",
		Framing:  SSE,
		Paths: []string{
			"id", "object", "status", "run_id", "assistant_id?", "last_error.code", "last_error.message",
			"incomplete_details.reason", "type", "code", "message",
			"error", "error.type", "error.code", "error.message",
		},
		Names: namesOfAssistants,
		Claim: claimAssistants,
		Read:  readAssistants,
	}
}

// namesOfAssistants spares the scan of what carries output.
func namesOfAssistants(name []byte) Use {
	switch string(name) {
	case "thread.message.delta", "thread.run.step.delta":
		return Skip
	}
	return Read
}

// claimAssistants takes an object by its name and the event's, or a run as such.
func claimAssistants(_ *Answer, f *Frame) Claim {
	object := f.Get("object")
	switch {
	case !bytes.HasPrefix(object, []byte("thread")):
	case bytes.HasPrefix(f.Name, []byte("thread.")) && f.Kind("id") == String:
		return Yes
	case string(object) == "thread.run" && f.Kind("assistant_id") == String && f.Kind("status") == String:
		return Yes
	}
	return Maybe
}

// readAssistants reads an event. Messages and steps name their run.
func readAssistants(f *Frame, p *Progress) bool {
	p.ID(f.Get("run_id"))
	object := f.Get("object")
	switch {
	case f.Named("error") || f.Has("error"):
		failAssistants(f, p)
	case string(object) == "thread.run":
		p.ID(f.Get("id"))
		readRun(f, p)
	case string(f.Text()) == doneMarker:
		p.Finish(Completed)
	default:
		return bytes.HasPrefix(object, []byte("thread"))
	}
	return true
}

// readRun reads the state of a run.
func readRun(f *Frame, p *Progress) {
	switch status := f.Get("status"); string(status) {
	case "completed":
		p.Finish(Completed)
	case "incomplete":
		p.Stop(Incomplete, f.Get("incomplete_details.reason"))
		p.Finish(Incomplete)
	case "requires_action":
		p.Stop(Incomplete, status)
		p.Finish(Incomplete)
	case "failed", "cancelled", "expired":
		p.Fail(status, f.Get("last_error.code"), f.Get("last_error.message"))
	}
}

// failAssistants reads an error event, whose data is the error itself.
func failAssistants(f *Frame, p *Progress) {
	if f.Has("error") || !f.JSON() {
		failAs(f, p)
		return
	}
	p.Fail(f.Get("type"), f.Get("code"), f.Get("message"))
}
