package worker

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/sandbox/cgroup"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Programs brings the program of a task onto this host; *fetch.Fetcher does.
type Programs interface {
	// Ensure returns the version of the program that source means, after fetching it
	// if it is not there yet. note gets the lines of progress for the task's log. The
	// error stands in the round's record.
	Ensure(ctx context.Context, program, source string, note func(line string)) (fetch.Version, error)
}

// Options say how a worker works. The zero value has the defaults.
type Options struct {
	// Name is the worker's name in the registry, in records, logs and file names: 1 to 128
	// printable characters without a slash. While it is alive no second worker of its
	// namespace can have it. Default: one made of host, process and chance.
	Name string
	// Logger gets the worker's log. Default: that of the site.
	Logger *slog.Logger
	// Handlers are Go functions by program name. They do what a program of that name
	// would do, in this process.
	Handlers map[string]Handler
	// Middleware wraps every handler, the first function outermost: for traces, metrics, a
	// limit of time. It sees the error of the handler before the worker does.
	Middleware []func(Handler) Handler
	// RunPrograms lets the worker fetch and run the programs of tasks that have no handler.
	// Without handlers it always does.
	RunPrograms bool
	Settings
	// Backend is the site to work for, where that is not reached through Redis.
	Backend Backend
	// Programs fetches programs. Default: as the settings say.
	Programs Programs
	// Version is the version of the program that this worker is part of, for the registry.
	Version string
	// OnReport, if it is not nil, hears of each round whose report was answered. Calls come from many goroutines, and hold up the
	// rounds: it must not wait for anything.
	OnReport func(Reported)
}

// Reported is a round of a worker whose report was answered.
type Reported struct {
	// Queue is that of the task.
	Queue string
	// Event is what was reported: Report, StopOverdue, Terminate or HandBack. Failed says of a Report that the round has failed.
	Event  statemachine.Event
	Failed bool
	// Refused is why the report was refused, mostly since the round is not this worker's any more; nil if it is recorded.
	Refused error
	// Waited is how long the task had waited when the round began, since it could start; negative if that is not known: of tasks with
	// needs, and of rounds that follow one that was lost, overdue or handed back.
	Waited time.Duration
	// Ran is how long the round took here, fetch included.
	Ran time.Duration
}

// Settings are what the section [worker] of a configuration says. A zero field takes
// the value of the site's configuration, or else its default; a negative number stands
// for 0.
type Settings struct {
	// Slots is how many tasks run at a time. Default: the number of cores.
	Slots int
	// Ahead is how many tasks may be claimed before a slot is free for them, while programs take less than 10 ms on average.
	// Default 4, at most 4; none if negative.
	Ahead int
	// Node names the host in records. Default: the host's name.
	Node string
	// Env is the environment that the worker offers: a task that demands one runs only
	// where it is the same. Default: none.
	Env string
	// Labels are the label=value pairs that the worker offers to tasks.
	Labels []string
	// Resources is what the node has in all of what tasks ask for, by name, each
	// at least 1. The workers of a node share it and should all say the same. [task.CPUs] is
	// not among it; [task.Memory], if it is not, is what the host has.
	Resources task.Resources
	// Classes are the classes that the worker serves, each name or name=version: it
	// takes the tasks that have such a class, or whose queue has one while they have
	// none. Tasks without any class it takes too if it runs programs, never if it has
	// only handlers. Default: the names of the handlers.
	Classes []string
	// MaxThreads is how many tasks may run at a time on the node, over all queues
	// and all its workers, where nobody has set that for the node. Default: no limit.
	MaxThreads task.Limit

	// OutputFile and ErrorFile name the files that receive all a program writes
	// to stdout and stderr; empty means none. $worker, $taskId, $round and
	// $program are replaced; missing directories are made; a relative name is
	// relative to the worker's working directory.
	OutputFile, ErrorFile string
	// OutputLimit is how many bytes of each stream are stored with the task; of
	// a longer one head and tail are kept. Default 1 MiB, at most 256 MiB.
	OutputLimit int64
	// OutputMax is how many bytes of a stream longer than OutputLimit are kept beside the record, compressed and for a time
	// ([server] file_retention). Of a still longer one so many are kept, and the end. Default 64 MiB, at most 512 MiB; none
	// if negative.
	OutputMax int64
	// KeepRounds is the number of rounds whose output a task keeps: the first half and the
	// last half, rounded up. Default 10; all if negative.
	KeepRounds int
	// Settle is worker or server: who settles a success. Default worker, together with its
	// report; what the task is in a plan of, or was not as its worker thought, and all that
	// fails, is always a server's.
	Settle string

	// SleepAfterSuccess and SleepAfterFailure are pauses of a slot after a round
	// that was recorded without, or with, an error or was not recorded. Default 0.
	SleepAfterSuccess, SleepAfterFailure time.Duration
	// SleepInitial, SleepIncrease and SleepMax bound the waits of an idle worker, which
	// is normally woken when a task is due: the first SleepInitial, each of those that
	// follow SleepIncrease times as long, none longer than SleepMax, in whole
	// milliseconds; after a task they begin anew. Default 100 ms, 1.5, 10 s.
	SleepInitial  time.Duration
	SleepIncrease float64
	SleepMax      time.Duration
	// SleepAfterNoProcessClaimed bounds each of these waits too. Default: no such
	// bound.
	SleepAfterNoProcessClaimed time.Duration

	// KillGrace is the time between SIGTERM and SIGKILL. Default 5 s.
	// DrainTimeout is how long programs may go on once Run is cancelled. Default 20 s.
	KillGrace, DrainTimeout time.Duration
	// OnRedisLoss is stop or finish: whether programs may go on beyond the lease while
	// nothing listens where Redis was. Default stop.
	OnRedisLoss string

	// ProgramDir holds one directory for each program. Default: the working directory.
	// TempDir, which must exist, is where private directories of rounds are made. Default:
	// the system's. SpoolDir keeps results that could not be delivered; it is made when
	// needed. Default: .tdf/spool in ProgramDir.
	ProgramDir, TempDir, SpoolDir string
	// Workdir is private or shared: whether each round runs in a directory of its own that
	// shows the program's files and is removed after it, or all rounds of a version in one
	// that stays. Default private; a task may say otherwise (task.Spec.Workdir).
	Workdir string
	// Commands is on or off: whether tasks can run commands of this host (see
	// task.CommandPrefix), or only programs. Default on.
	Commands string
	// ProgramCache is the room for versions of programs in ProgramDir, in bytes; see
	// fetch.Options.CacheBytes. Default 10 GiB; no limit if negative.
	ProgramCache int64
	// DiskReserve is the free space, in bytes, below which nothing is claimed.
	// Default 64 MiB; none if negative.
	DiskReserve int64

	// Environment names variables of this process that programs may see beside the usual
	// ones; a trailing * stands for any rest of the name. Those of TDF they never see.
	Environment []string
	// Containment is auto, pidns, cgroup or group: what keeps programs from surviving their
	// round. Default auto, the best that is available. RequireContainment refuses to run
	// where it is not.
	Containment        string
	RequireContainment bool
	// Cgroup is the directory below which the worker may make control groups. Default: its
	// own.
	Cgroup string
	// RunAs is the user, or user:group, that programs run as. Default: the worker's.
	RunAs string
	// Wrapper are words before ./run.sh, split at blanks.
	Wrapper string
	// Rlimits are the limits of a program, by the names of setrlimit in small letters.
	Rlimits map[string]uint64
	// MemoryMax, in bytes, and PidsMax bound all processes of a round, by control group.
	// Default: no limit.
	MemoryMax int64
	PidsMax   int

	// FetchTimeout is the longest time to fetch and unpack a program. Default 10 min.
	FetchTimeout time.Duration
	// FetchMaxBytes bounds a program, FetchMaxFileBytes each of its files,
	// FetchMaxEntries their number. Default 1 GiB, 512 MiB, 100,000.
	FetchMaxBytes, FetchMaxFileBytes int64
	FetchMaxEntries                  int
	// FetchMaxRedirects is how many redirects of a download are followed. Default 5.
	FetchMaxRedirects int
	// Revalidate is for how long a source without #sha256=HEX is taken for unchanged; a
	// local path is looked at before each round. Default 60 s.
	Revalidate time.Duration
	// NetrcFile has the logins of http and https sources, CAFile the authorities to trust
	// for https instead of the system's.
	NetrcFile, CAFile string
	// SSHOptions are words for ssh when rsync uses it; RsyncPath is the rsync program.
	SSHOptions, RsyncPath string
	// RequirePinned refuses sources without #sha256=HEX, and with them commands.
	RequirePinned bool
}

// options are what New makes of the options and the site.
type options struct {
	Options

	// container runs programs; nil for handlers alone.
	container *shim.Container
	// errands does what is asked about the programs; nil where others keep them.
	errands func(context.Context, *task.Errand) ([]task.StoredVersion, error)
	// environ is the environment of this process as NAME=value.
	environ []string
	// aheadTime bounds the work that is claimed ahead, and how long such a task waits for a slot before it is handed back.
	aheadTime time.Duration
	// goneWait is how long a task waits whose version no worker has.
	goneWait time.Duration
	// stopTimeout bounds, once nothing runs any more, the attempts to tell the site so.
	stopTimeout time.Duration
}

// complete fills in what is at zero, from a configuration and this host.
func complete(o Options, c config.Worker) options {
	host, _ := os.Hostname() // an unnamed host is no reason not to work
	o.Settings = Settings(config.Complete(config.Worker(o.Settings), c))
	if o.RequirePinned { // a command has no hash
		o.Commands = config.CommandsOff
	}
	o.Slots, o.Node, o.TempDir = cmp.Or(o.Slots, runtime.NumCPU()), cmp.Or(o.Node, host), cmp.Or(o.TempDir, os.TempDir())
	o.SpoolDir = cmp.Or(o.SpoolDir, filepath.Join(o.ProgramDir, ".tdf", "spool"))
	o.Name = cmp.Or(o.Name, fmt.Sprintf("%s-%d-%.6s", o.Node, os.Getpid(), newToken()))
	return options{Options: o, environ: os.Environ(), aheadTime: 20 * time.Millisecond, goneWait: goneWait, stopTimeout: 5 * time.Second}
}

// maxOutputLimit is the greatest limit of stored output: the room of one Redis
// string is 512 MiB, and a request may hold both streams.
const maxOutputLimit = 256 << 20

// maxOutputMax is what may be packed in one file.
const maxOutputMax = 512 << 20

// maxIncrease is the greatest factor between two waits.
const maxIncrease = 1000

// containment is how programs are to be contained by a worker for a site of that name.
func (o *options) containment(site string) shim.Options {
	c := shim.Options{
		Name: site + "/" + o.Name, Require: o.RequireContainment, CgroupDir: o.Cgroup, RunAs: o.RunAs,
		Wrapper: strings.Fields(o.Wrapper), MemoryMax: o.MemoryMax, PidsMax: o.PidsMax, Rlimits: o.Rlimits, TempDir: o.TempDir, Log: o.Logger,
	}
	if o.Containment != "auto" {
		c.Want = shim.Layer(o.Containment)
	}
	return c
}

// fetching is how programs are fetched.
func (o *options) fetching() fetch.Options {
	f := fetch.DefaultOptions()
	f.Dir, f.Worker = o.ProgramDir, o.Name
	f.MaxBytes, f.MaxFileBytes, f.MaxEntries = o.FetchMaxBytes, o.FetchMaxFileBytes, o.FetchMaxEntries
	f.CacheBytes = o.ProgramCache
	f.MaxRedirects, f.Timeout, f.Revalidate = o.FetchMaxRedirects, o.FetchTimeout, o.Revalidate
	f.NetrcFile, f.CAFile = o.NetrcFile, o.CAFile
	f.SSHExtra = strings.Fields(o.SSHOptions)
	f.RsyncPath, f.RequirePinned = o.RsyncPath, o.RequirePinned
	return f
}

func (o *options) validate() error {
	switch {
	case o.Backend == nil:
		return &OptionError{"Backend", nil, "give a site, or a backend"}
	case o.OutputMax > maxOutputMax:
		return &OptionError{"OutputMax", o.OutputMax, "use at most 512 MiB; a negative number for none"}
	case o.OutputLimit < 1 || o.OutputLimit > maxOutputLimit:
		return &OptionError{"OutputLimit", o.OutputLimit, "use 1 byte to 256 MiB; 0 for the default"}
	case o.OutputFile != "" && filepath.Clean(o.OutputFile) == filepath.Clean(o.ErrorFile):
		return &OptionError{"ErrorFile", o.ErrorFile, "stdout and stderr need different files"}
	}
	if fi, err := os.Stat(o.TempDir); err != nil || !fi.IsDir() {
		return &OptionError{"TempDir", o.TempDir, "name an existing directory; [worker] temp_dir in a configuration"}
	}
	if err := o.validateOffer(); err != nil {
		return err
	}
	return o.validateNumbers()
}

func (o *options) validateNumbers() error {
	if _, err := task.ParseLimit(string(o.MaxThreads)); err != nil {
		return &OptionError{"MaxThreads", o.MaxThreads, "use task.Unlimited, or task.AtMost some number"}
	}
	switch {
	case !(o.SleepIncrease >= 1 && o.SleepIncrease <= maxIncrease): // the form is true for NaN
		return &OptionError{"SleepIncrease", o.SleepIncrease, "use 1 to 1000; 0 for the default"}
	case o.SleepInitial < time.Millisecond:
		return &OptionError{"SleepInitial", o.SleepInitial, "use at least 1ms; 0 for the default"}
	case o.SleepMax < time.Millisecond:
		return &OptionError{"SleepMax", o.SleepMax, "use at least 1ms; 0 for the default"}
	case o.OnRedisLoss != config.StopOnLoss && o.OnRedisLoss != config.FinishOnLoss:
		return &OptionError{"OnRedisLoss", o.OnRedisLoss, "use stop or finish"}
	case o.Ahead > config.MaxAhead:
		return &OptionError{"Ahead", o.Ahead, "use at most 4; a negative number for none"}
	case o.Workdir != task.WorkdirPrivate && o.Workdir != task.WorkdirShared:
		return &OptionError{"Workdir", o.Workdir, "use private or shared"}
	case o.Commands != config.CommandsOn && o.Commands != config.CommandsOff:
		return &OptionError{"Commands", o.Commands, "use on or off"}
	case o.Settle != config.SettleByWorker && o.Settle != config.SettleByServer:
		return &OptionError{"Settle", o.Settle, "use worker or server"}
	}
	return nil
}

// commandsLabel begins the label that each worker offers, with the value of Commands behind it.
var commandsLabel = strings.TrimSuffix(task.CommandsLabel, config.CommandsOn)

// offer is what decides which tasks this worker may take. The classes of its
// handlers are theirs, unless it is told its classes.
func (o *options) offer() task.Offer {
	labels := slices.Clone(o.Labels)
	if o.container != nil {
		labels = append(labels, commandsLabel+o.Commands) // a task with a command asks for task.CommandsLabel
	}
	labels = append(labels, o.limitLabels()...)
	slices.Sort(labels)
	offer := task.Offer{
		Worker: o.Name, Node: o.Node, Env: o.Env, Labels: labels,
		Resources: o.measured(), Classes: slices.Clone(o.Classes), MaxThreads: o.MaxThreads,
		HandlersOnly: o.container == nil, Slots: o.Slots,
	}
	if len(o.Classes) == 0 {
		offer.Classes = o.handlerClasses()
	}
	return offer
}

// measured are the resources with the memory of the host, unless they say it.
func (o *Options) measured() task.Resources {
	most := task.Resources{}
	if mem := cgroup.Memory() >> 20; mem > 0 {
		most[task.Memory] = int(min(mem, math.MaxInt32))
	}
	maps.Copy(most, o.Resources)
	return most
}

// limitLabels say which limits of tasks this worker can keep: those that it has itself.
func (o *options) limitLabels() (labels []string) {
	if o.container != nil && o.MemoryMax > 0 {
		labels = append(labels, task.LimitLabel("memory_max"))
	}
	if o.container != nil && o.PidsMax > 0 {
		labels = append(labels, task.LimitLabel("pids_max"))
	}
	return labels
}

// handlerClasses are the names of the handlers that a task can have as class.
func (o *options) handlerClasses() []string {
	names := slices.Sorted(maps.Keys(o.Handlers))
	return slices.DeleteFunc(names, func(name string) bool { return task.CheckClass(name) != nil })
}

// validateOffer checks by the rules for tasks, queues and nodes, which would
// never match anything else.
func (o *options) validateOffer() error {
	if err := task.CheckEnv(o.Env); err != nil {
		return &OptionError{"Env", o.Env, err.Error()}
	}
	for _, label := range o.Labels {
		name, _, _ := strings.Cut(label, "=")
		if slices.Contains([]string{"commands", "memory_max", "pids_max"}, name) {
			return &OptionError{"Labels", label, "set " + name + ": this label says what that is"}
		}
		if _, err := task.ParseLabels(label); err != nil || label == "" || strings.Contains(label, ",") {
			return &OptionError{"Labels", label, "write each as label=value, without blanks and commas"}
		}
	}
	for _, class := range o.Classes {
		if err := task.CheckOffer(class); err != nil {
			return &OptionError{"Classes", class, err.Error()}
		}
	}
	if _, err := task.ParseResources(o.measured().Text()); err != nil {
		return &OptionError{"Resources", o.Resources, err.Error()}
	}
	if _, given := o.Resources[task.CPUs]; given {
		return &OptionError{"Resources", o.Resources, "leave " + task.CPUs + " out: it is the number of slots"}
	}
	return nil
}
