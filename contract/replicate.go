package contract

import (
	"bytes"
	"strings"
)

// replicate is the contract of the stream of a Replicate prediction.
//
// Named events: output with text, logs, error with its detail, done with an
// object that is empty unless it gives the reason canceled or error (Replicate,
// "Streaming output"). Text is data, so nothing in it matters. The names are
// anybody's: what tells is the event id, a time in seconds and a counter, or the
// host.
func replicate() Contract {
	return Contract{
		Protocol: "replicate",
		Framing:  SSE,
		Paths:    []string{"reason", "detail"},
		Cursor:   EventID,
		Names:    namesOfReplicate,
		Claim:    claimReplicate,
		Read:     readReplicate,
	}
}

// namesOfReplicate spares the scan of what carries output.
func namesOfReplicate(name []byte) Use {
	if string(name) == "output" || string(name) == "logs" {
		return Skip
	}
	return Read
}

// claimReplicate takes an event of a known name.
func claimReplicate(a *Answer, f *Frame) Claim {
	switch string(f.Name) {
	case "output", "logs", "error", "done":
		if isReplicateID(f.id) || a.URL != nil && (strings.HasSuffix(a.URL.Hostname(), ".replicate.com") ||
			strings.HasSuffix(a.URL.Hostname(), ".replicate.delivery")) {
			return Yes
		}
	}
	return Maybe
}

// isReplicateID reports whether an event id is a time, of this century, and a
// counter.
func isReplicateID(id []byte) bool {
	seconds, counter, found := bytes.Cut(id, []byte(":"))
	return found && len(seconds) == len("1690212292") && isDigits(seconds) && isDigits(counter)
}

// isDigits reports whether text is decimal digits, at least one.
func isDigits(text []byte) bool {
	for _, b := range text {
		if b < '0' || b > '9' {
			return false
		}
	}
	return len(text) > 0
}

// readReplicate reads an event by its name.
func readReplicate(f *Frame, p *Progress) bool {
	switch string(f.Name) {
	case "done":
		endReplicate(p, f.Get("reason"))
	case "error":
		message := f.Get("detail")
		if message == nil {
			message = f.Text()
		}
		p.Fail(nil, nil, message)
	default:
		return f.Named("output") || f.Named("logs")
	}
	return true
}

// endReplicate notes why a prediction is done.
func endReplicate(p *Progress, reason []byte) {
	switch string(reason) {
	case "canceled", "error":
		p.Fail(reason, nil, nil)
	default:
		p.Finish(Completed)
	}
}
