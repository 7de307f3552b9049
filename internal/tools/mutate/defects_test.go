package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each defect can be planted in the tree as it is, in one place, under a name of
// its own, and there are tests that are to notice.
func TestDefectsAreUpToDate(t *testing.T) {
	t.Parallel()
	const tree = "../../.."
	named := map[string]bool{}
	for i := range defects {
		d := &defects[i]
		if named[d.what] {
			t.Errorf("two defects are named %q", d.what)
		}
		named[d.what] = true
		if _, _, err := d.texts(tree); err != nil {
			t.Errorf("%s: %v", d.what, err)
		}
		if d.old == d.new || len(d.packages) == 0 {
			t.Errorf("%s: it changes nothing, or nobody is to notice", d.what)
		}
		for _, p := range d.packages {
			if _, err := os.Stat(filepath.Join(tree, p)); err != nil {
				t.Errorf("%s: %v", d.what, err)
			}
		}
	}
}

// Every key of the configuration has a test, and what is changed for a run without
// its value stands where it is looked for.
func TestSettingsAreUpToDate(t *testing.T) {
	t.Parallel()
	const tree = "../../.."
	document, err := os.ReadFile(filepath.Join(tree, acceptance))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := settings(string(document)); err != nil {
		t.Error(err)
	}
	if err := (&bench{tree, t.TempDir()}).overlay(); err != nil {
		t.Error(err)
	}
}

// A key without a test is an error, and so is a test of something else.
func TestSettingsBite(t *testing.T) {
	t.Parallel()
	_, err := settings("| `worker.slots` | `worker.TestSlots`, `a/b.TestC/d` |\n| `worker.slits` | `worker.TestSlots` |\n")
	for text, want := range map[string]bool{
		"no test of worker.slots ": false, "no test of worker.node is named": true, "a row for worker.slits": true,
	} {
		if got := strings.Contains(fmt.Sprint(err), text); got != want {
			t.Errorf("the error says %q: %v, want %v:\n%v", text, got, want, err)
		}
	}
}
