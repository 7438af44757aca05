package contract

// A State says how a stream ended, or would end if this were its end. The zero
// value claims nothing.
type State uint8

const (
	// Unjudged: no contract governs the stream, or the one that seemed to does
	// not fit.
	Unjudged State = iota

	// Completed: the protocol's success end was seen; where the end of the
	// body is the protocol's end, the last record is whole.
	Completed

	// Incomplete: a documented end was seen, but the output was cut short or
	// waits for something: a token limit, a filter, a refusal, a paused turn.
	Incomplete

	// Failed: the peer reported a failure, whatever came before or after it.
	Failed

	// Interrupted: the body ends without any documented end.
	Interrupted
)

// String implements [fmt.Stringer].
func (s State) String() string {
	switch s {
	case Completed:
		return "completed"
	case Incomplete:
		return "incomplete"
	case Failed:
		return "failed"
	case Interrupted:
		return "interrupted"
	}
	return "unjudged"
}

// A Failure is a failure as the peer reported it in the stream. A field that
// the peer did not give is empty; long texts are cut.
type Failure struct {
	Type    string // overloaded_error
	Code    string // 529
	Message string // Overloaded
}

// A Progress is what a [Contract] has learned of a stream so far. Its methods
// are for [Contract.Read], which must leave nothing elsewhere: the frame and
// the Progress are all it may depend on.
type Progress struct {
	edits int64 // changes so far, of which a frame that says nothing new makes none

	operation string
	reason    string
	stopped   State // by a stop reason: Completed or Incomplete
	finished  State // by the protocol's end
	failed    bool
	failure   Failure

	seen, over parts // the parts that began, and those with a stop reason
	lost       bool  // there are parts that can't be followed
	pings      int64
	foreign    int64
}

// A parts is a set of small numbers.
type parts [maxParts / 64]uint64

// maxParts is how many parts can be followed: OpenAI allows n up to 128.
const maxParts = 128

// ID notes the server's id of the operation. The first one counts: gateways
// change it in mid-stream. Empty: none.
func (p *Progress) ID(id []byte) {
	if p.operation == "" && len(id) > 0 {
		p.operation = string(id)
		p.edits++
	}
}

// Restart notes that the stream begins anew, with another id: what was said of
// the end before does not hold. A failure stays.
func (p *Progress) Restart(id []byte) {
	if p.operation == string(id) && p.stopped == Unjudged && p.finished == Unjudged {
		return
	}
	*p = Progress{
		edits: p.edits + 1, operation: string(id),
		failed: p.failed, failure: p.failure, pings: p.pings, foreign: p.foreign,
	}
}

// Stop notes a stop reason, and whether it says that the output is Completed
// or Incomplete. The protocol's own end is still to come.
func (p *Progress) Stop(s State, reason []byte) {
	if len(reason) > 0 && p.reason != string(reason) && s >= p.stopped {
		p.reason = string(reason)
		p.edits++
	}
	p.raise(&p.stopped, s)
}

// Finish notes the protocol's own end. If a stop reason said Incomplete, the
// stream is, whatever s says.
func (p *Progress) Finish(s State) { p.raise(&p.finished, max(s, p.stopped)) }

// raise makes *at at least s: the worse of two ends counts.
func (p *Progress) raise(at *State, s State) {
	if s > *at {
		*at = s
		p.edits++
	}
}

// Part notes that the i-th of several parallel outputs, such as a choice, has
// begun. The stream is not complete without a stop reason for each of them,
// unless Finish says so.
func (p *Progress) Part(i int) { p.mark(&p.seen, i) }

// StopPart notes the stop reason of one part.
func (p *Progress) StopPart(i int, s State, reason []byte) {
	p.mark(&p.seen, i)
	p.mark(&p.over, i)
	p.Stop(s, reason)
}

// mark adds a number to a set.
func (p *Progress) mark(set *parts, i int) {
	if i < 0 || i >= maxParts {
		p.lose()
		return
	}
	if word, bit := i/64, uint64(1)<<(i%64); set[word]&bit == 0 {
		set[word] |= bit
		p.edits++
	}
}

// lose notes that not all parts can be followed.
func (p *Progress) lose() {
	if !p.lost {
		p.lost = true
		p.edits++
	}
}

// Fail notes a failure that the peer reported. The first one counts, and no
// end undoes it.
func (p *Progress) Fail(kind, code, message []byte) {
	if p.failed {
		return
	}
	p.failed = true
	p.failure = Failure{Type: string(kind), Code: string(code), Message: string(message)}
	p.edits++
}

// Ping notes that the frame says only that the peer is alive.
func (p *Progress) Ping() {
	p.pings++
	p.edits++
}

// ended reports whether everything that began has a stop reason.
func (p *Progress) ended() bool {
	if p.lost || p.stopped == Unjudged {
		return false
	}
	for i, seen := range p.seen {
		if seen&^p.over[i] != 0 {
			return false
		}
	}
	return true
}
