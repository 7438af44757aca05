package rubicon

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// TestMemoryJournalForgetsNothingInHand: an operation that may be forgotten is
// not, between the moment that a Begin found it and the moment that it booked:
// the attempt would be on no record. So the journal is held until then.
func TestMemoryJournalForgetsNothingInHand(t *testing.T) {
	j := &MemoryJournal{Limit: 1}
	ctx, p := context.Background(), Proposal{Key: Key{Name: "in hand"}, Budget: plenty, Call: 1}
	ticket, err := j.Begin(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	j.Observe(ctx, ticket, Fact{Attempt: anRefused})

	e := j.entries[p.Key]
	e.mu.Lock() // so that the Begin below stops after it found the operation
	done := make(chan error)
	go func() {
		p.Reason = ReasonSend
		_, err := j.Begin(ctx, p)
		done <- err
	}()
	held := 0
	for deadline := time.Now().Add(5 * time.Second); held < 1000 && time.Now().Before(deadline); held++ {
		if j.mu.TryLock() {
			j.mu.Unlock()
			held = -1
		}
		runtime.Gosched()
	}
	e.mu.Unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if held < 1000 {
		t.Error("another may forget the operation before the attempt is booked")
	}
	r, err := j.Load(ctx, p.Key)
	if err != nil || len(r.Attempts) != 2 {
		t.Errorf("%d attempts are on record, error %v", len(r.Attempts), err)
	}
}
