package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestSoundWorld(t *testing.T) {
	t.Parallel()
	_, s, _ := world(t)
	r, err := Verify(t.Context(), s)
	if err != nil || !r.OK() {
		t.Fatalf("%+v, %v, want no violation", r.Violations, err)
	}
	for state, want := range map[statemachine.State]int64{
		"open": 3, "running": 3, "succeeded": 2, "failed": 1, "timed_out": 1, "orphaned": 1, "expired": 1, "archived": 1,
	} {
		if r.States[state] != want {
			t.Errorf("%d %s, want %d", r.States[state], state, want)
		}
	}
	if r.TaskID != 13 || r.Checked != 13 {
		t.Errorf("checked %d of %d, want 13 of 13", r.Checked, r.TaskID)
	}
}

func TestEmptyNamespace(t *testing.T) {
	t.Parallel()
	r, err := Verify(t.Context(), worktest.Open(t, redistest.Namespace(t)))
	if err != nil || !r.OK() || r.Checked != 0 {
		t.Errorf("%+v, %v, want nothing", r, err)
	}
}

func fill(words []string, ns string, id int64) []string {
	out := make([]string, len(words))
	for i, w := range words {
		w = strings.ReplaceAll(w, "%k", fmt.Sprintf("%s:task:%d", ns, id))
		out[i] = strings.ReplaceAll(strings.ReplaceAll(w, "%i", fmt.Sprint(id)), "%n", ns)
	}
	return out
}

func TestSetAside(t *testing.T) {
	t.Parallel()
	ns, s, id := world(t)
	redistest.Shared(t).Do(t, "DEL", fmt.Sprintf("%s:task:%d", ns, id["ok"]))
	found, now, err := s.Inspect(t.Context(), []int64{id["ok"]})
	if err != nil {
		t.Fatal(err)
	}
	if done, err := s.DeadLetter(t.Context(), &found[0], now); !done || err != nil {
		t.Fatal(done, err)
	}
	r, err := Verify(t.Context(), s)
	if err != nil || len(r.Violations) != 1 || r.Violations[0].Kind != DeadLetter || r.Violations[0].ID != id["ok"] {
		t.Errorf("%+v, %v, want the task as a dead letter", r.Violations, err)
	}
}

// What ends a task before its limits, and what is counted beside them.
func TestSoundExceptions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		task  string
		words []string
	}{
		"a stop was asked for":  {"fail", []string{"max_fails", "4", "cancel_requested", "5"}},
		"a stop, and too slow":  {"slow", []string{"max_timeouts", "4", "cancel_requested", "5"}},
		"a fatal exit code":     {"fail", []string{"max_fails", "4", "0:exit_code", "7", "fatal_exit_codes", "7"}},
		"not a code to retry":   {"fail", []string{"max_fails", "4", "0:exit_code", "7", "retry_exit_codes", "75"}},
		"a permanent failure":   {"fail", []string{"max_fails", "4", "0:retry", "inf"}},
		"not charged":           {"again", []string{"fails", "0", "faults", "1", "max_fails", "0"}},
		"not charged too often": {"fail", []string{"fails", "0", "faults", "1", "max_faults", "0", "charge", "program"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, s, ids := world(t)
			words := append([]string{"HSET", "%k"}, c.words...)
			redistest.Shared(t).Do(t, fill(words, ns, ids[c.task])...)
			if r, err := verify(t, s); err != nil || !r.OK() {
				t.Errorf("%+v, %v, want no violation", r.Violations, err)
			}
		})
	}
}

// A task that is opened on hold, and called off without having been released, was
// never open.
func TestHeldFromTheStart(t *testing.T) {
	t.Parallel()
	s := worktest.Open(t, redistest.Namespace(t))
	spec := storetest.Define("program", "p", "source", "s", "max_losses", "0", "hold", "not yet")
	ids, err := s.Open(t.Context(), tasks.OpenRequest{Key: "k", Specs: []task.Definition{spec}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // blocked, then cancelled
		if r, err := Verify(t.Context(), s); err != nil || !r.OK() {
			t.Errorf("%+v, %v, want no violation", r.Violations, err)
		}
		task, err := s.Task(t.Context(), ids[0])
		if err != nil {
			t.Fatal(err)
		}
		if task.State != statemachine.Blocked {
			break
		}
		move, err := statemachine.Decide(&task.Task, statemachine.Occurrence{Event: statemachine.Cancel, Actor: statemachine.Manager}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := s.Apply(t.Context(), tasks.Commit{Move: move, Writer: "m"}); err != nil || out[0].Err != nil {
			t.Fatal(out, err)
		}
	}
}

// The original's manager leaves the record at the outcome: sound, and archived.
func TestForeignArchive(t *testing.T) {
	t.Parallel()
	ns, s, ids := world(t)
	srv, id := redistest.Shared(t), fmt.Sprint(ids["ok"])
	srv.Do(t, "ZREM", ns+":succeeded", id)
	srv.Do(t, "ZADD", ns+":archived", "1", id)
	srv.Do(t, "HSET", ns+":task:"+id, "0:archived", "1")
	r, err := Verify(t.Context(), s)
	if err != nil || !r.OK() || r.States["archived"] != 2 {
		t.Errorf("%+v, %v, want 2 archived tasks and no violation", r, err)
	}
}

// While tasks move, nothing is found about them.
func TestWhileTasksMove(t *testing.T) {
	t.Parallel()
	_, s, _ := world(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		for n := 0; ctx.Err() == nil; n++ {
			spec := storetest.Define("program", "p", "end_before", "9000000000", "timeout", "5")
			if _, err := s.Open(ctx, tasks.OpenRequest{Key: fmt.Sprint("k", n), Specs: slices.Repeat([]task.Definition{spec}, 20)}); err == nil {
				_, err = worktest.Round(ctx, s, worktest.Echo)
				if err != nil && ctx.Err() == nil {
					done <- err
					return
				}
			}
		}
		done <- nil
	}()
	for range 5 {
		r, err := Verify(t.Context(), s)
		if err != nil || !r.OK() {
			t.Errorf("%+v, %v, want no violation", r.Violations, err)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestRedisAway(t *testing.T) {
	t.Parallel()
	s, err := store.Dial(config.Redis{
		Host: "/nonexistent.sock", DialTimeout: time.Second, ReadTimeout: time.Second, WriteTimeout: time.Second,
	}, "n")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := Verify(t.Context(), s); !errors.Is(err, task.ErrUnreachable) {
		t.Errorf("%v, want ErrUnreachable", err)
	}
}
