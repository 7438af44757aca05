// Package ladder holds the tests of the project's shape: which package may
// import what and why, that the deciding files are pure, that each package is
// documented in one place, and that the public API is the one checked in.
package ladder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	self = "github.com/rubicon-go/rubicon"
	top  = "../.." // the directory of the root module
)

// A rule says what the non-test files of a package may import. The standard
// library is allowed but for what never names.
type rule struct {
	own     []string          // packages of this project, imported directly
	modules []string          // modules of others, linked directly or not
	never   map[string]string // import path of the standard library → why not
	why     string
}

var (
	quiet = map[string]string{
		"log":               "nothing is printed; slog.LogValuer is for the caller's own logger",
		"net/http/httptest": "it adds a flag to every program that links it",
		"database/sql":      "durable operations belong to journal",
	}
	offline = map[string]string{
		"net":           "a framer gets bytes and gives frames; who reads the socket is not its business",
		"net/http":      "a framer gets bytes and gives frames; who reads the response is not its business",
		"encoding/json": "what a frame's data means is the contract's business",
		"database/sql":  "durable operations belong to journal",
	}
)

// rootModules are what the root may link, directly or not.
var rootModules = []string{
	"github.com/hashicorp/go-retryablehttp",
	"github.com/hashicorp/go-cleanhttp", // of go-retryablehttp
	"golang.org/x/oauth2",
	"github.com/cenkalti/backoff/v4",
	"golang.org/x/net",  // http/httpguts: what net/http rejects before it sends
	"golang.org/x/text", // of x/net
}

// commandModules are what the command may link: the peers that the lab plays
// against are among the root's. Drivers join them with the subcommands that open
// a journal.
var commandModules = rootModules

// ladder has a rule for each package that may exist. An import points down only,
// so a package never names one that stands after it.
var ladder = map[string]rule{
	self + "/internal/wire": {
		never: offline,
		why:   "rung 0 is usable and fuzzable alone",
	},
	self + "/contract": {
		own:   []string{self + "/internal/wire"},
		never: quiet,
		why:   "rung 1 says how a stream proves its end, and knows no transport",
	},
	self: {
		own:     []string{self + "/contract"},
		modules: rootModules,
		never:   quiet,
		why:     "rung 2 is what everybody links: each of its dependencies is argued for in docs/design.md",
	},
	self + "/journal": {
		own:     []string{self},
		modules: rootModules,
		never:   map[string]string{"log": quiet["log"]},
		why:     "rung 3 speaks database/sql; the caller chooses the driver",
	},
	self + "/tokenfile": {
		modules: []string{"golang.org/x/oauth2"},
		never:   map[string]string{"log": quiet["log"], "net/http": "a file store has nobody to talk to"},
		why:     "rung 3 is a store for the root's credentials, which it satisfies by its methods alone",
	},
	self + "/rubicontest": {
		own:     []string{self + "/contract"},
		modules: []string{"golang.org/x/net", "golang.org/x/text"}, // x/text is of x/net
		never:   map[string]string{"log": quiet["log"]},
		why:     "rung 3 serves the tests of any client, ours too: it can't know the root without a cycle; it checks the contracts of others",
	},
	self + "/cmd/rubicon": {
		own:     []string{self, self + "/contract", self + "/journal", self + "/cmd/rubicon/internal/lab"},
		modules: commandModules,
		why:     "the command stands on the public packages",
	},
	self + "/cmd/rubicon/internal/lab": {
		own:     []string{self, self + "/contract", self + "/journal", self + "/rubicontest"},
		modules: commandModules,
		why:     "the lab plays faults against the public packages and their peers",
	},
}

// forTests may be linked by tests only.
var forTests = map[string]string{
	"testing":                  "it adds the test flags to every program that links it",
	"go.uber.org/goleak":       "it inspects the stacks of the whole process",
	"github.com/google/go-cmp": "it panics where a comparison is undefined",
	"pgregory.net/rapid":       "it draws random cases",
}

// A pkg is a package as its files state it, for every system and architecture.
type pkg struct {
	path   string // import path
	module string
	files  []file
}

type file struct {
	name string // relative to the root's directory
	ast  *ast.File
}

func (f file) test() bool { return strings.HasSuffix(f.name, "_test.go") }

func (f file) imports() []string {
	var list []string
	for _, spec := range f.ast.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			panic(err) // the parser has accepted it
		}
		list = append(list, p)
	}
	return list
}

// A dep is what `go list -deps -json` says of a package.
type dep struct {
	ImportPath string
	Standard   bool
	Module     *struct{ Path string }
	Deps       []string
}

func TestLadder(t *testing.T) {
	used := workspace(t)
	var pkgs []pkg
	for _, p := range packages(t) {
		if slices.Contains(used, p.module) {
			pkgs = append(pkgs, p)
		}
	}
	for _, fault := range climb(pkgs, linked(t), ladder) {
		t.Error(fault)
	}
}

// TestLadderFindsFaults shows that each kind of fault is one.
func TestLadderFindsFaults(t *testing.T) {
	stranger := dep{ImportPath: "example.com/m/a", Module: &struct{ Path string }{"example.com/m"}}
	std := func(p string) dep { return dep{ImportPath: p, Standard: true} }
	base := []dep{{ImportPath: self, Deps: []string{"fmt"}}, std("fmt")}
	tests := []struct {
		name   string
		path   string
		source string
		deps   []dep
		want   string
	}{
		{"lawful", self, `import _ "fmt"`, base, ""},
		{"downward", self, `import _ "` + self + `/contract"`, base, ""},
		{"no rule", self + "/new", ``, base, "has no rule"},
		{"upward", self + "/internal/wire", `import _ "` + self + `"`, base, "may not import " + self},
		{"sideways", self + "/rubicontest", `import _ "` + self + `/journal"`, base, "may not import"},
		{"tests only", self + "/integration/sdk", `import _ "fmt"`, base, "has no rule"},
		{"unlisted module", self, `import _ "example.com/m/a"`, base, "may not import example.com/m/a"},
		{"similar module", self, `import _ "golang.org/x/oauth2x"`, base, "may not import golang.org/x/oauth2x"},
		{"forbidden standard package", self, `import _ "log"`, base, "may not import log"},
		{"standard package below", self + "/internal/wire", `import _ "net/http"`, base, "may not import net/http"},
		{"linked stranger", self, ``, []dep{{ImportPath: self, Deps: []string{"example.com/m/a"}}, stranger}, "links example.com/m/a"},
		{"linked testing", self, ``, []dep{{ImportPath: self, Deps: []string{"testing"}}, std("testing")}, "links testing"},
		{"nothing listed", self, ``, nil, "does not list"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n"+tt.source, 0)
			if err != nil {
				t.Fatal(err)
			}
			faults := climb([]pkg{{path: tt.path, files: []file{{"x.go", f}}}}, tt.deps, ladder)
			if tt.want == "" && len(faults) > 0 {
				t.Errorf("faults %q, want none", faults)
			}
			if !strings.Contains(strings.Join(faults, "\n"), tt.want) {
				t.Errorf("faults %q, want %q among them", faults, tt.want)
			}
		})
	}
}

// climb returns what breaks the rules: in the files of pkgs, whatever system
// they are for, and in deps, which also shows what is linked indirectly.
func climb(pkgs []pkg, deps []dep, rules map[string]rule) []string {
	var faults []string
	for _, p := range pkgs {
		r, ok := rules[p.path]
		for _, f := range p.files {
			switch {
			case f.test():
			case !ok:
				faults = append(faults, fmt.Sprintf("%s: %s has no rule in the ladder", f.name, p.path))
			default:
				faults = append(faults, r.judge(f)...)
			}
		}
	}
	return append(faults, judgeLinked(deps, rules)...)
}

// judge returns the imports of f that r does not allow.
func (r rule) judge(f file) []string {
	var faults []string
	for _, p := range f.imports() {
		why, banned := r.never[p]
		if !banned {
			why = r.why
		}
		if banned || !r.allows(p) {
			faults = append(faults, fmt.Sprintf("%s: may not import %s: %s", f.name, p, why))
		}
	}
	return faults
}

// allows reports whether r has a place for the import path p, never aside.
func (r rule) allows(p string) bool {
	if within(p, self) {
		return slices.Contains(r.own, p)
	}
	first, _, _ := strings.Cut(p, "/")
	if !strings.Contains(first, ".") {
		return true // the standard library
	}
	return slices.ContainsFunc(r.modules, func(m string) bool { return within(p, m) })
}

// judgeLinked returns what the packages under rules link and should not.
func judgeLinked(deps []dep, rules map[string]rule) []string {
	byPath := make(map[string]dep, len(deps))
	for _, d := range deps {
		byPath[d.ImportPath] = d
	}
	if _, ok := byPath[self]; !ok {
		return []string{"go list does not list " + self}
	}
	var faults []string
	for _, d := range deps {
		r, ok := rules[d.ImportPath]
		if !ok {
			continue // a module of others, or one that climb has reported
		}
		for _, p := range d.Deps {
			if why, ok := r.link(byPath[p]); !ok {
				faults = append(faults, fmt.Sprintf("%s links %s: %s", d.ImportPath, p, why))
			}
		}
	}
	return faults
}

// link reports whether a package under r may link d, and else why not.
func (r rule) link(d dep) (why string, ok bool) {
	for p, why := range forTests {
		if within(d.ImportPath, p) {
			return why, false
		}
	}
	switch {
	case d.Standard, within(d.ImportPath, self):
		return "", true // judged where it is imported
	case d.Module != nil && slices.Contains(r.modules, d.Module.Path):
		return "", true
	}
	return r.why, false
}

// within reports whether the import path p is root or below it.
func within(p, root string) bool {
	return p == root || strings.HasPrefix(p, root+"/")
}

// TestCommandRequiresWhatItLinks stands in for `go mod tidy` in cmd/rubicon,
// which can't run before the root has a version. Inside the workspace a missing
// requirement goes unnoticed; `go install` at a version would meet it.
func TestCommandRequiresWhatItLinks(t *testing.T) {
	const command = self + "/cmd/rubicon"
	required := requirements(t, "cmd/rubicon/go.mod")
	deps := linked(t)
	modules := map[string]string{}
	for _, d := range deps {
		if !d.Standard && d.Module != nil {
			modules[d.ImportPath] = d.Module.Path
		}
	}
	for _, d := range deps {
		if !within(d.ImportPath, command) {
			continue
		}
		for _, p := range d.Deps {
			if m := modules[p]; m != "" && m != command && !slices.Contains(required, m) {
				t.Errorf("%s links %s: cmd/rubicon/go.mod does not require %s", d.ImportPath, p, m)
			}
		}
	}
}

// The files that decide, as opposed to those that act on a decision, are
// functions of their arguments.
var (
	pureFiles  = []string{"classify.go", "decide.go"}
	impure     = []string{"context", "math/rand", "math/rand/v2", "crypto/rand", "net", "net/http/httptrace", "os", "sync", "sync/atomic"}
	clockFuncs = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}
)

func TestDecisionsArePure(t *testing.T) {
	for _, name := range pureFiles {
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, filepath.Join(top, name), nil, 0)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, p := range (file{ast: f}).imports() {
			if slices.Contains(impure, p) {
				t.Errorf("%s imports %s: what it decides follows from its arguments alone", name, p)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && readsClock(s) {
				t.Errorf("%s: time.%s: the time is an argument here", set.Position(s.Pos()), s.Sel.Name)
			}
			return true
		})
	}
}

func readsClock(s *ast.SelectorExpr) bool {
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == "time" && slices.Contains(clockFuncs, s.Sel.Name)
}

// TestPackageDocs holds for every module of the tree, those outside go.work too.
func TestPackageDocs(t *testing.T) {
	for _, p := range packages(t) {
		if fault := docFault(p); fault != "" {
			t.Errorf("%s: %s", p.path, fault)
		}
	}
}

// TestPackageDocsFindsFaults shows that each kind of fault is one.
func TestPackageDocsFindsFaults(t *testing.T) {
	const doc, none = "// Package x is.\npackage x", "package x"
	tests := []struct {
		name    string
		sources map[string]string
		want    string
	}{
		{"one", map[string]string{"a.go": doc, "b.go": none, "c_test.go": none}, ""},
		{"tests alone", map[string]string{"a_test.go": doc}, ""},
		{"missing", map[string]string{"a.go": none}, "no package doc"},
		{"in a test only", map[string]string{"a.go": none, "a_test.go": doc}, "no package doc"},
		{"twice", map[string]string{"a.go": doc, "b.go": doc}, "several files"},
		{"other words", map[string]string{"a.go": "// X is.\npackage x"}, `begin with "Package x "`},
		{"command", map[string]string{"a.go": "// Package main is.\npackage main"}, `begin with "Command x "`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := pkg{path: "example.com/x"}
			for name, source := range tt.sources {
				f, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments)
				if err != nil {
					t.Fatal(err)
				}
				p.files = append(p.files, file{name, f})
			}
			got := docFault(p)
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("fault %q, want %q", got, tt.want)
			}
		})
	}
}

// docFault says what is wrong with the package doc of p: "" for nothing. The doc
// of a package that has only tests stands in one of them.
func docFault(p pkg) string {
	tests := !slices.ContainsFunc(p.files, func(f file) bool { return !f.test() })
	var docs []file
	for _, f := range p.files {
		if f.test() == tests && f.ast.Doc != nil {
			docs = append(docs, f)
		}
	}
	if len(docs) == 0 {
		return "no package doc"
	}
	if len(docs) > 1 {
		return "package docs in several files, " + docs[0].name + " and " + docs[1].name
	}
	begin := "Package " + docs[0].ast.Name.Name + " "
	if docs[0].ast.Name.Name == "main" {
		begin = "Command " + path.Base(p.path) + " "
	}
	if !strings.HasPrefix(docs[0].ast.Doc.Text(), begin) {
		return fmt.Sprintf("%s: the package doc should begin with %q", docs[0].name, begin)
	}
	return ""
}

// packages parses every package of the tree. That the test reads the files
// itself, where `go list` could tell their imports, also keeps `go test` from
// serving an old result after one of them has changed.
func packages(t *testing.T) []pkg {
	t.Helper()
	found := map[string]*pkg{}
	modules := map[string]string{} // directory → module path
	err := filepath.WalkDir(top, func(name string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != top && ignored(d.Name()):
			return filepath.SkipDir
		case d.IsDir():
			modules[name] = modulePath(t, name, modules[filepath.Dir(name)])
			return nil
		case filepath.Ext(name) != ".go":
			return nil
		}
		f, err := parseFile(name)
		if err != nil {
			return err
		}
		dir := filepath.Dir(name)
		p := found[dir]
		if p == nil {
			p = &pkg{path: importPath(dir), module: modules[dir]}
			found[dir] = p
		}
		p.files = append(p.files, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var list []pkg
	for _, p := range found {
		list = append(list, *p)
	}
	slices.SortFunc(list, func(a, b pkg) int { return strings.Compare(a.path, b.path) })
	return list
}

// ignored reports whether the go command ignores directories of that name.
func ignored(name string) bool {
	return name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

func parseFile(name string) (file, error) {
	source, err := os.ReadFile(name)
	if err != nil {
		return file{}, err
	}
	rel, err := filepath.Rel(top, name)
	if err != nil {
		return file{}, err
	}
	f, err := parser.ParseFile(token.NewFileSet(), rel, source, parser.ParseComments)
	return file{filepath.ToSlash(rel), f}, err
}

// importPath returns the path of the package in dir. Every module of the tree is
// named after its directory.
func importPath(dir string) string {
	rel, err := filepath.Rel(top, dir)
	if err != nil {
		panic(err) // dir comes from a walk of top
	}
	return path.Join(self, filepath.ToSlash(rel))
}

// modulePath returns the path of the module that starts in dir: above, when none does.
func modulePath(t *testing.T, dir, above string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if errors.Is(err, os.ErrNotExist) {
		return above
	}
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if m, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(m)
		}
	}
	t.Fatalf("%s/go.mod names no module", dir)
	return ""
}

// workspace returns the paths of the modules that go.work uses.
func workspace(t *testing.T) []string {
	t.Helper()
	var work struct{ Use []struct{ DiskPath string } }
	edited(t, &work, "work", "edit", "-json", "go.work")
	var list []string
	for _, u := range work.Use {
		list = append(list, modulePath(t, filepath.Join(top, u.DiskPath), ""))
	}
	if !slices.Contains(list, self) {
		t.Fatalf("go.work uses %q: the root is missing", list)
	}
	return list
}

// requirements returns the paths of the modules that a go.mod file requires.
func requirements(t *testing.T, name string) []string {
	t.Helper()
	var mod struct{ Require []struct{ Path string } }
	edited(t, &mod, "mod", "edit", "-json", name)
	var list []string
	for _, r := range mod.Require {
		list = append(list, r.Path)
	}
	return list
}

// linked lists what the packages of the workspace depend on, on this system:
// with GOWORK=off, those of the root alone.
func linked(t *testing.T) []dep {
	t.Helper()
	var deps []dep
	in := json.NewDecoder(bytes.NewReader(goCommand(t, "list", "-deps", "-json=ImportPath,Standard,Module,Deps", "work")))
	for {
		var d dep
		switch err := in.Decode(&d); {
		case errors.Is(err, io.EOF):
			return deps
		case err != nil:
			t.Fatal(err)
		}
		deps = append(deps, d)
	}
}

// edited decodes into v what one of go's edit commands prints.
func edited(t *testing.T, v any, args ...string) {
	t.Helper()
	if err := json.Unmarshal(goCommand(t, args...), v); err != nil {
		t.Fatal(err)
	}
}

// goCommand runs go in the root's directory and returns what it prints.
func goCommand(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = top
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, errs.Bytes())
	}
	return out
}
