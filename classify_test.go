package rubicon

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestStatusTable: what a status proves of a request with an unsafe method. A
// row stands for a class of statuses; each is tried by its first and last.
func TestStatusTable(t *testing.T) {
	const (
		unknown = VerdictUnknown
		not     = VerdictNotApplied
		yes     = VerdictSucceeded
		no      = VerdictFailed
	)
	for _, test := range []struct {
		from, to int
		verdict  Verdict
		final    bool
		source   string // what the table's source must name
	}{
		{101, 101, yes, true, "RFC 9110 section 15.2.2"},
		{200, 299, yes, true, "RFC 9110 section 15.3"},
		{300, 306, yes, true, "RFC 9110 section 15.4"},
		{307, 307, not, true, "RFC 9110 sections 15.4.8"},
		{308, 308, not, true, "15.4.9"},
		{309, 399, yes, true, "RFC 9110 section 15.4"},
		{400, 400, no, true, "RFC 9110 section 15.5"},
		{401, 401, not, true, "RFC 9110 section 15.5.2"},
		{402, 406, no, true, "RFC 9110 section 15.5"},
		{407, 407, not, true, "RFC 9110 section 15.5.8"},
		{408, 408, unknown, false, "RFC 9110 section 15.5.9"},
		{409, 409, unknown, true, "RFC 9110 section 15.5.10"},
		{410, 420, no, true, "RFC 9110 section 15.5"},
		{421, 421, not, false, "RFC 9110 section 15.5.20"},
		{422, 424, no, true, "RFC 9110 section 15.5"},
		{425, 425, not, false, "RFC 8470 section 5.2"},
		{426, 428, no, true, "RFC 9110 section 15.5"},
		{429, 429, not, false, "RFC 6585 section 4"},
		{430, 499, no, true, "RFC 9110 section 15.5"},
		{500, 500, unknown, false, "RFC 9110 section 15.6.1"},
		{501, 501, unknown, true, "RFC 9110 section 15.6"},
		{502, 504, unknown, false, "RFC 9110 sections 15.6.3 to 15.6.5"},
		{505, 528, unknown, true, "RFC 9110 section 15.6"},
		{529, 529, unknown, false, "unassigned"},
		{530, 599, unknown, true, "RFC 9110 section 15.6"},
		{600, 999, unknown, true, "not assigned"},
		{0, 100, unknown, true, "not assigned"},
		{102, 199, unknown, true, "not assigned"},
	} {
		for _, status := range []int{test.from, test.to} {
			row, a := byStatus(status), judge(nil, status, nil)
			if a.Verdict != test.verdict || a.Final != test.final {
				t.Errorf("%d: %v, final %t; want %v, %t", status, a.Verdict, a.Final, test.verdict, test.final)
			}
			if !strings.Contains(row.source, test.source) {
				t.Errorf("%d: source %q, want %q", status, row.source, test.source)
			}
			proof := ProofStatus
			if test.verdict == unknown {
				proof = ProofNone
			}
			if a.Proof != proof || a.Reach != ReachAccepted || a.Status != status || a.Rejected != (status == 401) {
				t.Errorf("%d: %+v", status, a)
			}
		}
	}
}

// TestStatusTableReached: every row of the table counts for some status, and
// names its source.
func TestStatusTableReached(t *testing.T) {
	reached := make(map[statusRow]bool)
	for status := range 1000 {
		reached[byStatus(status)] = true
	}
	for _, row := range statusTable {
		if !reached[row] {
			t.Errorf("%d to %d: another row goes before it", row.from, row.to)
		}
		if row.source == "" {
			t.Errorf("%d to %d has no source", row.from, row.to)
		}
	}
}

// verdicts lists every verdict.
var verdicts = []Verdict{VerdictUnknown, VerdictNotApplied, VerdictSucceeded, VerdictFailed, VerdictIncomplete, VerdictContradiction}

// TestVerdictJoin: verdicts are a lattice with unknown at the bottom and the
// contradiction on top.
func TestVerdictJoin(t *testing.T) {
	for _, a := range verdicts {
		for _, b := range verdicts {
			want := VerdictContradiction
			switch {
			case a == VerdictUnknown:
				want = b
			case b == VerdictUnknown, a == b:
				want = a
			}
			if got := a.join(b); got != want {
				t.Errorf("%v and %v: %v, want %v", a, b, got, want)
			}
			for _, c := range verdicts {
				if l, r := a.join(b).join(c), a.join(b.join(c)); l != r {
					t.Errorf("%v, %v, %v: %v or %v", a, b, c, l, r)
				}
			}
		}
	}
}

// everyEvidence lists every value of Evidence.
func everyEvidence() (list []Evidence) {
	for _, v := range verdicts {
		for r := ReachNone; r <= ReachTerminal; r++ {
			for p := ProofNone; p <= lastProof; p++ {
				list = append(list, Evidence{r, v, p})
			}
		}
	}
	return list
}

// TestEvidenceMerge: merging is commutative and idempotent for all pairs, and
// associative; nothing that is known gets lost, and nothing is made up.
func TestEvidenceMerge(t *testing.T) {
	list := everyEvidence()
	rng := newRand(t)
	for _, a := range list {
		if a.Merge(a) != a || a.Merge(Evidence{}) != a {
			t.Errorf("%v is changed by itself, or by nothing", a)
		}
		for _, b := range list {
			ab := a.Merge(b)
			if ab != b.Merge(a) {
				t.Fatalf("%v and %v depend on their order", a, b)
			}
			if ab.Reach != a.Reach && ab.Reach != b.Reach || ab.Reach < a.Reach || ab.Merge(a) != ab {
				t.Fatalf("%v and %v: %v", a, b, ab)
			}
			if c := list[rng.IntN(len(list))]; ab.Merge(c) != a.Merge(b.Merge(c)) {
				t.Fatalf("%v, %v and %v depend on their grouping", a, b, c)
			}
		}
		if want := a.Verdict == VerdictUnknown && a.Reach >= ReachSent; a.Ambiguous() != want {
			t.Errorf("%v: ambiguous %t", a, !want)
		}
	}
}

// foldSeed repeats a run of the tests that draw facts at random.
var foldSeed = flag.Uint64("fold.seed", 0, "seed of the facts that are folded; 0: another one each time")

// newRand returns a source of random numbers whose seed a failure prints.
func newRand(t *testing.T) *rand.Rand {
	seed := *foldSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("-fold.seed=%d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 1))
}

// pick returns one of list.
func pick[T any](rng *rand.Rand, list ...T) T { return list[rng.IntN(len(list))] }

// someTime returns one of a few times; zero is one of them.
func someTime(rng *rand.Rand) time.Time {
	return pick(rng, time.Time{}, time.Time{}, epoch, sinceEpoch(time.Second), sinceEpoch(time.Hour))
}

// someAttempt returns a few fields of an attempt: a booking, or what was learned.
func someAttempt(rng *rand.Rand) Attempt {
	yes := func() bool { return rng.IntN(3) == 0 }
	return Attempt{
		Evidence: Evidence{
			Reach:   Reach(rng.IntN(int(ReachTerminal) + 1)),
			Verdict: pick(rng, append(verdicts, VerdictUnknown, VerdictUnknown, VerdictNotApplied)...),
			Proof:   Proof(rng.IntN(int(lastProof) + 1)),
		},
		ID:       pick(rng, "", "", "a", "b"),
		Reason:   Reason(rng.IntN(int(ReasonRedirect) + 1)),
		Call:     rng.IntN(3),
		Keyed:    yes(),
		Ended:    yes(),
		Rejected: yes(),
		Final:    yes(),
		Status:   pick(rng, 0, 0, 200, 401, 503),
		Resends:  rng.IntN(2),
		Begun:    someTime(rng), Deadline: someTime(rng), NotBefore: someTime(rng),
	}
}

// someFact returns a fact about one of five attempts, or about none. Few facts
// leave gaps between attempts.
func someFact(rng *rand.Rand) Fact {
	f := Fact{
		Call:     rng.IntN(4),
		Renewed:  pick(rng, 0, 0, rng.IntN(5)),
		Canceled: rng.IntN(8) == 0,
		ServerID: pick(rng, "", "", "resp_1", "resp_2"),
	}
	if f.N = rng.IntN(6); f.N > 0 {
		f.Attempt = someAttempt(rng)
	}
	return f
}

// TestAttemptMerge: attempts merge as evidence does, with every field.
func TestAttemptMerge(t *testing.T) {
	merged := func(list ...Attempt) Attempt {
		var a Attempt
		for _, f := range list {
			a.merge(f)
		}
		return a
	}
	rng := newRand(t)
	for range 20_000 {
		a, b, c := someAttempt(rng), someAttempt(rng), someAttempt(rng)
		if merged(a, a) != a {
			t.Fatalf("%+v is changed by itself", a)
		}
		if merged(a, b) != merged(b, a) {
			t.Fatalf("%+v and %+v depend on their order", a, b)
		}
		if merged(merged(a, b), c) != merged(a, merged(b, c)) {
			t.Fatalf("%+v, %+v and %+v depend on their grouping", a, b, c)
		}
	}
}

// TestFoldTakesAll: no field of an attempt or of a fact is forgotten by its
// fold: each of them alone arrives in the record.
func TestFoldTakesAll(t *testing.T) {
	values := map[reflect.Type]any{
		reflect.TypeFor[Evidence]():  Evidence{ReachSent, VerdictFailed, ProofStatus},
		reflect.TypeFor[string]():    "x",
		reflect.TypeFor[Reason]():    ReasonReplay,
		reflect.TypeFor[int]():       3,
		reflect.TypeFor[bool]():      true,
		reflect.TypeFor[time.Time](): epoch,
	}
	whole := reflect.TypeFor[Attempt]()
	for i := range whole.NumField() {
		var a Attempt
		value, ok := values[whole.Field(i).Type]
		if !ok {
			t.Fatalf("Attempt.%s: there is no value to try", whole.Field(i).Name)
		}
		reflect.ValueOf(&a).Elem().Field(i).Set(reflect.ValueOf(value))
		var r Record
		r.Fold(Fact{N: 1, Attempt: a})
		if r.Attempts[0] != a {
			t.Errorf("Attempt.%s gets lost", whole.Field(i).Name)
		}
	}
	for f, want := range map[Fact]Record{
		{Call: 3}:                             {Call: 3},
		{N: 1, Attempt: Attempt{Call: 3}}:     {Call: 3, Attempts: []Attempt{{Call: 3}}},
		{Renewed: 3}:                          {Renewed: 3},
		{Canceled: true}:                      {Canceled: true},
		{ServerID: "x"}:                       {ServerID: "x"},
		{N: 2, Attempt: Attempt{Final: true}}: {Attempts: []Attempt{{}, {Final: true}}},
	} {
		var r Record
		r.Fold(f)
		if !reflect.DeepEqual(r, want) {
			t.Errorf("%+v: %+v, want %+v", f, r, want)
		}
	}
	if n := reflect.TypeFor[Fact]().NumField(); n != 6 {
		t.Errorf("a fact has %d fields, and the table above tries 6", n)
	}
}

// TestFold: folding facts in any order, repeated or late, with gaps and
// contradictions, gives the same record, and so the same outcome and decision.
func TestFold(t *testing.T) {
	rng := newRand(t)
	outcomes := make(map[Outcome]bool)
	for range 3_000 {
		facts := make([]Fact, 1+rng.IntN(10))
		for i := range facts {
			facts[i] = someFact(rng)
		}
		blank := Record{
			Terms:  Terms{Idempotent: rng.IntN(2) == 0, Keyed: rng.IntN(2) == 0, Renew: true, ReplayUntil: someTime(rng)},
			Budget: plenty, Owing: rng.IntN(2), Fingerprint: "f",
		}
		want := foldAll(blank, facts)
		outcomes[want.Outcome()] = true
		for range 5 {
			again := append(slices.Clone(facts), facts[:rng.IntN(len(facts))]...)
			rng.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
			got := foldAll(blank, again)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%+v\nfolded as\n%+v\ngive\n%+v\nnot\n%+v", facts, again, got, want)
			}
			if a, b := Decide(got, sinceEpoch(time.Second)), Decide(want, sinceEpoch(time.Second)); a != b {
				t.Fatalf("%+v: %v, and %v", want, a, b)
			}
		}
	}
	for o := range Contradicted + 1 {
		if o != Unsent && !outcomes[o] {
			t.Errorf("no record was %v", o)
		}
	}
}

// foldAll folds facts into a copy of r.
func foldAll(r Record, facts []Fact) Record {
	for _, f := range facts {
		r.Fold(f)
	}
	return r
}

// TestFoldContradiction: once two facts exclude each other, no further fact
// mends it, and nothing is licensed any more.
func TestFoldContradiction(t *testing.T) {
	rng := newRand(t)
	for range 2_000 {
		r := recordOf(Terms{Idempotent: true, Repeat: true, Renew: true, Lookup: true, Resume: true}, anSucceeded)
		r.Fold(Fact{N: 1, Attempt: Attempt{Evidence: Evidence{Verdict: pick(rng, VerdictNotApplied, VerdictFailed, VerdictIncomplete)}}})
		for range rng.IntN(5) {
			r.Fold(someFact(rng))
		}
		if d := Decide(r, sinceEpoch(time.Second)); r.Outcome() != Contradicted || d.Action != Report || d.Why != WhyContradiction {
			t.Fatalf("%+v: %v, %v because %v", r, r.Outcome(), d.Action, d.Why)
		}
	}
}

// TestOutcome: what a record proves.
func TestOutcome(t *testing.T) {
	cut := func(status int, reach Reach) Attempt {
		return Attempt{Evidence: Evidence{Reach: reach}, Status: status, Ended: true}
	}
	reading := Attempt{Evidence: Evidence{Reach: ReachOutput}, Status: 200}
	for _, test := range []struct {
		name     string
		attempts []Attempt
		want     Outcome
	}{
		{"no attempt", nil, Unsent},
		{"never sent", []Attempt{anUnsent, anUnsent}, Unsent},
		{"refused", []Attempt{anRefused}, Refused},
		{"refused after all", []Attempt{anUnsent, anRefused, anUnsent}, Refused},
		{"booked, of which nothing is known", []Attempt{anBooked}, Ambiguous},
		{"a gap", []Attempt{{}, anUnsent}, Ambiguous},
		{"no answer", []Attempt{anLost}, Ambiguous},
		{"no answer, and then a proof about another", []Attempt{anLost, anUnsent, anRefused}, Ambiguous},
		{"a 503", []Attempt{endedAs(judge(nil, 503, nil))}, Ambiguous},
		{"an answer that is being read", []Attempt{reading}, Ambiguous},
		{"an answer that was cut", []Attempt{cut(200, ReachOutput)}, Interrupted},
		{"a head and no more", []Attempt{cut(200, ReachAccepted)}, Interrupted},
		{"a head that never came", []Attempt{cut(200, ReachSent)}, Ambiguous},
		{"an answer of another kind that was cut", []Attempt{cut(503, ReachOutput)}, Ambiguous},
		{"cut, and then refused", []Attempt{cut(200, ReachOutput), anRefused}, Interrupted},
		{"failed", []Attempt{anRefused, anFailed}, Failed},
		{"stopped early", []Attempt{anIncomplete}, Incomplete},
		{"succeeded", []Attempt{anSucceeded}, Succeeded},
		{"succeeded at last", []Attempt{anLost, anRefused, anSucceeded}, Succeeded},
		{"succeeded, and failed when asked again", []Attempt{anSucceeded, anFailed}, Succeeded},
		{"stopped early, and failed when asked again", []Attempt{anIncomplete, anFailed}, Incomplete},
		{"contradicted", []Attempt{anSucceeded, anTorn}, Contradicted},
	} {
		r := recordOf(Terms{}, test.attempts...)
		if got := r.Outcome(); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// TestRecordEvidence: the attempt that matters most is one that may have acted,
// and else the latest.
func TestRecordEvidence(t *testing.T) {
	for _, test := range []struct {
		attempts []Attempt
		want     Attempt
	}{
		{nil, Attempt{}},
		{[]Attempt{anUnsent, anRefused}, anRefused},
		{[]Attempt{anRefused, anUnsent}, anUnsent},
		{[]Attempt{anLost, anUnsent}, anLost},
		{[]Attempt{anUnsent, anLost, anRefused}, anLost},
		{[]Attempt{anLost, anIncomplete}, anIncomplete},
	} {
		r := recordOf(Terms{}, test.attempts...)
		if got := r.evidence(); got != test.want.Evidence {
			t.Errorf("%v: %v, want %v", test.attempts, got, test.want.Evidence)
		}
	}
}

// everyObservation calls f with every combination of what can be seen of an
// attempt, counts up to two.
func everyObservation(f func(observation)) {
	truths := []bool{false, true}
	counts := []int{0, 1, 2}
	for _, refusal := range []Proof{ProofNone, ProofRefused, ProofGoAway} {
		for bits := range 1 << 6 {
			is := func(i int) bool { return truths[bits>>i&1] }
			for _, getConn := range counts {
				for _, gotConn := range counts {
					for _, wrote := range counts {
						for _, polls := range counts {
							f(observation{
								trusted: is(0), http2: is(1), early: is(2), alive: is(3), cut: is(4), invalid: is(5),
								getConn: getConn, gotConn: gotConn, wrote: wrote, polls: polls, refusal: refusal,
							})
						}
					}
				}
			}
		}
	}
}

// TestObservation: what may be claimed of an attempt, over everything that can
// be seen of it.
func TestObservation(t *testing.T) {
	claims := make(map[Proof]int)
	everyObservation(func(o observation) {
		e := o.evidence()
		claims[e.Proof]++
		if wrong := overclaims(o, e); wrong != "" {
			t.Errorf("%+v: %v: %s", o, e, wrong)
		}
	})
	for _, p := range []Proof{ProofNone, ProofNoConnection, ProofNoHeader, ProofNoPoll, ProofRefused, ProofGoAway, ProofInvalid} {
		if claims[p] == 0 {
			t.Errorf("%v is never claimed", p)
		}
	}
}

// overclaims says what is wrong with claiming e of o; "" if nothing is.
func overclaims(o observation, e Evidence) string {
	tried := o.gotConn > 0 && o.wrote == 0 && (!o.http2 || o.polls == o.gotConn && (o.alive || !o.early))
	refused := o.http2 && o.alive && o.wrote == 1 && o.refusal != ProofNone && o.getConn <= o.gotConn
	var may bool
	switch e.Proof {
	case ProofNone:
		return overlooks(o, e, tried, refused)
	case ProofNoConnection:
		may = o.getConn > 0 && o.gotConn == 0 && o.wrote == 0
	case ProofNoHeader:
		may = tried && (!o.http2 || o.alive)
	case ProofNoPoll:
		may = tried && o.http2 && !o.alive && !o.early
	case ProofInvalid:
		may = o.getConn+o.gotConn+o.wrote == 0 && o.invalid
	case ProofRefused, ProofGoAway:
		may = refused && o.refusal == e.Proof
	}
	reach := ReachNone
	if e.Proof == ProofRefused || e.Proof == ProofGoAway {
		reach = ReachSent
	}
	switch {
	case !may:
		return "there is no such proof"
	case !o.trusted:
		return "the base is not trusted"
	case o.cut:
		return "a resend was cut off"
	case e.Verdict != VerdictNotApplied || e.Reach != reach:
		return fmt.Sprintf("want %v and %v", reach, VerdictNotApplied)
	}
	return ""
}

// overlooks says what proof is there and not claimed; "" if there is none.
func overlooks(o observation, e Evidence, tried, refused bool) string {
	never := o.gotConn == 0 && o.wrote == 0 && (o.getConn > 0 || o.invalid)
	switch {
	case e != Evidence{Reach: ReachSent}:
		return "without a proof it may have been sent"
	case o.trusted && !o.cut && (tried || refused || never):
		return "there is a proof"
	}
	return ""
}

// TestObservationMonotone: whatever more is seen of an attempt that may have
// been sent, is no proof that it was not.
func TestObservationMonotone(t *testing.T) {
	everyObservation(func(o observation) {
		if o.evidence().Verdict == VerdictNotApplied {
			return
		}
		for what, more := range map[string]func(*observation){
			"one more header block": func(o *observation) { o.wrote++ },
			"an early poll":         func(o *observation) { o.early = true },
			"a cut resend":          func(o *observation) { o.cut = true },
			"a foreign base":        func(o *observation) { o.trusted = false },
		} {
			seen := o
			more(&seen)
			if e := seen.evidence(); e.Verdict == VerdictNotApplied && e.Reach == ReachNone {
				t.Errorf("%+v and %s: %v", o, what, e)
			}
		}
	})
}
