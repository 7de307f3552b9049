package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/tdf-go/tdf/bench/site"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// mostATurn is how many reports a turn may have.
const mostATurn = 40

// worked is the second half of the lives of tasks that do nothing, done by workers that reach Redis and by some over HTTP, with as many
// slots together.
func (b *bench) worked(ctx context.Context) ([]Table, error) {
	const throughRedis = "done through Redis"
	ones := *b
	ones.Workers, ones.Slots = b.Slots, 1
	all := []*contender{
		{name: throughRedis, run: b.tdfLife(atOnce)},
		{name: throughRedis + ", 1 slot a worker", run: ones.tdfLife(atOnce)},
	}
	for _, slots := range []int{1, min(mostATurn, b.Slots)} {
		all = append(all, &contender{name: fmt.Sprintf("done over HTTP, %d a turn", slots), run: b.doneOverHTTP(slots)})
	}
	return b.compare(ctx, all, comparison{
		Table: Table{
			Name: "work",
			Title: fmt.Sprintf("Claims and reports of tasks that do nothing: %d a run, archived at once, by %d slots in one process",
				b.Tasks, b.Slots),
			Metrics: []Metric{processed, redisCPU}, Reference: throughRedis,
		},
		ratios: []Metric{processed},
	})
}

// doneOverHTTP measures workers over HTTP of so many slots each, which all end when their turn ends.
func (b *bench) doneOverHTTP(slots int) func(context.Context) (reading, error) {
	return func(ctx context.Context) (r reading, err error) {
		err = b.withWeb(ctx, func(s *site.Site, m *manager.Manager, as newWeb) error {
			hands := make([]*web, b.Slots/slots)
			for i := range hands {
				if hands[i], err = as(fmt.Sprint("hand-", i), task.TokenWork); err != nil {
					return err
				}
			}
			r, err = b.lives(ctx, s, m, atOnce, func(c *site.Crew) error {
				for _, w := range hands {
					c.Add(func(ctx context.Context) error { return w.work(ctx, slots) })
				}
				return c.Servers(1)
			})
			return err
		})
		return r, err
	}
}

// work takes turns as the worker that the token speaks for, until ctx is done.
func (w *web) work(ctx context.Context, slots int) error {
	path, well := "/workers/"+w.name, 0
	var answer struct {
		Incarnation int64
		Tasks       []worker.RoundRef
	}
	err := w.tell(ctx, path+"/session", worker.SessionRequest{
		Classes: site.Class, HandlersOnly: true, Slots: slots, TakeOver: true,
	}, &answer)
	for i := 1; err == nil; i++ {
		turn := worker.RoundTurn{
			Incarnation: answer.Incarnation, Slots: slots, Request: fmt.Sprintf("hand%d-%d", answer.Incarnation, i), Wait: task.Seconds(time.Minute),
		}
		for _, round := range answer.Tasks {
			turn.Reports = append(turn.Reports, worker.RoundEnd{RoundRef: round, ExitCode: &well})
		}
		answer.Tasks = nil
		err = w.tell(ctx, path+"/turn", turn, &answer)
	}
	if ctx.Err() != nil {
		return nil //nolint:nilerr // all is done
	}
	return err
}

// tell sends what to say as JSON, and reads the answer.
func (w *web) tell(ctx context.Context, path string, say, answer any) error {
	text, err := json.Marshal(say)
	if err != nil {
		return err
	}
	if text, err = w.ask(ctx, http.MethodPost, path, "application/json", text); err != nil {
		return err
	}
	return json.Unmarshal(text, answer)
}
