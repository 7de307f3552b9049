package worker

import (
	"os"
	"strings"
	"testing"

	sm "github.com/tdf-go/tdf/statemachine"
)

// Each round has a name of its own; the worker leaves nothing at its end.
func TestSlotKeepsOneDirectory(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.script(t, "p", `echo "$TDF_WORKDIR $(stat -c '%a %i' "$TDF_WORKDIR") $(ls -A "$TDF_WORKDIR")"
[ $TDF_TASK_ID != 2 ] || touch "$TDF_WORKDIR/f"`)
	r := s.start(t)
	seen := map[string]bool{}
	for range 4 {
		task := s.await(t, s.open(t, p), sm.Executed)
		words := strings.Fields(task.Fields["0:output"])
		if len(words) != 3 || words[1] != "700" || seen[words[0]] {
			t.Fatalf("output %q, error %q, seen %v", task.Fields["0:output"], task.Fields["0:error"], seen)
		}
		seen[words[0]] = true
	}
	r.stop(t)
	if left, err := os.ReadDir(r.opts.TempDir); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}
