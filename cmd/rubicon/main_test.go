package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	tests := []struct {
		args   []string
		status int
		out    string // a part of standard output; "" when nothing may be there
		errs   string // the same of standard error
	}{
		{nil, exitUsage, "", "Usage: rubicon COMMAND"},
		{[]string{"help"}, exitOK, "Usage: rubicon COMMAND", ""},
		{[]string{"-h"}, exitOK, "Usage: rubicon COMMAND", ""},
		{[]string{"version"}, exitOK, " go1.", ""},
		{[]string{"version", "now"}, exitUsage, "", "takes no arguments"},
		{[]string{"cross"}, exitUsage, "", `unknown command "cross"`},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			var out, errs bytes.Buffer
			if got := run(t.Context(), tt.args, &out, &errs); got != tt.status {
				t.Errorf("status %d, want %d", got, tt.status)
			}
			check(t, "standard output", out.String(), tt.out)
			check(t, "standard error", errs.String(), tt.errs)
		})
	}
}

// check fails t unless text holds part, or is as empty as part is.
func check(t *testing.T, name, text, part string) {
	t.Helper()
	if (text == "") != (part == "") || !strings.Contains(text, part) {
		t.Errorf("%s is %q, want %q in it", name, text, part)
	}
}

func TestUsageNamesEveryCommand(t *testing.T) {
	var out bytes.Buffer
	usage(&out)
	var named []string
	for line := range strings.Lines(out.String()) {
		if word, ok := strings.CutPrefix(line, "  "); ok {
			named = append(named, strings.Fields(word)[0])
		}
	}
	var want []string
	for _, c := range commands() {
		want = append(want, c.name)
	}
	if !slices.Equal(named, want) || len(want) == 0 {
		t.Errorf("usage names %q, want %q", named, want)
	}
}
