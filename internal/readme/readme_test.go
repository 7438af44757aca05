// Package readme holds the tests of the README: its Go compiles as a user would
// compile it, its commands are those that CI runs, its links lead somewhere.
package readme

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	self = "github.com/rubicon-go/rubicon"
	top  = "../.." // the directory of the root module
)

// A block is a fenced piece of Markdown.
type block struct {
	lang string
	line int // of its first line, counted from 1
	text string
}

// blocks returns the fenced pieces of a Markdown text.
func blocks(text string) []block {
	var list []block
	open := false
	n := 0
	for line := range strings.Lines(text) {
		n++
		fence, found := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case found && !open:
			open = true
			list = append(list, block{lang: fence, line: n + 1})
		case found:
			open = false
		case open:
			list[len(list)-1].text += line
		}
	}
	return list
}

func TestGoCompiles(t *testing.T) {
	watch(t)
	files := map[string]string{}
	for _, b := range blocks(read(t, "README.md")) {
		if b.lang != "go" {
			continue
		}
		source, err := program("README.md", b)
		if err != nil {
			t.Error(err)
			continue
		}
		files[fmt.Sprintf("line%d/x.go", b.line)] = source
	}
	if len(files) == 0 {
		t.Fatal("README.md shows no Go")
	}
	if out, err := compile(t, files); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestGoCompilesFindsFaults shows that the compiler gets what the README says,
// and that its message names the README's line.
func TestGoCompilesFindsFaults(t *testing.T) {
	const text = "# T\n\n```go\nt := &rubicon.Transport{}\nt.Cross()\n```\n"
	source, err := program("README.md", blocks(text)[0])
	if err != nil {
		t.Fatal(err)
	}
	out, err := compile(t, map[string]string{"line4/x.go": source})
	if err == nil || !strings.Contains(out, "README.md:5") || !strings.Contains(out, "Cross") {
		t.Errorf("error %v, want one about Cross at README.md:5:\n%s", err, out)
	}
}

func TestProgram(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{
			"program",
			"package main\n\nfunc main() {}\n",
			"//line R.md:7\npackage main\n\nfunc main() {}\n",
		},
		{
			"declarations",
			"type T struct{ c *http.Client }\n",
			"package p\nimport \"net/http\"\n//line R.md:7\ntype T struct{ c *http.Client }\n",
		},
		{
			"statements",
			"res, err := client.Do(req.WithContext(ctx)) // sends\nif err != nil {\n\treturn err\n}\n",
			"package p\nimport \"context\"\nimport \"net/http\"\n" +
				"func _(client *http.Client, ctx context.Context, req *http.Request) error {\n{\n//line R.md:7\n" +
				"res, err := client.Do(req.WithContext(ctx)); _, _ = res, err // sends\nif err != nil {\n\treturn err\n}\n}\nreturn nil\n}\n",
		},
		{
			"expression",
			"&rubicon.Transport{}\n",
			"package p\nimport \"" + self + "\"\nfunc _() {\n{\n//line R.md:7\n_ = &rubicon.Transport{}\n}\n}\n",
		},
		{
			"package variable",
			"var f = func() int { return 1 }\n",
			"package p\n//line R.md:7\nvar f = func() int { return 1 }\n",
		},
		{
			"return of a function literal",
			"f := func() int { return 1 }\nf()\n",
			"package p\nfunc _() {\n{\n//line R.md:7\nf := func() int { return 1 }; _ = f\nf()\n}\n}\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := program("R.md", block{"go", 7, tt.text})
			if err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
	if _, err := program("R.md", block{"go", 7, "if err != nil { … }\n"}); err == nil {
		t.Error("what is not Go was taken for Go")
	}
}

// program returns the Go file that b, a block of the named file, stands for: a
// whole program as it is, declarations with their imports added, statements in a
// function that is given what they leave undeclared.
func program(name string, b block) (string, error) {
	here := fmt.Sprintf("//line %s:%d\n", name, b.line)
	if strings.HasPrefix(b.text, "package ") || strings.Contains(b.text, "\npackage ") {
		return here + b.text, nil
	}
	const file = "package p;"
	if f, err := parser.ParseFile(token.NewFileSet(), name, file+b.text, 0); err == nil {
		return "package p\n" + importsFor(f.Unresolved, nil) + here + b.text, nil
	}
	const function = "package p; func _() {\n"
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, function+b.text+"}", 0)
	if err != nil {
		return "", fmt.Errorf("the Go at line %d is no program, declaration or statement: %w", b.line, err)
	}
	body := f.Decls[0].(*ast.FuncDecl).Body
	params, types := paramsFor(f.Unresolved)
	head := "package p\n" + importsFor(f.Unresolved, types) + "func _(" + params + ") "
	text := amend(b.text, body.List, func(p token.Pos) int { return set.Position(p).Offset - len(function) })
	if returnsValue(body) {
		return head + "error {\n{\n" + here + text + "}\nreturn nil\n}\n", nil
	}
	return head + "{\n{\n" + here + text + "}\n}\n", nil
}

// amend makes statements whose results a fragment does not use compile: it uses
// the variables that they declare, and assigns the values that they state.
func amend(text string, list []ast.Stmt, offset func(token.Pos) int) string {
	for _, s := range slices.Backward(list) { // so that offsets stay true
		switch s := s.(type) {
		case *ast.AssignStmt:
			if names := declared(s); len(names) > 0 {
				blanks := strings.TrimSuffix(strings.Repeat("_, ", len(names)), ", ")
				end := offset(s.End())
				text = text[:end] + "; " + blanks + " = " + strings.Join(names, ", ") + text[end:]
			}
		case *ast.ExprStmt:
			switch s.X.(type) {
			case *ast.CallExpr:
			default:
				start := offset(s.Pos())
				text = text[:start] + "_ = " + text[start:]
			}
		}
	}
	return text
}

// declared returns the variables that s declares.
func declared(s *ast.AssignStmt) []string {
	var names []string
	for _, x := range s.Lhs {
		if n, ok := x.(*ast.Ident); ok && s.Tok == token.DEFINE && n.Name != "_" {
			names = append(names, n.Name)
		}
	}
	return names
}

// returnsValue reports whether a return of body itself, not of a function inside
// it, returns something.
func returnsValue(body *ast.BlockStmt) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) > 0 {
			found = true
		}
		_, inner := n.(*ast.FuncLit)
		return !inner
	})
	return found
}

// given are the variables that a fragment may use undeclared.
var given = map[string]string{
	"body":   "io.Reader",
	"client": "*http.Client",
	"ctx":    "context.Context",
	"err":    "error",
	"grant":  "rubicon.Grant",
	"op":     "*rubicon.Operation",
	"req":    "*http.Request",
	"res":    "*http.Response",
	"w":      "io.Writer",
}

// paramsFor declares those of the free names that are given, and returns their types.
func paramsFor(free []*ast.Ident) (params string, types []string) {
	var list []string
	for _, name := range unique(free) {
		if typ, ok := given[name]; ok {
			list = append(list, name+" "+typ)
			types = append(types, typ)
		}
	}
	return strings.Join(list, ", "), types
}

// known are the packages that a fragment may use without an import.
var known = []string{
	"bytes", "context", "crypto/tls", "database/sql", "encoding/json", "errors", "fmt", "io", "log", "log/slog",
	"net", "net/http", "net/http/httptest", "net/url", "os", "strings", "sync", "testing", "time",
	self, self + "/contract", self + "/journal", self + "/rubicontest", self + "/tokenfile",
	"github.com/cenkalti/backoff/v4", "github.com/hashicorp/go-retryablehttp",
	"golang.org/x/oauth2", "golang.org/x/oauth2/clientcredentials",
}

var version = regexp.MustCompile(`/v[0-9]+$`)

// packageName returns the name of the package with the import path p.
func packageName(p string) string {
	p = version.ReplaceAllString(p, "")
	return strings.TrimPrefix(p[strings.LastIndex(p, "/")+1:], "go-")
}

// importsFor imports the known packages that the free names and types name.
func importsFor(free []*ast.Ident, types []string) string {
	names := unique(free)
	for _, typ := range types {
		name, _, _ := strings.Cut(strings.TrimPrefix(typ, "*"), ".")
		names = append(names, name)
	}
	var out strings.Builder
	for _, p := range known {
		if slices.Contains(names, packageName(p)) {
			fmt.Fprintf(&out, "import %q\n", p)
		}
	}
	return out.String()
}

// unique returns the names of list, sorted.
func unique(list []*ast.Ident) []string {
	var names []string
	for _, n := range list {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// compile builds and vets files in a module of their own that requires the root
// and what the root requires, and returns what the go command says.
func compile(t *testing.T, files map[string]string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = userModule(t)
	files["go.sum"] = read(t, "go.sum")
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	out, err := goIn(t, dir, "build", "./...")
	if err != nil {
		return out, err
	}
	// A fragment that ends in a return is followed by one that can't be reached.
	return goIn(t, dir, "vet", "-unreachable=false", "./...")
}

// goIn runs the go command on the module in dir. Checksums that the root did not
// need are added to the module's go.sum.
func goIn(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -mod=mod"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// userModule returns the go.mod of a module that uses the root in this tree.
func userModule(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(top)
	if err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Go      string
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal([]byte(edited(t)), &mod); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "module readme\n\ngo %s\n\nreplace %s => %q\n\nrequire %s v0.0.0\n", mod.Go, self, dir, self)
	for _, r := range mod.Require {
		fmt.Fprintf(&out, "require %s %s\n", r.Path, r.Version)
	}
	return out.String()
}

// edited returns the root's go.mod as JSON.
func edited(t *testing.T) string {
	t.Helper()
	out, err := goIn(t, top, "mod", "edit", "-json")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// TestCommands holds the two commands of the README to those that CI runs. CI
// may add flags to the tests.
func TestCommands(t *testing.T) {
	var shown []string
	for _, b := range blocks(read(t, "README.md")) {
		if slices.Contains([]string{"sh", "bash", "shell", "console"}, b.lang) {
			shown = append(shown, commands(b.text)...)
		}
	}
	run := commands(read(t, ".ci/run"))
	for _, c := range []string{"go run ./cmd/rubicon lab", "go test work"} {
		if !slices.Contains(shown, c) {
			t.Errorf("README.md does not show %q: only %q", c, shown)
		}
		if !slices.Contains(run, c) {
			t.Errorf(".ci/run does not run %q: only %q", c, run)
		}
	}
}

// commands returns the lines of a shell text that run or test Go, without
// prompts, comments and the flags of go test.
func commands(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "$ "))
		if len(words) < 2 || words[0] != "go" || words[1] != "run" && words[1] != "test" {
			continue
		}
		if words[1] == "test" {
			words = slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") })
		}
		list = append(list, strings.Join(words, " "))
	}
	return list
}

func TestCommandLines(t *testing.T) {
	const text = "cd x\n$ go test -race -shuffle=on work   # all\n\tgo run ./cmd/rubicon lab\n# go test ./...\nif go test work; then\n"
	want := []string{"go test work", "go run ./cmd/rubicon lab"}
	if got := commands(text); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLinks follows the links between the documents.
func TestLinks(t *testing.T) {
	documents, err := filepath.Glob(filepath.Join(top, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README.md", "CHANGELOG.md", "SECURITY.md"} {
		documents = append(documents, filepath.Join(top, name))
	}
	for _, name := range documents {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
		}
		for _, to := range links(string(text)) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), to)); errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s links to %s, which is not there", strings.TrimPrefix(name, top+"/"), to)
			}
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)`)

// links returns the files that a Markdown text links to.
func links(text string) []string {
	var list []string
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(m[1], "://") && !strings.HasPrefix(m[1], "mailto:") {
			list = append(list, m[1])
		}
	}
	return list
}

func TestLinkTargets(t *testing.T) {
	const text = "[a](docs/a.md), [b](docs/b.md#part), [c](#here), [d](https://go.dev/doc), [e](x.go \"title\"), f(x)"
	want := []string{"docs/a.md", "docs/b.md", "x.go"}
	if got := links(text); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// watch looks at every Go file of the tree, so that `go test` serves no result
// from before one of them has changed: what the compiler reads goes unseen.
func watch(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(top, func(name string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return filepath.SkipDir
		case filepath.Ext(name) == ".go":
			_, err = os.Stat(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// read returns a file of the root's directory.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
