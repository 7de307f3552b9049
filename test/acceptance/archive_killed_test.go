package acceptance

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/ops/archive"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// cellarOf is a world whose servers let archived tasks go into a directory, but for the newest of each outcome.
type cellarOf struct {
	*world

	archive string
	servers []*daemon
	started int
}

func (c *cellarOf) serve(t *testing.T) {
	t.Helper()
	c.started++
	name := fmt.Sprint("server-", c.started)
	c.servers = append(c.servers, c.launch(t, name, "tdf-server", name, c.cfg,
		"--set", "server.archive_retention=1", "--set", "server.archive_dir="+c.archive))
}

// purged is how many tasks have left Redis.
func (c *cellarOf) purged(t *testing.T) int64 {
	t.Helper()
	now, err := c.Store.Census(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return now.Purged
}

// output is what task id writes: not the same as any other.
func output(id int64) string { return fmt.Sprintf("output of task %d\xff\n", id) }

// What leaves Redis is in the archive: while servers that share a directory are killed at random moments, no task is in neither, and
// each that has gone is there with what it wrote.
func TestLongServersKilledWhileTheyArchive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := &cellarOf{world: w, archive: filepath.Join(w.dir, "archive")}
	w.archiver(t)
	c.serve(t)
	c.serve(t)
	const batch, rounds = 120, 12
	spec := task.Spec{Program: "p", Source: "rsync:run.sh", EndIn: -1}
	for round := range int64(rounds) {
		w.open(t, times(batch, spec)...)
		for done := 0; done < batch; {
			tasks := w.Claim(t, "w", batch-done)
			for i := range tasks {
				w.Report(t, &tasks[i], output(tasks[i].Task.ID), "")
			}
			done += len(tasks)
		}
		some := round*batch + rand.Int64N(batch/2)
		wait.Eventually(t, patience, func() bool { return c.purged(t) >= some }, "tasks do not leave Redis: %s have", late(func() string {
			return fmt.Sprint(c.purged(t))
		}))
		victim := rand.IntN(2)
		w.kill(t, c.servers[victim])
		c.servers = append(c.servers[:victim], c.servers[victim+1:]...)
		w.Raw.HDel(t.Context(), w.Key("meta"), "purging") // the other need not wait for the end of the turn
		c.serve(t)
	}
	wait.Eventually(t, patience, func() bool { return c.purged(t) == batch*rounds-1 }, "tasks do not leave Redis")
	c.complete(t, batch*rounds)
	w.sound(t)
	out, problems, code := run(t, w.dir, program(t, "tdf-manager"), "--config", w.cfg, "verify", "--archive", c.archive)
	if want := fmt.Sprintf("%d purged = %[1]d in it\n", batch*rounds-1); code != 0 || !strings.Contains(out, want) {
		t.Errorf("verify ended with %d: %s%s, want %q", code, out, problems, want)
	}
}

// complete makes sure that all tasks are somewhere, and those that have left Redis whole in the archive.
func (c *cellarOf) complete(t *testing.T, last int64) {
	t.Helper()
	found := map[int64]string{}
	r := archive.Reader{Dirs: []string{c.archive}, Namespace: c.Namespace, Verify: true, Damaged: func(e *archive.DamageError) { t.Error(e) }}
	err := r.Latest(t.Context(), func(e *archive.Entry) error {
		record, err := e.Record()
		found[e.ID] = record.Fields["0:output"]
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for id := int64(1); id <= last; id++ {
		task, err := c.Store.Task(t.Context(), id)
		switch {
		case err == nil && task.State == sm.Archived:
		case found[id] != output(id):
			t.Errorf("task %d has gone (%v), and the archive has of it %q", id, err, found[id])
		}
	}
}
