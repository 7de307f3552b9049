package trial

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// body is what the test of a sound tree does.
const body = "/* sound */"

// turns is a fault that makes the test do something else.
func turns(t *testing.T, name, into string) Fault {
	t.Helper()
	return Fault{
		Name: name, Cells: []string{"1", name}, Suite: Suite{Packages: []string{"."}},
		Plant: func(tree string) (func() error, error) {
			checkTree(t, tree)
			module(t, tree, into)
			return func() error { module(t, tree, body); return nil }, nil
		},
	}
}

func checkTree(t *testing.T, tree string) {
	t.Helper()
	if text, err := os.ReadFile(filepath.Join(tree, "a_test.go")); err != nil || !strings.Contains(string(text), body) {
		t.Errorf("the tree is not as it was: %q, %v", text, err)
	}
}

// Each fault has its row; one that survives, or shows nothing, is an error, as is
// a test that fails anyway.
func TestPrint(t *testing.T) {
	t.Parallel()
	seen, unseen, unbuilt := turns(t, "seen", "t.Error(1)"), turns(t, "unseen", ""), turns(t, "unbuilt", "undefined(word)")
	for name, c := range map[string]struct {
		faults []Fault
		sound  string
		rows   []string
		err    string
	}{
		"found":     {[]Fault{seen, seen}, "TestIt", []string{"| 1 | seen | `TestIt` in . | "}, ""},
		"survived":  {[]Fault{unseen, seen}, "TestIt", []string{"| 1 | unseen | **nothing: it survived** | ", "| 1 | seen | `TestIt`"}, "nothing wrong with: unseen"},
		"not built": {[]Fault{unbuilt}, "TestIt", nil, "unbuilt: with it the tree does not compile"},
		"not sound": {[]Fault{seen}, "(", nil, "fails without any fault"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			module(t, dir, body)
			git(t, dir, "init", "-q")
			table := Table{Columns: []string{"#", "fault"}, Faults: c.faults, Sound: []Suite{{Packages: []string{"."}, Run: c.sound}}}
			var out strings.Builder
			err := table.Print(&out, dir)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			if c.rows != nil {
				c.rows = append(c.rows, "| # | fault | found by | seconds |\n|---|---|---|---|\n")
			}
			for _, row := range c.rows {
				if !strings.Contains(out.String(), row) {
					t.Errorf("no %q in:\n%s", row, &out)
				}
			}
			checkTree(t, dir)
		})
	}
}
