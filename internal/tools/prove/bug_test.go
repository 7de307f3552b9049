package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const two = "func Two() int { return 2 }"

// tree is a module of two files, of which one tests the other.
func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module m\n\ngo 1.26\n",
		"a.go":      "package m\n\n" + two + "\n",
		"a_test.go": "package m\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) {\n\tif Two() != 2 {\n\t\tt.Error(Two())\n\t}\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func patch(header, line string) string {
	return header + "\ndiff --git a/a.go b/a.go\n--- a/a.go\n+++ b/a.go\n@@ -1,3 +1,3 @@\n package m\n \n-" + two + "\n+" + line + "\n"
}

const header = "What: it is wrong\nSeen: nowhere\nTest: . -run TestTwo\n"

func readText(t *testing.T, text string) (bug, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "name.patch")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return read(file)
}

// A bug is found, survives, or shows nothing; afterwards the tree is as it was.
func TestTry(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"func Two() int { return 3 }":     "TestTwo",
		"func Two() int { return 1 + 1 }": "",
		"func Two() int { return three }": "does not compile",
	} {
		dir := tree(t)
		b, err := readText(t, patch(header, line))
		if err != nil {
			t.Fatal(err)
		}
		f := b.fault()
		found, err := f.Try(dir)
		if err != nil {
			found = err.Error()
		}
		if found != want && (err == nil || !strings.Contains(found, want)) {
			t.Errorf("%s: %q, want %q", line, found, want)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "a.go")); err != nil || !strings.Contains(string(text), two) {
			t.Errorf("%s: the tree is left as %q, %v", line, text, err)
		}
	}
}

func TestOutdatedPatch(t *testing.T) {
	t.Parallel()
	b, err := readText(t, strings.Replace(patch(header, ""), "-"+two, "-func Other() {}", 1))
	if err != nil {
		t.Fatal(err)
	}
	f := b.fault()
	if _, err := f.Try(tree(t)); err == nil || !strings.Contains(err.Error(), "does not apply") {
		t.Errorf("error %v", err)
	}
}

func TestHeader(t *testing.T) {
	t.Parallel()
	b, err := readText(t, patch(header, ""))
	if err != nil || b.name != "name" || b.what != "it is wrong" || b.seen != "nowhere" || b.suite.String() != ". -run 'TestTwo'" {
		t.Errorf("%+v, %v", b, err)
	}
	for _, line := range []string{"What: it is wrong\n", "Seen: nowhere\n", "Test: . -run TestTwo\n", " -run TestTwo"} {
		if _, err := readText(t, patch(strings.Replace(header, line, "", 1), "")); err == nil {
			t.Errorf("a header without %q is taken", line)
		}
	}
}

// Subtests are run alone, the tests of a package together, and none twice.
func TestSuites(t *testing.T) {
	t.Parallel()
	var all []bug
	for _, text := range []string{"./a -run TestA", "./a -run TestB/x", "./a -run TestB/x", "./a -run TestC", "./b -run TestD"} {
		all = append(all, bug{suite: suite(text)})
	}
	got := map[string]bool{}
	for _, s := range suites(all) {
		got[s.String()] = true
	}
	for _, want := range []string{"./a -run 'TestA|TestC'", "./a -run 'TestB/x'", "./b -run 'TestD'"} {
		if !got[want] {
			t.Errorf("%s is missing in %v", want, got)
		}
	}
	if len(got) != 3 {
		t.Errorf("suites %v", got)
	}
}
