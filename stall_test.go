package rubicon_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rubicon-go/rubicon"
)

// The tests below run on fake time, so that a limit can be met to the tick. The
// limits are of one length; a tick is the smallest step of time.
const (
	limit = 10 * time.Second
	tick  = time.Nanosecond
)

// Streams in one piece.
const (
	claudeWhole = claudeStart + claudeText + claudeDelta + claudeStop
	comment     = ": keep-alive\n\n"
)

// A piece of a body comes at a time after the head. Without text it is the end.
type piece struct {
	at   time.Duration
	text string
}

// errGone is what a timed body says after its Close.
var errGone = errors.New("the body is closed")

// A timedBody gives each piece from its time on, whether somebody waits for it
// or not, as a connection with a buffer does. After the last piece it is silent.
type timedBody struct {
	ctx    context.Context
	begun  time.Time
	pieces []piece
	once   sync.Once
	closed chan struct{}
	closes atomic.Int32
}

// Read implements [io.Reader].
func (b *timedBody) Read(p []byte) (int, error) {
	if len(b.pieces) == 0 {
		return 0, b.wait(nil)
	}
	next := &b.pieces[0]
	var due <-chan time.Time
	if left := time.Until(b.begun.Add(next.at)); left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		due = timer.C
	} else {
		now := make(chan time.Time)
		close(now)
		due = now
	}
	if err := b.wait(due); err != nil {
		return 0, err
	}
	if next.text == "" {
		return 0, io.EOF
	}
	n := copy(p, next.text)
	if next.text = next.text[n:]; next.text == "" {
		b.pieces = b.pieces[1:]
	}
	return n, nil
}

// wait waits for due, and returns an error if the body ends first.
func (b *timedBody) wait(due <-chan time.Time) error {
	select {
	case <-b.closed:
		return errGone
	default:
	}
	select {
	case <-due:
		return nil
	case <-b.closed:
		return errGone
	case <-b.ctx.Done():
		return b.ctx.Err()
	}
}

// Close implements [io.Closer]. A Read that it ends returns before it does.
func (b *timedBody) Close() error {
	b.closes.Add(1)
	b.once.Do(func() { close(b.closed) })
	time.Sleep(tick)
	return nil
}

// A timed answer is an answer that comes piece by piece.
type timed struct {
	contentType string        // "": an event stream
	status      int           // 0: 200
	head        time.Duration // before the head
	pieces      []piece
}

// A heard answer is one that is being read.
type heard struct {
	*http.Response
	op   *rubicon.Operation
	body *timedBody // below the transport
	head time.Time
}

// hear makes a request that is answered by s, under the limits.
func hear(t *testing.T, ctx context.Context, method string, limits rubicon.Stall, s timed) *heard {
	t.Helper()
	h := new(heard)
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		res := response(req, max(s.status, http.StatusOK), http.Header{"Content-Type": {s.contentType}}, "")
		if s.contentType == "" {
			res.Header.Set("Content-Type", "text/event-stream")
		}
		time.Sleep(s.head)
		h.head = time.Now()
		h.body = &timedBody{ctx: req.Context(), begun: h.head, pieces: s.pieces, closed: make(chan struct{})}
		res.Body, res.ContentLength = h.body, -1
		return res, nil
	})
	tr := &rubicon.Transport{Base: base, Stall: limits}
	ctx, h.op = rubicon.Begin(ctx, rubicon.Intent{})
	t.Cleanup(h.op.End)
	req, err := http.NewRequestWithContext(ctx, method, "http://api.test/v1/messages", nil)
	if err != nil {
		t.Fatal(err)
	}
	if h.Response, err = tr.RoundTrip(req); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Body.Close() })
	return h
}

// rest reads to the end. It returns what came, how long after the head the end
// did, and the error if it is not EOF.
func (h *heard) rest() (string, time.Duration, error) {
	b, err := io.ReadAll(h.Body)
	return string(b), time.Since(h.head), err
}

// checkStalled fails unless err is the end of a stalled stream, told once.
func (h *heard) checkStalled(t *testing.T, err error) {
	t.Helper()
	e, ok := errors.AsType[*rubicon.Error](err)
	if !ok || !errors.Is(err, rubicon.ErrStalled) || !errors.Is(err, rubicon.ErrInterrupted) {
		t.Fatalf("told %v (%T)", err, err)
	}
	if e.Outcome != rubicon.Interrupted || h.op.Outcome() != rubicon.Interrupted || !errors.Is(h.op.Err(nil), rubicon.ErrStalled) {
		t.Errorf("outcome %v, the operation's %v, %v", e.Outcome, h.op.Outcome(), h.op.Err(nil))
	}
	for _, other := range []error{io.EOF, io.ErrUnexpectedEOF, context.Canceled, context.DeadlineExceeded, errGone} {
		if errors.Is(err, other) {
			t.Errorf("a stall is %v", other)
		}
	}
	h.checkSticks(t, err)
}

// checkSticks fails unless Read says want from now on, and the body below is
// closed once, now and much later.
func (h *heard) checkSticks(t *testing.T, want error) {
	t.Helper()
	for range 2 {
		if n, err := h.Body.Read(make([]byte, 1)); n != 0 || err != want {
			t.Errorf("Read says %d, %v after %v", n, err, want)
		}
		time.Sleep(100 * limit)
	}
	if n := h.body.closes.Load(); n != 1 {
		t.Errorf("the body below was closed %d times", n)
	}
}

// spaced returns pieces that come one by one, gap after gap, and then the end.
func spaced(gap time.Duration, texts ...string) []piece {
	var list []piece
	for i, text := range append(texts, "") {
		list = append(list, piece{time.Duration(i+1) * gap, text})
	}
	return list
}

// TestStallLimits holds for each limit alone what it bounds: one tick less than
// it is whole, one tick more is a stall, at the limit exactly.
func TestStallLimits(t *testing.T) {
	const (
		whole = -1 // no stall
		early = limit - tick
		late  = limit + tick
		days  = 100 * time.Hour
		beat  = 700 * time.Millisecond // never due at the limit
	)
	var (
		bytes    = rubicon.Stall{Bytes: limit}
		first    = rubicon.Stall{FirstEvent: limit}
		progress = rubicon.Stall{Progress: limit}
		events   = rubicon.Stall{FirstEvent: limit, Progress: limit}
	)
	post := func(pieces ...piece) timed { return timed{pieces: pieces} }
	for _, test := range []struct {
		name    string
		limits  rubicon.Stall
		answer  timed
		stalled time.Duration // after the head
	}{
		{"none", rubicon.Stall{}, post(spaced(days, comment, claudeStart, claudePing, claudeText+claudeDelta+claudeStop)...), whole},
		{"head, ends with the head", rubicon.Stall{Head: limit}, timed{head: early, pieces: spaced(days, claudeWhole)}, whole},

		{"bytes, early", bytes, post(spaced(early, claudeStart, claudeText, claudeDelta, claudeStop)...), whole},
		{"bytes, first late", bytes, post(piece{late, claudeStart}), limit},
		{"bytes, second late", bytes, post(piece{early, claudeStart}, piece{early + late, claudeText}), early + limit},
		{"bytes, end late", bytes, post(piece{0, claudeStart + claudeText}, piece{late, ""}), limit},
		{"bytes, comments", bytes, post(spaced(early, comment, comment, comment, claudeWhole)...), whole},
		{"bytes, pings", bytes, post(spaced(early, claudeStart, claudePing, claudePing, claudeText+claudeDelta+claudeStop)...), whole},
		{"bytes, one by one", bytes, post(spaced(early, strings.Split(claudeWhole, "")...)...), whole},
		{"bytes, from the head on", bytes, timed{head: days, pieces: spaced(early, claudeWhole)}, whole},

		{"first, early", first, post(spaced(early, claudeWhole)...), whole},
		{"first, late", first, post(piece{late, claudeWhole}), limit},
		{"first, comments", first, post(append(spaced(beat, repeat(comment, 20)...), piece{days, claudeWhole})...), limit},
		{"first, no event without data", first, post(piece{0, "id: 1\n\nretry: 5\n\n"}, piece{late, claudeWhole}), limit},
		{"first, half an event", first, post(piece{early, claudeStart[:len(claudeStart)-1]}, piece{late, "\n"}), limit},
		{"first, and then silence", first, post(piece{early, claudeStart}, piece{days, claudeText + claudeDelta + claudeStop}, piece{2 * days, ""}), whole},
		{"first, from the head on", first, timed{head: days, pieces: spaced(early, claudeWhole)}, whole},

		{"progress, none before the first event", progress, post(piece{days, comment}, piece{2 * days, comment}, piece{3 * days, claudeWhole}, piece{3 * days, ""}), whole},
		{"progress, early", progress, post(spaced(early, claudeStart, claudeText, claudeDelta, claudeStop)...), whole},
		{"progress, late", progress, post(piece{0, claudeStart}, piece{early, claudeText}, piece{early + late, claudeText}), early + limit},
		{"progress, comments", progress, post(append(spaced(beat, append([]string{claudeStart}, repeat(comment, 20)...)...), piece{days, claudeText})...), beat + limit},
		{"progress, pings", progress, post(append(spaced(beat, append([]string{claudeStart}, repeat(claudePing, 20)...)...), piece{days, claudeText})...), beat + limit},
		{"progress, half an event", progress, post(piece{0, claudeStart}, piece{early, claudeText[:30]}, piece{late, claudeText[30:]}), limit},

		{"first and progress, early", events, post(spaced(early, claudeStart, claudeText, claudeDelta, claudeStop)...), whole},
		{"first, then progress", events, post(piece{early, claudeStart}, piece{early + late, claudeText}), early + limit},
		{"the shorter one counts", rubicon.Stall{Bytes: time.Second, Progress: limit}, post(piece{0, claudeStart}, piece{2 * time.Second, claudeText}), time.Second},
		{"bytes do not help", rubicon.Stall{Bytes: 2 * time.Second, Progress: limit}, post(append([]piece{{0, claudeStart}}, spaced(beat, repeat(claudePing, 20)...)...)...), limit},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := hear(t, t.Context(), http.MethodPost, test.limits, test.answer)
				got, at, err := h.rest()
				if test.stalled == whole {
					if err != nil || !strings.HasSuffix(got, claudeStop) || h.op.Outcome() != rubicon.Succeeded {
						t.Errorf("told %q, %v, outcome %v", got, err, h.op.Outcome())
					}
					return
				}
				if at != test.stalled {
					t.Errorf("stalled after %v, want %v", at, test.stalled)
				}
				h.checkStalled(t, err)
			})
		})
	}
}

// TestStallAtTheLimit: what comes at the very moment of the limit may be taken
// or not, but nothing lies between the two.
func TestStallAtTheLimit(t *testing.T) {
	for _, test := range []struct {
		name   string
		limits rubicon.Stall
		before string // at once
		after  string // at the limit
	}{
		{"bytes", rubicon.Stall{Bytes: limit}, "", claudeWhole},
		{"first event", rubicon.Stall{FirstEvent: limit}, comment, claudeWhole},
		{"progress", rubicon.Stall{Progress: limit}, claudeStart, claudeText + claudeDelta + claudeStop},
	} {
		t.Run(test.name, func(t *testing.T) {
			for range 30 { // the order of timers of one moment is random
				synctest.Test(t, func(t *testing.T) {
					pieces := []piece{{limit, test.after}, {limit, ""}}
					if test.before != "" {
						pieces = append([]piece{{0, test.before}}, pieces...)
					}
					h := hear(t, t.Context(), http.MethodPost, test.limits, timed{pieces: pieces})
					got, at, err := h.rest()
					if at != limit {
						t.Errorf("the end came after %v", at)
					}
					switch got {
					case test.before + test.after:
						if err != nil || h.op.Outcome() != rubicon.Succeeded {
							t.Errorf("all is there: told %v, outcome %v", err, h.op.Outcome())
						}
					case test.before:
						h.checkStalled(t, err)
					default:
						t.Errorf("told %q, %v", got, err)
					}
				})
			}
		})
	}
}

// TestStallAfterTheTerminalEvent: a connection that stays open behind a whole
// answer is ended by a limit, and the answer is whole.
func TestStallAfterTheTerminalEvent(t *testing.T) {
	for name, limits := range map[string]rubicon.Stall{
		"bytes": {Bytes: limit}, "progress": {Progress: limit},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := hear(t, t.Context(), http.MethodPost, limits, timed{pieces: []piece{{0, claudeWhole}}})
				got, at, err := h.rest()
				if got != claudeWhole || at != limit || err != nil || h.op.Outcome() != rubicon.Succeeded {
					t.Errorf("told %q, %v after %v, outcome %v", got, err, at, h.op.Outcome())
				}
				h.checkSticks(t, io.EOF)
			})
		})
	}
}

// TestStallOfAnyBody: the limit on bytes binds every answer: streams that are
// only listened to, answers in one piece, errors. The limits on events bind
// none of these.
func TestStallOfAnyBody(t *testing.T) {
	json := timed{contentType: "application/json", pieces: []piece{{0, `{"a":`}, {10 * limit, `1}`}, {10 * limit, ""}}}
	failed := json
	failed.status = http.StatusBadRequest
	listening := timed{pieces: []piece{{0, "data: 1\n\n"}, {10 * limit, "data: 2\n\n"}, {10 * limit, ""}}}
	for _, test := range []struct {
		name, method string
		answer       timed
	}{
		{"listening", http.MethodGet, listening},
		{"safe", http.MethodGet, json},
		{"unsafe", http.MethodPost, json},
		{"failed", http.MethodPost, failed},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := hear(t, t.Context(), test.method, rubicon.Stall{Bytes: limit}, test.answer.again())
				got, at, err := h.rest()
				if got != test.answer.pieces[0].text || at != limit || !errors.Is(err, rubicon.ErrStalled) {
					t.Errorf("told %q, %v after %v", got, err, at)
				}
				h.checkSticks(t, err)

				events := rubicon.Stall{Head: limit, FirstEvent: limit, Progress: limit}
				h = hear(t, t.Context(), test.method, events, test.answer.again())
				if got, at, err = h.rest(); err != nil || at != 10*limit || got == test.answer.pieces[0].text {
					t.Errorf("limits on events: told %q, %v after %v", got, err, at)
				}
			})
		})
	}
}

// again returns a copy of s to play.
func (s timed) again() timed {
	s.pieces = append([]piece(nil), s.pieces...)
	return s
}

// TestStallNames: the error says which limit was reached.
func TestStallNames(t *testing.T) {
	for want, limits := range map[string]rubicon.Stall{
		"byte of the body":       {Bytes: limit},
		"progress of the stream": {FirstEvent: limit, Bytes: 2 * limit},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := hear(t, t.Context(), http.MethodPost, limits, timed{})
			if _, _, err := h.rest(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("told %v, want %q in it", err, want)
			}
		})
	}
}

// TestStallNobodyReads: a limit fires only while somebody waits in a Read, and
// who reads late what came in time has not met silence.
func TestStallNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := rubicon.Stall{Bytes: limit, FirstEvent: limit, Progress: limit}
		h := hear(t, t.Context(), http.MethodPost, limits, timed{pieces: spaced(tick, claudeStart, claudeText, claudeDelta, claudeStop)})
		var got strings.Builder
		for {
			time.Sleep(100 * limit)
			if n := h.body.closes.Load(); n != 0 {
				t.Fatalf("closed after %q, while nobody reads", got.String())
			}
			n, err := h.Body.Read(make([]byte, len(claudeStart)))
			got.Write(make([]byte, 0, n))
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if h.op.Outcome() != rubicon.Succeeded {
			t.Errorf("outcome %v", h.op.Outcome())
		}
	})
}

// TestStallAfterTheEnd: no limit fires after the end of a body, nor after its
// Close.
func TestStallAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := rubicon.Stall{Bytes: limit, FirstEvent: limit, Progress: limit}
		h := hear(t, t.Context(), http.MethodPost, limits, timed{pieces: spaced(time.Second, claudeWhole)})
		if _, _, err := h.rest(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * limit)
		if n := h.body.closes.Load(); n != 0 {
			t.Errorf("closed %d times after EOF", n)
		}
		h.Body.Close()
		time.Sleep(100 * limit)
		if n := h.body.closes.Load(); n != 1 {
			t.Errorf("closed %d times by one Close", n)
		}
	})
}

// TestStallLeft: a Close during a silence is the reader's, and no stall.
func TestStallLeft(t *testing.T) {
	for _, when := range []time.Duration{tick, limit - tick} {
		synctest.Test(t, func(t *testing.T) {
			h := hear(t, t.Context(), http.MethodPost, rubicon.Stall{Bytes: limit, Progress: limit}, timed{pieces: []piece{{0, claudeStart}}})
			go func() {
				time.Sleep(when)
				h.Body.Close()
			}()
			_, at, err := h.rest()
			if err == nil || errors.Is(err, rubicon.ErrStalled) || errors.Is(err, rubicon.ErrInterrupted) || at != when {
				t.Errorf("told %v after %v", err, at)
			}
			if h.op.Outcome() != rubicon.Incomplete || h.op.Err(nil) != nil {
				t.Errorf("outcome %v, %v", h.op.Outcome(), h.op.Err(nil))
			}
			h.checkSticks(t, err)
		})
	}
}

// TestStallCanceled: a context that ends during a silence is the reason, and a
// limit that was reached before stays one.
func TestStallCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, when := range []time.Duration{tick, limit - tick} {
			ctx, cancel := context.WithTimeout(t.Context(), when)
			defer cancel()
			h := hear(t, ctx, http.MethodPost, rubicon.Stall{Bytes: limit, Progress: limit}, timed{pieces: []piece{{0, claudeStart}}})
			_, at, err := h.rest()
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, rubicon.ErrInterrupted) || errors.Is(err, rubicon.ErrStalled) || at != when {
				t.Errorf("told %v after %v", err, at)
			}
			time.Sleep(100 * limit)
			if n := h.body.closes.Load(); n != 0 {
				t.Errorf("a limit closed the body after the end, %d times", n)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), limit+tick)
		defer cancel()
		h := hear(t, ctx, http.MethodPost, rubicon.Stall{Bytes: limit}, timed{})
		_, _, err := h.rest()
		time.Sleep(tick)
		h.checkStalled(t, err)
	})
}

// TestStallHead: the limit on the head ends an attempt of that moment, and
// neither a call nor what comes at once.
func TestStallHead(t *testing.T) {
	limits := rubicon.Stall{Head: limit}
	for _, test := range []struct {
		name, method string
		takes        time.Duration // the head, from the start of each attempt
		heeds        bool          // the base ends when its context does
		attempts     int
		want         error
	}{
		{"early", http.MethodPost, limit - tick, true, 1, nil},
		{"late", http.MethodPost, limit + tick, true, 1, rubicon.ErrStalled},
		{"late, all the same", http.MethodPost, limit + tick, false, 1, rubicon.ErrStalled},
		{"early, safe", http.MethodGet, limit - tick, true, 1, nil},
		{"late, safe", http.MethodGet, limit + tick, true, 3, rubicon.ErrStalled},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var attempts, closed int
				base := roundTripper(func(req *http.Request) (*http.Response, error) {
					attempts++
					timer := time.NewTimer(test.takes)
					defer timer.Stop()
					done := req.Context().Done()
					if !test.heeds {
						done = nil
					}
					select {
					case <-timer.C:
					case <-done:
						return nil, context.Cause(req.Context())
					}
					res := response(req, 200, http.Header{}, "ok")
					res.Body = closing{res.Body, func() { closed++ }}
					return res, nil
				})
				tr := &rubicon.Transport{Base: base, Stall: limits, Backoff: quick, Budget: rubicon.Budget{Attempts: 3}}
				begun := time.Now()
				got := send(t.Context(), tr, test.method, "http://api.test/", "")
				if test.want == nil {
					check(t, got, 200, nil)
					return
				}
				check(t, got, 0, rubicon.ErrStalled)
				if attempts != test.attempts {
					t.Errorf("%d attempts, want %d", attempts, test.attempts)
				}
				if test.method == http.MethodPost && !errors.Is(got.err, rubicon.ErrAmbiguous) {
					t.Errorf("told %v", got.err)
				}
				each, late := limit, 0
				if !test.heeds {
					each, late = test.takes, 1
				}
				waits := time.Duration(attempts-1) * time.Millisecond
				if took := time.Since(begun) - waits; took != time.Duration(attempts)*each {
					t.Errorf("%d attempts took %v, want %v each", attempts, took, each)
				}
				if closed != late {
					t.Errorf("the bodies of %d heads that came too late: %d closed", late, closed)
				}
			})
		})
	}
}

// A closing body tells of its Close.
type closing struct {
	io.ReadCloser
	told func()
}

// Close implements [io.Closer].
func (c closing) Close() error {
	c.told()
	return c.ReadCloser.Close()
}

// TestStallOnTheWire: a stalled HTTP/1.1 answer takes its connection with it; a
// stalled HTTP/2 stream is reset, and its sibling on the same connection lives.
func TestStallOnTheWire(t *testing.T) {
	w := newWire(t)
	t.Run("h1", func(t *testing.T) {
		tr := &rubicon.Transport{Base: w.transport(t, w.h1), Stall: rubicon.Stall{Bytes: 50 * time.Millisecond}}
		w.stalls(t, tr, w.h1.URL)
		check(t, send(t.Context(), tr, http.MethodGet, w.h1.URL+"/ok", ""), 200, nil)
		if a, b := <-w.from, <-w.from; a == b {
			t.Errorf("the connection %s was used again after a stall", a)
		}
	})
	t.Run("h2", func(t *testing.T) {
		base := w.transport(t, w.h2)
		tr := &rubicon.Transport{Base: base, Stall: rubicon.Stall{Bytes: 50 * time.Millisecond}}
		patient := &rubicon.Transport{Base: base}
		sibling, err := patient.RoundTrip(w.request(t, w.h2.URL+"/sibling"))
		if err != nil {
			t.Fatal(err)
		}
		defer sibling.Body.Close()
		w.stalls(t, tr, w.h2.URL)
		close(w.release)
		got, err := io.ReadAll(sibling.Body)
		if string(got) != claudeWhole || err != nil {
			t.Errorf("the sibling: %q, %v", got, err)
		}
		check(t, send(t.Context(), tr, http.MethodGet, w.h2.URL+"/ok", ""), 200, nil)
		if a, b, c := <-w.from, <-w.from, <-w.from; a != b || b != c {
			t.Errorf("connections %s, %s, %s: want one", a, b, c)
		}
	})
}

// A wire is a server for both protocols that is silent in the middle of a
// stream, and sees when its client has gone.
type wire struct {
	h1, h2  *httptest.Server
	from    chan string   // the client's address, of each request
	gone    chan struct{} // the client of a silent stream has gone
	release chan struct{} // ends the silence of the sibling
}

// newWire starts one.
func newWire(t *testing.T) *wire {
	w := &wire{from: make(chan string, 9), gone: make(chan struct{}, 9), release: make(chan struct{})}
	w.h1 = httptest.NewServer(w)
	t.Cleanup(w.h1.Close)
	w.h2 = httptest.NewUnstartedServer(w)
	w.h2.EnableHTTP2 = true
	w.h2.StartTLS()
	t.Cleanup(w.h2.Close)
	return w
}

// ServeHTTP implements [http.Handler].
func (w *wire) ServeHTTP(res http.ResponseWriter, req *http.Request) {
	w.from <- req.RemoteAddr
	if req.URL.Path == "/ok" {
		return
	}
	res.Header().Set("Content-Type", "text/event-stream")
	io.WriteString(res, claudeStart)
	http.NewResponseController(res).Flush()
	if req.URL.Path == "/sibling" {
		<-w.release
		io.WriteString(res, claudeText+claudeDelta+claudeStop)
		return
	}
	<-req.Context().Done()
	w.gone <- struct{}{}
}

// transport returns a base for s of its own.
func (w *wire) transport(t *testing.T, s *httptest.Server) *http.Transport {
	base := s.Client().Transport.(*http.Transport).Clone()
	t.Cleanup(base.CloseIdleConnections)
	return base
}

// request returns a request for a stream.
func (w *wire) request(t *testing.T, url string) *http.Request {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// stalls fails unless the silent stream at url ends as stalled, and the server
// sees that before the reader closes the body.
func (w *wire) stalls(t *testing.T, tr *rubicon.Transport, url string) {
	t.Helper()
	res, err := tr.RoundTrip(w.request(t, url+"/silent"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if string(got) != claudeStart || !errors.Is(err, rubicon.ErrStalled) {
		t.Errorf("told %q, %v", got, err)
	}
	<-w.gone
}
