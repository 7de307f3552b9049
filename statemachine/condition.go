package statemachine

// Condition is the guard of a row: what must hold beside state, event and
// actor. All comparisons are strict, as in the TDF document: expired when now
// is greater than end_before, timed out when the round took longer than
// timeout, too often when the raised counter is greater than its limit.
type Condition string

// The conditions of the table.
const (
	Always           Condition = "always"
	MayStart         Condition = "start_after <= now <= end_before"
	Overdue          Condition = "now > end_before"
	RoundOverdue     Condition = "now - running > timeout (+ grace)"
	TimedOutOnceMore Condition = "now - running > timeout (+ grace), timeouts + 1 <= max_timeouts"
	OneMoreTimeout   Condition = "timeouts + 1 <= max_timeouts"
	OneMoreLoss      Condition = "losses + 1 <= max_losses"
	ExecutedLate     Condition = "executed > end_before"
	RoundFailed      Condition = "error is not empty"
	FailedOnceMore   Condition = "error is not empty, fails + 1 <= max_fails"
)

// holds reports whether the condition holds for t when o happens at now.
func (c Condition) holds(t *Task, o Occurrence, now Time) bool {
	switch c {
	case Always:
		return true
	case MayStart:
		return t.StartAfter <= now && now <= t.EndBefore
	case Overdue:
		return now > t.EndBefore
	case RoundOverdue:
		return now > t.RoundEnd(o.Grace)
	case TimedOutOnceMore:
		return now > t.RoundEnd(o.Grace) && t.mayCount(Timeouts)
	case OneMoreTimeout:
		return t.mayCount(Timeouts)
	case OneMoreLoss:
		return t.mayCount(Losses)
	case ExecutedLate:
		return t.Current.Executed > t.EndBefore
	case RoundFailed:
		return t.Current.Failed
	case FailedOnceMore:
		return t.Current.Failed && t.mayCount(Fails)
	default:
		return false
	}
}

func (t *Task) mayCount(c Counter) bool {
	return Limit(t.Counted(c))+1 <= t.Limit(c)
}
