package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

// orderPoll is how often the registry is read while a verb waits.
const orderPoll = 500 * time.Millisecond

// await waits until the workers have done as ordered.
func (o *ordering) await(ctx context.Context, s *session, list []ordered, limit time.Duration) error {
	within := ctx
	if limit != manager.Forever {
		bounded, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
		defer cancel()
		within = bounded
	}
	for said := ""; ; {
		err := o.look(within, s, list)
		if err != nil && !errors.Is(err, manager.ErrUnreachable) && within.Err() == nil {
			return err
		}
		left := stillBusy(list)
		if left == "" {
			return o.finish(s, list, false)
		}
		if left != said {
			said = left
			fmt.Fprintln(s.cmd.ErrOrStderr(), "waiting for "+cli.Safe(left))
		}
		select {
		case <-within.Done():
		case <-time.After(orderPoll):
			continue
		}
		if !errors.Is(context.Cause(within), errTimeout) {
			return fmt.Errorf("wait: %w", context.Cause(within))
		}
		fmt.Fprintln(s.cmd.ErrOrStderr(), "the wait timed out")
		return o.finish(s, list, true)
	}
}

// look reads the registry, and notes and reports who is done.
func (o *ordering) look(ctx context.Context, s *session, list []ordered) error {
	workers, err := s.manager.Workers(ctx)
	if err != nil {
		return err
	}
	for i := range list {
		r := &list[i]
		at := slices.IndexFunc(workers, func(w manager.Worker) bool { return w.Name == r.was.Name })
		if r.after != nil || at >= 0 && !o.done(r, &workers[at]) {
			continue
		}
		r.after = &manager.Worker{Name: r.was.Name, State: manager.WorkerStopped} // the namespace was flushed
		if at >= 0 {
			r.after = &workers[at]
		}
		if *o.json {
			continue
		}
		if err := printf(s.out, "%s: %s\n", cli.Safe(r.was.Name), o.doneText(r)); err != nil {
			return err
		}
	}
	return nil
}

// done says whether the worker has done as ordered, or is gone. What a drained
// worker said of itself before it knew of the order does not count, nor does its
// word while it holds tasks other than those in stuck slots.
func (o *ordering) done(r *ordered, w *manager.Worker) bool {
	switch {
	case !w.State.Alive():
		return true
	case o.order == manager.OrderStop:
		return w.Incarnation != r.was.Incarnation
	default:
		heard := !r.given || w.Heartbeat.After(r.was.Heartbeat)
		return w.State == manager.WorkerDrained && heard && len(w.Tasks) <= w.Stuck
	}
}

func (o *ordering) doneText(r *ordered) string {
	switch {
	case r.after.State.Alive() && o.order == manager.OrderStop:
		return "stopped, and started again since"
	case r.after.State == manager.WorkerLost:
		return "lost; its tasks went back"
	case r.after.Stuck > 0:
		return fmt.Sprintf("%s, except for %d stuck slots", r.after.State, r.after.Stuck)
	default:
		return string(r.after.State)
	}
}

// stillBusy names the workers that are not done.
func stillBusy(list []ordered) string {
	var names []string
	for i := range list {
		if list[i].after == nil {
			names = append(names, list[i].was.Name)
		}
	}
	return strings.Join(names, ", ")
}
