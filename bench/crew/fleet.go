package crew

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/worker"
)

// Manager makes a manager with settings as in manager.batch_size=1000. The caller closes it.
func (s *Site) Manager(ctx context.Context, name string, settings ...string) (*manager.Manager, error) {
	settings = append(slices.Clone(settings), "redis.host="+s.Redis.Socket(), "tdf.namespace="+namespace)
	m, err := manager.New(ctx, name, "", manager.WithSettings(settings...), manager.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// Fleet is a crew of servers, and of workers of so many slots with the same handlers.
type Fleet struct {
	Servers, Workers, Slots int
	Handlers                map[string]worker.Handler
}

// Start starts a fleet. The context is that of [Site.Gather].
func (s *Site) Start(ctx context.Context, f Fleet) (context.Context, *Crew, error) {
	ctx, c := s.Gather(ctx)
	var errs []error
	for i := range f.Servers {
		errs = append(errs, c.Server(fmt.Sprintf("server-%d", i+1)))
	}
	for i := range f.Workers {
		errs = append(errs, c.Worker(Hand{Name: fmt.Sprintf("worker-%d", i+1), Slots: f.Slots, Handlers: f.Handlers}))
	}
	if err := errors.Join(errs...); err != nil {
		return ctx, nil, errors.Join(err, c.Stop())
	}
	return ctx, c, nil
}
