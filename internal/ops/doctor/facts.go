package doctor

import (
	"context"
	"errors"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// Facts is all that the judges look at.
type Facts struct {
	// Redis is what the configuration says of the connection.
	Redis config.Redis
	// Exposed are files with secrets that every user of this host can read.
	Exposed []string
	// Server is what Redis says of itself, Refused why [store.Store.Check] refuses it.
	Server  store.Facts
	Refused error
	// CheckWarnings are those of [store.Store.Check].
	CheckWarnings []string

	// Now is the time of Redis, ServerSeen when a server was alive last (0: never).
	Now, ServerSeen statemachine.Time
	Workers         []store.WorkerInfo
	Nodes           []store.NodeInfo
	// Quarantine is the mode that servers have published.
	Quarantine string
	// Step is the last step of the clock of Redis that a server has noticed.
	Step  store.Step
	Gaps  []store.Epoch
	Sizes store.Sizes
	// HalfBuilt are the plans that nobody makes ready any more.
	HalfBuilt []store.Plan
	// Config is what the configuration says of servers, nil if it says nothing; Overstayed is how many archived tasks should have left
	// Redis long ago if all servers had it.
	Config     *config.Server
	Overstayed int64

	// Places are local directories that a worker of this configuration writes to.
	Places []Place
}

// Gather reads the facts. The error matches [store.ErrUnreachable] if Redis cannot
// be asked. The store's Check, which refuses some servers, only becomes a fact.
func Gather(ctx context.Context, st *store.Store, cfg *config.File) (*Facts, error) {
	f := &Facts{Redis: cfg.Redis, Exposed: cfg.Exposed()}
	info, err := st.Check(ctx)
	if errors.Is(err, store.ErrUnfit) {
		f.Refused, err = err, nil
	}
	if err != nil {
		return nil, err
	}
	f.CheckWarnings = info.Warnings
	if f.Server, err = st.Facts(ctx); err != nil {
		return nil, err
	}
	if err := f.namespace(ctx, st); err != nil {
		return nil, err
	}
	if cfg.Given("server") {
		f.Config = &cfg.Server
		if f.Overstayed, err = st.Overstayed(ctx, rules(cfg.Server.ArchiveRetention), overstay); err != nil {
			return nil, err
		}
	}
	if cfg.Given("worker") {
		f.Places = places(&cfg.Worker)
	}
	return f, nil
}

// namespace reads what stands in the namespace.
func (f *Facts) namespace(ctx context.Context, st *store.Store) (err error) {
	if f.ServerSeen, err = st.ServerSeen(ctx); err != nil {
		return err
	}
	if f.Workers, f.Now, err = st.Workers(ctx); err != nil {
		return err
	}
	if f.Nodes, err = st.NodeRecords(ctx); err != nil {
		return err
	}
	if f.Quarantine, err = st.Quarantine(ctx); err != nil {
		return err
	}
	if f.Gaps, err = st.Gaps(ctx); err != nil {
		return err
	}
	if f.Step, err = st.LastStep(ctx); err != nil {
		return err
	}
	if f.HalfBuilt, err = st.HalfBuilt(ctx); err != nil {
		return err
	}
	f.Sizes, err = st.Sizes(ctx)
	return err
}
