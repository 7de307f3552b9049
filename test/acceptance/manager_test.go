package acceptance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/manager"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// fragileManager is the first argument that makes the test binary a project's
// manager; see runFragile.
const fragileManager = "fragile-manager"

// runFragile handles succeeded tasks by a line in a ledger, and dies before the
// first of them is archived.
func runFragile(cfg, ledger string) error {
	ctx := context.Background()
	_, err := os.Stat(ledger)
	first, o := os.IsNotExist(err), manager.Options{}
	if first { // the second one is to have the task soon
		o.HandlingLease = time.Second
	}
	site, err := connect(ctx, cfg)
	if err != nil {
		return err
	}
	m := manager.New(site, "fragile", o)
	return m.Run(ctx, manager.Handlers{
		Succeeded: func(_ context.Context, t *task.Task) error {
			line := fmt.Appendf(nil, "handled %d\n", t.ID)
			f, err := os.OpenFile(ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return err
			}
			_, err = f.Write(line)
			if err = errors.Join(err, f.Close()); err != nil || !first {
				return err
			}
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		},
		Stop: func(ctx context.Context, _ int) bool {
			counts, err := m.Count(ctx)
			return err == nil && counts.Unarchived() == 0
		},
	})
}

// A21: a manager killed in its handler has not archived the task; started
// again, it is given the task once more.
func TestManagerKilledInHandler(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ledger := w.dir + "/ledger"
	w.server(t)
	w.worker(t, "w")
	id := w.open(t, w.script(t, "p", "echo result"))[0]
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := run(t, w.dir, self, fragileManager, w.cfg, ledger); code != -1 {
		t.Fatalf("the manager ended with %d, want it killed:\n%s", code, stderr)
	}
	checkFields(t, w.await(t, id, sm.Succeeded), map[string]string{"0:archived": "-", "0:output": "result\n"})
	if _, stderr, code := run(t, w.dir, self, fragileManager, w.cfg, ledger); code != 0 {
		t.Errorf("the second manager ended with %d:\n%s", code, stderr)
	}
	w.archived(t, id, sm.Succeeded)
	if got, want := content(t, ledger), "handled 1\nhandled 1"; got != want {
		t.Errorf("the ledger holds %q, want %q", got, want)
	}
	if n := strings.Count(w.Task(t, id).Fields["log"], "succeeded -> archived"); n != 1 {
		t.Errorf("archived %d times", n)
	}
}

// A45: one namespace is flushed, with all its programs running; the other one
// and foreign keys stay as they are.
func TestFlushOfOneNamespace(t *testing.T) {
	t.Parallel()
	a, b := newWorld(t), newWorld(t)
	for _, w := range []*world{a, b} {
		w.all(t)
		ids := w.open(t, w.script(t, "p", "true"), w.script(t, "q", "false"))
		w.archived(t, ids[0], sm.Succeeded)
		w.archived(t, ids[1], sm.Failed)
	}
	foreign := []string{a.Namespace, a.Namespace + "x", "x" + a.Namespace + ":task:1"}
	for _, key := range foreign {
		a.Raw.Set(t.Context(), key, "kept", 0)
	}
	before := b.hash(t, 1)
	out, stderr, code := run(t, a.dir, program(t, "tdf-manager"), "--config", a.cfg, "flush", "--yes")
	if code != 0 || !strings.Contains(out, a.Namespace) {
		t.Fatalf("flush ended with %d: %s%s", code, out, stderr)
	}
	if _, err := a.Store.Task(t.Context(), 1); !errors.Is(err, task.ErrNoTask) {
		t.Errorf("task 1 of the flushed namespace: %v", err)
	}
	for _, key := range foreign {
		if v := a.Raw.Get(t.Context(), key).Val(); v != "kept" {
			t.Errorf("foreign key %q holds %q", key, v)
		}
		a.Raw.Del(t.Context(), key)
	}
	if after := b.hash(t, 1); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the other namespace has changed:\n%v\n%v", before, after)
	}
	b.sound(t)
	again := a.open(t, a.script(t, "r", "true"))
	wait.Eventually(t, patience, func() bool { return a.state(t, again[0]) == sm.Archived }, "the flushed namespace does not work")
	if again[0] != 1 {
		t.Errorf("the first task after the flush has id %d", again[0])
	}
}
