package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// changes serves what changes many tasks at once.
func (a *api) changes() {
	for _, c := range []struct {
		verb, does string
		of         func(*changeIn) (*bulk.Change, error)
	}{
		{"cancel", "Cancel tasks, and stop running ones", always(bulk.Cancel)},
		{"hold", "Keep open tasks from starting until they are released", always(bulk.Hold)},
		{"release", "Open tasks that are held", always(bulk.Release)},
		{"retry", "Open new tasks from ended ones, with the same definition", (*changeIn).retry},
		{"attr", "Set attributes of tasks", (*changeIn).attr},
		{"params", "Give tasks that wait other parameters", (*changeIn).params},
	} {
		add(a, operation{
			method: http.MethodPost, path: "/tasks/" + c.verb, id: c.verb + "-tasks", tag: "tasks", role: task.TokenOperate, does: c.does,
			detail: "It changes the tasks that fit all conditions, page by page; a task that it cannot change stays as it is, and is " +
				"named with the reason. Sent again, it goes on where it was cut off.",
		}, func(ctx context.Context, in *changeIn) (*body[*bulk.Report], error) {
			return a.change(ctx, in, c.verb, c.of)
		})
	}
}

func always(change func() *bulk.Change) func(*changeIn) (*bulk.Change, error) {
	return func(in *changeIn) (*bulk.Change, error) {
		return change(), in.only("")
	}
}

// changeIn says which tasks are meant, and why.
type changeIn struct {
	Body struct {
		Tasks   []string          `json:"tasks,omitempty" maxItems:"10000" doc:"Ids and ranges, such as 7 or 3-9; a job: j7, or last; or all."`
		State   []string          `json:"state,omitempty" doc:"States; an outcome also of archived tasks."`
		Queue   string            `json:"queue,omitempty" doc:"Name of a queue."`
		Program string            `json:"program,omitempty" doc:"Name of a program."`
		Match   string            `json:"match,omitempty" maxLength:"1000" doc:"Regular expression that the error of the last round matches."`
		Attr    map[string]string `json:"attr,omitempty" doc:"Attributes that a task must have; an empty text for tasks without one."`
		Yes     bool              `json:"yes,omitempty" doc:"Confirms that all tasks of the namespace are meant."`
		Reason  string            `json:"reason,omitempty" maxLength:"1024" doc:"Why, for the record of each task."`
		DryRun  bool              `json:"dry_run,omitempty" doc:"Say what would be done, and do nothing."`
		Set     map[string]string `json:"set,omitempty" doc:"Of attr: the attributes to set; an empty text removes one."`
		Params  json.RawMessage   `json:"params,omitempty" doc:"Of params: the parameters, an object; {} for none."`
		Again   bool              `json:"again,omitempty" doc:"Of retry: also tasks that have a retry."`
	}
}

func (in *changeIn) retry() (*bulk.Change, error) {
	b := &in.Body
	if len(b.Tasks) == 0 && len(b.State) == 0 {
		return nil, newProblem(http.StatusUnprocessableEntity, "without tasks, give state; or all as tasks, which means those that succeeded too")
	}
	return bulk.Retry(manager.RetryOptions{Again: b.Again}), in.only("again")
}

func (in *changeIn) attr() (*bulk.Change, error) {
	b := &in.Body
	if len(b.Set) == 0 {
		return nil, newProblem(http.StatusUnprocessableEntity, "give set, the attributes, such as {\"phase\":\"load\"}")
	}
	return bulk.SetMeta(b.Set), cmp.Or(in.only("set"), task.CheckMeta(b.Set))
}

func (in *changeIn) params() (*bulk.Change, error) {
	b := &in.Body
	if b.Params == nil {
		return nil, newProblem(http.StatusUnprocessableEntity, "give params, such as {\"depth\":3}, or {} for none")
	}
	_, err := task.Parse("params", string(b.Params))
	return bulk.SetParams(b.Params), cmp.Or(in.only("params"), err)
}

// only refuses what belongs to another change.
func (in *changeIn) only(own string) error {
	b := &in.Body
	for _, other := range []struct {
		name, of string
		given    bool
	}{{"set", "attr", b.Set != nil}, {"again", "retry", b.Again}, {"params", "params", b.Params != nil}} {
		if other.given && other.name != own {
			return newProblem(http.StatusUnprocessableEntity, fmt.Sprintf("%s belongs to POST %s/tasks/%s", other.name, root, other.of))
		}
	}
	return nil
}

func (a *api) change(
	ctx context.Context, in *changeIn, verb string, of func(*changeIn) (*bulk.Change, error),
) (*body[*bulk.Report], error) {
	change, err := of(in)
	if err != nil {
		return nil, err
	}
	b := &in.Body
	filter := bulk.Filter{Tasks: b.Tasks, States: b.State, Queue: b.Queue, Program: b.Program, Match: b.Match, Meta: b.Attr}
	sel, err := a.selection(ctx, &filter)
	switch {
	case err != nil:
		return nil, err
	case sel.IDs == nil && !sel.All:
		return nil, newProblem(http.StatusUnprocessableEntity, "say which tasks: by tasks, or by conditions such as queue and state")
	case sel.All && !filter.Narrow() && change.Careful && !b.Yes && !b.DryRun:
		return nil, newProblem(http.StatusUnprocessableEntity, fmt.Sprintf("%s of all tasks of namespace %s: add \"yes\": true, or "+
			"\"dry_run\": true to see what it would do", verb, a.m.Namespace()))
	}
	defer callerOf(ctx).sent.patient()()
	tally := &bulk.Tally{}
	err = change.Run(ctx, a.m, sel, callerOf(ctx).change(b.Reason, b.DryRun), tally, nil)
	if err != nil && tally.Empty() {
		return nil, err
	}
	report := change.Report(tally, b.DryRun)
	if err != nil {
		report.Error = err.Error()
	}
	return &body[*bulk.Report]{report}, nil
}

// selection is what a filter means. A job that is not there is an error.
func (a *api) selection(ctx context.Context, f *bulk.Filter) (manager.Selection, error) {
	sel, err := f.Selection(bulk.Newest(ctx, a.m))
	if err == nil && sel.Plan != 0 {
		_, err = a.m.Plan(ctx, sel.Plan)
	}
	return sel, err
}
