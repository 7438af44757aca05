package main

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Bodies of OpenAI's Chat Completions.
const (
	chatText = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}` + "\n\n"
	chatStop = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	chatDone = "data: [DONE]\n\n"
)

// recordings is where the recorded streams are, if they are.
const recordings = "../../../shared/streams"

// judged runs the judge and returns its status and what it printed.
func judged(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var o, e bytes.Buffer
	status = run(t.Context(), append([]string{"judge"}, args...), &o, &e)
	return status, o.String(), e.String()
}

// stored writes text to a file of that name and returns its path.
func stored(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// feeding makes f the standard input.
func feeding(t *testing.T, f *os.File) {
	before := os.Stdin
	os.Stdin = f
	t.Cleanup(func() {
		os.Stdin = before
		f.Close()
	})
}

// TestJudge holds the columns by body and content type. The file's name says
// something else each time.
func TestJudge(t *testing.T) {
	tests := []struct {
		name, contentType, body string
		want                    string // the columns after the name
	}{
		{"completed", "text/event-stream", chatText + chatStop + chatDone, "openai-chat completed chatcmpl-1 - 3"},
		{"interrupted", "text/event-stream; charset=utf-8", chatText, "openai-chat interrupted chatcmpl-1 - 1"},
		{"torn", "text/event-stream", chatText + chatStop[:40], "openai-chat interrupted chatcmpl-1 - 1"},
		{"incomplete", "text/event-stream", chatText + strings.Replace(chatStop, "stop", "length", 1), "openai-chat incomplete chatcmpl-1 - 2"},
		{"failed", "text/event-stream", chatText + "data: {\"error\":{\"message\":\"m\"}}\n\n" + chatDone, "openai-chat failed chatcmpl-1 - 3"},
		{"lines", "application/x-ndjson", `{"model":"m","response":"Hi","done":true,"done_reason":"stop"}`, "ollama completed - - 1"},
		{"a cursor", "application/json", `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"12"}}}` + "\n", "kubernetes-watch completed - 12 1"},
		{"another type", "text/html", chatText + chatStop + chatDone, "- unjudged - - 0"},
		{"events that nobody knows", "text/event-stream", "data: tick\n\n", "- unjudged - - 1"},
		{"nothing", "text/html", "", "- unjudged - - 0"},
		{"guessed", "", chatText + chatStop, "openai-chat completed chatcmpl-1 - 2"},
		{"guessed lines", "", `{"model":"m","response":"Hi","done":false}` + "\n", "ollama interrupted - - 1"},
		{"guessed nothing", "", "", "- unjudged - - 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, name := range []string{"body", "claude-failed.ndjson", "image.png"} {
				path := stored(t, name, tt.body)
				status, out, errs := judged(t, "-content-type", tt.contentType, path)
				want := path + "\t" + strings.ReplaceAll(tt.want, " ", "\t") + "\n"
				if status != exitOK || out != want || errs != "" {
					t.Errorf("status %d, standard error %q, printed\n%q, want\n%q", status, errs, out, want)
				}
			}
		})
	}
}

// TestJudgeStdin has no file, and one that is called "-".
func TestJudgeStdin(t *testing.T) {
	path := stored(t, "f", chatText+chatStop+chatDone)
	for _, args := range [][]string{nil, {"-"}, {"-content-type", "text/event-stream"}} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		feeding(t, f)
		status, out, errs := judged(t, args...)
		if status != exitOK || out != "-\topenai-chat\tcompleted\tchatcmpl-1\t-\t3\n" || errs != "" {
			t.Errorf("%q: status %d, printed %q and %q", args, status, out, errs)
		}
	}
}

// TestJudgeStopsReading has a user who gives up before standard input ends.
func TestJudgeStopsReading(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	feeding(t, r)
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(errors.New("no more")) })
	var out, errs bytes.Buffer
	if status := run(ctx, []string{"judge", "-", "-"}, &out, &errs); status != exitFailed {
		t.Errorf("status %d", status)
	}
	if out.Len() > 0 || errs.String() != "rubicon: judge: -: no more\n" {
		t.Errorf("printed %q and %q", &out, &errs)
	}
	w.Close() // and with it what waits for standard input
}

// TestJudgeGoesOn has a file that is missing before one that is not.
func TestJudgeGoesOn(t *testing.T) {
	path := stored(t, "f", chatText)
	missing := path + ".missing"
	status, out, errs := judged(t, missing, path)
	if status != exitFailed || !strings.HasPrefix(out, path+"\t") || strings.Count(out, "\n") != 1 {
		t.Errorf("status %d, printed %q", status, out)
	}
	if strings.Count(errs, "\n") != 1 || !strings.HasPrefix(errs, "rubicon: judge: ") || !strings.Contains(errs, missing) {
		t.Errorf("standard error: %q", errs)
	}
}

// coded returns text in a content coding.
func coded(t *testing.T, text string, coder func(io.Writer) io.WriteCloser) string {
	t.Helper()
	var b bytes.Buffer
	w := coder(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestJudgeCoding has bodies that are still compressed.
func TestJudgeCoding(t *testing.T) {
	whole := chatText + chatStop + chatDone
	gz := coded(t, whole, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
	zl := coded(t, whole, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) })
	raw := coded(t, whole, func(w io.Writer) io.WriteCloser { f, _ := flate.NewWriter(w, 6); return f })
	wrong := []byte(gz)
	wrong[len(wrong)-6] ^= 1
	const done = "openai-chat completed chatcmpl-1 - 3"
	tests := []struct {
		name, contentType, body string
		want                    string // the columns; "" when there is an error
	}{
		{"gzip", "text/event-stream; content-encoding=gzip", gz, done},
		{"gzip, quoted, and more", `text/event-stream; Content-Encoding="GZIP"; charset=utf-8`, gz, done},
		{"gzip, not named", "text/event-stream", gz, done},
		{"gzip, nothing named", "", gz, done},
		{"gzip, another type", "text/html; content-encoding=gzip", gz, "- unjudged - - 0"},
		{"gzip, without its checksum", "text/event-stream; content-encoding=gzip", gz[:len(gz)-8], done},
		{"gzip, cut in its head", "text/event-stream; content-encoding=gzip", gz[:5], "- unjudged - - 0"},
		{"gzip, cut at once", "text/event-stream; content-encoding=gzip", "", "- unjudged - - 0"},
		{"gzip, wrong checksum", "text/event-stream; content-encoding=gzip", string(wrong), ""},
		{"not gzip", "text/event-stream; content-encoding=gzip", whole, ""},
		{"deflate", "text/event-stream; content-encoding=deflate", zl, done},
		{"deflate, in capitals", "text/event-stream; Content-Encoding=Deflate", zl, done},
		{"deflate without a head", "text/event-stream; content-encoding=deflate", raw, done},
		{"identity", "text/event-stream; content-encoding=identity", whole, done},
		{"br", "text/event-stream; content-encoding=br", whole, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := stored(t, "f", tt.body)
			status, out, errs := judged(t, "-content-type", tt.contentType, path)
			if tt.want == "" {
				if status != exitFailed || out != "" || !strings.HasPrefix(errs, "rubicon: judge: "+path+": ") {
					t.Errorf("status %d, printed %q and %q", status, out, errs)
				}
				return
			}
			want := path + "\t" + strings.ReplaceAll(tt.want, " ", "\t") + "\n"
			if status != exitOK || out != want || errs != "" {
				t.Errorf("status %d, standard error %q, printed\n%q, want\n%q", status, errs, out, want)
			}
		})
	}
}

// TestJudgeControlCharacters has a body, and a name, that would break a line.
func TestJudgeControlCharacters(t *testing.T) {
	body := strings.ReplaceAll(chatText, "chatcmpl-1", `a\tb\nc\r\u001b[2Jd`) + "id: 1\t2\ndata: [DONE]\n\n"
	name := "a\tb\nc"
	if runtime.GOOS == "windows" {
		name = "a b c" // no other can be had
	}
	path := stored(t, name, body)
	_, out, _ := judged(t, path)
	columns := strings.Split(strings.TrimSuffix(out, "\n"), "\t")
	if len(columns) != 6 || strings.Count(out, "\n") != 1 {
		t.Fatalf("%d columns: %q", len(columns), out)
	}
	if filepath.Base(columns[0]) != "a b c" || columns[3] != "a b c  [2Jd" {
		t.Errorf("name %q, operation %q", columns[0], columns[3])
	}
	// A manifest can only say it in the same way.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	row := strings.Join(append([]string{"f", "text/event-stream"}, columns[2:]...), "\t")
	if status, out, _ := judged(t, "-manifest", manifestIn(t, dir, manifestHead, row)); status != exitOK || out != "1 of 1 agree\n" {
		t.Errorf("status %d: %q", status, out)
	}
}

// manifestHead names the columns that are read.
var manifestHead = strings.Join(manifestColumns[:], "\t")

// manifestIn writes a manifest to dir and returns its path.
func manifestIn(t *testing.T, dir string, lines ...string) string {
	t.Helper()
	path := filepath.Join(dir, "M.tsv")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestJudgeManifest compares two bodies with what a manifest says of them.
func TestJudgeManifest(t *testing.T) {
	const whole = "sub/whole.x\ttext/event-stream\tcompleted\tchatcmpl-1\t-\t3"
	const cut = "cut.x\ttext/event-stream\tinterrupted\tchatcmpl-1\t-\t1"
	tests := []struct {
		name  string
		lines []string
		want  string // standard output
		errs  string // a part of standard error
	}{
		{"all agree", []string{manifestHead, whole, cut}, "2 of 2 agree\n", ""},
		{"CRLF", []string{manifestHead + "\r", whole + "\r", cut + "\r", ""}, "2 of 2 agree\n", ""},
		{"other columns, another order", []string{
			"note\tevents\tlast-cursor\toperation-id\texpected-end\tcontent-type\tprotocol\tfile",
			"x\t1\t-\tchatcmpl-1\tinterrupted\ttext/event-stream\tclaude\tcut.x",
		}, "1 of 1 agree\n", ""},
		{"differences", []string{manifestHead, strings.Replace(whole, "completed\tchatcmpl-1\t-\t3", "failed\t-\t7\t4", 1), cut},
			"sub/whole.x\texpected-end\tgot completed\twant failed\n" +
				"sub/whole.x\toperation-id\tgot chatcmpl-1\twant -\n" +
				"sub/whole.x\tlast-cursor\tgot -\twant 7\n" +
				"sub/whole.x\tevents\tgot 3\twant 4\n1 of 2 agree\n", ""},
		{"one difference", []string{manifestHead, strings.Replace(cut, "\t1", "\t2", 1)}, "cut.x\tevents\tgot 1\twant 2\n0 of 1 agree\n", ""},
		{"a missing file", []string{manifestHead, strings.Replace(whole, "whole", "hole", 1), cut}, "1 of 2 agree\n", "hole.x"},
		{"an unreadable coding", []string{manifestHead, strings.Replace(cut, "stream\t", "stream; content-encoding=zstd\t", 1), whole}, "1 of 2 agree\n", `"zstd"`},
		{"a missing column", []string{strings.TrimSuffix(manifestHead, "\tevents"), cut}, "", `M.tsv: line 1 names no column "events"`},
		{"a short row", []string{manifestHead, whole, "cut.x\ttext/event-stream"}, "", "M.tsv: line 3 has 2 columns, want 6"},
		{"an empty row", []string{manifestHead, whole, "", cut}, "", "M.tsv: line 3 has 1 columns, want 6"},
		{"no rows", []string{manifestHead}, "", "M.tsv lists no file"},
		{"nothing", nil, "", `M.tsv: line 1 names no column "file"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			err := errors.Join(
				os.Mkdir(filepath.Join(dir, "sub"), 0o700),
				os.WriteFile(filepath.Join(dir, "sub", "whole.x"), []byte(chatText+chatStop+chatDone), 0o600),
				os.WriteFile(filepath.Join(dir, "cut.x"), []byte(chatText), 0o600))
			if err != nil {
				t.Fatal(err)
			}
			status, out, errs := judged(t, "-manifest", manifestIn(t, dir, tt.lines...))
			if out != tt.want {
				t.Errorf("printed\n%s\nwant\n%s", out, tt.want)
			}
			check(t, "standard error", errs, tt.errs)
			agree := tt.errs == "" && strings.Count(tt.want, "\n") == 1
			if (status == exitOK) != agree || status == exitUsage {
				t.Errorf("status %d", status)
			}
		})
	}
}

// TestJudgeManifestGivenUp has a user who gives up at once.
func TestJudgeManifestGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no more"))
	f := stored(t, "f", chatText)
	row := "f\ttext/event-stream\tinterrupted\tchatcmpl-1\t-\t1"
	manifest := manifestIn(t, filepath.Dir(f), manifestHead, row, row)
	var out, errs bytes.Buffer
	if status := run(ctx, []string{"judge", "-manifest", manifest}, &out, &errs); status != exitFailed {
		t.Errorf("status %d", status)
	}
	if out.Len() > 0 || errs.String() != "rubicon: judge: "+f+": no more\n" {
		t.Errorf("printed %q and %q", &out, &errs)
	}
}

func TestJudgeUsage(t *testing.T) {
	tests := []struct {
		args   string
		status int
		out    string // a part of standard output; "" when nothing may be there
		errs   string // the same of standard error
	}{
		{"-h", exitOK, "Usage: rubicon judge ", ""},
		{"-manifest", exitUsage, "", "flag needs an argument"},
		{"-types", exitUsage, "", "Run \"rubicon judge -h\""},
		{"-manifest M f", exitUsage, "", "a manifest names the files"},
		{"-manifest M -content-type text/html", exitUsage, "", "a manifest names the files"},
		{"-manifest /nowhere/M.tsv", exitFailed, "", "/nowhere/M.tsv"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			status, out, errs := judged(t, strings.Fields(tt.args)...)
			if status != tt.status {
				t.Errorf("status %d, want %d", status, tt.status)
			}
			check(t, "standard output", out, tt.out)
			check(t, "standard error", errs, tt.errs)
			for line := range strings.Lines(out) {
				if len(line) > 81 {
					t.Errorf("longer than 80: %s", line)
				}
			}
		})
	}
}

// TestJudgeUnprinted has a standard output that fails.
func TestJudgeUnprinted(t *testing.T) {
	var errs bytes.Buffer
	if status := run(t.Context(), []string{"judge", stored(t, "f", chatText)}, full{}, &errs); status != exitFailed {
		t.Errorf("status %d", status)
	}
	check(t, "standard error", errs.String(), "no space")
}

// TestJudgeRecordings compares all recordings with their manifest.
func TestJudgeRecordings(t *testing.T) {
	manifest := filepath.Join(recordings, "MANIFEST.tsv")
	rows, protocols := readRecordings(t, manifest)
	status, out, errs := judged(t, "-manifest", manifest)
	if want := fmt.Sprintf("%d of %d agree\n", len(rows), len(rows)); status == exitOK && out == want && errs == "" {
		return
	}
	differ := map[string]map[string]bool{} // files by protocol
	for line := range strings.Lines(out) {
		file, _, _ := strings.Cut(line, "\t")
		if p, ok := protocols[file]; ok {
			if differ[p] == nil {
				differ[p] = map[string]bool{}
			}
			differ[p][file] = true
		}
	}
	for _, p := range slices.Sorted(maps.Keys(differ)) {
		t.Logf("%-24s %d disagree", p, len(differ[p]))
	}
	t.Errorf("status %d, standard error %q, printed\n%s", status, errs, out)
}

// readRecordings reads a manifest and the protocol of each of its files.
func readRecordings(t *testing.T, manifest string) (rows []manifestRow, protocols map[string]string) {
	t.Helper()
	data, err := os.ReadFile(manifest)
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("there are no recordings at %s", recordings)
	}
	if err != nil {
		t.Fatal(err)
	}
	if rows, err = readManifest(manifest); err != nil {
		t.Fatal(err)
	}
	protocols = make(map[string]string)
	for line := range strings.Lines(string(data)) {
		f := strings.Split(line, "\t")
		protocols[f[0]] = f[1]
	}
	return rows, protocols
}

// TestJudgeRenamedRecordings gives every recording the same name.
func TestJudgeRenamedRecordings(t *testing.T) {
	manifest := filepath.Join(recordings, "MANIFEST.tsv")
	rows, _ := readRecordings(t, manifest)
	lines := []string{manifestHead}
	dir := t.TempDir()
	for i, row := range rows {
		from, err := filepath.Abs(filepath.Join(recordings, row.file))
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("body-%d", i)
		if err := os.Symlink(from, filepath.Join(dir, name)); err != nil {
			t.Skip(err) // not every system lets everyone make links
		}
		lines = append(lines, strings.Join(append([]string{name, row.contentType}, row.want...), "\t"))
	}
	_, want, _ := judged(t, "-manifest", manifest)
	_, got, errs := judged(t, "-manifest", manifestIn(t, dir, lines...))
	last := func(text string) string { // the line that counts
		lines := strings.Split(strings.TrimSpace(text), "\n")
		return lines[len(lines)-1]
	}
	if last(got) != last(want) || errs != "" {
		t.Errorf("%s under other names, %s under their own; standard error %q", last(got), last(want), errs)
	}
}

// TestJudgeGuesses leaves it to the judge to find out the content types. Only
// the first bytes can tell it, and they do.
func TestJudgeGuesses(t *testing.T) {
	rows, _ := readRecordings(t, filepath.Join(recordings, "MANIFEST.tsv"))
	var files []string
	for _, row := range rows {
		files = append(files, filepath.Join(recordings, row.file))
	}
	_, out, errs := judged(t, files...)
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != len(rows) || errs != "" {
		t.Fatalf("%d lines for %d files; standard error %q", len(lines), len(rows), errs)
	}
	for i, line := range lines {
		if got := strings.Split(line, "\t")[2:]; !slices.Equal(got, rows[i].want) {
			t.Errorf("%s: %q, want %q", rows[i].file, got, rows[i].want)
		}
	}
}
