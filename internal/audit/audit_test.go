package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/config"
	"github.com/tdf-go/tdf/internal/redistest"
	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/worktest"
	"github.com/tdf-go/tdf/statemachine"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// world is a namespace with a task in each of many states; the names are inputs.
func world(t *testing.T) (ns string, s *store.Store, id map[string]int64) {
	t.Helper()
	ns = redistest.Namespace(t)
	s = worktest.Open(t, ns)
	id = map[string]int64{}
	open := func(maxFails string, names ...string) {
		for _, name := range names {
			spec := store.Spec{
				Program: "p", Source: "s", Input: name, StartAfter: "0", EndBefore: "inf", Timeout: "inf",
				MaxFails: maxFails, MaxTimeouts: "0", MaxLosses: "0",
			}
			switch name {
			case "late":
				spec.EndBefore = "5"
			case "deadline", "running":
				spec.EndBefore = "9000000000"
			case "open":
				spec.StartAfter = "8000000000"
			}
			if name == "deadline" {
				spec.StartAfter = "8000000000"
			}
			ids, err := s.Open(t.Context(), store.OpenRequest{Key: ns + name, Specs: []store.Spec{spec}})
			if err != nil {
				t.Fatal(err)
			}
			id[name] = ids[0]
		}
	}
	open("0", "ok", "fail", "slow", "lost", "late", "archived", "open", "deadline")
	open("1", "again")
	worktest.Drain(t, s, play)
	archive(t, s, id["archived"])
	open("0", "running")
	if _, err := s.Claim(t.Context(), store.ClaimRequest{
		Worker: "w", Request: "r", Turns: route.Free(store.Bucket{}), Max: 1, Node: "n", MaxThreads: route.NoLimit,
	}); err != nil {
		t.Fatal(err)
	}
	return ns, s, id
}

func play(c *store.Claimed) worktest.Result {
	switch c.Input {
	case "fail":
		return worktest.Fail(c)
	case "again":
		if c.Round == 0 {
			return worktest.Fail(c)
		}
	}
	return worktest.Result{Output: "x", Overdue: c.Input == "slow", Lost: c.Input == "lost"}
}

func archive(t *testing.T, s *store.Store, id int64) {
	t.Helper()
	task, err := s.Task(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	move, err := statemachine.Decide(&task.Task,
		statemachine.Occurrence{Event: statemachine.Archive, Actor: statemachine.Manager}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := s.Apply(t.Context(), store.Order{Move: move, Writer: "m"}); err != nil || out[0].Err != nil {
		t.Fatal(out, err)
	}
}

func TestSoundWorld(t *testing.T) {
	t.Parallel()
	_, s, _ := world(t)
	r, err := Verify(t.Context(), s)
	if err != nil || !r.OK() {
		t.Fatalf("%+v, %v, want no violation", r.Violations, err)
	}
	for state, want := range map[statemachine.State]int64{
		"open": 2, "running": 1, "succeeded": 2, "failed": 1, "timed_out": 1, "orphaned": 1, "expired": 1, "archived": 1,
	} {
		if r.States[state] != want {
			t.Errorf("%d %s, want %d", r.States[state], state, want)
		}
	}
	if r.TaskID != 10 || r.Checked != 10 {
		t.Errorf("checked %d of %d, want 10 of 10", r.Checked, r.TaskID)
	}
}

func TestEmptyNamespace(t *testing.T) {
	t.Parallel()
	r, err := Verify(t.Context(), worktest.Open(t, redistest.Namespace(t)))
	if err != nil || !r.OK() || r.Checked != 0 {
		t.Errorf("%+v, %v, want nothing", r, err)
	}
}

// Each planted damage is found, under its kind, for its task and for no other.
func TestPlantedDamage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, task string
		kind       Kind
		commands   [][]string // %k is the task's key, %i its id, %n the namespace
	}{
		{"no trace", "ok", Lost, [][]string{{"DEL", "%k"}, {"ZREM", "%n:succeeded", "%i"}}},
		{"hash deleted", "ok", Damaged, [][]string{{"DEL", "%k"}}},
		{"hash of another type", "open", Damaged, [][]string{{"DEL", "%k"}, {"SET", "%k", "x"}}},
		{"half-written hash", "ok", Damaged, [][]string{{"HDEL", "%k", "start_after", "end_before"}}},
		{"round is no number", "fail", Damaged, [][]string{{"HSET", "%k", "round", "many"}}},
		{"unknown state", "ok", Damaged, [][]string{{"HSET", "%k", "state", "lost"}}},
		{"in no set", "fail", Sets, [][]string{{"ZREM", "%n:failed", "%i"}}},
		{"in two sets", "ok", Sets, [][]string{{"ZADD", "%n:open", "0", "%i"}}},
		{"in the wrong set", "running", Sets, [][]string{{"ZREM", "%n:running", "%i"}, {"ZADD", "%n:executed", "0", "%i"}}},
		{"archived from nowhere", "running", Sets, [][]string{{"ZREM", "%n:running", "%i"}, {"ZADD", "%n:archived", "0", "%i"}}},
		{"a fail too many", "open", Counters, [][]string{{"HSET", "%k", "fails", "1", "max_fails", "1"}}},
		{"a fail too few", "again", Counters, [][]string{{"HSET", "%k", "fails", "0"}}},
		{"archived without outcome", "archived", Counters, [][]string{{"HDEL", "%k", "outcome"}}},
		{"a fault too many", "open", Counters, [][]string{{"HSET", "%k", "faults", "1"}}},
		{"failed too early with a code to retry", "fail", Limits,
			[][]string{{"HSET", "%k", "max_fails", "4", "0:exit_code", "7", "fatal_exit_codes", "1", "retry_exit_codes", "7,9"}}},
		{"timed out too early, whatever the exit code", "slow", Limits,
			[][]string{{"HSET", "%k", "max_timeouts", "4", "0:exit_code", "7", "fatal_exit_codes", "7"}}},
		{"an orphan although a stop was asked for", "lost", Limits, [][]string{{"HSET", "%k", "max_losses", "4", "cancel_requested", "5"}}},
		{"failed too early", "fail", Limits, [][]string{{"HSET", "%k", "max_fails", "4"}}},
		{"opened too often", "again", Limits, [][]string{{"HSET", "%k", "max_fails", "0"}}},
		{"no stamp of the state", "ok", Stamps, [][]string{{"HDEL", "%k", "0:succeeded"}}},
		{"no claim", "running", Stamps, [][]string{{"HDEL", "%k", "0:worker"}}},
		{"no claim of a round before", "again", Stamps, [][]string{{"HDEL", "%k", "0:running"}}},
		{"no report", "archived", Stamps, [][]string{{"HDEL", "%k", "0:executed"}}},
		{"not in its bucket", "open", Index, [][]string{{"DEL", "%n:ready:default:::0"}, {"ZADD", "%n:ready:default:::0", "8000000000", "a8"}}},
		{"not in the index of deadlines", "deadline", Index, [][]string{{"ZREM", "%n:due", "%i"}}},
		{"running without a deadline", "running", Index, [][]string{{"ZREM", "%n:due", "%i"}}},
		{"not counted in its queue", "running", Index, [][]string{{"SREM", "%n:busy:queue:default", "%i"}}},
		{"not counted on its node", "running", Index, [][]string{{"SREM", "%n:busy:node:n", "%i"}}},
		{"counted and does not run", "ok", Index, [][]string{{"SADD", "%n:busy:queue:default", "%i"}}},
		{"has resources and does not run", "ok", Index, [][]string{{"SADD", "%n:nodes", "n"}, {"HSET", "%n:used:n", "%i", "gpu:1[0]"}}},
		{"faults beyond the maximum", "fail", Limits, [][]string{{"HSET", "%k", "fails", "0", "max_faults", "0", "faults", "2", "round", "1"},
			{"HSET", "%k", "1:open", "1", "1:running", "1", "1:worker", "w", "1:executed", "1", "1:failed", "1"}}},
		{"foreign member", "", Unknown, [][]string{{"ZADD", "%n:open", "0", "999"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ns, s, ids := world(t)
			id, ok := ids[c.task]
			if !ok {
				id = 999
			}
			for _, words := range c.commands {
				redistest.Shared(t).Do(t, fill(words, ns, id)...)
			}
			r, err := Verify(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Violations) != 1 || r.Violations[0].ID != id || r.Violations[0].Kind != c.kind || r.Violations[0].Text == "" {
				t.Errorf("found %+v, want one of kind %s for task %d", r.Violations, c.kind, id)
			}
		})
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
	if done, err := s.SetAside(t.Context(), &found[0], now); !done || err != nil {
		t.Fatal(done, err)
	}
	r, err := Verify(t.Context(), s)
	if err != nil || len(r.Violations) != 1 || r.Violations[0].Kind != SetAside || r.Violations[0].ID != id["ok"] {
		t.Errorf("%+v, %v, want the task set aside", r.Violations, err)
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
		"not charged":           {"again", []string{"fails", "0", "faults", "1", "max_fails", "0"}},
		"not charged too often": {"fail", []string{"fails", "0", "faults", "1", "max_faults", "0", "charge", "program"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, s, ids := world(t)
			words := append([]string{"HSET", "%k"}, c.words...)
			redistest.Shared(t).Do(t, fill(words, ns, ids[c.task])...)
			if r, err := Verify(t.Context(), s); err != nil || !r.OK() {
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
	spec := store.Spec{
		Program: "p", Source: "s", StartAfter: "0", EndBefore: "inf", Timeout: "inf",
		MaxFails: "0", MaxTimeouts: "0", MaxLosses: "0", Held: "not yet",
	}
	ids, err := s.Open(t.Context(), store.OpenRequest{Key: "k", Specs: []store.Spec{spec}})
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
		if out, err := s.Apply(t.Context(), store.Order{Move: move, Writer: "m"}); err != nil || out[0].Err != nil {
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
			spec := store.Spec{Program: "p", StartAfter: "0", EndBefore: "9000000000", Timeout: "5", MaxFails: "0", MaxTimeouts: "0"}
			if _, err := s.Open(ctx, store.OpenRequest{Key: fmt.Sprint("k", n), Specs: slices.Repeat([]store.Spec{spec}, 20)}); err == nil {
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
	if _, err := Verify(t.Context(), s); !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("%v, want ErrUnreachable", err)
	}
}
