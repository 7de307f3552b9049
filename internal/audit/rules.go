package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/statemachine"
)

// problems are all rules that the task breaks, as it was seen.
func (s *sight) problems() []Violation {
	switch {
	case s.aside != nil && len(s.Listed) == 0:
		return s.violation(SetAside, "was set aside: %s (it was %s, listed in %q)",
			s.aside.Reason, s.aside.State, s.aside.Listed)
	case s.Absent():
		return s.violation(Lost, "there is neither a record of it nor a set that lists it")
	case s.Err != nil:
		return s.violation(Damaged, "%v (listed in %s)", s.Err, s.listed())
	}
	found := s.sets()
	found = append(found, s.counters()...)
	found = append(found, s.limits()...)
	found = append(found, s.recorded()...)
	return append(found, s.indices()...)
}

func (s *sight) violation(kind Kind, format string, args ...any) []Violation {
	return []Violation{{ID: s.ID, Kind: kind, Text: fmt.Sprintf(format, args...)}}
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
func (s *sight) sets() []Violation {
	if len(s.Listed) == 1 && s.Listed[0] == s.state() {
		return nil
	}
	return s.violation(Sets, "its record says %s, it is listed in %s", s.State, s.listed())
}

// counters: each round but the present one ended in a way that was counted, and
// the present one too if the task has ended by that.
func (s *sight) counters() []Violation {
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
func (s *sight) limits() []Violation {
	var found []Violation
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

// recorded: each round that is over was opened, claimed and worked by somebody,
// and the present one has the moments its state implies.
func (s *sight) recorded() []Violation {
	var missing []string
	need := func(round int, names ...string) {
		for _, name := range names {
			if field := statemachine.RoundField(round, name); s.stamps[field] == "" {
				missing = append(missing, field)
			}
		}
	}
	for n := range min(s.Round, mostRounds) {
		need(n, string(statemachine.Open), string(statemachine.Running), "worker")
	}
	if s.Round < mostRounds {
		need(s.Round, s.implied()...)
	}
	if len(missing) == 0 {
		return nil
	}
	return s.violation(Stamps, "it is %s in round %d, but there is no %s",
		s.state(), s.Round, strings.Join(missing, ", "))
}

// implied are the fields the present round must have.
func (s *sight) implied() []string {
	names := []string{string(s.State)}
	if !s.neverOpen() {
		names = append(names, string(statemachine.Open))
	}
	if s.foreignArchive() {
		names = append(names, string(statemachine.Archived))
	}
	last := s.End()
	if last.Ended() {
		names = append(names, string(last))
	}
	switch last {
	case statemachine.Running, statemachine.TimedOut, statemachine.Terminated, statemachine.Orphaned:
		names = append(names, string(statemachine.Running), "worker")
	case statemachine.Executed, statemachine.Succeeded, statemachine.Failed:
		names = append(names, string(statemachine.Running), "worker", string(statemachine.Executed))
	default:
	}
	return names
}

// neverOpen reports whether the task was opened on hold and ended without having
// been released.
func (s *sight) neverOpen() bool {
	switch s.End() {
	case statemachine.Blocked, statemachine.Cancelled, statemachine.Expired:
		return s.Round == 0 && s.stamps[statemachine.RoundField(0, string(statemachine.Blocked))] != ""
	default:
		return false
	}
}

// foreignDelay is how long the servers may take to give a claim of a foreign
// client its deadline.
const foreignDelay = 60 * statemachine.Second

// indices: an open task that may still run lies in its bucket, and one with a
// deadline in the index of deadlines.
func (s *sight) indices() []Violation {
	if !s.adopted {
		return nil
	}
	var found []Violation
	if s.State == statemachine.Open && !s.InBucket && s.now <= s.EndBefore {
		found = s.violation(Index, "it is open, but not in its bucket %s: no worker finds it", s.Bucket.Name())
	}
	if s.Uncounted {
		found = append(found, s.violation(Index, "it runs in queue %s on node %q, but is not counted there: a limit may be exceeded",
			s.Bucket.QueueName(), s.Node)...)
	}
	foreign := s.State == statemachine.Running && s.Current.Claim == ""
	fresh := foreign && s.now.Sub(s.Current.Running) < foreignDelay
	if s.Deadline(0) != statemachine.Never && s.Due == statemachine.Never && !fresh {
		found = append(found, s.violation(Index, "it is %s with a deadline, but not in the index of deadlines",
			s.State)...)
	}
	return found
}
