package store

import "github.com/tdf-go/tdf/statemachine"

// NeedVerdict is what the end of a task means to one that needs it.
type NeedVerdict string

// What an end can mean.
const (
	VerdictWait  NeedVerdict = "wait"  // it is not enough yet: none has come, or the plan holds until the task is retried
	VerdictMet   NeedVerdict = "met"   // it is enough
	VerdictNever NeedVerdict = "never" // it never will be, which is a failure
	VerdictSkip  NeedVerdict = "skip"  // it never will be, which is none
)

// Verdict is the rule that scripts have in lib/plans.lua. on is which end is enough, empty for NeedsSuccess; end
// is how the task ended, empty if it has not, and skipped that it was not to run; f is what its plan does on a
// failure.
func (on When) Verdict(end statemachine.State, skipped bool, f OnFailure) NeedVerdict {
	switch {
	case end == statemachine.None:
		return VerdictWait
	case on == NeedsAny:
		return VerdictMet
	case skipped, on == NeedsFailure && end == statemachine.Succeeded:
		return VerdictSkip
	case on == NeedsFailure, end == statemachine.Succeeded, f == FailureContinues:
		return VerdictMet
	case f == FailureHolds:
		return VerdictWait
	default:
		return VerdictNever
	}
}
