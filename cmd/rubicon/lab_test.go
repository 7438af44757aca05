package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/rubicon-go/rubicon/cmd/rubicon/internal/lab"
)

// TestLab plays the whole lab: every row must be as expected, and the table
// must be one for people.
func TestLab(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var out, errs bytes.Buffer
	if status := run(t.Context(), []string{"lab"}, &out, &errs); status != exitOK || errs.Len() > 0 {
		t.Errorf("status %d; standard error:\n%s", status, &errs)
	}
	table, auth, _ := strings.Cut(out.String(), "\n"+authHead)
	auth, sums, _ := strings.Cut(auth, "\n\nnet/http")
	checkTable(t, table+"\n\nnet/http"+sums, len(lab.Faults()))
	checkAuth(t, auth, sums)
}

// checkAuth checks that text has three rows for each fault of a credential, and
// sums a line for each of their clients.
func checkAuth(t *testing.T, text, sums string) {
	t.Helper()
	rows := 0
	for _, line := range strings.Split(text, "\n") {
		if n := utf8.RuneCountInString(line); n > 80 {
			t.Errorf("longer than 80: %s", line)
		}
		if strings.HasPrefix(line, "auth-") && strings.HasSuffix(line, "  ok") {
			rows++
		}
	}
	if n := len(lab.AuthFaults()); rows != 3*n || n == 0 {
		t.Errorf("%d rows of a credential that are ok, want %d", rows, 3*n)
	}
	for _, sum := range []string{"\nauth: x/oauth2  served ", "\nauth: naive     served ", "\nauth: rubicon   served "} {
		if strings.Count(sums, sum) != 1 {
			t.Errorf("the table does not end with %q", sum)
		}
	}
}

// checkTable checks that text is a table of three rows for each of n faults,
// with its columns below their headings, that fits into 80 columns.
func checkTable(t *testing.T, text string, n int) {
	t.Helper()
	lines := strings.Split(text, "\n")
	head := lines[1]
	client, told, ok := strings.Index(head, "client"), strings.Index(head, "what the caller was told"), strings.Index(head, "ok")
	attempts, effects := strings.Index(head, "attempts")+len("attempts"), strings.Index(head, "effects")+len("effects")
	if min(client, told, ok) < 0 || !strings.HasSuffix(lines[0], "wire") || len(lines[0]) > attempts {
		t.Fatalf("the head is\n%s\n%s", lines[0], head)
	}
	rows := 0
	for _, line := range lines[2:] {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("longer than 80: %s", line)
		}
		if !strings.HasSuffix(line, "  ok") {
			continue
		}
		rows++
		for _, starts := range []int{client, told, ok} {
			if line[starts-2:starts] != "  " || line[starts] == ' ' {
				t.Errorf("no column begins at %d: %s", starts, line)
			}
		}
		for _, ends := range []int{attempts, effects} {
			if line[ends-1] == ' ' || line[ends] != ' ' {
				t.Errorf("no column ends at %d: %s", ends, line)
			}
		}
	}
	if rows != 3*n || n == 0 {
		t.Errorf("%d rows that are ok, want %d", rows, 3*n)
	}
	const sum = "rubicon        made the server act more than once in 0 of "
	if !strings.Contains(text, sum) {
		t.Errorf("the table does not end with %q", sum)
	}
}

func TestLabOnly(t *testing.T) {
	var out, errs bytes.Buffer
	if status := run(t.Context(), []string{"lab", "-only", "lost-close"}, &out, &errs); status != exitOK {
		t.Errorf("status %d; standard error:\n%s", status, &errs)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if !strings.HasPrefix(lines[0], "lost-close: the server acts ") || !strings.HasSuffix(lines[len(lines)-1], "  ok") {
		t.Errorf("printed:\n%s", &out)
	}
}

func TestLabJSON(t *testing.T) {
	var out, errs bytes.Buffer
	if status := run(t.Context(), []string{"lab", "-json", "-only", "lost-close"}, &out, &errs); status != exitOK {
		t.Errorf("status %d; standard error:\n%s", status, &errs)
	}
	want := []string{
		`{"fault":"lost-close","client":"net/http","attempts":2,"effects":2,"outcome":"error: EOF",` +
			`"want":"attempts 2, effects 2, outcome error: EOF","ok":true}`,
		`{"fault":"lost-close","client":"retryablehttp","attempts":10,"effects":10,"outcome":"error: EOF",` +
			`"want":"attempts 10, effects 10, outcome error: EOF","ok":true}`,
		`{"fault":"lost-close","client":"rubicon","attempts":1,"effects":1,"outcome":"ambiguous",` +
			`"want":"attempts 1, effects 1, outcome ambiguous","ok":true}`,
	}
	if got := strings.Split(strings.TrimSpace(out.String()), "\n"); !slices.Equal(got, want) {
		t.Errorf("printed:\n%s", &out)
	}
	for line := range strings.Lines(out.String()) {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		keys := slices.Sorted(maps.Keys(row))
		if want := []string{"attempts", "client", "effects", "fault", "ok", "outcome", "want"}; !slices.Equal(keys, want) {
			t.Errorf("keys %q, want %q", keys, want)
		}
	}
}

func TestLabUsage(t *testing.T) {
	tests := []struct {
		args   string
		status int
		out    string // a part of standard output; "" when nothing may be there
		errs   string // the same of standard error
	}{
		{"-h", exitOK, "\n  lost-close      the server acts and closes", ""},
		{"-only lost", exitUsage, "", "there is no fault \"lost\". The faults are:\n\n  dns-nxdomain "},
		{"-only", exitUsage, "", "flag needs an argument"},
		{"-jsonl", exitUsage, "", "Run \"rubicon lab -h\""},
		{"lost-close", exitUsage, "", `unexpected argument "lost-close"`},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			var out, errs bytes.Buffer
			args := append([]string{"lab"}, strings.Fields(tt.args)...)
			if got := run(t.Context(), args, &out, &errs); got != tt.status {
				t.Errorf("status %d, want %d", got, tt.status)
			}
			check(t, "standard output", out.String(), tt.out)
			check(t, "standard error", errs.String(), tt.errs)
			for line := range strings.Lines(out.String() + errs.String()) {
				if len(line) > 81 {
					t.Errorf("longer than 80: %s", line)
				}
			}
		})
	}
}

// TestLabNamesEveryFault keeps the lists complete.
func TestLabNamesEveryFault(t *testing.T) {
	var help, unknown bytes.Buffer
	run(t.Context(), []string{"lab", "-h"}, &help, &help)
	run(t.Context(), []string{"lab", "-only", "?"}, &unknown, &unknown)
	for _, f := range slices.Concat(lab.Faults(), lab.AuthFaults()) {
		if name := "\n  " + f.Name + " "; !strings.Contains(help.String(), name) || !strings.Contains(unknown.String(), name) {
			t.Errorf("%s is not listed", f.Name)
		}
	}
}

// TestLabOnlyAuth has a row of a credential by itself, in both forms.
func TestLabOnlyAuth(t *testing.T) {
	var text, lines, errs bytes.Buffer
	run(t.Context(), []string{"lab", "-only", "auth-key"}, &text, &errs)
	check(t, "the table", text.String(), authHead+authLine("auth-key", "x/oauth2", 0, 1, "none", "401", "ok"))
	run(t.Context(), []string{"lab", "-json", "-only", "auth-key"}, &lines, &errs)
	check(t, "the lines", lines.String(), `"auth":{"token_requests":0,"grant":"none","calls":1,"served":0}}`)
	check(t, "standard error", errs.String(), "")
}

// TestLabMissed has rows that miss what is expected of them, of Rubicon and of
// a client that stopped doing what is wrong with it.
func TestLabMissed(t *testing.T) {
	for _, client := range []string{"net/http", "rubicon"} {
		for _, form := range []string{"table", "json"} {
			t.Run(client+" "+form, func(t *testing.T) {
				var out, errs bytes.Buffer
				var p printer = &table{w: &out}
				if form == "json" {
					p = jsonLines{json.NewEncoder(&out)}
				}
				status := printRows(p, &errs, func(report func(lab.Row)) error {
					report(lab.Row{Fault: "f", Client: "other", OK: true})
					report(lab.Row{Fault: "f", Client: client, Attempts: 3, Outcome: "200", Want: "something else"})
					return nil
				})
				if status != exitFailed {
					t.Errorf("status %d", status)
				}
				want := "rubicon: lab: f, " + client + ":\n  got  attempts 3, effects 0, outcome 200\n  want something else\n"
				if errs.String() != want {
					t.Errorf("standard error:\n%s", &errs)
				}
				if bad := map[string]string{"table": "  NO\n", "json": `"ok":false`}[form]; !strings.Contains(out.String(), bad) {
					t.Errorf("standard output:\n%s", &out)
				}
			})
		}
	}
}

// TestLabCutsLongWords keeps the table in form when a row goes wrong.
func TestLabCutsLongWords(t *testing.T) {
	var out bytes.Buffer
	p := &table{w: &out}
	if err := p.row(lab.Row{Fault: "f", Client: "c", Outcome: "error: " + strings.Repeat("é", 50)}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	row := lines[len(lines)-1]
	if n := utf8.RuneCountInString(row); n != 80 || !strings.HasSuffix(row, "é…  NO") {
		t.Errorf("%d columns: %s", n, row)
	}
}

// TestLabInterrupted has a user who gives up.
func TestLabInterrupted(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no more"))
	var out, errs bytes.Buffer
	if status := run(ctx, []string{"lab"}, &out, &errs); status != exitFailed {
		t.Errorf("status %d", status)
	}
	if out.Len() > 0 || errs.String() != "rubicon: lab: no more\n" {
		t.Errorf("printed %q and %q", &out, &errs)
	}
}

// TestLabUnprinted has a standard output that fails.
func TestLabUnprinted(t *testing.T) {
	var errs bytes.Buffer
	if status := run(t.Context(), []string{"lab", "-only", "lost-close"}, full{}, &errs); status != exitFailed {
		t.Errorf("status %d", status)
	}
	check(t, "standard error", errs.String(), "no space")
}

// full is a writer that fails.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }
