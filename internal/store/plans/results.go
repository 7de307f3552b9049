package plans

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// The most tasks and needs that one call should add to a plan, because a script blocks Redis while it runs. More are not
// refused: a single task may need more.
const (
	PlanTasks = 100
	PlanNeeds = 100
)

// Source is a task whose lines steps of a plan are for.
type Source struct {
	task.Result
	// Pending says that it is retried just now, Skipped that it did not have to succeed.
	Pending, Skipped bool
}

// Results reads the results of tasks, in the order of the ids.
func (s *Plans) Results(ctx context.Context, ids []int64) ([]task.Result, error) {
	if results, all, err := s.plainResults(ctx, ids); all || err != nil {
		return results, err
	}
	sources, err := s.Sources(ctx, ids)
	if err != nil {
		return nil, err
	}
	results := make([]task.Result, len(ids))
	for i := range results {
		results[i] = sources[i].Result
	}
	return results, nil
}

// Sources reads the results of tasks and whether others are still to come, in the order of the ids.
func (s *Plans) Sources(ctx context.Context, ids []int64) ([]Source, error) {
	r, err := s.RunList(ctx, "results", conn.Subject{}, conn.Args(nil, ids...)...)
	if err != nil {
		return nil, err
	}
	sources := make([]Source, len(ids))
	for i := range sources {
		t := r.List(i)
		sources[i] = Source{
			Result:  task.Result{Task: t.Number(0), End: statemachine.State(t.Text(1)), Cut: t.Text(2) != "", Text: t.Text(3)},
			Pending: t.Text(4) != "", Skipped: t.Text(5) != "",
		}
	}
	return sources, nil
}

// plainResults reads results as most tasks bring them, in their first round and without a retry, and reports whether all are
// so: to follow others takes a script, which costs Redis twice as much.
func (s *Plans) plainResults(ctx context.Context, ids []int64) (results []task.Result, all bool, err error) {
	cmds := make([]*redis.SliceCmd, len(ids))
	err = s.Pipelined(ctx, "results", func(p redis.Pipeliner) {
		for i, id := range ids {
			cmds[i] = p.HMGet(ctx, s.Keys.Task(id), "state", "outcome", "round", "retried_by", "0:result", "0:output", "0:output_bytes")
		}
	})
	if err != nil {
		return nil, false, err
	}
	results = make([]task.Result, len(ids))
	for i, id := range ids {
		t := conn.AsReply(cmds[i].Val()) // nothing if it is no task
		if !plain(t) {
			return nil, false, nil
		}
		text, said := t[4].(string)
		if !said {
			text = strings.TrimSuffix(t.Text(5), "\n")
		}
		results[i] = task.Result{Task: id, End: statemachine.Succeeded, Text: text, Cut: !said && t[6] != nil}
	}
	return results, true, nil
}

// plain reports whether a task has succeeded in its first round, and was not retried.
func plain(t conn.Reply) bool {
	end := t.Text(0)
	if end == string(statemachine.Archived) {
		end = t.Text(1)
	}
	return end == string(statemachine.Succeeded) && t.Text(2) == "0" && t.Text(3) == ""
}
