package server

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
)

// Store is the namespace as a server needs it, loop by loop; the store in Redis is one.
type Store interface {
	waiting
	settling
	leasing
	blaming
	remembering
	planning
	walking
	publishing
	tidying
	purging
}

var _ Store = (*store.Store)(nil)

// Options say how a server works. Name and Store are required.
type Options struct {
	// Name stands in the tasks' logs.
	Name string
	// Store should not repeat commands by itself ([store.WithRetries] -1): a
	// restart of Redis must not go unseen, because the silence of workers means
	// nothing then.
	Store Store
	// Log gets the server's log; nil is silent.
	Log *slog.Logger
	// Server is the section [server] of a configuration, as docs/CONFIGURATION.md
	// has it; nil stands for its defaults.
	*config.Server
	// Version is that of the program, for the manifests in ArchiveDir.
	Version string

	// after replaces time.After in tests.
	after func(time.Duration) <-chan time.Time
}

// FromConfig returns the options that the section [server] asks for.
func FromConfig(c config.Server) Options { return Options{Server: &c} }

// errOption is matched by every error about an option.
var errOption = errors.New("server option")

func (o *Options) complete() error {
	if o.Store == nil {
		return fmt.Errorf("%w Store is required: give the store of the namespace", errOption)
	}
	if err := config.ValidName("server", o.Name); err != nil {
		return fmt.Errorf("%w Name: %w", errOption, err)
	}
	if o.Server == nil {
		o.Server = &config.Defaults().Server
	}
	if err := o.checkValues(); err != nil {
		return err
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.after == nil {
		o.after = time.After
	}
	return nil
}

func (o *Options) checkValues() error {
	switch {
	case min(o.RoundDuration, o.WorkerTimeout, o.RepairInterval, o.QuarantineProbe) <= 0 || o.TimeoutGrace < 0 ||
		min(o.RepairBatch, o.BatchSize) <= 0 || o.BatchSize > tasks.MaxMoves:
		return fmt.Errorf("%w: durations and batches must be above 0, but TimeoutGrace may be 0, and batches at most %d",
			errOption, tasks.MaxMoves)
	case o.ArchiveDir != "" && len(o.ArchiveRetention) == 0:
		return fmt.Errorf("%w ArchiveDir: %q without ArchiveRetention: nothing is ever written there; give both or none", errOption, o.ArchiveDir)
	case !slices.Contains([]string{config.QuarantineOff, config.QuarantineWarn, config.QuarantineOn}, o.Quarantine):
		return fmt.Errorf("%w Quarantine: %q is not off, warn or on", errOption, o.Quarantine)
	}
	return nil
}

// grace is never 0, which Redis cannot hold.
func (o *Options) grace() statemachine.Duration {
	return timing.FromStd(max(o.TimeoutGrace, time.Microsecond))
}
