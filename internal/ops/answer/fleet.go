package answer

import (
	"context"
	"fmt"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Removed is what was removed, by name.
type Removed struct {
	Removed []string `json:"removed"`
	DryRun  bool     `json:"dry_run"`
}

// Ordered is what became of the order to a worker.
type Ordered struct {
	Name  string             `json:"name"`
	Was   task.WorkerState   `json:"was"`
	Busy  int                `json:"busy"`
	Slots int                `json:"slots"`
	Order task.WorkerCommand `json:"order"`
	// Ordered says that the order was given; otherwise Note says why there was no need, and Refused that it is not possible.
	Ordered bool   `json:"ordered"`
	DryRun  bool   `json:"dry_run"`
	Note    string `json:"note"`
	Refused bool   `json:"-"`
	// Before is the worker as it was.
	Before task.Worker `json:"-"`
}

// EveryWorker is the name that stands for all workers that an order meets.
const EveryWorker = "all"

// Meets reports whether an order to [EveryWorker] is one to w.
func Meets(order task.WorkerCommand, w *task.Worker) bool {
	switch order {
	case task.CommandDrain:
		return w.State != task.WorkerStopped
	case task.CommandStop:
		return w.State.Alive()
	default:
		return w.Order == task.CommandDrain
	}
}

// giveOrder gives an order to a worker, which was read before, where that makes sense.
func giveOrder(ctx context.Context, m *manager.Manager, w *task.Worker, order task.WorkerCommand, dryRun bool) (o Ordered, err error) {
	o = Ordered{Before: *w, Order: order, DryRun: dryRun}
	o.Note, o.Refused = objection(w, order)
	if o.Ordered = o.Note == "" && !dryRun; o.Ordered {
		if o.Before, err = m.CommandWorker(ctx, w.Name, order); err != nil {
			return o, fmt.Errorf("worker %q: %w", w.Name, err)
		}
	}
	o.Name, o.Was, o.Busy, o.Slots = o.Before.Name, o.Before.State, o.Before.Busy, o.Before.Slots
	return o, nil
}

// Orders gives an order to workers, one after the other.
func Orders(ctx context.Context, m *manager.Manager, workers []task.Worker, order task.WorkerCommand, dryRun bool) ([]Ordered, error) {
	list := []Ordered{}
	err := m.Logged(ctx, "", "", manager.ChangeOptions{DryRun: dryRun}, func(ctx context.Context) error {
		for i := range workers {
			done, err := giveOrder(ctx, m, &workers[i], order, dryRun)
			if err != nil {
				return err
			}
			list = append(list, done)
		}
		return nil
	})
	return list, err
}

// objection says why an order needs not, or, if refused, cannot be given.
func objection(w *task.Worker, order task.WorkerCommand) (note string, refused bool) {
	stopping := w.Order == task.CommandStop && w.State.Alive()
	switch {
	case order == task.CommandStop && !w.State.Alive():
		return "it is " + string(w.State) + " already", false
	case order == task.CommandStop && stopping:
		return "stop was ordered before", false
	case order == task.CommandDrain && stopping:
		return "it is about to stop", false
	case order == task.CommandDrain && w.Order == task.CommandDrain:
		return "drain was ordered before", false
	case order == task.NoCommand && stopping:
		return "it is about to stop, which cannot be taken back", true
	case order == task.NoCommand && w.Order != task.CommandDrain:
		return "it has no order to drain", false
	default:
		return "", false
	}
}

// TokenAdded is a token that was made, with what its holder shows.
type TokenAdded struct {
	*task.Token

	Secret string `json:"secret,omitempty"`
	DryRun bool   `json:"dry_run"`
}

// AddToken makes a token that is good for a time such as 90d; empty for ever.
func AddToken(
	ctx context.Context, m *manager.Manager, name string, role task.TokenRole, expires string, o manager.ChangeOptions,
) (*TokenAdded, error) {
	spec := task.TokenSpec{Name: name, Role: role}
	if expires != "" {
		life, ok := config.Age(expires)
		if !ok {
			return nil, &statemachine.FieldError{Field: "expires", Value: expires, Want: "a number with a unit s, m, h, d or w, such as 12h or 90d"}
		}
		now, err := m.Now(ctx)
		if err != nil {
			return nil, err
		}
		spec.Expires = now.Add(life)
	}
	secret, made, err := m.NewToken(ctx, spec, o)
	return &TokenAdded{&made, secret, o.DryRun}, err
}
