package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/task"
)

// programs serves the versions of programs that workers keep. Each request asks the workers.
func (a *api) programs() {
	const tag = "programs"
	const silent = "A worker that does not answer in time is silent."
	add(a, operation{
		method: http.MethodGet, path: "/programs", id: "list-programs", tag: tag, role: task.TokenRead,
		does: "List the versions of programs that workers keep", detail: silent,
	}, func(ctx context.Context, in *programsIn) (*body[[]task.Stock], error) {
		return a.stocks(ctx, in.Worker, in.Node, in.Timeout, func(ask *answer.Asking) ([]task.Stock, error) {
			return ask.Ask(ctx, a.m, task.Errand{})
		})
	})
	add(a, operation{
		method: http.MethodGet, path: "/programs/{version}", id: "show-program", tag: tag, role: task.TokenRead,
		does: "Show which workers keep the versions of a program", detail: silent,
	}, func(ctx context.Context, in *programIn) (*body[[]task.Stock], error) {
		return a.stocks(ctx, in.Worker, in.Node, in.Timeout, func(ask *answer.Asking) ([]task.Stock, error) {
			return ask.Programs(ctx, a.m, in.Version)
		})
	})
	add(a, operation{
		method: http.MethodDelete, path: "/programs/{version}", id: "remove-program", tag: tag, role: task.TokenOperate,
		does: "Remove versions of a program from the disks of workers",
		detail: "What a round runs stays, and what was put there by hand: kept says so. A task that wants a removed version fetches it again. " +
			silent,
	}, func(ctx context.Context, in *programRemoveIn) (*body[[]task.Stock], error) {
		return a.stocks(ctx, in.Worker, in.Node, in.Timeout, func(ask *answer.Asking) ([]task.Stock, error) {
			return ask.RemovePrograms(ctx, a.m, []string{in.Version}, in.DryRun)
		})
	})
	add(a, operation{
		method: http.MethodDelete, path: "/programs", id: "collect-programs", tag: tag, role: task.TokenOperate,
		does:   "Remove versions of programs that were not used for a while",
		detail: "What a slot has run last stays, and what was put there by hand. " + silent,
	}, func(ctx context.Context, in *programCollectIn) (*body[[]task.Stock], error) {
		return a.stocks(ctx, in.Worker, in.Node, in.Timeout, func(ask *answer.Asking) ([]task.Stock, error) {
			return ask.CollectPrograms(ctx, a.m, nil, time.Duration(in.Unused)*time.Second, in.DryRun)
		})
	})
}

// programsIn says which workers are asked.
type programsIn struct {
	Worker  []string `query:"worker" maxItems:"1000" doc:"Only these workers."`
	Node    []string `query:"node" maxItems:"1000" doc:"Only workers of these nodes."`
	Timeout int      `query:"timeout" minimum:"1" maximum:"20" default:"10" doc:"Longest time to wait for answers, in seconds."`
}

// programIn says which versions are meant, and which workers are asked.
type programIn struct {
	Version string   `path:"version" maxLength:"200" doc:"A program, or NAME@HEX: the first digits of a version's hash." example:"sum@3f9a"`
	Worker  []string `query:"worker" maxItems:"1000" doc:"Only these workers."`
	Node    []string `query:"node" maxItems:"1000" doc:"Only workers of these nodes."`
	Timeout int      `query:"timeout" minimum:"1" maximum:"20" default:"10" doc:"Longest time to wait for answers, in seconds."`
}

type programRemoveIn struct {
	Version string   `path:"version" maxLength:"200" doc:"A program, or NAME@HEX: the first digits of a version's hash." example:"sum@3f9a"`
	Worker  []string `query:"worker" maxItems:"1000" doc:"Only these workers."`
	Node    []string `query:"node" maxItems:"1000" doc:"Only workers of these nodes."`
	Timeout int      `query:"timeout" minimum:"1" maximum:"10" default:"10" doc:"Longest time to wait for answers, in seconds, twice."`
	DryRun  bool     `query:"dry_run" doc:"Say what would be done, and do nothing."`
}

type programCollectIn struct {
	Unused  int      `query:"unused_for" required:"true" minimum:"1" maximum:"315360000" doc:"For how long they were not used, in seconds."`
	Worker  []string `query:"worker" maxItems:"1000" doc:"Only these workers."`
	Node    []string `query:"node" maxItems:"1000" doc:"Only workers of these nodes."`
	Timeout int      `query:"timeout" minimum:"1" maximum:"20" default:"10" doc:"Longest time to wait for answers, in seconds."`
	DryRun  bool     `query:"dry_run" doc:"Say what would be done, and do nothing."`
}

// stocks is what workers answer, who are there.
func (a *api) stocks(
	ctx context.Context, workers, nodes []string, seconds int, ask func(*answer.Asking) ([]task.Stock, error),
) (*body[[]task.Stock], error) {
	for _, name := range workers {
		if _, err := a.m.Worker(ctx, name); err != nil {
			return nil, err
		}
	}
	for _, name := range nodes {
		if _, err := nodeOf(ctx, a.m, name); err != nil {
			return nil, err
		}
	}
	found, err := ask(&answer.Asking{Workers: workers, Nodes: nodes, Patience: time.Duration(seconds) * time.Second})
	return &body[[]task.Stock]{found}, err
}
