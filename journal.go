package rubicon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A Journal keeps the records of named operations. The transport asks it
// before the first byte of every attempt and tells it what it learns. Its
// methods may be called concurrently, and with a context that the caller of
// the operation can't cancel.
type Journal interface {
	// Begin decides whether the attempt may be made and books it, in one step,
	// so that nothing can come between the two. When it returns, the attempt
	// is recorded as one that may have been sent. A *BlockedError says that it
	// may not be made; after any other error nothing is known, and nothing
	// may be sent.
	Begin(ctx context.Context, p Proposal) (Ticket, error)

	// Observe folds a fact about the ticket's attempt into the record. It may
	// be repeated, and come late or out of order.
	Observe(ctx context.Context, t Ticket, f Fact) error

	// Load returns the record of an operation; a zero one if there is none.
	Load(ctx context.Context, key Key) (Record, error)

	// Cancel gives an operation up for good: no attempt begins after it.
	Cancel(ctx context.Context, key Key) error
}

// A Proposal is an attempt that the transport would like to make.
type Proposal struct {
	Key         Key
	ID          string    // the attempt's own name: the same proposal twice is one attempt
	Fingerprint string    // of the request; "" matches every other
	Terms       Terms     // Terms.ReplayUntil counts for the first attempt only
	Budget      Budget    // resolved: what the operation may spend, this attempt included
	Until       time.Time // no attempt begins at or after this; zero: no bound
	Call        int       // see Attempt.Call
	Reason      Reason    // what the transport takes the attempt to be
	Keyed       bool      // it will carry the operation's idempotency key
	Deadline    time.Time // when it can no longer be in flight; zero: until it ended
}

// A Ticket names a booked attempt.
type Ticket struct {
	Key   Key
	N     int   // the attempt's number, from 1
	Fence int64 // of the owner that booked it; a journal may ignore facts under an older one
}

// A BlockedError says that an attempt may not be made, and why.
type BlockedError struct {
	Decision Decision // zero if the request is another than the operation's
	Err      error    // ErrMismatch, ErrInProgress, or nil
}

// Error implements error.
func (e *BlockedError) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return fmt.Sprintf("rubicon: attempt blocked: %s: %s", e.Decision.Action, e.Decision.Why)
}

// Unwrap returns e.Err.
func (e *BlockedError) Unwrap() error { return e.Err }

// reason returns what an attempt made by d would be, and whether d allows one.
func (d Decision) reason() (Reason, bool) {
	switch {
	case d.Action == Replay && !d.Guards.Holds(GuardRenewed):
		return ReasonReplay, true
	case d.Action != Send && d.Action != Replay:
		return ReasonFirst, false
	case d.Guards.Holds(GuardFresh):
		return ReasonFirst, true
	case d.Guards.Holds(GuardRedirect):
		return ReasonRedirect, true
	case d.Guards.Holds(GuardRenewed):
		return ReasonRefresh, true
	default:
		return ReasonSend, true
	}
}

// binds reports whether a request with the given fingerprint may be the one of
// r: "" may be any.
func (r *Record) binds(fingerprint string) bool {
	return r.Fingerprint == "" || fingerprint == "" || r.Fingerprint == fingerprint
}

// admit decides whether p may be made now of the operation of r, and books it.
func admit(r *Record, p Proposal, now time.Time) (int, error) {
	for i := range r.Attempts {
		if p.ID != "" && r.Attempts[i].ID == p.ID {
			return i + 1, nil
		}
	}
	if len(r.Attempts) == 0 {
		r.Terms = p.Terms
	}
	r.Terms.Repeat, r.Terms.Renew = p.Terms.Repeat, p.Terms.Renew
	r.Budget, r.Until = p.Budget, p.Until
	r.Fingerprint = first(r.Fingerprint, p.Fingerprint)
	d := firstDecision
	if !r.fresh() {
		view := r.asked(p.Call, p.Keyed)
		d = decide(&view, now, weigh(&view, now))
	}
	r.Call = max(r.Call, p.Call)
	reason, ok := d.reason()
	switch {
	case d.Action == Wait && d.Next == Report:
		return 0, &BlockedError{d, ErrInProgress}
	case !ok || reason != p.Reason:
		return 0, &BlockedError{d, nil}
	}
	n := len(r.Attempts) + 1
	r.Fold(Fact{N: n, Attempt: Attempt{
		ID: p.ID, Reason: reason, Call: p.Call, Keyed: p.Keyed, Begun: now, Deadline: p.Deadline,
	}})
	return n, nil
}

// asked returns r as the given call sees it: held by its own answers only, and
// licensed by a key only if its attempt would carry the key.
func (r *Record) asked(call int, keyed bool) Record {
	view := *r
	view.Call = call
	view.Terms.Keyed = r.Terms.Keyed && keyed
	return view
}

// An entry is the record of one operation in memory. It is a journal of that
// one operation, whatever key it is asked for.
type entry struct {
	mu    sync.Mutex
	rec   Record
	first [1]Attempt // backs rec.Attempts as long as there is only one
}

// Begin implements [Journal].
func (e *entry) Begin(_ context.Context, p Proposal) (Ticket, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.rec.binds(p.Fingerprint) {
		return Ticket{}, &BlockedError{Err: ErrMismatch}
	}
	if e.rec.Attempts == nil {
		e.rec.Attempts = e.first[:0]
	}
	n, err := admit(&e.rec, p, time.Now())
	if err != nil {
		return Ticket{}, err
	}
	return Ticket{Key: p.Key, N: n}, nil
}

// Observe implements [Journal].
func (e *entry) Observe(_ context.Context, t Ticket, f Fact) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	f.N = t.N
	e.rec.Fold(f)
	return nil
}

// Load implements [Journal].
func (e *entry) Load(context.Context, Key) (Record, error) { return e.record(), nil }

// record returns a copy of the record.
func (e *entry) record() Record {
	e.mu.Lock()
	defer e.mu.Unlock()
	rec := e.rec
	rec.Attempts = append([]Attempt(nil), rec.Attempts...)
	return rec
}

// Cancel implements [Journal].
func (e *entry) Cancel(context.Context, Key) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rec.Fold(Fact{Canceled: true})
	return nil
}

// A MemoryJournal is a [Journal] that lives as long as the process. The zero
// value is ready. It is what a [Transport] without a journal uses.
type MemoryJournal struct {
	// Limit is how many records are kept. When it is reached, the oldest
	// operation that was answered for good is forgotten, else the oldest of
	// which nothing was applied; one whose outcome is unknown never is. Zero:
	// 65,536.
	Limit int

	mu      sync.Mutex
	entries map[Key]*memoryEntry
	oldest  *memoryEntry // by the time they were added
	newest  *memoryEntry
}

// A memoryEntry is an element of the list of a MemoryJournal.
type memoryEntry struct {
	entry
	key        Key
	prev, next *memoryEntry
}

// ErrFull says that a [MemoryJournal] holds nothing but operations whose
// outcome is unknown, up to its limit.
var ErrFull = errors.New("rubicon: the journal is full of operations with an unknown outcome: raise MemoryJournal.Limit or keep a durable journal")

// Begin implements [Journal].
func (j *MemoryJournal) Begin(ctx context.Context, p Proposal) (Ticket, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e, err := j.entryLocked(p.Key)
	if err != nil {
		return Ticket{}, err
	}
	return e.Begin(ctx, p)
}

// Observe implements [Journal]. A fact about an operation that was forgotten,
// which was settled, is forgotten too.
func (j *MemoryJournal) Observe(ctx context.Context, t Ticket, f Fact) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e := j.entries[t.Key]; e != nil {
		return e.Observe(ctx, t, f)
	}
	return nil
}

// Load implements [Journal].
func (j *MemoryJournal) Load(ctx context.Context, key Key) (Record, error) {
	j.mu.Lock()
	e := j.entries[key]
	j.mu.Unlock()
	if e == nil {
		return Record{}, nil
	}
	return e.record(), nil
}

// Cancel implements [Journal].
func (j *MemoryJournal) Cancel(ctx context.Context, key Key) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	e, err := j.entryLocked(key)
	if err != nil {
		return err
	}
	return e.Cancel(ctx, key)
}

// entryLocked returns the entry of key, making it if there is none. What is
// done with it must be done before another may be forgotten.
func (j *MemoryJournal) entryLocked(key Key) (*memoryEntry, error) {
	if e := j.entries[key]; e != nil {
		return e, nil
	}
	if len(j.entries) >= first(j.Limit, 1<<16) && !j.forgetLocked() {
		return nil, ErrFull
	}
	if j.entries == nil {
		j.entries = make(map[Key]*memoryEntry)
	}
	e := &memoryEntry{key: key, prev: j.newest}
	if e.prev == nil {
		j.oldest = e
	} else {
		e.prev.next = e
	}
	j.newest, j.entries[key] = e, e
	return e, nil
}

// forgetLocked drops an operation whose outcome is known, if there is one.
func (j *MemoryJournal) forgetLocked() bool {
	for _, may := range [...]func(*Record) bool{(*Record).settled, (*Record).idle} {
		for e := j.oldest; e != nil; e = e.next {
			if e.is(may) {
				j.dropLocked(e)
				return true
			}
		}
	}
	return false
}

// is reports whether the record has a property.
func (e *memoryEntry) is(property func(*Record) bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return property(&e.rec)
}

// settled reports whether the operation was answered for good.
func (r *Record) settled() bool {
	o := r.Outcome()
	return o == Succeeded || o == Failed || o == Incomplete
}

// idle reports whether nothing of the operation was applied, nor is under way,
// nor need be remembered.
func (r *Record) idle() bool { return r.clean() && len(r.Attempts) > 0 && !r.Canceled }

// dropLocked takes e out.
func (j *MemoryJournal) dropLocked(e *memoryEntry) {
	delete(j.entries, e.key)
	if e.prev == nil {
		j.oldest = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		j.newest = e.prev
	} else {
		e.next.prev = e.prev
	}
}
