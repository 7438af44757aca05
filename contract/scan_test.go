package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// paths that the scanner is tested with.
var testPaths = []string{strings.Repeat("k", 128), "a", "a.b", "a.b.c", "x[]", "x[].i", "x[].r", "e", "t?", "[].i", "deep.er.x[].a.y[].z"}

// scan returns the values that a scanner finds in a text that comes in the
// given pieces, and whether it takes the text for JSON.
func scan(t testing.TB, pieces ...[]byte) (map[string][]string, bool) {
	t.Helper()
	tr := newTrie()
	if err := tr.addAll(testPaths, ""); err != nil {
		t.Fatal(err)
	}
	var s scanner
	s.reset(tr)
	for _, p := range pieces {
		s.feed(p)
	}
	if s.vals.full {
		return nil, s.whole()
	}
	got := map[string][]string{}
	for i := range s.vals.n {
		v := &s.vals.list[i]
		if v.cut {
			return nil, s.whole()
		}
		text := fmt.Sprint(v.kind)
		if v.kind == String || v.kind == Number {
			text = string(s.vals.bytes(v))
		}
		got[tr.paths[v.leaf]] = append(got[tr.paths[v.leaf]], text)
	}
	return got, s.whole()
}

// slowScan finds the same with encoding/json.
func slowScan(text []byte) (map[string][]string, bool) {
	if !json.Valid(text) {
		return nil, false
	}
	got := map[string][]string{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	walk(d, "", got)
	return got, true
}

// walk reads a value at the given path.
func walk(d *json.Decoder, path string, got map[string][]string) {
	token, _ := d.Token()
	add := func(text string) {
		if slices.Contains(testPaths, path) {
			got[path] = append(got[path], text)
		}
		if path == "t" {
			switch token.(type) {
			case string, json.Number:
				text = "" // only the kind is asked for
			}
			got[path] = append(got[path], text)
		}
	}
	switch v := token.(type) {
	case json.Delim:
		if v == '[' {
			add(fmt.Sprint(Array))
			for d.More() {
				walk(d, path+"[]", got)
			}
		} else {
			add(fmt.Sprint(Object))
			for d.More() {
				key, _ := d.Token()
				sub := path + "." + key.(string)
				if path == "" {
					sub = key.(string)
				}
				if strings.ContainsAny(key.(string), ".[]") || key == "" || len(key.(string)) > 128 {
					sub = "?"
				}
				walk(d, sub, got)
			}
		}
		d.Token()
	case nil:
		add(fmt.Sprint(Null))
	case bool:
		k := False
		if v {
			k = True
		}
		add(fmt.Sprint(k))
	case json.Number:
		add(v.String())
	case string:
		add(v)
	}
}

var scanTexts = []string{
	`{"a":{"b":1,"b":{"c":"x"}},"e":null,"x":[{"i":0,"r":"s\u0074op"},{"i":1}],"t":"text"}`,
	`{"\u0061":"\ud83d\ude00\ud83d!\udc00","x":[[{"i":9}],{"i":[1]}]}`,
	`[{"i":"a"},[{"i":"b"}],{"i":true}]`, ` "x" `, `12`, `-1.5e3`, `{}`, `[]`, `true`, `nul`, `{"a":1,}`, `{"a" 1}`, `[1 2]`, `{"a":1}}`, `{"a":1} {"a":2}`,
	`{"a":"half` + "\n" + `{"error":1}"}`, `{"a":{"a":{"b":{"c":1}}},"a.b":2,"":3}`, strings.Repeat("[", 600) + strings.Repeat("]", 600),
	strings.Repeat(`{"a":`, 600) + `"\"]"` + strings.Repeat("}", 600), `{"t":{"i":1},"t":7}`, `{"deep":{"er":{"x":[{"a":{"y":[{"z":1},{"z":2}]}}]}}}`,
	`{"a":"\ud83d\u0041\ud83d\ud83d\ude00\ude00"}`, `{"` + strings.Repeat("k", 128) + `":1,"` + strings.Repeat("k", 129) + `":2}`,
	`{"a":"` + strings.Repeat("x", 700) + `"}`, `{"` + strings.Repeat("a", 140) + `":1}`, `{"a":tru,"b":1}`, `{"a":"\x"}`, `{"a":"\u12x4"}`,
}

func checkScan(t *testing.T, text []byte) {
	t.Helper()
	want, valid := slowScan(text)
	for _, size := range []int{1, 2, 3, 7, 64, len(text) + 1} {
		got, whole := scan(t, slices.Collect(slices.Chunk(text, size))...)
		if valid && !whole {
			t.Errorf("%.200q in pieces of %d is not taken for JSON", text, size)
		}
		if valid && got != nil && fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%.200q in pieces of %d:\n got %q\nwant %q", text, size, got, want)
		}
	}
}

func TestScan(t *testing.T) {
	for _, text := range scanTexts {
		checkScan(t, []byte(text))
	}
}

// TestScanRejects holds what must not pass for JSON: structure that does not
// fit. The digits of numbers and the escapes of strings that nobody asked for
// may be anything.
func TestScanRejects(t *testing.T) {
	for _, text := range []string{
		``, ` `, `nul`, `nulls`, `{"a":1,}`, `{"a" 1}`, `[1 2]`, `{"a":1}}`, `{"a":1} {"a":2}`, `{a:1}`, `{"a":1]`, `[1}`, `[1,]`, `[,1]`, `{"a"}`, `{"a":}`,
		`{,}`, `"x`, `"x\`, `{"a":"\x"}`, `{"a":"\u12x4"}`, "{\"b\":\"half\n\"}", `{"choices":[{"delta":{"content":"half` + "\n" + `{"error":{"message":"x"}}`,
		`]`, `}`, `:`, `,`, strings.Repeat("[", 600) + strings.Repeat("]", 599),
	} {
		for _, size := range []int{1, 3, 100} {
			if _, whole := scan(t, slices.Collect(slices.Chunk([]byte(text), size))...); whole {
				t.Errorf("%.100q passes for JSON", text)
			}
		}
	}
}

func FuzzScan(f *testing.F) {
	for _, text := range scanTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) < 4096 {
			checkScan(t, text)
		}
	})
}

// TestScanAnyhow scans texts that are put together at random.
func TestScanAnyhow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		checkScan(t, randomJSON(nil, r, 0))
		if t.Failed() {
			return
		}
	}
}

// randomJSON appends a value.
func randomJSON(b []byte, r *rand.Rand, depth int) []byte {
	pick := func(of ...string) { b = append(b, of[r.IntN(len(of))]...) }
	text := func() {
		pick(`""`, `"x"`, `"a\"b"`, `"\\"`, `"\u0073top"`, `"[DONE]"`, `"{\"e\":1}"`, `"\ud83d\ude00"`, `"\ud83d"`, `"long long long text"`)
	}
	kind := r.IntN(8)
	if depth > 5 {
		kind = r.IntN(3)
	}
	pick("", "", " ", "\t", "\r\n")
	switch kind {
	case 0:
		pick("1", "-2.5", "1e9", "0", "true", "false", "null")
	case 1, 2:
		text()
	case 3, 4:
		b = append(b, '[')
		for i := range r.IntN(4) {
			if i > 0 {
				b = append(b, ',')
			}
			b = randomJSON(b, r, depth+1)
		}
		b = append(b, ']')
	default:
		b = append(b, '{')
		for i := range r.IntN(5) {
			if i > 0 {
				b = append(b, ',')
			}
			pick(`"a"`, `"b"`, `"c"`, `"x"`, `"i"`, `"r"`, `"e"`, `"t"`, `"\u0061"`, `"deep"`, `"er"`, `"y"`, `"z"`, `"q"`, `""`)
			pick(":", " :", ": ")
			b = randomJSON(b, r, depth+1)
		}
		b = append(b, '}')
	}
	pick("", "", " ", "\n")
	return b
}

func TestPaths(t *testing.T) {
	for path, ok := range map[string]bool{
		"a": true, "a.b[].c": true, "[].a": true, "a[][]": true, "a?": true,
		"": false, "?": false, "a..b": false, ".a": true, "a.": false, "a.b.c.d.e.f.g.h.i.j.k.l.m": false,
	} {
		if err := newTrie().addAll([]string{path}, ""); (err == nil) != ok {
			t.Errorf("path %q: %v", path, err)
		}
	}
}

// TestFull has more values than are kept, and longer ones: those that are kept
// are not mixed up with others.
func TestFull(t *testing.T) {
	tr := newTrie()
	if err := tr.addAll([]string{"x[].i", "a", "b"}, ""); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("y", maxText+9)
	for _, c := range []struct {
		text string
		n    int
		full bool
		last string // the text of the last value
	}{
		{`{"x":[` + strings.Repeat(`{"i":"v"},`, maxElements-1) + `{"i":"last"}]}`, maxElements, false, "last"},
		{`{"x":[` + strings.Repeat(`{"i":"v"},`, maxElements-1) + `{"i":"last"},{"i":"lost"}]}`, maxElements, true, "last"},
		{`{"x":[` + strings.Repeat(`{"i":"v"},`, maxValues) + `{"i":"lost"}],"a":"last"}`, maxElements + 1, true, "last"},
		{`{"a":"v"` + strings.Repeat(`,"a":"v"`, maxValues-2) + `,"a":"last","a":"lost"}`, maxValues, true, "last"},
		{`{"x":[` + strings.Repeat(`{"i":"`+long+`"},`, 8) + `{"i":"` + long + `"}],"a":"last"}`, 10, false, "last"},
		{`{"a":"` + long + `"}`, 1, false, long[:maxText]},
		{`{"a":"` + long + `","a":"` + long + `","a":"` + long + `","a":"` + long + `","b":"z"}`, 5, false, ""},
	} {
		var s scanner
		s.reset(tr)
		s.feed([]byte(c.text))
		if !s.whole() || s.vals.n != c.n || s.vals.full != c.full {
			t.Errorf("%.40q: whole %v, %d values, full %v", c.text, s.whole(), s.vals.n, s.vals.full)
			continue
		}
		if last := &s.vals.list[c.n-1]; string(s.vals.bytes(last)) != c.last || last.cut != (c.last != "last") {
			t.Errorf("%.40q: the last value is %.20q, cut %v", c.text, s.vals.bytes(last), last.cut)
		}
	}
}

// TestSize holds what a watcher costs to keep: whatever a stream does, no more.
func TestSize(t *testing.T) {
	if n := unsafe.Sizeof(Watcher{}); n > 8<<10 {
		t.Errorf("a watcher has %d bytes", n)
	}
	if n := unsafe.Sizeof(shapes{}); n > 4<<10 {
		t.Errorf("shapes have %d bytes", n)
	}
}
