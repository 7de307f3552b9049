package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/manager"
)

// ordering is one of the verbs drain, undrain and stop with its flags.
type ordering struct {
	order manager.WorkerOrder
	// suits says which workers "all" means.
	suits func(*manager.Worker) bool
	give  func(context.Context, *manager.Manager, string) (manager.Worker, error)

	dryRun bool
	wait   string
	json   *bool
}

func (a *app) drain() *cobra.Command {
	o := &ordering{
		order: manager.OrderDrain,
		suits: func(w *manager.Worker) bool { return w.State != manager.WorkerStopped },
		give: func(ctx context.Context, m *manager.Manager, name string) (manager.Worker, error) {
			return m.DrainWorker(ctx, name)
		},
	}
	cmd := a.ordering(o, "drain", "Let workers finish what they run, and claim nothing more",
		"  tdf-manager worker drain w1\n  tdf-manager worker drain w1 w2 --wait=1h\n  tdf-manager worker drain all --dry-run")
	cmd.Long = "drain lets workers finish what they run; they claim nothing more. The order stays with the name, also\n" +
		"over a restart, until undrain takes it back. all means all workers that have not stopped."
	o.waitFlag(cmd, "drained")
	return cmd
}

func (a *app) undrain() *cobra.Command {
	o := &ordering{
		order: manager.NoOrder,
		suits: func(w *manager.Worker) bool { return w.Order == manager.OrderDrain },
		give: func(ctx context.Context, m *manager.Manager, name string) (manager.Worker, error) {
			return m.UndrainWorker(ctx, name)
		},
	}
	return a.ordering(o, "undrain", "Take the order to drain back",
		"  tdf-manager worker undrain w1\n  tdf-manager worker undrain all")
}

func (a *app) stop() *cobra.Command {
	o := &ordering{
		order: manager.OrderStop,
		suits: func(w *manager.Worker) bool { return w.State.Alive() },
		give: func(ctx context.Context, m *manager.Manager, name string) (manager.Worker, error) {
			return m.StopWorker(ctx, name)
		},
	}
	cmd := a.ordering(o, "stop", "End workers in good order",
		"  tdf-manager worker stop w1\n  tdf-manager worker stop all --wait=5m")
	cmd.Long = "stop ends workers as SIGTERM does: what runs may go on for their drain_timeout, the rest is handed\n" +
		"back. A worker that is started again works."
	o.waitFlag(cmd, "stopped")
	return cmd
}

func (a *app) ordering(o *ordering, verb, short, example string) *cobra.Command {
	cmd := &cobra.Command{
		Use: verb + " NAME...", Short: short, Example: example, Args: cobra.MinimumNArgs(1),
		RunE: a.withManager(false, noOptions, o.do),
	}
	cmd.Flags().BoolVarP(&o.dryRun, "dry-run", "n", false, "only say what would be ordered")
	o.json = jsonFlag(cmd)
	return cmd
}

func (o *ordering) waitFlag(cmd *cobra.Command, until string) {
	cmd.Flags().StringVar(&o.wait, "wait", "", "wait until they are "+until+"; --wait=DURATION waits so long at most and ends with 4")
	cmd.Flags().Lookup("wait").NoOptDefVal = "inf"
	cmd.MarkFlagsMutuallyExclusive("wait", "dry-run")
}

// ordered is what became of the order to one worker.
type ordered struct {
	was manager.Worker
	// given says that the order was, or would be, given; otherwise note says
	// why there was no need, and refused that it is not possible.
	given   bool
	note    string
	refused bool
	// after is the worker as it was when the wait for it was over.
	after *manager.Worker
}

func (o *ordering) do(ctx context.Context, s *session) error {
	limit, err := parseSpan("--wait", o.wait)
	if err != nil {
		return err
	}
	workers, err := s.manager.Workers(ctx)
	if err != nil {
		return err
	}
	picked, err := pick(s.args, workers, o.suits)
	if err != nil {
		return err
	}
	list := make([]ordered, len(picked))
	for i := range picked {
		if list[i], err = o.one(ctx, s.manager, &picked[i]); err != nil {
			return err
		}
	}
	if limit == 0 {
		return o.finish(s, list, false)
	}
	if err := o.report(s, list); err != nil {
		return err
	}
	return o.await(ctx, s, list, limit)
}

// one gives the order to one worker, where that makes sense.
func (o *ordering) one(ctx context.Context, m *manager.Manager, w *manager.Worker) (ordered, error) {
	r := ordered{was: *w}
	r.note, r.refused = o.objection(w)
	if r.given = r.note == ""; !r.given || o.dryRun {
		return r, nil
	}
	was, err := o.give(ctx, m, w.Name)
	if err != nil {
		return r, fmt.Errorf("worker %q: %w", w.Name, err)
	}
	r.was = was
	return r, nil
}

// objection says why the order needs not, or, if refused, cannot be given.
func (o *ordering) objection(w *manager.Worker) (note string, refused bool) {
	stopping := w.Order == manager.OrderStop && w.State.Alive()
	switch o.order {
	case manager.OrderStop:
		switch {
		case !w.State.Alive():
			return "it is " + string(w.State) + " already", false
		case stopping:
			return "stop was ordered before", false
		}
	case manager.OrderDrain:
		switch {
		case stopping:
			return "it is about to stop", false
		case w.Order == manager.OrderDrain:
			return "drain was ordered before", false
		}
	case manager.NoOrder:
		switch {
		case stopping:
			return "it is about to stop, which cannot be taken back", true
		case w.Order != manager.OrderDrain:
			return "it has no order to drain", false
		}
	}
	return "", false
}
