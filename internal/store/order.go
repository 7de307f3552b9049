package store

import (
	"context"

	"github.com/tdf-go/tdf/statemachine"
)

// OrderWorker tells a worker what to do, at once where it is reachable. It
// returns the worker as it was, or an error matching [ErrNoWorker].
func (s *Store) OrderWorker(ctx context.Context, name string, order WorkerOrder) (WorkerInfo, error) {
	if order != OrderNone && order != OrderDrain && order != OrderStop {
		return WorkerInfo{}, &statemachine.FieldError{Field: "order", Value: string(order), Want: "drain, stop, or empty for none"}
	}
	before, _, err := s.Worker(ctx, name)
	if err != nil {
		return WorkerInfo{}, err
	}
	v, err := s.run(ctx, "order", []string{s.keys.meta(), s.keys.workerDoc(name)}, string(order), s.keys.call(name))
	if err != nil {
		return WorkerInfo{}, err
	}
	if v == int64(0) {
		return WorkerInfo{}, noWorker(name)
	}
	return before, nil
}

// Interrupt ends the wait of the worker of that name in [Store.WaitWork], now
// or when it waits next.
func (s *Store) Interrupt(ctx context.Context, name string) error {
	_, err := s.run(ctx, "token", []string{s.keys.meta(), s.keys.halt(name)})
	return err
}

// InterruptServer ends the wait of one server in [Store.WaitServer].
func (s *Store) InterruptServer(ctx context.Context) error {
	_, err := s.run(ctx, "token", []string{s.keys.meta(), s.keys.wakeServer()})
	return err
}

// PassOn gives a wake-up to the next waiter. It is for a worker that was woken
// and does not claim. An empty one was for nobody else.
func (s *Store) PassOn(ctx context.Context, w WakeUp) error {
	if w == "" {
		return nil
	}
	_, err := s.run(ctx, "token", []string{s.keys.meta(), string(w)})
	return err
}
