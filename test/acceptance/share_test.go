package acceptance

import (
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A36: a new program comes to all four slots of a worker, or to four workers in
// one working directory, at once: it is fetched once, and all rounds succeed.
func TestWorkersShareAFetch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ workers, slots int }{"slots": {1, 4}, "workers": {4, 1}, "both": {4, 4}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "slots="+strconv.Itoa(c.slots))
			run := entry{name: "run.sh", body: "#!/bin/sh\necho > \"$1.$TDF_TASK_ID\"; until [ -e \"$1.go\" ]; do sleep 0.02; done\n", mode: 0o755}
			s := newShelf(t, w, map[string][]byte{"x.tar": tarOf(t, run)})
			w.server(t)
			for i := range c.workers {
				name := "w" + strconv.Itoa(i)
				w.launch(t, "common", "tdf-worker", w.workerArgs(name)...).Says(t, "no open task to claim")
			}
			spec := task.Spec{Program: "p", Source: s.url + "/x.tar", Input: filepath.Join(w.own(t, "signs"), "sign")}
			spec.StartAfter = at(w.redisNow(t).Add(sm.Second / 2))
			ids := w.open(t, slices.Repeat([]task.Spec{spec}, c.workers*c.slots)...)
			for _, id := range ids { // all of them run at the same time
				made(t, spec.Input+"."+id2text(id))
			}
			w.file(t, filepath.Join("signs", "sign.go"), "", 0o644)
			busy := map[string]bool{}
			for _, id := range ids {
				busy[w.await(t, id, sm.Succeeded).Fields["0:worker"]] = true
			}
			if n := s.count("x.tar"); n != 1 || len(busy) != c.workers {
				t.Errorf("%d fetches by %d workers, want one by %d", n, len(busy), c.workers)
			}
		})
	}
}
