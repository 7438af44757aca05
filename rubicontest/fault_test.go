package rubicontest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/rubicon-go/rubicon/rubicontest"
)

// A verdict says what is wrong with a reply; "" if nothing is.
type verdict func(reply) string

// answers wants a whole answer.
func answers(status int, body string) verdict {
	return func(r reply) string {
		if r.status != status || r.body != body || r.err != nil {
			return fmt.Sprintf("want %d %q", status, body)
		}
		return ""
	}
}

// fails wants RoundTrip to fail with one of the errors.
func fails(targets ...error) verdict {
	return func(r reply) string {
		for _, target := range targets {
			if r.status == 0 && errors.Is(r.err, target) {
				return ""
			}
		}
		return fmt.Sprintf("want one of %v", targets)
	}
}

// failsWith wants RoundTrip to fail with a text.
func failsWith(text string) verdict {
	return func(r reply) string {
		if r.status != 0 || r.err == nil || !strings.Contains(r.err.Error(), text) {
			return "want an error with " + text
		}
		return ""
	}
}

// breaks wants an answer whose body breaks off after body.
func breaks(status int, body string, targets ...error) verdict {
	return func(r reply) string {
		for _, target := range targets {
			if r.status == status && r.body == body && errors.Is(r.err, target) {
				return ""
			}
		}
		return fmt.Sprintf("want %d %q, then one of %v", status, body, targets)
	}
}

// resets wants the stream to be reset by the peer with code, in the body if
// status isn't 0.
func resets(status int, code http2.ErrCode) verdict {
	return func(r reply) string {
		var e http2.StreamError
		if r.status != status || !errors.As(r.err, &e) || e.Code != code || e.Cause.Error() != "received from peer" {
			return fmt.Sprintf("want %d and RST_STREAM %v", status, code)
		}
		return ""
	}
}

// A faultTest plays one fault to one POST.
type faultTest struct {
	fault   rubicontest.Fault
	want    verdict
	effects int
	unseen  bool // the request does not count
}

// play runs the tests over p. Each request has a body that net/http can't send
// again, so that one call is one request.
func play(t *testing.T, p rubicontest.Protocol, tests []faultTest) {
	for _, tt := range tests {
		t.Run(p.String()+"/"+tt.fault.String(), func(t *testing.T) {
			s := start(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{tt.fault}})
			r := post(t, s.Transport(), s.URL)
			if wrong := tt.want(r); wrong != "" {
				t.Errorf("got %d %q, %v; %s", r.status, r.body, r.err, wrong)
			}
			requests := 1
			if tt.unseen {
				requests = 0
			}
			wantCounts(t, s, requests, tt.effects)
		})
	}
}

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

// Header, trailer, informational answers and HEAD arrive as they were said.
func TestAnswerParts(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.String(), func(t *testing.T) {
			s := start(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{
				rubicontest.Act().Inform(103).Answer(200, "body").Header("Retry-After", "7").Header("X-A", "1").Header("X-A", "2").Trailer("X-Sum", "42"),
				rubicontest.Act().Answer(200, "body"),
				rubicontest.Act(),
			}})
			tr := s.Transport()
			var informed []int
			ctx := httptrace.WithClientTrace(patient(t), &httptrace.ClientTrace{
				Got1xxResponse: func(code int, _ textproto.MIMEHeader) error { informed = append(informed, code); return nil },
			})
			r := send(tr, request(t, ctx, "POST", s.URL, "x"))
			if r.body != "body" || r.header.Get("Retry-After") != "7" || len(r.header.Values("X-A")) != 2 || r.trailer.Get("X-Sum") != "42" {
				t.Errorf("got %+v", r)
			}
			if len(informed) != 1 || informed[0] != 103 {
				t.Errorf("informed of %v; want 103", informed)
			}
			r = send(tr, request(t, patient(t), "HEAD", s.URL, ""))
			if r.status != 200 || r.body != "" || r.header.Get("Content-Length") != "4" {
				t.Errorf("HEAD: %+v", r)
			}
			wantOK(t, post(t, tr, s.URL))
			if s.Connections() != 1 {
				t.Errorf("%d connections; want 1", s.Connections())
			}
		})
	}
}

// A client that waits for 100 Continue gets it when the body is wanted.
func TestExpectContinue(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.String(), func(t *testing.T) {
			s := start(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{
				rubicontest.Act(), rubicontest.ReadHeader().Answer(417, "").Header("Connection", "close"),
			}})
			tr := s.Transport()
			tr.ExpectContinueTimeout = patience
			for i, status := range []int{200, 417} {
				req := request(t, patient(t), "POST", s.URL, "hello")
				req.Header.Set("Expect", "100-continue")
				if r := send(tr, req); r.status != status || r.err != nil {
					t.Errorf("request %d: %d, %v; want %d", i+1, r.status, r.err, status)
				}
			}
			if got := s.Received(); !got[0].Complete || got[1].Length != 0 {
				t.Errorf("read %d and %d bytes; want 5 and 0", got[0].Length, got[1].Length)
			}
		})
	}
}

// A handler sees the request and decides the answer; faults apply to it.
func TestHandle(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-From", r.Header.Get("X-Id"))
		w.WriteHeader(202)
		_, _ = fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL.Path, r.URL.Query().Get("q"), body)
	})
	for _, p := range protocols {
		t.Run(p.String(), func(t *testing.T) {
			s := start(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{
				rubicontest.Act().Handle(h).Header("X-Also", "1"),
				rubicontest.Act().Handle(h).Cut(4).Close(),
				rubicontest.Act().Handle(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})),
			}})
			tr := s.Transport()
			long := strings.Repeat("z", 200_000)
			req := request(t, patient(t), "PUT", s.URL+"/p?q=1", long)
			req.Header.Set("X-Id", "9")
			r := send(tr, req)
			if r.status != 202 || r.body != "PUT /p 1 "+long || r.header.Get("X-From") != "9" || r.header.Get("X-Also") != "1" {
				t.Errorf("got %d, %d bytes, %v", r.status, len(r.body), r.header)
			}
			if r := send(tr, request(t, patient(t), "PUT", s.URL+"/p", "x")); r.body != "PUT " || r.err == nil {
				t.Errorf("got %q, %v; want it cut", r.body, r.err)
			}
			if r := post(t, tr, s.URL); r.status != 200 || r.body != "" {
				t.Errorf("got %d %q; want an empty 200", r.status, r.body)
			}
		})
	}
}

// An upgraded connection sends back what it is sent.
func TestUpgrade(t *testing.T) {
	for _, p := range protocols[:2] {
		t.Run(p.String(), func(t *testing.T) {
			s := start(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{rubicontest.Act().Upgrade()}})
			req := request(t, patient(t), "GET", s.URL, "")
			req.Header.Set("Connection", "Upgrade")
			req.Header.Set("Upgrade", "echo")
			res, err := s.Transport().RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != 101 || res.Header.Get("Upgrade") != "echo" {
				t.Errorf("got %d %v", res.StatusCode, res.Header)
			}
			sent, got := []byte(strings.Repeat("ping", 256)), make([]byte, 1024)
			if _, err := res.Body.(io.Writer).Write(sent); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != string(sent) {
				t.Errorf("echo %.9q, %v", got, err)
			}
		})
	}
}

// An upload that the server reads in part before it breaks the connection.
func TestBreakUpload(t *testing.T) {
	size := 8 << 20
	for _, p := range protocols {
		for _, f := range []rubicontest.Fault{
			rubicontest.ReadBody(64 << 10).Reset(),
			rubicontest.ReadBody(64 << 10).Close(),
			rubicontest.ReadHeader().Reset(),
		} {
			t.Run(p.String()+"/"+f.String(), func(t *testing.T) {
				s := start(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{f}})
				r := send(s.Transport(), request(t, patient(t), "POST", s.URL, strings.Repeat("x", size)))
				if r.err == nil {
					t.Errorf("got %d; want an error", r.status)
				}
				got := s.Received()[0]
				if got.Complete || got.Acted || got.Length >= int64(size) || strings.Contains(f.String(), "bytes") && got.Length != 64<<10 {
					t.Errorf("read %d bytes, complete %t, acted %t", got.Length, got.Complete, got.Acted)
				}
				wantCounts(t, s, 1, 0)
			})
		}
	}
}

// An early answer while the upload is running. Drained, it always arrives.
func TestEarlyAnswer(t *testing.T) {
	body := strings.Repeat("x", 4<<20)
	for _, p := range protocols {
		t.Run(p.String(), func(t *testing.T) {
			s := start(t, rubicontest.Config{Protocol: p, Script: []rubicontest.Fault{
				rubicontest.ReadHeader().Answer(413, "too large").Drain(),
				rubicontest.ReadHeader().Answer(413, "too large"),
			}})
			tr := s.Transport()
			r := send(tr, request(t, patient(t), "POST", s.URL, body))
			if r.status != 413 || r.body != "too large" || r.err != nil {
				t.Errorf("drained: got %d %q, %v", r.status, r.body, r.err)
			}
			r = send(tr, request(t, patient(t), "POST", s.URL, body))
			if r.status != 413 && (p == rubicontest.H2 || r.err == nil) {
				t.Errorf("unread: got %d, %v; want 413 or, on HTTP/1.1, a broken connection", r.status, r.err)
			}
			await(t, s, func(c rubicontest.Counts) bool { return c.Played == 2 })
			if got := s.Received()[1].Length; got != 0 {
				t.Errorf("read %d bytes of the second; want none", got)
			}
		})
	}
}
