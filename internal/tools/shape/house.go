package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// house is one module, read once.
type house struct {
	root    string
	set     *token.FileSet
	sources map[string][]byte    // Go and Lua without tests, by their path below root
	syntax  map[string]*ast.File // of the Go files among them
	begins  map[function]bool    // of the functions in them
	foreign int                  // packages of others that manager is compiled with
	api     []exported           // of the public packages
	idle    []string             // those of them that are used nowhere else
	path    path
	inside  int // calls within a package
	left    int // those of them that leave their file
}

// enter reads a module, and asks the go command for the types of its packages.
func enter(root string) (*house, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("measuring: %w", err)
	}
	h := &house{
		root: root, set: token.NewFileSet(), sources: map[string][]byte{}, syntax: map[string]*ast.File{}, begins: map[function]bool{},
	}
	if err := filepath.WalkDir(root, h.read); err != nil {
		return nil, fmt.Errorf("measuring %s: %w", root, err)
	}
	return h, h.calls()
}

func (h *house) read(path string, entry fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	if entry.IsDir() {
		if path != h.root && leftOut(path) {
			return fs.SkipDir
		}
		return nil
	}
	ext := filepath.Ext(path)
	if ext != ".go" && ext != ".lua" || strings.HasSuffix(path, "_test.go") {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	name := h.name(path)
	h.sources[name] = text
	if ext != ".go" {
		return nil
	}
	if h.syntax[name], err = parser.ParseFile(h.set, path, text, parser.SkipObjectResolution); err != nil {
		return fmt.Errorf("parse: %w", err)
	}
	for _, d := range h.syntax[name].Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			at := h.set.Position(f.Body.Lbrace)
			h.begins[function(fmt.Sprintf("%s:%d.%d", name, at.Line, at.Column))] = true
		}
	}
	return nil
}

// name is a path below root, with slashes.
func (h *house) name(path string) string {
	return filepath.ToSlash(strings.TrimPrefix(path, h.root+string(filepath.Separator)))
}

// leftOut are nested modules, and what is not ours.
func leftOut(dir string) bool {
	name := filepath.Base(dir)
	if strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// product leaves out what serves only those who work on it.
func product(file string) bool {
	for _, place := range []string{"bench/", "examples/", "internal/testkit/", "internal/tools/", "test/"} {
		if strings.HasPrefix(file, place) {
			return false
		}
	}
	return true
}

func (h *house) lines() int { return h.count(func(string) bool { return true }) }

func (h *house) productLines() int { return h.count(product) }

func (h *house) count(which func(string) bool) (lines int) {
	for file := range h.syntax {
		if which(file) {
			lines += bytes.Count(h.sources[file], []byte{'\n'})
		}
	}
	return lines
}

func (h *house) files() int { return len(h.syntax) }

// rooms are the folders below internal that hold Go, at any depth.
func (h *house) rooms() int {
	seen := map[string]bool{}
	for file := range h.syntax {
		if parts := strings.Split(file, "/"); parts[0] == "internal" {
			seen[parts[1]] = true
		}
	}
	return len(seen)
}

// attributes of a task, by which a struct that is one is known: it has three of them, or a whole task in it.
var attributes = regexp.MustCompile(
	`(?i)^(program|source|input|argv|max(fails|timeouts|losses)|startafter|endbefore|failon|retryof|round|claim)$`)

const enough = 3

func (h *house) tasks() (n int) {
	for file, syntax := range h.syntax {
		if !product(file) {
			continue
		}
		ast.Inspect(syntax, func(node ast.Node) bool {
			if s, ok := node.(*ast.StructType); ok && (named(s) >= enough || embeds(s)) {
				n++
			}
			return true
		})
	}
	return n
}

func named(s *ast.StructType) (n int) {
	for _, f := range s.Fields.List {
		for _, name := range f.Names {
			if attributes.MatchString(name.Name) {
				n++
			}
		}
	}
	return n
}

// embeds reports whether a struct has all that a task, or its definition, has.
func embeds(s *ast.StructType) bool {
	return slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool {
		of := strings.TrimPrefix(types.ExprString(f.Type), "*")
		of = of[strings.LastIndexByte(of, '.')+1:]
		return len(f.Names) == 0 && (of == "Task" || of == "TaskHeader" || of == "Spec")
	})
}

// one attribute stands for all.
var one = regexp.MustCompile(`\b(?i:retry_?max_?delay)\b`)

func (h *house) spellings() (n int) {
	for file, text := range h.sources {
		if product(file) && one.Match(text) {
			n++
		}
	}
	return n
}

// methods are those of pointers: a connection or a room. Values, such as the names of keys, do nothing.
func (h *house) methods() (most int) {
	count := map[string]int{}
	for file, syntax := range h.syntax {
		if !strings.HasPrefix(file, "internal/store/") {
			continue
		}
		for _, d := range syntax.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || !f.Name.IsExported() {
				continue
			}
			if _, pointer := f.Recv.List[0].Type.(*ast.StarExpr); pointer {
				of := filepath.Dir(file) + "." + strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*")
				count[of]++
				most = max(most, count[of])
			}
		}
	}
	return most
}

func (h *house) literals() (n int) {
	for file, syntax := range h.syntax {
		if !strings.HasPrefix(file, "cmd/") {
			continue
		}
		ast.Inspect(syntax, func(node ast.Node) bool {
			if l, ok := node.(*ast.CompositeLit); ok && l.Type != nil && types.ExprString(l.Type) == "map[string]any" {
				n++
			}
			return true
		})
	}
	return n
}

func (h *house) leaving() int {
	if h.inside == 0 {
		return 0
	}
	return (100*h.left + h.inside/2) / h.inside
}

// listed is what the go command says of a package.
type listed struct {
	ImportPath string   `json:"ImportPath"`
	Name       string   `json:"Name"`
	Dir        string   `json:"Dir"`
	Export     string   `json:"Export"`
	Standard   bool     `json:"Standard"`
	Deps       []string `json:"Deps"`
	GoFiles    []string `json:"GoFiles"`
	DepOnly    bool     `json:"DepOnly"`
}

// calls looks at each call of a function of the same package.
func (h *house) calls() error {
	packages, exports, err := h.list()
	if err != nil {
		return err
	}
	for _, p := range packages {
		if !product(h.name(p.Dir) + "/") {
			continue
		}
		if err := h.look(p, exports); err != nil {
			return fmt.Errorf("%s: %w", p.ImportPath, err)
		}
	}
	return nil
}

// list returns the packages of the module, and where the types of all packages are.
func (h *house) list() ([]listed, map[string]string, error) {
	const fields = "-json=ImportPath,Name,Dir,Export,Standard,Deps,GoFiles,DepOnly"
	cmd := exec.CommandContext(context.Background(), "go", "list", "-deps", "-export", fields, "./...")
	cmd.Dir, cmd.Stderr = h.root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go list: %w", err)
	}
	var ours []listed
	exports, others := map[string]string{}, map[string]bool{}
	for all := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := all.Decode(&p); errors.Is(err, io.EOF) {
			h.foreign = foreign(ours, others)
			return ours, exports, nil
		} else if err != nil {
			return nil, nil, fmt.Errorf("go list: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if p.DepOnly {
			others[p.ImportPath] = !p.Standard
		} else {
			ours = append(ours, p)
		}
	}
}

// foreign counts the packages of other modules that package manager is compiled with.
func foreign(ours []listed, others map[string]bool) (n int) {
	for _, p := range ours {
		if strings.HasSuffix(p.ImportPath, "/tdf/manager") {
			for _, d := range p.Deps {
				if others[d] {
					n++
				}
			}
		}
	}
	return n
}

func (h *house) look(p listed, exports map[string]string) error {
	files := make([]*ast.File, len(p.GoFiles))
	for i, name := range p.GoFiles {
		files[i] = h.syntax[h.name(filepath.Join(p.Dir, name))]
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	conf := types.Config{Importer: importer.ForCompiler(h.set, "gc", lookup)}
	pkg, err := conf.Check(p.ImportPath, h.set, files, info)
	if err != nil {
		return fmt.Errorf("check types: %w", err)
	}
	if h.public(p) {
		h.export(pkg)
	}
	for _, f := range files {
		ast.Inspect(f, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok {
				h.call(pkg, call, info)
			}
			return true
		})
	}
	return nil
}

func (h *house) call(pkg *types.Package, call *ast.CallExpr, info *types.Info) {
	fun := ast.Unparen(call.Fun)
	switch f := fun.(type) { // with type arguments
	case *ast.IndexExpr:
		fun = f.X
	case *ast.IndexListExpr:
		fun = f.X
	}
	var callee *ast.Ident
	switch f := fun.(type) {
	case *ast.Ident:
		callee = f
	case *ast.SelectorExpr:
		callee = f.Sel
	default:
		return
	}
	if f, ok := info.Uses[callee].(*types.Func); ok && f.Pkg() == pkg {
		h.inside++
		if h.set.File(f.Pos()) != h.set.File(call.Pos()) {
			h.left++
		}
	}
}
