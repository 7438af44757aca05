package rubicon

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/rubicon-go/rubicon/contract"
)

// A request is one different request of an operation: what it is, and the
// record of its attempts, whatever calls made them.
type request struct {
	entry // the record; of a named operation, what this process knows of it

	op       *Operation // nil without one
	id       identity
	hops     []identity // where redirects took it
	key      Key        // named: the journal's
	journal  Journal    // named: where the record is kept
	keyValue string     // the idempotency key that goes out; "" before the first; under entry.mu
	delays   backoff.BackOff
	end      contract.End // of the latest streamed answer; under entry.mu
	cause    error        // what Base returned last in place of an answer; under entry.mu
	loss     error        // what the reader of the latest answer was told of its end, if it was not whole; under entry.mu
	calls    int          // RoundTrips so far; under op.mu
	running  int          // RoundTrips under way; under op.mu
}

// setCause keeps what Base returned in place of an answer.
func (r *request) setCause(err error) {
	r.entry.mu.Lock()
	defer r.entry.mu.Unlock()
	r.cause = err
}

// setLoss keeps what the reader of the latest answer was told of its end; nil if
// there is nothing to tell yet.
func (r *request) setLoss(err error) {
	r.entry.mu.Lock()
	defer r.entry.mu.Unlock()
	r.loss = err
}

// lastLoss returns what the reader of the latest answer was told of its end, if
// it was not whole.
func (r *request) lastLoss() error {
	r.entry.mu.Lock()
	defer r.entry.mu.Unlock()
	return r.loss
}

// streamed keeps how the latest streamed answer ended.
func (r *request) streamed(end contract.End) {
	r.entry.mu.Lock()
	defer r.entry.mu.Unlock()
	r.end = end
}

// lastEnd returns how the latest streamed answer ended.
func (r *request) lastEnd() contract.End {
	r.entry.mu.Lock()
	defer r.entry.mu.Unlock()
	return r.end
}

// lastCause returns what Base returned last in place of an answer.
func (r *request) lastCause() error {
	r.entry.mu.Lock()
	defer r.entry.mu.Unlock()
	return r.cause
}

// keyOnce returns the idempotency key of every attempt of r: the first one
// that was asked for.
func (r *request) keyOnce(req *http.Request, header string) string {
	r.entry.mu.Lock()
	defer r.entry.mu.Unlock()
	if r.keyValue == "" {
		r.keyValue = r.keyFor(req, header)
	}
	return r.keyValue
}

// join finds out what the call's request is, and to which record it belongs.
func (c *call) join() error {
	budget, err := c.op.budget(c.t)
	if err != nil {
		return err
	}
	c.budget = budget
	if c.op == nil && !isSafe(c.req.Method) {
		return c.joinMarked()
	}
	if c.op == nil {
		c.joinAlone()
		return nil
	}
	r, read, err := c.op.join(c.t, c.req)
	if err != nil {
		return c.refusal(err)
	}
	c.r, c.n = r, r.call()
	c.document()
	if r.journal != nil {
		read, err = c.joinNamed()
	}
	if err == nil && read {
		err = c.refresh()
	}
	return err
}

// joinAlone gives the call a record of its own.
func (c *call) joinAlone() {
	c.r, c.n = &c.own, 1
	c.document()
}

// joinMarked gives the call the record of the SDK's call that the request says
// it belongs to, else one of its own.
func (c *call) joinMarked() error {
	c.r, c.n = &c.own, 1
	if err := c.claimMarked(); err != nil {
		return err
	}
	c.document()
	if c.mark.reads {
		return c.refresh()
	}
	return nil
}

// joinNamed takes over what the journal knows of a named operation.
func (c *call) joinNamed() (read bool, err error) {
	c.lasting = context.WithoutCancel(c.req.Context())
	if err := c.r.load(c.lasting); err != nil {
		return false, c.refusal(fmt.Errorf("%w: %w", ErrJournal, err))
	}
	rec := c.r.record()
	c.n = rec.Call + 1
	if c.req.Response != nil { // a redirect hop is the same request elsewhere
		return false, nil
	}
	c.fingerprint, err = fingerprint(c.req, c.req.Header.Get(c.keyHeader()))
	if err == nil && !rec.binds(c.fingerprint) {
		d := Decide(rec, time.Now())
		err = c.r.lost(c.req, &rec, d, ErrMismatch).until(c.req.Context()).returned()
	}
	return c.req.GetBody != nil && hasBody(c.req) && !isSnapshot(c.req.GetBody), err
}

// refresh replaces a body that was, or may have been, read to identify the
// request: a GetBody may return the very reader that is the body.
func (c *call) refresh() error {
	body, err := c.req.GetBody()
	if err != nil {
		return fmt.Errorf("rubicon: GetBody: %w", err)
	}
	c.body = &pair{body, c.req.Body}
	return nil
}

// join finds the request of op that req belongs to, or adds it. It reports
// whether req's body was read to find out, so that a fresh one must be sent:
// a GetBody may return the very reader that is the body.
func (op *Operation) join(t *Transport, req *http.Request) (r *request, read bool, err error) {
	if op.over() {
		return nil, false, ErrEnded
	}
	if r := op.redirected(req); r != nil {
		return r, false, nil
	}
	if op.intent.Key.Name != "" && !isSafe(req.Method) {
		if read = isTokenRequest(req); !read {
			return op.bind(t, req), false, nil
		}
	}
	id := identify(req)
	for _, r := range op.candidates(&id) {
		read = read || id.body != nil
		if err := id.sum(); err != nil {
			return nil, read, err
		}
		if op.claim(r, &id) {
			return r, read, nil
		}
	}
	return op.add(id), read, nil
}

// redirected returns the request that req is the next hop of, if the redirect
// kept an unsafe method (RFC 9110 sections 15.4.8 and 15.4.9).
func (op *Operation) redirected(req *http.Request) *request {
	if req.Response == nil || req.Response.Request == nil || isSafe(req.Method) {
		return nil
	}
	from := identify(req.Response.Request)
	op.mu.Lock()
	defer op.mu.Unlock()
	for _, r := range op.open {
		if !r.leads(&from) {
			continue
		}
		r.hops = append(r.hops, identify(req))
		r.calls++
		r.running++
		op.latest = r
		return r
	}
	return nil
}

// leads reports whether from is r or one of the hops of r, bodies aside.
func (r *request) leads(from *identity) bool {
	if r.id.alikeOnce(from) {
		return true
	}
	for i := range r.hops {
		if r.hops[i].alikeOnce(from) {
			return true
		}
	}
	return false
}

// call returns how many calls r had so far.
func (r *request) call() int {
	r.op.mu.Lock()
	defer r.op.mu.Unlock()
	return r.calls
}

// candidates returns the requests that id may be a retry of.
func (op *Operation) candidates(id *identity) []*request {
	op.mu.Lock()
	defer op.mu.Unlock()
	var like []*request
	for _, r := range op.open {
		if r.journal == nil && r.running == 0 && r.id.alike(id) {
			like = append(like, r)
		}
	}
	return like
}

// claim makes r the request of another call with identity id, unless it is
// another's, or somebody is at it.
func (op *Operation) claim(r *request, id *identity) bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	if r.running > 0 || r.id.sum() != nil || r.id.hash != id.hash {
		return false
	}
	if rec := r.record(); r.busy(&rec) {
		return false
	}
	r.calls++
	r.running++
	if !isSafe(id.method) || op.latest == nil {
		op.latest = r
	}
	return true
}

// busy reports whether an attempt of r is still under way.
func (r *request) busy(rec *Record) bool {
	return rec.some(func(a *Attempt) bool { return !a.Ended && a.Verdict == VerdictUnknown })
}

// add makes a new request with identity id.
func (op *Operation) add(id identity) *request {
	op.mu.Lock()
	defer op.mu.Unlock()
	r := op.newLocked()
	r.id = id
	if latest := op.latest; latest == nil || !isSafe(id.method) || isSafe(latest.id.method) {
		op.latest = r
	}
	return r
}

// newLocked returns a new open request with one call running.
func (op *Operation) newLocked() *request {
	r := &op.inline
	if r.op != nil {
		r = new(request)
	}
	r.op, r.calls, r.running = op, 1, 1
	if op.open == nil {
		op.open = op.first[:0]
	}
	op.open = append(op.open, r)
	return r
}

// bind returns the one unsafe request of a named operation.
func (op *Operation) bind(t *Transport, req *http.Request) *request {
	op.mu.Lock()
	defer op.mu.Unlock()
	for _, r := range op.open {
		if r.journal != nil {
			r.calls++
			r.running++
			op.latest = r
			return r
		}
	}
	r := op.newLocked()
	r.key, r.journal = op.intent.Key, t.journal()
	r.id = identify(req)
	r.id.body = nil
	op.latest = r
	return r
}

// leave says that a call of r is over. A request that was answered for good is
// forgotten: the same one again is a new intent, such as the next poll. One
// with a key stays.
func (r *request) leave() {
	if r.op == nil {
		return
	}
	r.op.mu.Lock()
	defer r.op.mu.Unlock()
	r.running--
	r.dropLocked()
}

// settled tells r that its record changed after its calls were over.
func (r *request) settled() {
	if r.op == nil {
		return
	}
	r.op.mu.Lock()
	defer r.op.mu.Unlock()
	r.dropLocked()
}

func (r *request) dropLocked() {
	if r.running > 0 || r.journal != nil {
		return
	}
	r.entry.mu.Lock()
	settled := r.rec.settled()
	r.entry.mu.Unlock()
	if !settled {
		return
	}
	open := r.op.open
	for i, other := range open {
		if other == r {
			r.op.open = append(open[:i], open[i+1:]...)
			r.id.body = nil
			return
		}
	}
}

// keyFor returns the idempotency key of r: the one that req carries, else one
// that follows from the operation's key, else a random one. It is the same for
// every attempt of r.
func (r *request) keyFor(req *http.Request, header string) string {
	if own := req.Header.Get(header); own != "" {
		return own
	}
	if r.key.Name == "" {
		return rand.Text()
	}
	buf := append(make([]byte, 0, 256), "rubicon\x00"...)
	buf = append(append(append(buf, r.key.Scope...), 0), r.key.Name...)
	sum := sha256.Sum256(buf)
	return hex.EncodeToString(sum[:16])
}

// begin books an attempt, in the journal first. The journal is asked in a
// context that the caller can't cancel.
func (r *request) begin(ctx context.Context, p Proposal) (Ticket, error) {
	if r.journal == nil {
		return r.entry.Begin(ctx, p)
	}
	p.Key, p.ID = r.key, rand.Text()
	ticket, err := r.journal.Begin(ctx, p)
	if err == nil {
		r.booked(ticket, p)
	}
	return ticket, err
}

// booked takes over what the journal has booked.
func (r *request) booked(t Ticket, p Proposal) {
	r.entry.mu.Lock()
	defer r.entry.mu.Unlock()
	if len(r.rec.Attempts) == 0 {
		r.rec.Terms, r.rec.Attempts = p.Terms, r.first[:0]
	}
	r.rec.Fold(Fact{N: t.N, Attempt: Attempt{Reason: p.Reason, Call: p.Call, Keyed: p.Keyed, Begun: time.Now()}})
}

// observe tells the record, and the journal if there is one, a fact.
func (r *request) observe(ctx context.Context, t Ticket, f Fact) error {
	r.entry.Observe(ctx, t, f)
	if r.journal == nil {
		return nil
	}
	return r.journal.Observe(ctx, t, f)
}

// load takes over what the journal knows.
func (r *request) load(ctx context.Context) error {
	if r.journal == nil {
		return nil
	}
	rec, err := r.journal.Load(ctx, r.key)
	if err != nil {
		return err
	}
	r.entry.mu.Lock()
	defer r.entry.mu.Unlock()
	r.rec = rec
	return nil
}
