package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"
)

// A header is a header of an event stream frame: strings have type 7.
type header struct {
	name  string
	kind  byte
	value string
}

// encode returns a frame.
func encode(payload string, headers ...header) []byte {
	var h []byte
	for _, x := range headers {
		h = append(h, byte(len(x.name)))
		h = append(h, x.name...)
		h = append(h, x.kind)
		if x.kind == 6 || x.kind == 7 {
			h = binary.BigEndian.AppendUint16(h, uint16(len(x.value)))
		}
		h = append(h, x.value...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(len(h)+len(payload)+16))
	b = binary.BigEndian.AppendUint32(b, uint32(len(h)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, h...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// event returns a frame as Bedrock sends it.
func event(name, payload string) []byte {
	return encode(payload, header{":event-type", 7, name},
		header{":content-type", 7, "application/json"}, header{":message-type", 7, "event"})
}

var manyHeaders = encode("x", header{"t", 0, ""}, header{"f", 1, ""}, header{"b", 2, "\x01"}, header{"s", 3, "12"},
	header{"i", 4, "1234"}, header{"l", 5, "12345678"}, header{"y", 6, "bytes"}, header{"d", 8, "12345678"},
	header{"u", 9, "0123456789abcdef"}, header{":event-type", 7, "many"}, header{":message-type", 7, "event"})

var eventBodies = [][]byte{
	nil,
	event("messageStart", `{"role":"assistant"}`),
	bytes.Join([][]byte{event("a", "{}"), event("skipped", "{}"), event("last", "{1}"), event("last", "{2}"), event("ping", "")}, nil),
	encode(`{"message":"slow down"}`, header{":exception-type", 7, "throttlingException"}, header{":message-type", 7, "exception"}),
	encode("", header{":message-type", 7, "error"}, header{":error-code", 7, "500"}, header{":error-message", 7, "boom"}),
	manyHeaders,
	encode(""),
	event("a", "{}")[:30],
	event("a", "{}")[:5],
	event("a", "{}")[:len(event("a", "{}"))-2],
	append(event("a", "{}"), 0, 0, 0),
	flip(append(event("a", "{}"), event("b", "{}")...), 120),
	flip(event("a", "{}"), 2),
	flip(event("a", "{}"), 20),
	event("a", string(bytes.Repeat([]byte("payload "), 1000))),
}

// flip changes one bit.
func flip(b []byte, at int) []byte {
	b[at] ^= 4
	return b
}

// slowEvents reads a whole body.
func slowEvents(b []byte) told {
	var t told
	last := ""
	for len(b) > 0 {
		if len(b) < 12 {
			t.rest = Torn
			break
		}
		total, head := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
		if crc32.ChecksumIEEE(b[:8]) != binary.BigEndian.Uint32(b[8:]) || uint64(total) < uint64(head)+16 {
			t.rest = Damaged
			break
		}
		if uint64(len(b)) < uint64(total) {
			t.rest = Torn
			_, _, t.pending = slowFrame(b[:min(uint64(len(b)), uint64(total)-4)], head)
			break
		}
		frame := b[:total]
		b = b[total:]
		if crc32.ChecksumIEEE(frame[:total-4]) != binary.BigEndian.Uint32(frame[total-4:]) {
			t.log = append(t.log, "dropped")
			t.rest = Damaged
			break
		}
		kind, name, data := slowFrame(frame[:total-4], head)
		use := useOf(name)
		t.counts.add(use)
		last = name
		switch use {
		case Last:
			t.latest = data
		case Read:
			t.log = append(t.log, fmt.Sprintf("%d %q %q", kind, name, data))
		}
	}
	t.pending += "|"
	t.extra = fmt.Sprintf("last %q", last)
	return t
}

// slowFrame returns what the headers say and the data that a sink gets.
func slowFrame(b []byte, head uint32) (kind Kind, name, data string) {
	if uint64(len(b)) < 12+uint64(head) {
		return Event, "", ""
	}
	h := map[string]string{}
	for p := b[12 : 12+head]; len(p) > 0; {
		n := int(p[0])
		if len(p) < n+2 {
			break
		}
		key, typ := string(p[1:1+n]), p[1+n]
		p = p[2+n:]
		size, ok := map[byte]int{0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}[typ]
		if !ok {
			if len(p) < 2 {
				break
			}
			size = int(binary.BigEndian.Uint16(p))
			p = p[2:]
		}
		if len(p) < size {
			break
		}
		if !ok {
			h[key] = string(p[:size])
		}
		p = p[size:]
	}
	data = string(b[12+head:])
	name = h[":event-type"]
	switch h[":message-type"] {
	case "exception":
		kind, name = Exception, h[":exception-type"]
	case "error":
		kind, name, data = Error, h[":error-code"], h[":error-message"]+data
	}
	if use := useOf(name); use == Skip || use == Ping {
		data = ""
	}
	return kind, name, data
}

func checkEvents(t *testing.T, body []byte) {
	t.Helper()
	want := slowEvents(body)
	chunkings(body, func(how string, pieces [][]byte) {
		t.Helper()
		r := &recorder{}
		if d := tell(&EventStream{Sink: r}, r, pieces).diff(want); d != "" {
			t.Errorf("%.200q in %s:%s", body, how, d)
		}
	})
}

func TestEventStream(t *testing.T) {
	for _, body := range eventBodies {
		checkEvents(t, body)
	}
}

// FuzzEventStream changes whole frames and, with the checksums made right
// again, their insides.
func FuzzEventStream(f *testing.F) {
	for _, body := range eventBodies {
		f.Add(body, []byte("\x0b:event-type\x07\x00\x01a"), "payload")
	}
	f.Fuzz(func(t *testing.T, body, headers []byte, payload string) {
		if len(body)+len(headers)+len(payload) > 4096 || !wellFormed(headers) {
			return
		}
		checkEvents(t, body)
		b := binary.BigEndian.AppendUint32(nil, uint32(len(headers)+len(payload)+16))
		b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
		b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
		b = append(append(b, headers...), payload...)
		b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
		checkEvents(t, append(b, body...))
	})
}

// wellFormed reports whether p is whole headers, each of them once and short:
// what a framer makes of others is its own affair.
func wellFormed(p []byte) bool {
	seen := map[string]bool{}
	for len(p) > 0 {
		n := int(p[0])
		if len(p) < n+4 || p[1+n] != 7 {
			return false
		}
		size := int(binary.BigEndian.Uint16(p[2+n:]))
		key := string(p[1 : 1+n])
		if len(p) < 4+n+size || size > 200 || seen[key] {
			return false
		}
		seen[key] = true
		p = p[4+n+size:]
	}
	return true
}
