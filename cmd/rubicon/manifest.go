package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rubicon-go/rubicon/contract"
)

// compare judges the files of a manifest and prints what differs.
func (j *judge) compare(manifest string) {
	rows, err := readManifest(manifest)
	if err != nil {
		j.complain(err)
		return
	}
	agree := 0
	for _, row := range rows {
		end, err := j.file(filepath.Join(filepath.Dir(manifest), row.file), row.contentType)
		switch {
		case err != nil:
			j.complain(err)
		case j.agrees(row, end):
			agree++
		}
		if j.ctx.Err() != nil {
			return
		}
	}
	j.failed = j.failed || agree < len(rows)
	j.print(fmt.Sprintf("%d of %d agree", agree, len(rows)))
}

// agrees prints each difference between row and end, and reports whether there
// is none.
func (j *judge) agrees(row manifestRow, end contract.End) bool {
	got := columns(end)
	for i, want := range row.want {
		if got[i] != want {
			j.print(row.file, manifestColumns[i+2], "got "+got[i], "want "+want)
		}
	}
	return slices.Equal(got, row.want)
}

// A manifestRow is what a manifest expects of one body.
type manifestRow struct {
	file, contentType string
	want              []string // as columns returns it
}

// manifestColumns are the columns of a manifest that are read.
var manifestColumns = [...]string{"file", "content-type", "expected-end", "operation-id", "last-cursor", "events"}

// readManifest reads the rows of a manifest. Its first line names the columns.
func readManifest(name string) ([]manifestRow, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimRight(string(data), "\r\n"), "\n")
	head := fields(lines[0])
	var at [len(manifestColumns)]int
	for i, column := range manifestColumns {
		if at[i] = slices.Index(head, column); at[i] < 0 {
			return nil, fmt.Errorf("%s: line 1 names no column %q", name, column)
		}
	}
	if len(lines) == 1 {
		return nil, fmt.Errorf("%s lists no file", name)
	}
	var rows []manifestRow
	for n, line := range lines[1:] {
		f := fields(line)
		if len(f) < len(head) {
			return nil, fmt.Errorf("%s: line %d has %d columns, want %d", name, n+2, len(f), len(head))
		}
		rows = append(rows, manifestRow{
			file: f[at[0]], contentType: f[at[1]],
			want: []string{printable(f[at[2]]), printable(f[at[3]]), printable(f[at[4]]), printable(f[at[5]])},
		})
	}
	return rows, nil
}

// fields returns the columns of a line.
func fields(line string) []string { return strings.Split(strings.TrimSuffix(line, "\r"), "\t") }
