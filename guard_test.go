package rubicon

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
)

// onceCloser counts its Close calls.
type onceCloser struct {
	io.Reader
	closed int
}

// Close implements [io.Closer].
func (c *onceCloser) Close() error {
	c.closed++
	return nil
}

// isIdle reports whether nobody can read b any more.
func isIdle(b *sendBody) bool {
	select {
	case <-b.idle:
		return true
	default:
		return false
	}
}

// TestSendBodyPutOff: a Close before the first Read is put off, and made up for
// by a late writer's Read or by the return of Base, whichever comes first. A
// Read over another connection takes the body up again.
func TestSendBodyPutOff(t *testing.T) {
	var conns atomic.Int32
	conns.Store(1)
	buf := make([]byte, 8)

	rc := &onceCloser{Reader: strings.NewReader("body")}
	b := newSendBody(rc)
	b.watch(&conns)
	b.Close()
	if rc.closed != 0 {
		t.Error("closed before anybody read it")
	}
	if _, err := b.Read(buf); !errors.Is(err, errCutOff) || rc.closed != 1 || !isIdle(b) {
		t.Errorf("a late writer reads: %v, closed %d times, idle %t", err, rc.closed, isIdle(b))
	}
	b.returned(nil)
	b.Close()
	if rc.closed != 1 {
		t.Errorf("closed %d times", rc.closed)
	}

	rc = &onceCloser{Reader: strings.NewReader("body")}
	b = newSendBody(rc)
	b.watch(&conns)
	b.Close()
	conns.Add(1)
	if n, err := b.Read(buf); n != 4 || err != nil {
		t.Errorf("taken up over another connection: %d, %v", n, err)
	}
	if _, err := b.Read(buf); err != io.EOF || rc.closed != 1 || !isIdle(b) {
		t.Errorf("net/http does not close it again: %v, closed %d times, idle %t", err, rc.closed, isIdle(b))
	}

	rc = &onceCloser{Reader: strings.NewReader("body")}
	b = newSendBody(rc)
	b.watch(&conns)
	b.Close()
	conns.Add(1)
	b.Read(buf)
	b.returned(nil)
	if rc.closed != 1 || !isIdle(b) {
		t.Errorf("Base has failed: closed %d times, idle %t", rc.closed, isIdle(b))
	}

	rc = &onceCloser{Reader: strings.NewReader("body")}
	b = newSendBody(rc)
	b.watch(&conns)
	b.Close()
	b.returned(nil)
	if rc.closed != 1 || !isIdle(b) {
		t.Errorf("Base has returned: closed %d times, idle %t", rc.closed, isIdle(b))
	}
}
