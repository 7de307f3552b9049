package returned

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// The two streams of a program, by the fields of a round.
const (
	Output = "output"
	Error  = "error"
)

// noRoundError matches task.ErrNoRound.
type noRoundError struct {
	t     *task.Task
	round int
}

// Error says which rounds there are.
func (e *noRoundError) Error() string {
	if e.round < 0 {
		return fmt.Sprintf("task %d has not been run yet (it is %s)", e.t.ID, e.t.State)
	}
	return fmt.Sprintf("task %d has no round %d; it has %d, counted from 0", e.t.ID, e.round, len(e.t.Rounds))
}

// Unwrap returns task.ErrNoRound.
func (e *noRoundError) Unwrap() error { return task.ErrNoRound }

// Round is the round of a task with a number; with a negative one it is the last that a worker has begun. The error matches
// [task.ErrNoRound].
func Round(t *task.Task, number int) (*task.Round, error) {
	if number < 0 {
		if r := t.Last(); r != nil {
			return r, nil
		}
	}
	for i := range t.Rounds {
		if r := &t.Rounds[i]; r.Number == number {
			return r, nil
		}
	}
	return nil, &noRoundError{t, number}
}

// Text is what the record of a round has of a stream. With the errors of a program stands what TDF itself says.
func Text(r *task.Round, stream string) string {
	if stream == Error {
		return cmp.Or(r.Error, r.Stderr)
	}
	return r.Output
}

// NotWhole names the streams of a round of which its record has not all that was written.
func NotWhole(r *task.Round) (streams []string) {
	if r.OutputBytes != int64(len(r.Output)) || r.OutputHash != "" || r.Dropped {
		streams = append(streams, Output)
	}
	if r.ErrorHash != "" || r.Dropped {
		streams = append(streams, Error)
	}
	return streams
}

// Cut is how many bytes a stream had before the worker cut it, 0 if it did not.
func Cut(r *task.Round, stream string) int64 {
	switch {
	case r.Dropped || !slices.Contains(NotWhole(r), stream):
		return 0
	case stream == Error:
		return r.ErrorBytes
	}
	return r.OutputBytes
}

// Place is where streams are that are not in Redis; empty if they are.
func Place(whole []task.Files) string {
	if len(whole) == 0 {
		return ""
	}
	return whole[0].To
}

// Dropped says what became of streams that are kept no longer.
func Dropped(id int64, round int) string {
	return fmt.Sprintf("what round %d of task %d wrote is kept no longer (keep_rounds)", round, id)
}

// Pieces puts together what is followed. The zero value is ready to use.
type Pieces struct {
	// midLine says that what came last was not the end of a line.
	midLine bool
}

// Text is what to write for a piece. Where something is missing before it, a line says how much.
func (p *Pieces) Text(o *manager.Output) string {
	text := o.Text
	if o.LeftOut > 0 {
		text = fmt.Sprintf("[tdf: %d bytes left out]\n", o.LeftOut) + text
		if p.midLine {
			text = "\n" + text
		}
	}
	switch {
	case o.News == manager.OutputOver:
		p.midLine = false
	case text != "":
		p.midLine = text[len(text)-1] != '\n'
	}
	return text
}
