package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/sandbox/process"
)

// reportFD is where a launcher reports why it failed.
const reportFD = 3

// plan is what precedes a program, and what a launcher does before it executes one.
type plan struct {
	// Join are the cgroup.procs files it writes itself into.
	Join    []string  `json:"join"`
	Rlimits []rlimit  `json:"rlimits"`
	RunAs   *identity `json:"runAs"`
	// Nice lowers its priority.
	Nice int `json:"nice"`
}

// needed reports whether a launcher is needed: for a change of the user alone, fork is enough.
func (p *plan) needed() bool { return len(p.Join)+len(p.Rlimits)+p.Nice > 0 }

// rlimit is one resource limit, soft and hard.
type rlimit struct {
	Name     string `json:"name"`
	Resource int    `json:"resource"`
	Value    uint64 `json:"value"`
}

// execute starts a launcher that does what the plan says and executes a file with argv, and
// returns its process id once that is under way. It returns the bare errno if
// executing failed.
func (p *plan) execute(file string, argv []string, attr *syscall.ProcAttr) (int, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return 0, fmt.Errorf("describe the limits: %w", err)
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return 0, os.NewSyscallError("pipe2", err)
	}
	report := os.NewFile(uintptr(pipe[0]), "report")
	defer func() { _ = report.Close() }() // nothing is written through it
	attr.Files = append(attr.Files[:reportFD:reportFD], uintptr(pipe[1]))
	words := append([]string{launcherName, string(text), file}, argv...)
	attr.Env = disguised(attr.Env)
	pid, err := syscall.ForkExec(self, words, attr)
	_ = unix.Close(pipe[1])
	if err != nil {
		return 0, err //nolint:wrapcheck // the errno is what is diagnosed
	}
	if err := outcome(pid, report); err != nil {
		if fd := attr.Sys.PidFD; fd != nil && *fd >= 0 { // the launcher's, which is gone
			_ = unix.Close(*fd)
			*fd = -1
		}
		return 0, err
	}
	return pid, nil
}

// outcome reads what the launcher reports: nothing if the program is under way.
func outcome(pid int, report io.Reader) error {
	text, _ := io.ReadAll(report)
	if len(text) == 0 {
		return nil
	}
	_, _ = syscall.Wait4(pid, nil, 0, nil)
	number, step, _ := strings.Cut(string(text), " ")
	n, err := strconv.Atoi(number)
	if err != nil || n == 0 {
		n = int(syscall.EINVAL)
	}
	if step == stepExecute {
		return syscall.Errno(n) //nolint:wrapcheck // likewise
	}
	return &process.StartError{Reason: process.ReasonLimits, Err: &limitError{option: step, errno: syscall.Errno(n)}}
}

// limitError is a step of a launcher that failed.
type limitError struct {
	option string // key:value
	errno  syscall.Errno
}

func (e *limitError) Error() string { return e.option + ": " + e.errno.Error() }

func (e *limitError) Unwrap() error { return e.errno }

// stepExecute is the last step; other steps are named by the option behind them.
const stepExecute = "execute"

// launcherMain is the whole life of a launcher.
func launcherMain() {
	unix.CloseOnExec(reportFD)
	step, err := launch(os.Args[1:])
	if err == nil {
		exit(0) // a probe
	}
	var errno syscall.Errno
	errors.As(err, &errno)
	report := os.NewFile(reportFD, "report")
	_, _ = fmt.Fprintf(report, "%d %s", int(errno), step)
	exit(1)
}

// launch applies the plan in its first word and executes the file in the second with the
// others; it returns the step that failed. Rights are given up after all that needs them.
func launch(words []string) (string, error) {
	var p plan
	if len(words) == 0 {
		return stepExecute, io.ErrUnexpectedEOF
	}
	if err := json.Unmarshal([]byte(words[0]), &p); err != nil {
		return stepExecute, fmt.Errorf("plan: %w", err)
	}
	for _, file := range p.Join {
		if err := join(file); err != nil {
			return "memory_max/pids_max:" + file, err
		}
	}
	for _, limit := range p.Rlimits {
		if err := limit.set(); err != nil {
			return "rlimits:" + limit.Name, err
		}
	}
	if err := lower(p.Nice); err != nil {
		return "nice:" + strconv.Itoa(p.Nice), err
	}
	if err := p.RunAs.become(); err != nil {
		return "run_as", err
	}
	if len(words) < 3 {
		return "", nil
	}
	return stepExecute, syscall.Exec(words[1], words[2:], disguised(os.Environ())) //nolint:wrapcheck // likewise
}

// disguised changes an environment so that a launcher, which may have the rights of root, carries it and does not heed it:
// LD_PRELOAD or GODEBUG are for the program. Twice it is the same again, and no entry gets longer. The token stays, by which
// a launcher is found that hangs.
func disguised(env []string) []string {
	changed := make([]string, len(env))
	for i, entry := range env {
		if entry != "" && !strings.HasPrefix(entry, tokenVariable) {
			entry = string([]byte{entry[0] ^ 0x80}) + entry[1:]
		}
		changed[i] = entry
	}
	return changed
}

// lower lowers the priority of this thread, which is the one that executes, and of its session: where the kernel groups processes
// by sessions, only that counts against others.
func lower(nice int) error {
	if nice == 0 {
		return nil
	}
	is, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return os.NewSyscallError("getpriority", err)
	}
	nice = min(lowest, 20-is+nice)                                          // the kernel counts from 40 down
	_ = os.WriteFile("/proc/self/autogroup", []byte(strconv.Itoa(nice)), 0) // there may be none, and users may change few
	return os.NewSyscallError("setpriority", unix.Setpriority(unix.PRIO_PROCESS, 0, nice))
}

// lowest is the lowest priority.
const lowest = 19

func join(file string) error {
	fd, err := unix.Open(file, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("open", err)
	}
	_, err = unix.Write(fd, []byte("0"))
	return errors.Join(err, unix.Close(fd))
}

// set uses the bare system call: those of the libraries for RLIMIT_NOFILE have
// executed programs get another value.
func (l *rlimit) set() error {
	limit := unix.Rlimit{Cur: l.Value, Max: l.Value}
	return os.NewSyscallError("prlimit", unix.Prlimit(0, l.Resource, &limit, nil))
}

// become changes this thread's user, which is the one that executes. The
// parent-death signal is lost with that and set again.
func (i *identity) become() error {
	if i == nil {
		return nil
	}
	shim := unix.Getppid()
	err := errors.Join(setThreadGroups(i.Groups),
		setThreadIDs(unix.SYS_SETRESGID, i.GID, i.GID, i.GID), setThreadIDs(unix.SYS_SETRESUID, i.UID, i.UID, i.UID),
		unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0))
	if err == nil && unix.Getppid() != shim {
		err = unix.ESRCH
	}
	return err
}

// resources are the limits by the names of getrlimit(2).
var resources = map[string]int{
	"as": unix.RLIMIT_AS, "core": unix.RLIMIT_CORE, "cpu": unix.RLIMIT_CPU,
	"data": unix.RLIMIT_DATA, "fsize": unix.RLIMIT_FSIZE, "memlock": unix.RLIMIT_MEMLOCK,
	"nofile": unix.RLIMIT_NOFILE, "nproc": unix.RLIMIT_NPROC, "stack": unix.RLIMIT_STACK,
}

// resourceLimits checks the rlimits; whether this process may set them, the
// launcher finds out.
func resourceLimits(wanted map[string]uint64) ([]rlimit, error) {
	limits := make([]rlimit, 0, len(wanted))
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		resource, ok := resources[name]
		if !ok {
			return nil, &OptionError{Key: "rlimits", Value: name, Err: errors.New("not a resource limit"),
				Remedy: "use one of " + strings.Join(slices.Sorted(maps.Keys(resources)), " ")}
		}
		limits = append(limits, rlimit{Name: name, Resource: resource, Value: wanted[name]})
	}
	return limits, checkHard(limits)
}

// checkHard tells what a process without CAP_SYS_RESOURCE cannot raise.
func checkHard(limits []rlimit) error {
	for _, limit := range limits {
		var now unix.Rlimit
		if err := unix.Prlimit(0, limit.Resource, nil, &now); err != nil {
			return fmt.Errorf("shim: read the limit %s: %w", limit.Name, err)
		}
		if limit.Value > now.Max && !mayRaise() {
			return &OptionError{Key: "rlimits", Value: fmt.Sprintf("%s=%d", limit.Name, limit.Value),
				Err:    fmt.Errorf("above the hard limit %d of this process: %w", now.Max, unix.EPERM),
				Remedy: "lower it, or raise the hard limit that the worker is started with"}
		}
	}
	return nil
}

// mayRaise asks for CAP_SYS_RESOURCE.
func mayRaise() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if unix.Capget(&header, &sets[0]) != nil {
		return false
	}
	return sets[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}
