// Package rubicon is an HTTP client transport for requests that do things:
// charge money, start a model generation, call a tool.
//
//	client := &http.Client{Transport: &rubicon.Transport{}}
//
// A request has a point of no return. [Transport] knows on which side of it
// each attempt stood, and acts on that knowledge alone: it sends again what is
// proven not to have been applied, replays what a licence allows to be
// repeated, and reports the rest as ambiguous, once and for all layers above.
// It belongs innermost, directly over an [*http.Transport].
//
// To make the attempts of all layers one operation, begin one and pass its
// context to whatever makes the requests:
//
//	ctx, op := rubicon.Begin(ctx, rubicon.Intent{})
//	defer op.End()
//	res, err := client.Do(req.WithContext(ctx))
//	if errors.Is(op.Err(err), rubicon.ErrAmbiguous) {
//		// the server may have acted: look before asking again
//	}
//
// A request with an unsafe method is never repeated on a guess. The method
// (RFC 9110 section 9.2.2), an [Endpoint] that documents an idempotency key, or
// a caller who accepts repetition ([Transport.Repeat]) license a replay; a bare
// Idempotency-Key header does not.
//
// All types are safe for concurrent use unless they say otherwise. The caller
// of [Transport.RoundTrip] must close the body of the answer, as ever.
package rubicon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/hashicorp/go-retryablehttp"
	"golang.org/x/oauth2"

	"github.com/rubicon-go/rubicon/contract"
)

// A Transport is an [http.RoundTripper] that knows what became of what it
// sent. The zero value is ready to use. Its fields must not be changed once it
// is in use.
type Transport struct {
	// Base makes the attempts. Nil: http.DefaultTransport. Only a
	// *http.Transport itself, without RegisterProtocol and with net/http's own
	// HTTP/2, gives evidence; with any other Base every failed attempt may
	// have been sent. A Base that repeats requests by itself is refused with
	// [ErrBase]. Wrappers such as otelhttp's or [oauth2.Transport] belong
	// around a Transport, not below it.
	Base http.RoundTripper

	// Budget is what an operation may spend that brings no budget of its own,
	// and a request without an operation. Zero fields have the defaults of
	// [Budget].
	Budget Budget

	// Backoff returns the delays of one operation. Nil: exponential, from
	// 200 ms up to 10 s, with jitter. What a server asks for is waited for in
	// any case.
	Backoff func() backoff.BackOff

	// Throttle bounds extra attempts across operations. Nil: no bound.
	Throttle *Throttle

	// Auth puts a credential on requests, and renews it when it is rejected.
	// Nil: requests go out with what their callers put on them.
	Auth *Auth

	// Endpoints says what servers document about repeating requests. The first
	// that matches a request counts. Nil: [Endpoints]; not nil but empty: none.
	Endpoints []Endpoint

	// Contracts says how the streams of each protocol prove that they ended.
	// The first that governs an answer counts. Nil: [contract.Known]; not nil
	// but empty: none, and every stream passes unjudged.
	Contracts []contract.Contract

	// Repeat is the kind of request that the caller accepts to act twice,
	// rather than to see it fail. Zero: none. [Generation] pays twice for one
	// answer in return for never failing over a lost one.
	Repeat Kind

	// Stall bounds silence. Zero: no bound.
	Stall Stall

	// PlainErrors returns every refusal as an error. Without it, SDKs for Go
	// that repeat a request after any error of their transport are given a
	// response in its place, after which they stop: status 400, marked by
	// [LocalHeader], with a body that ends with the error. Those are OpenAI's,
	// Anthropic's and Google's genai, known by the headers that they set.
	PlainErrors bool

	// Journal keeps the records of named operations. Nil: the transport's own
	// [MemoryJournal].
	Journal Journal

	// Trace is told what happens. Nil: nobody is.
	Trace *Trace

	once     sync.Once
	memory   *MemoryJournal
	known    []Endpoint
	resolved Budget
	set      *contract.Set
	invalid  error // of Budget, Auth or Contracts
	trust    *trust
	marked   markedCalls

	standsFor *http.Transport // tests: what a stub in Base stands for
}

// RoundTrip implements [http.RoundTripper]. It may make several attempts, and
// returns any answer that came as it came, with a nil error. Without an answer
// the error is an [*Error], or wraps one.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	base, err := t.base()
	if err == nil {
		_, err = t.budget()
	}
	if err != nil {
		closeBody(req)
		return nil, err
	}
	op := FromContext(req.Context())
	if op.over() && outlives(req) {
		op = nil
	}
	if op == nil && isSafe(req.Method) && t.Stall == (Stall{}) && t.Trace == nil {
		if s := t.Auth.sign(req); s.ready() {
			return t.roundTripSafe(base, req, s)
		}
	}
	c := newCall(t, base, req)
	c.op, c.body = op, req.Body
	defer c.leave()
	if err := c.join(); err != nil {
		return c.refused(err)
	}
	res, err := c.run()
	if err != nil {
		return c.refused(err)
	}
	return res, nil
}

// outlives reports whether a request that carries an operation's context after
// its end is let through, as one of nobody's: what reads, and the end of an MCP
// session, whose client keeps the context that it was connected with.
func outlives(req *http.Request) bool {
	return isSafe(req.Method) || req.Method == http.MethodDelete && field(req.Header, "Mcp-Session-Id") != ""
}

// Format implements [fmt.Formatter]: a Transport prints as its type, whatever
// the verb. What it remembers of requests is nobody's to read.
func (t *Transport) Format(f fmt.State, _ rune) { io.WriteString(f, "rubicon.Transport") }

// roundTripSafe makes the first attempt of a request with a safe method, which
// needs no evidence, and goes on to the loop only if it brought no good answer.
func (t *Transport) roundTripSafe(base http.RoundTripper, req *http.Request, s signed) (*http.Response, error) {
	start := time.Now()
	res, err := base.RoundTrip(s.request(req))
	err = s.token.hide(err)
	if err == nil && byStatus(res.StatusCode).final && !isStream(res.Header) && s.accepted(res) {
		res.Request = req
		return res, nil
	}
	c := newCall(t, base, req)
	c.origin, c.token = s.origin, s.token
	defer c.leave()
	c.budget, _ = t.budget()
	c.joinAlone()
	c.r.rec.Terms = c.terms
	c.r.rec.Fold(Fact{N: 1, Attempt: Attempt{Call: 1, Begun: start}})
	c.tries, c.blind, c.ticket = 1, true, Ticket{N: 1}
	if err == nil {
		c.bind(res, Ticket{N: 1}, Attempt{Ended: true}, nil)
	}
	c.learn(Ticket{N: 1}, res, err, Attempt{Evidence: Evidence{Reach: ReachSent}, Ended: true})
	return c.run()
}

// CloseIdleConnections forwards to Base, for [http.Client.CloseIdleConnections].
func (t *Transport) CloseIdleConnections() {
	base, err := t.base()
	if err != nil {
		return
	}
	if c, ok := base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// base returns what makes the attempts.
func (t *Transport) base() (http.RoundTripper, error) {
	switch b := t.Base.(type) {
	case nil:
		return http.DefaultTransport, nil
	case *http.Transport:
		return b, nil
	default:
		return b, checkBase(b)
	}
}

// checkBase returns an error if b repeats requests by itself.
func checkBase(b http.RoundTripper) error {
	switch b := b.(type) {
	case *retryablehttp.RoundTripper:
		return fmt.Errorf("%w: a go-retryablehttp round tripper hides its attempts; put it above: client.HTTPClient.Transport = &rubicon.Transport{}", ErrBase)
	case *Transport:
		return fmt.Errorf("%w: it is a rubicon.Transport already", ErrBase)
	case *oauth2.Transport:
		if b.Base != nil {
			return checkBase(b.Base)
		}
	}
	return nil
}

// setup fills what is made once.
func (t *Transport) setup() {
	t.once.Do(func() {
		t.memory = new(MemoryJournal)
		t.known = Endpoints()
		t.resolved, t.invalid = t.Budget.resolve()
		t.trust = trustOf(t.plainBase())
		contracts := t.Contracts
		if contracts == nil {
			contracts = contract.Known()
		}
		set, err := contract.NewSet(contracts...)
		t.set, t.invalid = set, errors.Join(t.invalid, t.Auth.check(), err)
	})
}

// contracts returns the contracts in use.
func (t *Transport) contracts() *contract.Set {
	t.setup()
	return t.set
}

// plainBase returns Base if it is net/http's, else nil.
func (t *Transport) plainBase() *http.Transport {
	base, _ := t.base()
	if plain, ok := base.(*http.Transport); ok {
		return plain
	}
	return t.standsFor
}

// trusted returns what is known of Base.
func (t *Transport) trusted() *trust {
	t.setup()
	return t.trust
}

// budget returns the transport's budget with its defaults in place.
func (t *Transport) budget() (Budget, error) {
	t.setup()
	return t.resolved, t.invalid
}

// journal returns where named operations are kept.
func (t *Transport) journal() Journal {
	if t.Journal != nil {
		return t.Journal
	}
	t.setup()
	return t.memory
}

// endpoint returns what is documented of the server that req goes to, or nil.
func (t *Transport) endpoint(req *http.Request) *Endpoint {
	list := t.Endpoints
	if list == nil {
		t.setup()
		list = t.known
	}
	return match(list, req)
}

// newBackoff returns the delays of one operation.
func (t *Transport) newBackoff() backoff.BackOff {
	if t.Backoff != nil {
		return t.Backoff()
	}
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(200*time.Millisecond),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(10*time.Second),
		backoff.WithMaxElapsedTime(0),
	)
}

// closeBody closes the body of a request that is not handed to Base.
func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}

// A call is one RoundTrip on its way through the loop.
type call struct {
	t    *Transport
	base http.RoundTripper
	req  *http.Request
	op   *Operation // nil without one
	r    *request   // whose record the call works on
	own  request    // r of a request without an operation
	n    int        // the number of this call in its operation

	mark   mark        // of a request without an operation
	marked *markedCall // that r is the record of; nil without a mark

	lasting context.Context // of a named operation: outlives the caller's

	endpoint    *Endpoint // nil: nothing is documented
	terms       Terms
	budget      Budget // of the operation, resolved
	key         string // the idempotency key to send; ""
	keyed       bool   // key is the one of the operation's every attempt
	fingerprint string // of a named operation's request

	origin  string // of Auth, that the request belongs to; "": no credential goes with it
	token   *token // of the next attempt, or the last; nil before the first, and where none goes
	renewed bool   // the credential was renewed in this call

	ticket Ticket // of the last attempt

	body  io.ReadCloser // the next attempt's, as long as Base was not given it
	guard *sendBody     // of the last attempt; nil if it needs none
	tries int           // attempts of this call
	blind bool          // the attempt under way is not observed
	kept  bool          // the body of the answer refers to r

	res *http.Response // the answer in hand
	err error          // what Base returned in place of one
}

// idleCalls keeps calls that nothing refers to any more.
var idleCalls = sync.Pool{New: func() any { return new(call) }}

// newCall returns a call for req.
func newCall(t *Transport, base http.RoundTripper, req *http.Request) *call {
	c := idleCalls.Get().(*call)
	c.t, c.base, c.req = t, base, req
	c.endpoint = t.endpoint(req)
	return c
}

// run is the loop: decide, wait, decide again and book the attempt, send,
// observe, fold.
func (c *call) run() (*http.Response, error) {
	for {
		d := c.next()
		if d.Action == Wait && d.Next != Report {
			if !c.wait(d) {
				return c.finish(d)
			}
			continue
		}
		if d.Action == Refresh && !c.renewed && !c.op.over() {
			if err := c.renew(); err != nil {
				return c.unrenewed(d, err)
			}
			continue
		}
		reason, ok := d.reason()
		if !ok || c.op.over() || c.req.Context().Err() != nil {
			return c.finish(d)
		}
		if err := c.authorize(); err != nil {
			return c.unrenewed(d, err)
		}
		if err := c.rewind(); err != nil {
			return c.giveUp(d, err)
		}
		ticket, err := c.book(reason)
		if err != nil {
			return c.giveUp(d, err)
		}
		if ticket.N == 0 {
			continue
		}
		if a := c.attempt(ticket); a.Verdict == VerdictSucceeded || !a.Ended {
			c.discourage()
			return c.res, nil
		}
	}
}

// leave ends the call. A body that was not handed to Base is closed.
func (c *call) leave() {
	if c.body != nil {
		c.body.Close()
	}
	if c.r != nil {
		c.r.leave()
		c.leaveMarked()
	}
	if b, ok := c.req.Body.(*rewindable); ok {
		b.finish()
	}
	if !c.kept {
		*c = call{}
		idleCalls.Put(c)
	}
}

// next decides what may be done now.
func (c *call) next() Decision {
	if c.fresh() {
		return firstDecision
	}
	rec := c.record()
	d := Decide(rec, time.Now())
	c.t.Trace.decided(c, d)
	return d
}

// fresh reports whether there is nothing yet to decide about.
func (c *call) fresh() bool {
	c.r.entry.mu.Lock()
	defer c.r.entry.mu.Unlock()
	return c.r.rec.fresh()
}

// record returns the record as this call sees it: under its own terms, and
// with no more budget than the operations around it and the throttle leave.
func (c *call) record() Record {
	rec := c.r.record()
	rec = rec.asked(c.n, c.keyed)
	// What a request may do by itself is its own, whatever the record began with.
	rec.Terms.Repeat, rec.Terms.Renew = c.terms.Repeat, c.terms.Renew
	rec.Terms.Safe, rec.Terms.Idempotent = c.terms.Safe, c.terms.Idempotent
	rec.Until = c.until()
	rec.Budget = c.allowed(&rec)
	return rec
}

// until returns when no attempt may begin any more.
func (c *call) until() time.Time {
	deadline, _ := c.req.Context().Deadline()
	return sooner(c.op.until(), deadline)
}

// allowed returns the operation's budget as far as the pools around it and the
// throttle still cover it.
func (c *call) allowed(rec *Record) Budget {
	b, spent := c.budget, rec.spent()
	left, err := c.op.left(c.t, c.terms.Kind)
	switch {
	case err != nil:
		left = Budget{}
	case !c.t.Throttle.allow(): // which is not about rejected credentials
		left = Budget{Refreshes: left.Refreshes}
	}
	return Budget{
		Attempts:  min(b.Attempts, spent.Attempts+left.Attempts),
		Sends:     min(b.Sends, spent.Sends+left.Sends),
		Replays:   min(b.Replays, spent.Replays+left.Replays),
		Refreshes: min(b.Refreshes, spent.Refreshes+left.Refreshes),
		Resumes:   min(b.Resumes, spent.Resumes+left.Resumes),
		Elapsed:   b.Elapsed,
	}
}

// book draws what an attempt for reason costs, and books it. A zero ticket
// says that the record has changed in between: decide again.
func (c *call) book(reason Reason) (Ticket, error) {
	p := Proposal{
		Terms: c.terms, Until: c.until(), Budget: c.budget,
		Call: c.n, Reason: reason, Keyed: c.keyed, Fingerprint: c.fingerprint,
	}
	paid := reason != ReasonFirst && reason != ReasonRedirect
	if paid {
		rec := c.r.record()
		p.Budget = c.allowed(&rec)
		if !c.op.reserve(c.t, c.terms.Kind, reason) {
			return Ticket{}, nil
		}
	}
	ticket, err := c.r.begin(c.lasting, p)
	if err == nil {
		return ticket, nil
	}
	if paid {
		c.op.giveBack(c.t, c.terms.Kind, reason, nil)
	}
	var blocked *BlockedError
	switch {
	case !errors.As(err, &blocked):
		return Ticket{}, fmt.Errorf("%w: %w", ErrJournal, err)
	case blocked.Err != nil:
		return Ticket{}, blocked.Err
	}
	return Ticket{}, c.r.load(c.lasting)
}

// wait waits until the time of d. It reports whether the call may go on.
func (c *call) wait(d Decision) bool {
	delay := time.Until(d.NotBefore)
	c.t.Trace.waits(c, d, delay)
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.req.Context().Done():
		return false
	}
}

// rewind makes the body of the next attempt.
func (c *call) rewind() error {
	if c.body != nil || !hasBody(c.req) {
		return nil
	}
	make := bodyMaker(c.req)
	if make == nil {
		return ErrNotRewindable
	}
	if c.guard != nil && !c.await(c.guard) {
		return ErrNotRewindable
	}
	body, err := make()
	if err != nil {
		return fmt.Errorf("%w: GetBody: %w", ErrNotRewindable, err)
	}
	c.body = body
	return nil
}

// await waits until nothing can read the last attempt's body any more, as long
// as another attempt may begin.
func (c *call) await(b *sendBody) bool {
	rec := c.record()
	until := sooner(rec.Until, rec.begun().Add(rec.Budget.Elapsed))
	ctx, cancel := context.WithDeadline(c.req.Context(), until)
	defer cancel()
	return b.await(ctx)
}

// finish ends the call by decision d: with the answer in hand, or an error.
func (c *call) finish(d Decision) (*http.Response, error) {
	ctx := c.req.Context()
	switch {
	case c.res != nil && ctx.Err() == nil:
		return c.answer(), nil
	case c.tries > 0 || ctx.Err() != nil:
	case d.Action == Wait:
		return c.giveUp(d, ErrInProgress)
	case c.op.over():
		return c.giveUp(d, ErrEnded)
	case d.Why == WhySucceeded || d.Why == WhyAnswered:
		return c.giveUp(d, ErrSettled)
	}
	return c.giveUp(d)
}

// giveUp ends the call with the answer in hand, or else with an error that is
// also what is given.
func (c *call) giveUp(d Decision, also ...error) (*http.Response, error) {
	switch {
	case c.res == nil:
	case c.req.Context().Err() == nil:
		return c.answer(), nil
	default:
		c.res.Body.Close()
	}
	if c.tries > 0 {
		c.r.setCause(c.err)
	}
	rec := c.r.record()
	err := c.r.lost(c.req, &rec, d, also...)
	return nil, err.until(c.req.Context()).returned()
}

// refusal is the error of a call that found no record to work on.
func (c *call) refusal(err error) error {
	e := newError(c.req.Method, host(c.req), c.op.ID(), &Record{}, Decision{}, err)
	return e.until(c.req.Context()).returned()
}
