package config

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/task"
)

// EmbeddedHost is the value of [redis] host with which a server starts a Redis
// of its own inside the process, for trials; nothing survives its end.
const EmbeddedHost = "embedded"

// Redis holds the section [redis]: which server to use and how to reach it.
type Redis struct {
	// Host is a name, an IP address, the absolute path of a unix socket, or
	// "embedded" (only for the server; see Embedded). Default localhost.
	Host string
	// Port is the TCP port (default 6379). 0 is allowed with an embedded Redis
	// only and means any free port.
	Port int
	// Username is the ACL user; empty means Redis' default user.
	Username string
	// Password authenticates the user; empty means none. Never print it.
	Password string `json:"-"`
	// PasswordFile names the file Password was read from; empty if none.
	PasswordFile string
	// DB is the index of the database (default 0).
	DB int

	// TLS encrypts the connection (at least TLS 1.2).
	TLS bool
	// CAFile holds the PEM certificates to trust instead of the system's.
	CAFile string
	// CertFile and KeyFile hold the PEM client certificate; both or neither.
	CertFile, KeyFile string
	// ServerName is the name expected in the server's certificate; empty means Host.
	ServerName string

	// SentinelMaster is the name of the master to ask the sentinels for; with
	// it, Host and Port are not used.
	SentinelMaster string
	// SentinelAddrs are the sentinels, each host:port.
	SentinelAddrs []string
	// SentinelPassword authenticates at the sentinels; empty means none. Never print it.
	SentinelPassword string `json:"-"`

	// ClusterAddrs are some nodes of a Redis Cluster, each host:port; with
	// them, Host and Port are not used.
	ClusterAddrs []string

	// DialTimeout limits making a connection (default 5s).
	DialTimeout time.Duration
	// ReadTimeout limits waiting for a reply that is not a blocking read (default 3s).
	ReadTimeout time.Duration
	// WriteTimeout limits sending a command (default 3s).
	WriteTimeout time.Duration

	// Durability is what Redis is expected to keep: DurabilityFast (default),
	// DurabilitySafe or DurabilityHA.
	Durability string
	// ReplicationTimeout limits waiting for a replica, under DurabilityHA (default 1s).
	ReplicationTimeout time.Duration
}

// The values of [redis] durability.
const (
	DurabilityFast = "fast"
	DurabilitySafe = "safe"
	DurabilityHA   = "ha"
)

// Embedded reports whether the server is to start a Redis inside its process.
func (r Redis) Embedded() bool { return r.Host == EmbeddedHost }

// Sentinel reports whether the sentinels name the master.
func (r Redis) Sentinel() bool { return r.SentinelMaster != "" }

// Cluster reports whether Redis is a cluster.
func (r Redis) Cluster() bool { return len(r.ClusterAddrs) > 0 }

// Addr returns the network ("tcp" or "unix") and address of a single Redis. An
// embedded one has the loopback address on which it listens.
func (r Redis) Addr() (network, address string) {
	port := strconv.Itoa(r.Port)
	switch {
	case strings.HasPrefix(r.Host, "/"):
		return "unix", r.Host
	case r.Embedded():
		return "tcp", net.JoinHostPort("127.0.0.1", port)
	default:
		return "tcp", net.JoinHostPort(strings.Trim(r.Host, "[]"), port)
	}
}

// String describes where Redis is, without any secret, for logs and errors.
func (r Redis) String() string {
	db := " db " + strconv.Itoa(r.DB)
	switch {
	case r.Cluster():
		return "cluster " + strings.Join(r.ClusterAddrs, ",")
	case r.Sentinel():
		return "sentinel " + r.SentinelMaster + "@" + strings.Join(r.SentinelAddrs, ",") + db
	default:
		_, address := r.Addr()
		return address + db
	}
}

// Mark is a short text that is the same for the same description of a Redis: it
// keeps what belongs to one Redis apart from the same names of another on a host.
func (r Redis) Mark() string {
	sum := sha256.Sum256([]byte(r.String()))
	return hex.EncodeToString(sum[:4])
}

// GoString is like String: %#v cannot leak a password.
func (r Redis) GoString() string { return "config.Redis(" + r.String() + ")" }

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
	Resources task.Resources
	// Classes are the classes of queues this worker serves, each name or
	// name=version; none (default) means all.
	Classes []string
	// MaxThreads is how many tasks may run at a time on the node, over all
	// queues and workers, unless the node itself is set (default task.NoLimit).
	MaxThreads task.Limit
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
	// Rlimits are resource limits of programs by name.
	Rlimits map[string]uint64
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

// TaskDefaults holds the section [task_defaults]: the texts of the fields of a
// new task that its opener did not give, as package task has them.
type TaskDefaults struct {
	task.Defaults
	// AddRandomStartOffset adds a random part of a second to start_after, to
	// mix tasks with the same start (default false).
	AddRandomStartOffset bool
}

// Check refuses values that contradict each other. The error is an *Error.
func (d *TaskDefaults) Check() error {
	start, end := d.Defaults["start_after"], d.Defaults["end_before"]
	if number(start) <= number(end) {
		return nil
	}
	return &Error{
		Section: "task_defaults", Key: "start_after", Value: start, Err: ErrInvalid,
		Problem: "later than end_before (" + end + "), so that the task would expire",
		Remedy:  "write an earlier start_after or a later end_before",
	}
}

// number converts a text that Load has validated.
func number(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64)
	return n
}
