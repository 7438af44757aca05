package contract_test

import (
	"net/http"
	"testing"

	"github.com/rubicon-go/rubicon/contract"
)

func TestEventSource(t *testing.T) {
	const event = "event: edit\nid: 7\ndata: {\"type\":\"edit\",\"error\":\"no error\"}\n\n"
	a := contract.Answer{ContentType: "text/event-stream", Method: http.MethodGet}
	checkEnds(t, "eventsource", a, []wireEnd{
		{name: "events", body: event + event, state: contract.Completed, cursor: "7"},
		{name: "later id", body: event + "id: 8\ndata: x\n\n", state: contract.Completed, cursor: "8"},
		{name: "id alone", body: event + "id: 8\n\n", state: contract.Completed, cursor: "8"},
		{name: "torn", body: event + "id: 8\ndata: x\n", state: contract.Interrupted, illegal: true, cursor: "7"},
		{name: "no ids", body: "data: x\n\n", state: contract.Completed},
		{name: "marker that means nothing", body: event + "data: [DONE]\n\n", state: contract.Completed, cursor: "7"},
	})
}

// TestEventSourcePost shows that an answer to a POST is not one: it may have an
// end that nobody here knows.
func TestEventSourcePost(t *testing.T) {
	s := known(t)
	a := contract.Answer{ContentType: "text/event-stream", Method: http.MethodGet}
	if got := endOf(s, a, ": hi\n\n", 99); !got.Legal {
		t.Errorf("comments alone: %v, legal %v", got.State, got.Legal)
	}
	// Bodies without an event are something else by a wrong name.
	for _, body := range []string{gateFirst + "\n" + gateText + "\n", "data: a\ndata: b\n", "just text\n", "\x00\x00\x01", "{"} {
		if got := endOf(s, a, body, 99); got.State != contract.Unjudged || !got.Legal {
			t.Errorf("%q: %v, legal %v", body, got.State, got.Legal)
		}
	}
	for _, method := range []string{http.MethodPost, ""} {
		a := contract.Answer{ContentType: "text/event-stream", Method: method}
		if got := endOf(s, a, "data: x\n\n", 99); got.State != contract.Unjudged || !got.Legal {
			t.Errorf("method %q: %v, legal %v", method, got.State, got.Legal)
		}
	}
}
