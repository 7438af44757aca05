package rubicon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// errResend stands for the cancellation by which a resend was stopped, which
// is not the caller's.
var errResend = errors.New("net/http was about to send the request again, and was stopped")

// errHead is the cancellation cause of an attempt whose head did not come.
var errHead = fmt.Errorf("%w: no head of an answer", ErrStalled)

// attempt hands the booked attempt to Base, observes it, folds what it showed
// into the record, and returns that.
func (c *call) attempt(ticket Ticket) Attempt {
	c.ticket = ticket
	if c.r.op != nil {
		c.r.setLoss(nil)
	}
	if c.res != nil { // its place is taken; its connection is free already
		c.res.Body.Close()
	}
	ctx := &attemptContext{Context: c.req.Context(), base: c.t.plainBase()}
	var cancel context.CancelCauseFunc
	if c.needsCancel() {
		ctx.Context, cancel = context.WithCancelCause(ctx.Context)
	}
	ctx.stop = c.stopper(cancel)
	c.blind = ctx.base == nil
	seen := watch(ctx, c.t.trusted())
	out := c.outgoing(ctx)
	c.guard.watch(&seen.gotConn)

	c.t.Trace.attemptStart(c, ticket)
	head := startHead(c.t.Stall.Head, cancel)
	res, err := c.base.RoundTrip(out)
	if head.stop() && c.req.Context().Err() == nil {
		res, err = nil, head.error(res, err)
	}
	c.guard.returned(res)
	if err != nil && seen.stopped.Load() && c.req.Context().Err() == nil {
		err = errResend
	}
	err = c.token.hide(err)
	c.tries++

	a := Attempt{Evidence: Evidence{Reach: ReachSent}, Resends: seen.resends(), Ended: true}
	switch {
	case err == nil:
		a.Ended = !c.streams(res)
		c.bind(res, ticket, a, cancel)
	case cancel != nil:
		defer cancel(context.Canceled)
		fallthrough
	default:
		a.Evidence = seen.observe(out, err, c.guard.failure()).evidence()
	}
	seen.release()
	a = c.learn(ticket, res, err, a)
	c.t.Trace.attemptEnd(c, ticket, err)
	return a
}

// A headLimit ends an attempt when the head of its answer does not come.
type headLimit struct {
	after time.Duration
	timer *time.Timer
	state atomic.Uint32 // 0: running, 1: stopped, 2: fired
}

// startHead starts a limit; nil if there is none.
func startHead(after time.Duration, cancel context.CancelCauseFunc) *headLimit {
	if after <= 0 {
		return nil
	}
	l := &headLimit{after: after}
	l.timer = time.AfterFunc(after, func() {
		if l.state.CompareAndSwap(0, 2) {
			cancel(errHead)
		}
	})
	return l
}

// stop ends the limit and reports whether it had been reached. After it the
// limit does not end anything, a body least of all.
func (l *headLimit) stop() bool {
	if l == nil {
		return false
	}
	l.timer.Stop()
	return !l.state.CompareAndSwap(0, 1)
}

// error is what a call of Base comes to whose limit was reached. A head that
// came at the same moment is lost: its body was ended with the attempt.
func (l *headLimit) error(res *http.Response, err error) error {
	if res != nil {
		res.Body.Close()
		return fmt.Errorf("%w for %v", errHead, l.after)
	}
	return fmt.Errorf("%w for %v: %w", errHead, l.after, err)
}

// needsCancel reports whether the attempt may have to be ended by us: for its
// head, or to stop a resend of a request without a body over HTTP/2.
func (c *call) needsCancel() bool {
	return c.t.Stall.Head > 0 || !c.terms.Safe && !hasBody(c.req)
}

// stopper returns what stops a resend, or nil where none can happen.
func (c *call) stopper(cancel context.CancelCauseFunc) context.CancelFunc {
	if c.terms.Safe || hasBody(c.req) {
		return nil
	}
	return func() { cancel(context.Canceled) }
}

// outgoing returns the copy of the request that Base is given. The caller's is
// never modified.
func (c *call) outgoing(ctx context.Context) *http.Request {
	out := c.req.WithContext(ctx)
	out.Body, c.guard = c.sendBody()
	hides := !c.terms.Safe && (c.key != "" || hidesKey(c.req.Header))
	if hides || c.token != nil {
		out.Header = cloneHeader(c.req.Header)
	}
	if c.token != nil {
		c.t.Auth.setCredential(out.Header, c.token)
	}
	// net/http takes a GetBody, and an idempotency key, as permission to send
	// again by itself. It looks for the key under its canonical name only.
	if !c.terms.Safe {
		out.GetBody = nil
	}
	if hides {
		c.hideKeys(out.Header)
	}
	return out
}

// sendBody returns the body of the next attempt, and its guard if it needs
// one: where another may follow it that is not a reader of its own, and where
// it may fail with an error that could be taken for Base's.
func (c *call) sendBody() (io.ReadCloser, *sendBody) {
	if !hasBody(c.req) {
		return c.req.Body, nil
	}
	next := c.body
	c.body = nil
	switch {
	case c.req.GetBody != nil && isSnapshot(c.req.GetBody):
		return next, nil
	case bodyMaker(c.req) == nil && isPlain(next):
		return next, nil
	}
	b := newSendBody(next)
	return b, b
}

// The header names that net/http takes as permission to send again.
const (
	keyHeaderName  = "Idempotency-Key"
	keyHeaderXName = "X-Idempotency-Key"
)

// hidesKey reports whether h has a header that net/http must not find.
func hidesKey(h http.Header) bool {
	_, key := h[keyHeaderName]
	_, x := h[keyHeaderXName]
	return key || x
}

// hideKeys puts the operation's key into h, and every idempotency key under a
// name that net/http does not look for. Header names are case-insensitive (RFC
// 9110 section 5.1).
func (c *call) hideKeys(h http.Header) {
	if c.key != "" {
		h[textproto.CanonicalMIMEHeaderKey(c.keyHeader())] = []string{c.key}
	}
	for _, name := range [...]string{keyHeaderName, keyHeaderXName} {
		if values, ok := h[name]; ok {
			delete(h, name)
			h[strings.ToLower(name)] = values
		}
	}
}

// learn folds what an attempt brought into the record: the answer in hand, or
// what Base returned in place of one. It returns what the attempt showed.
func (c *call) learn(ticket Ticket, res *http.Response, err error, a Attempt) Attempt {
	c.res, c.err = res, err
	if err != nil {
		a.Final = isFinal(err)
	} else {
		c.judge(&a)
	}
	if c.mayFollow(&a) {
		c.schedule(&a)
	}
	c.t.Throttle.count(a)
	// An error of the journal is not the caller's: a fact that is lost costs
	// availability, never safety.
	_ = c.r.observe(c.lasting, ticket, Fact{Attempt: a})
	return a
}

// mayFollow reports whether another attempt may follow a, as far as a itself
// says.
func (c *call) mayFollow(a *Attempt) bool {
	if a.Final {
		return false
	}
	t := &c.terms
	return a.Verdict == VerdictNotApplied || a.Verdict == VerdictUnknown && (t.Idempotent || t.Repeat || t.Keyed)
}

// affords reports whether a wire attempt is left after the booked one.
func (c *call) affords() bool {
	rec := c.record()
	return rec.spent().Attempts < rec.Budget.Attempts
}

// judge reads the answer in hand as far as the next decision needs it.
func (c *call) judge(a *Attempt) {
	res := c.res
	resends, ended := a.Resends, a.Ended
	*a = judge(c.endpoint, res.StatusCode, nil)
	a.Resends, a.Ended = resends, ended
	c.judgeCredential(res, a)
	c.speaksForAll(a)
	switch {
	case !ended:
		a.Verdict, a.Proof = VerdictUnknown, ProofNone
		return
	case a.Verdict == VerdictSucceeded:
		return
	}
	if saysNo(res.Header) {
		a.Final = true
	}
	renews := a.Rejected && c.terms.Renew
	if !c.endpoint.speaks(res.StatusCode) && !renews && !(c.mayFollow(a) && c.affords()) {
		return
	}
	body, ok := c.hold()
	if renews {
		return
	}
	b := judge(c.endpoint, res.StatusCode, errorCodes(res.Header, body))
	a.Verdict, a.Proof, a.Final = b.Verdict, b.Proof, b.Final || a.Final || !ok
	c.speaksForAll(a)
	if hint := retryInfo(body); hint.final && a.Verdict == VerdictNotApplied {
		a.Final = true
	}
	a.NotBefore = later(a.NotBefore, asked(res.Header, body, time.Now()))
}

// speaksForAll takes back that a was not applied where net/http has, or may
// have, sent it several times: an answer speaks for the last of them.
func (c *call) speaksForAll(a *Attempt) {
	if a.Verdict == VerdictNotApplied && (a.Resends > 0 || c.blind) && c.terms.Safe {
		a.Verdict, a.Proof = VerdictUnknown, ProofNone
	}
}

// asked returns the time before which the answer asks not to come again.
func asked(h http.Header, body []byte, now time.Time) time.Time {
	var at time.Time
	if d, ok := retryAfter(h, now); ok {
		at = after(now, d)
	} else if d := max(resets(h, now), retryInfo(body).delay); d > 0 {
		at = after(now, d)
	}
	return at
}

// after returns now+d, or a time that is never waited for.
func after(now time.Time, d time.Duration) time.Time {
	const never = 100 * 365 * 24 * time.Hour
	return now.Add(min(d, never))
}

// hold reads the answer in hand within bounds, and frees its connection. It
// returns what it read, and whether that was all. The caller of RoundTrip gets
// every byte in any case.
func (c *call) hold() ([]byte, bool) {
	if c.res.Body == nil || c.res.Body == http.NoBody {
		return nil, true
	}
	h := hold(c.res.Body)
	body, ok := h.whole(c.req.Context(), first(c.t.Stall.Bytes, holdTime))
	if !ok {
		c.res.Body = h
		return nil, false
	}
	c.res.Body = io.NopCloser(bytes.NewReader(body))
	return body, true
}

// schedule sets the time before which no attempt may follow a.
func (c *call) schedule(a *Attempt) {
	if c.r.delays == nil {
		c.r.delays = c.t.newBackoff()
	}
	delay := c.r.delays.NextBackOff()
	if delay == backoff.Stop {
		a.Final = true
		return
	}
	a.NotBefore = later(a.NotBefore, time.Now().Add(delay))
}

// answer returns the answer in hand.
func (c *call) answer() *http.Response {
	c.discourage()
	return c.res
}

// A pair is a body that closes another with it.
type pair struct {
	io.ReadCloser
	other io.Closer
}

// Close implements [io.Closer].
func (p *pair) Close() error {
	return errors.Join(p.ReadCloser.Close(), p.other.Close())
}
