package contract

import (
	"bytes"
	"net/http"
)

// mcp is the contract of what a server of the Model Context Protocol answers to
// a POST (Streamable HTTP), from revision 2025-03-26 on.
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
// several events, the first response looks like the end of all.
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
// ("Listening for Messages from the Server"). One that is opened to fetch the
// rest of an answer has the response in it.
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

// claimMCP takes an answer of a session, and JSON-RPC messages.
func claimMCP(a *Answer, f *Frame) Claim {
	switch {
	case a.Method == http.MethodGet:
		return No
	case a.Header.Get("Mcp-Session-Id") != "" || isMCP(f):
		return Yes
	}
	return Maybe
}

// claimMCPListening takes the same where it was asked for with GET.
func claimMCPListening(a *Answer, f *Frame) Claim {
	switch {
	case a.Method != http.MethodGet:
		return No
	case a.Header.Get("Mcp-Session-Id") != "" && !isEndpoint(f) || isMCP(f):
		return Yes
	}
	return Maybe
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
	case f.Is("[].jsonrpc", "2.0"):
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
