package rubicon

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rubicon-go/rubicon/contract"
)

// Stall bounds silence. Every limit is off at zero. A limit that is reached
// ends what it bounds with [ErrStalled], and on HTTP/1 the connection with it;
// on HTTP/2 the stream alone.
type Stall struct {
	// Head bounds one attempt from its start to the head of its answer. It
	// ends with the head and never cuts a body. It is the one limit that ends
	// an attempt in flight.
	Head time.Duration

	// FirstEvent bounds the time that Reads of a streamed answer wait for its
	// first event that shows progress; what the reader does between two Reads
	// does not count. It does not bind streams that are only listened to, those
	// of requests with a safe method, nor those that stay compressed because
	// the caller asked for it.
	FirstEvent time.Duration

	// Bytes bounds the time that one Read of an answer's body may wait for
	// bytes, whoever reads: layers above drain bodies too.
	Bytes time.Duration

	// Progress bounds the time that Reads of a streamed answer wait from one
	// event to the next. Comments and pings are bytes and no progress. It binds
	// what FirstEvent binds.
	Progress time.Duration
}

// A body is the body of an answer as the caller reads it. Bytes pass unchanged
// and first; what they prove is decided once, at the end: at EOF, at an error,
// or at Close, whichever comes first. An EOF without sufficient evidence of the
// protocol's end is an error. Errors are sticky; Close may be called again, and
// during a Read.
type body struct {
	rc      io.ReadCloser
	answer  answered
	watcher *contract.Watcher // nil: the body is not judged
	side    *side             // decodes for the watcher; nil: it can read the bytes
	opaque  bool              // nobody can read the bytes of a stream
	limits  limits
	closed  atomic.Bool
	done    atomic.Bool // err is set, and final

	mu   sync.Mutex
	told bool  // the server's name of the operation was told
	fell bool  // that the server has reported a failure was told
	over bool  // the end was decided
	err  error // what further Reads return
}

// answered is what the end of a body has to be told to, and about.
type answered struct {
	r       *request // nil: a settled one that nobody else knows
	tries   int      // attempts of the call
	req     *http.Request
	ctx     context.Context // of the journal
	ticket  Ticket
	trace   *Trace
	cancel  context.CancelCauseFunc // ends the attempt's context; nil: it is the caller's
	safe    bool                    // the method is safe
	settled bool                    // the head has settled what became of the request
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	if err := b.sticky(); err != nil {
		return 0, err
	}
	n, err := b.limits.read(b, p)
	b.feed(p[:n])
	if err == nil {
		return n, nil
	}
	if b.closed.Load() {
		return n, b.finish(left, err)
	}
	switch {
	case err == io.EOF:
		return n, b.finish(ended, err)
	case isCorrupt(err):
		return n, b.finish(corrupt, err)
	}
	return n, b.finish(cut, err)
}

// isCorrupt reports whether err says that bytes arrived and are not the ones
// that were sent.
func isCorrupt(err error) bool {
	var flate flate.CorruptInputError
	return errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.As(err, &flate)
}

// Close implements [io.Closer].
func (b *body) Close() error {
	b.closed.Store(true) // so that a Read which this ends is no interruption
	err := b.rc.Close()
	b.finish(left, errClosedBody)
	return err
}

// errClosedBody is what a Read after Close returns, as net/http's does.
var errClosedBody = http.ErrBodyReadAfterClose

// feed shows the watcher what the reader was given.
func (b *body) feed(p []byte) {
	if b.watcher == nil && b.side == nil || len(p) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.over:
	case b.side != nil:
		b.side.Write(p)
	default:
		b.watcher.Write(p)
		b.limits.saw(b.watcher)
		b.tell()
	}
}

// tell tells the record what must not wait for the end, which some readers
// never see: the server's name of the operation, for whoever must ask what
// became of it, and that the server has reported a failure.
func (b *body) tell() {
	if !b.fell && b.watcher.Failed() {
		b.fell = true
		b.answer.fall(b.watcher.End())
	}
	if b.told {
		return
	}
	if id := b.watcher.Operation(); id != "" && b.answer.r != nil {
		b.told = true
		_ = b.answer.r.observe(b.answer.ctx, b.answer.ticket, Fact{ServerID: id})
	}
}

// sticky returns the error that the body ended with, if it did.
func (b *body) sticky() error {
	if b.done.Load() {
		return b.err
	}
	return nil
}

// finish decides the end, if it is not decided yet, and returns what the
// reader is told.
func (b *body) finish(how ending, err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return b.err
	}
	b.over = true
	end := b.end()
	a, condition := conclude(how, end, b.answer, b.opaque)
	b.err = b.answer.error(how, err, condition, a, end)
	if condition != nil && b.answer.r != nil { // before the outcome is told, which asks for it
		b.answer.r.setLoss(b.err)
	}
	b.answer.tell(how, err, a, end)
	if b.answer.cancel != nil {
		b.answer.cancel(context.Canceled)
	}
	b.answer.trace.answerEnd(b.answer, end, b.err)
	b.done.Store(true)
	return b.err
}

// fall tells the record that the server has reported a failure.
func (ans answered) fall(end contract.End) {
	if ans.r == nil {
		return
	}
	a, _ := conclude(left, end, ans, false)
	a.Ended = false
	ans.r.setLoss(ans.error(left, nil, ErrStreamFailed, a, end))
	_ = ans.r.observe(ans.ctx, ans.ticket, Fact{Attempt: a})
	ans.r.streamed(end)
}

// tell tells the record how the answer ended.
func (ans answered) tell(how ending, err error, a Attempt, end contract.End) {
	if ans.r == nil {
		return
	}
	if how == cut || how == corrupt {
		ans.r.setCause(err)
	}
	_ = ans.r.observe(ans.ctx, ans.ticket, Fact{Attempt: a, ServerID: end.Operation})
	ans.r.streamed(end)
	ans.r.settled()
}

// record returns what is known of the request.
func (ans answered) record() Record {
	if ans.r != nil {
		return ans.r.record()
	}
	rec := Record{Attempts: make([]Attempt, ans.tries), Terms: Terms{Safe: ans.safe}}
	for i := range rec.Attempts {
		rec.Attempts[i].Verdict = VerdictNotApplied
	}
	rec.last().Evidence = Evidence{ReachAccepted, VerdictSucceeded, ProofStatus}
	return rec
}

// end returns how the stream stands.
func (b *body) end() contract.End {
	if b.side != nil {
		b.side.Close()
	}
	if b.watcher == nil {
		return contract.End{Legal: true}
	}
	return b.watcher.End()
}

// An ending is the way in which a body came to its end.
type ending uint8

const (
	ended   ending = iota // at EOF
	cut                   // by an error
	corrupt               // by bytes that are not the ones that were sent
	left                  // by a reader who has enough
)

// conclude says what the end of a body proves of its attempt, and which
// condition the reader is to be told; nil is none. It is a pure function: how
// the transport ended matters only where the protocol has not said its word
// (rules: contract package, and RFC 9112 section 8 for what a cut is).
func conclude(how ending, end contract.End, ans answered, opaque bool) (Attempt, error) {
	a := Attempt{Ended: true}
	is := func(r Reach, v Verdict, p Proof) Attempt {
		if !ans.settled {
			a.Evidence = Evidence{r, v, p}
		}
		return a
	}
	switch {
	case how == corrupt:
		return a, ErrUnverified
	case how == cut && end.ByEOF && ans.safe:
		return a, nil
	case how == cut && end.ByEOF:
		return a, ErrInterrupted
	case end.State == contract.Completed:
		return is(ReachTerminal, VerdictSucceeded, ProofStream), nil
	case end.State == contract.Incomplete:
		return is(ReachTerminal, VerdictIncomplete, ProofStream), nil
	case end.State == contract.Failed && how == left:
		return is(ReachTerminal, VerdictFailed, ProofStream), nil
	case end.State == contract.Failed:
		return is(ReachTerminal, VerdictFailed, ProofStream), ErrStreamFailed
	case how == left && end.State == contract.Interrupted:
		return is(ReachOutput, VerdictIncomplete, ProofLeft), nil
	case how == ended && end.State == contract.Interrupted && end.Legal:
		return is(ReachOutput, VerdictIncomplete, ProofStream), nil
	case how == ended && opaque:
		return is(ReachTerminal, VerdictSucceeded, ProofUnjudged), ErrUnverified
	case how == ended && end.State == contract.Unjudged:
		return is(ReachTerminal, VerdictSucceeded, ProofUnjudged), nil
	case how == left:
		return is(ReachAccepted, VerdictSucceeded, ProofUnjudged), nil
	case end.State == contract.Unjudged && ans.safe:
		return a, nil
	case end.Bytes > 0:
		return is(ReachOutput, VerdictUnknown, ProofNone), ErrInterrupted
	}
	return a, ErrInterrupted
}

// error returns what the reader is told of an end: the condition in full, else
// io.EOF where the protocol has said its word, else what the transport said.
func (ans answered) error(how ending, err, condition error, a Attempt, end contract.End) error {
	switch {
	case condition == nil && how == cut && !end.ByEOF && (end.State == contract.Completed || end.State == contract.Incomplete):
		return io.EOF
	case condition == nil:
		return err
	}
	rec := ans.record()
	e := newError(ans.req.Method, host(ans.req), ans.r.operationID(), &rec, Decision{}, condition)
	e.open, e.End = false, end
	if !ans.settled {
		e.Evidence = e.Evidence.Merge(a.Evidence)
	}
	switch {
	case condition == ErrStreamFailed && !ans.settled:
		e.Outcome = Failed
	case condition == ErrInterrupted && !ans.settled || ans.safe:
		e.Outcome = Interrupted
	}
	if how == cut || how == corrupt {
		e = e.because(err, ans.req)
		if errors.Is(err, ErrStalled) {
			e.is = append(e.is, ErrStalled)
		}
	}
	return e.until(ans.req.Context()).returned()
}

// bind makes res the caller's: its Request, and a body that ends what has to
// end with it.
func (c *call) bind(res *http.Response, ticket Ticket, a Attempt, cancel context.CancelCauseFunc) {
	res.Request = c.req
	if res.StatusCode == http.StatusSwitchingProtocols || res.Body == nil {
		return // the body is the connection, and the context its life
	}
	if _, ok := res.Body.(io.Writer); ok {
		return
	}
	guarded := c.guards(res)
	if cancel == nil && c.t.Stall.Bytes <= 0 && !guarded {
		return
	}
	b := &body{
		rc: res.Body,
		answer: answered{
			r: c.r, tries: c.tries, req: c.req, ctx: c.lasting, ticket: ticket, trace: c.t.Trace,
			cancel: cancel, safe: c.terms.Safe, settled: a.Ended,
		},
		limits: limits{bytes: c.t.Stall.Bytes},
	}
	if guarded {
		b.watch(c.t, res)
	}
	if c.r == &c.own && a.Ended {
		b.answer.r = nil
	} else {
		c.kept = c.r == &c.own
	}
	res.Body = b
}

// guards reports whether the end of res has to be looked at: that of a stream,
// and of every answer to a request that may have acted.
func (c *call) guards(res *http.Response) bool {
	if res.StatusCode/100 != 2 || res.Body == http.NoBody {
		return false
	}
	return !c.terms.Safe || isStream(res.Header)
}

// watch sets b to judge the body of res.
func (b *body) watch(t *Transport, res *http.Response) {
	if !isStream(res.Header) && !asksForStream(res.Request) {
		return
	}
	w := t.contracts().Watch(contract.Answer{
		Method: res.Request.Method, URL: res.Request.URL, Request: res.Request.Header, Header: res.Header,
	})
	if w == nil {
		return
	}
	switch coding := strings.ToLower(field(res.Header, "Content-Encoding")); coding {
	case "", "identity":
		b.watcher = w
	case "gzip", "x-gzip", "deflate":
		b.watcher, b.side = w, newSide(w, coding)
	default:
		b.opaque = isStream(res.Header)
	}
	if !b.answer.safe && b.watcher != nil && b.side == nil {
		b.limits.first, b.limits.progress = t.Stall.FirstEvent, t.Stall.Progress
	}
}

// streams reports whether res is a sequence of events whose end is yet to come
// and will say what became of the request.
func (c *call) streams(res *http.Response) bool {
	return !c.terms.Safe && res.StatusCode/100 == 2 && isStream(res.Header)
}

// isStream reports whether an answer with the given header is a sequence of
// events, whose head says little about its end.
func isStream(h http.Header) bool {
	contentType := field(h, "Content-Type")
	if contentType == "application/json" { // as most are
		return false
	}
	return contract.FramingOf(contentType)&^(contract.Values|contract.Elements) != 0
}

// asksForStream reports whether req asks for an answer piece by piece, which
// may then come as plain JSON: Google's streamGenerateContent, a watch of
// Kubernetes, Docker's pulls, builds and pushes.
func asksForStream(req *http.Request) bool {
	path := req.URL.Path
	return strings.Contains(path, "stream") || strings.HasSuffix(path, "/images/create") ||
		strings.HasSuffix(path, "/build") || strings.HasSuffix(path, "/push") ||
		strings.Contains(req.URL.RawQuery, "watch=")
}

// field returns the first value of the field that h holds under name, which is
// canonical.
func field(h http.Header, name string) string {
	if values := h[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// limits bound the silence of one body.
type limits struct {
	bytes, first, progress time.Duration
	quiet                  time.Duration // that Reads waited since the last event that showed progress
	events                 int64         // that showed progress
	stalled                atomic.Bool
}

// saw takes note of progress.
func (l *limits) saw(w *contract.Watcher) {
	if l.first <= 0 && l.progress <= 0 {
		return
	}
	if n := w.Progress(); n > l.events {
		l.events, l.quiet = n, 0
	}
}

// next returns how long the next Read may take, and what its limit is for.
func (l *limits) next() (time.Duration, string) {
	limit, what := l.bytes, "byte of the body"
	event := l.progress
	if l.events == 0 {
		event = l.first
	}
	if event > 0 {
		if left := max(event-l.quiet, 1); limit <= 0 || left < limit {
			return left, "progress of the stream"
		}
	}
	return limit, what
}

// read is one Read below, within the limits.
func (l *limits) read(b *body, p []byte) (int, error) {
	limit, what := l.next()
	if limit <= 0 {
		return b.rc.Read(p)
	}
	timer := time.AfterFunc(limit, func() {
		l.stalled.Store(true)
		b.rc.Close()
	})
	begun := time.Now()
	n, err := b.rc.Read(p)
	timer.Stop()
	l.quiet += time.Since(begun)
	if err != nil && l.stalled.Load() && !b.closed.Load() {
		err = fmt.Errorf("%w: no %s within its limit", ErrStalled, what)
	}
	return n, err
}
