package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/statemachine"
)

// problems are all rules that the task breaks, as it was seen.
func (s *sight) problems() []problem {
	switch {
	case s.purged:
		return nil
	case s.unwritten():
		return s.note(Unwritten, "the id was taken, and no task was ever recorded under it: harmless if a client in another language took it")
	case s.setAside():
		return s.violation(SetAside, "was set aside: %s (it was %s, listed in %q)",
			s.aside.Reason, s.aside.State, s.aside.Listed)
	case s.Absent():
		return s.violation(Lost, "there is neither a record of it nor a set that lists it%s", s.lastHeard())
	case s.Err != nil:
		return s.violation(Damaged, "%v (listed in %s)", s.Err, s.listed())
	}
	found := s.sets()
	found = append(found, s.counters()...)
	found = append(found, s.limits()...)
	found = append(found, s.recorded()...)
	if found == nil { // else it is clear what is wrong
		found = s.ends()
	}
	found = append(found, s.order()...)
	return append(found, s.indices()...)
}

// problem is a violation, or only a note.
type problem struct {
	Violation
	note bool
}

func (s *sight) violation(kind Kind, format string, args ...any) []problem {
	return []problem{{Violation: Violation{ID: s.ID, Kind: kind, Text: fmt.Sprintf(format, args...)}}}
}

func (s *sight) note(kind Kind, format string, args ...any) []problem {
	found := s.violation(kind, format, args...)
	found[0].note = true
	return found
}

func (s *sight) setAside() bool { return s.aside != nil && len(s.Listed) == 0 }

// unwritten reports whether nobody has ever written the task: the events go back
// to before its id was given out, and none is about it. Our own clients write a task
// when they take its id; others may die between the two.
func (s *sight) unwritten() bool {
	return s.aside == nil && s.Absent() && s.history.since(s.ID) && !s.history.known[s.ID]
}

// lastHeard is what the events say of a task that is gone.
func (s *sight) lastHeard() string {
	if s.history.known[s.ID] {
		return ", but there are events of it"
	}
	return "; the events do not go back to when its id was given out"
}

func (s *sight) listed() string {
	names := make([]string, len(s.Listed))
	for i, state := range s.Listed {
		names[i] = string(state)
	}
	if len(names) == 0 {
		return "no set"
	}
	return strings.Join(names, ", ")
}

// foreignArchive reports whether a foreign manager has archived the task: it
// moves the id and leaves the record at the outcome. The set wins.
func (s *sight) foreignArchive() bool {
	return s.State.Ended() && len(s.Listed) == 1 && s.Listed[0] == statemachine.Archived
}

// state is where the task is.
func (s *sight) state() statemachine.State {
	if s.foreignArchive() {
		return statemachine.Archived
	}
	return s.State
}

// sets: exactly one, equal to the hash.
func (s *sight) sets() []problem {
	if len(s.Listed) == 1 && s.Listed[0] == s.state() {
		return nil
	}
	return s.violation(Sets, "its record says %s, it is listed in %s", s.State, s.listed())
}

// counters: each round but the present one ended in a way that was counted, and
// the present one too if the task has ended by that.
func (s *sight) counters() []problem {
	if s.State == statemachine.Archived && !s.Outcome.Ended() {
		return s.violation(Counters, "archived, but its outcome is %q", s.Outcome)
	}
	want := s.Round
	if s.countedOut() {
		want++
	}
	if s.Ends() == want {
		return nil
	}
	return s.violation(Counters, "round %d, but fails %d, timeouts %d, losses %d, releases %d, faults %d (%s)",
		s.Round, s.Fails, s.Timeouts, s.Losses, s.Releases, s.Faults, s.State)
}

// countedOut reports whether the task ended by the count of a round.
func (s *sight) countedOut() bool {
	return slices.ContainsFunc(statemachine.Counters(), func(c statemachine.Counter) bool {
		return s.End() != statemachine.None && c.End() == s.End()
	})
}

// limits: a counter passes its maximum only by ending the task, and by one.
func (s *sight) limits() []problem {
	var found []problem
	reached := false
	for _, c := range statemachine.Counters() {
		over := statemachine.Limit(s.Counted(c)) - s.Limit(c)
		ended := c.End() != statemachine.None && s.End() == c.End()
		reached = reached || ended && over == 1
		if over > 1 || over == 1 && !ended {
			found = append(found, s.violation(Limits, "%s %d is beyond its maximum of %s (%s)",
				c, s.Counted(c), s.Limit(c).Text(), s.End())...)
		}
	}
	if len(found) > 0 || reached || s.final() {
		return found
	}
	return s.violation(Limits, "ended %s, but no counter is beyond its maximum", s.End())
}

// final reports whether the task may be where it is with all counters within their
// limits: it did not end by one, a stop was asked for, or its exit code is final.
func (s *sight) final() bool {
	switch end := s.End(); {
	case !s.countedOut():
		return true
	case s.StopAsked: // a task that is lost after that is no orphan
		return end != statemachine.Orphaned
	default:
		return end == statemachine.Failed && s.finalExit()
	}
}

// finalExit reports whether the exit code of the last round rules out another.
func (s *sight) finalExit() bool {
	code := s.Current.ExitCode
	return s.Current.HasExit && (slices.Contains(s.FatalCodes, code) ||
		len(s.RetryCodes) > 0 && !slices.Contains(s.RetryCodes, code))
}
