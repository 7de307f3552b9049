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

// fleet serves queues, nodes and workers.
func (a *api) fleet() {
	read := func(path, id, tag, does string) operation {
		return operation{method: http.MethodGet, path: path, id: id, tag: tag, does: does, role: task.TokenRead}
	}
	add(a, read("/queues", "list-queues", "queues", "List the queues, and count their tasks"), all(a.m.Queues))
	add(a, read("/queues/{name}", "show-queue", "queues", "Show a queue, and count its tasks"), one(a.m.Queue))
	add(a, read("/nodes", "list-nodes", "nodes", "List the nodes with their workers"), all(a.m.Nodes))
	add(a, read("/nodes/{name}", "show-node", "nodes", "Show a node with its workers"),
		one(func(ctx context.Context, name string) (task.Node, error) {
			return nodeOf(ctx, a.m, name)
		}))
	add(a, read("/queues/{name}/why", "explain-queue", "queues", "Say why the tasks of a queue wait"),
		one(func(ctx context.Context, name string) (*answer.Explained, error) {
			return answer.WhyQueue(ctx, a.m, name)
		}))
	add(a, read("/workers", "list-workers", "workers", "List the workers"), a.workers)
	add(a, read("/workers/{name}", "show-worker", "workers", "Show a worker"), one(a.m.Worker))
}

// byName is a path that names something.
type byName struct {
	Name string `path:"name" maxLength:"128" doc:"Its name."`
}

// one serves what a name means.
func one[T any](read func(ctx context.Context, name string) (T, error)) func(context.Context, *byName) (*body[T], error) {
	return func(ctx context.Context, in *byName) (*body[T], error) {
		found, err := read(ctx, in.Name)
		return &body[T]{found}, err
	}
}

// all serves a list.
func all[T any](read func(ctx context.Context) ([]T, error)) func(context.Context, *struct{}) (*body[[]T], error) {
	return func(ctx context.Context, _ *struct{}) (*body[[]T], error) {
		found, err := read(ctx)
		return &body[[]T]{append([]T{}, found...)}, err
	}
}

// nodeOf finds a node among all of them, since one may be known by its workers alone.
func nodeOf(ctx context.Context, m *manager.Manager, name string) (task.Node, error) {
	nodes, err := m.Nodes(ctx)
	if err != nil {
		return task.Node{}, err
	}
	i := slices.IndexFunc(nodes, func(n task.Node) bool { return n.Name == name })
	if i < 0 {
		return task.Node{}, newProblem(http.StatusNotFound, fmt.Sprintf("node %q: no such node", name))
	}
	return nodes[i], nil
}

type workersIn struct {
	All bool `query:"all" doc:"Stopped workers too."`
}

func (a *api) workers(ctx context.Context, in *workersIn) (*body[[]task.Worker], error) {
	found, _, err := answer.Workers(ctx, a.m, in.All)
	return &body[[]task.Worker]{found}, err
}
