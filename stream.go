package rubicon

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Stall bounds silence. Every limit is off at zero. A limit that is reached
// ends what it bounds with [ErrStalled], and on HTTP/1 the connection with it.
type Stall struct {
	// Head bounds one attempt from its start to the head of its answer. It
	// ends with the head and never cuts a body. It is the one limit that ends
	// an attempt in flight.
	Head time.Duration

	// Bytes bounds the time that one Read of an answer's body may wait for
	// bytes, whoever reads: layers above drain bodies too.
	Bytes time.Duration
}

// A body is the body of an answer as the caller reads it. It says once how it
// ended: at the first error, io.EOF among them, or at Close, whichever comes
// first. Bytes pass unchanged; errors are sticky; Close may be called again,
// and during a Read.
type body struct {
	rc    io.ReadCloser
	limit time.Duration // of a Read; 0: none
	ended func(error)   // told once: nil for Close before the end

	stalled atomic.Bool
	closed  atomic.Bool
	once    sync.Once
	mu      sync.Mutex
	err     error
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	if err := b.sticky(); err != nil {
		return 0, err
	}
	n, err := b.read(p)
	if err == nil {
		return n, nil
	}
	if b.closed.Load() {
		b.end(nil)
	} else {
		b.end(err)
	}
	return n, b.stick(err)
}

// read is one Read below, within the limit.
func (b *body) read(p []byte) (int, error) {
	if b.limit <= 0 {
		return b.rc.Read(p)
	}
	timer := time.AfterFunc(b.limit, func() {
		b.stalled.Store(true)
		b.rc.Close()
	})
	n, err := b.rc.Read(p)
	timer.Stop()
	if err != nil && b.stalled.Load() {
		err = fmt.Errorf("%w: no byte of the body for %v", ErrStalled, b.limit)
	}
	return n, err
}

// Close implements [io.Closer].
func (b *body) Close() error {
	b.closed.Store(true) // so that a Read which this ends is no interruption
	err := b.rc.Close()
	b.end(nil)
	return err
}

// end reports the end, once.
func (b *body) end(err error) { b.once.Do(func() { b.ended(err) }) }

// sticky returns the error that the body ended with, if it did.
func (b *body) sticky() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// stick makes err the body's error, unless it has one, and returns it.
func (b *body) stick(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	return b.err
}

// isStream reports whether an answer with the given header is a sequence of
// events, whose head says little about its end.
func isStream(h http.Header) bool {
	mediaType, _, _ := strings.Cut(field(h, "Content-Type"), ";")
	switch strings.ToLower(strings.TrimSpace(mediaType)) {
	case "text/event-stream", "application/x-ndjson", "application/ndjson", "application/jsonl",
		"application/json-seq", "application/stream+json", "application/vnd.amazon.eventstream":
		return true
	}
	return false
}

// field returns the first value of the field that h holds under name, which is
// canonical.
func field(h http.Header, name string) string {
	if values := h[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

