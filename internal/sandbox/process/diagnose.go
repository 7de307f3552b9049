package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// sniffed is how much of a file is looked at; Linux reads as much of a #! line.
const sniffed = 256

// diagnose turns the bare errno of a failed exec into its reason. ENOENT, for
// instance, is the directory, the file or its interpreter; with a wrapper, which is
// only executed once the file was found good, it is the wrapper.
func diagnose(dir, file string, err error, wrapped bool) (Reason, error) {
	switch {
	case errors.Is(err, syscall.E2BIG):
		return ReasonArguments, err
	case isAny(err, syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE):
		return ReasonResources, err
	case wrapped:
		return ReasonWrapper, err
	case errors.Is(err, syscall.ETXTBSY):
		return ReasonBusy, err
	case isAny(err, syscall.ENOENT, syscall.EACCES, syscall.ENOEXEC, syscall.ENOTDIR,
		syscall.ELOOP, syscall.EISDIR, syscall.EPERM):
		return inspect(dir, file, err)
	}
	return ReasonOther, err
}

// inspect finds what is wrong with the program on disk.
func inspect(dir, file string, err error) (Reason, error) {
	if reason, err := inspectFile(dir, file, err); reason != "" {
		return reason, err
	}
	return inspectContent(sniff(file), err)
}

// inspectFile finds what can be told without reading the file; "" if nothing is wrong.
func inspectFile(dir, file string, err error) (Reason, error) {
	if info, statErr := os.Stat(dir); statErr != nil {
		return ReasonDirectory, statErr
	} else if !info.IsDir() {
		return ReasonDirectory, fmt.Errorf("%s: %w", dir, syscall.ENOTDIR)
	}
	if !executable(dir) {
		return ReasonDirectory, err
	}
	missing, other := ReasonMissing, ReasonNotFile
	if filepath.Dir(file) != dir {
		missing, other = ReasonUnknown, ReasonUnknown
	}
	info, statErr := os.Stat(file)
	switch {
	case statErr != nil:
		return missing, statErr
	case !info.Mode().IsRegular():
		return other, fmt.Errorf("%s: %w", info.Mode(), err)
	case !executable(file):
		return ReasonNotExecutable, err
	}
	return "", nil
}

// executable asks for the effective user, who may have been changed for a diagnosis.
func executable(path string) bool {
	return unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS) == nil
}

// examine looks at a file that was not tried yet. The error is nil if it can
// be executed as far as can be seen.
func examine(dir, file string) (Reason, error) {
	if reason, err := inspectFile(dir, file, syscall.EACCES); reason != "" {
		return reason, err
	}
	content := sniff(file)
	if name, ok := interpreter(content); ok {
		info, err := os.Stat(name)
		if err == nil && (!info.Mode().IsRegular() || !executable(name)) {
			err = syscall.EACCES
		}
		if err != nil {
			return ReasonInterpreter, fmt.Errorf("%q: %w", name, err)
		}
	}
	return "", nil
}

// inspectContent judges an executable file by its first line.
func inspectContent(content []byte, err error) (Reason, error) {
	if name, ok := interpreter(content); ok {
		return ReasonInterpreter, fmt.Errorf("%q: %w", name, err)
	}
	switch {
	case errors.Is(err, syscall.ENOENT):
		return ReasonInterpreter, fmt.Errorf("dynamic loader: %w", err)
	case errors.Is(err, syscall.ENOEXEC):
		return ReasonFormat, err
	}
	return ReasonNotExecutable, err
}

// interpreter is the program that the #! line names; it keeps a carriage return,
// the usual reason why it is not found.
func interpreter(content []byte) (string, bool) {
	rest, ok := bytes.CutPrefix(content, []byte("#!"))
	if !ok {
		return "", false
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	words := bytes.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
	if len(words) == 0 {
		return "", false
	}
	return string(words[0]), true
}

// isText tells a script from a program for another machine as shells do: its
// first line has no NUL byte.
func isText(file string) bool {
	line, _, _ := bytes.Cut(sniff(file), []byte("\n"))
	return bytes.IndexByte(line, 0) < 0
}

// isScript tells a text without a usable #! line, for which a shell is needed.
func isScript(file string) bool {
	content := sniff(file)
	_, named := interpreter(content)
	return !named && !bytes.HasPrefix(content, []byte("\x7fELF")) && isText(file)
}

// sniff reads the beginning of a file; nothing if it cannot be read.
func sniff(name string) []byte {
	file, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	content := make([]byte, sniffed)
	n, _ := io.ReadFull(file, content)
	return content[:n]
}

func isAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// Reason tells why a program could not be started.
type Reason string

// The reasons of a StartError.
const (
	ReasonSpec          Reason = "bad specification"
	ReasonDirectory     Reason = "program directory cannot be entered"
	ReasonUnknown       Reason = "no such command on this host"
	ReasonMissing       Reason = "run.sh is missing"
	ReasonNotFile       Reason = "it is not a regular file"
	ReasonNotExecutable Reason = "it is not executable"
	ReasonInterpreter   Reason = "its interpreter cannot be executed"
	ReasonFormat        Reason = "it is neither a script nor a program for this machine"
	ReasonArguments     Reason = "arguments or environment cannot be passed"
	ReasonBusy          Reason = "it is open for writing"
	ReasonResources     Reason = "not enough processes, memory or file descriptors"
	ReasonWrapper       Reason = "wrapper cannot be executed"
	ReasonLimits        Reason = "limits of the worker cannot be applied"
	ReasonOther         Reason = "system error"
)

// remedies are what the reader of the error can do about a reason, where Err does not
// say it.
var remedies = map[Reason]string{
	ReasonUnknown:       "install it there, set PATH of the worker, or write an absolute path",
	ReasonDirectory:     "install the program again",
	ReasonMissing:       "the archive must hold a file run.sh at its top level",
	ReasonNotFile:       "the archive must hold a file run.sh at its top level",
	ReasonNotExecutable: "chmod +x it, a run.sh before packing it, and check the mount for noexec",
	ReasonInterpreter:   "correct its first line (line ends must be LF) or install the interpreter",
	ReasonFormat:        "start a script with a line such as #!/bin/sh",
	ReasonArguments:     "hand large or binary input over in a file",
	ReasonBusy:          "install programs by atomic rename",
	ReasonResources:     "raise the limits or run fewer rounds at once",
	ReasonWrapper:       "correct wrapper in the worker's configuration",
	ReasonLimits:        "correct run_as, rlimits, memory_max or pids_max in the worker's configuration",
}

// StartError means that a program did not run at all.
type StartError struct {
	// Path is the file that did not start.
	Path string
	// Reason is the kind of failure.
	Reason Reason
	// Err is the detail, usually wrapping a syscall.Errno.
	Err error
}

// NewStartError makes the error of the run.sh in dir, or of the file that was to be executed
// in its place.
func NewStartError(dir, file string, reason Reason, err error) *StartError {
	if file == "" {
		return &StartError{Path: filepath.Join(dir, programFile), Reason: reason, Err: err}
	}
	return &StartError{Path: file, Reason: reason, Err: err}
}

// Error names the program, the reason, the detail and a remedy.
func (e *StartError) Error() string {
	text := fmt.Sprintf("start %s: %s: %v", e.Path, e.Reason, e.Err)
	if remedy := remedies[e.Reason]; remedy != "" {
		text += "; " + remedy
	}
	return text
}

// Unwrap returns the detail.
func (e *StartError) Unwrap() error { return e.Err }
