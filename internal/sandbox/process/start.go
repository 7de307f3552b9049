package process

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	programFile = "run.sh"
	shell       = "/bin/sh"
	// busyPauses bounds the wait for another process' fork to let go of a
	// freshly written run.sh: 1, 2, 4 ... 64 ms.
	busyPauses = 7
)

// Command is what one round executes: ./run.sh in Dir.
type Command struct {
	// Dir is the program directory: it holds run.sh and is its working directory.
	Dir string
	// Args are the words after ./run.sh; see SplitInput.
	Args []string
	// Env is the complete environment as NAME=value; nothing is added. See Environment.
	Env []string
	// Wrapper are words put before ./run.sh; the first is the path of a program.
	Wrapper []string
	// As runs a diagnosis with the rights of the user the program is run as; nil
	// where that is the user of this process.
	As func(diagnosis func())
}

// Execute forks and executes argv and returns the process id. It returns the
// bare errno of what failed, or a *StartError for anything else than that.
type Execute func(argv []string) (pid int, err error)

// Start has run.sh executed and returns its process id. It tries again for a
// while when run.sh is open for writing, and takes a text without #! for a shell
// script, as every shell does. The error is a *StartError.
func (c *Command) Start(execute Execute) (int, error) {
	argv, err := c.argv()
	if err != nil {
		return 0, err
	}
	pid, err := patiently(execute, argv)
	if errors.Is(err, syscall.ENOEXEC) && len(c.Wrapper) == 0 && isText(c.Dir) {
		pid, err = patiently(execute, slices.Insert(argv, 0, shell))
	}
	if err != nil {
		return 0, c.explain(err)
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

// argv are the words to execute. A wrapper would report a broken run.sh in its
// own way, as an exit code, so run.sh is looked at before.
func (c *Command) argv() ([]string, error) {
	words := append(make([]string, 0, len(c.Wrapper)+len(c.Args)+2), c.Wrapper...)
	if len(c.Wrapper) > 0 {
		script, failure := c.examine()
		if failure != nil {
			return nil, failure
		}
		if script {
			words = append(words, shell)
		}
	}
	words = append(words, "./"+programFile)
	return append(words, c.Args...), nil
}

// examine looks at run.sh as the program's user; script says that it has no #!
// line but is a text.
func (c *Command) examine() (script bool, failure error) {
	c.as(func() {
		if reason, err := examine(c.Dir); err != nil {
			failure = c.failed(reason, err)
			return
		}
		script = isScript(c.Dir)
	})
	return script, failure
}

func (c *Command) explain(err error) error {
	if given := (*StartError)(nil); errors.As(err, &given) {
		return c.failed(given.Reason, given.Err)
	}
	var failure error
	c.as(func() {
		reason, err := diagnose(c.Dir, err, len(c.Wrapper) > 0)
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
	return &StartError{Path: filepath.Join(c.Dir, programFile), Reason: reason, Err: err}
}

// patiently executes argv, trying again while it is open for writing: a process
// forked elsewhere holds our descriptors until it executes (golang/go#22315).
// All pauses together, 127 ms, are too short to need a way out.
func patiently(execute Execute, argv []string) (int, error) {
	for try := 0; ; try++ {
		pid, err := execute(argv)
		if !errors.Is(err, syscall.ETXTBSY) || try == busyPauses {
			return pid, err
		}
		<-time.After(time.Millisecond << try)
	}
}
