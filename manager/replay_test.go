package manager

import (
	"errors"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/task"
)

// A replay runs the round's program once more, pinned, and is compared with it.
func TestReplay(t *testing.T) {
	t.Parallel()
	ns, srv := redistest.Namespace(t), redistest.Shared(t)
	m, s := newManager(t, ns), worktest.Open(t, ns)
	hash := hashOf("program")
	mustOpen(t, m, 1, task.Spec{Program: "p", Source: "rsync:run.sh", Input: "1 2", Retry: task.Retry{Limit: task.AtMost(1)}})
	if _, err := m.Replay(t.Context(), 1, LastRound, ChangeOptions{}); !errors.Is(err, task.ErrNotEnded) {
		t.Errorf("not ended: %v", err)
	}
	outputs := []worktest.Result{{Error: "flaky\n"}, {Output: "3\n"}, {Output: "4\n"}, {Error: "flaky\n"}}
	next := func(*tasks.Claimed) worktest.Result { r := outputs[0]; outputs = outputs[1:]; return r }
	worktest.Drain(t, s, next)
	for _, round := range []string{"0", "1"} {
		srv.Do(t, "HSET", ns+":task:1", round+":program_sha256", hash, round+":exit_code", "0")
	}
	if id, err := m.Replay(t.Context(), 1, 0, ChangeOptions{DryRun: true}); id != 0 || err != nil {
		t.Errorf("dry: %d, %v", id, err)
	}
	for i, c := range []struct{ round, of int }{{LastRound, 1}, {0, 0}} {
		id, err := m.Replay(t.Context(), 1, c.round, ChangeOptions{})
		if err != nil || id != int64(i)+2 {
			t.Fatalf("replay %d, %v", id, err)
		}
		task := mustTask(t, m, id)
		if task.ReplayOf != 1 || task.ReplayRound != c.of || task.Source != "rsync:run.sh#sha256="+hash || task.Input != "1 2" || task.Retry.Limit.N() != 0 {
			t.Errorf("replay %+v", task)
		}
		if before, err := m.CompareReplay(t.Context(), id); err != nil || before.Ended || before.Output != Unknown || before.Same() {
			t.Errorf("before it ran: %+v, %v", before, err)
		}
		worktest.Drain(t, s, next)
		srv.Do(t, "HSET", ns+":task:"+string(rune('0'+id)), "0:exit_code", []string{"0", "7"}[i])
	}
	differs, err := m.CompareReplay(t.Context(), 2)
	if err != nil || !differs.Ended || differs.ID != 1 || differs.Round != 1 || differs.Output != Differs || differs.Error != Same ||
		differs.Exit != Same || differs.Program != Unknown || differs.Same() {
		t.Errorf("%+v, %v", differs, err)
	}
	same, err := m.CompareReplay(t.Context(), 3)
	if err != nil || same.Round != 0 || same.Output != Same || same.Error != Same || same.Exit != Differs || same.Same() {
		t.Errorf("%+v, %v", same, err)
	}
	srv.Do(t, "HSET", ns+":task:3", "0:exit_code", "0", "0:program_sha256", hash)
	if same, err = m.CompareReplay(t.Context(), 3); err != nil || !same.Same() || same.Program != Same {
		t.Errorf("%+v, %v", same, err)
	}
}

// What cannot be replayed or compared is told.
func TestReplayRefuses(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m, s := newManager(t, ns), worktest.Open(t, ns)
	mustOpen(t, m, 1, spec())
	worktest.Drain(t, s, worktest.Echo)
	mustOpen(t, m, 1, spec())
	if _, err := m.Cancel(t.Context(), []int64{2}, ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id    int64
		round int
		want  error
	}{{1, 1, task.ErrNoRound}, {1, -2, task.ErrNoRound}, {2, 0, task.ErrNoRound}, {2, LastRound, task.ErrNoRound}, {3, 0, task.ErrNoTask}} {
		if id, err := m.Replay(t.Context(), c.id, c.round, ChangeOptions{}); id != 0 || !errors.Is(err, c.want) {
			t.Errorf("%+v: %d, %v", c, id, err)
		}
	}
	redistest.Shared(t).Do(t, "HSET", ns+":task:1", "needs", "7")
	if id, err := m.Replay(t.Context(), 1, 0, ChangeOptions{}); id != 0 || !errors.Is(err, task.ErrNeedsResults) {
		t.Errorf("of a task that had results as arguments: %d, %v", id, err)
	}
	for id, want := range map[int64]error{1: task.ErrNoReplay, 9: task.ErrNoTask} {
		if _, err := m.CompareReplay(t.Context(), id); !errors.Is(err, want) {
			t.Errorf("task %d: %v", id, err)
		}
	}
}

// Only a source that can be pinned is.
func TestPinned(t *testing.T) {
	t.Parallel()
	hash, other := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	for _, c := range [][3]string{
		{"https://h/p.zip", hash, "https://h/p.zip#sha256=" + hash},
		{"rsync:h:p.tar", hash, "rsync:h:p.tar#sha256=" + hash},
		{"https://h/p.zip#sha256=" + other, hash, "https://h/p.zip#sha256=" + other},
		{"https://h/p.zip", "", "https://h/p.zip"},
		{"https://h/p.zip", "no hash", "https://h/p.zip"},
		{"", hash, ""}, {"s", hash, "s"},
	} {
		if got := pinned(c[0], c[1]); got != c[2] {
			t.Errorf("%q with %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}
