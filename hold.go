package rubicon

import (
	"context"
	"io"
	"sync"
	"time"
)

// The bounds within which an answer is read before the next attempt.
const (
	holdBytes = 64 << 10
	holdTime  = 10 * time.Second
)

// A held body is the body of an answer that may make way for another attempt.
// It is read ahead, by a goroutine that ends with it, up to holdBytes; whoever
// gets it after all reads every byte.
type held struct {
	rc io.ReadCloser

	mu    sync.Mutex
	more  sync.Cond
	ahead []byte // read and not yet handed on
	done  bool   // the goroutine has ended
	err   error  // that rc ended with, if it did
}

// hold starts to read ahead.
func hold(rc io.ReadCloser) *held {
	h := &held{rc: rc}
	h.more.L = &h.mu
	go h.fill()
	return h
}

// fill reads rc until its end, or until more than holdBytes are there.
func (h *held) fill() {
	buf := make([]byte, 4<<10)
	for {
		n, err := h.rc.Read(buf)
		h.mu.Lock()
		h.ahead = append(h.ahead, buf[:n]...)
		h.err = err
		h.done = err != nil || len(h.ahead) > holdBytes
		done := h.done
		h.more.Broadcast()
		h.mu.Unlock()
		if done {
			return
		}
	}
}

// whole returns the body if it ended within the bounds; the connection is then
// free. It waits at most for limit, or until ctx ends.
func (h *held) whole(ctx context.Context, limit time.Duration) ([]byte, bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.more.Broadcast()
	})
	defer stop()

	h.mu.Lock()
	defer h.mu.Unlock()
	for !h.done && ctx.Err() == nil {
		h.more.Wait()
	}
	if !h.done || h.err != io.EOF || len(h.ahead) > holdBytes {
		return nil, false
	}
	h.rc.Close()
	return h.ahead, true
}

// Read implements [io.Reader].
func (h *held) Read(p []byte) (int, error) {
	h.mu.Lock()
	for len(h.ahead) == 0 && !h.done {
		h.more.Wait()
	}
	if len(h.ahead) > 0 {
		n := copy(p, h.ahead)
		h.ahead = h.ahead[n:]
		h.mu.Unlock()
		return n, nil
	}
	err := h.err
	h.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return h.rc.Read(p)
}

// Close implements [io.Closer]. It unblocks a Read of the goroutine.
func (h *held) Close() error { return h.rc.Close() }
