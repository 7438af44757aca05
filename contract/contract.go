// Package contract says how each protocol's stream proves that it ended.
//
// A streamed answer that stops is not whole: it is whole when its protocol says
// so, by a terminal event, a finish reason or a marker. A [Contract] knows one
// protocol; [Known] lists those that this package knows. A [Set] of contracts
// finds the one that governs an answer, by its content type and first frames,
// and gives it a [Watcher] that is fed the body's bytes after the reader has
// them and can be asked at any byte how the stream would end there.
//
// A guess that proves wrong makes a stream [Unjudged], never [Interrupted]. An
// error that the peer reports in the stream wins over any end. Text inside of
// the output never counts: a contract sees only the members that it names.
//
// # Limits
//
// A contract is as good as its provider keeps it. With several choices, a cut
// before a later choice first appears looks complete when the earlier ones have
// finished. A wire that says "finished" on every chunk (early Gemini) looks
// complete after the first one.
package contract

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
)

// A Contract says how the streams of one protocol end. It is a value without
// state of its own: all that is remembered of a stream is in its [Progress].
type Contract struct {
	// Protocol names the protocol in the outcome. It must not be empty.
	Protocol string

	// Framing says how the body may be cut. It must not be zero.
	Framing Framing

	// MediaTypes are content types that the protocol uses and that do not by
	// themselves tell the framing. They stand for the lowest bit of Framing.
	// Nil: none.
	MediaTypes []string

	// Paths lead to what Read and Claim look at in a frame's data: the keys of
	// nested objects, joined by dots, [] for the elements of an array, as in
	// choices[].finish_reason. A path that ends with a question mark asks for
	// the kind of the value only; without the mark, a text that differs from
	// frame to frame makes them slower to judge. Keys with a dot or a bracket
	// can't be named.
	Paths []string

	// Inside is the path of a string that holds the data in base64. Empty: the
	// data is not wrapped.
	Inside string

	// Cursor is the path of the position that the protocol offers for reading
	// on, or [EventID]. Empty: it offers none.
	Cursor string

	// EOF says what the end of the body means. Zero: that the stream is
	// interrupted, unless the protocol's own end was seen.
	EOF EOF

	// Names says what is wanted of the data of events with the given name. Nil:
	// all is read. It spares the scan of events that can't say how the stream
	// stands, and must depend on the name alone. Where it says [Latest] of an
	// event that gives no cursor, that of an event shortly before may be missed.
	Names func(name []byte) Use

	// Claim says whether the contract governs the answer, asked with each of
	// its first frames. Nil: it does if Read knows the frame.
	Claim func(*Answer, *Frame) Claim

	// Read notes what the frame says. It reports whether the frame is one of
	// the protocol's: a stream with mostly others is given up. What it notes of
	// a frame whose data is broken, other than a failure, does not hold.
	Read func(*Frame, *Progress) bool
}

// EventID as a [Contract.Cursor] stands for the last event id of an SSE body.
const EventID = "id:"

// An Answer is what is known of an answer without its body. Every field may be
// missing: a contract must be able to do with the frames.
type Answer struct {
	ContentType string      // empty: that of Header
	Method      string      // of the request
	URL         *url.URL    // of the request
	Request     http.Header // of the request; nil: it is not known
	Header      http.Header
}

// A Claim is a contract's word on an answer.
type Claim uint8

const (
	Maybe     Claim = iota // ask again with the next frame
	Yes                    // it governs
	No                     // it does not; don't ask again
	Otherwise              // it governs if no contract says Yes to the first frames
)

// A Use says what is wanted of an event's data.
type Use uint8

const (
	Read   Use = iota // all of it
	Latest            // the cursor, and that only if no other event follows
	Skip              // nothing
	Ping              // nothing, and the event is no progress
)

// An EOF says what the end of the body means for a stream whose protocol has
// not said that it ended.
type EOF uint8

const (
	EOFCuts      EOF = iota // the stream is interrupted
	EOFAfterStop            // it is complete if everything that began has a stop reason
	EOFAfterLine            // the same, and a last event counts that only lacks its blank line
	EOFEnds                 // it is complete if its last record is whole
	EOFAfterID              // it is interrupted, but rightly so once an event id was seen
)

// A Set is contracts in the order in which they are asked. It is immutable and
// safe for concurrent use.
type Set struct {
	rules []rule
	seek  *trie // of the paths of all rules
}

// A rule is a contract and what is derived from it.
type rule struct {
	Contract
	trie  *trie // of the data
	outer *trie // of what the data is wrapped in; nil: nothing
}

// maxRules is how many contracts a set can have.
const maxRules = 64

// NewSet returns a set of the given contracts. The first that governs an answer
// is taken.
func NewSet(contracts ...Contract) (*Set, error) {
	if len(contracts) > maxRules {
		return nil, fmt.Errorf("rubicon: %d contracts are more than %d", len(contracts), maxRules)
	}
	s := &Set{rules: make([]rule, 0, len(contracts)), seek: newTrie()}
	for _, c := range contracts {
		r, err := newRule(c)
		if err != nil {
			return nil, err
		}
		s.rules = append(s.rules, r)
		if err := s.seek.addAll(r.paths(), c.Inside); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// newRule checks c.
func newRule(c Contract) (rule, error) {
	r := rule{Contract: c, trie: newTrie()}
	if c.Protocol == "" || c.Framing == 0 || c.Read == nil {
		return r, fmt.Errorf("rubicon: contract %q needs a protocol, a framing and Read", c.Protocol)
	}
	if err := r.trie.addAll(r.paths(), ""); err != nil {
		return r, fmt.Errorf("%w (contract %q)", err, c.Protocol)
	}
	r.trie.cursor = int16(slices.Index(r.trie.paths, c.Cursor))
	if c.Inside != "" {
		r.outer = newTrie()
		return r, r.outer.addAll(nil, c.Inside)
	}
	return r, nil
}

// paths returns all paths that the contract needs.
func (r *rule) paths() []string {
	if r.Cursor == "" || r.Cursor == EventID {
		return r.Paths
	}
	return append(r.Paths[:len(r.Paths):len(r.Paths)], r.Cursor)
}

// claim asks the contract about an answer and a frame.
func (r *rule) claim(a *Answer, f *Frame, scratch *Progress) Claim {
	if r.Claim != nil {
		return r.Claim(a, f)
	}
	if r.Read(f, scratch) {
		return Yes
	}
	return Maybe
}
