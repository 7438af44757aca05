package rubicon

import (
	"io"
	"net/http"
	"strings"
	"time"
)

// LocalHeader is the header that marks a response which no server sent: the
// transport made it in place of an error. See [Transport.PlainErrors].
const LocalHeader = "Rubicon-Local"

// refused returns what a call ends with that nothing was received for and
// after which nothing may be sent: err, or, for an SDK that asks again after
// every error, a response of the one kind that it takes for final. Its body
// ends with err, so that the SDK's caller finds it all the same.
func (c *call) refused(err error) (*http.Response, error) {
	outcome, stop := c.stops(err)
	if !stop || c.t.PlainErrors || c.req.Context().Err() != nil || !speaksLocal400(c.req.Header) {
		return nil, err
	}
	return &http.Response{
		Status: "400 No Answer (local)", StatusCode: http.StatusBadRequest,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			LocalHeader:      {outcome.String()},
			"X-Should-Retry": {"false"},
			"Content-Type":   {"text/plain; charset=utf-8"},
		},
		Body: io.NopCloser(errorReader{err}), ContentLength: -1, Request: c.req,
	}, nil
}

// stops reports whether err says that asking again is of no use, and what is
// known of the operation.
func (c *call) stops(err error) (Outcome, bool) {
	switch err := err.(type) {
	case *stopError:
		return err.err.Outcome, true
	case *AuthError:
		rec := c.r.record()
		return rec.Outcome(), !err.Retryable()
	}
	return Ambiguous, false
}

// An errorReader is a body that has nothing but an error.
type errorReader struct{ err error }

// Read implements [io.Reader].
func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

// speaksLocal400 reports whether a request with header h was made by a Go SDK
// that repeats it after any error of its transport, and not after a 400: the
// ones that Stainless generates (OpenAI, Anthropic) and Google's genai. A proxy
// in between may serve another client.
func speaksLocal400(h http.Header) bool {
	if isForwarded(h) {
		return false
	}
	if field(h, "X-Stainless-Lang") == "go" {
		return true
	}
	for _, client := range h["X-Goog-Api-Client"] {
		if strings.Contains(client, "google-genai-sdk/") && strings.Contains(client, "gl-go/") {
			return true
		}
	}
	return false
}

// discourage asks the SDK that made the request not to repeat it, in the one
// header that OpenAI's and Anthropic's SDKs read, where a further attempt would
// be refused. The answer itself is the server's own.
func (c *call) discourage() {
	if field(c.req.Header, "X-Stainless-Lang") == "" || isForwarded(c.req.Header) || c.terms.Safe {
		return
	}
	rec := c.record()
	if rec.Outcome() == Failed { // another attempt would start afresh
		return
	}
	rec.Call++
	rec.Until = c.op.until() // the SDK may give its next attempt another deadline
	switch d := Decide(rec, time.Now()); {
	case d.Action == Send, d.Action == Replay, d.Action == Wait && d.Next != Report:
	default:
		if c.res.Header == nil {
			c.res.Header = make(http.Header, 1)
		}
		c.res.Header.Set("X-Should-Retry", "false")
	}
}

// isForwarded reports whether a request came through a proxy (RFC 9110 section
// 7.6.3, RFC 7239), whose client is not the SDK that its headers name.
func isForwarded(h http.Header) bool {
	return field(h, "Via") != "" || field(h, "X-Forwarded-For") != "" || field(h, "Forwarded") != ""
}
