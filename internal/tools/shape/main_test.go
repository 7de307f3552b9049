package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree writes a module, with what each row counts once and something that it must leave out.
func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                       "module example.org/m\n\ngo 1.26\n",
		"a/a.go":                       "package a\n\nfunc A() { a(); b(); T{}.c(); g[int]() }\n\nfunc a() {}\n",
		"a/b.go":                       "package a\n\ntype T struct {\n\tProgram, Source, Other string\n\tretryMaxDelay, Claim int\n}\n\ntype Task struct{}\n\ntype U struct{ *Task }\n\nfunc b() {}\n\nfunc (T) c() {}\n\nfunc g[X any]() {}\n",
		"a/a_test.go":                  "package a\n\nfunc retryMaxDelay() {}\n",
		"a/x_test.go":                  "package a_test\n\nimport \"example.org/m/a\"\n\nvar _ = a.T{Program: \"\"}\n\nfunc init() { a.A() }\n",
		"cmd/x/main.go":                "package main\n\nfunc main() { _ = map[string]any{\"a\": map[string]int{}} }\n",
		"internal/store/s.go":          "package store\n\ntype S struct{}\n\nfunc (*S) A() {}\n\nfunc (*S) B() {}\n\nfunc (S) C() {}\n\nfunc (S) c() {}\n",
		"internal/store/s.lua":         "-- retry_max_delay\n",
		"internal/testkit/helper/h.go": "package helper\n\ntype T struct{ Program, Source, Claim int }\n",
		"nested/go.mod":                "module example.org/nested\n",
		"nested/n.go":                  "package n\n\nfunc {\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRows(t *testing.T) {
	t.Parallel()
	h, err := enter(tree(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.unused(); err != nil {
		t.Fatal(err)
	}
	want := []int{38, 35, 5, 2, 2, 2, 2, 0, 9, 6, 1, 75, 0, 0, 0, 0, 0}
	for i, r := range rows() {
		if got := r.measure(h); got != want[i] {
			t.Errorf("%s: %d, want %d", r.name, got, want[i])
		}
	}
}

// Packages of the standard library and of the module itself are not foreign.
func TestForeign(t *testing.T) {
	t.Parallel()
	others := map[string]bool{"example.org/a": true, "example.org/b": true, "fmt": false}
	ours := []listed{
		{ImportPath: "github.com/tdf-go/tdf/manager", Deps: []string{"example.org/a", "fmt", "github.com/tdf-go/tdf/task"}},
		{ImportPath: "github.com/tdf-go/tdf/worker", Deps: []string{"example.org/a", "example.org/b"}},
	}
	if n := foreign(ours, others); n != 1 {
		t.Errorf("%d, want 1", n)
	}
}

// A function has been called as often as the block was run that its body begins with.
func TestCalls(t *testing.T) {
	t.Parallel()
	m := &meter{house: &house{begins: map[function]bool{"task/a.go:3.10": true, "task/a.go:9.12": true, "worker/b.go:1.5": true, "bench/c.go:1.5": true}}}
	const module = "github.com/tdf-go/tdf/"
	calls := m.calls("mode: atomic\n" + module + "task/a.go:3.10,5.2 3 2\n" + module + "task/a.go:4.3,4.9 1 7\n" + module + "task/a.go:9.12,10.2 1 0\n" +
		module + "worker/b.go:1.5,2.2 1 1\n" + module + "bench/c.go:1.5,2.2 1 1\n")
	p := path{open: calls, life: calls}
	if p.opening() != 2 || p.calls() != 3 || p.functions() != 2 || p.files() != 2 || p.packages() != 2 {
		t.Errorf("%v", calls)
	}
}

func TestWorse(t *testing.T) {
	t.Parallel()
	number := func(*house) int { return 7 }
	var out strings.Builder
	if err := show(&out, nil, []row{{"a", 7, number}}); err != nil {
		t.Error(err)
	}
	if err := show(&out, nil, []row{{"a", 7, number}, {"b", 6, number}}); !errors.Is(err, errWorse) || !strings.Contains(out.String(), "b  <- worse") {
		t.Errorf("%v, want errWorse:\n%s", err, out.String())
	}
}
