package rubicon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/rubicon-go/rubicon/contract"
)

// None, as a field of a [Budget], allows none where zero means the default.
const None = -1

// A Budget is what one operation may spend. Attempts counts the times that it
// is put on the wire, whatever layer does so; the allowances count the
// attempts after the first, by their reason. A zero field takes the
// [Transport]'s, or else its default; [None] allows none; other negative
// values are an error.
type Budget struct {
	Attempts  int           // wire attempts, the first included; auth replays, resumes and redirects are not counted. Zero: 4. None is an error.
	Sends     int           // after proof that nothing was applied. Zero: 3.
	Replays   int           // under a licence, after an attempt that may have acted. Zero: 3.
	Refreshes int           // under a renewed credential. Zero: 1.
	Resumes   int           // reads of the existing operation. Zero: none.
	Elapsed   time.Duration // how long after the first attempt another attempt or wait may begin; it never ends one in flight. Zero: 2 minutes.
}

// defaultBudget holds what a zero field means.
var defaultBudget = Budget{Attempts: 4, Sends: 3, Replays: 3, Refreshes: 1, Resumes: None, Elapsed: 2 * time.Minute}

// or returns b with the zero fields taken from d.
func (b Budget) or(d Budget) Budget {
	return Budget{
		Attempts:  first(b.Attempts, d.Attempts),
		Sends:     first(b.Sends, d.Sends),
		Replays:   first(b.Replays, d.Replays),
		Refreshes: first(b.Refreshes, d.Refreshes),
		Resumes:   first(b.Resumes, d.Resumes),
		Elapsed:   first(b.Elapsed, d.Elapsed),
	}
}

// resolve returns b with defaults in place of zeros and zeros in place of None.
func (b Budget) resolve() (Budget, error) {
	b = b.or(defaultBudget)
	switch {
	case b.Attempts < 0:
		return b, errors.New("rubicon: Budget.Attempts is negative: an operation needs at least one attempt")
	case min(b.Sends, b.Replays, b.Refreshes, b.Resumes) < None, b.Elapsed < None:
		return b, errors.New("rubicon: a Budget field is negative and not rubicon.None")
	}
	return Budget{
		Attempts: b.Attempts,
		Sends:    max(b.Sends, 0), Replays: max(b.Replays, 0),
		Refreshes: max(b.Refreshes, 0), Resumes: max(b.Resumes, 0),
		Elapsed: max(b.Elapsed, 0),
	}, nil
}

// String prints b with its defaults in place.
func (b Budget) String() string {
	r, err := b.resolve()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d attempts (%d sends, %d replays, %d refreshes, %d resumes) within %v",
		r.Attempts, r.Sends, r.Replays, r.Refreshes, r.Resumes, r.Elapsed)
}

// LogValue implements [slog.LogValuer].
func (b Budget) LogValue() slog.Value { return slog.StringValue(b.String()) }

// allowance returns the field that an attempt made for r draws on, or nil if
// it draws on none.
func (b *Budget) allowance(r Reason) *int {
	switch r {
	case ReasonSend:
		return &b.Sends
	case ReasonReplay:
		return &b.Replays
	case ReasonRefresh:
		return &b.Refreshes
	case ReasonResume:
		return &b.Resumes
	}
	return nil
}

// A Kind says what a request does. It decides which pool of a turn the
// request's extra attempts draw on, and whether [Transport.Repeat] covers it.
type Kind uint8

const (
	Auto       Kind = iota // by the endpoint, else by the method: Read if it is safe, else Effect
	Generation             // it starts a model generation: a repetition costs money and gives another answer
	Effect                 // it changes something
	Read                   // it changes nothing
	kinds
)

// String returns the name of k in lower case.
func (k Kind) String() string { return nameOf(k, "auto", "generation", "effect", "read") }

// covers reports whether accepting the repetition of k accepts that of a
// request of kind other: Effect covers Generation too, Auto covers nothing.
func (k Kind) covers(other Kind) bool {
	return k != Auto && (k == other || k == Effect && other == Generation)
}

// A Key names an operation durably: the same key, the same operation, in
// whatever process. It binds exactly one unsafe request. The zero Key names
// nothing.
type Key struct {
	Scope string // such as "billing"
	Name  string // such as "invoice-77"; empty makes the key zero
}

// String returns scope and name.
func (k Key) String() string { return k.Scope + "/" + k.Name }

// An Intent is what the caller means to be done once. The zero Intent is an
// unnamed operation that lives in memory: each different request made with its
// context has a record of its own, and all draw on one budget.
type Intent struct {
	Key    Key    // zero: unnamed
	Kind   Kind   // zero: by the endpoint, else by the method
	Budget Budget // zero fields: the Transport's
	Repeat Kind   // the kind of request that may act twice; zero: as the endpoint and the Transport say
}

// An Operation is the handle of one intent: it travels in the context, so that
// every layer that makes requests with it draws on one record, and it tells
// afterwards what really happened, whatever an SDK made of it. Its methods may
// be called concurrently.
type Operation struct {
	node   operationContext
	intent Intent
	parent *Operation
	start  time.Time // of an operation with an Elapsed of its own

	mu     sync.Mutex
	id     string
	pools  *[kinds]Budget // extras left, by kind; nil until one is spent
	open   []*request     // requests whose outcome may still matter
	latest *request       // the latest unsafe request, else the latest
	ended  bool
	first  [1]*request // backs open as long as there is only one
	inline request     // the first
}

// operationContext carries an operation to whoever makes its requests.
type operationContext struct {
	context.Context
	op *Operation
}

// operationKey is the context key of an operation.
type operationKey struct{}

// Value implements [context.Context].
func (c *operationContext) Value(key any) any {
	if key == (operationKey{}) {
		return c.op
	}
	return c.Context.Value(key)
}

// String keeps the context's values out of messages.
func (c *operationContext) String() string { return "rubicon.Begin" }

// Begin returns a context that carries a new operation, and its handle. In a
// context that carries one already, the new one is nested: it draws on both
// budgets, on the pool of its kind of the enclosing one. The caller's context
// is never canceled by the operation.
//
// The caller should call [Operation.End] when it has read what it wants.
// Forgetting that leaks nothing.
func Begin(ctx context.Context, in Intent) (context.Context, *Operation) {
	op := &Operation{intent: in, parent: FromContext(ctx)}
	op.node = operationContext{ctx, op}
	if in.Budget.Elapsed > 0 {
		op.start = time.Now()
	}
	return &op.node, op
}

// FromContext returns the operation that ctx carries, or nil.
func FromContext(ctx context.Context) *Operation {
	op, _ := ctx.Value(operationKey{}).(*Operation)
	return op
}

// End says that nothing more is to be sent for the operation. A body that is
// being read goes on.
func (op *Operation) End() {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.ended = true
}

// ID returns the operation's own identifier: its key, or a random name.
func (op *Operation) ID() string {
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.idLocked()
}

func (op *Operation) idLocked() string {
	switch {
	case op.id != "":
	case op.intent.Key.Name != "":
		op.id = op.intent.Key.String()
	default:
		op.id = rand.Text()
	}
	return op.id
}

// Outcome says what is known of the operation's effect: of an unsafe request
// that may have acted if there is one, else of the latest unsafe request, else
// of the latest.
func (op *Operation) Outcome() Outcome {
	r := op.telling()
	if r == nil {
		return Unsent
	}
	rec := r.record()
	return rec.Outcome()
}

// Attempts returns what is known of the attempts of the request that
// [Operation.Outcome] speaks of, in their order, at most 64 of them.
func (op *Operation) Attempts() []Attempt {
	r := op.telling()
	if r == nil {
		return nil
	}
	rec := r.record()
	return rec.Attempts[:min(len(rec.Attempts), 64)]
}

// Stream returns how the streamed answer to the request that
// [Operation.Outcome] speaks of ended. Zero: there was none, or it has not
// ended.
func (op *Operation) Stream() contract.End {
	r := op.telling()
	if r == nil {
		return contract.End{}
	}
	return r.lastEnd()
}

// Err joins err, as an SDK returned it, with what really happened: SDKs lose
// error types and some say nil. It returns err as it is when nothing of the
// operation is in doubt and its answer was whole, or err tells the truth
// already.
func (op *Operation) Err(err error) error {
	r := op.telling()
	if r == nil {
		return err
	}
	rec := r.record()
	var told *Error
	switch knows := errors.As(err, &told); rec.Outcome() {
	case Ambiguous, Interrupted, Contradicted:
		if rec.Terms.Safe || r.busy(&rec) || knows && told.Outcome == rec.Outcome() {
			return err
		}
		return errors.Join(err, r.truth(&rec))
	default:
		if lost := r.lastLoss(); lost != nil && !knows {
			return errors.Join(err, lost)
		}
		return err
	}
}

// telling returns the request that speaks for the operation: the latest of
// which it is in doubt what it did; one that is under way has not had its say.
func (op *Operation) telling() *request {
	op.mu.Lock()
	open, telling := append([]*request(nil), op.open...), op.latest
	op.mu.Unlock()
	decided := false
	for _, r := range open {
		rec := r.record()
		if busy := r.busy(&rec); rec.inDoubt() && !(busy && decided) {
			telling, decided = r, !busy
		}
	}
	return telling
}

// inDoubt reports whether nobody knows what an unsafe request has done.
func (r *Record) inDoubt() bool {
	if r.Terms.Safe {
		return false
	}
	o := r.Outcome()
	return o == Ambiguous || o == Interrupted || o == Contradicted
}

// LogValue implements [slog.LogValuer].
func (op *Operation) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("id", op.ID()),
		slog.String("kind", op.intent.Kind.String()),
		slog.String("outcome", op.Outcome().String()),
		slog.Int("attempts", len(op.Attempts())),
	)
}

// String returns the operation's identifier, and nothing of its context.
func (op *Operation) String() string { return "operation " + op.ID() }

// GoString is String, so that %#v prints no context.
func (op *Operation) GoString() string { return op.String() }

// budget returns the operation's budget over the transport's.
func (op *Operation) budget(t *Transport) (Budget, error) {
	if op == nil || op.intent.Budget == (Budget{}) {
		return t.budget()
	}
	return op.intent.Budget.or(t.Budget).resolve()
}

// left returns how much of the extras of kind k the operation and those around
// it still allow.
func (op *Operation) left(t *Transport, k Kind) (Budget, error) {
	left := Budget{Attempts: unbounded, Sends: unbounded, Replays: unbounded, Refreshes: unbounded, Resumes: unbounded}
	for o := op; o != nil; o = o.parent {
		pool, err := o.pool(t, k)
		if err != nil {
			return Budget{}, err
		}
		left.Attempts = min(left.Attempts, pool.Attempts)
		left.Sends = min(left.Sends, pool.Sends)
		left.Replays = min(left.Replays, pool.Replays)
		left.Refreshes = min(left.Refreshes, pool.Refreshes)
		left.Resumes = min(left.Resumes, pool.Resumes)
	}
	return left, nil
}

// unbounded is more than any budget spends, and small enough to add to.
const unbounded = 1 << 30

// pool returns what is left of the extras of kind k.
func (op *Operation) pool(t *Transport, k Kind) (Budget, error) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if err := op.fillLocked(t); err != nil {
		return Budget{}, err
	}
	return op.pools[k], nil
}

// fillLocked fills the pools from the operation's budget, once.
func (op *Operation) fillLocked(t *Transport) error {
	if op.pools != nil {
		return nil
	}
	b, err := op.budget(t)
	if err != nil {
		return err
	}
	b.Attempts--
	if b.Refreshes > 0 { // of each request: what is rejected together is renewed together
		b.Refreshes = unbounded
	}
	op.pools = new([kinds]Budget)
	for k := range op.pools {
		op.pools[k] = b
	}
	return nil
}

// reserve draws one extra attempt for reason r and kind k from the operation
// and all around it, or from none. It reports whether it could.
func (op *Operation) reserve(t *Transport, k Kind, r Reason) bool {
	for o := op; o != nil; o = o.parent {
		if !o.draw(t, k, r, 1) {
			op.giveBack(t, k, r, o)
			return false
		}
	}
	return true
}

// giveBack undoes a reservation in op and those around it up to, but not
// including, end; nil is beyond the outermost.
func (op *Operation) giveBack(t *Transport, k Kind, r Reason, end *Operation) {
	for o := op; o != end; o = o.parent {
		o.draw(t, k, r, -1)
	}
}

// draw takes n extras from the operation's own pool, if they are there.
func (op *Operation) draw(t *Transport, k Kind, r Reason, n int) bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.fillLocked(t) != nil {
		return false
	}
	pool := &op.pools[k]
	if r.wire() {
		if pool.Attempts < n {
			return false
		}
		pool.Attempts -= n
	}
	left := pool.allowance(r)
	if left == nil {
		return true
	}
	if *left < n {
		if r.wire() {
			pool.Attempts += n
		}
		return false
	}
	*left -= n
	return true
}

// until returns when the operations around op, and op itself, allow no further
// attempt; zero if none of them has an Elapsed of its own.
func (op *Operation) until() time.Time {
	var until time.Time
	for o := op; o != nil; o = o.parent {
		if !o.start.IsZero() && o != op {
			until = sooner(until, o.start.Add(o.intent.Budget.Elapsed))
		}
	}
	return until
}

// sooner returns the earlier of two times, where zero means never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// over reports whether nothing more may be sent for op: it, or one around it,
// has ended.
func (op *Operation) over() bool {
	for o := op; o != nil; o = o.parent {
		o.mu.Lock()
		ended := o.ended
		o.mu.Unlock()
		if ended {
			return true
		}
	}
	return false
}

// first returns a unless it is zero, then b.
func first[T comparable](a, b T) T {
	var zero T
	if a == zero {
		return b
	}
	return a
}

// A Throttle bounds extra attempts across operations, in the manner of gRPC's
// retry throttling (gRFC A6): every failed attempt takes a token, every
// success gives a part of one back, and no extra attempt is made while half of
// the tokens or more are gone. A nil Throttle allows all; the zero value is
// ready. It may be shared by transports and used concurrently.
type Throttle struct {
	Tokens float64 // how many there are at most. Zero: 10.
	Ratio  float64 // how much a success gives back. Zero: 0.1.

	mu   sync.Mutex
	gone float64
}

// allow reports whether an extra attempt may be made.
func (th *Throttle) allow() bool {
	if th == nil {
		return true
	}
	th.mu.Lock()
	defer th.mu.Unlock()
	return th.gone < first(th.Tokens, 10)/2
}

// count takes a token for an attempt that failed where another might not, and
// gives a part of one back for one that was answered for good.
func (th *Throttle) count(a Attempt) {
	if th == nil {
		return
	}
	th.mu.Lock()
	defer th.mu.Unlock()
	switch {
	case a.Verdict == VerdictSucceeded, a.Verdict == VerdictFailed, a.Verdict == VerdictIncomplete:
		th.gone = max(0, th.gone-first(th.Ratio, 0.1))
	case !a.Final && !a.Rejected:
		th.gone = min(first(th.Tokens, 10), th.gone+1)
	}
}
