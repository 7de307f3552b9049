package manager

import (
	"context"
	"fmt"
)

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
	// ID and Round are what was repeated, Replay and ReplayRound by what;
	// ReplayRound is -1 if no worker has begun it.
	ID          int64
	Round       int
	Replay      int64
	ReplayRound int
	// Ended says that the replay has ended; before, all verdicts are Unknown.
	Ended bool
	// Output and Error compare what was written to stdout and stderr, by its
	// SHA-256; Exit compares exit code and signal, Program the program's SHA-256.
	Output, Error, Exit, Program Verdict
	// First and Second are the records of the two rounds.
	First, Second Round
}

// Same reports whether output, error and exit are known to be the same.
func (c *Comparison) Same() bool {
	return c.Output == Same && c.Error == Same && c.Exit == Same
}

// CompareReplay compares a task opened by [Manager.Replay] with what it repeats.
// The error matches [ErrNotFound], [ErrNoReplay] or [ErrNoRound].
func (m *Manager) CompareReplay(ctx context.Context, id int64) (Comparison, error) {
	replay, err := m.Task(ctx, id)
	if err != nil {
		return Comparison{}, err
	}
	if replay.ReplayOf == 0 {
		return Comparison{}, fmt.Errorf("task %d: %w", id, ErrNoReplay)
	}
	original, err := m.Task(ctx, replay.ReplayOf)
	if err != nil {
		return Comparison{}, fmt.Errorf("replay %d: %w", id, err)
	}
	c := Comparison{
		ID: original.ID, Replay: id, Ended: replay.End().Ended(), Second: replay.Last(),
		Output: Unknown, Error: Unknown, Exit: Unknown, Program: Unknown,
	}
	if c.First, err = original.begunRound(replay.ReplayRound); err != nil {
		return c, err
	}
	c.Round, c.ReplayRound = c.First.Number, c.Second.Number
	if c.Ended && c.ReplayRound >= 0 {
		c.judge()
	}
	return c, nil
}

func (c *Comparison) judge() {
	a, b := &c.First, &c.Second
	c.Output = verdict(a.OutputSHA256(), b.OutputSHA256())
	c.Error = verdict(a.ErrorSHA256(), b.ErrorSHA256())
	c.Exit = verdict(a.exit(), b.exit())
	c.Program = verdict(a.ProgramSHA256, b.ProgramSHA256)
}

// exit is how the program ended; empty if that is not recorded.
func (r *Round) exit() string {
	if r.ExitCode == "" && r.Signal == "" {
		return ""
	}
	return r.ExitCode + "/" + r.Signal
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
