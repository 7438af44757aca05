package rubicontest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/net/http2"

	"github.com/rubicon-go/rubicon/rubicontest"
)

func TestFaultsHTTP2(t *testing.T) {
	dead := fails(io.ErrUnexpectedEOF, io.EOF, syscall.ECONNRESET)
	play(t, rubicontest.H2, []faultTest{
		{rubicontest.Act().ResetStream(http2.ErrCodeInternal), resets(0, http2.ErrCodeInternal), 1, false},
		{rubicontest.Act().ResetStream(http2.ErrCodeCancel), resets(0, http2.ErrCodeCancel), 1, false},
		{rubicontest.Read().ResetStream(http2.ErrCodeEnhanceYourCalm), resets(0, http2.ErrCodeEnhanceYourCalm), 0, false},
		// The body can't be sent again, so that net/http gives up with a text.
		{rubicontest.Read().RefuseStream(), failsWith("REFUSED_STREAM; received from peer"), 0, false},
		{rubicontest.Act().ResetStream(http2.ErrCodeProtocol), failsWith("PROTOCOL_ERROR; received from peer"), 1, false},
		{rubicontest.Read().GoAwayBelow(http2.ErrCodeNo), failsWith("graceful shutdown GOAWAY"), 0, false},
		{rubicontest.Read().GoAwayBelow(http2.ErrCodeInternal), failsWith("received GOAWAY from server ErrCode:INTERNAL_ERROR"), 0, false},
		{rubicontest.Act().GoAwayAbove(http2.ErrCodeNo).Close(), failsWith("GOAWAY"), 1, false},
		{rubicontest.Act().GoAwayAbove(http2.ErrCodeNo).Answer(200, "last"), answers(200, "last"), 1, false},
		{rubicontest.Act().Answer(200, "abcd").Cut(2).ResetStream(http2.ErrCodeInternal), resets(200, http2.ErrCodeInternal), 1, false},
		{rubicontest.Act().Stream("ab", "cd").Cut(2).ResetStream(http2.ErrCodeNo), resets(200, http2.ErrCodeNo), 1, false},
		{rubicontest.Act().Answer(200, "abcd").Cut(2).GoAwayAbove(http2.ErrCodeNo).Close(), func(r reply) string {
			if r.status != 200 || r.body != "ab" || r.err == nil {
				return "want part of the body and an error"
			}
			return ""
		}, 1, false},
		{rubicontest.ReadBody(2).ResetStream(http2.ErrCodeCancel), resets(0, http2.ErrCodeCancel), 0, false},
		{rubicontest.Act().Reset(), dead, 1, false},
	})
}

// Requests that net/http can send again are sent again, each time as a request
// of its own: REFUSED_STREAM and GOAWAY once, then an answer.
func TestRefusedOnce(t *testing.T) {
	for _, f := range []rubicontest.Fault{
		rubicontest.Read().RefuseStream(),
		rubicontest.Act().ResetStream(http2.ErrCodeProtocol), // Go 1.26: an effect twice
		rubicontest.Read().GoAwayBelow(http2.ErrCodeNo),
	} {
		t.Run(f.String(), func(t *testing.T) {
			s := start(t, rubicontest.Config{Protocol: rubicontest.H2, Script: []rubicontest.Fault{f, rubicontest.Act()}})
			req := request(t, patient(t), "POST", s.URL, "hello")
			req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("hello")), nil }
			r := send(s.Transport(), req)
			switch {
			case f.String() == "act, RST_STREAM PROTOCOL_ERROR" && r.err != nil: // from Go 1.27 on
				wantCounts(t, s, 1, 1)
			case strings.HasPrefix(f.String(), "act"):
				wantOK(t, r)
				wantCounts(t, s, 2, 2)
			default:
				wantOK(t, r)
				wantCounts(t, s, 2, 1)
			}
		})
	}
}

// A stream reset in the middle of an upload leaves its siblings alone.
func TestResetUploadOnly(t *testing.T) {
	held := make(chan struct{})
	s := start(t, rubicontest.Config{
		Protocol: rubicontest.H2,
		Choose: func(r rubicontest.Request) rubicontest.Fault {
			if r.Path == "/upload" {
				return rubicontest.ReadBody(100_000).ResetStream(http2.ErrCodeInternal)
			}
			return rubicontest.Act().Until(held)
		},
	})
	tr := s.Transport()
	sibling := make(chan reply)
	go func() { sibling <- send(tr, request(t, patient(t), "POST", s.URL+"/sibling", "x")) }()
	await(t, s, func(c rubicontest.Counts) bool { return c.Effects == 1 })
	r := send(tr, request(t, patient(t), "POST", s.URL+"/upload", strings.Repeat("x", 4<<20)))
	if wrong := resets(0, http2.ErrCodeInternal)(r); wrong != "" {
		t.Errorf("got %d, %v; %s", r.status, r.err, wrong)
	}
	close(held)
	wantOK(t, <-sibling)
	if n := s.Connections(); n != 1 {
		t.Errorf("%d connections; want 1", n)
	}
	if got := s.Received()[1].Length; got != 100_000 {
		t.Errorf("%d bytes were read; want 100,000", got)
	}
}

// A dead connection: the server acts and is silent from then on; new
// connections work.
func TestFreezeConnection(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.String(), func(t *testing.T) {
			s := start(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{rubicontest.Act().Freeze(), {}}})
			ctx, cancel := context.WithCancel(patient(t))
			defer cancel()
			tr := s.Transport()
			done := make(chan reply)
			go func() { done <- send(tr, request(t, ctx, "POST", s.URL, "x")) }()
			await(t, s, func(c rubicontest.Counts) bool { return c.Effects == 1 })
			wantOK(t, post(t, s.Transport(), s.URL))
			cancel()
			if r := <-done; !errors.Is(r.err, context.Canceled) {
				t.Errorf("got %d, %v; want silence until the cancel", r.status, r.err)
			}
			wantCounts(t, s, 2, 2)
		})
	}
}

// Pings are not answered on a dead HTTP/2 connection, but are on one whose
// stream stalls.
func TestPing(t *testing.T) {
	for _, f := range []rubicontest.Fault{rubicontest.Act().Freeze(), rubicontest.Act().Wait(300 * 1e6)} {
		s := start(t, rubicontest.Config{Protocol: rubicontest.H2, Script: []rubicontest.Fault{f}})
		tr := s.Transport()
		tr.HTTP2 = &http.HTTP2Config{SendPingTimeout: 20 * 1e6, PingTimeout: 100 * 1e6}
		r := post(t, tr, s.URL)
		if f.String() == "act, freeze" {
			if wrong := failsWith("client connection lost")(r); wrong != "" {
				t.Errorf("got %d, %v; %s", r.status, r.err, wrong)
			}
		} else {
			wantOK(t, r)
		}
		wantCounts(t, s, 1, 1)
	}
}

// SETTINGS_MAX_CONCURRENT_STREAMS is obeyed by a client that knows of it, and
// enforced against one that does not yet.
func TestMaxStreams(t *testing.T) {
	s := start(t, rubicontest.Config{Protocol: rubicontest.H2, MaxStreams: 1})
	tr := s.Transport()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			req := request(t, patient(t), "POST", s.URL, "hello")
			req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("hello")), nil }
			if r := send(tr, req); r.status != 200 {
				t.Errorf("got %d, %v", r.status, r.err)
			}
		})
	}
	all.Wait()
	if s.Effects() != 4 {
		t.Errorf("%d effects; want 4", s.Effects())
	}

	seen := make(chan int, 1)
	none := start(t, rubicontest.Config{
		Protocol: rubicontest.H2, MaxStreams: -1,
		Seen: func(r rubicontest.Request) { seen <- r.N },
	})
	r := post(t, none.Transport(), none.URL)
	if wrong := failsWith("REFUSED_STREAM")(r); wrong != "" {
		t.Errorf("got %d, %v; %s", r.status, r.err, wrong)
	}
	wantCounts(t, none, 1, 0)
	if n := <-seen; n != 1 {
		t.Errorf("told of request %d; want 1, refused or not", n)
	}
}

// O27: one request a connection; others on it are refused, and go elsewhere if
// they can be sent again.
func TestStreamsPerConn(t *testing.T) {
	held := make(chan struct{})
	s := start(t, rubicontest.Config{
		Protocol: rubicontest.H2, StreamsPerConn: 1, Script: []rubicontest.Fault{rubicontest.Act().Until(held), {}},
	})
	tr := s.Transport()
	first := make(chan reply)
	go func() { first <- send(tr, request(t, patient(t), "POST", s.URL, "x")) }()
	await(t, s, func(c rubicontest.Counts) bool { return c.Effects == 1 })
	if r := post(t, tr, s.URL); r.err == nil || !strings.Contains(r.err.Error(), "GOAWAY") {
		t.Errorf("got %d, %v; want a refusal", r.status, r.err)
	}
	wantCounts(t, s, 2, 1)
	wantOK(t, post(t, tr, s.URL))
	close(held)
	wantOK(t, <-first)
	wantCounts(t, s, 3, 2)
}

// A GOAWAY says the truth about other streams: what it excludes is not acted
// upon, and it does not exclude what was.
func TestGoAwaySiblings(t *testing.T) {
	for _, acts := range []string{"acts before", "would act after"} {
		t.Run(acts, func(t *testing.T) {
			told, acted := make(chan struct{}), make(chan struct{})
			sibling := rubicontest.Act().Until(told)
			if acts == "would act after" {
				sibling = rubicontest.Read().Until(told).Act()
			}
			s := start(t, rubicontest.Config{
				Protocol: rubicontest.H2,
				Script:   []rubicontest.Fault{rubicontest.Read().Until(acted).GoAwayBelow(http2.ErrCodeNo), sibling},
			})
			tr := s.Transport()
			replies := [2]chan reply{make(chan reply, 1), make(chan reply, 1)}
			for i, c := range replies {
				go func() { c <- send(tr, request(t, patient(t), "POST", s.URL, "x")) }()
				await(t, s, func(c rubicontest.Counts) bool { return c.Complete == i+1 })
			}
			if acts == "acts before" {
				await(t, s, func(c rubicontest.Counts) bool { return c.Effects == 1 })
			}
			close(acted)
			if acts == "acts before" {
				// With this, the client has the GOAWAY too.
				if r := <-replies[0]; r.err == nil || !strings.Contains(r.err.Error(), "REFUSED_STREAM") {
					t.Errorf("got %d, %v; want a refusal", r.status, r.err)
				}
				close(told)
				wantOK(t, <-replies[1])
				wantCounts(t, s, 2, 1)
				return
			}
			for _, c := range replies {
				if r := <-c; r.err == nil || !strings.Contains(r.err.Error(), "GOAWAY") {
					t.Errorf("got %d, %v; want GOAWAY", r.status, r.err)
				}
			}
			close(told)
			await(t, s, func(c rubicontest.Counts) bool { return c.Played == 2 })
			wantCounts(t, s, 2, 0)
		})
	}
}

// Header blocks and answers larger than a frame or a window arrive whole.
func TestLarge(t *testing.T) {
	long := strings.Repeat("v", 50_000)
	body := strings.Repeat("b", 3<<20)
	for _, p := range protocols {
		t.Run(p.String(), func(t *testing.T) {
			s := start(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{
				rubicontest.Act().Answer(200, body).Header("X-Long", long),
			}})
			req := request(t, patient(t), "POST", s.URL, body)
			req.Header.Set("X-Long", long)
			r := send(s.Transport(), req)
			if r.err != nil || r.body != body || r.header.Get("X-Long") != long {
				t.Errorf("got %d bytes, header of %d, %v", len(r.body), len(r.header.Get("X-Long")), r.err)
			}
			got := s.Received()[0]
			if got.Length != int64(len(body)) || got.Header.Get("X-Long") != long {
				t.Errorf("server got %d bytes, header of %d", got.Length, len(got.Header.Get("X-Long")))
			}
		})
	}
}
