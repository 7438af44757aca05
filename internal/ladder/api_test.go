package ladder

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the API as it is to api.txt")

const apiHead = `# The public API of the root module's packages, one exported name a line.
# go test ./internal/ladder -run TestAPI -update    writes it anew; review the difference.
`

// TestAPI compares the exported names with those checked in, so that a name is
// never added, changed or lost unseen.
func TestAPI(t *testing.T) {
	var lines []string
	for _, p := range packages(t) {
		if p.module == self && public(p) {
			lines = append(lines, api(p)...)
		}
	}
	got := apiHead + strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile("api.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("api.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the API is not the one of api.txt (-update writes it anew):\n%s", diff(string(want), got))
	}
}

// public reports whether other modules can import p.
func public(p pkg) bool {
	return !strings.Contains(p.path+"/", "/internal/") &&
		slices.ContainsFunc(p.files, func(f file) bool { return !f.test() && f.ast.Name.Name != "main" })
}

func TestAPILines(t *testing.T) {
	const source = `package x

import "io"

type Kind uint8

const (
	A Kind = iota
	B
	c
)

const Name, other = "n", 1

var ErrX, errY error

type T[P any] struct {
	io.Reader
	F, G  func(a, b int) (n int, err error)
	*Kind
	h int
}

func (t *T[P]) Do(x ...P) error { return nil }
func (t T[P]) do()              {}
func (t hidden) Do()            {}

type hidden struct{ F int }

type I interface {
	io.Writer
	M(x int) error
	m()
}

type Alias = I

func New[P any](p P) *T[P] { return nil }
func lost()                {}
`
	const want = `pkg x, const A Kind
pkg x, const B Kind
pkg x, const Name
pkg x, func New[P any](p P) *T[P]
pkg x, method (*T[P]) Do(x ...P) error
pkg x, type Alias = I
pkg x, type I interface
pkg x, type I interface, M(x int) error
pkg x, type I interface, embeds io.Writer
pkg x, type I interface, unexported methods
pkg x, type Kind uint8
pkg x, type T[P any] struct
pkg x, type T[P any] struct, F func(a, b int) (n int, err error)
pkg x, type T[P any] struct, G func(a, b int) (n int, err error)
pkg x, type T[P any] struct, embeds *Kind
pkg x, type T[P any] struct, embeds io.Reader
pkg x, type T[P any] struct, unexported fields
pkg x, var ErrX error`
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(api(pkg{path: "x", files: []file{{"x.go", f}}}), "\n")
	if got != want {
		t.Errorf("lines:\n%s", diff(want, got))
	}
}

// api returns a sorted line for each exported name of p, on whatever system.
func api(p pkg) []string {
	var names []string
	for _, f := range p.files {
		if f.test() {
			continue
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				names = append(names, funcName(d)...)
			case *ast.GenDecl:
				names = append(names, declNames(d)...)
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names) // a name may be declared once for each system
	for i, n := range names {
		names[i] = "pkg " + p.path + ", " + n
	}
	return names
}

func funcName(d *ast.FuncDecl) []string {
	if !d.Name.IsExported() {
		return nil
	}
	signature := d.Name.Name + strings.TrimPrefix(text(d.Type), "func")
	if d.Recv == nil {
		return []string{"func " + signature}
	}
	recv := text(d.Recv.List[0].Type)
	if !ast.IsExported(strings.TrimPrefix(recv, "*")) {
		return nil
	}
	return []string{"method (" + recv + ") " + signature}
}

func declNames(d *ast.GenDecl) []string {
	var names []string
	var typ ast.Expr // of a constant that repeats the one before it
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				names = append(names, typeNames(s)...)
			}
		case *ast.ValueSpec:
			if s.Type != nil || s.Values != nil {
				typ = s.Type
			}
			for _, n := range s.Names {
				if n.IsExported() {
					names = append(names, strings.TrimSpace(d.Tok.String()+" "+n.Name+" "+text(typ)))
				}
			}
		}
	}
	return names
}

func typeNames(s *ast.TypeSpec) []string {
	name := "type " + s.Name.Name
	if s.TypeParams != nil {
		var params []string
		for _, f := range s.TypeParams.List {
			params = append(params, fieldNames(f)+" "+text(f.Type))
		}
		name += "[" + strings.Join(params, ", ") + "]"
	}
	switch typ := s.Type.(type) {
	case *ast.StructType:
		return append([]string{name + " struct"}, members(name+" struct, ", typ.Fields, "fields")...)
	case *ast.InterfaceType:
		return append([]string{name + " interface"}, members(name+" interface, ", typ.Methods, "methods")...)
	}
	if s.Assign.IsValid() {
		return []string{name + " = " + text(s.Type)}
	}
	return []string{name + " " + text(s.Type)}
}

// members returns a line for each exported field or method of list, one for each
// type that it embeds, and one that says that there are others.
func members(prefix string, list *ast.FieldList, others string) []string {
	var names []string
	for _, f := range list.List {
		typ := text(f.Type)
		if len(f.Names) == 0 {
			names = append(names, prefix+"embeds "+typ)
		}
		if _, ok := f.Type.(*ast.FuncType); ok && others == "methods" {
			typ = strings.TrimPrefix(typ, "func")
		} else {
			typ = " " + typ
		}
		for _, n := range f.Names {
			line := prefix + n.Name + typ
			if !n.IsExported() {
				line = prefix + "unexported " + others
			}
			names = append(names, line)
		}
	}
	return names
}

func fieldNames(f *ast.Field) string {
	var names []string
	for _, n := range f.Names {
		names = append(names, n.Name)
	}
	return strings.Join(names, ", ")
}

// text returns the source of an expression on one line; "" for none.
func text(x ast.Expr) string {
	if x == nil {
		return ""
	}
	var out bytes.Buffer
	if err := format.Node(&out, token.NewFileSet(), x); err != nil {
		panic(err) // it was parsed
	}
	return strings.Join(strings.Fields(out.String()), " ")
}

// diff lists the lines that only one of two sorted texts has.
func diff(want, got string) string {
	var out strings.Builder
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for _, line := range w {
		if !slices.Contains(g, line) {
			fmt.Fprintf(&out, "- %s\n", line)
		}
	}
	for _, line := range g {
		if !slices.Contains(w, line) {
			fmt.Fprintf(&out, "+ %s\n", line)
		}
	}
	return out.String()
}
