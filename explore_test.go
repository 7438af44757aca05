package rubicon

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The tests of this file walk, breadth first, through every state that admit,
// Decide and Fold can reach together with a small world. The world may lose a
// request, act on it and tell or not, refuse it, answer late, let it arrive
// late, crash the client, cancel, forget keys, renew credentials, and let
// another layer ask for the same operation, with its key or without. What may
// never happen is said in the words of the world, not in those of the record:
// how often the server acted, and what was still on its way.

// A deal is what the endpoint documents and the caller accepts: any of the
// clauses below.
type deal uint8

const (
	onIdempotent deal = 1 << iota // the method is
	onRepeat                      // the caller accepts that it acts twice
	onKey                         // the endpoint remembers keys for a time
	onLookup                      // it can be asked
	onResume                      // its stream has a cursor
	onRenew                       // a credential can be renewed
	deals
)

// has reports whether d holds clause.
func (d deal) has(clause deal) bool { return d&clause != 0 }

// String lists the clauses of d.
func (d deal) String() string {
	var list []string
	for i, name := range []string{"idempotent", "repeatable", "keyed", "lookup", "resumable", "renewable"} {
		if d.has(1 << i) {
			list = append(list, name)
		}
	}
	return "[" + strings.Join(list, " ") + "]"
}

// All times are whole ticks. A request that is released arrives within the
// margin or never, which is what the window of a key counts on.
const (
	tickLength = time.Minute
	margin     = 1          // a request arrives at most so long after its release
	bound      = margin + 1 // from when on it can't be in flight any more
	retention  = 4          // how long the server remembers a key, at least
	maxCalls   = 2
	maxTrips   = 7
)

// tickTime returns the time of tick n.
func tickTime(n uint8) time.Time {
	return time.Unix(1_000_000_000, 0).UTC().Add(time.Duration(n) * tickLength)
}

// explained reports whether the deal explains any number of effects.
func (d deal) explained() bool { return d.has(onIdempotent) || d.has(onRepeat) }

// blind reports whether nobody can tell when a request arrives: then it does so
// only together with its answer, or never.
func (d deal) blind() bool { return d.explained() && !d.has(onLookup) }

// horizon returns when the world ends, and with it the operation's budget of
// time: when keys are forgotten, else when an attempt whose client crashed can
// no longer be in flight.
func (d deal) horizon() uint8 {
	if d.has(onKey) && !d.explained() {
		return retention
	}
	return bound + 1
}

// terms returns what d licenses for an operation that is first sent now.
func (d deal) terms(now uint8) Terms {
	return Terms{
		Idempotent: d.has(onIdempotent), Repeat: d.has(onRepeat),
		Keyed: d.has(onKey), ReplayUntil: tickTime(now + retention - margin),
		Renew: d.has(onRenew), Lookup: d.has(onLookup), Resume: d.has(onResume),
	}
}

// budget returns what an operation under d may spend: three attempts, of which
// the allowance for sends or that for replays allows fewer. With renewals, which
// come on top, it is two; two renewals tell the budget from the rule that a call
// has one.
func (d deal) budget() Budget {
	b := Budget{Attempts: 3, Sends: 1, Replays: 2, Refreshes: 2, Resumes: 1, Elapsed: time.Duration(d.horizon()) * tickLength}
	switch {
	case d.has(onRenew):
		b.Attempts, b.Replays = 2, 1
	case d.has(onResume):
		b.Sends, b.Replays = b.Replays, b.Sends
	}
	return b
}

// A rules is how a world differs from the one that the design assumes.
type rules uint8

const (
	slow  rules = 1 << iota // a request may arrive at any time after its release
	hasty                   // absence is believed while a request may still arrive
	owing                   // an effect of the turn is unknown at first
)

// A breach is something that may never happen.
type breach uint8

const (
	twoEffects    breach = iota // the server acted twice, and no licence explains it
	unprovenSend                // a send, although the server acted or may yet act
	afterCancel                 // an attempt after the caller gave up
	afterAnswer                 // an attempt after an answer for good
	thirdSend                   // an attempt of a call of which two were rejected
	overBudget                  // an attempt that the budget does not cover
	overTime                    // an attempt after the budget of time
	unnamedResume               // a resume under a name that the server did not give
	undocumented                // a step that neither the deal nor an answer offers
	twoInFlight                 // an attempt while another is under way
	whileOwing                  // an attempt while an effect of the turn is unknown
	disagreement                // admit refuses what it has just allowed
	breaches
)

// String says what b is.
func (b breach) String() string {
	return nameOf(b, "two effects", "send without proof", "attempt after cancel", "attempt after an answer for good",
		"third send after a second rejection", "attempt beyond the budget", "attempt after the end of time",
		"resume without a name from the server", "step that nothing offers", "two attempts in flight",
		"attempt while an effect is unknown", "admit disagrees with itself")
}

// A policy is what is explored.
type policy struct {
	// ask says what may be done for p.
	ask func(r *Record, p Proposal, now time.Time) Decision
	// book books p, which ask has allowed.
	book func(r *Record, p Proposal, now time.Time) error
}

// core is the policy of this package, by the one door that books.
var core = policy{ask: askAdmit, book: bookAdmit}

// askAdmit proposes an attempt for a reason that no decision gives, so that
// admit says what it thinks.
func askAdmit(r *Record, p Proposal, now time.Time) Decision {
	asked := *r
	p.Reason = ReasonResume
	_, err := admit(&asked, p, now)
	return err.(*BlockedError).Decision
}

// bookAdmit books by admit.
func bookAdmit(r *Record, p Proposal, now time.Time) error {
	_, err := admit(r, p, now)
	return err
}

// bookAnyway books without asking, as admit does once it has made up its mind.
func bookAnyway(r *Record, p Proposal, now time.Time) error {
	if len(r.Attempts) == 0 {
		r.Terms = p.Terms
	}
	r.Fold(Fact{N: len(r.Attempts) + 1, Attempt: Attempt{
		Reason: p.Reason, Call: p.Call, Keyed: p.Keyed, Begun: now, Deadline: p.Deadline,
	}})
	return nil
}

// view returns r as admit looks at it for p.
func view(r *Record, p Proposal) Record {
	seen := *r
	if len(seen.Attempts) == 0 {
		seen.Terms = p.Terms
	}
	seen.Terms.Repeat, seen.Terms.Renew, seen.Budget = p.Terms.Repeat, p.Terms.Renew, p.Budget
	return seen.asked(p.Call, p.Keyed)
}

// without is core with what it reads of one guard replaced.
func without(g Guard, held bool) policy {
	return policy{book: bookAnyway, ask: func(r *Record, p Proposal, now time.Time) Decision {
		seen := view(r, p)
		return decide(&seen, now, weigh(&seen, now).with(g, held))
	}}
}

// A place is where the request of an attempt is.
type place uint8

const (
	nowhere place = iota // there is no such request
	flying               // it may arrive
	gone                 // it never arrives any more, and did not act
	acted                // it arrived and acted, or was known by its key
)

// An ear says whether somebody still waits for the answer to an attempt.
type ear uint8

const (
	nobody    ear = iota // the process that waited crashed
	listening            // a call waits
	told                 // the call knows what it will ever know
)

// A trip is the truth about one attempt.
type trip struct {
	place place
	ear   ear
	at    uint8 // when it was released
}

// A mood is what a call is at.
type mood uint8

const (
	unborn  mood = iota
	asking       // it may do something
	waiting      // for the answer to its attempt
	asleep       // until it may ask again
	over         // it returned, or crashed
)

// A caller is one call of a layer above.
type caller struct {
	mood mood
	wake uint8 // when it asks again, if it is asleep
	key  bool  // its request carries the operation's key
}

// A world is the truth about one operation, as far as it is not in the record.
type world struct {
	now   uint8
	trips [maxTrips]trip
	calls [maxCalls]caller
	since uint8 // when the server learned the key, plus one; 0: it does not know it
	dirty bool  // the server acted
	named bool  // the server told its name for the operation
}

// A move is one thing that happened.
type move struct {
	what string
	n    uint8 // the attempt or call that it happened to; 0: none
}

// String is what a trace shows.
func (s move) String() string {
	if s.n == 0 {
		return s.what
	}
	return fmt.Sprintf("%s %d", s.what, s.n)
}

// A node is a state of the world and the journal, and how it was reached.
type node struct {
	world
	rec Record
	how origin
}

// fold folds f into the record, which until then may be shared.
func (n *node) fold(f Fact) {
	n.rec.Attempts = slices.Clone(n.rec.Attempts)
	n.rec.Fold(f)
}

// An origin says how a node was reached.
type origin struct {
	step move
	from int32 // the node before it; -1: none
}

// A nodeKey tells nodes apart. It holds all of a node that a policy or the world
// can still see.
type nodeKey [2 + maxCalls + 4*maxTrips]byte

// key returns the key of n.
func (n *node) key() nodeKey {
	k := append(make([]byte, 0, len(nodeKey{})),
		n.now<<4|n.since, byte(n.rec.Renewed)<<4|packed(n.named, n.dirty, n.rec.Owing > 0))
	for _, c := range n.calls {
		k = append(k, byte(c.mood)<<4|c.wake<<1|packed(c.key))
	}
	for i := range n.rec.Attempts {
		a, t := &n.rec.Attempts[i], &n.trips[i]
		k = append(k, byte(a.Verdict)<<4|byte(a.Reason), byte(a.Call)<<4|n.age(t), byte(t.place)<<4|byte(t.ear),
			packed(a.Keyed, a.Ended, a.Rejected, a.Final, a.Status == http.StatusTemporaryRedirect, a.NotBefore.After(tickTime(n.now))))
	}
	return nodeKey(k[:len(nodeKey{})])
}

// age returns how long ago t was released, plus one, as long as that counts.
func (n *node) age(t *trip) byte {
	if t.place != flying && (t.ear == told || n.now >= t.at+bound) {
		return 0
	}
	return n.now - t.at + 1
}

// packed packs truths.
func packed(list ...bool) byte {
	var b byte
	for i, set := range list {
		if set {
			b |= 1 << i
		}
	}
	return b
}

// any reports whether a call is at m.
func (n *node) any(m mood) bool {
	return slices.ContainsFunc(n.calls[:], func(c caller) bool { return c.mood == m })
}

// An explorer walks the states of one deal under one policy, until one of the
// breaches that it watches for happens.
type explorer struct {
	deal
	rules
	policy
	watch uint16 // a bit a breach
	seen  map[nodeKey]bool
	next  []node   // reached and not yet expanded
	past  []origin // of all nodes, in the order in which they are expanded
	head  int32    // the node whose steps are being made
	whys  uint32   // a bit a reason that the policy gave

	trace string // the shortest to a breach; "" if there is none
}

// explore walks the states of d under p and r. Without a list of breaches it
// watches for all.
func explore(p policy, d deal, r rules, watch ...breach) *explorer {
	x := &explorer{deal: d, rules: r, policy: p, head: -1, seen: make(map[nodeKey]bool)}
	for _, b := range watch {
		x.watch |= 1 << b
	}
	if len(watch) == 0 {
		x.watch = 1<<breaches - 1
	}
	var root node
	if r&owing != 0 {
		root.rec.Owing = 1
	}
	x.begin(&root)
	for len(x.next) > 0 && x.trace == "" {
		level := x.next
		x.next = nil
		for i := range level {
			x.head++
			x.expand(&level[i])
		}
	}
	return x
}

// moves returns what happened on the way to any state.
func (x *explorer) moves() map[string]bool {
	moves := make(map[string]bool)
	for _, o := range x.past {
		moves[o.step.what] = true
	}
	return moves
}

// expand makes the steps that can follow n. A call that may do something does
// it before anything else happens in the world, unless it crashes: the world
// could have done its part before or after just as well.
func (x *explorer) expand(n *node) {
	for i := range n.calls {
		if n.calls[i].mood == asking {
			x.act(n, i)
		}
	}
	x.crash(n)
	if n.any(asking) {
		return
	}
	for i := range n.rec.Attempts {
		x.travel(n, i)
		if n.trips[i].ear == listening {
			x.answer(n, i)
		}
	}
	x.pass(n)
	x.begin(n)
}

// step adds what n becomes by change, unless it was seen.
func (x *explorer) step(n *node, what string, i int, change func(*node)) {
	next := *n
	next.how = origin{move{what, uint8(i)}, x.head}
	change(&next)
	if k := next.key(); !x.seen[k] {
		x.seen[k] = true
		x.visit(&next)
	}
}

// visit adds n. Whatever it is, nobody may get an attempt from it once the
// caller cancels; after an answer for good nobody may in any case, and the path
// ends when all calls know what they ever will.
func (x *explorer) visit(n *node) {
	if n.answered() {
		x.refuses(n, afterAnswer)
		if !n.any(waiting) {
			return
		}
	}
	if n.any(asking) {
		canceled := *n
		canceled.fold(Fact{Canceled: true})
		x.refuses(&canceled, afterCancel)
	}
	for i := range n.calls {
		if n.calls[i].mood == asking {
			x.rest(n, i)
		}
	}
	x.next, x.past = append(x.next, *n), append(x.past, n.how)
}

// refuses checks that neither a call under way nor one more gets an attempt.
func (x *explorer) refuses(n *node, b breach) {
	why := "then"
	if b == afterCancel {
		why = "cancel"
	}
	for i := range n.calls {
		c := n.calls[i]
		if c.mood == over {
			continue
		}
		for _, c.key = range x.keys(c) {
			if a := x.decide(n, i, c.key).Action; a == Send || a == Replay || a == Refresh || a == Resume {
				x.breach(n, b, fmt.Sprintf("%v, %v (call %d)", why, a, i+1))
			}
		}
		if c.mood == unborn {
			return
		}
	}
}

// keys returns whether the request of c carries the key, or may.
func (x *explorer) keys(c caller) []bool {
	switch {
	case c.mood != unborn:
		return []bool{c.key}
	case !x.has(onKey):
		return []bool{false}
	case x.explained():
		return []bool{true}
	}
	return []bool{false, true}
}

// rest lets call i+1 return or sleep if it gets nothing.
func (x *explorer) rest(n *node, i int) {
	c := &n.calls[i]
	switch d := x.decide(n, i, c.key); {
	case d.Action == Wait && d.Next != Report:
		c.mood, c.wake = asleep, uint8(d.NotBefore.Sub(tickTime(0))/tickLength)
	case d.Action == Wait, d.Action == Report, d.Action == Settle, d.Action == Lookup && x.tooEarly(n):
		*c = caller{mood: over}
	}
}

// decide asks the policy for call i+1.
func (x *explorer) decide(n *node, i int, key bool) Decision {
	d := x.ask(&n.rec, x.proposal(n, i, key), tickTime(n.now))
	x.whys |= 1 << d.Why
	return d
}

// proposal returns what call i+1 proposes.
func (x *explorer) proposal(n *node, i int, key bool) Proposal {
	return Proposal{Terms: x.terms(n.now), Budget: x.budget(), Call: i + 1, Keyed: key, Deadline: tickTime(n.now + bound)}
}

// breach notes that what followed n, and should not have, if b is watched for.
// It reports whether it is.
func (x *explorer) breach(n *node, b breach, what string) bool {
	if x.watch&(1<<b) == 0 {
		return false
	}
	if x.trace != "" {
		return true
	}
	trace := []string{what}
	for how := n.how; ; how = x.past[how.from] {
		trace = append(trace, how.step.String())
		if how.from < 0 {
			break
		}
	}
	slices.Reverse(trace)
	x.trace = fmt.Sprintf("%v: %s", b, strings.Join(trace, ", "))
	return true
}

// travel lets the request of attempt i+1 arrive.
func (x *explorer) travel(n *node, i int) {
	if n.trips[i].place != flying || x.blind() {
		return
	}
	known := n.rec.Attempts[i].Keyed && n.since != 0
	if !known && n.dirty && !x.explained() {
		x.breach(n, twoEffects, move{"applied", uint8(i + 1)}.String())
		return
	}
	x.step(n, "applied", i+1, func(n *node) {
		n.trips[i].place, n.dirty = acted, true
		if !known && x.has(onKey) && n.rec.Attempts[i].Keyed {
			n.since = n.now + 1
		}
	})
}

// A telling is what a call may be told of an attempt.
type telling struct {
	what string
	from place // where the request is when it is told
	to   place // where it is then
	fact Attempt

	unless deal // in which it says nothing that others do not
}

// judged is what an answer with the given status says by the status table.
func judged(status int) Attempt { return judge(nil, status, nil) }

// tellings lists what the world may tell. A cut tells nothing, and leaves the
// request where it is.
var tellings = []telling{
	{"not sent", flying, gone, Attempt{Evidence: Evidence{ReachNone, VerdictNotApplied, ProofNoConnection}}, 0},
	{"refused", flying, gone, Attempt{Evidence: Evidence{ReachSent, VerdictNotApplied, ProofRefused}}, 0},
	{"401", flying, gone, judged(401), 0},
	{"429", flying, gone, judged(429), 0},
	{"307", flying, gone, judged(307), onRenew},
	{"422", flying, gone, judged(422), 0},
	{"cut", flying, flying, Attempt{Evidence: Evidence{Reach: ReachSent}}, 0},
	{"cut", gone, gone, Attempt{Evidence: Evidence{Reach: ReachSent}}, 0},
	{"cut", acted, acted, Attempt{Evidence: Evidence{Reach: ReachSent}}, 0},
	{"200", acted, acted, judged(200), 0},
	{"incomplete", acted, acted, Attempt{Evidence: Evidence{ReachTerminal, VerdictIncomplete, ProofStream}}, 0},
	{"contradiction", acted, acted, Attempt{Evidence: Evidence{ReachTerminal, VerdictContradiction, ProofStream}}, 0},
}

// answer lets the call that waits for attempt i+1 be told about it.
func (x *explorer) answer(n *node, i int) {
	at := n.trips[i].place
	comes := func(from place) bool { return from == at || from == acted && at == flying && x.blind() }
	for _, a := range tellings {
		if comes(a.from) && (a.unless == 0 || !x.has(a.unless)) {
			x.step(n, a.what, i+1, func(n *node) { n.tell(i, a) })
		}
	}
	if comes(acted) && x.has(onResume) && !n.named {
		x.step(n, "head with a name", i+1, func(n *node) {
			n.named, n.dirty, n.trips[i].place = true, true, acted
			n.fold(Fact{N: i + 1, ServerID: "id", Attempt: Attempt{Evidence: Evidence{Reach: ReachAccepted}}})
		})
	}
}

// tell folds a into the record as the end of attempt i+1.
func (n *node) tell(i int, a telling) {
	n.trips[i].place, n.trips[i].ear = a.to, told
	n.dirty = n.dirty || a.to == acted
	n.calls[n.rec.Attempts[i].Call-1].mood = asking
	a.fact.Ended = true
	if a.fact.Status == http.StatusTooManyRequests {
		a.fact.NotBefore = tickTime(n.now + 1)
	}
	n.fold(Fact{N: i + 1, Attempt: a.fact})
}

// pass lets time pass and keys be forgotten.
func (x *explorer) pass(n *node) {
	if n.now < x.horizon() {
		x.step(n, "tick", 0, func(n *node) { n.tick(x.rules) })
	}
	if n.since != 0 && n.now+1 >= n.since+retention {
		x.step(n, "retention ends", 0, func(n *node) { n.since = 0 })
	}
}

// tick ends what takes no longer.
func (n *node) tick(r rules) {
	n.now++
	for i := range n.trips {
		if t := &n.trips[i]; t.place == flying && n.now >= t.at+bound && r&slow == 0 {
			t.place = gone
		}
	}
	for i := range n.calls {
		if c := &n.calls[i]; c.mood == asleep && n.now >= c.wake {
			c.mood, c.wake = asking, 0
		}
	}
}

// crash ends the process of all calls, which learn nothing more.
func (x *explorer) crash(n *node) {
	if n.calls[maxCalls-1].mood != unborn {
		return // nobody would ask again
	}
	x.step(n, "crash", 0, func(n *node) {
		for i := range n.calls {
			if c := &n.calls[i]; c.mood != unborn {
				*c = caller{mood: over}
			}
		}
		for i := range n.trips {
			if n.trips[i].ear == listening {
				n.trips[i].ear = nobody
			}
		}
	})
}

// begin lets another layer, or another process, ask for the operation.
func (x *explorer) begin(n *node) {
	i := slices.IndexFunc(n.calls[:], func(c caller) bool { return c.mood == unborn })
	if i < 0 {
		return
	}
	for _, key := range x.keys(n.calls[i]) {
		what := "call"
		if key {
			what = "call with the key"
		}
		x.step(n, what, i+1, func(n *node) {
			n.calls[i] = caller{mood: asking, key: key}
			n.fold(Fact{Call: i + 1})
		})
	}
}

// act lets call i+1 do what the policy allows.
func (x *explorer) act(n *node, i int) {
	p := x.proposal(n, i, n.calls[i].key)
	switch d := x.ask(&n.rec, p, tickTime(n.now)); d.Action {
	case Send, Replay:
		p.Reason, _ = d.reason()
		x.attempt(n, p, d.Action)
	case Refresh:
		x.refresh(n, p)
	case Resume:
		x.resume(n, p)
	case Lookup:
		x.look(n)
	case Reconcile:
		x.step(n, "reconcile", 0, func(n *node) { n.rec.Owing = 0 })
	}
}

// attempt books an attempt for p and releases it.
func (x *explorer) attempt(n *node, p Proposal, a Action) {
	what := fmt.Sprintf("%v (%v, call %d)", a, p.Reason, p.Call)
	for b := range breaches {
		if x.breaks(b, n, p, a) && x.breach(n, b, what) {
			return
		}
	}
	if len(n.rec.Attempts) == maxTrips {
		return
	}
	x.step(n, a.String(), len(n.rec.Attempts)+1, func(next *node) {
		next.rec.Attempts = slices.Clone(n.rec.Attempts)
		if err := x.book(&next.rec, p, tickTime(n.now)); err != nil {
			x.breach(n, disagreement, what)
			return
		}
		next.trips[len(next.rec.Attempts)-1] = trip{flying, listening, n.now}
		next.calls[p.Call-1].mood = waiting
	})
}

// breaks reports whether an attempt for p would be a case of b.
func (x *explorer) breaks(b breach, n *node, p Proposal, a Action) bool {
	switch b {
	case unprovenSend:
		return a == Send && n.mayHaveActed()
	case thirdSend:
		return n.rejections(p.Call) >= 2
	case overBudget:
		return x.exceeds(n, p.Reason) || len(n.rec.Attempts) == maxTrips
	case overTime:
		return p.Reason != ReasonRedirect && len(n.rec.Attempts) > 0 && n.now >= n.trips[0].at+x.horizon()
	case undocumented:
		return p.Reason == ReasonRedirect && !n.redirected(p.Call) || p.Reason == ReasonRefresh && n.rejections(p.Call) == 0
	case twoInFlight:
		return n.underWay()
	case whileOwing:
		return n.rec.Owing > 0
	}
	return false // the other breaches show elsewhere
}

// underWay reports whether there is an attempt that can be in flight.
func (n *node) underWay() bool {
	return slices.ContainsFunc(n.trips[:], func(t trip) bool {
		return t.place != nowhere && t.ear != told && n.now < t.at+bound
	})
}

// answered reports whether the server answered for good.
func (n *node) answered() bool {
	return slices.ContainsFunc(n.rec.Attempts, func(a Attempt) bool {
		return a.Verdict != VerdictUnknown && a.Verdict != VerdictNotApplied
	})
}

// mayHaveActed reports whether the server acted, or may yet act.
func (n *node) mayHaveActed() bool {
	return n.dirty || slices.ContainsFunc(n.trips[:], func(t trip) bool { return t.place == flying })
}

// rejections counts the attempts of a call whose credential was rejected.
func (n *node) rejections(call int) int {
	count := 0
	for i := range n.rec.Attempts {
		if a := &n.rec.Attempts[i]; a.Call == call && a.Status == http.StatusUnauthorized {
			count++
		}
	}
	return count
}

// redirected reports whether an earlier call than the given one was sent
// elsewhere, so that this one is the next hop.
func (n *node) redirected(call int) bool {
	last := n.rec.last()
	return last != nil && last.Status == http.StatusTemporaryRedirect && last.Call < call
}

// exceeds reports whether one more attempt for reason is more than the deal's
// budget has. Redirects are not counted: whoever follows them bounds them.
func (x *explorer) exceeds(n *node, reason Reason) bool {
	var made [ReasonRedirect + 1]int
	for i := range n.rec.Attempts {
		made[n.rec.Attempts[i].Reason]++
	}
	made[reason]++
	b := x.budget()
	return made[ReasonFirst] > 1 || made[ReasonSend] > b.Sends || made[ReasonReplay] > b.Replays ||
		made[ReasonRefresh] > b.Refreshes || made[ReasonResume] > b.Resumes ||
		made[ReasonFirst]+made[ReasonSend]+made[ReasonReplay] > b.Attempts
}

// refresh renews the credential that the latest attempt was rejected with.
func (x *explorer) refresh(n *node, p Proposal) {
	offered := x.has(onRenew) && n.rejections(p.Call) > 0 && !x.exceeds(n, ReasonRefresh)
	switch {
	case !offered && x.breach(n, undocumented, "refresh"):
	case n.rejections(p.Call) > 1 && x.breach(n, thirdSend, "refresh"):
	default:
		x.step(n, "renewed", 0, func(n *node) { n.fold(Fact{Renewed: len(n.rec.Attempts)}) })
	}
}

// resume reads the existing operation on, to its end or not.
func (x *explorer) resume(n *node, p Proposal) {
	switch {
	case !n.named && x.breach(n, unnamedResume, "resume"):
		return
	case (!x.has(onResume) || x.exceeds(n, ReasonResume)) && x.breach(n, undocumented, "resume"):
		return
	case len(n.rec.Attempts) == maxTrips:
		return
	}
	read := func(n *node) {
		n.fold(Fact{N: len(n.rec.Attempts) + 1, Attempt: Attempt{
			Evidence: Evidence{Verdict: VerdictNotApplied}, Reason: ReasonResume, Call: p.Call, Ended: true,
		}})
	}
	x.step(n, "resume, cut", 0, read)
	x.step(n, "resume, end", 0, func(n *node) {
		read(n)
		n.reveal(VerdictSucceeded)
	})
}

// tooEarly reports whether the absence of the operation proves nothing yet,
// since a request may still arrive, as far as a client with a clock can know.
func (x *explorer) tooEarly(n *node) bool {
	return !n.dirty && x.rules&hasty == 0 && slices.ContainsFunc(n.trips[:], func(t trip) bool {
		return t.place != nowhere && n.now < t.at+bound
	})
}

// look asks the server what became of the operation.
func (x *explorer) look(n *node) {
	switch {
	case !x.has(onLookup):
		x.breach(n, undocumented, "lookup")
	case n.dirty:
		x.step(n, "lookup, found", 0, func(n *node) { n.reveal(VerdictSucceeded) })
	default:
		x.step(n, "lookup, absent", 0, func(n *node) { n.reveal(VerdictNotApplied) })
	}
}

// reveal tells the truth about the attempts of which nothing is known: that
// those which acted succeeded, or that none did.
func (n *node) reveal(v Verdict) {
	for i := range n.rec.Attempts {
		if n.rec.Attempts[i].open() && (v == VerdictNotApplied || n.trips[i].place == acted) {
			n.fold(Fact{N: i + 1, Attempt: Attempt{Evidence: Evidence{Verdict: v, Proof: ProofDocumented}, Ended: true}})
		}
	}
}

// TestExplore: in no state that can be reached does anything happen that may
// never happen.
func TestExplore(t *testing.T) {
	var states atomic.Int64
	var whys atomic.Uint32
	var moves sync.Map
	start := time.Now()
	t.Cleanup(func() {
		t.Logf("%d states of %d deals in %v", states.Load(), deals, time.Since(start).Round(time.Millisecond))
		for w := WhyContradiction; w.String() != "invalid"; w++ {
			if whys.Load()&(1<<w) == 0 {
				t.Errorf("no state gives the reason %q", w)
			}
		}
		for _, what := range []string{"call", "call with the key", "applied", "not sent", "cut", "401", "429", "307", "head with a name",
			"crash", "tick", "retention ends", "renewed", "resume, cut", "lookup, absent", "reconcile"} {
			if _, ok := moves.Load(what); !ok {
				t.Errorf("%q never happened", what)
			}
		}
	})
	walk := func(name string, d deal, r rules) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := explore(core, d, r)
			states.Add(int64(len(x.past)))
			whys.Or(x.whys)
			for what := range x.moves() {
				moves.Store(what, true)
			}
			if x.trace != "" {
				t.Error(x.trace)
			}
		})
	}
	for d := range deals {
		walk(d.String(), d, 0)
	}
	walk("owing", onKey|onLookup, owing)
}

// TestExploreAssumptions: what the design takes for granted of the world is
// needed. Where it does not hold, the same rules come to two effects.
func TestExploreAssumptions(t *testing.T) {
	for _, test := range []struct {
		name string
		deal
		rules
		want breach
	}{
		{"a request that was released inside the window arrives inside it", onKey, slow, twoEffects},
		{"absence is believed only when nothing can arrive any more", onLookup, hasty, twoEffects},
	} {
		x := explore(core, test.deal, test.rules, test.want)
		if x.trace == "" {
			t.Errorf("%s: nothing found in %d states", test.name, len(x.past))
		}
		t.Log(x.trace)
	}
}

// TestExploreAsks: what admit decides for a call is what Decide says of the
// record as that call sees it, which is what the mutants below start from.
func TestExploreAsks(t *testing.T) {
	for _, d := range []deal{0, onRepeat | onRenew, onResume | onRenew, onLookup | onKey} {
		x := explore(policy{book: bookAdmit, ask: func(r *Record, p Proposal, now time.Time) Decision {
			by, of := askAdmit(r, p, now), Decide(view(r, p), now)
			if by.Action != of.Action || by.Why != of.Why || by.Next != of.Next || !by.NotBefore.Equal(of.NotBefore) {
				t.Fatalf("%v: admit says %v, Decide %v, of %+v", d, by.LogValue(), of.LogValue(), *r)
			}
			return by
		}}, d, 0)
		if x.trace != "" {
			t.Errorf("%v: %s", d, x.trace)
		}
	}
}

// A mutant is core with one guard removed: it reads as held whatever the record
// says. Where that is looked for is the smallest deal that shows it.
type mutant struct {
	held bool
	deal
	rules
	want breach
}

// mutants holds the guards whose removal the explorer catches.
var mutants = map[Guard]mutant{
	GuardContradiction: {false, onIdempotent, 0, afterAnswer},
	GuardSucceeded:     {false, onIdempotent, 0, afterAnswer},
	GuardOwing:         {false, 0, owing, whileOwing},
	GuardInFlight:      {false, onIdempotent, 0, twoInFlight},
	GuardAnswered:      {false, onIdempotent, 0, afterAnswer},
	GuardCanceled:      {false, 0, 0, afterCancel},
	GuardClean:         {true, 0, 0, unprovenSend},
	GuardFresh:         {true, 0, 0, overBudget},
	GuardRejected:      {true, onRenew, 0, undocumented},
	GuardRenewed:       {true, 0, 0, undocumented},
	GuardSpentAuth:     {false, onRenew, 0, thirdSend},
	GuardRedirect:      {true, 0, 0, undocumented},
	GuardRenewable:     {true, 0, 0, undocumented},
	GuardNamed:         {true, onResume, 0, unnamedResume},
	GuardResumable:     {true, onResume, 0, undocumented},
	GuardLookup:        {true, 0, 0, undocumented},
	GuardIdempotent:    {true, 0, 0, twoEffects},
	GuardRepeat:        {true, 0, 0, twoEffects},
	GuardKeyed:         {true, onKey, 0, twoEffects},
	GuardWindow:        {true, onKey, 0, twoEffects},
	GuardAttempts:      {true, onIdempotent | onRenew, 0, overBudget},
	GuardSends:         {true, 0, 0, overBudget},
	GuardReplays:       {true, onIdempotent | onResume, 0, overBudget},
	GuardTime:          {true, 0, 0, overTime},
}

// harmless holds the guards whose removal does no harm in the world, with the
// test that catches it. A call that is held back might be answered as before,
// which costs requests and time, and nothing else.
var harmless = map[Guard]func(*testing.T){
	GuardHeld: TestDecideHeld,
}

// TestExploreMutants: every guard is there for a reason, and is held by the
// explorer or by a test that is named.
func TestExploreMutants(t *testing.T) {
	for g := range guards {
		m, explored := mutants[g]
		if named := harmless[g] != nil; explored == named {
			t.Errorf("%v: explored %t, held by a table %t: want one", g, explored, named)
		}
		if !explored {
			continue
		}
		x := explore(without(g, m.held), m.deal, m.rules, m.want)
		if x.trace == "" {
			t.Errorf("without %q: nothing found in %d states", g, len(x.past))
			continue
		}
		t.Logf("without %q: %s", g, x.trace)
	}
}

// The policies below are what the project started from: nine lines that look at
// the last failure, and not at the record. A failure is that of the latest
// attempt, and a budget that of attempts, with one renewal.

// literal is those lines as they stand.
var literal = policy{book: bookAnyway, ask: func(r *Record, p Proposal, now time.Time) Decision {
	return recoverLast(r, p, now, p.Terms.Keyed)
}}

// guarded is literal with the guards that one thinks of first: nothing after a
// cancel or without the key, and no replay but of attempts that all carried it,
// while it is remembered.
var guarded = policy{book: bookAnyway, ask: func(r *Record, p Proposal, now time.Time) Decision {
	if r.Canceled || !p.Keyed {
		return Decision{Action: Report}
	}
	all := r.every(func(a *Attempt) bool { return a.Keyed })
	return recoverLast(r, p, now, p.Terms.Keyed && all && now.Before(r.Terms.ReplayUntil))
}}

// recoverLast decides by the latest failure.
func recoverLast(r *Record, p Proposal, now time.Time, replays bool) Decision {
	last, spent := r.last(), r.spent()
	left := spent.Attempts < p.Budget.Attempts
	switch {
	case r.has(VerdictSucceeded):
		return Decision{Action: Settle}
	case r.Owing > 0:
		return Decision{Action: Reconcile}
	case last == nil && r.Canceled:
		return Decision{Action: Report} // it is about failures; the first attempt is made elsewhere
	case last == nil:
		return firstDecision
	case last.inFlight(now):
		return Decision{Action: Wait}
	case last.Verdict == VerdictNotApplied && last.Reach == ReachNone && left:
		return Decision{Action: Send}
	case last.Rejected && r.Renewed == len(r.Attempts):
		return Decision{Action: Send, Guards: 1 << GuardRenewed}
	case last.Rejected && p.Terms.Renew && spent.Refreshes < 1:
		return Decision{Action: Refresh}
	case r.ServerID != "" && p.Terms.Resume && spent.Resumes < p.Budget.Resumes:
		return Decision{Action: Resume}
	case replays && left:
		return Decision{Action: Replay}
	}
	return Decision{Action: Report}
}

// TestExploreSeed: looking at the last failure only goes wrong in the ways that
// are known, and guards alone do not mend it.
func TestExploreSeed(t *testing.T) {
	for _, test := range []struct {
		name string
		policy
		deal
		breach
	}{
		{"the key was never sent", literal, onKey, twoEffects},
		{"a new attempt after a cancel", literal, 0, afterCancel},
		{"a third send after a second rejection", literal, onKey | onRenew, thirdSend},
		{"never transmitted was true of the last attempt only", guarded, onKey, twoEffects},
	} {
		x := explore(test.policy, test.deal, 0, test.breach)
		if x.trace == "" {
			t.Errorf("%s: not found in %d states", test.name, len(x.past))
		}
		t.Logf("%s: %s", test.name, x.trace)
	}
}
