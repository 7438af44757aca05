package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rubicon-go/rubicon/cmd/rubicon/internal/lab"
)

// labHelp is what "rubicon lab -h" prints before it lists the faults.
const labHelp = `Usage: rubicon lab [-json] [-only NAME]

Lab plays faults on loopback against three clients and prints what became of
each: net/http as it is, go-retryablehttp as it is but with short waits, and
Rubicon, likewise. All are used by the same caller, who makes a POST, reads the
whole answer, and knows one thing to do about an error or a 5xx answer: to try
once more. The caller carries an operation in its context, which only Rubicon
looks at. Of an answer that comes as a stream (the faults stream-...) it knows
what its client says: an end of the body is the end of the answer.

  wire attempts  how often what the caller asks for was put on the wire:
                 requests whose header the server has read, with those that
                 net/http repeats by itself. Where a fault comes before that,
                 connections asked for (dns, refused, tls, layers-refused) or
                 CONNECTs received (proxy). What fills a pool beforehand does
                 not count.
  effects        how often the server acted.
  told           what the caller was told in the end: a status, "error: " and
                 what the error is by its type, or Rubicon's outcome with what
                 is known beside it: the latest status, "stalled" where a limit
                 on silence was reached, "whole" where all output of a stream
                 had arrived before the cut.
  ok             whether the three are what the lab expects. Of the first two
                 clients it expects what is wrong with them: where they do no
                 harm any more, a row shows nothing.

Faults of a credential (auth-...) are played against three others: x/oauth2's
Transport over net/http; a naive refresher over net/http, which answers each 401
with a token request of its own and sends the request once more, as many
programs do; and Rubicon with Auth. The authorization server rotates refresh
tokens, and one that is used twice kills the grant. The callers do not try
again. The columns of these rows are

  token reqs     requests at the token endpoint
  API reqs       requests at the API
  grant          what became of the grant: alive; killed, by the client; leaked,
                 which is alive, but the client has shown a token of it to
                 another host; revoked, beforehand; none, for an API key
  told           as above, or what Rubicon says of the renewal: transient,
                 ambiguous, misconfigured or reconnect. Where there are many
                 callers, what most of them were told, and how many they are

and below them stands for each client how many calls were answered 200, how many
tokens it has asked for, and how many grants it has lost (killed or leaked).

The exit status is 0 if every row is ok, 1 if one is not, 2 for wrong usage.

  -json       print a line of JSON for each row, with the keys fault, client,
              attempts, effects, outcome, want, ok; those of a
              credential have auth besides, with token_requests, grant, calls,
              served
  -only NAME  play one fault only

The faults are:

`

// labFlags are the flags of the lab.
type labFlags struct {
	json bool
	only string
}

// parseLab parses the arguments of the lab.
func parseLab(args []string) (labFlags, error) {
	var f labFlags
	flags := flag.NewFlagSet("lab", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.BoolVar(&f.json, "json", false, "")
	flags.StringVar(&f.only, "only", "", "")
	if err := flags.Parse(args); err != nil {
		return f, err
	}
	if flags.NArg() > 0 {
		return f, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return f, nil
}

// runLab plays the faults of the lab.
func runLab(ctx context.Context, args []string, out, errs io.Writer) int {
	flags, err := parseLab(args)
	faults := slices.Concat(lab.Faults(), lab.AuthFaults())
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, labHelp)
		listFaults(out, faults)
		return exitOK
	case err != nil:
		fmt.Fprintf(errs, "rubicon: lab: %v\nRun \"rubicon lab -h\" for its usage.\n", err)
		return exitUsage
	}
	if flags.only != "" {
		i := slices.IndexFunc(faults, func(f lab.Fault) bool { return f.Name == flags.only })
		if i < 0 {
			fmt.Fprintf(errs, "rubicon: lab: there is no fault %q. The faults are:\n\n", flags.only)
			listFaults(errs, faults)
			return exitUsage
		}
		faults = faults[i : i+1]
	}
	return playFaults(ctx, faults, flags.json, out, errs)
}

// listFaults prints a name and a sentence for each fault.
func listFaults(w io.Writer, faults []lab.Fault) {
	for _, f := range faults {
		lines := wrap(f.About, 61)
		fmt.Fprintf(w, "  %-*s  %s\n", faultWidth, f.Name, lines[0])
		for _, line := range lines[1:] {
			fmt.Fprintf(w, "  %*s  %s\n", faultWidth, "", line)
		}
	}
}

// wrap breaks text into lines of at most width letters.
func wrap(text string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case len(*last)+1+len(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}

// playFaults plays faults and prints what became of them.
func playFaults(ctx context.Context, faults []lab.Fault, asJSON bool, out, errs io.Writer) int {
	var p printer = &table{w: out}
	switch {
	case asJSON:
		p = jsonLines{json.NewEncoder(out)}
	case len(faults) == 1:
		about := faults[0].Name + ": " + faults[0].About + "."
		fmt.Fprintf(out, "%s\n\n", strings.Join(wrap(about, 80), "\n"))
	}
	return printRows(p, errs, func(report func(lab.Row)) error { return lab.Run(ctx, faults, report) })
}

// A printer prints rows as they come.
type printer interface {
	row(lab.Row) error
	end() error
}

// printRows prints the rows that play reports, and to errs what is wrong with
// them. It returns an exit status.
func printRows(p printer, errs io.Writer, play func(report func(lab.Row)) error) int {
	var missed []lab.Row
	var unprinted error
	err := play(func(r lab.Row) {
		unprinted = cmp.Or(unprinted, p.row(r))
		if !r.OK {
			missed = append(missed, r)
		}
	})
	if err == nil {
		unprinted = cmp.Or(unprinted, p.end())
	}
	for _, r := range missed {
		fmt.Fprintf(errs, "rubicon: lab: %s, %s:\n  got  %s\n  want %s\n", r.Fault, r.Client, r.Got(), r.Want)
	}
	if err = cmp.Or(err, unprinted); err != nil {
		fmt.Fprintf(errs, "rubicon: lab: %v\n", err)
	}
	if err != nil || missed != nil {
		return exitFailed
	}
	return exitOK
}

// jsonLines prints a line of JSON for each row.
type jsonLines struct{ *json.Encoder }

func (p jsonLines) row(r lab.Row) error { return p.Encode(r) }
func (p jsonLines) end() error          { return nil }

// The widths of the table's columns, which all fit into 80.
const (
	faultWidth  = 14
	clientWidth = 13
	toldWidth   = 26
)

// tableHead is the table's first lines.
var tableHead = fmt.Sprintf("%-*s  %-*s  %8s\n", faultWidth, "", clientWidth, "", "wire") +
	tableLine("fault", "client", "attempts", "effects", "what the caller was told", "ok")

// tableLine is a line of the table. What is too long for its column is cut.
func tableLine(fault, client string, attempts, effects any, told, ok string) string {
	return fmt.Sprintf("%-*s  %-*s  %8v  %7v  %-*s  %s\n", faultWidth, fault, clientWidth, client,
		attempts, effects, toldWidth, cut(told, toldWidth), ok)
}

// authHead is the first lines of the rows of a credential.
var authHead = fmt.Sprintf("%-*s  %-*s  %5s  %5s\n", faultWidth, "", authWidth, "", "token", "API") +
	authLine("fault", "client", "reqs", "reqs", "grant", "what the caller was told", "ok")

// The widths of columns that rows of a credential have alone.
const (
	authWidth  = 8
	grantWidth = 7
)

// authLine is tableLine for a row of a credential.
func authLine(fault, client string, tokens, attempts any, grant, told, ok string) string {
	return fmt.Sprintf("%-*s  %-*s  %5v  %5v  %-*s  %-*s  %s\n", faultWidth, fault, authWidth, client,
		tokens, attempts, grantWidth, grant, toldWidth, cut(told, toldWidth), ok)
}

// cut returns text, or its beginning if it is longer than width.
func cut(text string, width int) string {
	if runes := []rune(text); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return text
}

// A table prints rows for people.
type table struct {
	w       io.Writer
	faults  int            // but for those of a credential
	last    lab.Row        // the last row
	clients []string       // in the order of their first rows
	repeats map[string]int // how often a client made the server act more than once
	auth    lab.AuthSum
}

// row prints r, and before it what sets it off from the row above.
func (t *table) row(r lab.Row) error {
	above := ""
	switch {
	case t.last.Fault == "" || (t.last.Auth == nil) != (r.Auth == nil):
		above = t.head(r)
	case t.last.Fault != r.Fault:
		above = "\n"
	}
	t.count(r)
	_, err := fmt.Fprint(t.w, above, line(r))
	return err
}

// head returns the head for r and what follows in its form.
func (t *table) head(r lab.Row) string {
	head := tableHead
	if r.Auth != nil {
		head = authHead
	}
	if t.last.Fault != "" {
		return "\n" + head
	}
	return head
}

// line returns the line of r.
func line(r lab.Row) string {
	ok := "ok"
	if !r.OK {
		ok = "NO"
	}
	if r.Auth != nil {
		return authLine(r.Fault, r.Client, r.Auth.TokenRequests, r.Attempts, r.Auth.Grant, r.Outcome, ok)
	}
	return tableLine(r.Fault, r.Client, r.Attempts, r.Effects, r.Outcome, ok)
}

// count notes what end says about r.
func (t *table) count(r lab.Row) {
	isNew := t.last.Fault != r.Fault
	t.last = r
	if r.Auth != nil {
		t.auth.Add(r)
		return
	}
	if isNew {
		t.faults++
	}
	if !slices.Contains(t.clients, r.Client) {
		t.clients = append(t.clients, r.Client)
	}
	if r.Effects > 1 {
		if t.repeats == nil {
			t.repeats = map[string]int{}
		}
		t.repeats[r.Client]++
	}
}

// end prints what the rows come to.
func (t *table) end() error {
	var b strings.Builder
	if t.faults > 1 {
		for _, client := range t.clients {
			fmt.Fprintf(&b, "%-*s  made the server act more than once in %d of %d faults\n",
				clientWidth, client, t.repeats[client], t.faults)
		}
		for _, line := range t.auth.Lines() {
			b.WriteString(line + "\n")
		}
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := fmt.Fprintf(t.w, "\n%s", b.String())
	return err
}
