package rubicon

import (
	"context"
	"time"

	"github.com/rubicon-go/rubicon/contract"
)

// A Trace is a set of hooks that are called as an operation goes on. A nil
// hook is not called; a nil Trace calls none. Hooks are called on the
// goroutine that makes the request, or that reads its answer, and may be
// called concurrently for different requests.
type Trace struct {
	// AttemptStart is called before an attempt is handed to Base.
	AttemptStart func(context.Context, AttemptInfo)

	// AttemptEnd is called when Base has returned and the record was told.
	AttemptEnd func(context.Context, AttemptInfo)

	// Decided is called with every decision after the first attempt.
	Decided func(context.Context, DecisionInfo)

	// Wait is called before a wait.
	Wait func(context.Context, WaitInfo)

	// Renewed is called when a renewal of the credential that a request waited
	// for has ended, whoever started it.
	Renewed func(context.Context, RenewedInfo)

	// AnswerEnd is called when the body of an answer that the transport
	// watches has ended, or was closed.
	AnswerEnd func(context.Context, AnswerInfo)
}

// AttemptInfo describes an attempt.
type AttemptInfo struct {
	Operation string // "" without an operation
	Method    string
	Host      string
	N         int     // the attempt's number within its request, from 1
	Attempt   Attempt // as far as it is known
	Err       error   // what Base returned; at the end only
}

// DecisionInfo describes a decision.
type DecisionInfo struct {
	Operation string
	Method    string
	Host      string
	Decision  Decision
}

// WaitInfo describes a wait.
type WaitInfo struct {
	Operation string
	Method    string
	Host      string
	For       time.Duration
	Next      Action
}

// RenewedInfo describes a renewal of a rejected credential.
type RenewedInfo struct {
	Operation string
	Method    string
	Host      string
	Err       error // nil: there is another token; else an *AuthError, or that the wait was canceled
}

// AnswerInfo describes the end of an answer's body.
type AnswerInfo struct {
	Operation string
	Method    string
	Host      string
	Outcome   Outcome
	End       contract.End // how its stream ended; unjudged if it was none
	Err       error        // what its reader is told
}

// The methods below call a hook if it is there.

func (t *Trace) attemptStart(c *call, ticket Ticket) {
	if t != nil && t.AttemptStart != nil {
		t.AttemptStart(c.req.Context(), c.attemptInfo(ticket, nil))
	}
}

func (t *Trace) attemptEnd(c *call, ticket Ticket, err error) {
	if t != nil && t.AttemptEnd != nil {
		t.AttemptEnd(c.req.Context(), c.attemptInfo(ticket, err))
	}
}

func (t *Trace) decided(c *call, d Decision) {
	if t != nil && t.Decided != nil {
		t.Decided(c.req.Context(), DecisionInfo{c.operationID(), c.req.Method, host(c.req), d})
	}
}

func (t *Trace) waits(c *call, d Decision, delay time.Duration) {
	if t != nil && t.Wait != nil {
		t.Wait(c.req.Context(), WaitInfo{c.operationID(), c.req.Method, host(c.req), delay, d.Next})
	}
}

func (t *Trace) renewed(c *call, err error) {
	if t != nil && t.Renewed != nil {
		t.Renewed(c.req.Context(), RenewedInfo{c.operationID(), c.req.Method, host(c.req), err})
	}
}

func (t *Trace) answerEnd(ans answered, end contract.End, err error) {
	if t == nil || t.AnswerEnd == nil {
		return
	}
	rec := ans.record()
	t.AnswerEnd(ans.req.Context(), AnswerInfo{
		ans.r.operationID(), ans.req.Method, host(ans.req), rec.Outcome(), end, err,
	})
}

// attemptInfo describes the attempt of ticket.
func (c *call) attemptInfo(ticket Ticket, err error) AttemptInfo {
	info := AttemptInfo{Operation: c.operationID(), Method: c.req.Method, Host: host(c.req), N: ticket.N, Err: err}
	if rec := c.r.record(); ticket.N <= len(rec.Attempts) {
		info.Attempt = rec.Attempts[ticket.N-1]
	}
	return info
}

// operationID returns the identifier of the call's operation, or "".
func (c *call) operationID() string { return c.r.operationID() }

// operationID returns the identifier of the request's operation, or "".
func (r *request) operationID() string {
	if r == nil || r.op == nil {
		return ""
	}
	return r.op.ID()
}
