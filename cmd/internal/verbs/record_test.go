package verbs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

// show has the whole record of each round; sizes and hashes also where nothing
// was cut and the worker left them out.
func TestShowRecord(t *testing.T) {
	t.Parallel()
	b, h := followed(t)
	w := b.worker("w1")
	c := w.claim()
	h.now = c.Task.Current.Running
	h.report(c, "output", "head\n[tdf: 987 bytes left out]\nthe tail\n", "output_bytes", "1000", "output_sha256", "abc123",
		"error", "bad\n", "signal", "killed\x1b", "user_time", "1.500000", "system_time", "0.250000", "max_memory", "1048576",
		"program_sha256", "def456", "progress", "0.4 halfway")
	h.settle()
	c = w.claim()
	h.report(c, "output", "fine\n", "error", "", "stderr", "chat\n", "exit_code", "0", "user_time", "0", "max_memory", "2048")
	h.settle()
	b.srv.Do(t, "HSET", b.ns+":task:1", "0:dropped", "1")

	out := b.must("show", "1")
	wantText(t, out, `round 0, worker w1, signal killed\x1b`, "node         node-1", "incarnation  1", "claim        "+c.Task.Current.Claim[:3],
		"program      sha256 def456", "cpu time     1.5s user, 250ms system", "max memory   1048576 bytes", "progress     40% halfway",
		"output (1000 bytes, of which a part is kept, sha256 abc123)", "error (4 bytes, sha256 "+sum("bad\n")+")", "kept no longer (keep_rounds)",
		"round 1, worker w1, exit code 0", "output (5 bytes, sha256 "+sum("fine\n")+")", "stderr (5 bytes, sha256 "+sum("chat\n")+")")
	object := b.value(0, "show", "1")
	for n, want := range []map[string]any{
		{
			"worker": "w1", "node": "node-1", "incarnation": 1.0, "signal": "killed\x1b", "user_time": 1.5, "system_time": 0.25,
			"max_memory": 1048576.0, "output_bytes": 1000.0, "output_sha256": "abc123", "program_sha256": "def456", "dropped": true,
		},
		{
			"output_bytes": 5.0, "output_sha256": sum("fine\n"), "error_bytes": 5.0, "error_sha256": sum("chat\n"), "exit_code": 0.0,
			"claim": c.Task.Current.Claim,
		},
	} {
		round := roundOf(t, object, n)
		for field, want := range want {
			if got := round[field]; got != want {
				t.Errorf("%d:%s = %v (%T), want %v", n, field, got, got, want)
			}
		}
	}
	if far := roundOf(t, object, 0)["progress"]; fmt.Sprint(far) != "map[part:0.4 text:halfway]" {
		t.Errorf("progress %v", far)
	}
	r := b.run("logs", "1", "--round", "0")
	wantText(t, r.err, "is kept no longer (keep_rounds)")
	if out := b.must("logs", "1", "--stderr"); out != "chat\n" {
		t.Errorf("stderr of a success: %q", out)
	}
}

// ls has a column for progress only where somebody makes any.
func TestLsProgress(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := &hand{t: t, store: b.store}
	b.must("submit", "--program", "p")
	b.must("submit", "--program", "p")
	c := h.claim()
	if out := b.must("ls"); strings.Contains(out, "PROGRESS") {
		t.Errorf("nobody makes progress:\n%s", out)
	}
	h.progress(c, 0.29, "reading "+strings.Repeat("é", 50)+"\x1b")
	out := b.must("ls")
	wantText(t, out, "PROGRESS", "29% reading "+strings.Repeat("é", 28)+"...")
	list := b.value(0, "ls").([]any)
	if far, _ := roundOf(t, list[1], 0)["progress"].(map[string]any); far["part"] != 0.29 || len(list[0].(map[string]any)["rounds"].([]any)) != 0 {
		t.Errorf("JSON: %v", list)
	}
}

func (h *hand) progress(c *tasks.Claimed, part float64, text string) {
	h.t.Helper()
	if err := h.store.Tell(h.t.Context(), "w", &c.Task, tasks.News{Progress: &tasks.Progress{Part: part, Text: text}}); err != nil {
		h.t.Fatal(err)
	}
}

func TestRunningText(t *testing.T) {
	t.Parallel()
	far := func(id int64, said string) manager.RunningTask {
		return manager.RunningTask{ID: id, Progress: task.ParseProgress(said)}
	}
	for want, running := range map[string][]manager.RunningTask{
		"":                                  nil,
		"  task 7: 40% a\\x1b":              {far(7, "0.4 a\x1b")},
		"  task 7: half  task 8: 100%  ...": {far(7, "half"), far(8, "1"), far(9, "0")},
		"  task 7: 0% " + strings.Repeat("x", 27) + "...": {far(7, "0 "+strings.Repeat("x", 40))},
	} {
		if got := runningText(running); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	p := manager.Progress{Total: 2, Done: 1, States: map[statemachine.State]int{"running": 1}, Running: []manager.RunningTask{far(7, "0.5")}}
	if got, want := progressLine(&p, 1, time.Second, false), "1/2  running 1  task 7: 50%  0.0 tasks/s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
