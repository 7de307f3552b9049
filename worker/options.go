package worker

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/task"
)

// Programs brings the program of a task onto this host; *fetch.Fetcher does.
type Programs interface {
	// Ensure returns the directory that holds the program's run.sh, after
	// fetching it from source if it is not there yet. note gets the lines of
	// progress for the task's log. The error stands in the round's record.
	Ensure(ctx context.Context, program, source string, note func(line string)) (dir string, err error)
	// Hash returns the SHA-256 of what was installed, in hex; empty if unknown.
	Hash(program string) (string, error)
}

// Options configures a Worker. Start from [DefaultOptions].
type Options struct {
	// Name is the worker's name in the registry, in records, logs and file
	// names. While it is alive no second worker of its namespace can have it.
	// Required; see config.ValidName.
	Name string
	// Backend is the site to work for. Required; [Load] makes it.
	Backend Backend
	// Programs fetches programs, Container runs them. Required, unless there are
	// only Handlers.
	Programs  Programs
	Container *shim.Container
	// Handlers are Go functions by program name. They do what a program of that
	// name would do, in this process (Flock: task handler).
	Handlers map[string]Handler
	// RunPrograms makes [Load] fetch and run the programs of tasks that have no
	// handler; without handlers it always does. Default false.
	RunPrograms bool
	// Log gets the worker's log; nil is silent.
	Log *slog.Logger

	// Slots is how many tasks run at a time. Default: the number of cores.
	Slots int
	// Node names the host in records. Default: the host's name.
	Node string
	// Env is the environment that the worker offers (Flock): a task that demands
	// one runs only where it is the same. Default: none.
	Env string
	// Labels are the label=value pairs that the worker offers to tasks.
	Labels []string
	// Resources is what the node has in all of what tasks ask for, by name, each
	// at least 1. The workers of a node share it and should all say the same.
	Resources map[string]int
	// Classes are the classes of queues that the worker serves, each name or
	// name=version; a queue without a class it serves in any case. Default: the
	// names of the handlers.
	Classes []string
	// MaxThreads is how many tasks may run at a time on the node, over all queues
	// and all its workers, where nobody has set that for the node; 0 means
	// nothing new, -1 no limit. Default -1.
	MaxThreads int
	// Version is the version of the program that this worker is part of, for the registry.
	Version string

	// OutputFile and ErrorFile name the files that receive all a program writes
	// to stdout and stderr; empty means none. $worker, $taskId, $round and
	// $program are replaced; missing directories are made; a relative name is
	// relative to the worker's working directory.
	OutputFile, ErrorFile string
	// OutputLimit is how many bytes of each stream are stored with the task; of
	// a longer one head and tail are kept. Default 1 MiB.
	OutputLimit int64
	// KeepRounds is of how many rounds a task keeps its output: the first half and
	// the last half, rounded up. Default 10; 0 means all.
	KeepRounds int

	// SleepAfterSuccess and SleepAfterFailure are pauses of a slot after a round
	// that was recorded without, or with, an error or was not recorded. Default 0.
	SleepAfterSuccess, SleepAfterFailure time.Duration
	// SleepInitial, SleepIncrease and SleepMax bound the waits of an idle worker, which
	// is normally woken when a task is due: the first SleepInitial, each of those that
	// follow SleepIncrease times as long, none longer than SleepMax, in whole
	// milliseconds; after a task they begin anew (zk-plan: initial, increase, max).
	// Default 100 ms, 1.5, 10 s.
	SleepInitial  time.Duration
	SleepIncrease float64
	SleepMax      time.Duration
	// SleepAfterNoProcessClaimed bounds each of these waits too (TDF document).
	// Default 0, which is no such bound.
	SleepAfterNoProcessClaimed time.Duration

	// KillGrace is the time between SIGTERM and SIGKILL. Default 5 s.
	KillGrace time.Duration
	// DrainTimeout is how long programs may go on once Run is cancelled. Default 20 s.
	DrainTimeout time.Duration
	// StopTimeout bounds, once nothing runs any more, the attempts to tell Redis
	// so. Default 5 s.
	StopTimeout time.Duration
	// FinishWithoutRedis lets programs go on beyond the lease while nothing
	// listens where Redis was. Default: they are stopped.
	FinishWithoutRedis bool

	// Environ is the worker's own environment as NAME=value, from which programs
	// see the variables of process.DefaultAllow and those named in Environment,
	// never one that starts with TDF_. Default: that of this process.
	Environ []string
	// Environment names further variables programs may see; a trailing *
	// stands for any rest of the name.
	Environment []string
	// TempDir is where private directories of rounds are made. It must exist.
	// Default: the system's directory for temporary files.
	TempDir string
	// ProgramDir is watched for free space. Default: the working directory.
	ProgramDir string
	// SpoolDir keeps results that could not be delivered; it is made when
	// needed. Default: .tdf/spool in ProgramDir.
	SpoolDir string
	// DiskReserve is the free space, in bytes, below which nothing is claimed.
	// Default 64 MiB; 0 means none.
	DiskReserve int64
}

// maxOutputLimit is the greatest limit of stored output: the room of one Redis
// string is 512 MiB, and a request may hold both streams.
const maxOutputLimit = 256 << 20

// maxIncrease is the greatest factor between two waits.
const maxIncrease = 1000

// DefaultOptions gives the documented defaults; Name, Backend, Programs and
// Container remain to be set.
func DefaultOptions() Options { return FromConfig(config.Defaults().Worker) }

// FromConfig returns the options that the section [worker] asks for; Name,
// Backend, Programs and Container remain to be set. How programs are fetched and
// contained is up to those.
func FromConfig(c config.Worker) Options {
	host, _ := os.Hostname() // an unnamed host is no reason not to work
	return Options{
		Slots: cmp.Or(c.Slots, runtime.NumCPU()), Node: cmp.Or(c.Node, host),
		Env: c.Env, Labels: c.Labels, Resources: c.Resources, Classes: c.Classes, MaxThreads: int(c.MaxThreads),
		OutputFile: c.TaskOutputFilename, ErrorFile: c.TaskErrorFilename, OutputLimit: c.OutputLimit, KeepRounds: c.KeepRounds,
		SleepAfterSuccess: c.SleepAfterSuccess, SleepAfterFailure: c.SleepAfterFailure,
		SleepInitial: c.SleepInitial, SleepIncrease: c.SleepIncrease, SleepMax: c.SleepMax,
		SleepAfterNoProcessClaimed: c.SleepAfterNoProcessClaimed,
		KillGrace:                  c.KillGrace, DrainTimeout: c.DrainTimeout, StopTimeout: 5 * time.Second,
		FinishWithoutRedis: c.OnRedisLoss == "finish",
		Environ:            os.Environ(), Environment: c.Environment,
		TempDir: cmp.Or(c.TempDir, os.TempDir()), ProgramDir: c.ProgramDir, SpoolDir: c.SpoolDir, DiskReserve: c.DiskReserve,
	}
}

// Containment returns how the section [worker] asks programs to be contained,
// for the worker of that name in that namespace of that Redis.
func Containment(c config.Worker, where config.Redis, namespace, name string) shim.Options {
	o := shim.Options{
		Name: where.Mark() + "/" + namespace + "/" + name, Require: c.RequireContainment, CgroupDir: c.Cgroup, RunAs: c.RunAs,
		Wrapper: strings.Fields(c.Wrapper), MemoryMax: c.MemoryMax, PidsMax: c.PidsMax, Rlimits: c.Rlimits,
	}
	if c.Containment != "auto" {
		o.Want = shim.Layer(c.Containment)
	}
	return o
}

func (o *Options) validate() error {
	if err := config.ValidName("worker", o.Name); err != nil {
		return err
	}
	if o.SpoolDir == "" {
		o.SpoolDir = filepath.Join(o.ProgramDir, ".tdf", "spool")
	}
	switch {
	case o.Backend == nil:
		return &OptionError{"Backend", nil, "use Load, which makes one, or give one"}
	case !o.runsPrograms() && len(o.Handlers) == 0:
		return &OptionError{"Programs", nil, "make a fetch.Fetcher and a shim.Container, or register a handler"}
	case o.Slots < 1:
		return &OptionError{"Slots", o.Slots, "use at least 1, or DefaultOptions"}
	case o.OutputLimit < 1 || o.OutputLimit > maxOutputLimit:
		return &OptionError{"OutputLimit", o.OutputLimit, "use 1 byte to 256 MiB, or DefaultOptions"}
	case o.OutputFile != "" && filepath.Clean(o.OutputFile) == filepath.Clean(o.ErrorFile):
		return &OptionError{"ErrorFile", o.ErrorFile, "stdout and stderr need different files"}
	}
	if fi, err := os.Stat(o.TempDir); err != nil || !fi.IsDir() {
		return &OptionError{"TempDir", o.TempDir, "name an existing directory"}
	}
	if err := o.validateOffer(); err != nil {
		return err
	}
	return o.validateNumbers()
}

func (o *Options) validateNumbers() error {
	switch {
	case o.KeepRounds < 0:
		return &OptionError{"KeepRounds", o.KeepRounds, "use 0 for all, or a number of rounds"}
	case o.MaxThreads < noMaxThreads:
		return &OptionError{"MaxThreads", o.MaxThreads, "use -1 for no limit, 0 for nothing new, or a number of tasks"}
	case !(o.SleepIncrease >= 1 && o.SleepIncrease <= maxIncrease): // the form is true for NaN
		return &OptionError{"SleepIncrease", o.SleepIncrease, "use 1 to 1000, or DefaultOptions"}
	case o.DiskReserve < 0:
		return &OptionError{"DiskReserve", o.DiskReserve, "use 0 for none, or a number of bytes"}
	}
	for _, d := range []struct {
		field string
		value time.Duration
		least time.Duration
	}{
		{"SleepAfterSuccess", o.SleepAfterSuccess, 0}, {"SleepAfterFailure", o.SleepAfterFailure, 0},
		{"SleepAfterNoProcessClaimed", o.SleepAfterNoProcessClaimed, 0},
		{"SleepInitial", o.SleepInitial, time.Millisecond}, {"SleepMax", o.SleepMax, time.Millisecond},
		{"KillGrace", o.KillGrace, 0}, {"DrainTimeout", o.DrainTimeout, 0}, {"StopTimeout", o.StopTimeout, time.Millisecond},
	} {
		if d.value < d.least {
			return &OptionError{d.field, d.value, "use at least " + d.least.String() + ", or DefaultOptions"}
		}
	}
	return nil
}

// noMaxThreads is Options.MaxThreads without a limit.
const noMaxThreads = int(task.NoLimit)

// runsPrograms reports whether the worker can run what it has no handler for.
func (o *Options) runsPrograms() bool { return o.Programs != nil && o.Container != nil }

// offer is what decides which tasks this worker may take. The classes of its
// handlers are theirs, unless it is told its classes.
func (o *Options) offer() task.Offer {
	offer := task.Offer{
		Worker: o.Name, Node: o.Node, Env: o.Env, Labels: slices.Sorted(slices.Values(o.Labels)),
		Resources: o.Resources, Classes: slices.Clone(o.Classes), MaxThreads: task.Limit(max(o.MaxThreads, noMaxThreads)),
	}
	if len(o.Classes) == 0 {
		offer.Classes = o.handlerClasses()
	}
	return offer
}

// handlerClasses are the names of the handlers that a queue can have as class.
func (o *Options) handlerClasses() []string {
	names := slices.Sorted(maps.Keys(o.Handlers))
	return slices.DeleteFunc(names, func(name string) bool { return task.CheckClass(name) != nil })
}

// validateOffer checks by the rules for tasks, queues and nodes, which would
// never match anything else.
func (o *Options) validateOffer() error {
	if err := task.CheckEnv(o.Env); err != nil {
		return &OptionError{"Env", o.Env, err.Error()}
	}
	for _, label := range o.Labels {
		if _, err := task.ParseLabels(label); err != nil || label == "" || strings.Contains(label, ",") {
			return &OptionError{"Labels", label, "write each as label=value, without blanks and commas"}
		}
	}
	for _, class := range o.Classes {
		if err := task.CheckOffer(class); err != nil {
			return &OptionError{"Classes", class, err.Error()}
		}
	}
	if _, err := task.ParseResources(task.Resources(o.Resources).Text()); err != nil {
		return &OptionError{"Resources", o.Resources, err.Error()}
	}
	return nil
}
