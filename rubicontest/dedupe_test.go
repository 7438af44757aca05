package rubicontest_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/rubicon-go/rubicon/rubicontest"
)

// keyed sends a POST with an idempotency key and a body that net/http can't
// send again.
func keyed(t *testing.T, rt http.RoundTripper, url, key, body string) reply {
	t.Helper()
	req := request(t, patient(t), "POST", url, body)
	req.Header.Set("Idempotency-Key", key)
	return send(rt, req)
}

// A repeat gets the first answer, whole, and has no effect.
func TestDedupe(t *testing.T) {
	n := 0
	count := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n++
		w.Header().Set("X-N", fmt.Sprint(n))
		w.WriteHeader(201)
		_, _ = fmt.Fprintf(w, "order %d", n)
	})
	for _, p := range protocols {
		t.Run(p.String(), func(t *testing.T) {
			n = 0
			s := start(t, rubicontest.Config{
				Protocol: p, Dedupe: "Idempotency-Key",
				Script: []rubicontest.Fault{
					rubicontest.Act().Close(),
					rubicontest.Act().Handle(count).Cut(2).Close(),
					rubicontest.Act().Answer(503, "busy"),
					rubicontest.Act().Answer(200, "unkeyed"),
				},
			})
			tr := s.Transport()
			lost, cut := keyed(t, tr, s.URL, "a", "pay"), keyed(t, tr, s.URL, "b", "pay")
			if lost.err == nil || cut.err == nil {
				t.Errorf("got %+v and %+v; want errors", lost, cut)
			}
			wantCounts(t, s, 2, 2)
			wantOK(t, keyed(t, tr, s.URL, "a", "pay"))
			for range 2 {
				r := keyed(t, tr, s.URL, "b", "pay")
				if wrong := answers(201, "order 1")(r); wrong != "" || r.header.Get("X-N") != "1" {
					t.Errorf("got %d %q, %v; %s", r.status, r.body, r.err, wrong)
				}
			}
			// The repeats used no line: the next two are still to come.
			for range 2 {
				if r := keyed(t, tr, s.URL, "c", "pay"); r.status != 503 {
					t.Errorf("got %d; want the first answer again", r.status)
				}
			}
			if r := post(t, tr, s.URL); r.body != "unkeyed" {
				t.Errorf("got %q; want the last line", r.body)
			}
			wantCounts(t, s, 8, 4)
		})
	}
}

// The same key for something else is refused, as long as the key is known.
func TestDedupeMismatch(t *testing.T) {
	s := start(t, rubicontest.Config{Dedupe: "Idempotency-Key", Script: []rubicontest.Fault{
		rubicontest.Read().Answer(503, "not acted upon"), rubicontest.Act(),
	}})
	tr := s.Transport()
	for _, step := range []struct {
		path, body string
		status     int
	}{
		{"/a", "1", 503}, // forgotten, as nothing happened
		{"/a", "2", 200},
		{"/a", "1", 422},
		{"/b", "2", 422},
		{"/a", "2", 200},
	} {
		if r := keyed(t, tr, s.URL+step.path, "k", step.body); r.status != step.status {
			t.Errorf("%s %s: got %d, %v; want %d", step.path, step.body, r.status, r.err, step.status)
		}
	}
	wantCounts(t, s, 5, 1)
}

// While the first request has not been acted upon, a repeat is told so.
func TestDedupeInProgress(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.String(), func(t *testing.T) {
			held := make(chan struct{})
			s := start(t, rubicontest.Config{Protocol: p, Dedupe: "Idempotency-Key", Script: []rubicontest.Fault{
				rubicontest.Read().Until(held).Act().Answer(201, "made"),
			}})
			tr := s.Transport()
			first := make(chan reply)
			go func() { first <- keyed(t, tr, s.URL, "k", "x") }()
			await(t, s, func(c rubicontest.Counts) bool { return c.Complete == 1 })
			if r := keyed(t, tr, s.URL, "k", "x"); r.status != 409 {
				t.Errorf("got %d, %v; want 409", r.status, r.err)
			}
			close(held)
			for _, r := range []reply{<-first, keyed(t, tr, s.URL, "k", "x")} {
				if wrong := answers(201, "made")(r); wrong != "" {
					t.Errorf("got %d %q, %v; %s", r.status, r.body, r.err, wrong)
				}
			}
			wantCounts(t, s, 3, 1)
		})
	}
}
