package contract

import (
	"bytes"
	"strings"
)

// langGraph is the contract of a run that a LangGraph server streams.
//
// Events named after the stream modes, metadata with the run_id first; the end
// of the body is the end, which older servers announce with an event "end". The
// event "error" reports that the run failed. A run that an interrupt stopped
// waits for somebody to resume it. Event ids are positions of runs that were
// asked to be resumable; others have none (LangGraph Platform, "Join stream").
func langGraph() Contract {
	return Contract{
		Protocol: "langgraph",
		Framing:  SSE,
		Paths:    []string{"run_id", "error", "message", "__interrupt__"},
		Cursor:   EventID,
		EOF:      EOFEnds,
		Names:    namesOfLangGraph,
		Claim:    claimLangGraph,
		Read:     readLangGraph,
	}
}

// namesOfLangGraph spares the scan of what carries output only. Behind a bar is
// the part of the graph that it comes from.
func namesOfLangGraph(name []byte) Use {
	mode, _, _ := bytes.Cut(name, []byte("|"))
	switch string(mode) {
	case "messages", "messages/partial", "messages/complete", "messages/metadata", "messages-tuple",
		"custom", "debug", "events", "tasks", "checkpoints":
		return Skip
	}
	return Read
}

// claimLangGraph takes the metadata of a run, events that only this server
// names so, and an answer that says which run it is of.
func claimLangGraph(a *Answer, f *Frame) Claim {
	at := a.Header.Get("Content-Location")
	switch {
	case f.Named("metadata") && f.Kind("run_id") == String:
		return Yes
	case f.Named("messages/partial"), f.Named("messages/complete"), f.Named("messages/metadata"):
		return Yes
	case strings.Contains(at, "/runs/") && (strings.HasPrefix(at, "/threads/") || strings.HasPrefix(at, "/runs/")):
		return Yes
	}
	return Maybe
}

// readLangGraph reads an event by its name.
func readLangGraph(f *Frame, p *Progress) bool {
	mode, _, _ := bytes.Cut(f.Name, []byte("|"))
	switch string(mode) {
	case "metadata":
		p.ID(f.Get("run_id"))
	case "error":
		p.Fail(f.Get("error"), nil, f.Get("message"))
	case "end":
		p.Finish(Completed)
	case "values", "updates":
		if f.Kind("__interrupt__") == Array && f.Has("__interrupt__") {
			p.Stop(Incomplete, []byte("interrupt"))
		}
	}
	return len(f.Name) > 0
}
