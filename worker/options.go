package worker

import (
	"context"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/tdf-go/tdf/internal/config"
	"github.com/tdf-go/tdf/internal/process"
	"github.com/tdf-go/tdf/internal/store"
)

// Programs brings the program of a task onto this host; *fetch.Fetcher does.
type Programs interface {
	// Ensure returns the directory that holds the program's run.sh, after
	// fetching it from source if it is not there yet. note gets the lines of
	// progress for the task's log. The error stands in the round's record.
	Ensure(ctx context.Context, program, source string, note func(line string)) (dir string, err error)
}

// Options configures a Worker. Start from [DefaultOptions].
type Options struct {
	// Name is the worker's name in records, logs and file names. It should be
	// unique in its namespace. Required; see config.ValidName.
	Name string
	// Store is the namespace to work for. The caller closes it after Run. Required.
	Store *store.Store
	// Programs fetches programs. Required.
	Programs Programs
	// Log gets the worker's log; the zero value is silent.
	Log zerolog.Logger

	// OutputFile and ErrorFile name the files that receive all a program writes
	// to stdout and stderr; empty means none. $worker, $taskId, $round and
	// $program are replaced; missing directories are made; a relative name is
	// relative to the worker's working directory.
	OutputFile, ErrorFile string
	// OutputLimit is how many bytes of each stream are stored with the task; of
	// a longer one head and tail are kept. Default 1 MiB.
	OutputLimit int64

	// SleepAfterSuccess and SleepAfterFailure are pauses after a round that was
	// recorded without, or with, an error or was not recorded. Default 0.
	SleepAfterSuccess, SleepAfterFailure time.Duration
	// SleepAfterNoProcessClaimed bounds the wait of an idle worker, which is
	// normally woken when a task is due; above 1 s it has no effect. Default 1 s.
	SleepAfterNoProcessClaimed time.Duration

	// KillGrace is the time between SIGTERM and SIGKILL. Default 5 s.
	KillGrace time.Duration
	// StopTimeout bounds, once Run is cancelled and the program is stopped, the
	// attempts to tell Redis so. Default 5 s.
	StopTimeout time.Duration

	// Environ is the worker's own environment as NAME=value, from which programs
	// see the variables of process.DefaultAllow and those named in Environment,
	// never one that starts with TDF_. Default: that of this process.
	Environ []string
	// Environment names further variables programs may see; a trailing *
	// stands for any rest of the name.
	Environment []string
	// TempDir is where private directories of rounds and temporary files are
	// made. It must exist. Default: the system's directory for temporary files.
	TempDir string
}

// DefaultOptions gives the documented defaults; Name, Store and Programs remain
// to be set.
func DefaultOptions() Options {
	return Options{
		OutputLimit:                process.DefaultOutputLimit,
		SleepAfterNoProcessClaimed: time.Second,
		KillGrace:                  5 * time.Second,
		StopTimeout:                5 * time.Second,
		Environ:                    os.Environ(),
		TempDir:                    os.TempDir(),
	}
}

// FromConfig returns the options that the section [worker] asks for; Name, Store
// and Programs remain to be set. How programs are fetched is up to Programs.
func FromConfig(c config.Worker) Options {
	o := DefaultOptions()
	o.OutputFile, o.ErrorFile, o.OutputLimit = c.TaskOutputFilename, c.TaskErrorFilename, c.OutputLimit
	o.SleepAfterSuccess, o.SleepAfterFailure = c.SleepAfterSuccess, c.SleepAfterFailure
	o.SleepAfterNoProcessClaimed = c.SleepAfterNoProcessClaimed
	o.KillGrace, o.Environment = c.KillGrace, c.Environment
	if c.TempDir != "" {
		o.TempDir = c.TempDir
	}
	return o
}

func (o *Options) validate() error {
	if err := config.ValidName("worker", o.Name); err != nil {
		return err
	}
	switch {
	case o.Store == nil:
		return &OptionError{"Store", nil, "make one with store.Dial"}
	case o.Programs == nil:
		return &OptionError{"Programs", nil, "make a fetch.Fetcher"}
	case o.OutputLimit < 1 || o.OutputLimit > process.MaxOutputLimit:
		return &OptionError{"OutputLimit", o.OutputLimit, "use 1 byte to 512 MiB, or DefaultOptions"}
	case o.OutputFile != "" && o.OutputFile == o.ErrorFile:
		return &OptionError{"ErrorFile", o.ErrorFile, "stdout and stderr need different files"}
	}
	if fi, err := os.Stat(o.TempDir); err != nil || !fi.IsDir() {
		return &OptionError{"TempDir", o.TempDir, "name an existing directory"}
	}
	return o.validateTimes()
}

func (o *Options) validateTimes() error {
	for _, d := range []struct {
		field string
		value time.Duration
		least time.Duration
	}{
		{"SleepAfterSuccess", o.SleepAfterSuccess, 0}, {"SleepAfterFailure", o.SleepAfterFailure, 0},
		{"SleepAfterNoProcessClaimed", o.SleepAfterNoProcessClaimed, time.Millisecond},
		{"KillGrace", o.KillGrace, 0}, {"StopTimeout", o.StopTimeout, time.Millisecond},
	} {
		if d.value < d.least {
			return &OptionError{d.field, d.value, "use at least " + d.least.String() + ", or DefaultOptions"}
		}
	}
	return nil
}
