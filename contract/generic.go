package contract

import "net/http"

// eventSource is the contract of an event stream that a browser would read
// (HTML standard, section 9.2): it has no end, the end of the body means that
// the reader should come again, and the last event id is where from. It governs
// what was asked for with GET, and what no other contract of its set claims; so
// it belongs at the end of a set.
func eventSource() Contract {
	return Contract{
		Protocol: "eventsource",
		Framing:  SSE,
		Cursor:   EventID,
		EOF:      EOFEnds,
		Names:    func([]byte) Use { return Skip },
		Claim:    claimEventSource,
		Read:     func(*Frame, *Progress) bool { return true },
	}
}

// claimEventSource takes what was asked for with GET. Without the method, an
// answer to a POST that ends early would pass for a whole one.
func claimEventSource(a *Answer, _ *Frame) Claim {
	if a.Method == http.MethodGet {
		return Otherwise
	}
	return No
}
