package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/rubicon-go/rubicon/contract"
)

// judgeHelp is what "rubicon judge -h" prints.
const judgeHelp = `Usage: rubicon judge [-content-type TYPE] [FILE ...]
       rubicon judge -manifest MANIFEST

Judge says how recorded bodies of streamed answers ended, by the evidence of
their protocols. Only the content type and the bytes count, not a file's name.
Without a FILE, or for the FILE "-", it reads standard input. For each body it
prints a line with these columns, separated by tabs:

  file          the name as it was given
  protocol      the contract that governs the body
  end           completed, incomplete, failed, interrupted or unjudged
  operation id  the server's, as far as the body shows it
  cursor        the last position that the protocol offers for reading on
  events        how many whole ones there are

What a body does not show is "-". Where a control character, such as a tab,
would be printed, there is a space instead.

With -manifest it judges the files that MANIFEST lists, relative to it, and
prints a line for each difference to what is expected there, and last how many
agree. The first line of MANIFEST names its columns, separated by tabs: file,
content-type, expected-end, operation-id, last-cursor, events, in any order,
and others, which are not read.

A body that is still compressed has a parameter in its content type, as in
"text/event-stream; content-encoding=gzip". It may be gzip or deflate, and gzip
is recognized without it. What can be decoded before a cut is judged.

The exit status is 0 if all bodies were judged and, with -manifest, agree; 1 if
not; 2 for wrong usage.

  -content-type TYPE  the content type of each body; it is guessed from the
                      first bytes otherwise
  -manifest MANIFEST  judge the files of a manifest
`

// judgeFlags are the flags and arguments of the judge.
type judgeFlags struct {
	contentType, manifest string
	files                 []string // nil: standard input
}

// parseJudge parses the arguments of the judge.
func parseJudge(args []string) (judgeFlags, error) {
	var f judgeFlags
	flags := flag.NewFlagSet("judge", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&f.contentType, "content-type", "", "")
	flags.StringVar(&f.manifest, "manifest", "", "")
	if err := flags.Parse(args); err != nil {
		return f, err
	}
	f.files = flags.Args()
	if f.manifest != "" && (f.contentType != "" || len(f.files) > 0) {
		return f, errors.New("a manifest names the files and their content types itself")
	}
	return f, nil
}

// runJudge judges recorded bodies.
func runJudge(ctx context.Context, args []string, out, errs io.Writer) int {
	flags, err := parseJudge(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, judgeHelp)
		return exitOK
	case err != nil:
		fmt.Fprintf(errs, "rubicon: judge: %v\nRun \"rubicon judge -h\" for its usage.\n", err)
		return exitUsage
	}
	set, err := contract.NewSet(contract.Known()...)
	if err != nil {
		fmt.Fprintf(errs, "rubicon: judge: %v\n", err)
		return exitFailed
	}
	j := &judge{ctx: ctx, contracts: set, out: out, errs: errs}
	if flags.manifest != "" {
		j.compare(flags.manifest)
	} else {
		j.judge(flags.files, flags.contentType)
	}
	if j.failed {
		return exitFailed
	}
	return exitOK
}

// A judge judges bodies until its context ends, and prints what it finds.
type judge struct {
	ctx       context.Context
	contracts *contract.Set
	out, errs io.Writer
	failed    bool // something was not as it should be
}

// judge judges each file, or standard input if there is none, and prints a line
// for it.
func (j *judge) judge(files []string, contentType string) {
	if len(files) == 0 {
		files = []string{"-"}
	}
	for _, name := range files {
		end, err := j.file(name, contentType)
		if err != nil {
			j.complain(err)
		} else {
			j.print(append([]string{name, end.Protocol}, columns(end)...)...)
		}
		if j.ctx.Err() != nil {
			return
		}
	}
}

// print prints a line with columns.
func (j *judge) print(columns ...string) {
	line := make([]string, len(columns))
	for i, c := range columns {
		line[i] = printable(c)
	}
	if _, err := fmt.Fprintln(j.out, strings.Join(line, "\t")); err != nil {
		j.complain(err)
	}
}

// complain prints what went wrong.
func (j *judge) complain(err error) {
	j.failed = true
	fmt.Fprintf(j.errs, "rubicon: judge: %v\n", err)
}

// columns returns what a manifest says of a body as well.
func columns(end contract.End) []string {
	return []string{end.State.String(), printable(end.Operation), printable(end.Cursor), strconv.FormatInt(end.Events, 10)}
}

// printable returns s as it can stand in a column: control characters would
// break the lines, or do things to a terminal.
func printable(s string) string {
	if s == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// file judges the body in a file; "-" is standard input.
func (j *judge) file(name, contentType string) (contract.End, error) {
	in := os.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return contract.End{}, err
		}
		defer f.Close()
		in = f
	}
	end, err := j.body(in, contentType)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return end, err
}

// body judges a body. It returns when the context ends, even where in has
// nothing to read and no end, as a terminal has.
func (j *judge) body(in io.Reader, contentType string) (contract.End, error) {
	if j.ctx.Err() != nil {
		return contract.End{}, context.Cause(j.ctx)
	}
	r, w := io.Pipe()
	defer r.Close()
	defer context.AfterFunc(j.ctx, func() { w.CloseWithError(context.Cause(j.ctx)) })()
	go func() {
		_, err := io.Copy(w, in)
		w.CloseWithError(err)
	}()
	b, err := decoded(bufio.NewReader(r), contentType)
	if err != nil {
		return contract.End{}, err
	}
	if contentType == "" {
		contentType = sniff(b)
	}
	watcher := j.contracts.Watch(contract.Answer{ContentType: contentType})
	if watcher == nil {
		n, err := io.Copy(io.Discard, b)
		return contract.End{Legal: true, Bytes: n}, unlessCut(err)
	}
	_, err = io.Copy(watcher, b)
	return watcher.End(), unlessCut(err)
}

// sniff guesses the content type of a body from its first bytes.
func sniff(b *bufio.Reader) string {
	head, _ := b.Peek(512)
	if len(head) > 12 && head[0] == 0 && head[4] == 0 { // two lengths below 16 MiB
		return "application/vnd.amazon.eventstream"
	}
	for line := range strings.Lines(strings.TrimPrefix(string(head), "\ufeff")) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "\x1e"):
			return "application/json-seq"
		case strings.HasPrefix(line, "["):
			return "application/json"
		case strings.HasPrefix(line, "{"):
			return "application/x-ndjson"
		case strings.Contains(line, ":"):
			return "text/event-stream"
		}
	}
	return "text/event-stream"
}
