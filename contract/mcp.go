package contract

import (
	"bytes"
	"net/http"
)

// mcp is the contract of what a server of the Model Context Protocol answers to
// a POST (Streamable HTTP), from revision 2025-03-26 on, and of the rest of such
// an answer, which is fetched with a GET that has a Last-Event-ID.
//
// Events of JSON-RPC messages, or of arrays of them (2025-03-26); the response
// to the request ends the stream, and a response is what has a result or an
// error and no method: the server's own requests and notifications come before
// it. An error is a failure, whereas a result with isError is the result of a
// tool that failed. From 2025-11-25 on a server may close the connection once
// it has sent an event id, first perhaps with an event without data, and the
// reader fetches the rest by that id; so the end of the body is no error then.
// In 2026-07-28 there are no ids, and a result may say that it waits for input.
//
// Which requests were sent isn't known here: where a batch is answered in
// several events, the first response looks like the end of all. Of a longer
// array only the first two dozen messages are looked at.
func mcp() Contract {
	return Contract{
		Protocol: "mcp",
		Framing:  SSE,
		Paths:    rpcPaths(),
		Cursor:   EventID,
		EOF:      EOFAfterID,
		Claim:    claimMCP,
		Read:     readMCP,
	}
}

// mcpListening is the contract of the stream that a GET opens, which has no end
// ("Listening for Messages from the Server"). Where the request's header isn't
// known, one that fetches the rest of an answer passes for such a stream: then
// the response may be in it, but need not be.
func mcpListening() Contract {
	c := mcp()
	c.EOF, c.Claim = EOFEnds, claimMCPListening
	return c
}

// mcpSession is the contract of the transport of revision 2024-11-05, where one
// stream without an end takes all messages of a session: no response ends it.
func mcpSession() Contract {
	return Contract{
		Protocol: "mcp",
		Framing:  SSE,
		Paths:    []string{"jsonrpc"},
		EOF:      EOFEnds,
		Claim:    claimMCPSession,
		Read: func(f *Frame, _ *Progress) bool {
			return f.Is("jsonrpc", "2.0") || isEndpoint(f)
		},
	}
}

// claimMCP takes what answers a request, or is the rest of such an answer.
func claimMCP(a *Answer, f *Frame) Claim {
	if isListening(a) {
		return No
	}
	return claimMessages(a, f)
}

// claimMCPListening takes the same where a GET asked for what comes.
func claimMCPListening(a *Answer, f *Frame) Claim {
	if !isListening(a) {
		return No
	}
	return claimMessages(a, f)
}

// isListening reports whether a asks for no answer in particular. A GET with an
// event id asks for the rest of the stream that the id is of ("Resumability and
// Redelivery"), and that is an answer, unless a listening stream had ids too:
// such a one is held to end behind another id as well.
func isListening(a *Answer) bool {
	return a.Method == http.MethodGet && a.Request.Get("Last-Event-ID") == ""
}

// claimMessages takes an answer that says that it is MCP's, and JSON-RPC
// messages.
func claimMessages(a *Answer, f *Frame) Claim {
	if saysMCP(a) && !isEndpoint(f) || isMCP(f) {
		return Yes
	}
	return Maybe
}

// saysMCP reports whether a header of the answer, or of its request, is one of
// the protocol's ("Session Management", "Protocol Version Header").
func saysMCP(a *Answer) bool {
	return a.Header.Get("Mcp-Session-Id") != "" ||
		a.Request.Get("Mcp-Session-Id") != "" || a.Request.Get("Mcp-Protocol-Version") != ""
}

// claimMCPSession takes the event that such a session begins with.
func claimMCPSession(_ *Answer, f *Frame) Claim {
	if isEndpoint(f) {
		return Yes
	}
	return No
}

// isEndpoint reports whether f says where to the messages of a session go.
func isEndpoint(f *Frame) bool {
	to := f.Text()
	return f.Named("endpoint") && (bytes.HasPrefix(to, []byte("/")) || bytes.HasPrefix(to, []byte("http")))
}

// isMCP reports whether f is a message of MCP's, or the event without data that
// the Go SDK names "prime".
func isMCP(f *Frame) bool {
	switch {
	case string(f.At("[].jsonrpc", 0)) == "2.0":
		return true
	case !f.Is("jsonrpc", "2.0"):
		return f.Named("prime") && isEmpty(f)
	}
	return isMCPMethod(f.Get("method")) || f.Kind("result") == Object || f.Kind("error") == Object
}

// isMCPMethod reports whether a server sends messages with the method.
func isMCPMethod(method []byte) bool {
	area, _, found := bytes.Cut(method, []byte("/"))
	switch string(area) {
	case "notifications", "sampling", "elicitation", "roots", "tasks":
		return found
	}
	return false
}

// isEmpty reports whether f has no data.
func isEmpty(f *Frame) bool { return f.state == plain && len(f.text) == 0 }

// readMCP reads a message, or several in an array.
func readMCP(f *Frame, p *Progress) bool {
	if n := f.Len("[]"); n > 0 {
		for i := range n {
			messageAt(f, i).read(p)
		}
		return true
	}
	if isEmpty(f) {
		p.Ping()
		return true
	}
	message(f).read(p)
	return f.Is("jsonrpc", "2.0")
}

// An rpc is what matters of a JSON-RPC message.
type rpc struct {
	method, result, err Kind
	id, outcome         []byte
	code, message       []byte
}

// rpcPaths returns what is looked at in a message, alone or in an array.
func rpcPaths() []string {
	paths := []string{"[]?"}
	for _, at := range []string{"", "[]."} {
		paths = append(paths, at+"jsonrpc", at+"id", at+"method", at+"result?", at+"result.resultType",
			at+"error?", at+"error.code", at+"error.message")
	}
	return paths
}

// message returns the message that f is.
func message(f *Frame) rpc {
	return rpc{
		method: f.Kind("method"), result: f.Kind("result"), err: f.Kind("error"),
		id: f.Get("id"), outcome: f.Get("result.resultType"),
		code: f.Get("error.code"), message: f.Get("error.message"),
	}
}

// messageAt returns the i-th message in the array that f is.
func messageAt(f *Frame, i int) rpc {
	return rpc{
		method: f.KindAt("[].method", i), result: f.KindAt("[].result", i), err: f.KindAt("[].error", i),
		id: f.At("[].id", i), outcome: f.At("[].result.resultType", i),
		code: f.At("[].error.code", i), message: f.At("[].error.message", i),
	}
}

// read notes a response.
func (m rpc) read(p *Progress) {
	switch {
	case m.method != Absent:
	case m.err == Object:
		p.ID(m.id)
		p.Fail(nil, m.code, m.message)
	case m.result != Absent:
		p.ID(m.id)
		if string(m.outcome) == "input_required" {
			p.Stop(Incomplete, m.outcome)
		}
		p.Finish(Completed)
	}
}
