package rubicon_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// noise returns n bytes that no two offsets share.
func noise(n int) []byte {
	r := rand.NewChaCha8([32]byte{1})
	b := make([]byte, n)
	r.Read(b)
	return b
}

// uploads are the kinds of request bodies that callers make.
var uploads = []struct {
	name string
	body func(t *testing.T, req *http.Request, b []byte)
}{
	{"snapshot", func(t *testing.T, req *http.Request, b []byte) {
		other, _ := http.NewRequest(req.Method, req.URL.String(), bytes.NewReader(b))
		req.Body, req.GetBody, req.ContentLength = other.Body, other.GetBody, other.ContentLength
	}},
	{"opaque", func(t *testing.T, req *http.Request, b []byte) {
		fresh := func() (io.ReadCloser, error) { return io.NopCloser(opaque{bytes.NewReader(b)}), nil }
		req.Body, _ = fresh()
		req.GetBody, req.ContentLength = fresh, int64(len(b))
	}},
	// The Azure SDK's GetBody, and OpenAI's for a caller's own reader, return
	// the very reader that is the body.
	{"the same reader", func(t *testing.T, req *http.Request, b []byte) {
		r := bytes.NewReader(b)
		req.Body, req.ContentLength = io.NopCloser(r), int64(len(b))
		req.GetBody = func() (io.ReadCloser, error) {
			_, err := r.Seek(0, io.SeekStart)
			return io.NopCloser(r), err
		}
	}},
	{"file", func(t *testing.T, req *http.Request, b []byte) {
		name := filepath.Join(t.TempDir(), "upload")
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		fresh := func() (io.ReadCloser, error) { return os.Open(name) }
		req.Body, _ = fresh()
		req.GetBody, req.ContentLength = fresh, int64(len(b))
	}},
	{"rewindable", func(t *testing.T, req *http.Request, b []byte) {
		req.Body, req.ContentLength = rubicon.Rewindable(opaque{bytes.NewReader(b)}, 16<<20), int64(len(b))
	}},
}

// opaque hides the type of a reader.
type opaque struct{ io.Reader }

// TestO28EarlyRefusal: a server that refuses an upload before it has read it
// gets the whole body on the next attempt, whoever still reads the first one.
func TestO28EarlyRefusal(t *testing.T) {
	body := noise(2 << 20)
	want := sha256.Sum256(body)
	both(t, func(t *testing.T, p rubicontest.Protocol) {
		for _, upload := range uploads {
			t.Run(upload.name, func(t *testing.T) {
				for range 10 {
					s, tr := start(t, p,
						rubicontest.ReadHeader().Answer(429, "early").Drain(),
						rubicontest.Act().Answer(200, "ok"))
					req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, nil)
					upload.body(t, req, body)
					check(t, sendRequest(tr, req), 200, nil)
					got := s.Received()
					if last := got[len(got)-1]; len(got) != 2 || last.Sum != want || last.Length != int64(len(body)) {
						t.Fatalf("%d requests, the last with %d bytes, not the whole body", len(got), last.Length)
					}
					s.Close()
				}
			})
		}
	})
}

// TestEarlyAnswer: an answer that comes while the upload is running is the
// caller's, and ends the upload.
func TestEarlyAnswer(t *testing.T) {
	body := noise(8 << 20)
	both(t, func(t *testing.T, p rubicontest.Protocol) {
		for _, status := range []int{413, 401} {
			for _, upload := range uploads {
				s, tr := start(t, p, rubicontest.ReadHeader().Answer(status, "early").Drain())
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, nil)
				upload.body(t, req, body)
				check(t, sendRequest(tr, req), status, nil)
				wantCounts(t, s, 1, 0)
			}
		}
	})
}

// TestPipeBody: a body that never ends does not keep a call from ending.
func TestPipeBody(t *testing.T) {
	both(t, func(t *testing.T, p rubicontest.Protocol) {
		s, tr := start(t, p, rubicontest.ReadHeader().Answer(413, "early"))
		r, w := io.Pipe()
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, r)
		got := sendRequest(tr, req)
		if got.status != 413 && got.err == nil {
			t.Errorf("told %d %v", got.status, got.err)
		}
		if _, err := w.Write([]byte("x")); err == nil {
			_, err = w.Write(make([]byte, 1<<20))
			if err == nil {
				t.Error("the pipe's reader was left open")
			}
		}

		// A head limit ends it too, where no answer comes.
		s, tr = start(t, p, rubicontest.ReadHeader().Stall())
		tr.Stall.Head = 200 * time.Millisecond
		r, w = io.Pipe()
		req, _ = http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, rubicon.Rewindable(r, 1<<10))
		if p == rubicontest.H1 {
			time.AfterFunc(400*time.Millisecond, func() { w.Close() }) // net/http waits for the Read
		}
		check(t, sendRequest(tr, req), 0, rubicon.ErrStalled)
		if _, err := w.Write([]byte("x")); err == nil {
			t.Error("the pipe's reader was left open")
		}
	})
}

// TestOneConnection: a further attempt does not wait for a connection that the
// answer before it holds.
func TestOneConnection(t *testing.T) {
	s, tr := start(t, rubicontest.H1,
		rubicontest.Read().Answer(429, strings.Repeat("x", 10<<10)), rubicontest.Act().Answer(200, "ok"))
	tr.Base.(*http.Transport).MaxConnsPerHost = 1
	check(t, send(t.Context(), tr, http.MethodPost, s.URL, "{}"), 200, nil)
	if n := s.Connections(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// TestNotRewindable: a request that could be sent again but for its body says
// so, and an answer that came is returned.
func TestNotRewindable(t *testing.T) {
	r := rubicontest.NewRefused()
	defer r.Close()
	req, _ := http.NewRequest(http.MethodPost, r.URL, opaque{strings.NewReader("{}")})
	got := sendRequest(&rubicon.Transport{Backoff: quick}, req)
	check(t, got, 0, rubicon.ErrNotRewindable)
	if e, ok := errors.AsType[*rubicon.Error](got.err); !ok || e.Outcome != rubicon.Unsent || e.Attempts != 1 {
		t.Errorf("told %v", got.err)
	}

	s, tr := start(t, rubicontest.H1, rubicontest.Read().Answer(429, "slow"))
	req, _ = http.NewRequest(http.MethodPost, s.URL, opaque{strings.NewReader("{}")})
	check(t, sendRequest(tr, req), 429, nil)
	wantCounts(t, s, 1, 0)

	failing := errors.New("gone")
	req, _ = http.NewRequest(http.MethodPost, r.URL, strings.NewReader("{}"))
	req.GetBody = func() (io.ReadCloser, error) { return nil, failing }
	check(t, sendRequest(&rubicon.Transport{Backoff: quick}, req), 0, rubicon.ErrNotRewindable)
}

// TestRewindable: what has passed is kept up to a limit, what is longer passes
// unharmed, and the source is closed once.
func TestRewindable(t *testing.T) {
	for _, size := range []int{0, 1, 1000, 1001, 1 << 20} {
		for _, fault := range []rubicontest.Fault{rubicontest.Read().Answer(429, ""), rubicontest.Act().Answer(200, "ok")} {
			body := noise(size)
			s, tr := start(t, rubicontest.H1, fault, rubicontest.Act().Answer(200, "ok"))
			src := &closeCounter{Reader: bytes.NewReader(body)}
			req, _ := http.NewRequest(http.MethodPost, s.URL, rubicon.Rewindable(src, 1000))
			got := sendRequest(tr, req)
			want := 200
			if size > 1000 && fault.String() != rubicontest.Act().Answer(200, "ok").String() {
				want = 429
			}
			check(t, got, want, nil)
			received := s.Received()
			if last := received[len(received)-1]; last.Sum != sha256.Sum256(body) {
				t.Errorf("%d bytes, %v: the server read %d others", size, fault, last.Length)
			}
			s.Close() // and with it what the writer still does
			if n := src.closed.Load(); n != 1 {
				t.Errorf("%d bytes, %v: source closed %d times", size, fault, n)
			}
		}
	}
}

// TestNothingIsHeld: an upload is not copied, whatever its body can do.
func TestNothingIsHeld(t *testing.T) {
	const size = 10 << 20
	for _, kind := range []string{"standard", "seekable", "one-shot"} {
		var read atomic.Int64
		tr := &rubicon.Transport{Base: roundTripper(func(req *http.Request) (*http.Response, error) {
			n, _ := io.Copy(io.Discard, req.Body)
			read.Add(n)
			req.Body.Close()
			return response(&http.Request{}, 200, http.Header{}, "ok"), nil
		})}
		req, _ := http.NewRequest(http.MethodPost, "http://api.test/", nil)
		payload := zeros(size)
		switch kind {
		case "standard":
			other, _ := http.NewRequest(http.MethodPost, "http://api.test/", bytes.NewReader(make([]byte, size)))
			req.Body, req.GetBody = other.Body, other.GetBody
		case "seekable":
			req.Body = io.NopCloser(struct{ io.ReadSeeker }{bytes.NewReader(make([]byte, size))})
		default:
			req.Body = io.NopCloser(payload)
		}
		bytes := allocatedBytes(func() { check(t, sendRequest(tr, req), 200, nil) })
		if read.Load() != size || bytes > 256<<10 {
			t.Errorf("%s: %d bytes read, %d bytes allocated", kind, read.Load(), bytes)
		}
	}
}

// zeros returns a reader of n zeros that can't be rewound.
func zeros(n int64) io.Reader { return io.LimitReader(zeroReader{}, n) }

type zeroReader struct{}

// Read implements [io.Reader].
func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestCutOff: after an attempt is over nobody reads its body, even where
// net/http's HTTP/2 client would: it returns on the end of a context while its
// writer is in a Read, and reads on after that.
func TestCutOff(t *testing.T) {
	for range 5 {
		s, tr := start(t, rubicontest.H2, rubicontest.ReadHeader().Drain().Stall(), rubicontest.Act().Answer(200, "ok"))
		tr.Stall.Head = 100 * time.Millisecond
		tr.Trace = &rubicon.Trace{AttemptStart: func(_ context.Context, a rubicon.AttemptInfo) {
			if a.N == 2 {
				tr.Stall.Head = 0
			}
		}}
		var made, current, late atomic.Int32
		fresh := func() (io.ReadCloser, error) {
			n := made.Add(1)
			current.Store(n)
			g := &generation{n: n, current: &current, late: &late, Reader: io.LimitReader(zeroReader{}, 64<<10)}
			if n == 1 {
				g.slow = 30 * time.Millisecond
			}
			return g, nil
		}
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL, nil)
		req.Body, _ = fresh()
		req.GetBody, req.ContentLength = fresh, 64<<10
		check(t, sendRequest(tr, req), 200, nil)
		s.Close()
		if n := late.Load(); n > 0 {
			t.Errorf("%d reads of a body after the next was made", n)
		}
	}
}

// A generation is a body that counts reads of it after a newer one was made.
type generation struct {
	io.Reader
	n             int32
	slow          time.Duration
	current, late *atomic.Int32
}

// Read implements [io.Reader].
func (g *generation) Read(p []byte) (int, error) {
	time.Sleep(g.slow)
	defer func() {
		if g.current.Load() != g.n {
			g.late.Add(1)
		}
	}()
	return g.Reader.Read(p[:min(len(p), 1<<10)])
}

// Close implements [io.Closer].
func (g *generation) Close() error { return nil }
