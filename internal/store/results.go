package store

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/statemachine"
)

// Result is what a task has brought.
type Result struct {
	// Task is its id: that of the last retry that has ended, or succeeded if one has.
	Task int64
	// End is how it ended; empty if it has not.
	End statemachine.State
	// Text is its result: what the program wrote as result= to $TDF_CONTROL, or its output without the newline at the end.
	Text string
	// Cut says that the output was cut, so that Text is not all of it.
	Cut bool
}

// Source is a task whose lines steps of a plan are for.
type Source struct {
	Result
	// Pending says that it is retried just now, Skipped that it did not have to succeed.
	Pending, Skipped bool
}

// Results reads the results of tasks, in the order of the ids.
func (s *Store) Results(ctx context.Context, ids []int64) ([]Result, error) {
	if results, all, err := s.plainResults(ctx, ids); all || err != nil {
		return results, err
	}
	sources, err := s.Sources(ctx, ids)
	if err != nil {
		return nil, err
	}
	results := make([]Result, len(ids))
	for i := range results {
		results[i] = sources[i].Result
	}
	return results, nil
}

// Sources reads the results of tasks and whether others are still to come, in the order of the ids.
func (s *Store) Sources(ctx context.Context, ids []int64) ([]Source, error) {
	args := make([]any, 0, 1+len(ids))
	args = append(args, s.keys.taskPrefix())
	for _, id := range ids {
		args = append(args, id)
	}
	r, err := s.runList(ctx, "results", []string{s.keys.meta()}, args...)
	if err != nil {
		return nil, err
	}
	sources := make([]Source, len(ids))
	for i := range sources {
		t := r.list(i)
		sources[i] = Source{
			Result:  Result{Task: t.number(0), End: statemachine.State(t.text(1)), Cut: t.text(2) != "", Text: t.text(3)},
			Pending: t.text(4) != "", Skipped: t.text(5) != "",
		}
	}
	return sources, nil
}

// plainResults reads results as most tasks bring them, in their first round and without a retry, and reports whether all are
// so: to follow others takes a script, which costs Redis twice as much.
func (s *Store) plainResults(ctx context.Context, ids []int64) (results []Result, all bool, err error) {
	cmds := make([]*redis.SliceCmd, len(ids))
	err = s.pipelined(ctx, "results", func(p redis.Pipeliner) {
		for i, id := range ids {
			cmds[i] = p.HMGet(ctx, s.keys.task(id), "state", "outcome", "round", "retried_by", "0:result", "0:output", "0:output_bytes")
		}
	})
	if err != nil {
		return nil, false, err
	}
	results = make([]Result, len(ids))
	for i, id := range ids {
		t := asReply(cmds[i].Val()) // nothing if it is no task
		if !plain(t) {
			return nil, false, nil
		}
		text, said := t[4].(string)
		if !said {
			text = strings.TrimSuffix(t.text(5), "\n")
		}
		results[i] = Result{Task: id, End: statemachine.Succeeded, Text: text, Cut: !said && t[6] != nil}
	}
	return results, true, nil
}

// plain reports whether a task has succeeded in its first round, and was not retried.
func plain(t reply) bool {
	end := t.text(0)
	if end == string(statemachine.Archived) {
		end = t.text(1)
	}
	return end == string(statemachine.Succeeded) && t.text(2) == "0" && t.text(3) == ""
}
