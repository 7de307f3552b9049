package config

import (
	"time"

	"github.com/tdf-go/tdf/internal/route"
)

// Worker holds the section [worker].
type Worker struct {
	// Slots is how many tasks run at a time; 0 (default) means the number of cores.
	Slots int
	// Node names the host in records and in the registry; empty means its host name.
	Node string
	// Labels are the label=value pairs this worker offers.
	Labels []string
	// Env is the environment that tasks may demand; empty (default) means none.
	Env string
	// Resources is what the node has in all, by name.
	Resources route.Resources
	// Classes are the classes of queues this worker serves, each name or
	// name=version; none (default) means all.
	Classes []string
	// MaxThreads is how many tasks may run at a time on the node, over all
	// queues and workers, unless the node itself is set (default route.NoLimit).
	MaxThreads route.Limit
	// DrainTimeout is how long running programs may go on after the first
	// signal before their tasks are handed back (default 20s).
	DrainTimeout time.Duration
	// OnRedisLoss says what becomes of running programs when the lease cannot be
	// renewed because nothing listens where Redis was: "stop" (default) or "finish".
	OnRedisLoss string

	// Containment is "auto" (default), "pidns", "cgroup" or "group".
	Containment string
	// RequireContainment refuses to start where Containment, or for "auto" any
	// layer that a program cannot leave, is not available (default false).
	RequireContainment bool
	// Cgroup is the directory below which cgroups are made; empty means the
	// worker's own cgroup.
	Cgroup string
	// RunAs is the user, or user:group, programs run as; empty means the worker's own.
	RunAs string
	// Wrapper are the words put before ./run.sh.
	Wrapper string
	// Rlimits are resource limits of programs, each name=value.
	Rlimits []string
	// MemoryMax limits the memory of all processes of a round, in bytes; 0 (default) means no limit.
	MemoryMax int64
	// PidsMax limits the processes and threads of a round; 0 (default) means no limit.
	PidsMax int
	// DiskReserve is the free space, in bytes, below which nothing is claimed
	// (default 64 MiB; 0 means none).
	DiskReserve int64
	// KeepRounds is of how many rounds a task keeps its output, first and last
	// ones (default 10; 0 means all).
	KeepRounds int
	// SpoolDir keeps results that could not be delivered yet; empty means
	// .tdf/spool in ProgramDir.
	SpoolDir string

	// TaskOutputFilename and TaskErrorFilename name the files that receive all
	// of a program's stdout and stderr; empty (default) means no file. The
	// words $worker, $taskId, $round and $program are replaced.
	TaskOutputFilename, TaskErrorFilename string

	// SleepAfterSuccess and SleepAfterFailure are pauses after a round that
	// did or did not succeed (default 0, no pause).
	SleepAfterSuccess, SleepAfterFailure time.Duration
	// SleepInitial, SleepIncrease and SleepMax bound the waits of an idle worker,
	// which is normally woken at once when a task is due: the first one, the factor
	// between two of them, the longest (default 100ms, 1.5, 10s).
	SleepInitial  time.Duration
	SleepIncrease float64
	SleepMax      time.Duration
	// SleepAfterNoProcessClaimed bounds each of these waits as well; 0 (default,
	// written inf) means it does not.
	SleepAfterNoProcessClaimed time.Duration

	// OutputLimit is how many bytes of each stream are stored with the task;
	// of longer output head and tail are kept (default 1 MiB).
	OutputLimit int64
	// KillGrace is the time between SIGTERM and SIGKILL (default 5s).
	KillGrace time.Duration
	// ProgramDir is the directory that holds one directory per program
	// (default ".", the working directory).
	ProgramDir string
	// Environment names variables of the worker that programs may see, beyond
	// the built-in ones.
	Environment []string
	// TempDir is where private directories of rounds are made; empty means the
	// system's directory for temporary files.
	TempDir string

	// FetchTimeout limits fetching and unpacking one program (default 10m).
	FetchTimeout time.Duration
	// FetchMaxBytes limits a program's size, both as downloaded and as
	// unpacked, in bytes (default 1 GiB).
	FetchMaxBytes int64
	// FetchMaxEntries limits the entries of an archive (default 100000).
	FetchMaxEntries int
	// FetchMaxFileBytes limits one file of an archive, in bytes (default 512 MiB).
	FetchMaxFileBytes int64
	// FetchMaxRedirects limits the redirects of a download (default 5; 0 allows none).
	FetchMaxRedirects int
	// NetrcFile holds logins for http and https sources; empty means none.
	NetrcFile string
	// CAFile holds the PEM certificates to trust for https instead of the system's.
	CAFile string
	// SSHOptions are words for ssh when rsync uses it, for example "-i /etc/tdf/key".
	SSHOptions string
	// RsyncPath is the rsync program (default "rsync", searched in PATH).
	RsyncPath string
	// RequirePinned refuses sources without #sha256=HEX (default false).
	RequirePinned bool
}
