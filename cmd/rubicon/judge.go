package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rubicon-go/rubicon/contract"
)

// judgeUsage is the help of the judge command.
const judgeUsage = `usage: rubicon judge [-content-type TYPE] [FILE ...]
       rubicon judge -manifest MANIFEST.tsv

Says how each recorded body of a streamed answer ended, by the evidence of its
own protocol. Without a FILE it reads standard input. It prints, separated by
tabs:

  file, protocol, end, operation id, cursor, events

The end is completed, incomplete, failed, interrupted or unjudged. What a body
does not have is "-". With -manifest it judges the files that the manifest
lists, beside it, and prints each difference to its columns.

`

// runJudge is the judge command.
func runJudge(_ context.Context, args []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet("judge", flag.ContinueOnError)
	flags.SetOutput(errs)
	contentType := flags.String("content-type", "", "the `TYPE` of every body; by default it is told by its first bytes")
	manifest := flags.String("manifest", "", "judge the files of the manifest in `FILE`, and compare")
	flags.Usage = func() {
		fmt.Fprint(errs, judgeUsage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitOK
		}
		return exitUsage
	}
	j, err := newJudge()
	if err != nil {
		fmt.Fprintln(errs, err)
		return exitFailed
	}
	if *manifest != "" {
		return j.compare(*manifest, out, errs)
	}
	return j.files(flags.Args(), *contentType, out, errs)
}

// A judge judges recorded bodies.
type judge struct{ contracts *contract.Set }

// newJudge returns a judge that knows all known contracts.
func newJudge() (*judge, error) {
	set, err := contract.NewSet(contract.Known()...)
	return &judge{set}, err
}

// files judges each file, or standard input, and prints a line for it.
func (j *judge) files(names []string, contentType string, out, errs io.Writer) int {
	if len(names) == 0 {
		names = []string{"-"}
	}
	status := exitOK
	for _, name := range names {
		end, err := j.file(name, contentType)
		if err != nil {
			fmt.Fprintln(errs, "rubicon judge:", err)
			status = exitFailed
			continue
		}
		fmt.Fprintln(out, strings.Join(append([]string{name, dash(end.Protocol)}, columns(end)...), "\t"))
	}
	return status
}

// columns returns what a manifest says of a body as well.
func columns(end contract.End) []string {
	return []string{end.State.String(), dash(end.Operation), dash(end.Cursor), strconv.FormatInt(end.Events, 10)}
}

// dash returns s, or a dash for nothing.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// file judges the body in a file; "-" is standard input.
func (j *judge) file(name, contentType string) (contract.End, error) {
	if name == "-" {
		return j.body(os.Stdin, contentType)
	}
	f, err := os.Open(name)
	if err != nil {
		return contract.End{}, err
	}
	defer f.Close()
	return j.body(f, contentType)
}

// body judges a body. The content type may carry the content coding of the
// stored bytes, as a parameter content-encoding.
func (j *judge) body(r io.Reader, contentType string) (contract.End, error) {
	b := bufio.NewReaderSize(r, 4<<10)
	r, err := decoded(b, contentType)
	if err != nil {
		return contract.End{}, err
	}
	if contentType == "" {
		contentType = sniff(b)
	}
	w := j.contracts.Watch(contract.Answer{ContentType: contentType})
	if w == nil {
		n, err := io.Copy(io.Discard, r)
		return contract.End{Legal: true, Bytes: n}, err
	}
	if _, err := io.Copy(w, r); err != nil && !isCut(err) {
		return contract.End{}, err
	}
	return w.End(), nil
}

// sniff guesses the content type of a body from its first bytes.
func sniff(b *bufio.Reader) string {
	head, _ := b.Peek(512)
	text := strings.TrimLeft(strings.TrimPrefix(string(head), "\ufeff"), " \t\r\n")
	switch {
	case len(head) > 12 && head[0] == 0 && head[4] == 0:
		return "application/vnd.amazon.eventstream"
	case strings.HasPrefix(text, "\x1e"):
		return "application/json-seq"
	case strings.HasPrefix(text, "["):
		return "application/json"
	case strings.HasPrefix(text, "{"):
		return "application/x-ndjson"
	}
	return "text/event-stream"
}

// compare judges the files of a manifest.
func (j *judge) compare(manifest string, out, errs io.Writer) int {
	rows, err := readManifest(manifest)
	if err != nil {
		fmt.Fprintln(errs, "rubicon judge:", err)
		return exitFailed
	}
	agree := 0
	for _, row := range rows {
		end, err := j.file(filepath.Join(filepath.Dir(manifest), row.file), row.contentType)
		if err != nil {
			fmt.Fprintln(errs, "rubicon judge:", err)
			continue
		}
		if row.compare(end, out) {
			agree++
		}
	}
	fmt.Fprintf(out, "%d of %d agree\n", agree, len(rows))
	if agree < len(rows) || len(rows) == 0 {
		return exitFailed
	}
	return exitOK
}

// A manifestRow is what a manifest expects of one body.
type manifestRow struct {
	file, contentType string
	want              []string // as columns returns
}

// The columns of a manifest that are read.
var manifestColumns = []string{"file", "content-type", "expected-end", "operation-id", "last-cursor", "events"}

// readManifest reads the rows of a manifest. Its first line names the columns.
func readManifest(name string) ([]manifestRow, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	at := make(map[string]int)
	for i, column := range strings.Split(strings.TrimRight(lines[0], "\r"), "\t") {
		at[column] = i
	}
	for _, column := range manifestColumns {
		if _, ok := at[column]; !ok {
			return nil, fmt.Errorf("%s: line 1 names no column %q", name, column)
		}
	}
	var rows []manifestRow
	for n, line := range lines[1:] {
		fields := strings.Split(strings.TrimRight(line, "\r"), "\t")
		if len(fields) < len(at) {
			return nil, fmt.Errorf("%s: line %d has %d columns, want %d", name, n+2, len(fields), len(at))
		}
		get := func(i int) string { return fields[at[manifestColumns[i]]] }
		rows = append(rows, manifestRow{get(0), get(1), []string{get(2), get(3), get(4), get(5)}})
	}
	return rows, nil
}

// compare prints each difference between the row and end, and reports whether
// there is none.
func (row manifestRow) compare(end contract.End, out io.Writer) bool {
	same := true
	for i, got := range columns(end) {
		if got != row.want[i] {
			fmt.Fprintf(out, "%s\t%s\tgot %s\twant %s\n", row.file, manifestColumns[i+2], got, row.want[i])
			same = false
		}
	}
	return same
}
