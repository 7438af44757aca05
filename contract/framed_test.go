package contract_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rubicon-go/rubicon/contract"
)

// framed returns the recordings that are no lines: event streams and arrays.
func framed(t *testing.T) []recording {
	t.Helper()
	manifest, err := os.ReadFile(filepath.Join(recorded, "MANIFEST.tsv"))
	if err != nil {
		t.Skip("the recorded bodies are not here: ", err)
	}
	var all []recording
	for _, line := range strings.Split(string(manifest), "\n") {
		c := strings.Split(line, "\t")
		if !strings.HasPrefix(c[0], "bedrock-") && !strings.HasPrefix(c[0], "gemini-json-array") || strings.HasSuffix(c[0], ".sse") {
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

// TestFramedManifest compares the ends of event streams and arrays, in one piece
// and in many, with the manifest.
func TestFramedManifest(t *testing.T) {
	s := known(t)
	for _, r := range framed(t) {
		got := end(s, r.contentType, r.body)
		if got.State.String() != r.end || got.Operation != r.operation || got.Cursor != r.cursor || got.Events != r.events {
			t.Errorf("%s (%s): %v %q %q %d, want %s %q %q %d", r.file, got.Protocol,
				got.State, got.Operation, got.Cursor, got.Events, r.end, r.operation, r.cursor, r.events)
		}
		chunkings(r.body, func(how string, pieces [][]byte) {
			if cut := end(s, r.contentType, pieces...); cut != got {
				t.Errorf("%s in %s:\n got %+v\nwant %+v", r.file, how, cut, got)
			}
		})
	}
}

// TestFramedPrefixes asks at every byte of an event stream or an array.
func TestFramedPrefixes(t *testing.T) {
	s := known(t)
	for _, r := range framed(t) {
		whole := end(s, r.contentType, r.body)
		ends, proof := frameEnds(whole.Protocol, r)
		if whole.State != contract.Interrupted && proof > len(r.body) && whole.Protocol != "bedrock-agent" {
			t.Errorf("%s (%s): no evidence", r.file, whole.Protocol)
		}
		w := s.Watch(contract.Answer{ContentType: r.contentType})
		for n := range r.body {
			w.Write(r.body[n : n+1])
			at, got := n+1, w.End()
			want := at >= proof
			if whole.Protocol == "bedrock-agent" {
				want = ends[at]
			}
			if ended := got.State == contract.Completed || got.State == contract.Incomplete; ended != want {
				t.Errorf("%s (%s): after %d bytes %v, the proof is whole at %d", r.file, whole.Protocol, at, got.State, proof)
				break
			}
		}
	}
}

// frameEnds returns where frames end, and the length of the shortest prefix that
// proves the end.
func frameEnds(protocol string, r recording) (ends map[int]bool, proof int) {
	read := reader(func(string, string, map[string]any) bool { return false })
	if plain, ok := readers[protocol]; ok {
		read = plain()
	}
	if strings.HasPrefix(r.contentType, jsonType) {
		return nil, arrayProof(read, r.body)
	}
	ends, proof = map[int]bool{}, math.MaxInt
	for at := 0; at+16 <= len(r.body); {
		size := int(binary.BigEndian.Uint32(r.body[at:]))
		m := r.body[at : at+size]
		if crc32.ChecksumIEEE(m[:size-4]) != binary.BigEndian.Uint32(m[size-4:]) {
			break
		}
		at += size
		ends[at] = true
		name, payload := openMessage(m)
		if proves(read, name, payload) {
			proof = min(proof, at)
		}
	}
	return ends, proof
}

// openMessage returns the event type and the payload of a message, out of its
// base64 if there is any.
func openMessage(m []byte) (name, payload string) {
	head := int(binary.BigEndian.Uint32(m[4:]))
	headers, payload := m[12:12+head], string(m[12+head:len(m)-4])
	const key = ":event-type\x07"
	if i := bytes.Index(headers, []byte(key)); i >= 0 {
		h := headers[i+len(key):]
		name = string(h[2 : 2+binary.BigEndian.Uint16(h)])
	}
	var outer struct{ Bytes string }
	if json.Unmarshal([]byte(payload), &outer) == nil && outer.Bytes != "" {
		inner, err := base64.StdEncoding.DecodeString(outer.Bytes)
		if err == nil {
			payload = string(inner)
		}
	}
	return name, payload
}

// arrayProof returns how long an array is that proves its end.
func arrayProof(read reader, body []byte) int {
	d := json.NewDecoder(bytes.NewReader(body))
	if _, err := d.Token(); err != nil {
		return math.MaxInt
	}
	proved := false
	for d.More() {
		var element json.RawMessage
		if d.Decode(&element) != nil {
			return math.MaxInt
		}
		proved = proves(read, "", string(element)) || proved
	}
	if _, err := d.Token(); err != nil || !proved {
		return math.MaxInt
	}
	return int(d.InputOffset())
}
