package acceptance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pathRow is a row of docs/PATH.md: a function or a script, and its file.
var pathRow = regexp.MustCompile("^\\| (script )?`([^`]+)` \\| `([^`]+)` \\|")

// The page that shows the path of a task names functions that are there, in their order: each is called by one above it
// in its table, but for the first, and each script by its name.
func TestPathIsTheCode(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "docs", "PATH.md"))
	if err != nil {
		t.Fatal(err)
	}
	var called []string // by the rows of this table so far
	rows, first := 0, true
	for line := range strings.Lines(string(text)) {
		m := pathRow.FindStringSubmatch(line)
		if m == nil {
			called, first = nil, true
			continue
		}
		rows++
		script, name, file := m[1] != "", m[2], m[3]
		short := name[strings.LastIndexByte(name, '.')+1:]
		if !first && !slices.Contains(called, short) {
			t.Errorf("%s is called by none above it", name)
		}
		first = false
		if script {
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("script %s: %v", name, err)
			}
			continue
		}
		calls, found := callsOf(t, file, name)
		if !found {
			t.Errorf("%s is not in %s", name, file)
		}
		called = append(called, calls...)
	}
	if rows < 50 {
		t.Errorf("only %d rows found", rows)
	}
}

// callsOf are the names that a function calls, or hands to others, and the texts in it, by which scripts are called.
func callsOf(t *testing.T, file, function string) (calls []string, found bool) {
	t.Helper()
	syntax, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	receiver, name, method := strings.Cut(function, ".")
	if !method {
		receiver, name = "", function
	}
	for _, d := range syntax.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != name || receiverOf(f) != receiver {
			continue
		}
		found = true
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				calls = append(calls, n.Name)
			case *ast.BasicLit:
				calls = append(calls, strings.Trim(n.Value, `"`))
			}
			return true
		})
	}
	return calls, found
}

func receiverOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}
