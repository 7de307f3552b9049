package verbs

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
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
	h.now = c.Current.Running
	h.report(c, "output", "head\n[tdf: 987 bytes left out]\nthe tail\n", "output_bytes", "1000", "output_sha256", "abc123",
		"error", "bad\n", "signal", "killed\x1b", "user_time", "1.500000", "system_time", "0.250000", "max_memory", "1048576",
		"program_sha256", "def456", "progress", "0.4 halfway")
	h.settle()
	c = w.claim()
	h.report(c, "output", "fine\n", "error", "", "stderr", "chat\n", "exit_code", "0", "user_time", "0", "max_memory", "2048")
	h.settle()
	b.srv.Do(t, "HSET", b.ns+":task:1", "0:dropped", "1")

	out := b.must("show", "1")
	wantText(t, out, `round 0, worker w1, signal killed\x1b`, "node         node-1", "incarnation  1", "claim        "+c.Current.Claim[:3],
		"program      sha256 def456", "cpu time     1.5s user, 250ms system", "max memory   1048576 bytes", "progress     40% halfway",
		"output (1000 bytes, sha256 abc123)", "error (4 bytes, sha256 "+sum("bad\n")+")", "kept no longer (keep_rounds)",
		"round 1, worker w1, exit code 0", "output (5 bytes, sha256 "+sum("fine\n")+")", "stderr (5 bytes, sha256 "+sum("chat\n")+")")
	object := b.value(0, "show", "1").(map[string]any)
	for field, want := range map[string]any{
		"0:worker": "w1", "0:node": "node-1", "0:incarnation": 1.0, "0:signal": "killed\x1b", "0:user_time": 1.5, "0:system_time": 0.25,
		"0:max_memory": 1048576.0, "0:output_bytes": 1000.0, "0:output_sha256": "abc123", "0:program_sha256": "def456",
		"0:progress": "0.4 halfway", "0:dropped": "1", "1:output_bytes": 5.0, "1:output_sha256": sum("fine\n"),
		"1:error_bytes": 5.0, "1:error_sha256": sum("chat\n"), "1:exit_code": 0.0, "1:claim": c.Current.Claim,
	} {
		if got := object[field]; got != want {
			t.Errorf("%s = %v (%T), want %v", field, got, got, want)
		}
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
	if one := list[1].(map[string]any); one["progress"] == nil || list[0].(map[string]any)["progress"] != nil {
		t.Errorf("JSON: %v", list)
	}
}

func (h *hand) progress(c *store.Claimed, part float64, text string) {
	h.t.Helper()
	if err := h.store.Tell(h.t.Context(), "w", &c.Task, store.News{Progress: &store.Progress{Part: part, Text: text}}); err != nil {
		h.t.Fatal(err)
	}
}

func TestRunningText(t *testing.T) {
	t.Parallel()
	far := func(id int64, part float64, text string) manager.RunningTask {
		return manager.RunningTask{ID: id, Progress: manager.RoundProgress{Part: part, Text: text}}
	}
	for want, running := range map[string][]manager.RunningTask{
		"":                                  nil,
		"  task 7: 40% a\\x1b":              {far(7, 0.4, "a\x1b")},
		"  task 7: half  task 8: 100%  ...": {far(7, -1, "half"), far(8, 1, ""), far(9, 0, "")},
		"  task 7: 0% " + strings.Repeat("x", 27) + "...": {far(7, 0, strings.Repeat("x", 40))},
	} {
		if got := runningText(running); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	p := manager.Progress{Total: 2, Done: 1, States: map[statemachine.State]int{"running": 1}, Running: []manager.RunningTask{far(7, 0.5, "")}}
	if got, want := progressLine(p, 1, time.Second), "1/2  running 1  task 7: 50%  0.0 tasks/s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
