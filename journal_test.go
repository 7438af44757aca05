package rubicon_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rubicon-go/rubicon"
)

// plenty is a resolved budget that nothing exhausts.
var plenty = rubicon.Budget{Attempts: 9, Sends: 9, Replays: 9, Refreshes: 9, Resumes: 9, Elapsed: time.Hour}

// What attempts of these tests come to.
var (
	notApplied = rubicon.Attempt{Ended: true, Evidence: rubicon.Evidence{
		Reach: rubicon.ReachSent, Verdict: rubicon.VerdictNotApplied, Proof: rubicon.ProofRefused}}
	ambiguous = rubicon.Attempt{Ended: true, Evidence: rubicon.Evidence{Reach: rubicon.ReachSent}}
	succeeded = rubicon.Attempt{Ended: true, Status: 200, Evidence: rubicon.Evidence{
		Reach: rubicon.ReachAccepted, Verdict: rubicon.VerdictSucceeded, Proof: rubicon.ProofStatus}}
)

// A book is a journal in the hands of a test.
type book struct {
	*testing.T
	rubicon.Journal
}

// proposal returns a proposal for an attempt of call 1 of the key's operation.
func proposal(key rubicon.Key, reason rubicon.Reason) rubicon.Proposal {
	return rubicon.Proposal{Key: key, Reason: reason, Budget: plenty, Call: 1, Fingerprint: "f"}
}

// begin books an attempt, which must be allowed.
func (b book) begin(p rubicon.Proposal) rubicon.Ticket {
	b.Helper()
	ticket, err := b.Journal.Begin(b.Context(), p)
	if err != nil {
		b.Fatalf("begin %v: %v", p.Reason, err)
	}
	if ticket.Key != p.Key || ticket.N < 1 {
		b.Fatalf("begin %v: ticket %+v", p.Reason, ticket)
	}
	return ticket
}

// refuse proposes an attempt, which must not be allowed, and returns why.
func (b book) refuse(p rubicon.Proposal) *rubicon.BlockedError {
	b.Helper()
	ticket, err := b.Journal.Begin(b.Context(), p)
	var blocked *rubicon.BlockedError
	if !errors.As(err, &blocked) {
		b.Fatalf("begin %v: ticket %+v, error %v, want a refusal", p.Reason, ticket, err)
	}
	return blocked
}

// observe folds a fact about an attempt into the record.
func (b book) observe(ticket rubicon.Ticket, a rubicon.Attempt) {
	b.Helper()
	b.fact(ticket, rubicon.Fact{Attempt: a})
}

// fact folds f into the record.
func (b book) fact(ticket rubicon.Ticket, f rubicon.Fact) {
	b.Helper()
	if err := b.Journal.Observe(b.Context(), ticket, f); err != nil {
		b.Fatal(err)
	}
}

// load returns the record of key.
func (b book) load(key rubicon.Key) rubicon.Record {
	b.Helper()
	r, err := b.Journal.Load(b.Context(), key)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// cancel gives the operation of key up.
func (b book) cancel(key rubicon.Key) {
	b.Helper()
	if err := b.Journal.Cancel(b.Context(), key); err != nil {
		b.Fatal(err)
	}
}

// testJournal holds what a Journal promises. make returns an empty one. The
// suite needs nothing but the interface, so that every implementation can be
// run against it.
func testJournal(t *testing.T, make func() rubicon.Journal) {
	for name, test := range map[string]func(book, rubicon.Key){
		"empty":                  journalEmpty,
		"books before it allows": journalBooks,
		"settles":                journalSettles,
		"mismatch":               journalMismatch,
		"in progress":            journalInProgress,
		"another reason":         journalReason,
		"same proposal twice":    journalSameProposal,
		"one winner":             journalOneWinner,
		"facts in any order":     journalFacts,
		"facts after the end":    journalLateFacts,
		"cancel is final":        journalCancel,
		"cancel in flight":       journalCancelInFlight,
		"terms are fixed":        journalTerms,
		"replay needs the key":   journalKeyed,
		"operations are apart":   journalApart,
		"records are copies":     journalCopies,
	} {
		t.Run(name, func(t *testing.T) {
			test(book{t, make()}, rubicon.Key{Scope: "test", Name: name})
		})
	}
}

// journalEmpty: of what was never begun there is a zero record.
func journalEmpty(b book, key rubicon.Key) {
	if r := b.load(key); len(r.Attempts) != 0 || r.Canceled || r.Outcome() != rubicon.Unsent {
		b.Errorf("%+v", r)
	}
}

// journalBooks: when Begin returns, the attempt is on record, as one that may
// have been sent.
func journalBooks(b book, key rubicon.Key) {
	p := proposal(key, rubicon.ReasonFirst)
	p.Deadline = time.Now().Add(time.Hour)
	p.Keyed = true
	before := time.Now()
	ticket := b.begin(p)
	r := b.load(key)
	if ticket.N != 1 || len(r.Attempts) != 1 || r.Outcome() != rubicon.Ambiguous {
		b.Fatalf("ticket %d, %v, %+v", ticket.N, r.Outcome(), r.Attempts)
	}
	a := r.Attempts[0]
	if a.Reason != rubicon.ReasonFirst || a.Call != 1 || !a.Keyed || a.Ended || !a.Deadline.Equal(p.Deadline) {
		b.Errorf("booked %+v", a)
	}
	if a.Begun.Before(before.Add(-time.Second)) || a.Begun.After(time.Now().Add(time.Second)) {
		b.Errorf("begun at %v, not at %v", a.Begun, before)
	}
	if r.Fingerprint != "f" || r.Budget != plenty || r.Call != 1 {
		b.Errorf("record %+v", r)
	}
}

// journalSettles: after proof that nothing was applied there is another
// attempt, and after a success there is none.
func journalSettles(b book, key rubicon.Key) {
	b.observe(b.begin(proposal(key, rubicon.ReasonFirst)), notApplied)
	second := b.begin(proposal(key, rubicon.ReasonSend))
	if second.N != 2 {
		b.Errorf("the second attempt has number %d", second.N)
	}
	b.observe(second, succeeded)
	if d := b.refuse(proposal(key, rubicon.ReasonSend)).Decision; d.Action != rubicon.Settle || d.Why != rubicon.WhySucceeded {
		b.Errorf("%v because %v", d.Action, d.Why)
	}
	if r := b.load(key); r.Outcome() != rubicon.Succeeded || len(r.Attempts) != 2 {
		b.Errorf("%v after %d attempts", r.Outcome(), len(r.Attempts))
	}
}

// journalMismatch: a key binds one request for good.
func journalMismatch(b book, key rubicon.Key) {
	ticket := b.begin(proposal(key, rubicon.ReasonFirst))
	other := proposal(key, rubicon.ReasonSend)
	other.Fingerprint = "g"
	for range 2 { // in flight, and after it
		if err := b.refuse(other); !errors.Is(err, rubicon.ErrMismatch) {
			b.Errorf("%v", err)
		}
		b.observe(ticket, notApplied)
	}
	unknown := proposal(key, rubicon.ReasonSend)
	unknown.Fingerprint = ""
	b.begin(unknown)
	if r := b.load(key); r.Fingerprint != "f" || len(r.Attempts) != 2 {
		b.Errorf("fingerprint %q after %d attempts", r.Fingerprint, len(r.Attempts))
	}
}

// journalInProgress: there is one attempt in flight at a time, until its
// deadline, whatever licence there is.
func journalInProgress(b book, key rubicon.Key) {
	p := proposal(key, rubicon.ReasonFirst)
	p.Terms.Repeat = true
	p.Deadline = time.Now().Add(time.Hour)
	ticket := b.begin(p)
	p.Call, p.Reason = 2, rubicon.ReasonReplay
	blocked := b.refuse(p)
	if !errors.Is(blocked, rubicon.ErrInProgress) || blocked.Decision.Action != rubicon.Wait || !blocked.Decision.NotBefore.Equal(p.Deadline) {
		b.Errorf("%v, until %v", blocked, blocked.Decision.NotBefore)
	}
	b.observe(ticket, ambiguous)
	b.begin(p)

	past := proposal(rubicon.Key{Scope: key.Scope, Name: key.Name + " past"}, rubicon.ReasonFirst)
	past.Terms.Repeat = true
	past.Deadline = time.Now().Add(-time.Second)
	b.begin(past)
	past.Reason = rubicon.ReasonReplay
	b.begin(past)
}

// journalReason: an attempt is not booked as something else than it is.
func journalReason(b book, key rubicon.Key) {
	for _, wrong := range []rubicon.Reason{rubicon.ReasonSend, rubicon.ReasonReplay, rubicon.ReasonRefresh, rubicon.ReasonRedirect} {
		if d := b.refuse(proposal(key, wrong)).Decision; d.Action != rubicon.Send || d.Why != rubicon.WhyFresh {
			b.Errorf("%v: %v because %v", wrong, d.Action, d.Why)
		}
	}
	b.observe(b.begin(proposal(key, rubicon.ReasonFirst)), ambiguous)
	for _, wrong := range []rubicon.Reason{rubicon.ReasonFirst, rubicon.ReasonSend, rubicon.ReasonReplay} {
		if d := b.refuse(proposal(key, wrong)).Decision; d.Why != rubicon.WhyNoLicence {
			b.Errorf("%v: %v because %v", wrong, d.Action, d.Why)
		}
	}
	if r := b.load(key); len(r.Attempts) != 1 {
		b.Errorf("%d attempts", len(r.Attempts))
	}
}

// journalSameProposal: a Begin whose return got lost can be repeated, however
// late: it is one attempt.
func journalSameProposal(b book, key rubicon.Key) {
	one, two := proposal(key, rubicon.ReasonFirst), proposal(key, rubicon.ReasonSend)
	one.ID, two.ID = "one", "two"
	first := b.begin(one)
	if again := b.begin(one); again != first {
		b.Errorf("%+v, and again %+v", first, again)
	}
	b.observe(first, notApplied)
	second := b.begin(two)
	for range 2 {
		if again := b.begin(one); again != first {
			b.Errorf("%+v, and after the second %+v", first, again)
		}
		if again := b.begin(two); again != second {
			b.Errorf("%+v, and again %+v", second, again)
		}
		b.observe(second, notApplied)
	}
	if n := len(b.load(key).Attempts); n != 2 {
		b.Errorf("%d attempts of two proposals", n)
	}
}

// journalOneWinner: of many that begin at once, one may.
func journalOneWinner(b book, key rubicon.Key) {
	const many = 64
	var won sync.Map
	for round := range 3 {
		ready := make(chan struct{})
		var wg sync.WaitGroup
		for i := range many {
			wg.Go(func() {
				p := proposal(key, rubicon.ReasonFirst)
				if round > 0 {
					p.Reason = rubicon.ReasonSend
				}
				p.ID = fmt.Sprintf("%d of round %d", i, round)
				<-ready
				ticket, err := b.Journal.Begin(context.Background(), p)
				switch {
				case err == nil:
					if before, twice := won.LoadOrStore(round, ticket); twice {
						b.Errorf("round %d: %+v and %+v", round, before, ticket)
					}
				case !errors.Is(err, rubicon.ErrInProgress):
					b.Errorf("round %d: %v", round, err)
				}
			})
		}
		close(ready)
		wg.Wait()
		ticket, ok := won.Load(round)
		if !ok {
			b.Fatalf("round %d: nobody may", round)
		}
		b.observe(ticket.(rubicon.Ticket), notApplied)
	}
	if n := len(b.load(key).Attempts); n != 3 {
		b.Errorf("%d attempts in 3 rounds", n)
	}
}

// journalFacts: facts may be repeated and come in any order.
func journalFacts(b book, key rubicon.Key) {
	facts := []rubicon.Fact{
		{Attempt: rubicon.Attempt{Evidence: rubicon.Evidence{Reach: rubicon.ReachAccepted}, Status: 200}},
		{ServerID: "resp_1"},
		{Attempt: rubicon.Attempt{Evidence: rubicon.Evidence{Reach: rubicon.ReachOutput}}},
		{Attempt: rubicon.Attempt{Ended: true, Evidence: rubicon.Evidence{
			Reach: rubicon.ReachTerminal, Verdict: rubicon.VerdictSucceeded, Proof: rubicon.ProofStream}}},
		{N: 99, Renewed: 1, Call: 3}, // the ticket says which attempt, not the fact
	}
	var want rubicon.Record
	for i, order := range [][]int{{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {3, 0, 3, 1, 4, 2, 0, 4}} {
		k := rubicon.Key{Scope: key.Scope, Name: key.Name + strconv.Itoa(i)}
		ticket := b.begin(proposal(k, rubicon.ReasonFirst))
		for _, f := range order {
			b.fact(ticket, facts[f])
		}
		got := b.load(k)
		for n := range got.Attempts {
			got.Attempts[n].Begun = time.Time{}
		}
		if i == 0 {
			want = got
		}
		if !reflect.DeepEqual(got, want) {
			b.Errorf("in order %v: %+v, want %+v", order, got, want)
		}
	}
	if want.ServerID != "resp_1" || want.Renewed != 1 || want.Call != 3 || len(want.Attempts) != 1 || want.Outcome() != rubicon.Succeeded {
		b.Errorf("%+v", want)
	}
}

// journalLateFacts: a fact about an earlier attempt counts, also after a later
// one has begun, and one that contradicts is kept as such.
func journalLateFacts(b book, key rubicon.Key) {
	p := proposal(key, rubicon.ReasonFirst)
	p.Terms.Repeat = true
	first := b.begin(p)
	b.observe(first, ambiguous)
	p.Reason = rubicon.ReasonReplay
	second := b.begin(p)
	b.observe(first, succeeded)
	b.observe(second, ambiguous)
	if o := outcome(b.load(key)); o != rubicon.Succeeded {
		b.Errorf("%v after a late success", o)
	}
	b.observe(first, notApplied)
	if o := outcome(b.load(key)); o != rubicon.Contradicted {
		b.Errorf("%v after a contradiction", o)
	}
	if d := b.refuse(p).Decision; d.Why != rubicon.WhyContradiction {
		b.Errorf("%v because %v", d.Action, d.Why)
	}
}

// outcome is r.Outcome for a record that has no address.
func outcome(r rubicon.Record) rubicon.Outcome { return r.Outcome() }

// journalCancel: after a cancel no attempt begins, also of what never began,
// and no fact undoes it.
func journalCancel(b book, key rubicon.Key) {
	b.cancel(key)
	b.cancel(key)
	if d := b.refuse(proposal(key, rubicon.ReasonFirst)).Decision; d.Why != rubicon.WhyCanceled {
		b.Errorf("never begun: %v because %v", d.Action, d.Why)
	}
	other := rubicon.Key{Scope: key.Scope, Name: key.Name + " begun"}
	ticket := b.begin(proposal(other, rubicon.ReasonFirst))
	b.observe(ticket, notApplied)
	b.cancel(other)
	b.fact(ticket, rubicon.Fact{Renewed: 1, Call: 2})
	p := proposal(other, rubicon.ReasonSend)
	p.Call, p.Terms.Repeat = 3, true
	if d := b.refuse(p).Decision; d.Why != rubicon.WhyCanceled {
		b.Errorf("begun: %v because %v", d.Action, d.Why)
	}
	if r := b.load(other); !r.Canceled || len(r.Attempts) != 1 {
		b.Errorf("%+v", r)
	}
}

// journalCancelInFlight: a cancel does not make an unknown outcome known.
func journalCancelInFlight(b book, key rubicon.Key) {
	p := proposal(key, rubicon.ReasonFirst)
	p.Terms.Repeat = true
	ticket := b.begin(p)
	b.cancel(key)
	if o := outcome(b.load(key)); o != rubicon.Ambiguous {
		b.Errorf("%v", o)
	}
	b.observe(ticket, ambiguous)
	p.Reason = rubicon.ReasonReplay
	if d := b.refuse(p).Decision; d.Why != rubicon.WhyCanceled {
		b.Errorf("%v because %v", d.Action, d.Why)
	}
	b.observe(ticket, succeeded)
	if o := outcome(b.load(key)); o != rubicon.Succeeded {
		b.Errorf("%v after the answer came", o)
	}
}

// journalTerms: what licenses a replay is fixed when the first attempt begins,
// the end of the window above all. What the caller accepts is each call's own.
func journalTerms(b book, key rubicon.Key) {
	p := proposal(key, rubicon.ReasonFirst)
	p.Keyed = true
	p.Terms = rubicon.Terms{Kind: rubicon.Effect, Keyed: true, ReplayUntil: time.Now().Add(-time.Second)}
	b.observe(b.begin(p), ambiguous)
	fixed := b.load(key).Terms
	p.Reason = rubicon.ReasonReplay
	p.Terms = rubicon.Terms{Kind: rubicon.Generation, Idempotent: true, Keyed: true, Lookup: true, ReplayUntil: time.Now().Add(time.Hour)}
	if d := b.refuse(p).Decision; d.Why != rubicon.WhyNoLicence {
		b.Errorf("%v because %v", d.Action, d.Why)
	}
	got := b.load(key).Terms
	if got.Kind != fixed.Kind || got.Idempotent || got.Lookup || !got.ReplayUntil.Equal(fixed.ReplayUntil) {
		b.Errorf("terms %+v, fixed as %+v", got, fixed)
	}
	p.Terms.Repeat = true
	b.begin(p)
}

// journalKeyed: a window licenses attempts under the key only: those before,
// and the one to come.
func journalKeyed(b book, key rubicon.Key) {
	p := proposal(key, rubicon.ReasonFirst)
	p.Terms = rubicon.Terms{Keyed: true, ReplayUntil: time.Now().Add(time.Hour)}
	p.Keyed = true
	b.observe(b.begin(p), ambiguous)
	p.Reason, p.Keyed = rubicon.ReasonReplay, false
	if d := b.refuse(p).Decision; d.Why != rubicon.WhyNoLicence {
		b.Errorf("without the key: %v because %v", d.Action, d.Why)
	}
	p.Keyed = true
	b.begin(p)

	p.Key, p.Reason, p.Keyed = rubicon.Key{Scope: key.Scope, Name: key.Name + " late"}, rubicon.ReasonFirst, false
	b.observe(b.begin(p), ambiguous)
	p.Reason, p.Keyed = rubicon.ReasonReplay, true
	if d := b.refuse(p).Decision; d.Why != rubicon.WhyNoLicence {
		b.Errorf("after an attempt without the key: %v because %v", d.Action, d.Why)
	}
}

// journalApart: operations with other names have nothing in common.
func journalApart(b book, key rubicon.Key) {
	b.begin(proposal(key, rubicon.ReasonFirst))
	b.cancel(rubicon.Key{Scope: key.Scope, Name: key.Name + " canceled"})
	for _, other := range []rubicon.Key{
		{Scope: key.Scope + "x", Name: key.Name}, {Scope: key.Scope, Name: key.Name + "x"}, {Name: key.Scope + "/" + key.Name},
	} {
		if r := b.load(other); len(r.Attempts) != 0 {
			b.Errorf("%v has %d attempts", other, len(r.Attempts))
		}
		b.begin(proposal(other, rubicon.ReasonFirst))
	}
}

// journalCopies: a record that was loaded is the caller's.
func journalCopies(b book, key rubicon.Key) {
	ticket := b.begin(proposal(key, rubicon.ReasonFirst))
	mine := b.load(key)
	mine.Attempts[0].Verdict = rubicon.VerdictNotApplied
	mine.Fold(rubicon.Fact{N: 2, Attempt: succeeded, Canceled: true})
	if r := b.load(key); len(r.Attempts) != 1 || r.Canceled || r.Outcome() != rubicon.Ambiguous {
		b.Errorf("%+v", r)
	}
	before := b.load(key)
	b.observe(ticket, notApplied)
	if before.Attempts[0].Ended {
		b.Error("a record changes after it was loaded")
	}
}

// TestMemoryJournal: the journal in memory keeps the promises.
func TestMemoryJournal(t *testing.T) {
	testJournal(t, func() rubicon.Journal { return new(rubicon.MemoryJournal) })
}

// TestMemoryJournalLimit: what was answered for good goes first, then that of
// which nothing was applied, the oldest of them; what is unknown, in flight or
// canceled never does.
func TestMemoryJournalLimit(t *testing.T) {
	key := func(name string) rubicon.Key { return rubicon.Key{Scope: "test", Name: name} }
	fill := func(t *testing.T, limit int, what ...string) (book, *rubicon.MemoryJournal) {
		j := &rubicon.MemoryJournal{Limit: limit}
		b := book{t, j}
		for i, w := range what {
			k := key(w + strconv.Itoa(i))
			if w == "canceled" {
				b.cancel(k)
				continue
			}
			ticket := b.begin(proposal(k, rubicon.ReasonFirst))
			switch w {
			case "succeeded":
				b.observe(ticket, succeeded)
			case "refused":
				b.observe(ticket, notApplied)
			case "ambiguous":
				b.observe(ticket, ambiguous)
			case "given up":
				b.observe(ticket, notApplied)
				b.cancel(k)
			}
		}
		return b, j
	}
	for _, test := range []struct {
		holds []string
		goes  string // the one that makes room; "" if none can
	}{
		{[]string{"succeeded", "succeeded"}, "succeeded0"},
		{[]string{"ambiguous", "succeeded", "succeeded"}, "succeeded1"},
		{[]string{"refused", "in flight", "succeeded"}, "succeeded2"},
		{[]string{"ambiguous", "refused", "refused"}, "refused1"},
		{[]string{"ambiguous", "in flight", "canceled", "given up"}, ""},
	} {
		b, j := fill(t, len(test.holds), test.holds...)
		_, err := j.Begin(t.Context(), proposal(key("new"), rubicon.ReasonFirst))
		if (test.goes == "") != errors.Is(err, rubicon.ErrFull) || test.goes != "" && err != nil {
			t.Errorf("%v: %v", test.holds, err)
		}
		for i, w := range test.holds {
			name := w + strconv.Itoa(i)
			r := b.load(key(name))
			if gone := len(r.Attempts) == 0 && !r.Canceled; gone != (name == test.goes) {
				t.Errorf("%v: %s gone: %t", test.holds, name, gone)
			}
		}
	}
	b, j := fill(t, 2, "ambiguous", "ambiguous")
	if err := j.Cancel(t.Context(), key("new")); !errors.Is(err, rubicon.ErrFull) {
		t.Errorf("a cancel that can't be kept: %v", err)
	}
	b.load(key("new")) // a look needs no room
	b.observe(rubicon.Ticket{Key: key("ambiguous0"), N: 1}, succeeded)
	b.begin(proposal(key("new"), rubicon.ReasonFirst))
}
