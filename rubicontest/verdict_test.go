package rubicontest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/rubicon-go/rubicon/rubicontest"
)

// A verdict says what is wrong with a reply; "" if nothing is.
type verdict func(reply) string

// answers wants a whole answer.
func answers(status int, body string) verdict {
	return func(r reply) string {
		if r.status != status || r.body != body || r.err != nil {
			return fmt.Sprintf("want %d %q", status, body)
		}
		return ""
	}
}

// fails wants RoundTrip to fail with one of the errors.
func fails(targets ...error) verdict {
	return func(r reply) string {
		for _, target := range targets {
			if r.status == 0 && errors.Is(r.err, target) {
				return ""
			}
		}
		return fmt.Sprintf("want one of %v", targets)
	}
}

// failsWith wants RoundTrip to fail with a text.
func failsWith(text string) verdict {
	return func(r reply) string {
		if r.status != 0 || r.err == nil || !strings.Contains(r.err.Error(), text) {
			return "want an error with " + text
		}
		return ""
	}
}

// breaks wants an answer whose body breaks off after body.
func breaks(status int, body string, targets ...error) verdict {
	return func(r reply) string {
		for _, target := range targets {
			if r.status == status && r.body == body && errors.Is(r.err, target) {
				return ""
			}
		}
		return fmt.Sprintf("want %d %q, then one of %v", status, body, targets)
	}
}

// resets wants the stream to be reset by the peer with code, in the body if
// status isn't 0.
func resets(status int, code http2.ErrCode) verdict {
	return func(r reply) string {
		var e http2.StreamError
		if r.status != status || !errors.As(r.err, &e) || e.Code != code || e.Cause.Error() != "received from peer" {
			return fmt.Sprintf("want %d and RST_STREAM %v", status, code)
		}
		return ""
	}
}

// A faultTest plays one fault to one POST.
type faultTest struct {
	fault   rubicontest.Fault
	want    verdict
	effects int
	unseen  bool // the request does not count
}

// play runs the tests over p. Each request has a body that net/http can't send
// again, so that one call is one request.
func play(t *testing.T, p rubicontest.Protocol, tests []faultTest) {
	for _, tt := range tests {
		t.Run(p.String()+"/"+tt.fault.String(), func(t *testing.T) {
			s := start(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{tt.fault}})
			r := post(t, s.Transport(), s.URL)
			if wrong := tt.want(r); wrong != "" {
				t.Errorf("got %d %q, %v; %s", r.status, r.body, r.err, wrong)
			}
			requests := 1
			if tt.unseen {
				requests = 0
			}
			wantCounts(t, s, requests, tt.effects)
		})
	}
}
