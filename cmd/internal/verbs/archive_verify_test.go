package verbs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// verify compares what has left Redis with the archive, and says which tasks are missing or had left before.
func TestVerifyArchive(t *testing.T) {
	t.Parallel()
	b := cellar(t)
	dir := filepath.Join(t.TempDir(), "archive")
	b.retire("")
	if r := b.run("verify", "--archive", dir); r.code != 2 || !strings.Contains(r.err, "--archive") {
		t.Errorf("there is no directory: %+v", r)
	}
	b.must("submit", "--program", "p", "--source", "rsync:run.sh", "--hold")
	b.must("cancel", "9")
	b.archiveAll()
	b.retire(dir)
	wantText(t, b.must("verify", "--archive", dir), "note: archive: 8 tasks had left Redis before the archive in "+dir+" was begun: 1-8",
		"archive: 1 tasks; 9 purged = 1 in it + 8 gone before it was begun", "no violations")
	object := b.value(0, "verify", "--archive", dir).(map[string]any)["archive"].(map[string]any)
	if object["purged"] != 9.0 || object["in_archive"] != 1.0 || object["missing"] != 0.0 {
		t.Errorf("%v", object)
	}
	if _, there := b.value(0, "verify").(map[string]any)["archive"]; there {
		t.Error("verify without an archive speaks of one")
	}
	segments, err := filepath.Glob(filepath.Join(dir, "*.zst"))
	if err != nil || len(segments) != 1 {
		t.Fatal(segments, err)
	}
	if err := os.Remove(segments[0]); err != nil {
		t.Fatal(err)
	}
	r := b.run("verify", "--archive", dir)
	wantText(t, r.out, segments[0]+" is missing", "1 tasks have left Redis and are not in "+dir+": 9;", "1 MISSING", "2 VIOLATIONS")
	if r.code != 1 {
		t.Errorf("ended with %d, want 1", r.code)
	}
}
