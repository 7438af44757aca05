package rubicontest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rubicon-go/rubicon/contract"
)

// A Recording is the body of a streamed answer, as a reader gets it, and how it
// ends. [CheckContract] compares a contract with it.
type Recording struct {
	// Name is what errors call the recording. Empty: by its number.
	Name string

	// Answer is what is known of the answer beside the body. It must have a
	// content type.
	Answer contract.Answer

	// Body is the body from its first byte on.
	Body []byte

	// Proof is a text in the frame that proves the end or the failure, such as a
	// finish reason where more follows. Its last occurrence counts. Empty: the
	// last frame proves it.
	Proof string

	// State, Operation and Cursor are those of the body's end. Unjudged: the
	// stream is one that the contract must leave alone.
	State     contract.State
	Operation string
	Cursor    string

	// Events is the number of events. Zero: it is not compared.
	Events int64
}

// CheckContract checks that a contract judges streams as a contract must. It
// returns all that it finds, or nil. For each recording it checks that
//
//   - the whole body ends as the recording says, with the contract alone and
//     among those of [contract.Known], in pieces of any size, and while another
//     body is followed;
//   - before the frame that proves the end no end is claimed, and afterwards it
//     stays; where the end of the body is the end, a torn record is none;
//   - the text of that frame inside of a string before it changes nothing.
//
// It also checks that whole answers of some other protocols are not taken for
// interrupted or failed ones. The recordings should have each way to end, with
// output before it, and one that was cut.
func CheckContract(c contract.Contract, recordings ...Recording) error {
	if len(recordings) == 0 {
		return errors.New("rubicon: a contract can't be checked without a recording")
	}
	alone, err := contract.NewSet(c)
	if err != nil {
		return err
	}
	among, err := contract.NewSet(append([]contract.Contract{c}, contract.Known()...)...)
	if err != nil {
		return err
	}
	var faults []error
	for i, r := range recordings {
		if r.Name == "" {
			r.Name = fmt.Sprint("recording ", i+1)
		}
		check := recordingCheck{Recording: r, eof: c.EOF, set: alone}
		for _, err := range check.run(among) {
			faults = append(faults, fmt.Errorf("rubicon: %s: %w", r.Name, err))
		}
	}
	return errors.Join(append(faults, checkStrangers(alone)...)...)
}

// A recordingCheck checks a contract against one recording.
type recordingCheck struct {
	Recording
	eof contract.EOF
	set *contract.Set // of the contract alone
}

// run returns what is wrong. A body that ends otherwise than it should as a
// whole says nothing in parts.
func (r *recordingCheck) run(among *contract.Set) []error {
	if r.set.Watch(r.Answer) == nil {
		return []error{errors.New("the content type is not one of the contract's")}
	}
	if err := r.compare(judge(r.set, r.Answer, r.Body)); err != nil {
		return []error{err}
	}
	if err := r.compare(judge(among, r.Answer, r.Body)); err != nil {
		return []error{fmt.Errorf("before the known contracts: %w", err)}
	}
	from, proof, err := r.proof()
	if err != nil {
		return []error{err}
	}
	faults := []error{r.pieces(), r.turns(), r.prefixes(from)}
	if r.ended(r.State) && !r.endsAtEOF() {
		faults = append(faults, r.hostile(r.Body[:from], proof))
	}
	return present(faults)
}

// compare returns how an end differs from the recording's.
func (r *recordingCheck) compare(e contract.End) error {
	if e.State != r.State || e.Operation != r.Operation || e.Cursor != r.Cursor {
		return fmt.Errorf("%v, operation %q, cursor %q; want %v, %q, %q",
			e.State, e.Operation, e.Cursor, r.State, r.Operation, r.Cursor)
	}
	if r.Events != 0 && e.Events != r.Events {
		return fmt.Errorf("%d events; want %d", e.Events, r.Events)
	}
	return nil
}

// ended reports whether a state says that the stream has its end. Of a stream
// that fails, a failure is: what came before it may have looked like an end.
func (r *recordingCheck) ended(s contract.State) bool {
	if r.State == contract.Failed {
		return s == contract.Failed
	}
	return s == contract.Completed || s == contract.Incomplete || s == contract.Failed
}

// endsAtEOF reports whether the end of the body is the recording's end.
func (r *recordingCheck) endsAtEOF() bool {
	return r.eof == contract.EOFEnds && r.State != contract.Failed
}

// proof returns where the frame that proves the end begins, and the frame.
func (r *recordingCheck) proof() (from int, frame []byte, err error) {
	at := len(r.Body) - 1
	if r.Proof != "" {
		if at = bytes.LastIndex(r.Body, []byte(r.Proof)); at < 0 {
			return 0, nil, fmt.Errorf("the proof %q is not in the body", r.Proof)
		}
	}
	w := r.set.Watch(r.Answer)
	events, last := int64(0), 0 // last is where the last whole frame began
	for n := range r.Body {
		_, _ = w.Write(r.Body[n : n+1])
		e := w.End()
		if e.Events == events {
			continue
		}
		events = e.Events
		last, from = from, n+1
		if n >= at {
			return last, r.Body[last:from], nil
		}
	}
	if r.Proof != "" {
		return from, r.Body[from:], nil
	}
	return last, r.Body[last:], nil
}

// pieces gives the body in pieces of several sizes.
func (r *recordingCheck) pieces() error {
	want := judge(r.set, r.Answer, r.Body)
	random := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{1, 2, 3, 7, 64, 4096, 0} {
		w := r.set.Watch(r.Answer)
		for rest := r.Body; len(rest) > 0; {
			n := size
			if n == 0 {
				n = 1 + random.IntN(99)
			}
			n = min(n, len(rest))
			_, _ = w.Write(rest[:n])
			rest = rest[n:]
		}
		if got := w.End(); got != want {
			return fmt.Errorf("in pieces of %d bytes (0: of any size) it ends as %+v; in one piece as %+v", size, got, want)
		}
	}
	return nil
}

// turns follows the body twice at the same time: a contract that remembers
// anything outside of its Progress mixes them up.
func (r *recordingCheck) turns() error {
	first, second := r.set.Watch(r.Answer), r.set.Watch(r.Answer)
	for piece := range slices.Chunk(r.Body, 16) {
		_, _ = first.Write(piece)
		_, _ = second.Write(piece)
	}
	if a, b := first.End(), second.End(); a != b {
		return fmt.Errorf("a body that is followed twice at the same time ends as %+v and as %+v", a, b)
	}
	return nil
}

// prefixes asks at every byte.
func (r *recordingCheck) prefixes(from int) error {
	w := r.set.Watch(r.Answer)
	ended := false
	for n := range r.Body {
		_, _ = w.Write(r.Body[n : n+1])
		e := w.End()
		switch now := r.ended(e.State); {
		case r.endsAtEOF():
			if e.Torn && now && e.State != contract.Failed {
				return fmt.Errorf("after %d bytes, in a record, it is %v", n+1, e.State)
			}
		case now && (!r.ended(r.State) || n < from):
			return fmt.Errorf("after %d bytes it is %v, before what proves the end", n+1, e.State)
		case ended && !now:
			return fmt.Errorf("after %d bytes it is %v, although the end was proven", n+1, e.State)
		default:
			ended = now
		}
	}
	return nil
}

// present returns the faults that are some.
func present(faults []error) []error {
	var list []error
	for _, err := range faults {
		if err != nil {
			list = append(list, err)
		}
	}
	return list
}

// judge returns how a body ends.
func judge(s *contract.Set, a contract.Answer, body []byte) contract.End {
	w := s.Watch(a)
	_, _ = w.Write(body)
	return w.End()
}
