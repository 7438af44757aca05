package contract_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-go/rubicon/contract"
)

// contentTypes are one of each framing.
var contentTypes = []string{
	"text/event-stream", "application/x-ndjson", "application/json", "application/json-seq", "application/vnd.amazon.eventstream",
}

// FuzzWatch judges anything as any framing: however the body comes, and
// whenever somebody asks, the end is the same, and it makes sense.
func FuzzWatch(f *testing.F) {
	for i, body := range seeds() {
		f.Add(uint8(i), []byte(body), uint16(7))
	}
	s := known(f)
	f.Fuzz(func(t *testing.T, kind uint8, body []byte, size uint16) {
		if len(body) < 2048 {
			checkWatch(t, s, contentTypes[int(kind)%len(contentTypes)], body, 1+int(size)%1500)
		}
	})
}

// checkWatch judges a body whole, byte by byte and in pieces of the given size.
func checkWatch(t *testing.T, s *contract.Set, contentType string, body []byte, size int) {
	t.Helper()
	want := end(s, contentType, body)
	for _, n := range []int{1, size} {
		pieces := slices.Collect(slices.Chunk(body, n))
		if got := end(s, contentType, pieces...); got != want {
			t.Fatalf("%q as %s in pieces of %d:\n got %+v\nwant %+v", body, contentType, n, got, want)
		}
		if got := asked(s, contentType, pieces); got != want {
			t.Fatalf("%q as %s in pieces of %d, asked after each:\n got %+v\nwant %+v", body, contentType, n, got, want)
		}
	}
	if text := nonsense(want, len(body)); text != "" {
		t.Fatalf("%q as %s: %s: %+v", body, contentType, text, want)
	}
}

// TestWatchAnyhow judges streams that were damaged at random: lines lost,
// doubled and moved, bytes changed, streams patched together.
func TestWatchAnyhow(t *testing.T) {
	s, all := known(t), seeds()
	r := rand.New(rand.NewPCG(11, 12))
	for range 600 {
		body := all[r.IntN(len(all))]
		contentType := contentTypes[0]
		switch {
		case strings.HasPrefix(body, "\x00"):
			contentType = contentTypes[4]
		case strings.HasPrefix(body, "[") || strings.HasPrefix(body, "{"):
			contentType = contentTypes[1+r.IntN(2)]
		}
		for range r.IntN(6) {
			body = damage(r, body, all)
		}
		checkWatch(t, s, contentType, []byte(body[:min(len(body), 1500)]), 1+r.IntN(700))
	}
}

// damage changes something in a body.
func damage(r *rand.Rand, body string, others []string) string {
	if len(body) == 0 {
		return others[r.IntN(len(others))]
	}
	lines := strings.SplitAfter(body, "\n")
	i, j := r.IntN(len(lines)), r.IntN(len(lines))
	at := r.IntN(len(body))
	switch r.IntN(7) {
	case 0:
		lines[i] = ""
	case 1:
		lines[i] += lines[j]
	case 2:
		lines[i], lines[j] = lines[j], lines[i]
	case 3:
		return body[:at] + string("\"\\\n\r{}[]:,x0 \x00"[r.IntN(14)]) + body[at+1:]
	case 4:
		return body[:at] + others[r.IntN(len(others))]
	case 5:
		return strings.ReplaceAll(body, "\n", []string{"\r\n", "\r"}[r.IntN(2)])
	case 6:
		return body[:at]
	}
	return strings.Join(lines, "")
}

// seeds returns the beginnings of small recordings, and what tests are made of.
func seeds() []string {
	all := []string{"", "data: [DONE]\n\n", `{"model":"m","done":true}`, "[1,2", "\x1e{}\n", messages("messageStart", `{"role":"a"}`), ": c\n\nid: 1\n\n", "{\n\"error\":{}}\n\n"}
	files, _ := filepath.Glob(filepath.Join(recorded, "*", "*"))
	for _, file := range files {
		if body, err := os.ReadFile(file); err == nil && len(body) < 4096 {
			all = append(all, string(body))
		}
	}
	for _, v := range append(slices.Clone(victims), ownVictims...) {
		all = append(all, v.join([]string{v.frame(v.begin[0], v.begin[1]), v.frame(v.name, strings.NewReplacer("OUTPUT", `"a"`, "MEMBER", `"b":1`).Replace(v.carrier))}))
	}
	return all
}

// asked returns how a body ends whose watcher was asked after each piece.
func asked(s *contract.Set, contentType string, pieces [][]byte) contract.End {
	w := s.Watch(contract.Answer{ContentType: contentType})
	for _, p := range pieces {
		w.End()
		w.Write(p)
	}
	return w.End()
}

// nonsense says what of an end contradicts the rest of it.
func nonsense(e contract.End, size int) string {
	switch {
	case e.Bytes != int64(size):
		return "bytes"
	case e.Complete && e.State != contract.Interrupted:
		return "complete, but not interrupted"
	case (e.Failure != contract.Failure{}) && e.State != contract.Failed:
		return "a failure, but not failed"
	case !e.Legal && e.State != contract.Interrupted:
		return "illegal, but not interrupted"
	case e.State == contract.Unjudged && e.Protocol == "" && (e.Operation != "" || e.Reason != ""):
		return "an operation that no contract found"
	case e.Events < 0 || e.Events > int64(size):
		return "events"
	}
	return ""
}

// TestMemory feeds streams that never end a line, a frame, a string, a name or
// an array: what is held does not grow.
func TestMemory(t *testing.T) {
	s := known(t)
	begin := map[string][]string{
		"text/event-stream": {"data: ", "event: ", "id: ", "x", ":", "error: {\"a\":\"", "{\"a\":", "data: {\"choices\":[{\"delta\":{\"content\":\"", "data: {\"",
			"data: {\"id\":\"", "data: [[", "retry: 1", "data: {\"choices\":[" + strings.Repeat(`{"index":1,"delta":{}},`, 10)},
		"application/x-ndjson":                 {`{"model":"`, `[`, "\x00"},
		"application/json":                     {`[{"`, `{"a":`, `"`, `[`},
		"application/json-seq":                 {"\x1e\"", "x"},
		"application/vnd.amazon.eventstream":   {messages("a", "b") + "\x7f\xff\xff\xff\x00\x00\x00\x00", "\x00"},
		"application/vnd.amazon.eventstream; ": {messages("chunk", `{"bytes":"AAAA`)},
	}
	fill := [][]byte{[]byte(strings.Repeat("x", 4096)), []byte(strings.Repeat("[", 4096)), []byte(strings.Repeat(`{"a":`, 1024)), []byte(strings.Repeat(`\u00e9"`, 512)), []byte(strings.Repeat("1", 4096))}
	for contentType, starts := range begin {
		for _, start := range starts {
			for _, p := range fill {
				w := s.Watch(contract.Answer{ContentType: contentType})
				w.Write([]byte(start))
				if grown := heapGrowth(func() {
					for range 400 {
						w.Write(p)
					}
				}); grown > 64<<10 {
					t.Errorf("%s, %.30q and then %.10q: %d bytes more", contentType, start, p, grown)
				}
				if e := w.End(); e.State == contract.Completed {
					t.Errorf("%s, %.30q and then %.10q: %v", contentType, start, p, e.State)
				}
			}
		}
	}
}

// heapGrowth returns how many bytes f allocates.
func heapGrowth(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestAllocations counts what a stream costs, by its length and alone.
func TestAllocations(t *testing.T) {
	s := known(t)
	for _, v := range ownVictims {
		frame := func(i int) []byte {
			text := fmt.Sprintf(`"%s"`, strings.Repeat("x", i%13))
			return []byte(v.frame(v.name, strings.NewReplacer("OUTPUT", text, "MEMBER", `"b":1`).Replace(v.carrier)))
		}
		pieces := [][]byte{[]byte(v.frame(v.begin[0], v.begin[1]))}
		for i := range 500 {
			pieces = append(pieces, frame(i))
		}
		n := testing.AllocsPerRun(5, func() {
			w := s.Watch(contract.Answer{ContentType: v.contentType})
			for _, p := range pieces {
				w.Write(p)
			}
		})
		if n > 5 {
			t.Errorf("%s: %v allocations for a stream of %d events", v.protocol, n, len(pieces))
		}
	}
}
