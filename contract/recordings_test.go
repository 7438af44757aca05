package contract_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rubicon-go/rubicon/contract"
)

// recorded is where the recorded bodies are, if they are there at all.
const recorded = "../../shared/streams"

// later are the protocols in the manifest whose bodies are no lines: framed
// returns these.
var later = map[string]bool{
	"bedrock-agent": true, "bedrock-converse": true, "bedrock-invoke": true, "gemini-json-array": true,
}

// A recording is a row of the manifest and the body it is about.
type recording struct {
	file, contentType      string
	end, operation, cursor string
	events                 int64
	body                   []byte
}

// recordings returns the rows of the manifest.
func recordings(t testing.TB) []recording {
	t.Helper()
	manifest, err := os.ReadFile(filepath.Join(recorded, "MANIFEST.tsv"))
	if err != nil {
		t.Skip("the recorded bodies are not here: ", err)
	}
	var all []recording
	for _, line := range strings.Split(strings.TrimSpace(string(manifest)), "\n")[1:] {
		c := strings.Split(line, "\t")
		if later[c[1]] || strings.Contains(c[2], "content-encoding") {
			continue
		}
		body, err := os.ReadFile(filepath.Join(recorded, c[0]))
		if err != nil {
			t.Fatal(err)
		}
		events, err := strconv.ParseInt(c[6], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, recording{
			file: c[0], contentType: c[2], end: c[3], operation: dashed(c[4]), cursor: dashed(c[5]), events: events, body: body,
		})
	}
	return all
}

// dashed returns a column that may be a dash.
func dashed(column string) string {
	if column == "-" {
		return ""
	}
	return column
}

// known returns the set of what the package knows.
func known(t testing.TB) *contract.Set {
	t.Helper()
	s, err := contract.NewSet(contract.Known()...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// end returns how a body ends that comes in the given pieces.
func end(s *contract.Set, contentType string, pieces ...[]byte) contract.End {
	w := s.Watch(contract.Answer{ContentType: contentType})
	for _, p := range pieces {
		w.Write(p)
	}
	return w.End()
}

// chunkings calls check with body cut in many ways.
func chunkings(body []byte, check func(how string, pieces [][]byte)) {
	for _, size := range []int{1, 2, 3, 7, 4096} {
		check(fmt.Sprint("pieces of ", size), slices.Collect(slices.Chunk(body, size)))
	}
	r := rand.New(rand.NewPCG(5, uint64(len(body))))
	for range 4 {
		var pieces [][]byte
		for rest := body; len(rest) > 0; {
			n := min(len(rest), 1+r.IntN(1<<r.IntN(12)))
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		check("random pieces", pieces)
	}
}

func TestManifest(t *testing.T) {
	s := known(t)
	for _, r := range recordings(t) {
		got := end(s, r.contentType, r.body)
		if got.State.String() != r.end || got.Operation != r.operation || got.Cursor != r.cursor || got.Events != r.events {
			t.Errorf("%s (%s): %v %q %q %d, want %s %q %q %d", r.file, got.Protocol,
				got.State, got.Operation, got.Cursor, got.Events, r.end, r.operation, r.cursor, r.events)
		}
		if got.Bytes != int64(len(r.body)) {
			t.Errorf("%s: %d bytes of %d", r.file, got.Bytes, len(r.body))
		}
		if legal := r.end != "interrupted"; got.Legal != legal && !got.EventID {
			t.Errorf("%s: legal %v", r.file, got.Legal)
		}
	}
}

func TestChunking(t *testing.T) {
	s := known(t)
	for _, r := range recordings(t) {
		want := end(s, r.contentType, r.body)
		chunkings(r.body, func(how string, pieces [][]byte) {
			if got := end(s, r.contentType, pieces...); got != want {
				t.Errorf("%s in %s:\n got %+v\nwant %+v", r.file, how, got, want)
			}
		})
	}
}

// TestPrefixes asks at every byte of a recording, and compares with a reader
// who has all of it before him: as long as he has seen no sufficient evidence,
// no end is claimed. What lies behind the evidence may still be a failure.
func TestPrefixes(t *testing.T) {
	s := known(t)
	for _, r := range recordings(t) {
		whole := end(s, r.contentType, r.body)
		if whole.State == contract.Failed || eofEnds[whole.Protocol] {
			continue
		}
		proof := evidence(whole.Protocol, r)
		if whole.State != contract.Interrupted && proof > len(r.body) {
			t.Errorf("%s (%s): no evidence", r.file, whole.Protocol)
		}
		w := s.Watch(contract.Answer{ContentType: r.contentType})
		for n := range r.body {
			w.Write(r.body[n : n+1])
			if testing.Short() && n%29 != 0 && len(r.body)-n > 300 {
				continue
			}
			got := w.End()
			ended := got.State == contract.Completed || got.State == contract.Incomplete
			if at := n + 1; ended != (at >= proof) {
				t.Errorf("%s (%s): after %d bytes %v, the proof is whole at %d", r.file, whole.Protocol, at, got.State, proof)
				break
			}
			if n%997 == 0 {
				if fresh := end(s, r.contentType, r.body[:n+1]); fresh != got {
					t.Errorf("%s after %d bytes:\n asked before %+v\nasked at once %+v", r.file, n+1, got, fresh)
				}
			}
		}
		if got := w.End(); got != whole {
			t.Errorf("%s: asked at each byte\n got %+v\nwant %+v", r.file, got, whole)
		}
	}
}

// TestPadding reads recordings with all the white space in their JSON that JSON
// allows, and with each event's members in another order.
func TestPadding(t *testing.T) {
	s := known(t)
	for _, r := range recordings(t) {
		if !bytes.Contains(r.body, []byte("data: {")) {
			continue
		}
		want := end(s, r.contentType, r.body)
		for name, change := range map[string]func(any) []byte{"spaced": spaced, "reversed": reversed, "escaped": escaped} {
			got := end(s, r.contentType, rewrite(r.body, change))
			got.Bytes = want.Bytes
			if got != want {
				t.Errorf("%s %s:\n got %+v\nwant %+v", r.file, name, got, want)
			}
		}
	}
}
