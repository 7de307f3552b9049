package manager

import (
	"context"
	"fmt"
	"strconv"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// LastRound is, for [Manager.Replay], the last round that a worker has begun.
const LastRound = -1

// Replay opens a task that repeats a round of an ended one, with the same version of the program if
// its hash was recorded and the source can be pinned to it. The new task starts at once, is not
// opened again after a failure, and is linked by replay_of. The error matches [task.ErrNoTask],
// [task.ErrNotEnded], [task.ErrNoRound], [task.ErrNeedsResults] or [task.ErrDamaged]. In a dry run
// the id is 0.
func (m *Manager) Replay(ctx context.Context, id int64, round int, o ChangeOptions) (int64, error) {
	o, err := m.complete(o)
	if err != nil {
		return 0, err
	}
	t, err := m.Task(ctx, id)
	if err != nil {
		return 0, err
	}
	d, err := replayed(t, round)
	if err != nil || o.DryRun {
		return 0, err
	}
	opened, err := m.openBatch(ctx, tasks.OpenRequest{Key: conn.NewToken(), Life: tasks.LoneRequest, Specs: []task.Definition{d}})
	if err != nil {
		return 0, fmt.Errorf("replay of task %d: %w", id, err)
	}
	m.did(o, "replayed task", "task", id, "round", d.ReplayRound, "new", opened[0].ID)
	return opened[0].ID, m.note(ctx, o, "replay", nil, []int64{id})
}

// replayed is the definition of the task that repeats a round of t.
func replayed(t *task.Task, round int) (task.Definition, error) {
	if end := t.End(); !end.IsOutcome() {
		return task.Definition{}, fmt.Errorf("task %d is %s: %w", t.ID, end, task.ErrNotEnded)
	}
	if len(t.Needs) > 0 {
		return task.Definition{}, fmt.Errorf("replay of task %d: %w", t.ID, task.ErrNeedsResults)
	}
	r, err := begunRound(t, round)
	if err != nil {
		return task.Definition{}, err
	}
	d, err := task.Redefine(t.Fields)
	d.ReplayOf, d.ReplayRound = t.ID, r.Number
	for name, text := range map[string]string{
		"start_after": "0", "end_before": statemachine.Never.Text(), "max_fails": "0", "max_timeouts": "0", "max_faults": "0",
		"step": "", // it is outside the plan
	} {
		if err == nil {
			err = d.Set(name, text)
		}
	}
	if err == nil {
		err = d.Set("source", pinned(d.Text("source"), r.ProgramSHA256))
	}
	if err != nil {
		return d, fmt.Errorf("replay of task %d: %w", t.ID, err)
	}
	return d, nil
}

// begunRound is a round that a worker has begun; the last one for LastRound.
func begunRound(t *task.Task, n int) (*task.Round, error) {
	last := t.Last()
	switch {
	case last == nil:
		return nil, fmt.Errorf("task %d: no worker has begun it: %w", t.ID, task.ErrNoRound)
	case n == LastRound:
		return last, nil
	}
	for i := range t.Rounds {
		if r := &t.Rounds[i]; r.Begun() && r.Number == n {
			return r, nil
		}
	}
	return nil, fmt.Errorf("task %d, round %d: %w; the last one is %d", t.ID, n, task.ErrNoRound, last.Number)
}

// pinned is the source with the hash that its content must have, unless it has
// one, or is of a kind that has none.
func pinned(source, hash string) string {
	src, err := task.ParseSource(source)
	if err != nil || src.SHA256 != "" || hash == "" {
		return source
	}
	with := source + "#sha256=" + hash
	if _, err := task.ParseSource(with); err != nil {
		return source
	}
	return with
}

// Verdict says how two things compare.
type Verdict string

// The verdicts.
const (
	Same    Verdict = "same"
	Differs Verdict = "differs"
	Unknown Verdict = "unknown" // one of them is not kept, or not there yet
)

// Comparison is a replay beside what it repeats.
type Comparison struct {
	// ID and Round are repeated by Replay and ReplayRound; ReplayRound is -1 if no worker
	// has begun it.
	ID          int64 `json:"id"`
	Round       int   `json:"round"`
	Replay      int64 `json:"replay"`
	ReplayRound int   `json:"replay_round"`
	// Ended says that the replay has ended; before, all verdicts are Unknown.
	Ended bool `json:"ended"`
	// Output and Error compare what was written to stdout and stderr, by its
	// SHA-256; Exit compares exit code and signal, Program the program's SHA-256.
	Output  Verdict `json:"output"`
	Error   Verdict `json:"error"`
	Exit    Verdict `json:"exit"`
	Program Verdict `json:"program"`
	// First and Second are the records of the two rounds; Second is nil if no worker
	// has begun it.
	First  *task.Round `json:"first"`
	Second *task.Round `json:"second"`
}

// Same reports whether output, error and exit are known to be the same.
func (c *Comparison) Same() bool {
	return c.Output == Same && c.Error == Same && c.Exit == Same
}

// CompareReplay compares a task opened by [Manager.Replay] with what it repeats.
// The error matches [task.ErrNoTask], [task.ErrNoReplay] or [task.ErrNoRound].
func (m *Manager) CompareReplay(ctx context.Context, id int64) (Comparison, error) {
	replay, err := m.Task(ctx, id)
	if err != nil {
		return Comparison{}, err
	}
	if replay.ReplayOf == 0 {
		return Comparison{}, fmt.Errorf("task %d: %w", id, task.ErrNoReplay)
	}
	original, err := m.Task(ctx, replay.ReplayOf)
	if err != nil {
		return Comparison{}, fmt.Errorf("replay %d: %w", id, err)
	}
	c := Comparison{
		ID: original.ID, Replay: id, Ended: replay.End().IsOutcome(), Second: replay.Last(),
		Output: Unknown, Error: Unknown, Exit: Unknown, Program: Unknown, ReplayRound: -1,
	}
	if c.First, err = begunRound(original, replay.ReplayRound); err != nil {
		return c, err
	}
	c.Round = c.First.Number
	if c.Second != nil {
		c.ReplayRound = c.Second.Number
	}
	if c.Ended && c.Second != nil {
		c.judge()
	}
	return c, nil
}

func (c *Comparison) judge() {
	a, b := c.First, c.Second
	c.Output = verdict(a.OutputSHA256(), b.OutputSHA256())
	c.Error = verdict(a.ErrorSHA256(), b.ErrorSHA256())
	c.Exit = verdict(exitOf(a), exitOf(b))
	c.Program = verdict(a.ProgramSHA256, b.ProgramSHA256)
}

func exitOf(r *task.Round) string {
	switch {
	case r.ExitCode != nil:
		return strconv.Itoa(*r.ExitCode) + "/" + r.Signal
	case r.Signal != "":
		return r.Signal
	default:
		return ""
	}
}

// verdict compares two texts, of which an empty one is not known.
func verdict(a, b string) Verdict {
	switch {
	case a == "" || b == "":
		return Unknown
	case a == b:
		return Same
	default:
		return Differs
	}
}
