package cli

import (
	"errors"
	"os/exec"
	"strconv"
)

// Exit codes of all commands. A shell adds 128 to the number of a signal.
const (
	ExitOK         = 0   // done, and every task asked about succeeded
	ExitTaskFailed = 1   // some task did not succeed, or an error without a code of its own
	ExitUsage      = 2   // wrong flags, arguments or configuration
	ExitRedis      = 3   // Redis cannot be reached or used
	ExitTimeout    = 4   // a wait timed out
	ExitInterrupt  = 130 // ended by SIGINT
	ExitTerminate  = 143 // ended by SIGTERM
)

// Coded is an error that knows the exit code of the command it ends. Packages
// below the commands implement it without importing this one.
type Coded interface {
	error
	ExitCode() int
}

// CodedError gives an error an exit code. Without Err nothing is printed: the
// command has already said everything.
type CodedError struct {
	Code int
	Err  error
}

// WithCode gives err an exit code; nil stays nil.
func WithCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return &CodedError{Code: code, Err: err}
}

// Exit returns an error that ends the command with a code and prints nothing,
// for example after a table that shows which tasks failed. Code 0 is nil.
func Exit(code int) error {
	if code == ExitOK {
		return nil
	}
	return &CodedError{Code: code}
}

// Error returns the text of Err, or names the code.
func (e *CodedError) Error() string {
	if e.Err == nil {
		return "exit code " + strconv.Itoa(e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *CodedError) Unwrap() error { return e.Err }

// ExitCode returns Code.
func (e *CodedError) ExitCode() int { return e.Code }

// ExitCode returns the exit code for an error: 0 for nil, that of the first
// Coded error in its chain, else 1. The status of a program that was executed
// is not ours.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	var coded Coded
	if !errors.As(err, &coded) {
		return ExitTaskFailed
	}
	if _, program := coded.(*exec.ExitError); program {
		return ExitTaskFailed
	}
	return coded.ExitCode()
}

// silent reports whether the error asks for no message.
func silent(err error) bool {
	var coded *CodedError
	return errors.As(err, &coded) && coded.Err == nil
}
