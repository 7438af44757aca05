package rubicontest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rubicon-go/rubicon/rubicontest"
)

// What holds for every protocol.
func TestFaults(t *testing.T) {
	// net.ErrClosed: the client was still writing when it read the end.
	gone := []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed}
	cut := []error{io.ErrUnexpectedEOF, syscall.ECONNRESET}
	now := make(chan struct{})
	close(now)
	for _, p := range protocols {
		play(t, p, []faultTest{
			{rubicontest.Read(), answers(200, "ok\n"), 0, false},
			{rubicontest.Act(), answers(200, "ok\n"), 1, false},
			{rubicontest.Act().Act(), answers(200, "ok\n"), 2, false},
			{rubicontest.Read().Wait(time.Millisecond).Act(), answers(200, "ok\n"), 1, false},
			{rubicontest.Act().Until(now).Answer(201, "made"), answers(201, "made"), 1, false},
			{rubicontest.ReadBody(2).Act(), answers(200, "ok\n"), 1, false},
			{rubicontest.ReadHeader().Answer(413, "no"), answers(413, "no"), 0, false},
			{rubicontest.ReadHeader().Answer(413, "no").Drain(), answers(413, "no"), 0, false},
			{rubicontest.Act().Answer(204, ""), answers(204, ""), 1, false},
			{rubicontest.Act().Answer(200, "").Header("Connection", "close"), answers(200, ""), 1, false},
			{rubicontest.Act().Inform(103).Answer(200, "x"), answers(200, "x"), 1, false},
			{rubicontest.Act().Stream("a", "", "b").Pace(time.Millisecond), answers(200, "ab"), 1, false},
			{rubicontest.Act().Answer(200, "ab").Chunked(), answers(200, "ab"), 1, false},
			{rubicontest.Act().Answer(503, "busy").Close(), answers(503, "busy"), 1, false},
			{rubicontest.Act().Stream("ab", "cd").Cut(3).End(), answers(200, "abc"), 1, false},
			{rubicontest.Act().Answer(200, "abcd").Cut(3).End(), breaks(200, "abc", io.ErrUnexpectedEOF), 1, false},
			{rubicontest.Act().Stream("ab", "cd").Cut(3), breaks(200, "abc", cut...), 1, false},
			{rubicontest.Act().Stream("ab", "cd").Cut(3).Close(), breaks(200, "abc", cut...), 1, false},
			{rubicontest.Act().Stream("ab").Cut(99).Close(), breaks(200, "ab", cut...), 1, false},
			{rubicontest.Act().Answer(200, "abcd").Cut(0).Close(), breaks(200, "", cut...), 1, false},
			{rubicontest.Act().Close(), fails(gone...), 1, false},
			{rubicontest.Act().Reset(), fails(gone...), 1, false},
			{rubicontest.Read().Close(), fails(gone...), 0, false},
			{rubicontest.ReadHeader().Close(), fails(gone...), 0, false},
			{rubicontest.ReadHeader().Act().Reset(), fails(gone...), 1, false},
			{rubicontest.Act().CloseListener().Close(), fails(gone...), 1, false},
			{rubicontest.Act().Raw("nonsense\r\n\r\n").Close(), func(r reply) string {
				if r.err == nil {
					return "want an error"
				}
				return ""
			}, 1, false},
		})
	}
}

func TestFaultsHTTP1(t *testing.T) {
	for _, p := range []rubicontest.Protocol{rubicontest.H1, rubicontest.H1TLS} {
		play(t, p, []faultTest{
			{rubicontest.Act().Close(), fails(io.EOF, net.ErrClosed), 1, false},
			{rubicontest.Act().Reset(), fails(syscall.ECONNRESET, net.ErrClosed), 1, false},
			{rubicontest.Unread().Close(), fails(io.EOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed), 0, true},
			{rubicontest.Unread().Reset(), fails(syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed), 0, true},
			{rubicontest.Act().Raw("nonsense\r\n\r\n"), failsWith("malformed HTTP"), 1, false},
			{rubicontest.Act().Raw("HTTP/1.1 2"), failsWith("malformed HTTP status code"), 1, false},
			{rubicontest.Act().Inform(103).Close(), fails(io.ErrUnexpectedEOF, io.EOF), 1, false},
			{rubicontest.Act().Answer(200, "abcd").UntilClose(), answers(200, "abcd"), 1, false},
			{rubicontest.Act().Answer(200, "abcd").UntilClose().Cut(2), answers(200, "ab"), 1, false},
			{rubicontest.Act().Answer(200, "abcd").Cut(2).End(), breaks(200, "ab", io.ErrUnexpectedEOF), 1, false},
		})
	}
}

// What was left unread of a body is never taken for another request.
func TestUnreadBodyIsNoRequest(t *testing.T) {
	for _, p := range protocols {
		s := start(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{rubicontest.ReadHeader().Answer(413, "no"), {}}})
		req := request(t, patient(t), "POST", s.URL, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		req.ContentLength = 27
		if r := send(s.Transport(), req); r.status != 413 {
			t.Errorf("%v: got %d, %v; want 413", p, r.status, r.err)
		}
		s.Close()
		wantCounts(t, s, 1, 0)
	}
}

// A request may be answered without being read, as an impatient server does.
func TestUnreadAnswer(t *testing.T) {
	for _, p := range protocols[:2] {
		s := start(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{rubicontest.Unread().Answer(408, "slow")}})
		r := send(s.Transport(), request(t, patient(t), "GET", s.URL, ""))
		if wrong := answers(408, "slow")(r); wrong != "" {
			t.Errorf("%v: got %d %q, %v; %s", p, r.status, r.body, r.err, wrong)
		}
		wantCounts(t, s, 0, 0)
	}
}

// A reset that comes after part of the answer was read.
func TestCutByReset(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.String(), func(t *testing.T) {
			read := make(chan struct{})
			s := start(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{
				rubicontest.Act().Stream("ab", "cd").Cut(3).Until(read).Reset(),
			}})
			res, err := s.Transport().RoundTrip(request(t, patient(t), "POST", s.URL, "x"))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			var got [3]byte
			if _, err := io.ReadFull(res.Body, got[:]); err != nil {
				t.Fatal(err)
			}
			close(read)
			_, err = io.ReadAll(res.Body)
			if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("got %q, then %v; want a reset", got, err)
			}
		})
	}
}

// A stall lasts until the client loses patience, and then no longer.
func TestStall(t *testing.T) {
	for _, p := range protocols {
		for _, f := range []rubicontest.Fault{
			rubicontest.Act().Stall(),
			rubicontest.Act().Answer(200, "abc").Cut(0).Stall(),
			rubicontest.Act().Answer(200, "abc").Cut(2).Stall(),
			rubicontest.Act().Answer(200, "abc").Stall(),
		} {
			t.Run(p.String()+"/"+f.String(), func(t *testing.T) {
				s := start(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{f}})
				ctx, cancel := context.WithCancel(patient(t))
				defer cancel()
				req := request(t, ctx, "POST", s.URL, "x")
				done := make(chan reply)
				go func() { done <- send(s.Transport(), req) }()
				await(t, s, func(c rubicontest.Counts) bool { return c.Effects == 1 })
				if strings.HasSuffix(f.String(), "200, stall") {
					wantWhole(t, <-done)
				} else {
					cancel()
					if r := <-done; !errors.Is(r.err, context.Canceled) {
						t.Errorf("got %d %q, %v; want cancellation", r.status, r.body, r.err)
					}
					await(t, s, func(c rubicontest.Counts) bool { return c.Played == 1 })
				}
			})
		}
	}
}

// wantWhole fails the test unless r is the whole answer of TestStall.
func wantWhole(t *testing.T, r reply) {
	t.Helper()
	if r.status != 200 || r.body != "abc" || r.err != nil {
		t.Errorf("got %d %q, %v; want the whole answer", r.status, r.body, r.err)
	}
}
