package rubicontest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"

	"github.com/rubicon-go/rubicon/rubicontest"
)

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
