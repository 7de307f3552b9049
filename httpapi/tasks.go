package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/task"
)

func (a *api) tasks() {
	const tag = "tasks"
	add(a, operation{
		method: http.MethodGet, path: "/tasks", id: "list-tasks", tag: tag, role: task.TokenRead,
		does: "List the tasks that fit all conditions", detail: pagesHelp + " Rounds has the present round only, with its place and progress.",
	}, a.list)
	add(a, operation{
		method: http.MethodGet, path: "/tasks/{id}", id: "show-task", tag: tag, role: task.TokenRead,
		does: "Show a task with all its rounds and its log",
	}, of(a.m.Task))
	add(a, operation{
		method: http.MethodGet, path: "/tasks/{id}/why", id: "explain-task", tag: tag, role: task.TokenRead,
		does: "Say why a task waits, or how it ended, and the remedy",
	}, of(func(ctx context.Context, id int64) (*answer.Explained, error) { return answer.Why(ctx, a.m, id) }))
	add(a, operation{
		method: http.MethodGet, path: "/tasks/{id}/history", id: "list-task-events", tag: tag, role: task.TokenRead,
		does:   "List the recorded events of a task",
		detail: "Redis keeps the newest events of the namespace only; the log of the task goes back to its creation.",
	}, of(func(ctx context.Context, id int64) (*answer.Events, error) { return answer.History(ctx, a.m, id) }))
	add(a, operation{
		method: http.MethodPost, path: "/tasks/{id}/replay", id: "replay-task", tag: tag, role: task.TokenOperate, status: http.StatusCreated,
		does:   "Repeat a round of an ended task by a new one",
		detail: "The new task runs the same content of the program, if its hash was recorded. GET of this path, with its id, compares them.",
	}, a.replay)
	add(a, operation{
		method: http.MethodGet, path: "/tasks/{id}/replay", id: "compare-replay", tag: tag, role: task.TokenRead,
		does: "Compare a task that repeats a round with that round",
	}, of(func(ctx context.Context, id int64) (*answer.Compared, error) {
		c, err := a.m.CompareReplay(ctx, id)
		return &answer.Compared{Comparison: c, Same: c.Same()}, err
	}))
	add(a, operation{
		method: http.MethodGet, path: "/wait", id: "wait-for-tasks", tag: tag, role: task.TokenRead,
		does: "Wait until tasks have ended, all that there are if there are no conditions",
		detail: "A task that was retried counts as what its retry ends in. If the time is over first, timed_out says so: ask again. " +
			"A job alone costs the same however many tasks it has.",
	}, a.wait)
	add(a, operation{
		method: http.MethodGet, path: "/stats", id: "count-tasks", tag: tag, role: task.TokenRead, does: "Count the tasks in each state",
	}, func(ctx context.Context, _ *struct{}) (*body[*answer.Totals], error) {
		found, err := answer.Count(ctx, a.m)
		return &body[*answer.Totals]{found}, err
	})
}

// of serves what there is about a task.
func of[T any](read func(ctx context.Context, id int64) (T, error)) func(context.Context, *taskID) (*body[T], error) {
	return func(ctx context.Context, in *taskID) (*body[T], error) {
		found, err := read(ctx, in.ID)
		return &body[T]{found}, err
	}
}

const pagesHelp = "State by state, what came into it last is first; open tasks are in the order of their ids as text. The header Link " +
	"leads to the next page; the last one has none. A page looks at 2,500 tasks at most, so it may have fewer than asked for, even none. " +
	"A task that moves meanwhile may come twice, or not at all."

// taskID is a path that names a task.
type taskID struct {
	ID int64 `path:"id" minimum:"1" doc:"Id of a task."`
}

// listIn are the conditions of a list, all of which a task must fit, and which part of it is asked for.
type listIn struct {
	Tasks   []string `query:"tasks" doc:"Ids and ranges, such as 7 or 3-9; or a job: j7, or last." example:"1-5"`
	State   []string `query:"state" doc:"States; an outcome also of archived tasks." example:"failed"`
	Queue   string   `query:"queue" doc:"Name of a queue."`
	Program string   `query:"program" doc:"Name of a program."`
	Match   string   `query:"match" maxLength:"1000" doc:"Regular expression that the error of the last round matches."`
	Attr    []string `query:"attr,explode" maxItems:"50" doc:"Attribute as name=text; name= for tasks without it."`
	Limit   int      `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"Most tasks of a page."`
	Cursor  string   `query:"cursor" maxLength:"500" doc:"Where the page begins, as the header Link of the one before says."`

	at url.URL
}

// Resolve implements [huma.Resolver].
func (in *listIn) Resolve(ctx huma.Context) []error {
	in.at = ctx.URL()
	return nil
}

// link is the header Link of a page; empty for the last one.
func (in *listIn) link(next string) string {
	if next == "" {
		return ""
	}
	query := in.at.Query()
	query.Set("cursor", next)
	return fmt.Sprintf(`<%s?%s>; rel="next"`, in.at.Path, query.Encode())
}

// filter is what the conditions say as a verb takes it.
func (in *listIn) filter() (bulk.Filter, error) {
	f := bulk.Filter{Tasks: in.Tasks, States: in.State, Queue: in.Queue, Program: in.Program, Match: in.Match}
	for _, pair := range in.Attr {
		name, text, found := strings.Cut(pair, "=")
		if !found {
			return f, &bulk.FilterError{Field: "attr", Problem: strconv.Quote(pair) + " has no =; write name=text, or name= for a task without it"}
		}
		if f.Meta == nil {
			f.Meta = map[string]string{}
		}
		f.Meta[name] = text
	}
	return f, nil
}

// pageOf is a part of a list.
type pageOf[T any] struct {
	Link string `header:"Link" doc:"The next page, as rel=\"next\"; none after the last."`
	Body []T
}

// replayIn says which round is repeated.
type replayIn struct {
	ID     int64 `path:"id" minimum:"1" doc:"Id of a task that has ended."`
	Round  int   `query:"round" minimum:"-1" default:"-1" doc:"Number of a round, from 0; -1 is the last one that a worker has begun."`
	DryRun bool  `query:"dry_run" doc:"Say whether it could be, and open nothing."`
}

type replayed struct {
	Location string `header:"Location" doc:"The new task."`
	Body     answer.Replayed
}

func (a *api) replay(ctx context.Context, in *replayIn) (*replayed, error) {
	id, err := a.m.Replay(ctx, in.ID, in.Round, callerOf(ctx).change("", in.DryRun))
	if err != nil {
		return nil, err
	}
	out := &replayed{Body: answer.Replayed{ID: in.ID, Replay: id, DryRun: in.DryRun}}
	if id > 0 {
		out.Location = fmt.Sprintf("%s/tasks/%d", root, id)
	}
	return out, nil
}

// waitIn says what is waited for, and how long.
type waitIn struct {
	Tasks   []string `query:"tasks" doc:"Ids and ranges, such as 7 or 3-9; or a job: j7, or last." example:"j7"`
	State   []string `query:"state" doc:"States; an outcome also of archived tasks."`
	Queue   string   `query:"queue" doc:"Name of a queue."`
	Program string   `query:"program" doc:"Name of a program."`
	Match   string   `query:"match" maxLength:"1000" doc:"Regular expression that the error of the last round matches."`
	Attr    []string `query:"attr,explode" maxItems:"50" doc:"Attribute as name=text; name= for tasks without it."`
	Timeout int      `query:"timeout" minimum:"1" maximum:"60" default:"30" doc:"Longest time to wait, in seconds."`
}

func (a *api) wait(ctx context.Context, in *waitIn) (*body[*answer.Waited], error) {
	like := listIn{Tasks: in.Tasks, State: in.State, Queue: in.Queue, Program: in.Program, Match: in.Match, Attr: in.Attr}
	filter, err := like.filter()
	if err != nil {
		return nil, err
	}
	if err := a.streams.waits.enter("waits"); err != nil {
		return nil, err
	}
	defer a.streams.waits.leave()
	ctx, end := a.lasting(ctx)
	defer end()
	defer callerOf(ctx).sent.patient()()
	found, err := answer.Wait(ctx, a.m, &filter, time.Duration(in.Timeout)*time.Second)
	return &body[*answer.Waited]{found}, err
}

func (a *api) list(ctx context.Context, in *listIn) (*pageOf[*task.Task], error) {
	filter, err := in.filter()
	if err != nil {
		return nil, err
	}
	sel, err := a.selection(ctx, &filter)
	if err != nil {
		return nil, err
	}
	sel.All = sel.IDs == nil
	sel.Archived, sel.Fields, sel.NotRetried = true, task.HeadNames(), len(sel.States) > 0
	found, next, err := a.m.Page(ctx, sel, in.Cursor, in.Limit)
	if err == nil {
		err = a.m.PresentRounds(ctx, found, true)
	}
	if err != nil {
		return nil, err
	}
	return &pageOf[*task.Task]{Link: in.link(next), Body: append([]*task.Task{}, found...)}, nil
}
