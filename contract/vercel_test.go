package contract_test

import (
	"net/http"
	"testing"

	"github.com/rubicon-go/rubicon/contract"
)

const (
	uiStart  = `data: {"type":"start","messageId":"msg-1"}` + "\n\n"
	uiStep   = `data: {"type":"start-step"}` + "\n\n"
	uiText   = `data: {"type":"text-start","id":"0"}` + "\n\n" + `data: {"type":"text-delta","id":"0","delta":"hi"}` + "\n\n" + `data: {"type":"text-end","id":"0"}` + "\n\n"
	uiFinish = `data: {"type":"finish-step"}` + "\n\n" + `data: {"type":"finish"}` + "\n\n"
	uiError  = `data: {"type":"error","errorText":"overloaded"}` + "\n\n"
	uiDone   = "data: [DONE]\n\n"
)

func TestVercelUI(t *testing.T) {
	overloaded := contract.Failure{Message: "overloaded"}
	checkEnds(t, "vercel-ui", contract.Answer{ContentType: "text/event-stream"}, []wireEnd{
		{name: "whole", body: uiStart + uiStep + uiText + uiFinish + uiDone, state: contract.Completed, operation: "msg-1"},
		{name: "no message id", body: uiStep + uiText + uiFinish + uiDone, state: contract.Completed},
		{name: "text alone", body: uiText + uiDone, state: contract.Completed},
		{name: "finish without the marker", body: uiStart + uiText + uiFinish, state: contract.Interrupted, illegal: true, complete: true, operation: "msg-1"},
		{name: "finish and half the marker", body: uiStart + uiText + uiFinish + "data: [DONE]\n", state: contract.Interrupted, illegal: true, complete: true, operation: "msg-1"},
		{name: "step finished", body: uiStart + `data: {"type":"finish-step"}` + "\n\n", state: contract.Interrupted, illegal: true, operation: "msg-1"},
		{name: "no finish", body: uiStart + uiStep + uiText, state: contract.Interrupted, illegal: true, operation: "msg-1"},
		{name: "abort", body: uiStart + uiText + `data: {"type":"abort","reason":"stopped"}` + "\n\n", state: contract.Incomplete, operation: "msg-1", reason: "stopped"},
		{name: "abort without a reason", body: uiStart + `data: {"type":"abort"}` + "\n\n" + uiDone, state: contract.Incomplete, operation: "msg-1", reason: "abort"},
		{name: "length", body: uiStart + uiText + `data: {"type":"finish","finishReason":"length"}` + "\n\n" + uiDone, state: contract.Incomplete, operation: "msg-1", reason: "length"},
		{name: "filter", body: uiStart + uiText + `data: {"type":"finish","finishReason":"content-filter"}` + "\n\n" + uiDone, state: contract.Incomplete, operation: "msg-1", reason: "content-filter"},
		{name: "stop", body: uiStart + uiText + `data: {"type":"finish","finishReason":"stop"}` + "\n\n" + uiDone, state: contract.Completed, operation: "msg-1", reason: "stop"},
		{name: "error", body: uiStart + uiError, state: contract.Failed, operation: "msg-1", failure: overloaded},
		{name: "error, finish, marker", body: uiStart + uiText + uiError + uiFinish + uiDone, state: contract.Failed, operation: "msg-1", failure: overloaded},
		{name: "error alone", body: uiError, state: contract.Failed, failure: overloaded},
		{name: "error of a tool", body: uiStart + `data: {"type":"tool-output-error","toolCallId":"c","errorText":"no"}` + "\n\n" + uiFinish + uiDone, state: contract.Completed, operation: "msg-1"},
		{name: "data of the application", body: uiStart + `data: {"type":"data-x","data":{"type":"finish","errorText":"x"}}` + "\n\n", state: contract.Interrupted, illegal: true, operation: "msg-1"},
		{name: "marker in a text", body: uiStart + `data: {"type":"text-delta","id":"0","delta":"[DONE]\n\ndata: [DONE]\n\n"}` + "\n\n" + `data: "[DONE]"` + "\n\n", state: contract.Interrupted, illegal: true, operation: "msg-1"},
		{name: "abort in a tool's input", body: uiStart + `data: {"type":"tool-input-delta","toolCallId":"c","inputTextDelta":"{\"type\":\"abort\"}"}` + "\n\n", state: contract.Interrupted, illegal: true, operation: "msg-1"},
	})
	a := contract.Answer{Header: http.Header{"Content-Type": {"text/event-stream"}, "X-Vercel-Ai-Ui-Message-Stream": {"v1"}}}
	checkEnds(t, "vercel-ui", a, []wireEnd{
		{name: "data alone", body: `data: {"type":"data-x","data":1}` + "\n\n", state: contract.Interrupted, illegal: true},
		{name: "data and the marker", body: `data: {"type":"data-x","data":1}` + "\n\n" + uiDone, state: contract.Completed},
	})
}

// TestVercelNeighbors has the parts of a language model, which end without a
// marker.
func TestVercelNeighbors(t *testing.T) {
	s := known(t)
	for _, body := range []string{
		`data: {"type":"stream-start","warnings":[]}` + "\n\n" + uiText + `data: {"type":"finish","finishReason":"stop","usage":{}}` + "\n\n",
		`data: {"type":"start"}` + "\n\n" + `data: {"type":"start-step","request":{},"warnings":[]}` + "\n\n" + `data: {"type":"text-delta","id":"0","text":"hi"}` + "\n\n" + `data: {"type":"finish","finishReason":"stop"}` + "\n\n",
	} {
		if got := end(s, "text/event-stream", []byte(body)); got.State != contract.Unjudged {
			t.Errorf("%s: %v of %q", body, got.State, got.Protocol)
		}
	}
}
