package server

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
)

// backend is the namespace as a server needs it, loop by loop; the store in Redis is one.
type backend interface {
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

var _ backend = (*store.Store)(nil)

// Options say how a server works. The zero value has the defaults.
type Options struct {
	// Name stands in the logs of tasks. Default: server.
	Name string
	// Logger gets the server's log. Default: that of the site.
	Logger *slog.Logger
	Settings
	// Version is that of the program, for the manifests in ArchiveDir.
	Version string
}

// Settings are what the section [server] of a configuration says. A zero field takes
// the value of the site's configuration, or else its default; a negative number stands
// for 0.
type Settings struct {
	// RoundDuration is the longest time between two passes over due tasks; woken, the
	// server reacts at once. Default 1.3 s.
	RoundDuration time.Duration
	// TimeoutGrace is how long after a task's timeout the server leaves its round to the
	// worker. Default 10 s.
	TimeoutGrace time.Duration
	// WorkerTimeout is the lease: a worker that is silent for longer is lost. Default
	// 15 s.
	WorkerTimeout time.Duration
	// Quarantine is off, warn or on: whether nodes are judged by the failures of their
	// tasks, and whether those at fault get none. QuarantineProbe is the time between
	// two probes of such a node. Default warn, 1 min, which
	// doubles with each probe that fails.
	Quarantine      string
	QuarantineProbe time.Duration
	// HistoryFile is where the server keeps what it has seen of Redis, so that it notices
	// a loss. Default: none.
	HistoryFile string
	// Events is about how many changes of tasks are kept as events. Default 10,000; none if
	// negative.
	Events int
	// BlobLimit is the most bytes of one upload, or of the files that one round returns, BlobQuota of
	// all of them that Redis keeps. Default 64 MiB, 1 GiB.
	BlobLimit int64
	BlobQuota int64
	// FileRetention is how long the files are kept that rounds return. Default 7 days.
	FileRetention time.Duration
	// ArchiveRetention is how long, and how many, archived tasks stay in Redis, by outcome.
	// Outcomes that are not named stay for ever. Default: none.
	ArchiveRetention []Retention
	// ArchiveDir is the directory that they are written to before. Default: none.
	ArchiveDir string
	// BatchSize is how many tasks are settled in one call. Default 100.
	BatchSize int
	// RepairInterval is the time between two looks at RepairBatch records each, for
	// damage and for tasks of other clients. Default 5 s, 1000.
	RepairInterval time.Duration
	RepairBatch    int
}

// Retention is how long, and how many, tasks of an outcome stay.
type Retention = config.Retention

// options are what New makes of the options and the site.
type options struct {
	Options

	store backend
	// after replaces time.After in tests.
	after func(time.Duration) <-chan time.Time
}

// New returns a server for a site, on connections of its own. The error names the option
// that is wrong.
func New(site *tdf.Site, o Options) (*Server, error) {
	file := site.Internal.File
	o.Name, o.Logger = cmp.Or(o.Name, "server"), cmp.Or(o.Logger, site.Internal.Log)
	o.Settings = Settings(config.Complete(config.Server(o.Settings), file.Server))
	// Without retries: the server must know when Redis was away, because the silence of
	// workers means nothing then.
	st, err := site.Internal.Dial(conn.WithRetries(-1))
	if err != nil {
		return nil, err
	}
	s, err := assemble(options{Options: o, store: st})
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	s.close = st.Close
	return s, nil
}

// errOption is matched by every error about an option.
var errOption = errors.New("server option")

func (o *options) complete() error {
	if err := config.ValidName("server", o.Name); err != nil {
		return fmt.Errorf("%w Name: %w", errOption, err)
	}
	if err := o.checkValues(); err != nil {
		return err
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.after == nil {
		o.after = time.After
	}
	return nil
}

func (o *options) checkValues() error {
	switch {
	case min(o.RoundDuration, o.WorkerTimeout, o.RepairInterval, o.QuarantineProbe, o.FileRetention) <= 0 || o.TimeoutGrace < 0 ||
		min(o.RepairBatch, o.BatchSize) <= 0 || min(o.BlobLimit, o.BlobQuota) <= 0 || o.BatchSize > tasks.MaxMoves:
		return fmt.Errorf("%w: durations, batches and room for blobs must be above 0, but TimeoutGrace may be 0, and batches at most %d",
			errOption, tasks.MaxMoves)
	case o.ArchiveDir != "" && len(o.ArchiveRetention) == 0:
		return fmt.Errorf("%w ArchiveDir: %q without ArchiveRetention: nothing is ever written there; give both or none", errOption, o.ArchiveDir)
	case !slices.Contains([]string{config.QuarantineOff, config.QuarantineWarn, config.QuarantineOn}, o.Quarantine):
		return fmt.Errorf("%w Quarantine: %q is not off, warn or on", errOption, o.Quarantine)
	}
	return nil
}

// grace is never 0, which Redis cannot hold.
func (o *options) grace() statemachine.Duration {
	return timing.FromStd(max(o.TimeoutGrace, time.Microsecond))
}
