package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// fleetChanges serves what changes queues, nodes and workers.
func (a *api) fleetChanges() {
	change := func(method, path, id, tag, does, detail string) operation {
		return operation{method: method, path: path, id: id, tag: tag, does: does, detail: detail, role: task.TokenOperate}
	}
	added := change(http.MethodPost, "/queues", "add-queue", "queues", "Make a queue", "")
	added.status = http.StatusCreated
	add(a, added, a.addQueue)
	add(a, change(http.MethodPatch, "/queues/{name}", "set-queue", "queues", "Change attributes of a queue, all of them or none",
		"They count from the next claim on; no running task is stopped. An empty text restores the default."), a.setQueue)
	for verb, does := range map[string]string{
		"pause": "Stop claims from a queue; running tasks go on", "resume": "Allow claims from a paused queue again",
	} {
		add(a, change(http.MethodPost, "/queues/{name}/"+verb, verb+"-queue", "queues", does, ""),
			func(ctx context.Context, in *changedIn) (*body[[]*answer.QueuePaused], error) {
				return a.pauseQueue(ctx, in, verb == "pause")
			})
	}
	add(a, change(http.MethodDelete, "/queues/{name}", "remove-queue", "queues", "Remove a queue in which no task waits or runs",
		"Its ended tasks stay. The default queue stays."), a.removeQueue)
	add(a, change(http.MethodPatch, "/nodes/{name}", "set-node", "nodes", "Limit the tasks that run on a node, over all queues",
		"Running tasks are not stopped. The node need not be known yet."), a.setNode)
	add(a, change(http.MethodDelete, "/nodes/{name}", "remove-node", "nodes", "Forget a node that is gone",
		"One from which a worker is registered, or on which a task runs, stays."), a.removeNode)
	for verb, o := range map[string]struct {
		order task.WorkerCommand
		does  string
	}{
		"drain":   {task.CommandDrain, "Let a worker finish its tasks, and claim no more"},
		"undrain": {task.NoCommand, "Revoke the order to drain"},
		"stop":    {task.CommandStop, "Stop a worker gracefully"},
	} {
		add(a, change(http.MethodPost, "/workers/{name}/"+verb, verb+"-worker", "workers", o.does,
			"The name all means all workers. The answer comes at once, before it is done."),
			func(ctx context.Context, in *changedIn) (*body[[]answer.Ordered], error) {
				return a.order(ctx, in, o.order)
			})
	}
}

// setIn are the attributes of a queue or a node to set.
type setIn struct {
	Set    map[string]string `json:"set" doc:"Attributes with their values, as texts." example:"{\"maxthreads\":\"2\"}"`
	DryRun bool              `json:"dry_run,omitempty" doc:"Say what would be done, and do nothing."`
}

type queueIn struct {
	Body struct {
		Name   string            `json:"name,omitempty" doc:"Its name; made up if left out." example:"nightly"`
		Set    map[string]string `json:"set,omitempty" doc:"Attributes with their values, as texts." example:"{\"maxthreads\":\"2\"}"`
		DryRun bool              `json:"dry_run,omitempty" doc:"Say what would be done, and do nothing."`
	}
}

func (a *api) addQueue(ctx context.Context, in *queueIn) (*body[*answer.QueueAdded], error) {
	added, err := answer.AddQueue(ctx, a.m, in.Body.Name, in.Body.Set, callerOf(ctx).change("", in.Body.DryRun))
	return &body[*answer.QueueAdded]{added}, err
}

// namedSetIn are attributes of what the path names.
type namedSetIn struct {
	Name string `path:"name" maxLength:"128" doc:"Its name."`
	Body setIn
}

func (a *api) setQueue(ctx context.Context, in *namedSetIn) (*body[*answer.QueueSet], error) {
	set, err := answer.SetQueue(ctx, a.m, in.Name, in.Body.Set, callerOf(ctx).change("", in.Body.DryRun))
	return &body[*answer.QueueSet]{set}, err
}

func (a *api) setNode(ctx context.Context, in *namedSetIn) (*body[*answer.NodeSet], error) {
	set, err := answer.SetNode(ctx, a.m, in.Name, in.Body.Set, callerOf(ctx).change("", in.Body.DryRun))
	return &body[*answer.NodeSet]{set}, err
}

// pauseQueue pauses a queue, or resumes it.
func (a *api) pauseQueue(ctx context.Context, in *changedIn, pause bool) (*body[[]*answer.QueuePaused], error) {
	q, err := a.m.Queue(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	done, err := answer.PauseQueue(ctx, a.m, &q, pause, in.change(ctx))
	return &body[[]*answer.QueuePaused]{[]*answer.QueuePaused{done}}, err
}

// changedIn names a queue, a node, a worker or a token to change or remove.
type changedIn struct {
	Name   string `path:"name" maxLength:"128" doc:"Its name."`
	DryRun bool   `query:"dry_run" doc:"Say what would be done, and do nothing."`
}

func (in *changedIn) change(ctx context.Context) manager.ChangeOptions {
	return callerOf(ctx).change("", in.DryRun)
}

// removed is the answer to a removal.
func (in *changedIn) removed(err error) (*body[answer.Removed], error) {
	return &body[answer.Removed]{answer.Removed{Removed: []string{in.Name}, DryRun: in.DryRun}}, err
}

func (a *api) removeQueue(ctx context.Context, in *changedIn) (*body[answer.Removed], error) {
	return in.removed(a.m.RemoveQueue(ctx, in.Name, in.change(ctx)))
}

func (a *api) removeNode(ctx context.Context, in *changedIn) (*body[answer.Removed], error) {
	_, err := nodeOf(ctx, a.m, in.Name)
	if err == nil {
		err = a.m.RemoveNode(ctx, in.Name, in.change(ctx))
	}
	return in.removed(err)
}

// order gives an order to a worker, or to all.
func (a *api) order(ctx context.Context, in *changedIn, order task.WorkerCommand) (*body[[]answer.Ordered], error) {
	workers, err := a.m.Workers(ctx)
	if err != nil {
		return nil, err
	}
	met := slices.DeleteFunc(workers, func(w task.Worker) bool {
		return w.Name != in.Name && (in.Name != answer.EveryWorker || !answer.Meets(order, &w))
	})
	if len(met) == 0 && in.Name != answer.EveryWorker {
		return nil, fmt.Errorf("%w: %q", task.ErrNoWorker, in.Name)
	}
	list, err := answer.Orders(ctx, a.m, met, order, in.DryRun)
	return &body[[]answer.Ordered]{list}, err
}
