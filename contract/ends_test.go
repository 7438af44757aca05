package contract_test

import (
	"slices"
	"testing"

	"github.com/rubicon-go/rubicon/contract"
)

// A wireEnd is a body and how it ends.
type wireEnd struct {
	name      string
	body      string
	state     contract.State
	operation string
	cursor    string
	failure   contract.Failure
	reason    string
	illegal   bool // the body may not end so
	complete  bool // it is interrupted, but all was there
}

// checkEnds compares the ends of bodies that answer as a does, whole and byte
// by byte.
func checkEnds(t *testing.T, protocol string, a contract.Answer, endings []wireEnd) {
	t.Helper()
	s := known(t)
	for _, e := range endings {
		t.Run(e.name, func(t *testing.T) {
			got := endOf(s, a, e.body, len(e.body))
			if bytewise := endOf(s, a, e.body, 1); bytewise != got {
				t.Errorf("byte by byte:\n got %+v\nwant %+v", bytewise, got)
			}
			if got.Protocol != protocol {
				t.Errorf("protocol %q, want %q", got.Protocol, protocol)
			}
			if got.State != e.state || got.Legal == e.illegal || got.Complete != e.complete {
				t.Errorf("%v, legal %v, complete %v; want %v, %v, %v", got.State, got.Legal, got.Complete, e.state, !e.illegal, e.complete)
			}
			if got.Operation != e.operation || got.Cursor != e.cursor {
				t.Errorf("operation %q, cursor %q; want %q, %q", got.Operation, got.Cursor, e.operation, e.cursor)
			}
			if got.Failure != e.failure || got.Reason != e.reason {
				t.Errorf("failure %+v, reason %q; want %+v, %q", got.Failure, got.Reason, e.failure, e.reason)
			}
		})
	}
}

// endOf returns how a body ends that comes in pieces of the given size.
func endOf(s *contract.Set, a contract.Answer, body string, size int) contract.End {
	w := s.Watch(a)
	for piece := range slices.Chunk([]byte(body), max(1, size)) {
		w.Write(piece)
	}
	return w.End()
}
