package process

import "fmt"

// Reason tells why a program could not be started.
type Reason string

// The reasons of a StartError.
const (
	ReasonSpec          Reason = "bad specification"
	ReasonDirectory     Reason = "program directory cannot be entered"
	ReasonMissing       Reason = "run.sh is missing"
	ReasonNotFile       Reason = "run.sh is not a regular file"
	ReasonNotExecutable Reason = "run.sh is not executable"
	ReasonInterpreter   Reason = "interpreter of run.sh cannot be executed"
	ReasonFormat        Reason = "run.sh is neither a script nor a program for this machine"
	ReasonArguments     Reason = "arguments or environment cannot be passed"
	ReasonBusy          Reason = "run.sh is open for writing"
	ReasonResources     Reason = "not enough processes, memory or file descriptors"
	ReasonWrapper       Reason = "wrapper cannot be executed"
	ReasonLimits        Reason = "limits of the worker cannot be applied"
	ReasonOther         Reason = "system error"
)

// remedy is what the reader of the error can do about it; "" if Err says it.
func (r Reason) remedy() string {
	switch r {
	case ReasonDirectory:
		return "install the program again"
	case ReasonMissing, ReasonNotFile:
		return "the archive must hold a file run.sh at its top level"
	case ReasonNotExecutable:
		return "chmod +x run.sh before packing it, and check the mount for noexec"
	case ReasonInterpreter:
		return "correct the first line of run.sh (line ends must be LF) or install the interpreter"
	case ReasonFormat:
		return "start run.sh with a line such as #!/bin/sh"
	case ReasonArguments:
		return "hand large or binary input over in a file"
	case ReasonBusy:
		return "install programs by atomic rename"
	case ReasonResources:
		return "raise the limits or run fewer rounds at once"
	case ReasonWrapper:
		return "correct wrapper in the worker's configuration"
	case ReasonLimits:
		return "correct run_as, rlimits, memory_max or pids_max in the worker's configuration"
	case ReasonSpec, ReasonOther:
	}
	return ""
}

// StartError means that run.sh did not run at all.
type StartError struct {
	// Path is the run.sh that was to be started.
	Path string
	// Reason is the kind of failure.
	Reason Reason
	// Err is the detail, usually wrapping a syscall.Errno.
	Err error
}

// Error names the program, the reason, the detail and a remedy.
func (e *StartError) Error() string {
	text := fmt.Sprintf("start %s: %s: %v", e.Path, e.Reason, e.Err)
	if remedy := e.Reason.remedy(); remedy != "" {
		text += "; " + remedy
	}
	return text
}

// Unwrap returns the detail.
func (e *StartError) Unwrap() error { return e.Err }
