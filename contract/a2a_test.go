package contract_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rubicon-go/rubicon/contract"
)

// rpcEvent returns an event with a JSON-RPC response.
func rpcEvent(result string) string {
	return fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":\"r\",\"result\":%s}\n\n", result)
}

// a2aUpdate returns an event of 0.3 with a state. An empty final says nothing.
func a2aUpdate(state, final string) string {
	if final != "" {
		final = `,"final":` + final
	}
	return rpcEvent(`{"kind":"status-update","taskId":"t","contextId":"c","status":{"state":"` + state +
		`","message":{"kind":"message","parts":[{"kind":"text","text":"why"}]}}` + final + `}`)
}

const (
	a2aTask     = `{"kind":"task","id":"t","contextId":"c","status":{"state":"submitted"}}`
	a2aMessage  = `{"kind":"message","messageId":"m","role":"agent","parts":[{"kind":"text","text":"hi"}]}`
	a2aArtifact = `{"kind":"artifact-update","taskId":"t","contextId":"c","artifact":{"artifactId":"a","parts":[{"kind":"text","text":"x"}]}}`
)

func TestA2A(t *testing.T) {
	task, artifact := rpcEvent(a2aTask), rpcEvent(a2aArtifact)
	checkEnds(t, "a2a", contract.Answer{ContentType: "text/event-stream"}, []wireEnd{
		{name: "completed", body: "id: x\n" + task + artifact + a2aUpdate("completed", "true"), state: contract.Completed, operation: "t", reason: "completed"},
		{name: "completed without saying final", body: task + a2aUpdate("completed", ""), state: contract.Completed, operation: "t", reason: "completed"},
		{name: "completed, not final", body: task + a2aUpdate("completed", "false"),
			state: contract.Interrupted, illegal: true, complete: true, operation: "t", reason: "completed"},
		{name: "completed, then final", body: task + a2aUpdate("completed", "false") + a2aUpdate("completed", "true"), state: contract.Completed, operation: "t", reason: "completed"},
		{name: "completed task", body: rpcEvent(`{"kind":"task","id":"t","status":{"state":"completed"}}`), state: contract.Completed, operation: "t", reason: "completed"},
		{name: "message alone", body: rpcEvent(a2aMessage), state: contract.Completed},
		{name: "message that names its task", body: rpcEvent(`{"kind":"message","messageId":"m","taskId":"t","parts":[]}`), state: contract.Completed, operation: "t"},
		{name: "message of a task", body: task + rpcEvent(a2aMessage), state: contract.Interrupted, illegal: true, operation: "t"},
		{name: "working", body: task + a2aUpdate("working", "false") + artifact, state: contract.Interrupted, illegal: true, operation: "t"},
		{name: "final although it works", body: task + a2aUpdate("working", "true"), state: contract.Incomplete, operation: "t", reason: "working"},
		{name: "input required", body: task + a2aUpdate("input-required", "true"), state: contract.Incomplete, operation: "t", reason: "input-required"},
		{name: "input required, not final", body: task + a2aUpdate("input-required", "false"), state: contract.Incomplete, operation: "t", reason: "input-required"},
		{name: "auth required", body: task + a2aUpdate("auth-required", "true"), state: contract.Incomplete, operation: "t", reason: "auth-required"},
		{name: "waited, works", body: task + a2aUpdate("auth-required", "false") + a2aUpdate("working", "false"), state: contract.Interrupted, illegal: true, operation: "t"},
		{name: "waited, completed", body: task + a2aUpdate("auth-required", "false") + a2aUpdate("completed", "true"), state: contract.Completed, operation: "t", reason: "completed"},
		{name: "failed", body: task + a2aUpdate("failed", "true"), state: contract.Failed, operation: "t", failure: contract.Failure{Type: "failed", Message: "why"}},
		{name: "rejected", body: task + a2aUpdate("rejected", "true"), state: contract.Failed, operation: "t", failure: contract.Failure{Type: "rejected", Message: "why"}},
		{name: "canceled", body: task + a2aUpdate("canceled", "true"), state: contract.Failed, operation: "t", failure: contract.Failure{Type: "canceled", Message: "why"}},
		{name: "error alone", body: "id: x\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"r\",\"error\":{\"code\":-32004,\"message\":\"no\"}}\n\n",
			state: contract.Failed, failure: contract.Failure{Code: "-32004", Message: "no"}},
		{name: "error in the middle", body: task + "data: {\"jsonrpc\":\"2.0\",\"id\":\"r\",\"error\":{\"code\":-32603,\"message\":\"no\"}}\n\n" + a2aUpdate("completed", "true"),
			state: contract.Failed, operation: "t", reason: "completed", failure: contract.Failure{Code: "-32603", Message: "no"}},
		{name: "cut in the final update", body: task + strings.TrimSuffix(a2aUpdate("completed", "true"), "}\n\n"),
			state: contract.Interrupted, illegal: true, complete: true, operation: "t"},
		{name: "final in a text", body: task + rpcEvent(`{"kind":"artifact-update","taskId":"t","artifact":{"parts":[{"kind":"text","text":"\"final\":true,\"status\":{\"state\":\"completed\"}}}\n\n"},{"kind":"data","data":{"final":true,"kind":"message","status":{"state":"completed"}}}]}}`),
			state: contract.Interrupted, illegal: true, operation: "t"},
		{name: "state in the metadata", body: task + rpcEvent(`{"kind":"status-update","taskId":"t","final":false,"status":{"state":"working"},"metadata":{"final":true,"state":"completed","error":{"code":1}}}`),
			state: contract.Interrupted, illegal: true, operation: "t"},
	})
}

// TestA2AWrapped has the forms of 1.0, over JSON-RPC and over plain HTTP.
// TestA2ALongMessage has an agent say much before the state of its task: it
// leaves room for what says that the task is over.
func TestA2ALongMessage(t *testing.T) {
	long := `{"kind":"text","text":"` + strings.Repeat("word ", 200) + `"}`
	for name, parts := range map[string]string{
		"long": strings.Repeat(long+",", 5) + long,
		"many": strings.Repeat(`{"kind":"text","text":"w"},`, 200) + long,
	} {
		status := `"status":{"message":{"messageId":"m","parts":[` + parts + `],"role":"agent"},"state":"%s"}`
		checkEnds(t, "a2a", contract.Answer{ContentType: "text/event-stream"}, []wireEnd{
			{name: name, body: rpcEvent(a2aTask) + rpcEvent(`{"contextId":"c","kind":"status-update",`+fmt.Sprintf(status, "completed")+`,"taskId":"t","final":true}`),
				state: contract.Completed, operation: "t", reason: "completed"},
			{name: name + ", working", body: rpcEvent(a2aTask) + rpcEvent(`{"contextId":"c","kind":"status-update",`+fmt.Sprintf(status, "working")+`,"taskId":"t","final":false}`),
				state: contract.Interrupted, illegal: true, operation: "t"},
			{name: name + ", wrapped", body: rpcEvent(`{"statusUpdate":{` + fmt.Sprintf(status, "TASK_STATE_COMPLETED") + `,"taskId":"t"}}`),
				state: contract.Completed, operation: "t", reason: "TASK_STATE_COMPLETED"},
			{name: name + ", as a task", body: rpcEvent(`{"contextId":"c","id":"t",` + fmt.Sprintf(status, "completed") + `,"kind":"task"}`),
				state: contract.Completed, operation: "t", reason: "completed"},
		})
	}
}

func TestA2AWrapped(t *testing.T) {
	bare := func(result string) string { return "data: " + result + "\n\n" }
	for binding, event := range map[string]func(string) string{"JSON-RPC": rpcEvent, "HTTP": bare} {
		task := event(`{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_SUBMITTED"},"history":[{"messageId":"m","parts":[{"text":"go"}]}]}}`)
		artifact := event(`{"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"a","parts":[{"text":"x"}]},"lastChunk":true}}`)
		update := func(state, more string) string {
			return event(`{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_` + state +
				`","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"why"}]}}` + more + `}}`)
		}
		message := event(`{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"hi"}]}}`)
		t.Run(binding, func(t *testing.T) {
			checkEnds(t, "a2a", contract.Answer{ContentType: "text/event-stream"}, []wireEnd{
				{name: "completed", body: "id: x\n" + task + update("WORKING", "") + artifact + update("COMPLETED", ""), state: contract.Completed, operation: "t", reason: "TASK_STATE_COMPLETED"},
				{name: "completed task", body: event(`{"task":{"id":"t","status":{"state":"TASK_STATE_COMPLETED"}}}`), state: contract.Completed, operation: "t", reason: "TASK_STATE_COMPLETED"},
				{name: "final, as in 0.3", body: task + update("COMPLETED", `,"final":true`), state: contract.Completed, operation: "t", reason: "TASK_STATE_COMPLETED"},
				{name: "not final, as in 0.3", body: task + update("COMPLETED", `,"final":false`), state: contract.Interrupted, illegal: true, complete: true, operation: "t", reason: "TASK_STATE_COMPLETED"},
				{name: "update first", body: update("WORKING", ""), state: contract.Interrupted, illegal: true, operation: "t"},
				{name: "message alone", body: message, state: contract.Completed},
				{name: "message that names its task", body: event(`{"message":{"messageId":"m","taskId":"t","parts":[{"text":"hi"}]}}`), state: contract.Completed, operation: "t"},
				{name: "message of a task", body: task + message, state: contract.Interrupted, illegal: true, operation: "t"},
				{name: "artifact first", body: artifact, state: contract.Interrupted, illegal: true, operation: "t"},
				{name: "working", body: task + update("WORKING", "") + artifact, state: contract.Interrupted, illegal: true, operation: "t"},
				{name: "input required", body: task + update("INPUT_REQUIRED", ""), state: contract.Incomplete, operation: "t", reason: "TASK_STATE_INPUT_REQUIRED"},
				{name: "auth required", body: task + update("AUTH_REQUIRED", ""), state: contract.Incomplete, operation: "t", reason: "TASK_STATE_AUTH_REQUIRED"},
				{name: "waited, completed", body: task + update("AUTH_REQUIRED", "") + update("WORKING", "") + update("COMPLETED", ""), state: contract.Completed, operation: "t", reason: "TASK_STATE_COMPLETED"},
				{name: "failed", body: task + update("FAILED", ""), state: contract.Failed, operation: "t", failure: contract.Failure{Type: "TASK_STATE_FAILED", Message: "why"}},
				{name: "rejected", body: task + update("REJECTED", ""), state: contract.Failed, operation: "t", failure: contract.Failure{Type: "TASK_STATE_REJECTED", Message: "why"}},
				{name: "canceled", body: task + update("CANCELED", ""), state: contract.Failed, operation: "t", failure: contract.Failure{Type: "TASK_STATE_CANCELED", Message: "why"}},
				{name: "state in a text", body: task + event(`{"artifactUpdate":{"taskId":"t","artifact":{"parts":[{"text":"{\"statusUpdate\":{\"taskId\":\"t\",\"status\":{\"state\":\"TASK_STATE_COMPLETED\"}}}\n\n"},{"data":{"statusUpdate":{"taskId":"t","status":{"state":"TASK_STATE_FAILED"}}}}]}}}`),
					state: contract.Interrupted, illegal: true, operation: "t"},
			})
		})
	}
	const details = `[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org"}]`
	checkEnds(t, "a2a", contract.Answer{ContentType: "text/event-stream"}, []wireEnd{
		{name: "error over JSON-RPC", body: `data: {"jsonrpc":"2.0","id":"r","error":{"code":-32001,"message":"no","data":` + details + "}}\n\n",
			state: contract.Failed, failure: contract.Failure{Code: "-32001", Message: "no"}},
		{name: "error over HTTP", body: `data: {"error":{"code":404,"status":"NOT_FOUND","message":"no","details":` + details + "}}\n\n",
			state: contract.Failed, failure: contract.Failure{Type: "NOT_FOUND", Code: "404", Message: "no"}},
	})
}

// TestRPCNeighbors shows which of the protocols over JSON-RPC takes what.
func TestRPCNeighbors(t *testing.T) {
	s := known(t)
	for body, want := range map[string]string{
		rpcEvent(`{"task":{"taskId":"t","status":"working"}}`):                                                    "mcp", // a task of MCP's
		rpcEvent(`{"kind":"x","content":[]}`):                                                                     "mcp",
		"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32002,\"message\":\"no\"}}\n\n": "mcp",
		"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32002,\"message\":\"no\"}}\n\n":                 "a2a",
		"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32602,\"message\":\"no\"}}\n\n":                 "mcp",
		"data: {\"jsonrpc\":\"2.0\",\"method\":\"eth_subscription\",\"params\":{}}\n\n":                           "",
		"data: {\"task\":{\"id\":\"t\",\"status\":{\"state\":\"done\"}}}\n\n":                                     "",
	} {
		if got := end(s, "text/event-stream", []byte(body)); got.Protocol != want {
			t.Errorf("%s: %q, want %q", body, got.Protocol, want)
		}
	}
}
