package contract_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rubicon-go/rubicon/contract"
)

// eofEnds are the protocols whose end is the end of the body.
var eofEnds = map[string]bool{
	"kubernetes-watch": true, "docker": true, "langgraph": true, "eventsource": true,
}

// TestTornRecords asks at every byte of a recording whose end is the end of the
// body: it ends there exactly where a record does.
func TestTornRecords(t *testing.T) {
	s := known(t)
	seen := 0
	for _, r := range recordings(t) {
		whole := end(s, r.contentType, r.body)
		if !eofEnds[whole.Protocol] || whole.State != contract.Completed {
			continue
		}
		seen++
		w := s.Watch(contract.Answer{ContentType: r.contentType})
		for n := range r.body {
			w.Write(r.body[n : n+1])
			got := w.End()
			if got.Protocol == "" {
				continue // no record that tells the protocol is whole yet
			}
			want := contract.Interrupted
			if isWhole(r, r.body[:n+1]) {
				want = contract.Completed
			}
			if got.State != want {
				t.Fatalf("%s: after %d bytes %v, want %v", r.file, n+1, got.State, want)
			}
		}
	}
	if seen == 0 {
		t.Error("no recording has such an end")
	}
}

// isWhole reports whether a prefix of a recording ends behind a record. All of
// them have LF as their line end.
func isWhole(r recording, prefix []byte) bool {
	if strings.HasSuffix(r.file, ".sse") {
		return bytes.HasSuffix(prefix, []byte("\n\n"))
	}
	line := prefix[bytes.LastIndexByte(prefix, '\n')+1:]
	return len(line) == 0 || json.Valid(line)
}
