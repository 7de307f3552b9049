package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tdf-go/tdf/bench/frametest"
	"github.com/tdf-go/tdf/bench/redisd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startLife opens n tasks of a layout in batches of 7 on a server of its own.
func startLife(t *testing.T, lay layout, n int) *life {
	t.Helper()
	srv, err := redisd.Start(t.Context(), limitSets()[0].args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	l, err := newLife(srv, benchCase{lay, limitSets()[0], shapes()[0], 7})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.open(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLongWholeProgram(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-tasks", "120", "-rounds", "1", "-batch", "20"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	cases := slices.Concat(layoutCases(20), limitCases(20))
	if got, want := strings.Count(out.String(), "\n| L"), len(cases)+len(limitCases(20)); got != want {
		t.Errorf("%d rows of figures, want %d:\n%s", got, want, out.String())
	}
	if strings.Contains(out.String(), "NaN") || strings.Contains(out.String(), "Inf") {
		t.Errorf("a figure is not a number:\n%s", out.String())
	}
}

func TestEveryTaskEndsArchived(t *testing.T) {
	t.Parallel()
	for _, lay := range layouts() {
		t.Run(lay.name, func(t *testing.T) {
			t.Parallel()
			const n = 40
			l := startLife(t, lay, n)
			tasks := takeToEnd(t, l, n)
			for _, task := range tasks {
				checkArchived(t, l, task.id)
			}
			checkOnlyArchivedLeft(t, l, n)
		})
	}
}

func takeToEnd(t *testing.T, l *life, n int) []ticket {
	t.Helper()
	tasks, err := l.claim(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []func(context.Context, []ticket) error{l.renew, l.report, l.settle, l.archive} {
		if err := step(t.Context(), tasks); err != nil {
			t.Fatal(err)
		}
	}
	return tasks
}

func checkArchived(t *testing.T, l *life, id string) {
	t.Helper()
	h, err := l.srv.DB.HGetAll(t.Context(), keyTask(id)).Result()
	if err != nil {
		t.Fatal(err)
	}
	if h["state"] != "archived" || h["outcome"] != "succeeded" || h["rev"] != "5" || h["0:output"] != l.output {
		t.Errorf("task %s is not as an archived one should be: %v", id, h)
	}
	lines := strings.Split(h["log"], "\n")
	if l.layout.log == "key" {
		lines = l.srv.DB.LRange(t.Context(), keyTask(id)+":log", 0, -1).Val()
	}
	want := []string{"open -> running", "running -> executed", "executed -> succeeded", "succeeded -> archived"}
	if len(lines) != len(want) {
		t.Fatalf("task %s: %d log lines, want %d: %q", id, len(lines), len(want), lines)
	}
	for i, line := range lines {
		if !strings.HasSuffix(line, fmt.Sprintf(" moving task %s: %s", id, want[i])) {
			t.Errorf("task %s, log line %d: %q", id, i, line)
		}
	}
}

func checkOnlyArchivedLeft(t *testing.T, l *life, n int) {
	t.Helper()
	for _, key := range l.srv.DB.Keys(t.Context(), "*").Val() {
		switch {
		case strings.HasPrefix(key, keyTaskPrefix()), key == keyTaskID():
		case key == keyState("archived"):
			if got := l.srv.DB.ZCard(t.Context(), key).Val(); got != int64(n) {
				t.Errorf("%s holds %d ids, want %d", key, got, n)
			}
		default:
			t.Errorf("key %s should be gone", key)
		}
	}
}

// TestOrderOnTies shows why a bucket does not hold plain ids: without buckets 10 comes before 2.
func TestOrderOnTies(t *testing.T) {
	t.Parallel()
	for _, lay := range layouts() {
		t.Run(lay.name, func(t *testing.T) {
			t.Parallel()
			l := startLife(t, lay, 120)
			tasks, err := l.claim(t.Context(), 80) // no more than the default bucket holds
			if err != nil {
				t.Fatal(err)
			}
			var ids []int
			for _, task := range tasks {
				id, err := strconv.Atoi(task.id)
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, id)
			}
			if got, want := slices.IsSorted(ids), lay.ready == "bucket"; got != want {
				t.Errorf("ids in numeric order: %v, want %v: %v", got, want, ids)
			}
		})
	}
}

func TestLateCallsAreRefused(t *testing.T) {
	t.Parallel()
	for _, lay := range layouts() {
		t.Run(lay.name, func(t *testing.T) {
			t.Parallel()
			l := startLife(t, lay, 10)
			tasks, err := l.claim(t.Context(), 10)
			if err != nil {
				t.Fatal(err)
			}
			for name, late := range map[string]error{
				"wrong round":          l.report(t.Context(), []ticket{{tasks[0].id, "1"}}),
				"settle while running": l.settle(t.Context(), tasks[:1]),
				"archive too early":    l.archive(t.Context(), tasks[:1]),
			} {
				if late == nil {
					t.Errorf("%s: accepted", name)
				}
			}
			claim := tasks[1].round + ":claim"
			if err := l.srv.DB.HSet(t.Context(), keyTask(tasks[1].id), claim, "another").Err(); err != nil {
				t.Fatal(err)
			}
			if l.report(t.Context(), tasks[1:2]) == nil || l.renew(t.Context(), tasks[1:2]) == nil {
				t.Error("a report or a heartbeat for another's claim was accepted")
			}
			if err := l.srv.DB.HSet(t.Context(), keyTask(tasks[1].id), claim, claimID).Err(); err != nil {
				t.Fatal(err)
			}
			if err := l.report(t.Context(), tasks); err != nil {
				t.Fatal(err)
			}
			if l.report(t.Context(), tasks) == nil {
				t.Error("a second report was accepted")
			}
		})
	}
}

func TestDeadlineIndices(t *testing.T) {
	t.Parallel()
	for _, lay := range layouts() {
		t.Run(lay.name, func(t *testing.T) {
			t.Parallel()
			const n = 10
			l := startLife(t, lay, n)
			if _, err := l.claim(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			want := map[string][]int64{"none": {0, 0, 0}, "one": {n, 0, 0}, "three": {n, n, n}}[lay.due]
			for i, key := range keysDue() {
				if got := l.srv.DB.ZCard(t.Context(), key).Val(); got != want[i] {
					t.Errorf("%s holds %d running tasks, want %d", key, got, want[i])
				}
			}
		})
	}
}

func TestMedians(t *testing.T) {
	t.Parallel()
	if got := middle([]float64{9, 1, 5}); got != 5 {
		t.Errorf("middle of 1, 5, 9: %v", got)
	}
	if got := middle([]float64{9, 1, 5, 6}); got != 5.5 {
		t.Errorf("middle of 1, 5, 6, 9: %v", got)
	}
	life := func(open float64) result { return result{cpu: map[string]float64{"open": open, "renew": 100}} }
	if got := ratio([]result{life(2), life(30)}, []result{life(1), life(10)}); got != 2.5 {
		t.Errorf("median of 2/1 and 30/10: %v", got)
	}
}

func TestBadFlags(t *testing.T) {
	t.Parallel()
	frametest.Refuses(t, run, map[string]string{
		"-tasks=0": "-tasks=0: must be at least 1", "-rounds=-1": "-rounds=-1", "-batch=501": "-batch=501: must be at most 500", "-batch=x": "flag -batch",
	})
}
