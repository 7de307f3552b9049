// Command stats measures the Go code of a tree and prints the figures beside
// those of well-known projects: sizes of files and functions, test to code ratio,
// share of comments, share of exported names with a doc comment.
//
//	stats [-list] [DIRECTORY]
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	list := flag.Bool("list", false, "also list each function and file over the limit and each name without a doc comment")
	flag.Parse()
	root := "."
	if flag.NArg() > 0 {
		root = flag.Arg(0)
	}
	files, err := measureTree(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "stats:", err)
		os.Exit(1)
	}
	printTable(os.Stdout, files)
	if *list {
		printFindings(os.Stdout, files)
	}
}

// measureTree measures every Go file of one module. Nested modules, testdata,
// vendored and hidden directories are left out.
func measureTree(root string) ([]*file, error) {
	var files []*file
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path != root && leftOut(path) {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		f, err := measureFile(path)
		if err != nil {
			return err
		}
		if f != nil {
			f.classify(root)
			files = append(files, f)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("measuring %s: %w", root, err)
	}
	return files, nil
}

func leftOut(dir string) bool {
	name := filepath.Base(dir)
	if strings.HasPrefix(name, ".") || name == "testdata" || name == "vendor" || name == "bin" {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// classify tells tests, helpers of tests and tools of the project from the
// product. Helpers count as tests, as they only exist for them.
func (f *file) classify(root string) {
	rel, err := filepath.Rel(root, f.path)
	if err != nil {
		rel = f.path
	}
	f.path = filepath.ToSlash(rel)
	dir := filepath.ToSlash(filepath.Dir(rel))
	f.test = strings.HasSuffix(rel, "_test.go") || strings.HasPrefix(dir, "internal/testkit/")
	for _, top := range []string{"internal/tools", "bench", "examples"} {
		if dir == top || strings.HasPrefix(dir, top+"/") {
			f.tool = true
		}
	}
}

// function is one function or method with a body.
type function struct {
	name  string
	lines int
}

// file is what was measured in one Go file.
type file struct {
	path      string
	test      bool // a test, or a package that only tests import
	tool      bool // belongs to the development of the project, not to the product
	lines     int  // all lines
	code      int  // lines with code on them
	comments  int  // lines with a comment and no code
	functions []function
	exported  int      // exported functions, methods and types
	bare      []string // those without a doc comment
}

// measureFile reads one file. Generated files give nil.
func measureFile(path string) (*file, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading: %w", err)
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parsing: %w", err)
	}
	if ast.IsGenerated(tree) {
		return nil, nil //nolint:nilnil // nil says: not to be counted
	}
	f := &file{path: path, lines: strings.Count(string(src), "\n")}
	f.countLines(src)
	for _, decl := range tree.Decls {
		f.addDecl(set, decl)
	}
	return f, nil
}

// countLines tells lines of code from lines of comment.
func (f *file) countLines(src []byte) {
	set := token.NewFileSet()
	in := set.AddFile(f.path, -1, len(src))
	var s scanner.Scanner
	s.Init(in, src, nil, scanner.ScanComments)
	code, comment := map[int]bool{}, map[int]bool{}
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			break
		}
		lines := code
		if tok == token.COMMENT {
			lines = comment
		} else if tok == token.SEMICOLON && text == "\n" {
			continue // written by the scanner, not by the author
		}
		for i := range 1 + strings.Count(text, "\n") {
			lines[in.Line(pos)+i] = true
		}
	}
	f.code = len(code)
	for line := range comment {
		if !code[line] {
			f.comments++
		}
	}
}

func (f *file) addDecl(set *token.FileSet, decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Body != nil {
			length := set.Position(d.End()).Line - set.Position(d.Pos()).Line + 1
			f.functions = append(f.functions, function{funcName(d), length})
		}
		if d.Name.IsExported() && receiverExported(d) {
			f.addExported(funcName(d), d.Doc != nil)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if t, ok := spec.(*ast.TypeSpec); ok && t.Name.IsExported() {
				f.addExported(t.Name.Name, t.Doc != nil || d.Doc != nil)
			}
		}
	}
}

func (f *file) addExported(name string, documented bool) {
	f.exported++
	if !documented {
		f.bare = append(f.bare, name)
	}
}

// receiver returns the type name of a method's receiver, empty for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	expr := d.Recv.List[0].Type
	for {
		switch t := expr.(type) {
		case *ast.StarExpr:
			expr = t.X
		case *ast.IndexExpr:
			expr = t.X
		case *ast.IndexListExpr:
			expr = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

func receiverExported(d *ast.FuncDecl) bool {
	name := receiver(d)
	return name == "" || ast.IsExported(name)
}

func funcName(d *ast.FuncDecl) string {
	if r := receiver(d); r != "" {
		return r + "." + d.Name.Name
	}
	return d.Name.Name
}
