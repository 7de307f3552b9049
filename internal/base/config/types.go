package config

import "time"

// File is one configuration as merged from flags, environment, file and
// defaults, and validated. It is made by Load.
type File struct {
	// Path is the file read; empty when everything came from the environment.
	Path string
	// Kind is the program the configuration was loaded for.
	Kind Kind

	Redis        Redis
	TDF          TDF
	Server       Server
	Worker       Worker
	Manager      Manager
	TaskDefaults TaskDefaults

	settings map[string]setting // by "section.key"; says where each value came from
	warnings []string
}

// Warnings returns what is legal but unwise, one sentence each, for the log:
// for example a file with a password that other users can read.
func (f *File) Warnings() []string { return f.warnings }

// TDF holds the section [tdf].
type TDF struct {
	// Namespace starts the name of every key in Redis ("sum" in "sum:task_id").
	// ValidNamespace says what it may look like. Required, no default.
	Namespace string
	// Pprof is the loopback address at which daemons serve profiles; empty
	// (default) for none.
	Pprof string
}

// Server holds the section [server].
type Server struct {
	// RoundDuration is the longest time between two passes over due tasks
	// (default 1.3s). The server also reacts at once when it is woken.
	RoundDuration time.Duration
	// TimeoutGrace is how long the server waits, after a round's timeout, for
	// the report of the worker that still holds the lease (default 10s).
	TimeoutGrace time.Duration
	// WorkerTimeout is the lease: how long a worker may be silent before it
	// counts as dead (default 15s). Workers learn it from Redis.
	WorkerTimeout time.Duration
	// Quarantine says what becomes of a node where tasks fail that succeed
	// elsewhere: QuarantineOff, QuarantineWarn (default) or QuarantineOn.
	Quarantine string
	// QuarantineProbe is the first pause before a node that was set aside may
	// try a task again (default 1m); it doubles with each failure, up to an hour.
	QuarantineProbe time.Duration
	// HistoryFile keeps what a server has seen of the history of the namespace; empty
	// (default) for memory only.
	HistoryFile string
	// Events is how many events of tasks Redis keeps (default 10000; 0: none).
	Events int
	// ArchiveRetention says how long archived tasks stay in Redis, by outcome; those that are not named stay for ever (default:
	// all do).
	ArchiveRetention []Retention
	// ArchiveDir is where archived tasks are written before they leave Redis; empty (default) for nowhere.
	ArchiveDir string
	// BatchSize is the largest number of tasks settled in one script (default 100).
	BatchSize int
	// RepairInterval is the time between two background passes that adopt
	// foreign tasks and repair indices (default 5s).
	RepairInterval time.Duration
	// RepairBatch is the largest number of tasks one repair pass looks at
	// (default 1000).
	RepairBatch int
}

// The words for what becomes of a suspicious node; see Server.Quarantine.
const (
	QuarantineOff  = "off"  // nobody looks
	QuarantineWarn = "warn" // it is announced
	QuarantineOn   = "on"   // it is announced, and gets no tasks but probes
)

// Manager holds the section [manager].
type Manager struct {
	// RoundDuration is the longest time between two passes over ended tasks
	// (default 1.3s).
	RoundDuration time.Duration
	// BatchSize is the largest number of tasks opened or archived in one
	// script (default 100).
	BatchSize int
	// KeyTTL is how long the key of a submitted task is remembered (default 7
	// days); a second task with the same key is then not opened.
	KeyTTL time.Duration
	// HandlerBackoff is the pause before a task is given again to a handler
	// that returned an error (default 1s); it doubles each time.
	HandlerBackoff time.Duration
	// HandlerBackoffMax is where that pause stops growing (default 1m).
	HandlerBackoffMax time.Duration
	// HandlingLease is how long a manager may be seen silent before another one gets
	// the tasks that its handlers have (default 15s).
	HandlingLease time.Duration
}
