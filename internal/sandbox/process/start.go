// Package process starts the program of one round and explains why a program
// could not be started.
//
// [Command.Start] has ./run.sh executed in its program directory with an argument
// vector, never through a command string, so nothing in a task's input is
// interpreted. How a process is made is its caller's: it hands in an [Execute].
// The bare errno that comes of a failure becomes a [StartError], which tells what
// is wrong with the program on disk and what to do about it.
//
// What a program is given is prepared here too: the words of a task's input
// ([SplitInput]), an environment without what it should not see ([Environment]),
// and no descriptor that the worker inherited ([SealDescriptors]).
//
// Containing a program and ending it is the part of internal/sandbox/shim, keeping its
// output that of internal/sandbox/capture. The package knows neither tasks nor Redis and
// is for Linux only.
package process

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// programFile is executed where nothing else is asked for.
	programFile = "./run.sh"
	shell       = "/bin/sh"
	// busyPauses bounds the wait for another process' fork to let go of a
	// freshly written run.sh: 1, 2, 4 ... 64 ms.
	busyPauses = 7
)

// Command is what one round executes: ./run.sh in Dir, or File.
type Command struct {
	// Dir is the working directory: of a program, it holds run.sh.
	Dir string
	// File is executed in the place of ./run.sh: an absolute path, or a name that is looked
	// up in Path, where only absolute directories count. Empty for run.sh.
	File string
	// Path is where File is looked up; empty for the PATH of Env.
	Path string
	// Args are the words after it; see SplitInput.
	Args []string
	// Env is the complete environment as NAME=value; nothing is added. See Environment.
	Env []string
	// Wrapper are words put before it; the first is the path of a program.
	Wrapper []string
	// As runs a diagnosis with the rights of the user the program is run as; nil
	// where that is the user of this process.
	As func(diagnosis func())
}

// Execute forks, executes a file with argv and returns the process id. It returns the
// bare errno of what failed, or a *StartError for anything else than that.
type Execute func(file string, argv []string) (pid int, err error)

// Start has run.sh executed and returns its process id. It tries again for a
// while when run.sh is open for writing, and takes a text without #! for a shell
// script, as every shell does. The error is a *StartError.
func (c *Command) Start(execute Execute) (int, error) {
	file, err := c.find()
	if err != nil {
		return 0, err
	}
	argv, err := c.argv(file)
	if err != nil {
		return 0, err
	}
	first := file
	if len(c.Wrapper) > 0 {
		first = argv[0]
	}
	pid, err := retryWhileBusy(execute, first, argv)
	if errors.Is(err, syscall.ENOEXEC) && len(c.Wrapper) == 0 && isText(c.path(file)) {
		pid, err = retryWhileBusy(execute, shell, slices.Concat([]string{shell, file}, c.Args))
	}
	if err != nil {
		return 0, c.explain(file, err)
	}
	return pid, nil
}

// Check finds what execve cannot pass on: a NUL ends a C string. The error is a *StartError.
func (c *Command) Check() error {
	if c.Dir == "" || strings.IndexByte(c.Dir, 0) >= 0 {
		return c.failed(ReasonSpec, fmt.Errorf("the field Dir is %q; name the program directory", c.Dir))
	}
	for i, arg := range c.Args {
		if strings.IndexByte(arg, 0) >= 0 {
			return c.failed(ReasonArguments, fmt.Errorf("argument %d holds a NUL byte", i+1))
		}
	}
	for _, entry := range c.Env {
		if strings.IndexByte(entry, 0) >= 0 {
			name, _, _ := strings.Cut(entry, "=")
			return c.failed(ReasonArguments, fmt.Errorf("environment variable %q holds a NUL byte", name))
		}
	}
	return nil
}

// find returns the file to execute.
func (c *Command) find() (string, error) {
	switch {
	case c.File == "":
		return programFile, nil
	case strings.Contains(c.File, "/"):
		return c.File, nil
	}
	path, found := cmp.Or(c.Path, SearchPath(c.Env)), ""
	c.as(func() {
		for dir := range strings.SplitSeq(path, ":") {
			file := filepath.Join(dir, c.File)
			if info, err := os.Stat(file); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && executable(file) {
				found = file
				return
			}
		}
	})
	if found == "" {
		return "", c.failed(ReasonUnknown, errors.New("not found in PATH"))
	}
	return found, nil
}

// SearchPath returns the PATH of an environment; without one, what the C library would search.
func SearchPath(env []string) string {
	for _, entry := range slices.Backward(env) {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			return path
		}
	}
	return "/bin:/usr/bin"
}

// path is the absolute path of a file that may be relative to Dir.
func (c *Command) path(file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(c.Dir, file)
}

// argv are the words to execute. A wrapper would report a broken file in its
// own way, as an exit code, so that is looked at before. Without one a command sees the name
// that it was called by, as in a shell.
func (c *Command) argv(file string) ([]string, error) {
	words := append(make([]string, 0, len(c.Wrapper)+len(c.Args)+2), c.Wrapper...)
	if len(c.Wrapper) == 0 {
		return append(append(words, cmp.Or(c.File, file)), c.Args...), nil
	}
	script, failure := c.examine(file)
	if failure != nil {
		return nil, failure
	}
	if script {
		words = append(words, shell)
	}
	return append(append(words, file), c.Args...), nil
}

// examine looks at the file as the program's user; script says that it has no #!
// line but is a text.
func (c *Command) examine(file string) (script bool, failure error) {
	path := c.path(file)
	c.as(func() {
		if reason, err := examine(c.Dir, path); err != nil {
			failure = c.failed(reason, err)
			return
		}
		script = isScript(path)
	})
	return script, failure
}

func (c *Command) explain(file string, err error) error {
	if given := (*StartError)(nil); errors.As(err, &given) {
		return c.failed(given.Reason, given.Err)
	}
	var failure error
	c.as(func() {
		reason, err := diagnose(c.Dir, c.path(file), err, len(c.Wrapper) > 0)
		if reason == ReasonWrapper {
			err = fmt.Errorf("%q: %w", c.Wrapper[0], err)
		}
		failure = c.failed(reason, err)
	})
	return failure
}

func (c *Command) as(f func()) {
	if c.As != nil {
		c.As(f)
		return
	}
	f()
}

func (c *Command) failed(reason Reason, err error) *StartError {
	return NewStartError(c.Dir, c.File, reason, err)
}

// retryWhileBusy executes a file, again while the file is open for writing: a process
// forked elsewhere holds our descriptors until it executes (golang/go#22315).
// All pauses together, 127 ms, are too short to need a way out.
func retryWhileBusy(execute Execute, file string, argv []string) (int, error) {
	for try := 0; ; try++ {
		pid, err := execute(file, argv)
		if !errors.Is(err, syscall.ETXTBSY) || try == busyPauses {
			return pid, err
		}
		<-time.After(time.Millisecond << try)
	}
}

// DefaultAllow lists the variables a program gets from its worker unless the
// worker is configured otherwise: where to find programs and files, who runs,
// language and time zone. Everything else may hold credentials or change what
// the program loads (LD_PRELOAD), so it has to be allowed by name. PWD is not
// among them because it would name the worker's directory.
func DefaultAllow() []string {
	return []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ",
		"LANG", "LANGUAGE", "LC_*",
	}
}

// Environment builds a program's environment from the entries of from
// (NAME=value, as os.Environ gives them) whose name is in allow, and from extra,
// which wins. A trailing * in allow stands for any rest of the name. Of several
// entries with one name the last counts. The result is sorted by name.
func Environment(allow []string, from []string, extra map[string]string) []string {
	chosen := make(map[string]string, len(allow)+len(extra))
	for _, entry := range from {
		name, value, ok := strings.Cut(entry, "=")
		if ok && name != "" && allowed(allow, name) {
			chosen[name] = value
		}
	}
	maps.Copy(chosen, extra)
	env := make([]string, 0, len(chosen))
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		env = append(env, name+"="+chosen[name])
	}
	return env
}

func allowed(allow []string, name string) bool {
	return slices.ContainsFunc(allow, func(pattern string) bool {
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
			return strings.HasPrefix(name, prefix)
		}
		return pattern == name
	})
}

// SplitInput splits a task's input into words as the original's unquoted $input
// did: on blanks, tabs and newlines, with none of them kept and no empty word.
// Nothing is interpreted: quotes, globs, variables and command substitutions
// stay as they are. Words with blanks in them need an argument vector instead.
func SplitInput(input string) []string {
	return strings.FieldsFunc(input, func(r rune) bool {
		return r == ' ' || r == '\t' || r == '\n'
	})
}

// SealDescriptors marks every open descriptor above stderr close-on-exec. What
// this program opens itself is so marked already; a worker calls it once at its
// start for descriptors it inherited from its parent (a supervisor, a
// make with its job server), which every round would inherit in turn.
func SealDescriptors() error {
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	return sealListed()
}

// sealListed is SealDescriptors for Linux before 5.11.
func sealListed() error { return eachDescriptor(3, unix.CloseOnExec) }

// CloseInherited closes the descriptors from first on that this process has inherited. Those it opened itself are
// close-on-exec and stay: the runtime of Go and packages initialized earlier use them.
func CloseInherited(first int) error {
	return eachDescriptor(first, func(fd int) {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	})
}

// eachDescriptor names all that are open, from first on.
func eachDescriptor(first int, do func(fd int)) error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("process: list inherited descriptors: %w", err)
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= first {
			do(fd)
		}
	}
	return nil
}
