package lab

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"golang.org/x/oauth2"

	"github.com/rubicon-go/rubicon"
)

// told says in a few words what r tells the caller: a status, or what an error
// reveals by its types and values to a caller that looks closely.
func told(r reply) string {
	var (
		known *rubicon.Error
		auth  *rubicon.AuthError
	)
	switch {
	case r.err == nil:
		return fmt.Sprint(r.status)
	case errors.As(r.err, &auth):
		return kindOf(auth)
	case errors.As(r.err, &known):
		return knownBy(known, r.before)
	}
	return "error: " + word(r.err)
}

// kindOf says who has to act on e, and the token endpoint's status where that
// is all that is known of its answer.
func kindOf(e *rubicon.AuthError) string {
	if e.Code != "" || e.Status == 0 {
		return e.Kind.String()
	}
	return fmt.Sprintf("%s (%d)", e.Kind, e.Status)
}

// knownBy says what e knows: the outcome, and what is known beside it. How a
// stream ended is told by the error of the try that read it.
func knownBy(e *rubicon.Error, before error) string {
	if errors.Is(e, rubicon.ErrMismatch) {
		return "mismatch"
	}
	var beside []string
	if e.Status != 0 {
		beside = append(beside, fmt.Sprint(e.Status))
	}
	switch {
	case errors.Is(e, context.Canceled):
		beside = append(beside, "canceled")
	case errors.Is(e, rubicon.ErrBudget):
		beside = append(beside, "budget")
	case errors.Is(e, rubicon.ErrStalled), errors.Is(before, rubicon.ErrStalled):
		beside = append(beside, "stalled")
	case wasComplete(before):
		beside = append(beside, "whole")
	case e.Outcome == rubicon.Unsent && e.Cause() != nil:
		beside = append(beside, word(e.Cause()))
	}
	if beside == nil {
		return e.Outcome.String()
	}
	return fmt.Sprintf("%s (%s)", e.Outcome, strings.Join(beside, ", "))
}

// wasComplete reports whether err says that a stream was cut when all of its
// output was there.
func wasComplete(err error) bool {
	var known *rubicon.Error
	return errors.As(err, &known) && known.End.Complete
}

// texts has short words for errors that have no type to know them by.
var texts = [...]struct{ part, word string }{
	{"giving up after", "gave up"},
	{"GOAWAY", "GOAWAY"},
	{"PROTOCOL_ERROR", "PROTOCOL_ERROR"},
	{"connection lost", "connection lost"},
	{"Proxy Authentication Required", "proxy auth required"},
	{"refresh token is not set", "no refresh token"},
}

// word names err in the same few words on every system.
func word(err error) string {
	var (
		dns   *net.DNSError
		cert  *tls.CertificateVerificationError
		proxy *rubicon.ProxyError
		op    *net.OpError
		token *oauth2.RetrieveError
	)
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host"
	case errors.As(err, &dns):
		return "lookup failed"
	case errors.As(err, &cert):
		return "certificate"
	case errors.As(err, &proxy):
		return fmt.Sprintf("proxy %d", proxy.Status)
	case errors.As(err, &token) && token.ErrorCode != "":
		return token.ErrorCode
	case errors.As(err, &token):
		return fmt.Sprintf("token %d", token.Response.StatusCode)
	case isTimeout(err):
		return "timeout"
	case errors.As(err, &op) && op.Op == "dial":
		return "connection refused"
	case errors.As(err, &op):
		return "connection reset"
	}
	return wordByText(err)
}

// isTimeout reports whether err, or an error that it wraps, is a timeout.
// [url.Error] asks only what it wraps directly, and clients wrap more.
func isTimeout(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if t, ok := err.(interface{ Timeout() bool }); ok && t.Timeout() {
			return true
		}
	}
	return false
}

// wordByText names err by the text of its innermost error.
func wordByText(err error) string {
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	text := err.Error()
	for _, t := range texts {
		if strings.Contains(text, t.part) {
			return t.word
		}
	}
	return text
}
