package contract

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestTap(t *testing.T) {
	long := `{"a":"` + strings.Repeat("text ", 900) + `","b":"end"}`
	encode := base64.StdEncoding.EncodeToString
	for text, want := range map[string]string{
		encode([]byte(`{"b":"x"}`)):                          "x",
		encode([]byte(`{"b":"xy"}`)):                         "xy",
		encode([]byte(`{"b":"xyz"}`)):                        "xyz",
		encode([]byte(long)):                                 "end",
		`eyJi\u0049joieCJ9`:                                  "x", // an escape in the base64
		encode([]byte(`{"b":"x"}`)) + "!!!!":                 "",
		encode([]byte(`{"b":"x"}`)) + "eA":                   "",
		encode([]byte(`{"b":"x"} {`)):                        "",
		encode([]byte(`{"b":"x"`)):                           "",
		strings.TrimRight(encode([]byte(`{"b":"xy"}`)), "="): "",
		"": "",
	} {
		for _, size := range []int{1, 3, 5, 100000} {
			if got := tapped(t, `{"p":"eyJiIjoibm8ifQ==","bytes":"`+text+`","q":1}`, size); got != want {
				t.Errorf("%.60q in pieces of %d: %q, want %q", text, size, got, want)
			}
		}
	}
}

// tapped returns b of the JSON in base64 that a text has in bytes. Empty: there
// is none.
func tapped(t *testing.T, text string, size int) string {
	t.Helper()
	outer, inner := newTrie(), newTrie()
	if err := outer.addAll(nil, "bytes"); err != nil {
		t.Fatal(err)
	}
	if err := inner.addAll([]string{"b"}, ""); err != nil {
		t.Fatal(err)
	}
	tap := new(tap)
	var s scanner
	tap.reset(inner)
	s.reset(outer)
	s.tap = tap
	for p := range slices.Chunk([]byte(text), size) {
		s.feed(p)
	}
	if !s.whole() {
		t.Fatal(fmt.Errorf("%q is no JSON", text))
	}
	if !tap.whole() {
		return ""
	}
	return string(tap.scan.vals.bytes(&tap.scan.vals.list[0]))
}
