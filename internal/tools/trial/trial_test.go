package trial

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestFirstFailure(t *testing.T) {
	t.Parallel()
	for out, want := range map[string]string{
		"--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/b (0.1s)\n        --- FAIL: TestA/b/c (0s)\n--- FAIL: TestD (0s)": "TestA/b/c",
		"--- FAIL: TestA (0.1s)\n--- FAIL: TestAB (0.1s)":                                                              "TestA",
		"panic: test timed out after 5m":                                                                               "a test that ended the run",
	} {
		if got := firstFailure(out); got != want {
			t.Errorf("%q: %q, want %q", out, got, want)
		}
	}
}

// A tree that is sound, one with a failing test, and one that does not compile.
func TestTry(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]Result{
		"":                {Green: true},
		"t.Error(1)":      {Found: "TestIt"},
		"os.Exit(3)":      {Found: "a test that ended the run"},
		"undefined(word)": {Found: "a test that ended the run", Unbuilt: true},
		"t.Error(`user_script:1: Error compiling script`)": {Found: "TestIt", Unbuilt: true},
	} {
		dir := t.TempDir()
		module(t, dir, body)
		got := Suite{Packages: []string{"."}, Run: "TestIt"}.Try(dir)
		if got.Green != want.Green || got.Unbuilt != want.Unbuilt || got.Found != want.Found {
			t.Errorf("%s: %+v, want %+v", body, got, want)
		}
	}
}

// Files that git does not know yet are copied, ignored and deleted ones are not.
func TestCopy(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	write(t, from, "known", "")
	write(t, from, "deleted", "")
	write(t, from, ".gitignore", "ignored\n")
	git(t, from, "init", "-q")
	git(t, from, "add", ".")
	write(t, from, "ignored", "")
	write(t, from, "below/new", "text")
	if err := os.Remove(filepath.Join(from, "deleted")); err != nil {
		t.Fatal(err)
	}
	to, err := Copy(from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(to) })
	for name, want := range map[string]bool{"known": true, "below/new": true, "deleted": false, "ignored": false} {
		if _, err := os.Stat(filepath.Join(to, name)); (err == nil) != want {
			t.Errorf("%s: %v, want it copied: %v", name, err, want)
		}
	}
}

// module writes a tree with one test.
func module(t *testing.T, dir, body string) {
	t.Helper()
	write(t, dir, "go.mod", "module m\n\ngo 1.26\n")
	write(t, dir, "a_test.go", "package m\n\nimport (\n\"os\"\n\"testing\"\n)\n\nvar _ = os.Exit\n\nfunc TestIt(t *testing.T) { "+body+" }\n")
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}
