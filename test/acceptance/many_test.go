package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

const (
	manyWorkers = 20
	manyTasks   = 500
)

// A28: each task is run once, by the worker that stands in its record; the
// programs count themselves, in a file TDF knows nothing of.
func TestManyWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "program_dir=../programs")
	w.own(t, "programs")
	ledger := filepath.Join(w.dir, "ledger")
	spec := w.script(t, "p", `echo "$TDF_TASK_ID/$TDF_ROUND by $TDF_WORKER" >> "$1"`)
	spec.Input = ledger
	specs := make([]task.Spec, manyTasks)
	for i := range specs {
		specs[i] = spec
	}
	w.server(t)
	w.archiver(t)
	for i := range manyWorkers {
		w.worker(t, fmt.Sprintf("w%d", i))
	}
	ids := w.open(t, specs...)
	wait.Eventually(t, 2*time.Minute, func() bool {
		counts, err := w.Store.Count(t.Context())
		return err == nil && counts[sm.Archived] == manyTasks
	}, "not all tasks are archived")
	text, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	runs := map[string]int{}
	for line := range strings.Lines(string(text)) {
		runs[strings.TrimSpace(line)]++
	}
	if len(runs) != manyTasks || strings.Count(string(text), "\n") != manyTasks {
		t.Errorf("%d different lines of %d, want %d", len(runs), strings.Count(string(text), "\n"), manyTasks)
	}
	busy := map[string]bool{}
	for _, id := range ids {
		worker := w.hash(t, id)["0:worker"]
		busy[worker] = true
		if n := runs[fmt.Sprintf("%d/0 by %s", id, worker)]; n != 1 {
			t.Errorf("task %d was run %d times by %s, who is in its record", id, n, worker)
		}
	}
	if len(busy) < 2 {
		t.Errorf("only %v worked", busy)
	}
	w.sound(t)
}
