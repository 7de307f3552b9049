package verbs

import (
	"strings"
	"testing"

	"github.com/tdf-go/tdf/task"
)

// Without a terminal the screen is printed once.
func TestTop(t *testing.T) {
	t.Parallel()
	b := played(t)
	w := b.worker("worker-A")
	b.must("queue", "add", "nightly", "threads=5", "paused=true")
	b.must("submit", "--program", "prog")
	w.claim()
	w.beat(task.WorkerReady, 1, 0, "")
	for _, args := range []string{"top", "top --once"} {
		out := b.must(fields(args)...)
		wantText(t, out, b.ns, "nightly", "paused", "worker-A", "node-1", "1/8", "6 prog", "timed_out", "one")
	}
	b.must("cancel", "6") // runs: its worker is told
	b.must("submit", "--program", "called-off")
	b.must("cancel", "7")
	out := b.must("top")
	wantText(t, out, "archived 5\n", "failures 2\n")
	if strings.Contains(out, "called-off") {
		t.Errorf("what was called off is among the failures:\n%s", out)
	}
	for args, say := range map[string]string{"--interval 1ms": "at least", "--interval soon": "--interval", "--interval inf": "--interval", "x": "unknown command"} {
		r := b.run(append([]string{"top"}, fields(args)...)...)
		if r.code != 2 || !strings.Contains(r.err, say) {
			t.Errorf("%s: %+v, want 2 and %q", args, r, say)
		}
	}
}
