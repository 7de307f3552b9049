package main

import (
	"os"
	"path/filepath"
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
