package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
)

// TestProtocolNamesTheRecord: every field that a worker records of a round
// stands in docs/PROTOCOL.md.
func TestProtocolNamesTheRecord(t *testing.T) {
	t.Parallel()
	inDoc := documented(t, "Fields of a task")
	names := recorded(t, "../../worker/ending.go")
	if len(names) < 12 {
		t.Fatalf("only %v found", names)
	}
	for _, name := range append(names, "progress", "node", "incarnation", "claim", "end") {
		if _, ok := inDoc["r:"+name]; !ok {
			t.Errorf("field r:%s is not documented", name)
		}
	}
}

// recorded are the names given to set and RoundField in a file. One that is put
// together of a stream's name and a suffix counts for both streams.
func recorded(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		at := map[string]int{"set": 0, "RoundField": 1}
		if i, known := at[nameOf(sel, ok)]; known {
			names = append(names, fieldNames(call.Args[i])...)
		}
		return true
	})
	return names
}

func nameOf(sel *ast.SelectorExpr, ok bool) string {
	if !ok {
		return ""
	}
	return sel.Sel.Name
}

func fieldNames(x ast.Expr) []string {
	switch x := x.(type) {
	case *ast.BasicLit:
		if name, err := strconv.Unquote(x.Value); err == nil {
			return []string{name}
		}
	case *ast.BinaryExpr:
		var names []string
		for _, suffix := range fieldNames(x.Y) {
			names = append(names, "output"+suffix, "error"+suffix)
		}
		return names
	}
	return nil
}
