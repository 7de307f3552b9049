package shim

import "github.com/rs/zerolog"

// Layer is how a round's processes are kept together.
type Layer string

// The layers, strongest first.
const (
	// PIDNamespace is a PID namespace for each slot.
	PIDNamespace Layer = "pidns"
	// Cgroup is a control group for each slot, in a PID namespace where that is to
	// be had.
	Cgroup Layer = "cgroup"
	// Group finds all descendants of a subreaper, and is nothing else.
	Group Layer = "group"
)

// Options say how programs are contained.
type Options struct {
	// Want is a layer, or "" for the strongest that works here. Require refuses
	// a weaker one, and Group where Want is "".
	Want    Layer
	Require bool
	// Name is the worker's name, for the names of cgroups and for finding
	// left-overs.
	Name string
	// CgroupDir is the directory below which cgroups may be made; empty for the
	// cgroup of this process.
	CgroupDir string
	// RunAs is the user, or user:group, that programs run as, by name or number;
	// empty for the user of this process. It needs root.
	RunAs string
	// Wrapper are words before ./run.sh. The first is looked up in PATH.
	Wrapper []string
	// Rlimits are resource limits, soft and hard, by their names in lower case
	// without RLIMIT_; the largest value means unlimited.
	Rlimits map[string]uint64
	// MemoryMax is the most memory of a round in bytes; 0 for no limit.
	MemoryMax int64
	// PidsMax is the most processes and threads of a round; 0 for no limit.
	PidsMax int
	// Log is told which stronger layers are not available, and what is not held.
	Log zerolog.Logger

	ways []way // of tests, instead of those of Want
}

// limited says that the limits need a cgroup.
func (o *Options) limited() bool { return o.MemoryMax > 0 || o.PidsMax > 0 }
