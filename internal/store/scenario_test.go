package store_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/scenario"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// TestScenarios plays the stories of the pure model on Redis: the same files,
// the same answers.
func TestScenarios(t *testing.T) {
	t.Parallel()
	scenario.Test(t, "../../statemachine/testdata", false, func(t *testing.T) scenario.World {
		t.Helper()
		w := &redisWorld{t: t, sp: storetest.New(t), now: noon}
		w.sp.SetClock(t, w.now)
		return w
	})
}

// redisWorld is a scenario.World on a real Redis whose clock stands still.
type redisWorld struct {
	t   *testing.T
	sp  *storetest.Space
	now statemachine.Time
}

// Open implements scenario.World.
func (w *redisWorld) Open(spec statemachine.Task) (int64, error) {
	s := specOf(&spec)
	if spec.State == statemachine.Blocked {
		storetest.Set(&s, "hold", "a story")
	}
	ids, err := w.sp.Store.Open(w.t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: []task.Definition{s}})
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// specOf is the definition of a task of the model.
func specOf(t *statemachine.Task) task.Definition {
	s := storetest.Define("program", "p", "start_after", t.StartAfter.Text(), "end_before", t.EndBefore.Text(), "timeout", t.Timeout.Text(), "max_fails", t.MaxFails.Text(), "max_timeouts", t.MaxTimeouts.Text(), "max_losses", t.MaxLosses.Text(), "max_faults", t.MaxFaults.Text(), "retry_delay", t.Backoff.Delay.Text(), "retry_exit_codes", codesText(t.RetryCodes), "fatal_exit_codes", codesText(t.FatalCodes))
	if t.Backoff.Max > 0 {
		storetest.Set(&s, "retry_max_delay", t.Backoff.Max.Text())
	}
	if t.Backoff.Factor >= 1 {
		storetest.Set(&s, "retry_backoff", fmt.Sprint(t.Backoff.Factor))
	}
	if t.Backoff.Jitter > 0 {
		storetest.Set(&s, "retry_jitter", fmt.Sprint(t.Backoff.Jitter))
	}
	if t.ChargeProgram {
		storetest.Set(&s, "charge", "program")
	}
	return s
}

func codesText(codes []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(codes), " ", ","), "[]")
}

// Claim implements scenario.World.
func (w *redisWorld) Claim(worker, request string) (statemachine.Task, bool, error) {
	r, err := w.sp.Store.Claim(w.t.Context(), tasks.ClaimRequest{
		Worker: worker, Request: request, Candidates: storetest.Free(task.Bucket{}), Max: 1,
	})
	if err != nil || len(r.Tasks) == 0 {
		return statemachine.Task{}, false, err
	}
	return r.Tasks[0].Task, true, nil
}

// Read implements scenario.World.
func (w *redisWorld) Read(id int64) (statemachine.Task, error) {
	t, err := w.sp.Store.Task(w.t.Context(), id)
	if err != nil {
		return statemachine.Task{}, err
	}
	return t.Task, t.Err
}

// Move implements scenario.World.
func (w *redisWorld) Move(m statemachine.Move) (statemachine.Result, error) {
	o := tasks.Commit{Move: m, Writer: string(m.Actor), Fields: resultFields(&m)}
	out, err := storetest.Apply(w.t.Context(), w.sp.Store, o)
	if err != nil {
		return statemachine.Refused, err
	}
	return out[0].Result, out[0].Err
}

// resultFields are those of a round that was reported.
func resultFields(m *statemachine.Move) []string {
	var fields []string
	if m.Failed {
		fields = append(fields, statemachine.RoundField(m.Round, "error"), "bad")
	}
	if m.Class != "" {
		fields = append(fields, statemachine.RoundField(m.Round, "class"), string(m.Class))
	}
	if m.HasExit {
		fields = append(fields, statemachine.RoundField(m.Round, "exit_code"), strconv.Itoa(m.ExitCode))
	}
	if m.Retry != 0 {
		fields = append(fields, statemachine.RoundField(m.Round, "retry"), m.Retry.Text())
	}
	return fields
}

// Stamps implements scenario.World.
func (w *redisWorld) Stamps(id int64) (map[string]statemachine.Time, error) {
	t, err := w.sp.Store.Task(w.t.Context(), id)
	if err != nil {
		return nil, err
	}
	stamps := map[string]statemachine.Time{}
	for round := range t.Round + 2 {
		for name, at := range storetest.Stamps(t, round) {
			stamps[statemachine.RoundField(round, name)] = at
		}
	}
	return stamps, nil
}

// Lists implements scenario.World.
func (w *redisWorld) Lists(id int64) ([]statemachine.State, error) { return w.sp.Sets(w.t, id), nil }

// Now implements scenario.World.
func (w *redisWorld) Now() (statemachine.Time, error) { return w.now, nil }

// Advance implements scenario.World.
func (w *redisWorld) Advance(d statemachine.Duration) error {
	if d < 0 {
		return errors.New("time does not run backwards")
	}
	w.now = w.now.Add(d)
	w.sp.SetClock(w.t, w.now)
	return nil
}
