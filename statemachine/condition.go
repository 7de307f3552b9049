package statemachine

// Condition is the guard of a row: what must hold beside state, event and
// actor. All comparisons are strict, as in the TDF document: expired when now
// is greater than end_before, timed out when the round took longer than
// timeout, too often when the raised counter is greater than its limit.
type Condition string

// The conditions of the table. None that asks for one more holds once a stop
// was asked for.
const (
	Always           Condition = "always"
	CreatedHeld      Condition = "created on hold"
	MayStart         Condition = "max(start_after, not_before) <= now <= end_before"
	Overdue          Condition = "now > end_before"
	ForeignRound     Condition = "the round has no claim id"
	StopWasAsked     Condition = "a stop was asked for"
	RoundOverdue     Condition = "now - running > timeout (+ grace)"
	TimedOutOnceMore Condition = "now - running > timeout (+ grace), timeouts + 1 <= max_timeouts"
	OneMoreTimeout   Condition = "timeouts + 1 <= max_timeouts"
	RoundVoid        Condition = "the round is of an epoch that is over"
	OneMoreLoss      Condition = "losses + 1 <= max_losses"
	ExecutedLate     Condition = "executed > end_before"
	ExcusedOnceMore  Condition = "error is not empty but excused, faults + 1 <= max_faults"
	RoundExcused     Condition = "error is not empty but excused"
	FailedOnceMore   Condition = "error is not empty, fails + 1 <= max_fails, the exit code is not final"
	RoundFailed      Condition = "error is not empty"
)

// holds reports whether the condition holds for t when o happens at now.
func (c Condition) holds(t *Task, o Occurrence, now Time) bool {
	switch c {
	case Always:
		return true
	case CreatedHeld:
		return o.Held
	case MayStart:
		return t.Due() <= now && now <= t.EndBefore
	case Overdue:
		return now > t.EndBefore
	case ForeignRound:
		return t.Current.Claim == ""
	case StopWasAsked:
		return t.StopAsked
	case RoundVoid:
		return o.Void
	case RoundOverdue:
		return now > t.RoundEnd(o.Grace)
	case ExecutedLate:
		return t.Current.Executed > t.EndBefore
	case RoundExcused:
		return t.excused(o)
	case RoundFailed:
		return t.Current.Failed
	default:
		return c.allows(t, o, now)
	}
}

// allows is holds for the conditions that ask whether the task may have one
// round more.
func (c Condition) allows(t *Task, o Occurrence, now Time) bool {
	switch c {
	case TimedOutOnceMore:
		return now > t.RoundEnd(o.Grace) && t.mayCount(Timeouts)
	case OneMoreTimeout:
		return t.mayCount(Timeouts)
	case OneMoreLoss:
		return t.mayCount(Losses)
	case ExcusedOnceMore:
		return t.excused(o) && t.mayCount(Faults)
	case FailedOnceMore:
		return t.Current.Failed && t.mayCount(Fails) && t.mayTryExit()
	default:
		return false
	}
}
