package rubicon

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"
)

// epoch is when the operations of these tests begin.
var epoch = time.Unix(1_000_000_000, 0).UTC()

// sinceEpoch returns when d has passed since start.
func sinceEpoch(d time.Duration) time.Time { return epoch.Add(d) }

// all is true of a guard set that holds every one of list.
func (gs Guards) all(list ...Guard) bool {
	for _, g := range list {
		if !gs.Holds(g) {
			return false
		}
	}
	return true
}

// none is true of a guard set that holds none of list.
func (gs Guards) none(list ...Guard) bool {
	for _, g := range list {
		if gs.Holds(g) {
			return false
		}
	}
	return true
}

// licensed reports whether a replay has a licence.
func (gs Guards) licensed() bool {
	return gs.Holds(GuardIdempotent) || gs.Holds(GuardRepeat) || gs.all(GuardKeyed, GuardWindow)
}

// guardSet returns the guards of list as a set.
func guardSet(list ...Guard) Guards {
	var gs Guards
	for _, g := range list {
		gs = gs.with(g, true)
	}
	return gs
}

// excluded lists what no record can be: where all of if hold, none of not may,
// and all of also must. TestExploreAsks finds no record that is.
var excluded = []struct{ when, also, not Guards }{
	// No attempt: nothing to say about one, and no time has passed.
	{guardSet(GuardFresh), guardSet(GuardClean, GuardTime), guardSet(GuardHeld, GuardRejected, GuardRedirect)},
	// Every attempt is proven not applied, and so none is anything else.
	{guardSet(GuardClean), 0, guardSet(GuardContradiction, GuardSucceeded, GuardInFlight, GuardAnswered)},
	// A renewal, and its failure, follow a rejection.
	{guardSet(GuardRenewed), guardSet(GuardRejected), guardSet(GuardSpentAuth)},
	{guardSet(GuardSpentAuth), guardSet(GuardRejected), 0},
	// The next hop is another call, which nothing has held back.
	{guardSet(GuardRedirect), 0, guardSet(GuardHeld, GuardRejected)},
}

// possible reports whether a record can have gs.
func possible(gs Guards) bool {
	for i := range excluded {
		if e := &excluded[i]; gs&e.when == e.when && (gs&e.also != e.also || gs&e.not != 0) {
			return false
		}
	}
	return true
}

// everyGuards calls f with every possible combination of guards, until it says
// stop, in an order that mixes them. It returns how many there were.
func everyGuards(f func(Guards) bool) int {
	n := 0
	const odd, mask = 0x9e3779b1, Guards(1)<<guards - 1
	for i := range Guards(1) << guards {
		gs := i * odd & mask // each of them once, since odd has an inverse
		if !possible(gs) {
			continue
		}
		n++
		if !f(gs) {
			break
		}
	}
	return n
}

// dispatches reports whether a asks something to be done anew by the server, or
// a grant.
func (a Action) dispatches() bool {
	return a == Send || a == Replay || a == Resume || a == Refresh
}

// laws is what no decision may break, in no state.
var laws = []struct {
	name   string
	broken func(gs Guards, a Action) bool
}{
	{"a contradiction licenses nothing", func(gs Guards, a Action) bool {
		return gs.Holds(GuardContradiction) && a != Report
	}},
	{"what succeeded is settled", func(gs Guards, a Action) bool {
		return (a == Settle) != (gs.Holds(GuardSucceeded) && gs.none(GuardContradiction))
	}},
	{"the effects of the turn are reconciled before it goes on", func(gs Guards, a Action) bool {
		return (a == Reconcile) != (gs.Holds(GuardOwing) && gs.none(GuardContradiction, GuardSucceeded))
	}},
	{"one attempt is in flight at a time", func(gs Guards, a Action) bool {
		return gs.Holds(GuardInFlight) && (a.dispatches() || a == Lookup)
	}},
	{"nobody waits for nothing", func(gs Guards, a Action) bool {
		return a == Wait && !gs.Holds(GuardInFlight)
	}},
	{"an answer for good ends the operation", func(gs Guards, a Action) bool {
		return gs.Holds(GuardAnswered) && (a.dispatches() || a == Lookup)
	}},
	{"after a cancel there are only reads", func(gs Guards, a Action) bool {
		return gs.Holds(GuardCanceled) && a.dispatches()
	}},
	{"a send needs proof that nothing was applied", func(gs Guards, a Action) bool {
		return a == Send && !gs.Holds(GuardClean)
	}},
	{"a replay needs a licence, and something to replay", func(gs Guards, a Action) bool {
		return a == Replay && (!gs.licensed() || gs.Holds(GuardClean))
	}},
	{"reading what there is goes before doing it again", func(gs Guards, a Action) bool {
		return a == Replay && (gs.Holds(GuardLookup) || gs.all(GuardNamed, GuardResumable)) ||
			a == Lookup && gs.all(GuardNamed, GuardResumable) && !gs.Holds(GuardCanceled)
	}},
	{"a resume needs a name from the server, a cursor, and something to read", func(gs Guards, a Action) bool {
		return a == Resume && (!gs.all(GuardNamed, GuardResumable) || gs.Holds(GuardClean))
	}},
	{"a lookup needs somebody to ask, and something to ask about", func(gs Guards, a Action) bool {
		return a == Lookup && (!gs.Holds(GuardLookup) || gs.Holds(GuardClean))
	}},
	{"a credential is renewed once, after a rejection, for a request that may follow", func(gs Guards, a Action) bool {
		return a == Refresh && (!gs.all(GuardRejected, GuardRenewable, GuardTime) ||
			!gs.none(GuardRenewed, GuardSpentAuth) || !gs.Holds(GuardClean) && !gs.licensed())
	}},
	{"a credential is renewed where it can be", func(gs Guards, a Action) bool {
		return a == Report && gs.all(GuardClean, GuardRejected, GuardRenewable, GuardTime) &&
			gs.none(GuardOwing, GuardCanceled, GuardSpentAuth)
	}},
	{"a second rejection is final", func(gs Guards, a Action) bool {
		return gs.Holds(GuardSpentAuth) && (a == Send || a == Replay || a == Refresh)
	}},
	{"a rejected request goes out again under a renewed credential only", func(gs Guards, a Action) bool {
		return (a == Send || a == Replay) && gs.Holds(GuardRejected) && !gs.Holds(GuardRenewed)
	}},
	{"a call is held by its own answer", func(gs Guards, a Action) bool {
		return (a == Send || a == Replay) && gs.Holds(GuardHeld) && !gs.Holds(GuardRenewed)
	}},
	{"an attempt is paid for", func(gs Guards, a Action) bool {
		if gs.Holds(GuardFresh) || gs.Holds(GuardRenewed) || gs.all(GuardRedirect, GuardClean) {
			return false // the first, a refresh and a redirect draw on none of these
		}
		return a == Send && !gs.all(GuardAttempts, GuardSends) || a == Replay && !gs.all(GuardAttempts, GuardReplays)
	}},
	{"the first attempt is free, and so is the next hop of a redirect", func(gs Guards, a Action) bool {
		return (gs.Holds(GuardFresh) || gs.all(GuardRedirect, GuardClean)) && gs.none(GuardOwing, GuardCanceled) && a != Send
	}},
	{"there is time for an attempt", func(gs Guards, a Action) bool {
		return (a == Send || a == Replay) && !gs.Holds(GuardTime) && !gs.all(GuardRedirect, GuardClean)
	}},
}

// meanings says of every reason which actions it is given for, and what it
// implies. A decision to do nothing therefore always has a true reason, and
// nothing is held back without one.
var meanings = map[Why]struct {
	actions []Action
	true    func(Guards) bool
}{
	WhyContradiction: {[]Action{Report}, func(gs Guards) bool { return gs.Holds(GuardContradiction) }},
	WhySucceeded:     {[]Action{Settle}, func(gs Guards) bool { return gs.Holds(GuardSucceeded) }},
	WhyOwing:         {[]Action{Reconcile}, func(gs Guards) bool { return gs.Holds(GuardOwing) }},
	WhyInFlight:      {[]Action{Wait}, func(gs Guards) bool { return gs.Holds(GuardInFlight) }},
	WhyAnswered:      {[]Action{Report}, func(gs Guards) bool { return gs.Holds(GuardAnswered) }},
	WhyCanceled:      {[]Action{Report, Lookup}, func(gs Guards) bool { return gs.Holds(GuardCanceled) }},
	WhyCursor:        {[]Action{Resume}, func(gs Guards) bool { return gs.all(GuardNamed, GuardResumable) }},
	WhyLookup:        {[]Action{Lookup}, func(gs Guards) bool { return gs.Holds(GuardLookup) }},
	WhyFresh:         {[]Action{Send}, func(gs Guards) bool { return gs.Holds(GuardFresh) }},
	WhyRedirect:      {[]Action{Send}, func(gs Guards) bool { return gs.Holds(GuardRedirect) }},
	WhyRejected:      {[]Action{Report, Refresh}, func(gs Guards) bool { return gs.Holds(GuardRejected) }},
	WhyRejectedAgain: {[]Action{Report}, func(gs Guards) bool { return gs.Holds(GuardSpentAuth) }},
	WhyRenewed:       {[]Action{Send, Replay}, func(gs Guards) bool { return gs.Holds(GuardRenewed) }},
	WhyNotApplied:    {[]Action{Send}, func(gs Guards) bool { return gs.Holds(GuardClean) }},
	WhyIdempotent:    {[]Action{Replay}, func(gs Guards) bool { return gs.Holds(GuardIdempotent) }},
	WhyKeyed:         {[]Action{Replay}, func(gs Guards) bool { return gs.all(GuardKeyed, GuardWindow) }},
	WhyRepeat:        {[]Action{Replay}, func(gs Guards) bool { return gs.Holds(GuardRepeat) }},
	WhyNoLicence:     {[]Action{Report}, func(gs Guards) bool { return !gs.Holds(GuardClean) && !gs.licensed() }},
	WhyHeld:          {[]Action{Report}, func(gs Guards) bool { return gs.Holds(GuardHeld) && gs.none(GuardRenewed) }},
	WhyBudget: {[]Action{Report}, func(gs Guards) bool {
		allowed := gs.Holds(GuardReplays)
		if gs.Holds(GuardClean) {
			allowed = gs.Holds(GuardSends)
		}
		return !gs.Holds(GuardAttempts) || !allowed
	}},
	WhyTime: {[]Action{Report}, func(gs Guards) bool { return !gs.Holds(GuardTime) }},
}

// unlawful says what is wrong with a decision for gs; "" if nothing is.
func unlawful(gs Guards, a Action, why Why) string {
	for i := range laws {
		if laws[i].broken(gs, a) {
			return laws[i].name
		}
	}
	m, ok := meanings[why]
	switch {
	case !ok:
		return "there is no such reason"
	case !m.true(gs):
		return "the reason does not hold"
	}
	for _, of := range m.actions {
		if a == of {
			return ""
		}
	}
	return "this is no reason for that"
}

// TestDecideTotal: every combination of guards that a record can have, all of
// them enumerated, leads to a lawful decision with a reason that holds. Every
// reason is given in some.
func TestDecideTotal(t *testing.T) {
	given := make(map[Why]bool)
	n := everyGuards(func(gs Guards) bool {
		action, why := choose(gs)
		given[why] = true
		if wrong := unlawful(gs, action, why); wrong != "" {
			t.Errorf("[%v]: %v because %v: %s", gs, action, why, wrong)
		}
		return !t.Failed()
	})
	t.Logf("%d of %d combinations", n, 1<<guards)
	for why := range meanings {
		if !given[why] && !t.Failed() {
			t.Errorf("%q is never given", why)
		}
	}
}

// noticed reports whether the laws notice that choose reads g as held.
func noticed(g Guard, held bool) bool {
	found := false
	everyGuards(func(gs Guards) bool {
		action, why := choose(gs.with(g, held))
		found = unlawful(gs, action, why) != ""
		return !found
	})
	return found
}

// TestDecideLaws: the laws above are not vacuous. Whichever guard is read as
// held, or as not held, a law notices.
func TestDecideLaws(t *testing.T) {
	for g := range guards {
		for _, held := range []bool{false, true} {
			if !noticed(g, held) {
				t.Errorf("nothing notices that %q reads %t", g, held)
			}
		}
	}
}

// plenty is a budget that nothing exhausts.
var plenty = Budget{Attempts: 9, Sends: 9, Replays: 9, Refreshes: 9, Resumes: 9, Elapsed: time.Hour}

// recordOf returns a record of attempts in call 1, the first booked at start.
func recordOf(terms Terms, attempts ...Attempt) Record {
	r := Record{Terms: terms, Budget: plenty, Call: 1}
	for i := range attempts {
		a := attempts[i]
		a.Call, a.Begun = max(a.Call, 1), later(a.Begun, epoch)
		r.Fold(Fact{N: i + 1, Attempt: a})
	}
	return r
}

// with returns r changed.
func (r Record) with(change func(*Record)) Record {
	change(&r)
	return r
}

// The attempts of which these tests make records.
var (
	anUnsent     = Attempt{Evidence: Evidence{ReachNone, VerdictNotApplied, ProofNoConnection}, Ended: true}
	anRefused    = endedAs(judge(nil, http.StatusTooManyRequests, nil))
	anRejected   = endedAs(judge(nil, http.StatusUnauthorized, nil))
	anRedirected = endedAs(judge(nil, http.StatusPermanentRedirect, nil))
	anFailed     = endedAs(judge(nil, http.StatusBadRequest, nil))
	anSucceeded  = endedAs(judge(nil, http.StatusOK, nil))
	anLost       = Attempt{Evidence: Evidence{Reach: ReachSent}, Ended: true}
	anIncomplete = Attempt{Evidence: Evidence{ReachTerminal, VerdictIncomplete, ProofStream}, Ended: true}
	anTorn       = Attempt{Evidence: Evidence{ReachTerminal, VerdictContradiction, ProofStream}, Ended: true}
	anBooked     = Attempt{}
)

// endedAs returns a as an attempt that is over.
func endedAs(a Attempt) Attempt {
	a.Ended = true
	return a
}

// with returns a changed.
func (a Attempt) with(change func(*Attempt)) Attempt {
	change(&a)
	return a
}

// weighings lists for each guard records that have it and records that don't.
func weighings() []struct {
	Guard
	held    []Record
	missing []Record
} {
	withKey := anLost.with(func(a *Attempt) { a.Keyed = true })
	inFlight := anBooked.with(func(a *Attempt) { a.Deadline = sinceEpoch(time.Second + 1) })
	landed := anBooked.with(func(a *Attempt) { a.Deadline = sinceEpoch(time.Second) })
	firstCall := func(r *Record) { r.Call = 1 }
	nextCall := func(r *Record) { r.Call = 2 }
	renewed := func(n int) func(*Record) { return func(r *Record) { r.Renewed = n } }
	refresh := anRejected.with(func(a *Attempt) { a.Reason = ReasonRefresh })
	byOther := anRejected.with(func(a *Attempt) { a.Call = 2 })
	lapsed := func(r *Record) { r.Budget.Elapsed = time.Second }
	window := func(d time.Duration) func(*Record) {
		return func(r *Record) { r.Terms.ReplayUntil = sinceEpoch(d) }
	}
	spend := func(b Budget) func(*Record) { return func(r *Record) { r.Budget = b } }
	by := func(r Reason, a Attempt) Attempt {
		a.Reason = r
		return a
	}
	return []struct {
		Guard
		held    []Record
		missing []Record
	}{
		{GuardContradiction, []Record{recordOf(Terms{}, anTorn), recordOf(Terms{}, anTorn, anUnsent)},
			[]Record{recordOf(Terms{}), recordOf(Terms{}, anLost, anUnsent, anFailed)}},
		{GuardSucceeded, []Record{recordOf(Terms{}, anSucceeded), recordOf(Terms{}, anSucceeded, anLost)},
			[]Record{recordOf(Terms{}), recordOf(Terms{}, anLost), recordOf(Terms{}, anTorn), recordOf(Terms{}, anIncomplete)}},
		{GuardOwing, []Record{recordOf(Terms{}).with(func(r *Record) { r.Owing = 1 })},
			[]Record{recordOf(Terms{}), recordOf(Terms{}, anLost)}},
		{GuardInFlight, []Record{recordOf(Terms{}, anBooked), recordOf(Terms{}, inFlight), recordOf(Terms{}, anBooked, anUnsent)},
			[]Record{recordOf(Terms{}), recordOf(Terms{}, anLost), recordOf(Terms{}, landed), recordOf(Terms{}, anUnsent.with(func(a *Attempt) { a.Ended = false }))}},
		{GuardAnswered, []Record{recordOf(Terms{}, anFailed), recordOf(Terms{}, anIncomplete), recordOf(Terms{}, anFailed, anLost)},
			[]Record{recordOf(Terms{}), recordOf(Terms{}, anSucceeded), recordOf(Terms{}, anUnsent), recordOf(Terms{}, anTorn)}},
		{GuardCanceled, []Record{recordOf(Terms{}).with(func(r *Record) { r.Canceled = true })}, []Record{recordOf(Terms{})}},
		{GuardClean, []Record{recordOf(Terms{}), recordOf(Terms{}, anUnsent, anRefused, anRejected, anRedirected)},
			[]Record{recordOf(Terms{}, anUnsent, anLost, anUnsent), recordOf(Terms{}, anBooked), recordOf(Terms{}, landed), recordOf(Terms{}, anTorn), recordOf(Terms{}, anFailed)}},
		{GuardFresh, []Record{recordOf(Terms{}), recordOf(Terms{}).with(nextCall)}, []Record{recordOf(Terms{}, anUnsent), recordOf(Terms{}, anBooked)}},
		{GuardHeld, []Record{recordOf(Terms{}, anFailed), recordOf(Terms{}, anUnsent.with(func(a *Attempt) { a.Final = true }))},
			[]Record{recordOf(Terms{}), recordOf(Terms{}, anFailed).with(nextCall), recordOf(Terms{}, anFailed, anUnsent), recordOf(Terms{}, byOther).with(firstCall)}},
		{GuardRejected, []Record{recordOf(Terms{}, anRejected), recordOf(Terms{}, anLost, anRejected)},
			[]Record{recordOf(Terms{}), recordOf(Terms{}, anRejected).with(nextCall), recordOf(Terms{}, anRejected, anRefused), recordOf(Terms{}, byOther).with(firstCall)}},
		{GuardRenewed, []Record{recordOf(Terms{}, anRejected).with(renewed(1)), recordOf(Terms{}, anLost, anRejected).with(renewed(2))},
			[]Record{recordOf(Terms{}, anRejected), recordOf(Terms{}, anRejected).with(renewed(1)).with(nextCall), recordOf(Terms{}, anRejected, refresh).with(renewed(1)), recordOf(Terms{}, anRefused).with(renewed(1))}},
		{GuardSpentAuth, []Record{recordOf(Terms{}, anRejected, refresh).with(renewed(1)), recordOf(Terms{}, anRejected, by(ReasonRefresh, anRefused), anRejected).with(renewed(1))},
			[]Record{recordOf(Terms{}, anRejected), recordOf(Terms{}, anRejected, byOther).with(nextCall), recordOf(Terms{}, anRejected, by(ReasonRefresh, anRefused)).with(renewed(1)), recordOf(Terms{}, anRejected, refresh).with(renewed(1)).with(nextCall)}},
		{GuardRedirect, []Record{recordOf(Terms{}, anRedirected).with(nextCall), recordOf(Terms{}, anLost, endedAs(judge(nil, 307, nil))).with(nextCall)},
			[]Record{recordOf(Terms{}, anRedirected), recordOf(Terms{}, endedAs(judge(nil, 303, nil))).with(nextCall), recordOf(Terms{}, anRedirected, anUnsent).with(nextCall), recordOf(Terms{}, anRefused).with(nextCall)}},
		{GuardRenewable, []Record{recordOf(Terms{Renew: true}, anRejected), recordOf(Terms{Renew: true}, anRejected, refresh)},
			[]Record{recordOf(Terms{}, anRejected), recordOf(Terms{Renew: true}, anRejected, refresh).with(spend(Budget{Refreshes: 1})), recordOf(Terms{Renew: true}, anRejected).with(spend(Budget{}))}},
		{GuardNamed, []Record{recordOf(Terms{}, anLost).with(func(r *Record) { r.ServerID = "resp_1" })}, []Record{recordOf(Terms{}, anLost)}},
		{GuardResumable, []Record{recordOf(Terms{Resume: true}, anLost)},
			[]Record{recordOf(Terms{}, anLost), recordOf(Terms{Resume: true}, anLost, by(ReasonResume, anUnsent)).with(spend(Budget{Resumes: 1})), recordOf(Terms{Resume: true}, anLost).with(spend(Budget{}))}},
		{GuardLookup, []Record{recordOf(Terms{Lookup: true}, anLost)}, []Record{recordOf(Terms{}, anLost)}},
		{GuardIdempotent, []Record{recordOf(Terms{Idempotent: true}, anLost)}, []Record{recordOf(Terms{Repeat: true, Keyed: true}, withKey)}},
		{GuardRepeat, []Record{recordOf(Terms{Repeat: true}, anLost)}, []Record{recordOf(Terms{Idempotent: true, Keyed: true}, withKey)}},
		{GuardKeyed, []Record{recordOf(Terms{Keyed: true}, withKey), recordOf(Terms{Keyed: true}, withKey, anUnsent), recordOf(Terms{Keyed: true}, anUnsent, withKey)},
			[]Record{recordOf(Terms{Keyed: true}, anLost), recordOf(Terms{Keyed: true}, withKey, anLost), recordOf(Terms{Keyed: true}, anLost, withKey), recordOf(Terms{}, withKey)}},
		{GuardWindow, []Record{recordOf(Terms{}, withKey).with(window(time.Second + 1))},
			[]Record{recordOf(Terms{}, withKey), recordOf(Terms{}, withKey).with(window(time.Second))}},
		{GuardAttempts, []Record{recordOf(Terms{}, anLost), recordOf(Terms{}, anLost, by(ReasonRefresh, anLost), by(ReasonResume, anLost), by(ReasonRedirect, anLost)).with(spend(Budget{Attempts: 2}))},
			[]Record{recordOf(Terms{}, anLost, by(ReasonSend, anLost)).with(spend(Budget{Attempts: 2})), recordOf(Terms{}, anLost.with(func(a *Attempt) { a.Resends = 1 })).with(spend(Budget{Attempts: 2})), recordOf(Terms{}, anLost, by(ReasonReplay, anLost)).with(spend(Budget{Attempts: 2}))}},
		{GuardSends, []Record{recordOf(Terms{}, anLost, by(ReasonSend, anLost)).with(spend(Budget{Sends: 2})), recordOf(Terms{}, anLost, by(ReasonReplay, anLost)).with(spend(Budget{Sends: 1}))},
			[]Record{recordOf(Terms{}, anLost, by(ReasonSend, anLost)).with(spend(Budget{Sends: 1})), recordOf(Terms{}, anLost).with(spend(Budget{}))}},
		{GuardReplays, []Record{recordOf(Terms{}, anLost, by(ReasonReplay, anLost)).with(spend(Budget{Replays: 2})), recordOf(Terms{}, anLost, by(ReasonSend, anLost)).with(spend(Budget{Replays: 1}))},
			[]Record{recordOf(Terms{}, anLost, by(ReasonReplay, anLost)).with(spend(Budget{Replays: 1})), recordOf(Terms{}, anLost).with(spend(Budget{}))}},
		{GuardTime, []Record{recordOf(Terms{}), recordOf(Terms{}, anLost), recordOf(Terms{}, anLost).with(func(r *Record) { r.Until = sinceEpoch(time.Second + 1) })},
			[]Record{
				recordOf(Terms{}, anLost).with(lapsed),
				recordOf(Terms{}, anLost).with(func(r *Record) { r.Until = sinceEpoch(time.Second) }),
				recordOf(Terms{}, anLost.with(func(a *Attempt) { a.NotBefore = sinceEpoch(time.Hour) })),
				recordOf(Terms{}, anLost).with(spend(Budget{Attempts: 2})),
			}},
	}
}

// TestWeigh: every guard reads what its comment says, one second after start.
func TestWeigh(t *testing.T) {
	rows := weighings()
	if len(rows) != int(guards) {
		t.Errorf("%d guards are weighed, of %d", len(rows), guards)
	}
	for i, row := range rows {
		if row.Guard != Guard(i) {
			t.Fatalf("row %d is about %v, not %v", i, row.Guard, Guard(i))
		}
		if len(row.held) == 0 || len(row.missing) == 0 {
			t.Errorf("%v: one side is not tried", row.Guard)
		}
		for side, list := range map[bool][]Record{true: row.held, false: row.missing} {
			for n, r := range list {
				gs := weigh(&r, sinceEpoch(time.Second))
				if gs.Holds(row.Guard) != side {
					t.Errorf("%v, record %d: %t, want %t", row.Guard, n, !side, side)
				}
				if !possible(gs) {
					t.Errorf("%v, record %d: [%v] was said to be impossible", row.Guard, n, gs)
				}
			}
		}
	}
}

// A play plays attempts through admit, and tells what may be done after them.
// Its steps are words: an answer stands for an attempt that is allowed and
// answered so.
type play struct {
	rec   Record
	now   time.Time
	call  int
	terms Terms
	until time.Time
	spend Budget
}

// answersByName are the words for attempts.
var answersByName = map[string]Attempt{
	"unsent": anUnsent, "429": anRefused, "401": anRejected, "307": endedAs(judge(nil, 307, nil)), "308": anRedirected,
	"400": anFailed, "200": anSucceeded, "lost": anLost, "503": endedAs(judge(nil, 503, nil)), "409": endedAs(judge(nil, 409, nil)),
	"quota":      anRefused.with(func(a *Attempt) { a.Final = true }),
	"429+1m":     anRefused.with(func(a *Attempt) { a.NotBefore = sinceEpoch(time.Minute) }),
	"503+1m":     endedAs(judge(nil, 503, nil)).with(func(a *Attempt) { a.NotBefore = sinceEpoch(time.Minute) }),
	"incomplete": anIncomplete, "torn": anTorn, "booked": anBooked,
	"deadline": anBooked.with(func(a *Attempt) { a.Deadline = sinceEpoch(time.Minute) }),
	"resent":   anLost.with(func(a *Attempt) { a.Resends = 1 }),
}

// step plays one word.
func (p *play) step(t *testing.T, word string) {
	t.Helper()
	switch word {
	case "call":
		p.call++
		p.rec.Fold(Fact{Call: p.call})
	case "renew":
		p.rec.Fold(Fact{Renewed: len(p.rec.Attempts)})
	case "cancel":
		p.rec.Fold(Fact{Canceled: true})
	case "name":
		p.rec.Fold(Fact{N: len(p.rec.Attempts), ServerID: "resp_1"})
	case "owe":
		p.rec.Owing++
	case "1m":
		p.now = p.now.Add(time.Minute)
	case "read":
		p.rec.Fold(Fact{N: len(p.rec.Attempts) + 1, Attempt: anUnsent.with(func(a *Attempt) { a.Reason, a.Call = ReasonResume, p.call })})
	default:
		p.attempt(t, word)
	}
}

// attempt plays an attempt, which must be allowed.
func (p *play) attempt(t *testing.T, word string) {
	t.Helper()
	a, ok := answersByName[word]
	if !ok {
		t.Fatalf("no word %q", word)
	}
	reason, _ := p.decide().reason()
	n, err := admit(&p.rec, Proposal{
		Terms: p.terms, Budget: p.spend, Until: p.until, Call: p.call, Reason: reason, Keyed: p.terms.Keyed, Deadline: a.Deadline,
	}, p.now)
	if err != nil {
		t.Fatalf("%q: %v", word, err)
	}
	p.rec.Fold(Fact{N: n, Attempt: a})
}

// decide asks for the current call.
func (p *play) decide() Decision {
	r := p.rec
	if len(r.Attempts) == 0 {
		r.Terms = p.terms
	}
	r.Budget, r.Until = p.spend, p.until
	return Decide(r.asked(p.call, p.terms.Keyed), p.now)
}

// played returns the play of script under terms and budget.
func played(t *testing.T, terms Terms, spend Budget, script string) *play {
	t.Helper()
	p := &play{now: epoch, call: 1, terms: terms, spend: spend}
	for _, word := range strings.Fields(script) {
		p.step(t, word)
	}
	return p
}

// TestDecideScripts: what may follow what, in words.
func TestDecideScripts(t *testing.T) {
	none := Terms{}
	repeat := Terms{Repeat: true}
	keyed := Terms{Keyed: true, ReplayUntil: sinceEpoch(2 * time.Minute)}
	renew := Terms{Renew: true}
	put := Terms{Idempotent: true, Renew: true}
	cursor := Terms{Resume: true, Lookup: true, Repeat: true}
	for _, test := range []struct {
		terms  Terms
		script string
		action Action
		why    Why
	}{
		// Nothing, one attempt, and what it came to.
		{none, "", Send, WhyFresh},
		{none, "unsent", Send, WhyNotApplied},
		{none, "429", Send, WhyNotApplied},
		{none, "lost", Report, WhyNoLicence},
		{none, "503", Report, WhyNoLicence},
		{none, "200", Settle, WhySucceeded},
		{none, "400", Report, WhyAnswered},
		{none, "incomplete", Report, WhyAnswered},
		{repeat, "torn", Report, WhyContradiction},
		{none, "booked", Wait, WhyInFlight},
		{none, "booked call", Wait, WhyInFlight},
		{none, "deadline 1m", Report, WhyNoLicence},
		{repeat, "deadline 1m", Replay, WhyRepeat},

		// An attempt that may have acted makes proofs about others irrelevant.
		{repeat, "lost unsent", Replay, WhyRepeat},
		{keyed, "lost unsent", Replay, WhyKeyed},
		{keyed, "lost unsent 1m 1m", Report, WhyNoLicence},
		{keyed, "unsent 1m 1m", Send, WhyNotApplied},

		// Licences, and what their windows are for.
		{put, "lost", Replay, WhyIdempotent},
		{keyed, "lost", Replay, WhyKeyed},
		{keyed, "lost 1m", Replay, WhyKeyed},
		{keyed, "lost 1m 1m", Report, WhyNoLicence},

		// What ends a call does not end the operation.
		{none, "quota", Report, WhyHeld},
		{none, "quota call", Send, WhyNotApplied},
		{repeat, "409", Report, WhyHeld},
		{repeat, "409 call", Replay, WhyRepeat},
		{none, "lost call", Report, WhyNoLicence},
		{none, "401", Report, WhyRejected},
		{none, "401 call", Send, WhyNotApplied},

		// One renewal, and no third send after a second rejection.
		{renew, "401", Refresh, WhyRejected},
		{renew, "401 renew", Send, WhyRenewed},
		{renew, "401 renew 401", Report, WhyRejectedAgain},
		{renew, "401 renew 429 401", Report, WhyRejectedAgain},
		{renew, "401 renew 401 call", Send, WhyNotApplied},
		{renew, "401 renew 401 call 401", Refresh, WhyRejected},
		{renew, "401 renew 429", Send, WhyNotApplied},
		{renew, "401 renew lost", Report, WhyNoLicence},
		{renew, "401 cancel", Report, WhyCanceled},
		{renew, "401 renew cancel", Report, WhyCanceled},
		{put, "lost 401", Refresh, WhyRejected},
		{put, "lost 401 renew", Replay, WhyRenewed},
		{put, "lost 401 renew 401", Report, WhyRejectedAgain},

		// A redirect that keeps the method is the next call's to follow.
		{none, "307", Report, WhyHeld},
		{none, "307 call", Send, WhyRedirect},
		{none, "307 call 308 call", Send, WhyRedirect},
		{none, "307 call 429", Send, WhyNotApplied},
		{none, "307 call lost call", Report, WhyNoLicence},
		{put, "lost 307 call", Replay, WhyIdempotent},
		{none, "307 cancel call", Report, WhyCanceled},

		// A cancel leaves reads, and they create nothing.
		{none, "cancel", Report, WhyCanceled},
		{repeat, "unsent cancel", Report, WhyCanceled},
		{repeat, "lost cancel", Report, WhyCanceled},
		{repeat, "lost cancel call", Report, WhyCanceled},
		{cursor, "lost cancel", Lookup, WhyCanceled},
		{cursor, "lost name cancel", Lookup, WhyCanceled},
		{cursor, "unsent cancel", Report, WhyCanceled},
		{none, "200 cancel", Settle, WhySucceeded},

		// Reading comes before repeating.
		{cursor, "lost", Lookup, WhyLookup},
		{cursor, "lost name", Resume, WhyCursor},
		{cursor, "lost name read", Lookup, WhyLookup},
		{cursor, "429", Send, WhyNotApplied},

		// The turn's unknown effects come first.
		{none, "owe", Reconcile, WhyOwing},
		{none, "unsent owe", Reconcile, WhyOwing},
		{none, "cancel owe", Reconcile, WhyOwing},
		{none, "200 owe", Settle, WhySucceeded},
	} {
		spend := plenty
		spend.Resumes = 1
		p := played(t, test.terms, spend, test.script)
		if d := p.decide(); d.Action != test.action || d.Why != test.why {
			t.Errorf("%q: %v because %v, want %v because %v", test.script, d.Action, d.Why, test.action, test.why)
		}
	}
}

// TestDecideHeld: an answer that says that another attempt would not help ends
// its call, licence or not, and no other.
func TestDecideHeld(t *testing.T) {
	for _, terms := range []Terms{{}, {Idempotent: true}, {Repeat: true}} {
		p := played(t, terms, plenty, "quota")
		if d := p.decide(); d.Action != Report || d.Why != WhyHeld {
			t.Errorf("%+v: %v because %v", terms, d.Action, d.Why)
		}
		p.step(t, "call")
		if d := p.decide(); d.Action != Send {
			t.Errorf("%+v, next call: %v because %v", terms, d.Action, d.Why)
		}
	}
	if !noticed(GuardHeld, false) {
		t.Error("the laws do not notice that nothing is held")
	}
}

// TestDecideBudget: each allowance bounds its own reason, Attempts the wire
// attempts of all, and a refresh, a resume and a redirect are none.
func TestDecideBudget(t *testing.T) {
	put := Terms{Idempotent: true, Renew: true, Resume: true}
	for _, test := range []struct {
		spend  Budget
		script string
		action Action
		why    Why
	}{
		{Budget{Attempts: 2, Sends: 9}, "429", Send, WhyNotApplied},
		{Budget{Attempts: 2, Sends: 9}, "429 429", Report, WhyBudget},
		{Budget{Attempts: 9, Sends: 1}, "429 429", Report, WhyBudget},
		{Budget{Attempts: 9, Replays: 1}, "lost", Replay, WhyIdempotent},
		{Budget{Attempts: 9, Replays: 1}, "lost lost", Report, WhyBudget},
		{Budget{Attempts: 2, Replays: 9}, "lost lost", Report, WhyBudget},
		{Budget{Attempts: 3, Replays: 9}, "resent lost", Report, WhyBudget},
		{Budget{Attempts: 9, Sends: 9}, "429 lost", Report, WhyBudget},
		{Budget{Attempts: 9, Sends: 1, Replays: 1}, "429 lost", Replay, WhyIdempotent},
		{Budget{Attempts: 1}, "429", Report, WhyBudget},
		{Budget{Attempts: 1, Refreshes: 1}, "401 renew", Send, WhyRenewed},
		{Budget{Attempts: 2, Sends: 1, Refreshes: 1}, "401 renew 401 call 401", Report, WhyRejected},
		{Budget{Attempts: 1}, "401", Report, WhyRejected},
		{Budget{Attempts: 1}, "307 call", Send, WhyRedirect},
		{Budget{Attempts: 1}, "307 call 307 call", Send, WhyRedirect},
		{Budget{Attempts: 1, Resumes: 1}, "lost name", Resume, WhyCursor},
		{Budget{Attempts: 1, Resumes: 1}, "lost name read", Report, WhyBudget},
		{Budget{Attempts: 2, Replays: 1, Resumes: 1}, "lost name read", Replay, WhyIdempotent},
		{Budget{}, "", Send, WhyFresh},
	} {
		spend := test.spend
		spend.Elapsed = time.Hour
		p := played(t, put, spend, test.script)
		if d := p.decide(); d.Action != test.action || d.Why != test.why {
			t.Errorf("%q with %v: %v because %v, want %v because %v", test.script, test.spend, d.Action, d.Why, test.action, test.why)
		}
	}
}

// TestDecideTime: Elapsed and Until bound when a further attempt or wait may
// begin, whatever the reason, and never the first attempt. A redirect is the
// same request elsewhere.
func TestDecideTime(t *testing.T) {
	put := Terms{Idempotent: true, Renew: true}
	minute := Budget{Attempts: 9, Sends: 9, Replays: 9, Refreshes: 9, Elapsed: time.Minute}
	for _, test := range []struct {
		script string
		action Action
		why    Why
	}{
		{"1m", Send, WhyFresh},
		{"429", Send, WhyNotApplied},
		{"429 1m", Report, WhyTime},
		{"lost 1m", Report, WhyTime},
		{"401 1m", Report, WhyTime},
		{"401 renew 1m", Report, WhyTime},
		{"lost 401 1m", Report, WhyTime},
		{"lost 401 renew 1m", Report, WhyTime},
		{"429+1m", Report, WhyTime},
		{"503+1m", Report, WhyTime},
		{"307 1m call", Send, WhyRedirect},
	} {
		p := played(t, put, minute, test.script)
		if d := p.decide(); d.Action != test.action || d.Why != test.why {
			t.Errorf("%q in a minute: %v because %v, want %v because %v", test.script, d.Action, d.Why, test.action, test.why)
		}
		p = played(t, put, plenty, test.script)
		p.until = sinceEpoch(time.Minute)
		if d := p.decide(); d.Action != test.action || d.Why != test.why {
			t.Errorf("%q until a minute: %v because %v, want %v because %v", test.script, d.Action, d.Why, test.action, test.why)
		}
	}
}

// TestDecideWait: when something may be done later, the decision says what and
// when; while an attempt is in flight, only when that is over, if anybody knows.
func TestDecideWait(t *testing.T) {
	flight := func(deadlines ...time.Duration) Record {
		r := recordOf(Terms{Repeat: true})
		for i, d := range deadlines {
			a := Attempt{Call: 1, Begun: epoch}
			if d != 0 {
				a.Deadline = sinceEpoch(d)
			}
			r.Fold(Fact{N: i + 1, Attempt: a})
		}
		return r
	}
	early := func(terms Terms, script string) Record {
		return played(t, terms, plenty, script).rec.with(func(r *Record) { r.Budget = plenty })
	}
	none := time.Duration(-1)
	for _, test := range []struct {
		name   string
		r      Record
		at     time.Duration
		action Action
		next   Action
		until  time.Duration // none: nobody knows, or there is no wait
		why    Why
	}{
		{"no deadline", flight(0), time.Second, Wait, Report, none, WhyInFlight},
		{"a deadline", flight(time.Minute), time.Second, Wait, Report, time.Minute, WhyInFlight},
		{"at the deadline", flight(time.Minute), time.Minute, Replay, Report, none, WhyRepeat},
		{"the later of two", flight(time.Minute, 2*time.Minute), time.Second, Wait, Report, 2 * time.Minute, WhyInFlight},
		{"the later of two, listed first", flight(2*time.Minute, time.Minute), time.Second, Wait, Report, 2 * time.Minute, WhyInFlight},
		{"the one that is left", flight(time.Minute, 2*time.Minute), 90 * time.Second, Wait, Report, 2 * time.Minute, WhyInFlight},
		{"one of them without", flight(time.Minute, 0), time.Second, Wait, Report, none, WhyInFlight},
		{"too early to send", early(Terms{}, "429+1m"), time.Second, Wait, Send, time.Minute, WhyEarly},
		{"time to send", early(Terms{}, "429+1m"), time.Minute, Send, Report, none, WhyNotApplied},
		{"too early to replay", early(Terms{Repeat: true}, "503+1m"), time.Second, Wait, Replay, time.Minute, WhyEarly},
		{"never to replay", early(Terms{}, "503+1m"), time.Second, Report, Report, none, WhyNoLicence},
		{"another call waits too", early(Terms{}, "429+1m call"), time.Second, Wait, Send, time.Minute, WhyEarly},
		{"a cancel does not wait", early(Terms{}, "429+1m cancel"), time.Second, Report, Report, none, WhyCanceled},
		{"a lookup does not wait", early(Terms{Lookup: true}, "503+1m"), time.Second, Lookup, Report, none, WhyLookup},
		{"a renewed credential does not wait", recordOf(Terms{}, anRejected.with(func(a *Attempt) { a.NotBefore = sinceEpoch(time.Minute) })).with(func(r *Record) { r.Renewed = 1 }),
			time.Second, Send, Report, none, WhyRenewed},
	} {
		d := Decide(test.r, sinceEpoch(test.at))
		var until time.Time
		if test.until != none {
			until = sinceEpoch(test.until)
		}
		if d.Action != test.action || d.Next != test.next || !d.NotBefore.Equal(until) || d.Why != test.why {
			t.Errorf("%s: %v, then %v at %v, because %v; want %v, then %v at %v, because %v", test.name,
				d.Action, d.Next, d.NotBefore, d.Why, test.action, test.next, until, test.why)
		}
	}
}

// TestDecidePure: Decide changes nothing, and says the same again.
func TestDecidePure(t *testing.T) {
	for _, row := range weighings() {
		for _, r := range row.held {
			before := fmt.Sprint(r)
			d := Decide(r, sinceEpoch(time.Second))
			if again := Decide(r, sinceEpoch(time.Second)); again != d || fmt.Sprint(r) != before {
				t.Errorf("%v: first %v, then %v", row.Guard, d, again)
			}
		}
	}
}

// namesOf returns the texts of all values below the given one, and its own.
func namesOf[E ~uint8](values E) (list []string, beyond string) {
	for e := range values {
		list = append(list, fmt.Sprint(e))
	}
	return list, fmt.Sprint(values)
}

// TestNames: every value of every enumeration has a text of its own.
func TestNames(t *testing.T) {
	check := func(what string, list []string, beyond string) {
		seen := map[string]bool{"": true, "invalid": true}
		for i, name := range list {
			if seen[name] {
				t.Errorf("%s %d: %q is no name, or another's", what, i, name)
			}
			seen[name] = true
		}
		if beyond != "invalid" {
			t.Errorf("%s %d: %q is missing in the test", what, len(list), beyond)
		}
	}
	list, beyond := namesOf(Replay + 1)
	check("Action", list, beyond)
	list, beyond = namesOf(WhyTime + 1)
	check("Why", list, beyond)
	list, beyond = namesOf(guards)
	check("Guard", list, beyond)
	list, beyond = namesOf(ReachTerminal + 1)
	check("Reach", list, beyond)
	list, beyond = namesOf(VerdictContradiction + 1)
	check("Verdict", list, beyond)
	list, beyond = namesOf(Contradicted + 1)
	check("Outcome", list, beyond)
	list, beyond = namesOf(ReasonRedirect + 1)
	check("Reason", list, beyond)
	list, beyond = namesOf(lastProof + 1)
	check("Proof", list, beyond)
}

// lastProof is the highest of the proofs.
const lastProof = ProofUnjudged

// TestGuardsString: a set of guards prints those that hold, in their order.
func TestGuardsString(t *testing.T) {
	for gs, want := range map[Guards]string{
		0:                    "",
		guardSet(GuardClean): "clean",
		guardSet(GuardTime, GuardClean, GuardFresh): "clean, fresh, time left",
	} {
		if got := gs.String(); got != want {
			t.Errorf("%b: %q, want %q", gs, got, want)
		}
	}
}

// TestDecisionInLog: a log line says what, why, when and on what grounds, and
// nothing of the request, its key or the server's name for it.
func TestDecisionInLog(t *testing.T) {
	r := recordOf(Terms{}, anRefused.with(func(a *Attempt) { a.NotBefore = sinceEpoch(time.Minute) }))
	r.ServerID, r.Fingerprint = "secret-id", "secret-fingerprint"
	r.Attempts[0].ID = "secret-attempt"
	d := Decide(r, sinceEpoch(time.Second))
	var b bytes.Buffer
	slog.New(slog.NewJSONHandler(&b, nil)).Info("m", "decision", d, "record", &r, "value", r,
		"evidence", r.Attempts[0].Evidence, "blocked", &BlockedError{Decision: d})
	for _, want := range []string{
		`"action":"wait"`, `"why":"too early"`, `"not_before":"2001-09-09T01:47:40Z"`, `"guards":"clean, `,
		`"outcome":"refused"`, `"attempts":1`, `"reach":"accepted"`, `"verdict":"not applied"`, `"proof":"status"`, `wait: too early`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s is missing", want)
		}
	}
	if strings.Contains(b.String(), "secret") {
		t.Errorf("it tells too much: %s", b.String())
	}
}
