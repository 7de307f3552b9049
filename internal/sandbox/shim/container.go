package shim

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/sandbox/cgroup"
)

// Container is a way to contain programs that has been tried and works. Its
// methods may be called at the same time.
type Container struct {
	options  Options
	origin   string // which worker of which place this is
	token    string // marks this incarnation
	uid, gid int    // of this process
	who      *identity
	wrapper  []string
	rlimits  []rlimit
	tree     *cgroup.Tree // nil if nothing needs it
	way      way
	hostProc string // why programs see the host's /proc, "" if they do not
	tryDir   string // for the slot of the trial
	noView   string // why rounds can have no view, "" if they can
	missing  []string
}

// New finds the layer by trying: it starts a shim and ends it again. The error
// names what is missing and the remedy; it is an *OptionError if an option is
// what cannot be met.
func New(o Options) (*Container, error) {
	c := &Container{options: o, origin: originOf(o.Name), uid: os.Geteuid(), gid: os.Getegid()}
	c.token = c.origin + "." + newMark()
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := c.checkLimits(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if err := c.choose(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if !c.way.group && !o.limited() {
		if err := c.Close(); err != nil { // it was of no use
			return nil, err
		}
	}
	log := cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	for _, sentence := range c.missing {
		log.Warn("weaker containment than asked for: "+sentence, "containment", c.Describe())
	}
	for _, sentence := range c.unheld() {
		log.Info("not contained: "+sentence, "containment", c.Describe())
	}
	return c, nil
}

// check looks at the options that need no trying.
func (c *Container) check() (err error) {
	if !c.options.Want.known() {
		return &OptionError{Key: "containment", Value: string(c.options.Want), Err: errors.New("no such layer"),
			Remedy: "use auto, pidns, cgroup or group"}
	}
	if c.who, err = lookup(c.options.RunAs); err != nil {
		return err
	}
	if c.rlimits, err = resourceLimits(c.options.Rlimits); err != nil {
		return err
	}
	c.wrapper, err = findWrapper(c.options.Wrapper)
	return err
}

// findWrapper turns the first word into a path: the program directory is another.
func findWrapper(words []string) ([]string, error) {
	if len(words) == 0 {
		return nil, nil
	}
	path, err := exec.LookPath(words[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, &OptionError{Key: "wrapper", Value: strings.Join(words, " "), Err: err,
			Remedy: "install the program, or write its whole path"}
	}
	return append([]string{path}, words[1:]...), nil
}

// openTree opens the cgroups, once.
func (c *Container) openTree() (err error) {
	if c.tree != nil {
		return nil
	}
	if c.options.Name == "" {
		return errors.New("the worker has no name to call its control group by")
	}
	c.tree, err = cgroup.Open(c.options.CgroupDir, c.options.Name, c.token,
		cgroup.Limits{MemoryMax: c.options.MemoryMax, PidsMax: c.options.PidsMax})
	return err
}

// checkLimits refuses limits that would not hold.
func (c *Container) checkLimits() error {
	if !c.options.limited() {
		return nil
	}
	key, value := "memory_max", c.options.MemoryMax
	if value == 0 {
		key, value = "pids_max", int64(c.options.PidsMax)
	}
	err := c.openTree()
	if err == nil {
		err = c.tree.CanLimit()
	}
	if err == nil {
		return nil
	}
	return &OptionError{Key: key, Value: strconv.FormatInt(value, 10), Err: err, Remedy: "see the reason, or set it to 0"}
}

// Describe is the layer for the registry, with what goes beyond it or is missing
// of it, for example "pidns+cgroup" or "pidns (with the host's /proc)".
func (c *Container) Describe() string {
	text := string(c.way.layer)
	if c.way.layer == PIDNamespace && (c.way.group || c.options.limited()) {
		text += "+cgroup"
	}
	if c.hostProc != "" {
		text += " (with the host's /proc)"
	}
	return text
}

// Views reports whether the rounds of this container can have a [View].
func (c *Container) Views() bool { return c.noView == "" }

// Owner is the user and group that programs run as, if that is another than this
// process'.
func (c *Container) Owner() (uid, gid int, other bool) {
	if c.who == nil || c.who.UID == c.uid && c.who.GID == c.gid {
		return c.uid, c.gid, false
	}
	return c.who.UID, c.who.GID, true
}

// AsOwner runs f with the rights of the user that programs run as, so that the kernel
// refuses what a program has no right to either: to read a file to which a program's
// link leads, for example. f may not start threads that are to have them too.
func (c *Container) AsOwner(f func() error) error {
	if c.who == nil {
		return f()
	}
	return c.who.lend(f)
}

// Sweep kills what earlier incarnations of this worker have left behind, and
// removes their cgroups. It returns how many processes were killed. The error is
// ErrUnkillable if some are still there. What a live process has started
// is not left behind, whichever process it is.
func (c *Container) Sweep() (killed int, err error) {
	killed, err = sweep(c.left, killPatience)
	if c.tree == nil {
		return killed, err
	}
	more, treeErr := c.tree.Sweep(c.left)
	if errors.Is(treeErr, cgroup.ErrPopulated) {
		treeErr = fmt.Errorf("%w: %w", ErrUnkillable, treeErr)
	}
	return killed + more, errors.Join(err, treeErr)
}

// Close removes the cgroups. Close all slots first.
func (c *Container) Close() error {
	if c.tree == nil {
		return nil
	}
	tree := c.tree
	c.tree = nil
	return tree.Close()
}

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
	// TempDir is where the directories of rounds are made, so views are tried there; empty
	// for that of the system.
	TempDir string
	// Log is told which stronger layers are not available, and what is not held;
	// nil is silent.
	Log *slog.Logger

	ways      []way         // of tests, instead of those of Want
	headStart time.Duration // likewise; 0 is the usual one
}

// limited says that the limits need a cgroup.
func (o *Options) limited() bool { return o.MemoryMax > 0 || o.PidsMax > 0 }

var (
	// ErrShimLost means that the shim died or no longer answered. Everything of
	// its round is dead; what the round did is not known. The slot is of no use
	// any more: close it and start another.
	ErrShimLost = errors.New("shim: the shim of the slot is lost")
	// ErrUnkillable means that processes of the round outlived SIGKILL, usually
	// because they hang in the kernel (a dead network file system). Take no new
	// work in such a slot.
	ErrUnkillable = errors.New("shim: the round's processes survive SIGKILL")
)

// OptionError is an option that this host or this user cannot meet.
type OptionError struct {
	// Key is the key of [worker] in the configuration, and Value what it holds.
	Key, Value string
	// Remedy is what to do about it.
	Remedy string
	// Err is the reason.
	Err error
}

// Error names key, value, reason and remedy.
func (e *OptionError) Error() string {
	return fmt.Sprintf("[worker] %s = %q: %v; %s", e.Key, e.Value, e.Err, e.Remedy)
}

// Unwrap returns the reason.
func (e *OptionError) Unwrap() error { return e.Err }
