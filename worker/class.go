package worker

import (
	"errors"
	"syscall"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/sandbox/capture"
	"github.com/tdf-go/tdf/internal/sandbox/process"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// classify is the one place that says what kind of failure a round was. stopped
// is why the worker ended it, nil if it did not; err is what went wrong beside
// the program. Of several kinds the one counts that explains the others.
func classify(stopped error, res *result, err error) statemachine.Class {
	_, own := errors.AsType[*ownError](err)
	_, output := errors.AsType[*capture.OutputError](err)
	switch {
	case errors.Is(stopped, errOverdue), errors.Is(stopped, errEndBefore):
		return statemachine.ClassTime
	case own, errors.Is(err, shim.ErrShimLost):
		return statemachine.ClassInfrastructure
	case res.OutOfMemory:
		return statemachine.ClassMemory
	case res.Signal == syscall.SIGXCPU: // rlimit cpu
		return statemachine.ClassTime
	case res.Signal == syscall.SIGXFSZ, output && diskFull(err): // rlimit fsize, or a file of the output
		return statemachine.ClassDisk
	case output, errors.Is(err, shim.ErrUnkillable):
		return statemachine.ClassHost
	case err != nil && !res.Started:
		return classifyStart(err)
	default:
		return statemachine.ClassProgram
	}
}

// declined is the class of a round that was handed back because this worker was not
// up to it, empty for one that was for another reason.
func declined(why error) statemachine.Class {
	if _, unable := errors.AsType[*hostError](why); unable {
		return statemachine.ClassShortage
	}
	if _, notOffered := errors.AsType[*notOfferedError](why); notOffered {
		return statemachine.ClassHandler
	}
	return ""
}

// classifyStart is for a program that did not run at all. What would fail on
// any host is the program's own fault.
func classifyStart(err error) statemachine.Class {
	if start, ok := errors.AsType[*process.StartError](err); ok {
		switch start.Reason {
		case process.ReasonSpec, process.ReasonMissing, process.ReasonNotFile, process.ReasonNotExecutable,
			process.ReasonFormat, process.ReasonArguments:
			return statemachine.ClassProgram
		default: // an interpreter that is not installed here, a wrapper, a user, no memory
			return statemachine.ClassHost
		}
	}
	if _, arguments := errors.AsType[*argumentError](err); arguments {
		return statemachine.ClassProgram
	}
	_, fetching := errors.AsType[*fetchingError](err)
	switch {
	case !fetching, diskFull(err):
		return statemachine.ClassHost
	case errors.Is(err, fetch.ErrInvalidProgram), errors.Is(err, fetch.ErrInvalidSource),
		errors.Is(err, fetch.ErrInvalidType), errors.Is(err, fetch.ErrNotRunnable):
		return statemachine.ClassProgram
	default:
		return statemachine.ClassFetch
	}
}

func diskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// news is what the end of a round says of its node. A round that somebody else
// ended says nothing, and a fault of TDF or of another task not either.
func (e *ending) news(failed bool) store.NodeNews {
	_, unable := errors.AsType[*hostError](e.why)
	switch {
	case unable:
		return store.NodeBad
	case e.event == statemachine.HandBack, e.event == statemachine.Terminate, e.foreign,
		failed && e.class == statemachine.ClassInfrastructure:
		return ""
	case failed:
		return store.NodeBad
	default:
		return store.NodeGood
	}
}
