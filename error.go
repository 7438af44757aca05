package rubicon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/rubicon-go/rubicon/contract"
)

// The conditions that an [*Error] may be, for [errors.Is].
var (
	ErrAmbiguous     = errors.New("rubicon: outcome is ambiguous")                // the request may have acted, and nobody knows
	ErrInterrupted   = errors.New("rubicon: answer was interrupted")              // the answer began and ended without its end
	ErrStreamFailed  = errors.New("rubicon: stream reports a failure")            // the server said so inside a 2xx answer
	ErrUnverified    = errors.New("rubicon: stream can't be verified")            // it came in a coding that nobody here can read
	ErrBudget        = errors.New("rubicon: budget is spent")                     // the operation may make no further attempt
	ErrMismatch      = errors.New("rubicon: key is bound to another request")     // a Key binds exactly one unsafe request
	ErrInProgress    = errors.New("rubicon: operation is in progress")            // an attempt under the same Key is under way
	ErrSettled       = errors.New("rubicon: operation is settled")                // the request of the Key was answered for good
	ErrEnded         = errors.New("rubicon: operation has ended")                 // a request after Operation.End
	ErrNotRewindable = errors.New("rubicon: body can't be sent again")            // a further attempt was allowed, and there is no second body
	ErrStalled       = errors.New("rubicon: stalled")                             // a limit of Transport.Stall was reached
	ErrContradiction = errors.New("rubicon: evidence contradicts itself")         // facts about one attempt exclude each other
	ErrBase          = errors.New("rubicon: Base repeats requests by itself")     // Transport.Base can't be used
	ErrJournal       = errors.New("rubicon: the journal failed; nothing is sent") // see Journal
)

// An Error says what is known of a request that brought no answer, or that was
// not sent. It is never a guess: what can't be proven is [Ambiguous].
//
// Where something may still be sent, it unwraps to what Base returned, and
// layers above may go on. Where nothing may, it hides that, so that layers that
// retry on a type or a text of it stop; [Error.Cause] tells it to people. The
// end of the caller's own context stays visible to [errors.Is] in both.
//
// Its text names method and host, and never a query, a header or a body.
type Error struct {
	Method    string
	Host      string
	Operation string   // the operation's identifier; "" without one
	Outcome   Outcome  // of the operation, all attempts considered
	Evidence  Evidence // of the attempt that matters most
	Attempts  int      // wire attempts so far
	Status    int      // of the latest answer; 0 if there was none
	Decision  Decision // why nothing more was sent
	ServerID  string   // the server's own name for the operation; "" if it gave none

	// End is how the answer's stream ended, as far as it came: events, bytes,
	// cursor, and the failure that the server reported. Zero without a stream.
	End contract.End

	is     []error // the sentinels
	cause  error   // what Base returned
	detail string  // the cause's text, without the request's secrets
	done   error   // the caller's context's error
	why    error   // the cause that the caller gave for it
	open   bool    // the cause is reachable
	safe   bool    // the method is: nothing can have been done

	auth *AuthError // why the last attempt of several could not be made; nil: for another reason
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rubicon: %s %s: ", e.Method, e.Host)
	for _, is := range e.is {
		if is != ErrAmbiguous {
			b.WriteString(strings.TrimPrefix(is.Error(), "rubicon: ") + ": ")
		}
	}
	if e.safe && e.Outcome == Ambiguous {
		fmt.Fprintf(&b, "no answer after %s", plural(e.Attempts, "attempt"))
	} else {
		fmt.Fprintf(&b, "outcome is %s after %s", e.Outcome, plural(e.Attempts, "attempt"))
	}
	if e.Decision.Why != WhyNone {
		b.WriteString(": " + e.Decision.Why.String())
	}
	if e.detail != "" {
		b.WriteString(": " + e.detail)
	}
	if e.auth != nil {
		b.WriteString(": " + strings.TrimPrefix(e.auth.Error(), "rubicon: "))
	}
	b.WriteString(e.streamed())
	if e.Decision.Why == WhyNoLicence {
		b.WriteString(" (ask before sending it again; Transport.Repeat or an Endpoint's key would allow it)")
	}
	return b.String()
}

// streamed says how far the answer's stream came.
func (e *Error) streamed() string {
	end := &e.End
	if end.Protocol == "" {
		return ""
	}
	text := fmt.Sprintf(": %s stream of %s, %d bytes", end.Protocol, plural(int(end.Events), "event"), end.Bytes)
	if end.Complete {
		text += ", all output had arrived"
	}
	if f := end.Failure; end.State == contract.Failed {
		text += fmt.Sprintf(": %s", strings.Join(slices.DeleteFunc([]string{f.Type, f.Code, f.Message}, func(s string) bool { return s == "" }), ": "))
	}
	return text
}

// Is reports whether target is one of the conditions of e, or the cause that
// the caller gave when it canceled.
func (e *Error) Is(target error) bool {
	for _, is := range e.is {
		if errors.Is(is, target) {
			return true
		}
	}
	return e.why != nil && e.why == target
}

// As finds the [*AuthError] of a request that may have acted before its
// credential could not be renewed.
func (e *Error) As(target any) bool {
	p, ok := target.(**AuthError)
	if ok = ok && e.auth != nil; ok {
		*p = e.auth
	}
	return ok
}

// Unwrap returns what may be known to layers above: the end of the caller's
// context, or what Base returned if something may still be sent.
func (e *Error) Unwrap() error {
	switch {
	case e.done != nil:
		return e.done
	case e.open:
		return e.cause
	}
	return nil
}

// Cause returns what Base returned, for people and logs. It is no proof of
// anything: it describes the last of perhaps several tries, and may be the
// cancellation cause of a sibling.
func (e *Error) Cause() error { return e.cause }

// Timeout implements [net.Error]. It tells what Base said only where something
// may still be sent.
func (e *Error) Timeout() bool {
	t, ok := e.cause.(interface{ Timeout() bool })
	return ok && e.open && t.Timeout()
}

// Temporary implements [net.Error], always with no.
func (e *Error) Temporary() bool { return false }

// LogValue implements [slog.LogValuer].
func (e *Error) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("method", e.Method),
		slog.String("host", e.Host),
		slog.String("operation", e.Operation),
		slog.String("outcome", e.Outcome.String()),
		slog.Any("evidence", e.Evidence),
		slog.Int("attempts", e.Attempts),
		slog.Int("status", e.Status),
		slog.Any("decision", e.Decision),
		slog.String("cause", e.detail),
	)
}

// GoString is Error, so that %#v prints nothing that Error leaves out.
func (e *Error) GoString() string { return e.Error() }

// A stopError is an Error after which nothing may be sent. It says so in every
// dialect in which a layer above is known to ask, and shows no error type or
// value on which one is known to retry.
type stopError struct{ err *Error }

// Error implements error.
func (e *stopError) Error() string { return e.err.Error() }

// GoString is Error.
func (e *stopError) GoString() string { return e.err.Error() }

// LogValue implements [slog.LogValuer].
func (e *stopError) LogValue() slog.Value { return e.err.LogValue() }

// Unwrap returns the Error.
func (e *stopError) Unwrap() error { return e.err }

// Timeout implements [net.Error], always with no.
func (e *stopError) Timeout() bool { return false }

// Temporary implements [net.Error], always with no.
func (e *stopError) Temporary() bool { return false }

// RetryableError is the question of the AWS SDK for Go v2.
func (e *stopError) RetryableError() bool { return false }

// NonRetriable is the mark of the Azure SDK for Go.
func (e *stopError) NonRetriable() {}

// As answers cenkalti/backoff, whose Retry then stops and returns the Error.
func (e *stopError) As(target any) bool {
	p, ok := target.(**backoff.PermanentError)
	if ok {
		*p = &backoff.PermanentError{Err: e.err}
	}
	return ok
}

// sentinels returns the conditions that r and d are.
func sentinels(r *Record, d Decision) []error {
	var is []error
	switch o := r.Outcome(); {
	case o == Contradicted:
		is = append(is, ErrContradiction)
	case o == Interrupted && !r.Terms.Safe:
		is = append(is, ErrInterrupted)
	case o == Ambiguous && !r.Terms.Safe:
		is = append(is, ErrAmbiguous)
	}
	if d.Why == WhyBudget || d.Why == WhyTime {
		is = append(is, ErrBudget)
	}
	return is
}

// open reports whether layers above may go on after r: nothing of it was
// applied, or repeating it is licensed.
func (r *Record) mayGoOn() bool {
	switch r.Outcome() {
	case Unsent, Refused:
		return true
	case Ambiguous, Interrupted:
		t := &r.Terms
		return t.Safe || t.Idempotent || t.Repeat
	}
	return false
}

// newError returns what r proves about a call that brought no answer, beside
// the conditions in also.
func newError(method, host, operation string, r *Record, d Decision, also ...error) *Error {
	e := &Error{
		Method: first(method, http.MethodGet), Host: host, Operation: operation,
		Outcome: r.Outcome(), Evidence: r.evidence(), Attempts: r.wire(),
		Decision: d, ServerID: r.ServerID,
		is:   distinct(append(also, sentinels(r, d)...)),
		open: r.mayGoOn() && !closes(also), safe: r.Terms.Safe,
	}
	if last := r.last(); last != nil {
		e.Status = last.Status
	}
	return e
}

// closes reports whether one of errs says that this request is not to be sent
// whatever became of it.
func closes(errs []error) bool {
	for _, err := range errs {
		switch err {
		case ErrMismatch, ErrInProgress, ErrSettled, ErrEnded:
			return true
		}
	}
	return false
}

// lost returns the error of a call of r that brought no answer.
func (r *request) lost(req *http.Request, rec *Record, d Decision, also ...error) *Error {
	cause := r.lastCause()
	if errors.Is(cause, ErrStalled) {
		also = append(also, ErrStalled)
	}
	e := newError(req.Method, host(req), r.operationID(), rec, d, also...).because(cause, req)
	e.End = r.lastEnd()
	return e
}

// truth returns the error that says what became of r, whatever its calls
// returned.
func (r *request) truth(rec *Record) *Error {
	var also []error
	cause := r.lastCause()
	if errors.Is(cause, ErrStalled) {
		also = append(also, ErrStalled)
	}
	e := newError(r.id.method, r.id.host, r.op.ID(), rec, Decide(*rec, time.Now()), also...)
	e.cause, e.open, e.End = cause, false, r.lastEnd()
	return e
}

// wire counts the times that the operation was put on the wire, for whatever
// reason.
func (r *Record) wire() int {
	n := len(r.Attempts)
	for i := range r.Attempts {
		n += r.Attempts[i].Resends
	}
	return n
}

// distinct returns errs without repetitions.
func distinct(errs []error) []error {
	var list []error
	for _, err := range errs {
		if !slices.Contains(list, err) {
			list = append(list, err)
		}
	}
	return list
}

// because adds what Base returned for req.
func (e *Error) because(err error, req *http.Request) *Error {
	e.cause = err
	if err != nil {
		e.detail = redact(err.Error(), req)
	}
	return e
}

// until adds the end of the caller's context, if it has ended.
func (e *Error) until(ctx context.Context) *Error {
	if e.done = ctx.Err(); e.done != nil {
		e.why = context.Cause(ctx)
	}
	return e
}

// returned is e in the concrete type that tells layers above whether to go on.
func (e *Error) returned() error {
	if e.open {
		return e
	}
	return &stopError{e}
}

// redact removes from text what only the parties to req should see: its query,
// its credentials, and the values of its headers.
func redact(text string, req *http.Request) string {
	hide := func(secret string) {
		if len(secret) > 3 {
			text = strings.ReplaceAll(text, secret, "...")
		}
	}
	if req.URL != nil {
		hide(req.URL.RawQuery)
		if user := req.URL.User; user != nil {
			password, _ := user.Password()
			hide(password)
			hide(user.String())
		}
	}
	for _, values := range req.Header {
		for _, v := range values {
			hide(v)
		}
	}
	return text
}

// plural returns n with noun in its number.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
