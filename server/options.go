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
	"github.com/tdf-go/tdf/internal/store/upkeep"
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
	retiring
}

var _ Store = (*store.Store)(nil)

// Options say how a server works. Name and Store are required; the zero value of
// everything else is replaced by its default.
type Options struct {
	// Name stands in the tasks' logs.
	Name string
	// Store should not repeat commands by itself ([store.WithRetries] -1): a
	// restart of Redis must not go unseen, because the silence of workers means
	// nothing then.
	Store Store
	// Log gets the server's log; nil is silent.
	Log *slog.Logger
	// RoundDuration is the longest time between two passes, and how often the
	// work done is logged (default 1.3 s).
	RoundDuration time.Duration
	// TimeoutGrace is how long a round's worker is left alone after the timeout
	// (default 10 s), before it is told. Workers whose kill_grace is not shorter do not start.
	TimeoutGrace time.Duration
	// WorkerTimeout is the lease of all workers: how long one may be silent
	// before its tasks are taken back (default 15 s).
	WorkerTimeout time.Duration
	// BatchSize is the most tasks settled in one script (default 100).
	BatchSize int
	// RepairInterval is the time between two background jobs (default 5 s), and
	// how long a disagreement must last before it is repaired.
	RepairInterval time.Duration
	// RepairBatch is the most tasks one background job walks over (default 1000).
	RepairBatch int
	// Quarantine says what becomes of a node where tasks fail that succeed
	// elsewhere: config.QuarantineOff, QuarantineWarn (default) or QuarantineOn.
	Quarantine string
	// QuarantineProbe is the first pause before a quarantined node may try
	// a task (default 60 s); see blame.NextTrial.
	QuarantineProbe time.Duration

	// HistoryFile keeps what this server has seen of the history of the namespace, so
	// that a loss of Redis is noticed also when everything was started anew; empty
	// for memory only.
	HistoryFile string
	// Events is how many events of tasks Redis keeps (default 10000; negative: none).
	Events int

	// Retention says how long archived tasks stay in Redis, each outcome once; those of others stay for ever.
	Retention []upkeep.Retention
	// ArchiveDir is where these tasks are written before they leave Redis; empty for nowhere. It needs Retention.
	ArchiveDir string
	// Version is that of the program, for the manifests there.
	Version string

	// after replaces time.After in tests.
	after func(time.Duration) <-chan time.Time
}

// FromConfig returns the options that the section [server] asks for.
func FromConfig(c config.Server) Options {
	return Options{
		Retention:     c.ArchiveRetention,
		ArchiveDir:    c.ArchiveDir,
		RoundDuration: c.RoundDuration, TimeoutGrace: graceOption(c.TimeoutGrace), WorkerTimeout: c.WorkerTimeout,
		BatchSize: c.BatchSize, RepairInterval: c.RepairInterval, RepairBatch: c.RepairBatch,
		Quarantine: c.Quarantine, QuarantineProbe: c.QuarantineProbe, HistoryFile: c.HistoryFile, Events: eventsOption(c.Events),
	}
}

// graceOption is the option for the setting, in which 0 means none: it is the
// shortest that Redis can hold.
func graceOption(setting time.Duration) time.Duration { return max(setting, time.Microsecond) }

// eventsOption is the option for the setting, in which 0 means none.
func eventsOption(setting int) int {
	if setting == 0 {
		return -1
	}
	return setting
}

// errOption is matched by every error about an option.
var errOption = errors.New("server option")

func (o *Options) complete() error {
	if o.Store == nil {
		return fmt.Errorf("%w Store is required: give the store of the namespace", errOption)
	}
	if err := config.ValidName("server", o.Name); err != nil {
		return fmt.Errorf("%w Name: %w", errOption, err)
	}
	if err := o.checkValues(); err != nil {
		return err
	}
	otherwise := FromConfig(config.Defaults().Server)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.RoundDuration = cmp.Or(o.RoundDuration, otherwise.RoundDuration)
	o.TimeoutGrace = cmp.Or(o.TimeoutGrace, otherwise.TimeoutGrace)
	o.WorkerTimeout = cmp.Or(o.WorkerTimeout, otherwise.WorkerTimeout)
	o.RepairInterval = cmp.Or(o.RepairInterval, otherwise.RepairInterval)
	o.BatchSize = cmp.Or(o.BatchSize, otherwise.BatchSize)
	o.RepairBatch = cmp.Or(o.RepairBatch, otherwise.RepairBatch)
	o.Quarantine = cmp.Or(o.Quarantine, otherwise.Quarantine)
	o.QuarantineProbe = cmp.Or(o.QuarantineProbe, otherwise.QuarantineProbe)
	o.Events = cmp.Or(o.Events, otherwise.Events)
	if o.after == nil {
		o.after = time.After
	}
	return nil
}

func (o *Options) checkValues() error {
	if min(o.RoundDuration, o.TimeoutGrace, o.WorkerTimeout, o.RepairInterval, o.QuarantineProbe) < 0 ||
		min(o.RepairBatch, o.BatchSize) < 0 || o.BatchSize > tasks.MaxMoves {
		return fmt.Errorf("%w: durations and batches must not be negative, and batches at most %d", errOption, tasks.MaxMoves)
	}
	if o.ArchiveDir != "" && len(o.Retention) == 0 {
		return fmt.Errorf("%w ArchiveDir: %q without Retention: nothing is ever written there; give both or none", errOption, o.ArchiveDir)
	}
	words := []string{"", config.QuarantineOff, config.QuarantineWarn, config.QuarantineOn}
	if !slices.Contains(words, o.Quarantine) {
		return fmt.Errorf("%w Quarantine: %q is not off, warn or on", errOption, o.Quarantine)
	}
	return nil
}

func (o *Options) grace() statemachine.Duration {
	return timing.FromStd(o.TimeoutGrace)
}
