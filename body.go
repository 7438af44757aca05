package rubicon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
)

// errCutOff is what a reader of a request body sees that was closed.
var errCutOff = errors.New("rubicon: read of a request body after its attempt was over")

// A sendBody is a request body that may have to make way for another. Once it
// is closed, no Read of the body below begins any more: net/http's HTTP/2
// client reads a body even after it has closed it, and a GetBody may return
// the very same reader. Close does not wait for a Read, which may block until
// the Close.
//
// A body that is closed before its first Read, while Base is at work, is not
// closed yet: net/http may take it up again over another connection.
type sendBody struct {
	mu      sync.Mutex
	rc      io.ReadCloser
	conns   *atomic.Int32 // connections that Base obtained so far; nil: unknown
	touched bool          // a Read has begun
	reading bool
	put     bool  // Base has returned
	due     bool  // a Close was put off
	dueAt   int32 // conns when it was
	taken   bool  // and the body was taken up again
	closed  bool
	failed  failure       // a Read failed
	err     error         // of the first Close
	idle    chan struct{} // closed when no Read runs nor will run
}

// newSendBody returns a guarded rc.
func newSendBody(rc io.ReadCloser) *sendBody {
	return &sendBody{rc: rc, idle: make(chan struct{})}
}

// Read implements [io.Reader].
func (b *sendBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	if b.closed || b.due && !b.takenUp() {
		due := !b.closed
		b.mu.Unlock()
		if due {
			b.shut()
		}
		return 0, errCutOff
	}
	b.taken = b.taken || b.due
	b.touched, b.reading, b.due = true, true, false
	b.mu.Unlock()

	n, err := b.rc.Read(p)

	if b.read(err) {
		b.shut() // net/http closes a body once only, and has done so
	}
	return n, err
}

// read takes note of the end of a Read, and reports whether the body has to be
// closed by us.
func (b *sendBody) read(err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading = false
	if err != nil && err != io.EOF {
		b.failed = bodyFailed
	}
	if b.closed {
		close(b.idle)
	}
	return err != nil && b.taken
}

// takenUp reports whether another connection was obtained since the Close was
// put off. Without one the Read is that of a writer which comes late.
func (b *sendBody) takenUp() bool { return b.conns != nil && b.conns.Load() != b.dueAt }

// watch counts the connections that Base obtains.
func (b *sendBody) watch(conns *atomic.Int32) {
	if b != nil {
		b.conns = conns
	}
}

// returned says that Base has returned with res, or with nil for an error:
// nobody takes the body up again. After an error, or an answer that ends the
// upload, nobody reads it either.
func (b *sendBody) returned(res *http.Response) {
	if b == nil {
		return
	}
	b.mu.Lock()
	b.put = true
	shut := b.due || b.taken && (res == nil || res.StatusCode > 299)
	b.mu.Unlock()
	if shut {
		b.shut()
	}
}

// failure says whether a Read of the body failed. A nil guard guards a body
// that can't fail with an error of somebody else's request.
func (b *sendBody) failure() failure {
	if b == nil {
		return bodyIntact
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}

// Close implements [io.Closer]. It closes the body below once.
func (b *sendBody) Close() error {
	b.mu.Lock()
	if !b.closed && !b.touched && !b.put {
		defer b.mu.Unlock()
		b.due = true
		if b.conns != nil {
			b.dueAt = b.conns.Load()
		}
		return nil
	}
	b.mu.Unlock()
	return b.shut()
}

// shut closes the body below, once.
func (b *sendBody) shut() error {
	b.mu.Lock()
	if b.closed {
		defer b.mu.Unlock()
		return b.err
	}
	b.closed, b.due = true, false
	reading := b.reading
	b.mu.Unlock()

	err := b.rc.Close()

	b.mu.Lock()
	b.err = err
	b.mu.Unlock()
	if !reading {
		close(b.idle)
	}
	return err
}

// await returns when nothing can read the body any more, or when ctx ends. It
// reports whether the body is free.
func (b *sendBody) await(ctx context.Context) bool {
	select {
	case <-b.idle:
		return true
	default:
	}
	select {
	case <-b.idle:
		return true
	case <-ctx.Done():
		return false
	}
}

// snapshots holds the code of the GetBody functions that [http.NewRequest]
// makes. Each of their bodies is a reader of its own, so a first one need not
// be guarded, which would hide its type from net/http and cost a packet.
var snapshots = [...]uintptr{
	codeOf(getBodyOf(bytes.NewReader([]byte{0}))),
	codeOf(getBodyOf(bytes.NewBuffer([]byte{0}))),
	codeOf(getBodyOf(strings.NewReader("0"))),
}

// getBodyOf returns the GetBody that http.NewRequest makes for body.
func getBodyOf(body io.Reader) func() (io.ReadCloser, error) {
	req, err := http.NewRequest(http.MethodPost, "http://localhost", body)
	if err != nil {
		panic(err) // the arguments are constant
	}
	return req.GetBody
}

// codeOf returns the address of f's code.
func codeOf(f func() (io.ReadCloser, error)) uintptr { return reflect.ValueOf(f).Pointer() }

// isSnapshot reports whether every body of f is a reader of its own.
func isSnapshot(f func() (io.ReadCloser, error)) bool {
	code := codeOf(f)
	for _, s := range snapshots {
		if s == code {
			return true
		}
	}
	return false
}

// nopClosers are the types that [io.NopCloser] returns.
var nopClosers = [...]reflect.Type{
	reflect.TypeOf(io.NopCloser(nil)),
	reflect.TypeOf(io.NopCloser(struct {
		io.Reader
		io.WriterTo
	}{})),
}

// isPlain reports whether body is a standard reader of memory or of a file,
// whose type net/http makes use of and whose errors are its own.
func isPlain(body io.Reader) bool {
	switch body.(type) {
	case *bytes.Reader, *bytes.Buffer, *strings.Reader, *os.File:
		return true
	}
	if t := reflect.TypeOf(body); t == nopClosers[0] || t == nopClosers[1] {
		inner, ok := reflect.ValueOf(body).Field(0).Interface().(io.Reader)
		return ok && isPlain(inner)
	}
	return false
}

// bodyMaker returns what makes further bodies of req, or nil: its GetBody, or
// a body of [Rewindable].
func bodyMaker(req *http.Request) func() (io.ReadCloser, error) {
	if req.GetBody != nil {
		return req.GetBody
	}
	if b, ok := req.Body.(*rewindable); ok {
		return b.again
	}
	return nil
}

// Rewindable returns a request body that can be sent again although body can't
// be read again: it keeps what passes by, up to limit bytes. When more has
// passed it keeps nothing, and the request can't be sent again any more.
// Nothing is read ahead. Closing it closes body, if body is an [io.Closer].
//
// [http.NewRequest] leaves the length of such a body unknown; a caller that
// knows it sets Request.ContentLength.
func Rewindable(body io.Reader, limit int64) io.ReadCloser {
	rc, ok := body.(io.ReadCloser)
	if !ok {
		rc = io.NopCloser(body)
	}
	return (&tape{src: rc, limit: limit}).newPass()
}

// A tape is a reader and what was read of it.
type tape struct {
	mu    sync.Mutex // held over a Read of src
	src   io.ReadCloser
	limit int64
	kept  []byte
	total int  // bytes read of src
	over  bool // more than limit has passed
	err   error

	state  sync.Mutex
	passes int  // that are not closed
	last   bool // there will be no further pass
	spent  bool // src is at its end, or too much has passed for another pass
	closed bool
}

// A rewindable is one pass over a tape.
type rewindable struct {
	tape *tape
	pos  int
	once sync.Once
}

// newPass returns a pass over t from its start.
func (t *tape) newPass() *rewindable {
	t.state.Lock()
	defer t.state.Unlock()
	t.passes++
	return &rewindable{tape: t}
}

// Read implements [io.Reader].
func (r *rewindable) Read(p []byte) (int, error) {
	t := r.tape
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case r.pos < len(t.kept):
		n := copy(p, t.kept[r.pos:])
		r.pos += n
		return n, nil
	case r.pos < t.total:
		return 0, ErrNotRewindable
	case t.err != nil:
		return 0, t.err
	}
	n, err := t.read(p)
	r.pos += n
	return n, err
}

// read reads on and keeps what it may.
func (t *tape) read(p []byte) (int, error) {
	n, err := t.src.Read(p)
	t.total += n
	t.err = err
	if int64(t.total) > t.limit {
		t.over, t.kept = true, nil
	} else {
		t.kept = append(t.kept, p[:n]...)
	}
	if t.over || err != nil {
		t.state.Lock()
		t.spent = true
		t.state.Unlock()
	}
	return n, err
}

// Close implements [io.Closer]. The source stays open while another pass may
// have to read it on.
func (r *rewindable) Close() error {
	var err error
	r.once.Do(func() {
		t := r.tape
		t.state.Lock()
		defer t.state.Unlock()
		t.passes--
		err = t.closeLocked()
	})
	return err
}

// closeLocked closes the source if nobody can need it.
func (t *tape) closeLocked() error {
	if t.closed || t.passes > 0 || !t.last && !t.spent {
		return nil
	}
	t.closed = true
	return t.src.Close()
}

// again returns another pass from the start.
func (r *rewindable) again() (io.ReadCloser, error) {
	t := r.tape
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return nil, ErrNotRewindable
	}
	return t.newPass(), nil
}

// finish says that there will be no further pass.
func (r *rewindable) finish() {
	t := r.tape
	t.state.Lock()
	defer t.state.Unlock()
	t.last = true
	t.closeLocked()
}
