package contract

import "bytes"

// a2a is the contract of the Agent2Agent protocol up to 0.3, over JSON-RPC.
//
// Each event is a JSON-RPC response whose result says its kind. A message alone
// is the whole answer; a task ends with a status update that says final, which
// it may also do in a state that waits for input or for a credential (section
// 7.2). A state in which a task can't change any more ends it too, unless the
// update says that it is not the final one. That a task failed, was canceled or
// rejected is a failure. A stream may go on after it waited. Event ids are no
// positions: a server need not send again what was missed. An error may come
// alone, as for a task that is over.
func a2a() Contract {
	return Contract{
		Protocol: "a2a",
		Framing:  SSE,
		Paths: []string{
			"jsonrpc", "result.kind", "result.id", "result.taskId", "result.final",
			"result.status.state", "result.status.message.parts[].text",
			"error?", "error.code", "error.message", "error.data[].domain",
		},
		Claim: claimA2A,
		Read:  readA2A,
	}
}

// claimA2A takes a result by its kind, and an error with one of A2A's codes
// (0.3, section 8.2; 1.0, section 5.4).
func claimA2A(a *Answer, f *Frame) Claim {
	if !f.Is("jsonrpc", "2.0") {
		return Maybe
	}
	switch string(f.Get("result.kind")) {
	case "task", "message", "status-update", "artifact-update":
		return Yes
	}
	if isA2AError(f) && !saysMCP(a) {
		return Yes
	}
	return Maybe
}

// isA2AError reports whether f is an error of A2A's own. MCP uses some of the
// codes as well, but its servers name their events.
func isA2AError(f *Frame) bool {
	if f.Is("error.data[].domain", "a2a-protocol.org") {
		return true
	}
	code := f.Get("error.code")
	last := len("-3200")
	return !f.Named("message") && len(code) == last+1 && bytes.HasPrefix(code, []byte("-3200")) && code[last] > '0'
}

// readA2A reads a result by its kind, or an error.
func readA2A(f *Frame, p *Progress) bool {
	switch string(f.Get("result.kind")) {
	case "task":
		p.ID(f.Get("result.id"))
		stateOf(f, "result.status.state", "result.status.message.parts[].text").read(p)
	case "status-update":
		p.ID(f.Get("result.taskId"))
		s := stateOf(f, "result.status.state", "result.status.message.parts[].text")
		s.final = f.Kind("result.final")
		s.read(p)
	case "artifact-update":
		p.ID(f.Get("result.taskId"))
	case "message":
		lone(p)
		p.ID(f.Get("result.taskId"))
	default:
		return readA2AError(f, p)
	}
	return true
}

// lone notes a message, which is the whole answer if there is no task.
func lone(p *Progress) {
	if p.operation == "" {
		p.Finish(Completed)
	}
}

// readA2AError reads what is no result.
func readA2AError(f *Frame, p *Progress) bool {
	if f.Kind("error") == Object {
		p.Fail(nil, f.Get("error.code"), f.Get("error.message"))
		return true
	}
	return f.Is("jsonrpc", "2.0")
}

// A taskState is what an event says of its task.
type taskState struct {
	name    []byte
	message []byte // of the agent, with the state
	final   Kind   // Absent: the event doesn't say
}

// stateOf returns the state at the given paths.
func stateOf(f *Frame, state, text string) taskState {
	return taskState{name: f.Get(state), message: f.At(text, 0)}
}

// read notes the state.
func (s taskState) read(p *Progress) {
	outcome := outcomeOf(s.name)
	if outcome == Failed {
		p.Fail(s.name, nil, s.message)
		return
	}
	if p.finished == Incomplete && outcome != Incomplete {
		p.Restart([]byte(p.operation)) // it no longer waits
	}
	switch {
	case outcome == Unjudged && s.final != True:
	case outcome == Completed && s.final == False:
		p.Stop(Completed, s.name)
	case outcome == Completed:
		p.Stop(Completed, s.name)
		p.Finish(Completed)
	default: // the task goes on without the stream, or waits
		p.Stop(Incomplete, s.name)
		p.Finish(Incomplete)
	}
}

// outcomeOf returns what a task's state means for the stream. Unjudged: the
// task goes on. The long names are those of protocol buffers.
func outcomeOf(state []byte) State {
	switch string(state) {
	case "completed", "TASK_STATE_COMPLETED":
		return Completed
	case "failed", "canceled", "rejected",
		"TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_CANCELLED", "TASK_STATE_REJECTED":
		return Failed
	case "input-required", "auth-required", "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED":
		return Incomplete
	}
	return Unjudged
}
