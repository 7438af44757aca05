package contract_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rubicon-go/rubicon/contract"
)

const (
	mcpProgress = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":1}}\n\n"
	mcpRequest  = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"sampling/createMessage\",\"params\":{\"messages\":[],\"maxTokens\":1}}\n\n"
	mcpResult   = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"content\":[]}}\n\n"
	mcpError    = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32603,\"message\":\"no\"}}\n\n"
)

var mcpFailure = contract.Failure{Code: "-32603", Message: "no"}

func TestMCP(t *testing.T) {
	checkEnds(t, "mcp", contract.Answer{ContentType: "text/event-stream"}, []wireEnd{
		{name: "result", body: mcpProgress + mcpResult, state: contract.Completed, operation: "7"},
		{name: "id is a string", body: `data: {"jsonrpc":"2.0","id":"a-1","result":{}}` + "\n\n", state: contract.Completed, operation: "a-1"},
		{name: "no event names", body: `data: {"jsonrpc":"2.0","id":1,"result":{}}` + "\n\n", state: contract.Completed, operation: "1"},
		{name: "members in another order", body: `data: {"result":{"x":{"method":"y","id":3}},"id":1,"jsonrpc":"2.0"}` + "\n\n", state: contract.Completed, operation: "1"},
		{name: "null beside the result", body: `data: {"jsonrpc":"2.0","id":1,"error":null,"result":{}}` + "\n\n", state: contract.Completed, operation: "1"},
		{name: "error of the tool", body: `data: {"jsonrpc":"2.0","id":1,"result":{"isError":true,"content":[]}}` + "\n\n", state: contract.Completed, operation: "1"},
		{name: "error", body: mcpError, state: contract.Failed, operation: "7", failure: mcpFailure},
		{name: "error of no request", body: `data: {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse"}}` + "\n\n",
			state: contract.Failed, failure: contract.Failure{Code: "-32700", Message: "parse"}},
		{name: "input required", body: `data: {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{}}}` + "\n\n",
			state: contract.Incomplete, operation: "1", reason: "input_required"},
		{name: "empty result of a subscription", body: mcpProgress + `data: {"jsonrpc":"2.0","id":1,"result":{}}` + "\n\n", state: contract.Completed, operation: "1"},
		{name: "after the result", body: mcpResult + mcpProgress, state: contract.Completed, operation: "7"},

		{name: "notification alone", body: mcpProgress, state: contract.Interrupted, illegal: true},
		{name: "request of the server", body: mcpRequest, state: contract.Interrupted, illegal: true},
		{name: "request with a result", body: `data: {"jsonrpc":"2.0","id":1,"method":"roots/list","result":{}}` + "\n\n", state: contract.Interrupted, illegal: true},
		{name: "notification after an id", body: "id: s_1\n" + mcpProgress, state: contract.Interrupted, cursor: "s_1"},
		{name: "primed and closed", body: "event: prime\nid: s_0\ndata:\n\n" + mcpProgress + "event: close\nretry: 300\ndata:\n\n",
			state: contract.Interrupted, cursor: "s_0"},
		{name: "primed alone", body: "event: prime\nid: s_0\ndata: \n\n", state: contract.Interrupted, cursor: "s_0"},
		{name: "primed without a name", body: "id: s_0\ndata: \n\n" + mcpResult, state: contract.Completed, operation: "7", cursor: "s_0"},
		{name: "cut in the result", body: mcpProgress + mcpResult[:len(mcpResult)-2], state: contract.Interrupted, illegal: true, complete: true},
		{name: "cut behind the result's line", body: mcpProgress + mcpResult[:len(mcpResult)-1], state: contract.Interrupted, illegal: true, complete: true},
		{name: "merged frames", body: mcpProgress + "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"resu\n" + mcpResult, state: contract.Interrupted, illegal: true},

		{name: "batch", body: `data: [{"jsonrpc":"2.0","id":1,"result":{"content":[{"id":9}]}},{"jsonrpc":"2.0","id":2,"result":{}}]` + "\n\n", state: contract.Completed, operation: "1"},
		{name: "batch with an error", body: `data: [{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"no"}}]` + "\n\n",
			state: contract.Failed, operation: "1", failure: mcpFailure},
		{name: "batch that waits", body: `data: [{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required"}}]` + "\n\n",
			state: contract.Incomplete, operation: "1", reason: "input_required"},
		{name: "batch with long errors", body: "data: [" + strings.Repeat(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"`+strings.Repeat("x", 512)+`"}},`, 8) + `{"jsonrpc":"2.0","id":2,"result":{}}]` + "\n\n",
			state: contract.Failed, operation: "1", failure: contract.Failure{Code: "-32603", Message: strings.Repeat("x", 512)}},
		{name: "batch of notifications", body: `data: [{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":2,"method":"ping"}]` + "\n\n", state: contract.Interrupted, illegal: true},
		{name: "batch in pieces, one an error", body: mcpResult + mcpError, state: contract.Failed, operation: "7", failure: mcpFailure},

		{name: "result in a text", body: `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"\"id\":1,\"result\":{}}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"}}` + "\n\n",
			state: contract.Interrupted, illegal: true},
		{name: "result in params", body: `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"id":1,"result":{},"error":{"code":1}}}` + "\n\n",
			state: contract.Interrupted, illegal: true},
		{name: "error in the result", body: `data: {"jsonrpc":"2.0","id":1,"result":{"error":{"code":1,"message":"m"},"structuredContent":{"resultType":"input_required"}}}` + "\n\n",
			state: contract.Completed, operation: "1"},
	})
}

func TestMCPListening(t *testing.T) {
	checkEnds(t, "mcp", contract.Answer{ContentType: "text/event-stream", Method: http.MethodGet}, []wireEnd{
		{name: "notification", body: mcpProgress, state: contract.Completed},
		{name: "request of the server", body: mcpRequest, state: contract.Completed},
		{name: "rest of a call", body: "id: s_4\n" + mcpProgress + "id: s_5\n" + mcpResult, state: contract.Completed, operation: "7", cursor: "s_5"},
		{name: "failed call", body: mcpProgress + mcpError, state: contract.Failed, operation: "7", failure: mcpFailure},
		{name: "torn", body: mcpProgress + mcpRequest[:50], state: contract.Interrupted, illegal: true},
	})
}

// TestMCPResumed has the rest of an answer, fetched by its last event id: it
// ends with the response, or behind another id, whereas a stream that is only
// listened to may end anywhere.
func TestMCPResumed(t *testing.T) {
	resumed := http.Header{"Last-Event-Id": {"s_3"}, "Mcp-Session-Id": {"s"}}
	a := contract.Answer{ContentType: "text/event-stream", Method: http.MethodGet, Request: resumed}
	checkEnds(t, "mcp", a, []wireEnd{
		{name: "rest of a call", body: "id: s_4\n" + mcpProgress + "id: s_5\n" + mcpResult, state: contract.Completed, operation: "7", cursor: "s_5"},
		{name: "response without an id", body: mcpResult, state: contract.Completed, operation: "7"},
		{name: "failed call", body: mcpError, state: contract.Failed, operation: "7", failure: mcpFailure},
		{name: "closed again", body: "id: s_4\n" + mcpProgress + "event: close\nretry: 300\ndata:\n\n", state: contract.Interrupted, cursor: "s_4"},
		{name: "no further than before", body: mcpProgress, state: contract.Interrupted, illegal: true},
		{name: "nothing", body: "", state: contract.Interrupted, illegal: true},
		{name: "comments", body: ": ping\n\n", state: contract.Interrupted, illegal: true},
	})
	listening := http.Header{"Mcp-Session-Id": {"s"}, "Accept": {"text/event-stream"}}
	a.Request = listening
	checkEnds(t, "mcp", a, []wireEnd{
		{name: "listening", body: mcpProgress, state: contract.Completed},
		{name: "listening to nothing", body: "", state: contract.Completed},
		{name: "listening with ids", body: "id: s_4\n" + mcpProgress, state: contract.Completed, cursor: "s_4"},
	})
	// An id tells a resumed event source nothing of the kind.
	a.Request = http.Header{"Last-Event-Id": {"7"}}
	checkEnds(t, "eventsource", a, []wireEnd{
		{name: "another's stream", body: "data: x\n\n", state: contract.Completed},
		{name: "another's stream without events", body: "", state: contract.Completed},
	})
}

// TestMCPRequestHeader has answers of which only the request says what they
// are.
func TestMCPRequestHeader(t *testing.T) {
	for _, name := range []string{"Mcp-Session-Id", "Mcp-Protocol-Version"} {
		a := contract.Answer{ContentType: "text/event-stream", Method: http.MethodPost, Request: http.Header{name: {"x"}}}
		checkEnds(t, "mcp", a, []wireEnd{
			{name: "nothing", body: "", state: contract.Interrupted, illegal: true},
			{name: "primed", body: "id: s_0\ndata: \n\n", state: contract.Interrupted, cursor: "s_0"},
			{name: "error with one of A2A's codes", body: `data: {"jsonrpc":"2.0","id":7,"error":{"code":-32001,"message":"no"}}` + "\n\n",
				state: contract.Failed, operation: "7", failure: contract.Failure{Code: "-32001", Message: "no"}},
		})
	}
}

// TestMCPSession has the transport of 2024-11-05, where an answer ends nothing
// and its error is one answer among others.
func TestMCPSession(t *testing.T) {
	const endpoint = "event: endpoint\ndata: /messages/?session_id=1\n\n"
	for _, header := range []http.Header{nil, {"Mcp-Protocol-Version": {"2025-06-18"}}} {
		a := contract.Answer{ContentType: "text/event-stream", Method: http.MethodGet, Request: header}
		checkEnds(t, "mcp", a, []wireEnd{
			{name: "asked for by a newer client", body: endpoint + mcpError + mcpResult, state: contract.Completed},
		})
	}
	checkEnds(t, "mcp", contract.Answer{ContentType: "text/event-stream"}, []wireEnd{
		{name: "endpoint", body: endpoint, state: contract.Completed},
		{name: "answers", body: endpoint + mcpResult + mcpError + mcpProgress, state: contract.Completed},
		{name: "torn", body: endpoint + mcpResult + mcpError[:30], state: contract.Interrupted, illegal: true},
	})
}

// TestMCPSessionHeader has an answer that says what it is before its first
// message does.
func TestMCPSessionHeader(t *testing.T) {
	a := contract.Answer{Method: http.MethodPost, Header: http.Header{
		"Content-Type": {"text/event-stream"}, "Mcp-Session-Id": {"s"},
	}}
	checkEnds(t, "mcp", a, []wireEnd{
		{name: "primed", body: "id: s_0\ndata: \n\n", state: contract.Interrupted, cursor: "s_0"},
		{name: "result", body: "id: s_0\ndata: \n\n" + mcpResult, state: contract.Completed, operation: "7", cursor: "s_0"},
	})
}

// TestMCPPings shows that an event without data is no progress.
func TestMCPPings(t *testing.T) {
	w := known(t).Watch(contract.Answer{ContentType: "text/event-stream"})
	w.Write([]byte(mcpProgress))
	before := w.Progress()
	w.Write([]byte("event: close\ndata:\n\n: ping\n\n"))
	if after := w.Progress(); after != before || before != 1 {
		t.Errorf("progress %d, then %d, want 1 both times", before, after)
	}
	w.Write([]byte(mcpProgress))
	if got := w.Progress(); got != 2 {
		t.Errorf("progress %d, want 2", got)
	}
}
