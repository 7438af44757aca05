package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

var lineBodies = []string{
	"", "\n\n \r\n", "{\"a\":1}\n", "{\"a\":1}\r\n{\"b\":2}", "a\n\nb\n \t\nc\r\n\r\n0\r\n\r\n",
	strings.Repeat("x", 3000) + "\n" + strings.Repeat("y", 1000) + "\nz", "  " + strings.Repeat(" ", 1100) + "a\n", "a\n   ",
	"known\nknown\nknown\nknown\r\nknown",
	strings.Repeat(" ", 1024) + "\n" + strings.Repeat("z", 1024) + "\nq\n",
}

// slowLines cuts a whole body into lines.
func slowLines(body string) told {
	lines := strings.Split(body, "\n")
	t := told{}
	for _, line := range lines[:len(lines)-1] {
		if strings.Trim(line, " \t\r") != "" {
			t.counts.Frames++
			t.log = append(t.log, fmt.Sprintf("0 \"\" %q", line))
		}
	}
	t.pending = "|"
	if tail := lines[len(lines)-1]; strings.Trim(tail, " \t\r") != "" {
		t.pending, t.rest = tail+"|", Torn
	}
	return t
}

func checkLines(t *testing.T, body []byte) {
	t.Helper()
	want := slowLines(string(body))
	want.log = dropKnown(want.log)
	want = trimmed(want)
	chunkings(body, func(how string, pieces [][]byte) {
		t.Helper()
		r := &recorder{}
		if d := trimmed(tell(&Lines{Sink: r}, r, pieces)).diff(want); d != "" {
			t.Errorf("%.200q in %s:%s", body, how, d)
		}
	})
}

// trimmed drops white space before a line: whether it is told depends on where
// the body was cut, and nobody cares.
func trimmed(t told) told {
	for i, line := range t.log {
		rest := strings.TrimPrefix(line, `0 "" "`)
		for _, space := range []string{" ", `\t`, `\r`} {
			for strings.HasPrefix(rest, space) {
				rest = strings.TrimPrefix(rest, space)
			}
		}
		t.log[i] = rest
	}
	t.pending = strings.TrimLeft(t.pending, " \t\r")
	return t
}

func TestLines(t *testing.T) {
	for _, body := range lineBodies {
		checkLines(t, []byte(body))
	}
}

func FuzzLines(f *testing.F) {
	for _, body := range lineBodies {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) < 4096 && !bytes.ContainsAny(body, "\t\r ") {
			checkLines(t, body)
		}
	})
}

func TestJSON(t *testing.T) {
	for _, c := range []struct {
		body string
		rest Rest
		open bool
		want string
	}{
		{"", Clean, false, ``},
		{" \n", Clean, false, ``},
		{`{"a":1}{"b":2} {"c":[3]}`, Clean, false, `{"a":1}|{"b":2}|{"c":[3]}`},
		{"{\n \"a\": 1\n}\n{}\n", Clean, false, "{\n \"a\": 1\n}|{}"},
		{`"a\"}" 12 null {"}":"]"}`, Clean, false, `"a\"}"|12|null|{"}":"]"}`},
		{`{"a":1}{"b"`, Torn, false, `{"a":1}`},
		{`{"a":1} 12`, Torn, false, `{"a":1}`},
		{`[{"a":1},{"b":"]"}]`, Clean, false, `{"a":1}|{"b":"]"}`},
		{" [\n1\n,\r\n\"x\" , [2]]\n", Clean, false, `1|"x"|[2]`},
		{`[]`, Clean, false, ``},
		{`[`, Clean, true, ``},
		{`[{"a":1}`, Clean, true, `{"a":1}`},
		{`[{"a":1},`, Clean, true, `{"a":1}`},
		{`[{"a":1},{"b"`, Torn, true, `{"a":1}`},
		{`[{"a":1},]`, Damaged, true, `{"a":1}`},
		{`[{"a":1} {"b":1}]`, Damaged, true, `{"a":1}`},
		{`[1,2]3`, Damaged, true, `1|2`},
		{"{}\nab3\r\n{\"a\":1}", Clean, false, `{}|{"a":1}`},
		{"{}\n}", Damaged, false, `{}`},
	} {
		chunkings([]byte(c.body), func(how string, pieces [][]byte) {
			r := &recorder{}
			got := tell(&JSON{Sink: r}, r, pieces)
			var want []string
			for _, v := range strings.Split(c.want, "|") {
				if v != "" {
					want = append(want, fmt.Sprintf("0 \"\" %q", v))
				}
			}
			if fmt.Sprint(got.log) != fmt.Sprint(want) || got.rest != c.rest || got.extra != fmt.Sprint("open ", c.open) {
				t.Errorf("%q in %s: %q rest %d %s", c.body, how, got.log, got.rest, got.extra)
			}
		})
	}
}

// FuzzJSON compares with encoding/json, where that takes the body for values
// or for one array.
func FuzzJSON(f *testing.F) {
	for _, body := range []string{`{"a":1}{"b":"\"}"} [1]`, "[1,\"]\",\n{\"a\":[{}]}]", `"\\" 1 true`, "[]", "12"} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > 4096 {
			return
		}
		var want []string
		d := json.NewDecoder(bytes.NewReader(body))
		first := bytes.TrimLeft(body, " \t\r\n")
		isArray := len(first) > 0 && first[0] == '['
		for {
			var v json.RawMessage
			if err := d.Decode(&v); err != nil {
				break
			}
			want = append(want, string(v))
		}
		if isArray {
			var elements []json.RawMessage
			if json.Unmarshal(body, &elements) != nil {
				want = nil
			} else {
				want = want[:0]
				for _, e := range elements {
					want = append(want, string(e))
				}
			}
		}
		chunkings(body, func(how string, pieces [][]byte) {
			r := &recorder{}
			got := tell(&JSON{Sink: r}, r, pieces)
			if int(got.counts.Frames) != len(got.log) {
				t.Errorf("%d frames, %d told", got.counts.Frames, len(got.log))
			}
			whole := json.Valid(body) && isArray
			for i, v := range want {
				if bytes.IndexByte([]byte(`0123456789-tfn`), v[0]) >= 0 {
					return // numbers and names may run together
				}
				if line := fmt.Sprintf("0 \"\" %q", v); i >= len(got.log) || got.log[i] != line {
					t.Fatalf("%q in %s: value %d is not %s: %q", body, how, i, line, got.log)
				}
			}
			if whole && (len(got.log) != len(want) || got.rest != Clean || got.extra != "open false") {
				t.Errorf("%q in %s: %q rest %d %s", body, how, got.log, got.rest, got.extra)
			}
		})
	})
}

var sequenceBodies = []string{
	"", "\x1e{\"a\":1}\n\x1e{\"b\":2}\n", "\x1e{\"a\":1}\n\x1e{\"b\":", "\x1e{\"a\":\x1e{\"b\":2}\n", "\x1e12\n\x1e12", "junk\x1e\"x\"\n",
	"\x1e\x1e\x1e[1]\n", "\x1e{}\r\n", "\x1e{} x\n\x1e{}\n", "\x1e{}", "\x1e{\n\"a\"\n:1}\n junk \x1e", "\x1etrue\x1efalse\n",
}

// slowSequence cuts a whole body at each RS.
func slowSequence(body string) told {
	var t told
	parts := strings.Split(body, "\x1e")
	for i, part := range parts[1:] {
		last := i == len(parts)-2
		value, end := firstValue(part)
		t.pending = ""
		switch {
		case strings.Trim(part, " \t\r\n") == "":
			if last {
				t.rest = Torn
			}
		case end == "line":
			t.counts.Frames++
			t.log = append(t.log, fmt.Sprintf("0 \"\" %q", value))
		case end == "junk" || !last:
			t.log = append(t.log, "dropped")
		case end == "value":
			t.rest, t.pending = Ripe, value
		default:
			t.rest, t.pending = Torn, value
		}
	}
	t.pending += "|"
	return t
}

// firstValue returns the first value in part and what follows it.
func firstValue(part string) (value, end string) {
	part = strings.TrimLeft(part, " \t\r\n")
	n := valueEnd(part)
	if n < 0 {
		return part, "nothing"
	}
	for _, b := range []byte(part[n:]) {
		switch {
		case b == '\n':
			return part[:n], "line"
		case !isSpace(b):
			return part[:n], "junk"
		}
	}
	return part[:n], "value"
}

// valueEnd returns where the value at the start of s ends, or -1.
func valueEnd(s string) int {
	depth, quoted := 0, false
	for i := 0; i < len(s); i++ {
		b := s[i]
		switch {
		case quoted && b == '\\':
			i++
		case b == '"':
			if quoted = !quoted; !quoted && depth == 0 {
				return i + 1
			}
		case quoted:
		case strings.IndexByte("{[", b) >= 0:
			depth++
		case strings.IndexByte("}]", b) >= 0:
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case depth == 0 && strings.IndexByte(" \t\r\n,", b) >= 0:
			return i
		}
	}
	return -1
}

func checkSequence(t *testing.T, body []byte) {
	t.Helper()
	want := slowSequence(string(body))
	chunkings(body, func(how string, pieces [][]byte) {
		t.Helper()
		r := &recorder{}
		if d := tell(&Sequence{Sink: r}, r, pieces).diff(want); d != "" {
			t.Errorf("%.200q in %s:%s", body, how, d)
		}
	})
}

func TestSequence(t *testing.T) {
	for _, body := range sequenceBodies {
		checkSequence(t, []byte(body))
	}
}

func FuzzSequence(f *testing.F) {
	for _, body := range sequenceBodies {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) < 4096 {
			checkSequence(t, body)
		}
	})
}
