package rubicon

import (
	"log/slog"
	"net/http"
	"time"
)

// Reach says how far an attempt is known to have got. It only grows: merging
// two reaches gives the larger.
type Reach uint8

const (
	ReachNone     Reach = iota // nothing is known to have left
	ReachSent                  // request bytes may have left the process
	ReachAccepted              // a final status line arrived
	ReachOutput                // part of the answer's body arrived
	ReachTerminal              // the answer's own end arrived
)

// String returns the name of r in lower case.
func (r Reach) String() string {
	return nameOf(r, "none", "sent", "accepted", "output", "terminal")
}

// Verdict says what became of an attempt on the server. It leaves
// [VerdictUnknown] at most once: two different verdicts make a
// [VerdictContradiction], which absorbs every other and licenses nothing.
type Verdict uint8

const (
	VerdictUnknown       Verdict = iota // it may or may not have acted
	VerdictNotApplied                   // it did not act
	VerdictSucceeded                    // it acted, and says that it succeeded
	VerdictFailed                       // it answered that it failed, for good
	VerdictIncomplete                   // it acted, and says that it stopped early
	VerdictContradiction                // two facts about it exclude each other
)

// String returns the name of v in lower case.
func (v Verdict) String() string {
	return nameOf(v, "unknown", "not applied", "succeeded", "failed", "incomplete", "contradiction")
}

// join returns the least verdict that both v and w allow.
func (v Verdict) join(w Verdict) Verdict {
	switch {
	case v == w, w == VerdictUnknown:
		return v
	case v == VerdictUnknown:
		return w
	default:
		return VerdictContradiction
	}
}

// Proof names what a verdict rests on. The zero value is no proof.
type Proof uint8

const (
	ProofNone         Proof = iota
	ProofNotCalled          // Base was never called
	ProofNoConnection       // Base asked for a connection and never got one
	ProofNoHeader           // no header block was written on any connection
	ProofNoPoll             // HTTP/2 gave up before it wrote the header block (gate.go)
	ProofInvalid            // net/http refuses to send such a request
	ProofRefused            // the peer reset the stream with REFUSED_STREAM
	ProofGoAway             // the peer's GOAWAY excludes the stream
	ProofStatus             // the answer's status, by the status table
	ProofDocumented         // the answer, by what its endpoint documents
	ProofStream             // the end of the answer's own protocol
	ProofLeft               // the reader left a stream before its end
	ProofUnjudged           // the head was a success, and no contract judges the body
)

// String says what p is in a few words.
func (p Proof) String() string {
	return nameOf(p, "none", "never called", "no connection", "no header written", "no header polled",
		"invalid request", "stream refused", "goaway", "status", "documented answer", "stream end", "reader left", "unjudged end")
}

// Evidence is what is known of one attempt: two registers that only grow, and
// what the verdict rests on. The zero value is an attempt of which nothing is
// known, which is not the same as one that did nothing.
type Evidence struct {
	Reach   Reach
	Verdict Verdict
	Proof   Proof
}

// Merge returns what e and f say together. It is commutative, associative and
// idempotent, so facts may be merged in any order, repeated or late.
func (e Evidence) Merge(f Evidence) Evidence {
	return Evidence{
		Reach:   max(e.Reach, f.Reach),
		Verdict: e.Verdict.join(f.Verdict),
		Proof:   max(e.Proof, f.Proof),
	}
}

// Ambiguous reports whether the attempt may have acted and nobody said.
func (e Evidence) Ambiguous() bool {
	return e.Verdict == VerdictUnknown && e.Reach >= ReachSent
}

// LogValue implements [slog.LogValuer].
func (e Evidence) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("reach", e.Reach.String()),
		slog.String("verdict", e.Verdict.String()),
		slog.String("proof", e.Proof.String()),
	)
}

// Outcome says what is known of an operation's effect on the server. Its zero
// value is [Ambiguous], so that a forgotten field reads as not proven.
type Outcome uint8

const (
	Ambiguous    Outcome = iota // it may or may not have acted
	Unsent                      // nothing that could act has left
	Refused                     // the server said that it did not act
	Failed                      // the server's answer is failure, for good
	Incomplete                  // the server acted and stopped early, as it said
	Interrupted                 // the answer began and ended without its end
	Succeeded                   // the server acted, and said so
	Contradicted                // what is known excludes itself
)

// String returns the name of o in lower case.
func (o Outcome) String() string {
	return nameOf(o, "ambiguous", "unsent", "refused", "failed", "incomplete", "interrupted", "succeeded", "contradicted")
}

// Reason says why an attempt was made, and so which allowance it drew on.
type Reason uint8

const (
	ReasonFirst    Reason = iota // the first of its operation
	ReasonSend                   // all earlier attempts are proven not applied
	ReasonReplay                 // an earlier one may have acted; there is a licence
	ReasonRefresh                // the same request under a renewed credential
	ReasonResume                 // a read of the existing operation
	ReasonRedirect               // the next hop of a redirect that keeps its method
)

// String returns the name of r in lower case.
func (r Reason) String() string {
	return nameOf(r, "first", "send", "replay", "refresh", "resume", "redirect")
}

// wire reports whether an attempt made for r counts against Budget.Attempts.
func (r Reason) wire() bool {
	return r == ReasonFirst || r == ReasonSend || r == ReasonReplay
}

// An Attempt is one time that request bytes were, or may have been, put on a
// connection. It is a plain value that a journal can keep.
type Attempt struct {
	Evidence
	ID        string // its name; "" in memory
	Reason    Reason
	Call      int       // the RoundTrip of its operation that made it, from 1
	Keyed     bool      // it carried the operation's idempotency key
	Ended     bool      // Base has returned and the answer, if any, is over
	Rejected  bool      // the credential was rejected (401)
	Final     bool      // a further attempt by the same call would not help
	Status    int       // of the final answer; 0 if none arrived
	Resends   int       // times net/http sent it again by itself (safe methods)
	Begun     time.Time // when it was booked
	Deadline  time.Time // when it can no longer be in flight; zero: until it ended
	NotBefore time.Time // no further attempt before this, by the server's advice or backoff
}

// merge folds the facts of f into a.
func (a *Attempt) merge(f Attempt) {
	a.Evidence = a.Evidence.Merge(f.Evidence)
	a.ID = max(a.ID, f.ID)
	a.Reason = max(a.Reason, f.Reason)
	a.Call = max(a.Call, f.Call)
	a.Keyed = a.Keyed || f.Keyed
	a.Ended = a.Ended || f.Ended
	a.Rejected = a.Rejected || f.Rejected
	a.Final = a.Final || f.Final
	a.Status = max(a.Status, f.Status)
	a.Resends = max(a.Resends, f.Resends)
	a.Begun = later(a.Begun, f.Begun)
	a.Deadline = later(a.Deadline, f.Deadline)
	a.NotBefore = later(a.NotBefore, f.NotBefore)
}

// open reports whether a may have acted as far as anybody knows.
func (a *Attempt) open() bool { return a.Verdict == VerdictUnknown }

// A Fact is something learned about an operation. N names the attempt that it
// is about, from 1; with N zero only the fields below it count.
type Fact struct {
	N       int
	Attempt Attempt

	Call     int    // the latest call of the operation
	Renewed  int    // the attempt whose rejection was answered by a renewed credential
	Canceled bool   // the caller gave the operation up
	ServerID string // the server's own name for the operation
}

// Terms is what lets an operation be repeated, looked up or resumed. It is
// fixed when the operation's first attempt begins. The zero value licenses
// nothing.
type Terms struct {
	Kind        Kind      // what the request does
	Safe        bool      // its method is safe (RFC 9110 section 9.2.1)
	Idempotent  bool      // its method is idempotent (RFC 9110 section 9.2.2)
	Repeat      bool      // the caller accepts that it acts twice
	Keyed       bool      // its endpoint documents an idempotency contract, and the operation has a key
	ReplayUntil time.Time // the end of the contract's window, fixed at the first send
	Renew       bool      // a rejected credential can be renewed
	Lookup      bool      // the endpoint can be asked what became of it
	Resume      bool      // the protocol documents a cursor
}

// A Record is all that is known of one operation. It is a value: folding facts
// into it in any order, repeated or late, gives the same record, and [Decide]
// reads nothing else.
type Record struct {
	Terms    Terms
	Budget   Budget    // resolved: what the operation may spend
	Until    time.Time // no further attempt begins at or after this; zero: no bound
	Attempts []Attempt // Attempts[n-1] is attempt n
	Call     int       // the latest call
	Renewed  int       // see Fact.Renewed
	Canceled bool
	Owing    int    // effects of the turn whose outcome is unknown; kept by the ledger
	ServerID string // the server's own name for the operation, learned from it

	// Fingerprint says which request the operation is bound to; "" if none.
	Fingerprint string
}

// Fold merges f into r.
func (r *Record) Fold(f Fact) {
	if f.N > 0 {
		for len(r.Attempts) < f.N {
			r.Attempts = append(r.Attempts, Attempt{})
		}
		r.Attempts[f.N-1].merge(f.Attempt)
		r.Call = max(r.Call, f.Attempt.Call)
	}
	r.Call = max(r.Call, f.Call)
	r.Renewed = max(r.Renewed, f.Renewed)
	r.Canceled = r.Canceled || f.Canceled
	r.ServerID = max(r.ServerID, f.ServerID)
}

// last returns the latest attempt, or nil.
func (r *Record) last() *Attempt {
	if len(r.Attempts) == 0 {
		return nil
	}
	return &r.Attempts[len(r.Attempts)-1]
}

// every reports whether ok holds for all attempts.
func (r *Record) every(ok func(*Attempt) bool) bool {
	for i := range r.Attempts {
		if !ok(&r.Attempts[i]) {
			return false
		}
	}
	return true
}

// some reports whether ok holds for an attempt.
func (r *Record) some(ok func(*Attempt) bool) bool {
	return !r.every(func(a *Attempt) bool { return !ok(a) })
}

// has reports whether an attempt has verdict v.
func (r *Record) has(v Verdict) bool {
	return r.some(func(a *Attempt) bool { return a.Verdict == v })
}

// clean reports whether no attempt can have acted.
func (r *Record) clean() bool {
	return r.every(func(a *Attempt) bool { return a.Verdict == VerdictNotApplied })
}

// begun returns when the first attempt was booked.
func (r *Record) begun() time.Time {
	if len(r.Attempts) == 0 {
		return time.Time{}
	}
	return r.Attempts[0].Begun
}

// spent counts what the record's attempts drew from its budget.
func (r *Record) spent() Budget {
	var b Budget
	for i := range r.Attempts {
		a := &r.Attempts[i]
		if a.Reason.wire() {
			b.Attempts += 1 + a.Resends
		}
		if left := b.allowance(a.Reason); left != nil {
			*left++
		}
	}
	return b
}

// Outcome says what the record proves.
func (r *Record) Outcome() Outcome {
	switch {
	case r.has(VerdictContradiction):
		return Contradicted
	case r.has(VerdictSucceeded):
		return Succeeded
	case r.has(VerdictIncomplete):
		return Incomplete
	case r.has(VerdictFailed):
		return Failed
	case !r.clean() && r.some(func(a *Attempt) bool { return a.open() && a.Ended && a.interrupted() }):
		return Interrupted
	case !r.clean():
		return Ambiguous
	case r.some(func(a *Attempt) bool { return a.Reach > ReachNone }):
		return Refused
	default:
		return Unsent
	}
}

// interrupted reports whether a 2xx answer began and did not reach its end.
func (a *Attempt) interrupted() bool {
	return a.Reach >= ReachAccepted && a.Status/100 == 2
}

// evidence returns the evidence of the attempt that matters most: one that may
// have acted before one that did not, a later one before an earlier.
func (r *Record) evidence() Evidence {
	var e Evidence
	for i := range r.Attempts {
		a := &r.Attempts[i]
		if i == 0 || a.Verdict != VerdictNotApplied || e.Verdict == VerdictNotApplied {
			e = a.Evidence
		}
	}
	return e
}

// LogValue implements [slog.LogValuer].
func (r Record) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("outcome", r.Outcome().String()),
		slog.Int("attempts", len(r.Attempts)),
		slog.Int("calls", r.Call),
		slog.Any("evidence", r.evidence()),
		slog.Bool("canceled", r.Canceled),
	)
}

// A row of the status table says what a final status proves of a request with
// an unsafe method, where its endpoint documents nothing else.
type statusRow struct {
	from, to int
	verdict  Verdict
	final    bool // another attempt by the same call would not help
	source   string
}

// statusTable is read from the top; the first row that holds a status counts.
// A status that it does not hold is ambiguous and final.
var statusTable = [...]statusRow{
	{200, 299, VerdictSucceeded, true, "RFC 9110 section 15.3: received, understood and accepted"},
	{101, 101, VerdictSucceeded, true, "RFC 9110 section 15.2.2: the server switched protocols"},
	{307, 308, VerdictNotApplied, true, "RFC 9110 sections 15.4.8 and 15.4.9: the request is to be made elsewhere, unchanged"},
	{300, 399, VerdictSucceeded, true, "RFC 9110 section 15.4: the answer lies elsewhere, to be fetched by GET"},
	{401, 401, VerdictNotApplied, true, "RFC 9110 section 15.5.2: the request has not been applied because it lacks valid credentials"},
	{407, 407, VerdictNotApplied, true, "RFC 9110 section 15.5.8: as 401, for the proxy"},
	{408, 408, VerdictUnknown, false, "RFC 9110 section 15.5.9: no complete request arrived in time, as a gateway may say for an origin that acted"},
	{409, 409, VerdictUnknown, true, "RFC 9110 section 15.5.10: in conflict with the state of the target, perhaps with an earlier attempt"},
	{421, 421, VerdictNotApplied, false, "RFC 9110 section 15.5.20: may be retried over another connection, idempotent or not"},
	{425, 425, VerdictNotApplied, false, "RFC 8470 section 5.2: the server is unwilling to process the request yet"},
	{429, 429, VerdictNotApplied, false, "RFC 6585 section 4: refused because of too many requests"},
	{400, 499, VerdictFailed, true, "RFC 9110 section 15.5: the client erred"},
	{500, 500, VerdictUnknown, false, "RFC 9110 section 15.6.1: no statement about the effect"},
	{502, 504, VerdictUnknown, false, "RFC 9110 sections 15.6.3 to 15.6.5: a gateway speaks for an origin that may have acted"},
	{529, 529, VerdictUnknown, false, "unassigned; overload where a provider documents it (endpoint.go)"},
	{500, 599, VerdictUnknown, true, "RFC 9110 section 15.6: no statement about the effect, and no promise of change"},
}

// byStatus returns the row that holds status.
func byStatus(status int) statusRow {
	for _, row := range statusTable {
		if row.from <= status && status <= row.to {
			return row
		}
	}
	return statusRow{status, status, VerdictUnknown, true, "not assigned by RFC 9110"}
}

// judge says what a final answer with the given status proves: first by what
// the endpoint documents, then by the status table. codes are the provider's
// own error codes, where its body was read.
func judge(ep *Endpoint, status int, codes []string) Attempt {
	row := byStatus(status)
	a := Attempt{
		Evidence: Evidence{Reach: ReachAccepted, Verdict: row.verdict, Proof: ProofStatus},
		Status:   status,
		Final:    row.final,
		Rejected: status == http.StatusUnauthorized,
	}
	switch {
	case ep == nil:
	case isAny(ep.Final, status, codes):
		a.Verdict, a.Final, a.Proof = VerdictNotApplied, true, ProofDocumented
	case isAny(ep.Refusals, status, codes):
		a.Verdict, a.Final, a.Proof = VerdictNotApplied, false, ProofDocumented
	case ep.InFlight.is(status, codes):
		a.Verdict, a.Final, a.Proof = VerdictUnknown, false, ProofNone
	}
	if a.Verdict == VerdictUnknown {
		a.Proof = ProofNone
	}
	return a
}

// isAny reports whether one of list is the answer.
func isAny(list []Answer, status int, codes []string) bool {
	for _, a := range list {
		if a.is(status, codes) {
			return true
		}
	}
	return false
}

// isSafe reports whether method is safe (RFC 9110 section 9.2.1).
func isSafe(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// isIdempotent reports whether method is idempotent (RFC 9110 section 9.2.2).
func isIdempotent(method string) bool {
	return isSafe(method) || method == http.MethodPut || method == http.MethodDelete
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// nameOf returns names[i], or "invalid" for a value out of range.
func nameOf[I ~uint8](i I, names ...string) string {
	if int(i) < len(names) {
		return names[i]
	}
	return "invalid"
}
