package contract_test

import (
	"net/http"
	"testing"

	"github.com/rubicon-go/rubicon/contract"
)

const (
	runMetadata = "event: metadata\ndata: {\"run_id\":\"run-1\",\"attempt\":1}\n\n"
	runValues   = "event: values\ndata: {\"messages\":[{\"type\":\"human\",\"content\":\"hi\"}]}\n\n"
	runMessage  = "event: messages/partial\ndata: [{\"type\":\"ai\",\"content\":\"he\"}]\n\n"
	runError    = "event: error\ndata: {\"error\":\"ValueError\",\"message\":\"bad\"}\n\n"
	runEnd      = "event: end\n\n"
)

func TestLangGraph(t *testing.T) {
	failure := contract.Failure{Type: "ValueError", Message: "bad"}
	checkEnds(t, "langgraph", contract.Answer{ContentType: "text/event-stream"}, []wireEnd{
		{name: "end of the body", body: runMetadata + runValues + runMessage, state: contract.Completed, operation: "run-1"},
		{name: "torn", body: runMetadata + runMessage[:60], state: contract.Interrupted, illegal: true, operation: "run-1"},
		{name: "no blank line", body: runMetadata + runValues[:len(runValues)-1], state: contract.Interrupted, illegal: true, operation: "run-1"},
		{name: "end of older servers", body: runMetadata + runMessage + "event: end\ndata: null\n\n", state: contract.Completed, operation: "run-1"},
		{name: "end without data", body: runMetadata + runMessage + runEnd, state: contract.Completed, operation: "run-1"},
		{name: "torn after the end", body: runMetadata + runEnd + "event: end\ndata: null\n\n" + runValues[:20], state: contract.Completed, operation: "run-1"},
		{name: "error", body: runMetadata + runValues + runError, state: contract.Failed, operation: "run-1", failure: failure},
		{name: "error, end", body: runMetadata + runError + "event: end\ndata: null\n\n", state: contract.Failed, operation: "run-1", failure: failure},
		{name: "error with a text", body: runMetadata + "event: error\ndata: \"bad\"\n\n", state: contract.Failed, operation: "run-1"},
		{name: "resumable", body: "id: 1-0\n" + runMetadata + "id: 2-0\n" + runMessage, state: contract.Completed, operation: "run-1", cursor: "2-0"},
		{name: "resumable, torn", body: "id: 1-0\n" + runMetadata + "id: 2-0\n" + runMessage[:60], state: contract.Interrupted, illegal: true, operation: "run-1", cursor: "1-0"},
		{name: "interrupt", body: runMetadata + "event: updates\ndata: {\"__interrupt__\":[{\"value\":\"sure?\"}]}\n\n", state: contract.Incomplete, operation: "run-1", reason: "interrupt"},
		{name: "interrupt of a part", body: runMetadata + "event: values|sub:1\ndata: {\"messages\":[],\"__interrupt__\":[{\"value\":\"sure?\"}]}\n\n", state: contract.Incomplete, operation: "run-1", reason: "interrupt"},
		{name: "no interrupt", body: runMetadata + "event: values\ndata: {\"__interrupt__\":[],\"x\":{\"__interrupt__\":[1]}}\n\n", state: contract.Completed, operation: "run-1"},
		{name: "comments", body: runMetadata + ": heartbeat\n\n", state: contract.Completed, operation: "run-1"},
		{name: "no metadata", body: runMessage + runMessage, state: contract.Completed},
		{name: "error in a text", body: runMetadata + "event: values\ndata: {\"error\":\"x\",\"message\":\"\\n\\nevent: error\\ndata: {\\\"error\\\":1}\\n\\n\"}\n\n", state: contract.Completed, operation: "run-1"},
		{name: "another run's id in a value", body: runMetadata + "event: values\ndata: {\"run_id\":\"run-2\"}\n\n", state: contract.Completed, operation: "run-1"},
	})
	for _, at := range []string{"/threads/t/runs/r", "/runs/r"} {
		a := contract.Answer{Header: http.Header{"Content-Type": {"text/event-stream"}, "Content-Location": {at}}}
		checkEnds(t, "langgraph", a, []wireEnd{
			{name: "values alone", body: runValues, state: contract.Completed},
			{name: "error alone", body: runError, state: contract.Failed, failure: failure},
		})
	}
}
