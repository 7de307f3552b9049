package scenario

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Test plays every *.txt of dir, each as a subtest in a new world of its own,
// and compares. With rewrite the files are given the answers instead.
func Test(t *testing.T, dir string, rewrite bool, newWorld func(*testing.T) World) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories in %s: %v", dir, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			script, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Run(newWorld(t), script)
			if err != nil {
				t.Fatal(err)
			}
			if rewrite {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(script), string(got)); diff != "" {
				t.Errorf("the story goes otherwise (- file, + world):\n%s", diff)
			}
		})
	}
}
