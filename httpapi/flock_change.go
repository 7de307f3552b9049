package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/series"
)

// unchanged reports whether a series is as it was seen, as far as it says when the task is due.
func (v *flockTask) unchanged(s *series.Series) bool {
	was := v.s
	return s.Number == was.Number && slices.Equal(s.Live, was.Live) && s.Next.Equal(was.Next) && s.Fallback.Equal(was.Fallback)
}

var errMoved = errors.New("the task has moved meanwhile")

// setTask changes when a task is due, its parameters, or both.
func (f *flock) setTask(ctx context.Context, q *doorRequest) (*doorAnswer, error) {
	change, err := q.changed()
	if err != nil {
		return nil, err
	}
	tid, o := q.number("tid"), q.change("", false)
	for try := 1; ; try++ {
		v, err := f.see(ctx, tid, o)
		switch {
		case err != nil:
			return nil, err
		case v.over():
			return nil, newProblem(http.StatusConflict, fmt.Sprintf("task %d is over; POST /task schedules its key again", tid))
		}
		_, err = series.Edit(ctx, f.m, seriesKey(tid), func(s *series.Series) error {
			if !v.unchanged(s) {
				return errMoved
			}
			change.apply(s, v)
			return nil
		}, o)
		if err == nil {
			err = f.pass(ctx, v, change, o)
		}
		if err == nil {
			return f.getTask(ctx, q)
		}
		if !errors.Is(err, errMoved) || try == addTries {
			return nil, noTask(tid, err)
		}
	}
}

// flockChange is a change of a task.
type flockChange struct {
	eta       time.Time // zero to leave it
	setParams bool
	params    json.RawMessage
}

func (q *doorRequest) changed() (c *flockChange, err error) {
	_, said := q.members["params"]
	c = &flockChange{setParams: said}
	if q.has("eta") || !said {
		if c.eta, err = q.moment("eta"); err != nil {
			return nil, err
		}
	}
	c.params, err = q.params()
	return c, err
}

// apply changes the series of a task that was seen.
func (c *flockChange) apply(s *series.Series, v *flockTask) {
	if c.setParams {
		s.Task = maps.Clone(s.Task)
		delete(s.Task, "params")
		if c.params != nil {
			s.Task["params"] = c.params
		}
	}
	switch {
	case c.eta.IsZero():
	case v.live() && v.said().IsZero() && !v.ended(): // until it has ended
		s.Fallback = c.eta
	default:
		s.Live, s.Fallback, s.Next = nil, time.Time{}, c.eta
	}
}

// pass passes a change on to an occurrence that waits for a worker: it gets the parameters, and goes if the task is due at another time.
func (f *flock) pass(ctx context.Context, v *flockTask, c *flockChange, o manager.ChangeOptions) error {
	if !v.live() || v.ended() {
		return nil
	}
	if c.setParams {
		if _, err := f.m.SetMeta(ctx, v.s.Live, map[string]string{metaParams: "changed"}, o); err != nil {
			return err
		}
		if _, err := f.m.SetParams(ctx, v.s.Live, c.params, o); err != nil {
			return err
		}
	}
	if c.eta.IsZero() {
		return nil
	}
	_, err := f.m.CancelWaiting(ctx, v.s.Live, o)
	return err
}

// removeTask takes a task out of the schedule. A worker that has reserved it may complete it.
func (f *flock) removeTask(ctx context.Context, q *doorRequest) (*doorAnswer, error) {
	tid, o := q.number("tid"), q.change("", false)
	s, _, err := series.RemoveIf(ctx, f.m, seriesKey(tid), func(*series.Series) bool { return true }, o)
	if err != nil {
		return nil, noTask(tid, err)
	}
	_, err = f.m.CancelWaiting(ctx, s.Live, o) // what began meanwhile is in what was removed
	return &doorAnswer{status: http.StatusNoContent}, err
}
