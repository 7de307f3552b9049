package audit

import (
	"strings"

	"github.com/tdf-go/tdf/statemachine"
)

// ends: each round that is over has one end, which the task has counted, and the
// present round has one if the task has ended.
func (s *sight) ends() []problem {
	if s.Round >= mostRounds {
		return nil
	}
	var found []problem
	timeouts, failures := 0, 0
	for n := range s.Round + 1 {
		timeout, failure := s.stamped(n, string(statemachine.StampTimeout)), s.stamped(n, string(statemachine.StampFailure))
		if timeout {
			timeouts++
		}
		if failure {
			failures++
		}
		if timeout && failure {
			found = append(found, s.violation(Ends, "round %d has timed out and has failed", n)...)
		}
		found = append(found, s.endStates(n)...)
		found = append(found, s.closed(n)...)
	}
	switch {
	case found != nil:
	case timeouts != s.Timeouts:
		found = append(found, s.violation(Ends, "timeouts is %d, but %d rounds have timed out", s.Timeouts, timeouts)...)
	case failures != s.Fails+s.Faults:
		found = append(found, s.violation(Ends, "fails and faults are %d, but %d rounds have failed", s.Fails+s.Faults, failures)...)
	}
	return found
}

func (s *sight) stamped(round int, name string) bool {
	return s.stamps[statemachine.RoundField(round, name)] != ""
}

// endStates: only the last round ends the task, and in one way.
func (s *sight) endStates(round int) []problem {
	var others []string
	for _, state := range append(statemachine.Outcomes(), statemachine.Archived) {
		if s.stamped(round, string(state)) && (round < s.Round || state != s.state() && state != s.End()) {
			others = append(others, string(state))
		}
	}
	switch {
	case len(others) == 0:
		return nil
	case round < s.Round:
		return s.violation(Ends, "round %d was followed by another, but has ended the task as well: %s", round, strings.Join(others, ", "))
	default:
		return s.violation(Ends, "it is %s, but has also been %s in round %d", s.state(), strings.Join(others, ", "), round)
	}
}

// closedBy is the stamp that belongs to the event by which a worker has closed
// its round.
var closedBy = map[statemachine.Event]string{
	statemachine.Report:      string(statemachine.Executed),
	statemachine.StopOverdue: string(statemachine.StampTimeout),
	statemachine.Terminate:   string(statemachine.Terminated),
}

// closed: what the worker has closed the round by is what was recorded.
func (s *sight) closed(round int) []problem {
	end := statemachine.Event(s.stamps[statemachine.RoundField(round, "end")])
	if end == "" {
		return nil
	}
	if stamp, ok := closedBy[end]; ok && !s.stamped(round, stamp) {
		return s.violation(Ends, "round %d was closed by %s, but is not stamped %s", round, end, stamp)
	}
	if end != statemachine.Report && s.stamped(round, string(statemachine.Executed)) {
		return s.violation(Ends, "round %d was closed by %s, but was also executed", round, end)
	}
	return nil
}
