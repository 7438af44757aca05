package contract_test

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/rubicon-go/rubicon/contract"
)

// Content types of bodies that tests make.
const (
	sseType     = "text/event-stream"
	jsonType    = "application/json"
	messageType = "application/vnd.amazon.eventstream"
)

// An ending is a body and how it must end: see describe.
type ending struct{ name, body, want string }

// checkEndings judges bodies of one protocol, in one piece and in many.
func checkEndings(t *testing.T, protocol, contentType string, rows []ending) {
	t.Helper()
	s := known(t)
	for _, r := range rows {
		got := end(s, contentType, []byte(r.body))
		if text := describe(got); text != r.want || got.Protocol != protocol {
			t.Errorf("%s: %q of %q, want %q of %q", r.name, text, got.Protocol, r.want, protocol)
		}
		chunkings([]byte(r.body), func(how string, pieces [][]byte) {
			if cut := end(s, contentType, pieces...); cut != got {
				t.Errorf("%s in %s:\n got %+v\nwant %+v", r.name, how, cut, got)
			}
		})
	}
}

// describe returns an end as text: the state, the operation and the cursor
// where there are any, the stop reason or the failure.
func describe(e contract.End) string {
	text := e.State.String()
	if e.Operation != "" {
		text += " op=" + e.Operation
	}
	if e.Cursor != "" {
		text += " at=" + e.Cursor
	}
	if e.Complete {
		text += " complete"
	}
	if e.State == contract.Failed {
		return text + fmt.Sprintf(" %s/%s/%s", e.Failure.Type, e.Failure.Code, e.Failure.Message)
	}
	if e.Reason != "" {
		text += " " + e.Reason
	}
	return text
}

// named returns an SSE body of events: a name, which may be empty, and data by
// turns.
func named(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] != "" {
			b.WriteString("event: " + pairs[i] + "\n")
		}
		b.WriteString("data: " + pairs[i+1] + "\n\n")
	}
	return b.String()
}

// unnamed returns an SSE body of events without names.
func unnamed(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString(named("", d))
	}
	return b.String()
}

// messages returns an AWS event stream of events: a name and a payload by turns.
func messages(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		b.WriteString(message(pairs[i+1], ":message-type", "event", ":event-type", pairs[i]))
	}
	return b.String()
}

// exception returns an exception message of an AWS event stream.
func exception(kind, payload string) string {
	return message(payload, ":message-type", "exception", ":exception-type", kind)
}

// message returns a message of an AWS event stream with the given headers, all
// of them texts.
func message(payload string, headers ...string) string {
	var head []byte
	for i := 0; i < len(headers); i += 2 {
		head = append(append(head, byte(len(headers[i]))), headers[i]...)
		head = binary.BigEndian.AppendUint16(append(head, 7), uint16(len(headers[i+1])))
		head = append(head, headers[i+1]...)
	}
	m := binary.BigEndian.AppendUint32(nil, uint32(16+len(head)+len(payload)))
	m = binary.BigEndian.AppendUint32(m, uint32(len(head)))
	m = binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m))
	m = append(append(m, head...), payload...)
	return string(binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m)))
}

// base64Of returns text in base64.
func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// chunk returns the payload of a chunk of Bedrock's with the given bytes in it.
func chunk(inside string) string {
	return `{"bytes":"` + base64Of(inside) + `","p":"abcd"}`
}

// chunks returns an AWS event stream of chunks.
func chunks(inside ...string) string {
	var b strings.Builder
	for _, text := range inside {
		b.WriteString(messages("chunk", chunk(text)))
	}
	return b.String()
}
