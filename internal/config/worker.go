package config

import "time"

// Worker holds the section [worker].
type Worker struct {
	// TaskOutputFilename and TaskErrorFilename name the files that receive all
	// of a program's stdout and stderr; empty (default) means no file. The
	// words $worker, $taskId, $round and $program are replaced.
	TaskOutputFilename, TaskErrorFilename string

	// SleepAfterSuccess and SleepAfterFailure are pauses after a round that
	// did or did not succeed (default 0, no pause).
	SleepAfterSuccess, SleepAfterFailure time.Duration
	// SleepAfterNoProcessClaimed bounds the wait of an idle worker, which is
	// normally woken at once when a task is due (default 1s, at least 10ms).
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
