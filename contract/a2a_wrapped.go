package contract

import "bytes"

// a2aWrapped is the contract of the Agent2Agent protocol from 1.0 on, over
// JSON-RPC, and over plain HTTP also of 0.3.
//
// Each event is a StreamResponse (a2a.proto), which has one of the members task,
// message, statusUpdate and artifactUpdate; over JSON-RPC it is the result. The
// stream ends when the task does or waits for somebody, or with a message alone
// (sections 3.1.2 and 3.1.6); there is no final any more, but in 0.3 there was.
// Whoever subscribes to a task gets it as it is and then what follows, so there
// are no positions.
func a2aWrapped(envelope string) Contract {
	w := newWrapped(envelope)
	return Contract{
		Protocol: "a2a",
		Framing:  SSE,
		Paths: []string{
			"jsonrpc", w.task, w.taskState, w.taskText,
			w.update, w.updateState, w.updateText, w.final + "?",
			w.artifact, w.artifactBody + "?", w.messageID + "?", w.messageTask, w.messageParts + "?",
			"error?", "error.code", "error.status", "error.message", "error.data[].domain", "error.details[].domain",
		},
		Claim: w.claim,
		Read:  w.read,
	}
}

// A wrapped is where the members of a StreamResponse are.
type wrapped struct {
	bare                                 bool // it is not in an envelope
	task, taskState, taskText            string
	update, updateState, updateText      string
	final                                string
	artifact, artifactBody               string
	messageID, messageTask, messageParts string
}

// newWrapped returns the paths behind the given one.
func newWrapped(at string) *wrapped {
	return &wrapped{
		bare:         at == "",
		task:         at + "task.id",
		taskState:    at + "task.status.state",
		taskText:     at + "task.status.message.parts[].text",
		update:       at + "statusUpdate.taskId",
		updateState:  at + "statusUpdate.status.state",
		updateText:   at + "statusUpdate.status.message.parts[].text",
		final:        at + "statusUpdate.final",
		artifact:     at + "artifactUpdate.taskId",
		artifactBody: at + "artifactUpdate.artifact",
		messageID:    at + "message.messageId",
		messageTask:  at + "message.taskId",
		messageParts: at + "message.parts",
	}
}

// claim takes a member by what it must have, and an error of A2A's own.
func (w *wrapped) claim(_ *Answer, f *Frame) Claim {
	if !w.bare && !f.Is("jsonrpc", "2.0") {
		return Maybe
	}
	if f.Is("error.data[].domain", "a2a-protocol.org") || f.Is("error.details[].domain", "a2a-protocol.org") {
		return Yes
	}
	if w.is(f) {
		return Yes
	}
	return Maybe
}

// is reports whether f is a StreamResponse.
func (w *wrapped) is(f *Frame) bool {
	return f.Has(w.task) && isProtoState(f.Get(w.taskState)) ||
		f.Has(w.update) && isProtoState(f.Get(w.updateState)) ||
		f.Has(w.artifact) && f.Kind(w.artifactBody) == Object ||
		f.Kind(w.messageID) == String && f.Kind(w.messageParts) == Array
}

// isProtoState reports whether a state is written as protocol buffers have it.
func isProtoState(state []byte) bool { return bytes.HasPrefix(state, []byte("TASK_STATE_")) }

// read reads a StreamResponse or an error.
func (w *wrapped) read(f *Frame, p *Progress) bool {
	switch {
	case f.Kind("error") == Object:
		p.Fail(f.Get("error.status"), f.Get("error.code"), f.Get("error.message"))
		return true
	case f.Kind(w.messageID) == String:
		lone(p)
	case f.Has(w.update):
		s := stateOf(f, w.updateState, w.updateText)
		s.final = f.Kind(w.final)
		p.ID(f.Get(w.update))
		s.read(p)
	default:
		p.ID(f.Get(w.task))
		stateOf(f, w.taskState, w.taskText).read(p)
	}
	p.ID(f.Get(w.artifact))
	p.ID(f.Get(w.messageTask))
	return w.is(f) || !w.bare && f.Is("jsonrpc", "2.0")
}
