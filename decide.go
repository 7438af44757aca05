package rubicon

import (
	"log/slog"
	"strings"
	"time"
)

// Action is what may be done next about an operation. The transport carries
// out Refresh, Send, Resume, Replay and Report; the others are for whoever
// owns the turn.
type Action uint8

const (
	Report    Action = iota // nothing more: tell the caller what is known
	Settle                  // it succeeded: settle what hangs on it, and deliver
	Reconcile               // ask what became of the turn's unknown effects; reads only
	Wait                    // another attempt is in flight, or it is too early
	Refresh                 // renew the rejected credential
	Send                    // submit: nothing of the operation can have acted
	Resume                  // read the existing operation on
	Lookup                  // ask the server what became of it; reads only
	Replay                  // submit again under a licence
)

// String returns the name of a in lower case.
func (a Action) String() string {
	return nameOf(a, "report", "settle", "reconcile", "wait", "refresh", "send", "resume", "lookup", "replay")
}

// Why is the reason of a [Decision].
type Why uint8

const (
	WhyNone          Why = iota // there was no decision
	WhyContradiction            // what is known of it excludes itself
	WhySucceeded                // it succeeded
	WhyOwing                    // an effect of the turn has an unknown outcome
	WhyInFlight                 // an attempt is in flight
	WhyEarly                    // the server, or the backoff, asks for patience
	WhyAnswered                 // the server answered for good
	WhyCanceled                 // the caller gave it up
	WhyCursor                   // the server named it, and its protocol has a cursor
	WhyLookup                   // the server can be asked
	WhyFresh                    // there was no attempt
	WhyRedirect                 // the server sent it elsewhere
	WhyRejected                 // the credential was rejected
	WhyRejectedAgain            // the renewed credential was rejected too
	WhyRenewed                  // the credential was renewed
	WhyNotApplied               // nothing of it was applied
	WhyIdempotent               // its method is idempotent
	WhyKeyed                    // its endpoint remembers its key
	WhyRepeat                   // the caller accepts that it acts twice
	WhyNoLicence                // it may have acted, and nothing licenses a repetition
	WhyHeld                     // another attempt would not help
	WhyBudget                   // no attempt is left
	WhyTime                     // no time is left
)

// String says w in a few words.
func (w Why) String() string {
	return nameOf(w, "none", "the evidence contradicts itself", "it succeeded", "an effect of the turn is unknown",
		"an attempt is in flight", "too early", "the server answered for good", "the caller gave it up",
		"the server named it and there is a cursor", "the server can be asked", "first attempt",
		"the server sent it elsewhere", "the credential was rejected", "the renewed credential was rejected too",
		"the credential was renewed", "nothing was applied", "the method is idempotent",
		"the endpoint remembers the key", "the caller accepts a repetition", "nothing licenses a repetition",
		"another attempt would not help", "no attempt is left in the budget", "no time is left in the budget")
}

// A Guard is one condition that [Decide] reads off a record.
type Guard uint8

const (
	GuardContradiction Guard = iota // two facts about an attempt exclude each other
	GuardSucceeded                  // an attempt succeeded
	GuardOwing                      // an effect of the turn has an unknown outcome
	GuardInFlight                   // an attempt is still under way
	GuardAnswered                   // an attempt was answered for good
	GuardCanceled                   // the caller gave the operation up
	GuardClean                      // every attempt is proven not applied
	GuardFresh                      // there was no attempt
	GuardHeld                       // the last attempt's call has no use for another
	GuardRejected                   // the last attempt's credential was rejected in this call
	GuardRenewed                    // a credential was renewed in this call since
	GuardSpentAuth                  // the renewed credential was rejected too
	GuardRedirect                   // the last attempt was redirected with its method
	GuardRenewable                  // a renewal is documented and allowed
	GuardNamed                      // the server gave the operation a name
	GuardResumable                  // the protocol documents a cursor, and a resume is allowed
	GuardLookup                     // the endpoint can be asked
	GuardIdempotent                 // the method is idempotent
	GuardRepeat                     // the caller accepts repetition
	GuardKeyed                      // every attempt that may have acted carried the key
	GuardWindow                     // the endpoint still remembers the key
	GuardAttempts                   // a wire attempt is left
	GuardSends                      // a send is left
	GuardReplays                    // a replay is left
	GuardTime                       // there is time for another attempt
	guards
)

// String says what g asks, in a few words.
func (g Guard) String() string {
	return nameOf(g, "contradiction", "succeeded", "effect unknown", "in flight", "answered", "canceled",
		"clean", "fresh", "held", "rejected", "renewed", "rejected again", "redirected", "renewable", "named",
		"resumable", "lookup", "idempotent", "repeat", "keyed", "in window", "attempts left",
		"sends left", "replays left", "time left")
}

// Guards is the truth of every [Guard] for one record.
type Guards uint32

// Holds reports whether g is true.
func (gs Guards) Holds(g Guard) bool { return gs&(1<<g) != 0 }

// with returns gs with g set to held.
func (gs Guards) with(g Guard, held bool) Guards {
	if held {
		return gs | 1<<g
	}
	return gs &^ (1 << g)
}

// String lists the guards that hold, in their order.
func (gs Guards) String() string {
	var held []string
	for g := range guards {
		if gs.Holds(g) {
			held = append(held, g.String())
		}
	}
	return strings.Join(held, ", ")
}

// A Decision says what may be done next, why, and when.
type Decision struct {
	Action    Action
	Next      Action    // with Wait: what may be done then
	NotBefore time.Time // with Wait: when; zero if nobody knows
	Why       Why
	Guards    Guards // what the decision rests on
}

// LogValue implements [slog.LogValuer].
func (d Decision) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("action", d.Action.String()),
		slog.String("why", d.Why.String()),
		slog.Time("not_before", d.NotBefore),
		slog.String("guards", d.Guards.String()),
	)
}

// Decide says what may be done next about the operation of r. It is a pure
// function of its arguments: it reads no clock, draws no random number and
// does no I/O. Facts must be folded into r before it is asked; an error that
// is not in the record has no say.
//
// Its first and last word is that an operation is submitted again only if
// nothing of it can have acted, or under a licence (RFC 9110 section 9.2.2).
func Decide(r Record, now time.Time) Decision {
	return decide(&r, now, weigh(&r, now))
}

// firstDecision is what Decide says of a fresh record with a budget, as far as
// booking its first attempt needs it.
var firstDecision = Decision{Action: Send, Why: WhyFresh, Guards: 1<<GuardFresh | 1<<GuardClean}

// fresh reports whether there is nothing yet to decide about.
func (r *Record) fresh() bool {
	return len(r.Attempts) == 0 && !r.Canceled && r.Owing == 0
}

// decide adds to the choice what it rests on and when it may be carried out.
func decide(r *Record, now time.Time, gs Guards) Decision {
	action, why := choose(gs)
	d := Decision{Action: action, Why: why, Guards: gs}
	switch action {
	case Wait:
		d.NotBefore = inFlightUntil(r)
	case Send, Replay:
		if last := r.last(); last != nil && last.NotBefore.After(now) && !gs.Holds(GuardRenewed) {
			d.Action, d.Next, d.NotBefore, d.Why = Wait, action, last.NotBefore, WhyEarly
		}
	}
	return d
}

// choose maps the truth of the guards to an action. It has one exit a reason
// and ends with no.
func choose(gs Guards) (Action, Why) {
	held := gs.Holds
	switch {
	case held(GuardContradiction):
		return Report, WhyContradiction
	case held(GuardSucceeded):
		return Settle, WhySucceeded
	case held(GuardOwing):
		return Reconcile, WhyOwing
	case held(GuardInFlight):
		return Wait, WhyInFlight
	case held(GuardAnswered):
		return Report, WhyAnswered
	case held(GuardCanceled) && held(GuardClean):
		return Report, WhyCanceled
	case held(GuardCanceled) && held(GuardLookup):
		return Lookup, WhyCanceled
	case held(GuardCanceled):
		return Report, WhyCanceled
	case held(GuardClean):
		return chooseClean(held)
	case held(GuardNamed) && held(GuardResumable):
		return Resume, WhyCursor
	case held(GuardLookup):
		return Lookup, WhyLookup
	default:
		return chooseReplay(held)
	}
}

// chooseClean decides about an operation of which nothing can have acted.
func chooseClean(held func(Guard) bool) (Action, Why) {
	switch {
	case held(GuardFresh):
		return Send, WhyFresh
	case held(GuardRedirect):
		return Send, WhyRedirect
	case held(GuardSpentAuth):
		return Report, WhyRejectedAgain
	case !held(GuardTime) && (held(GuardRenewed) || held(GuardRenewable)):
		return Report, WhyTime
	case held(GuardRenewed):
		return Send, WhyRenewed
	case held(GuardRejected) && held(GuardRenewable):
		return Refresh, WhyRejected
	case held(GuardRejected):
		return Report, WhyRejected
	case held(GuardHeld):
		return Report, WhyHeld
	case !held(GuardAttempts), !held(GuardSends):
		return Report, WhyBudget
	case !held(GuardTime):
		return Report, WhyTime
	default:
		return Send, WhyNotApplied
	}
}

// chooseReplay decides about an operation that may have acted.
func chooseReplay(held func(Guard) bool) (Action, Why) {
	licensed := held(GuardIdempotent) || held(GuardRepeat) || held(GuardKeyed) && held(GuardWindow)
	switch {
	case !licensed:
		return Report, WhyNoLicence
	case held(GuardSpentAuth):
		return Report, WhyRejectedAgain
	case !held(GuardTime) && (held(GuardRenewed) || held(GuardRenewable)):
		return Report, WhyTime
	case held(GuardRenewed):
		return Replay, WhyRenewed
	case held(GuardRejected) && held(GuardRenewable):
		return Refresh, WhyRejected
	case held(GuardRejected):
		return Report, WhyRejected
	case held(GuardHeld):
		return Report, WhyHeld
	case !held(GuardAttempts), !held(GuardReplays):
		return Report, WhyBudget
	case !held(GuardTime):
		return Report, WhyTime
	case held(GuardIdempotent):
		return Replay, WhyIdempotent
	case held(GuardKeyed) && held(GuardWindow):
		return Replay, WhyKeyed
	default:
		return Replay, WhyRepeat
	}
}

// weigh reads the truth of every guard off r.
func weigh(r *Record, now time.Time) Guards {
	var gs Guards
	set := func(g Guard, held bool) { gs = gs.with(g, held) }
	spent, budget := r.spent(), r.Budget

	set(GuardContradiction, r.has(VerdictContradiction))
	set(GuardSucceeded, r.has(VerdictSucceeded))
	set(GuardOwing, r.Owing > 0)
	set(GuardInFlight, r.some(func(a *Attempt) bool { return a.inFlight(now) }))
	set(GuardAnswered, r.has(VerdictFailed) || r.has(VerdictIncomplete))
	set(GuardCanceled, r.Canceled)
	set(GuardClean, r.clean())
	set(GuardFresh, len(r.Attempts) == 0)
	set(GuardNamed, r.ServerID != "")
	set(GuardResumable, r.Terms.Resume && spent.Resumes < budget.Resumes)
	set(GuardLookup, r.Terms.Lookup)
	set(GuardIdempotent, r.Terms.Idempotent)
	set(GuardRepeat, r.Terms.Repeat)
	set(GuardKeyed, r.Terms.Keyed && r.every(func(a *Attempt) bool { return a.Keyed || !a.open() }))
	set(GuardWindow, now.Before(r.Terms.ReplayUntil))
	set(GuardRenewable, r.Terms.Renew && spent.Refreshes < budget.Refreshes)
	set(GuardAttempts, spent.Attempts < budget.Attempts)
	set(GuardSends, spent.Sends < budget.Sends)
	set(GuardReplays, spent.Replays < budget.Replays)

	last := r.last()
	if last == nil {
		return gs.with(GuardTime, true)
	}
	gs = gs.with(GuardTime, r.timeFor(later(now, last.NotBefore)))
	if last.Verdict == VerdictNotApplied && (last.Status == 307 || last.Status == 308) && last.Call < r.Call {
		gs = gs.with(GuardRedirect, true)
	}
	if last.Call != r.Call { // another call was answered; this one may know better
		return gs
	}
	n := len(r.Attempts)
	gs = gs.with(GuardHeld, last.Final)
	gs = gs.with(GuardRejected, last.Rejected)
	gs = gs.with(GuardRenewed, last.Rejected && r.Renewed == n)
	return gs.with(GuardSpentAuth, last.Rejected && r.Renewed != n && r.rejectedBefore(n))
}

// rejectedBefore reports whether an attempt before n, of the same call, was
// rejected too.
func (r *Record) rejectedBefore(n int) bool {
	for i := range n - 1 {
		if a := &r.Attempts[i]; a.Rejected && a.Call == r.Call {
			return true
		}
	}
	return false
}

// inFlight reports whether a may still be under way.
func (a *Attempt) inFlight(now time.Time) bool {
	return !a.Ended && a.Verdict == VerdictUnknown && (a.Deadline.IsZero() || now.Before(a.Deadline))
}

// inFlightUntil returns when the last attempt under way is over, or zero if
// nobody knows.
func inFlightUntil(r *Record) time.Time {
	var until time.Time
	for i := range r.Attempts {
		a := &r.Attempts[i]
		if a.Ended || a.Verdict != VerdictUnknown {
			continue
		}
		if a.Deadline.IsZero() {
			return time.Time{}
		}
		until = later(until, a.Deadline)
	}
	return until
}

// timeFor reports whether an attempt may begin at t.
func (r *Record) timeFor(t time.Time) bool {
	if !r.Until.IsZero() && !t.Before(r.Until) {
		return false
	}
	return t.Sub(r.begun()) < r.Budget.Elapsed
}
