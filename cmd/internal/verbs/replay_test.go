package verbs

import (
	"strings"
	"testing"
)

// replayed is a bench with a task that wrote "out" and exited with 0.
func replayed(t *testing.T) (*bench, *hand) {
	t.Helper()
	b := newBench(t)
	h := &hand{t: t, store: b.store}
	b.must("submit", "--program", "p", "--end-before", "inf", "--", "x")
	h.report(h.claim(), "output", "out\n", "error", "", "exit_code", "0")
	h.settle()
	return b, h
}

func TestReplay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		output, exit string
		code         int
		say          string
	}{
		{"out\n", "0", 0, "the same\n"}, {"other\n", "0", 1, "NOT THE SAME\n"}, {"out\n", "", 1, "not known to be the same\n"},
	} {
		b, h := replayed(t)
		run := b.start(t.Context(), "replay", "1")
		run.says(t, run.err, "opened task 2; waiting for it")
		record := []string{"output", c.output, "error", ""}
		if c.exit != "" {
			record = append(record, "exit_code", c.exit)
		}
		h.report(h.claim(), record...)
		h.settle()
		run.ends(t, c.code)
		wantText(t, run.out.String(), "task 2 is a replay of round 0 of task 1: "+c.say, "VERDICT", "output   ")
		object := b.value(c.code, "replay", "--compare", "2").(map[string]any)
		if object["id"] != 1.0 || object["replay"] != 2.0 || object["same"] != (c.code == 0) || object["ended"] != true {
			t.Errorf("JSON: %v", object)
		}
		wantText(t, b.must("show", "2"), "replay_of    task 1, round 0")
	}
}

func TestReplayWaits(t *testing.T) {
	t.Parallel()
	b, _ := replayed(t)
	object := b.value(4, "replay", "1", "--timeout", "0.05").(map[string]any)
	if object["timed_out"] != true || object["ended"] != false || object["output"] != "unknown" || object["replay"] != 2.0 {
		t.Errorf("JSON: %v", object)
	}
	wantText(t, b.must("replay", "1", "--no-wait", "--round", "0"), "opened task 3; compare it with: tdf-manager replay --compare 3\n")
	r := b.run("replay", "--compare", "3")
	if r.code != 1 || !strings.Contains(r.out, "has not ended yet") {
		t.Errorf("not ended: %+v", r)
	}
}

func TestReplayRefuses(t *testing.T) {
	t.Parallel()
	b, _ := replayed(t)
	b.must("submit", "--program", "p")
	for _, c := range []struct {
		args string
		code int
		say  string
	}{
		{"2", 1, "has not ended"}, {"1 --round 7", 2, "round 7"}, {"1 --round -2", 2, "negative"}, {"99", 2, "no such task"},
		{"--compare 1", 2, "not a replay"}, {"1 --compare --round 0", 2, "none of the others"}, {"1 --timeout soon", 2, "timeout"}, {"x", 2, "id of one task"},
	} {
		r := b.unchanged(append([]string{"replay"}, fields(c.args)...)...)
		if r.code != c.code || !strings.Contains(r.err, c.say) {
			t.Errorf("%s: %+v, want %d and %q", c.args, r, c.code, c.say)
		}
	}
}
