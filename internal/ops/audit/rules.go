package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/statemachine"
)

// judge finds all rules that the task breaks, as it was seen.
func (s *snapshot) judge() {
	switch {
	case s.purged:
	case s.unwritten():
		s.remark(Unwritten, "the id was taken, and no task was ever recorded under it: harmless if a client in another language took it")
	case s.isDeadLetter():
		s.say(DeadLetter, "is a dead letter: %s (it was %s, listed in %q)", s.aside.Reason, s.aside.State, s.aside.Listed)
	case s.Absent():
		s.say(Lost, "there is neither a record of it nor a set that lists it%s", s.lastHeard())
	case s.Task.Err != nil:
		s.say(Damaged, "%v (listed in %s)", s.Task.Err, s.listed())
	default:
		s.sets()
		s.counters()
		s.limits()
		s.recorded()
		if s.violations == nil { // else it is clear what is wrong
			s.ends()
		}
		s.order()
		s.indices()
	}
}

func (s *snapshot) say(kind Kind, format string, args ...any) {
	s.violations = append(s.violations, sprint(s.Task.ID, kind, format, args...))
}

func (s *snapshot) remark(kind Kind, format string, args ...any) {
	s.notes = append(s.notes, sprint(s.Task.ID, kind, format, args...))
}

func (s *snapshot) isDeadLetter() bool { return s.aside != nil && len(s.Listed) == 0 }

// unwritten reports whether nobody has ever written the task: the events go back
// to before its id was given out, and none is about it. Our own clients write a task
// when they take its id; others may die between the two.
func (s *snapshot) unwritten() bool {
	return s.aside == nil && s.Absent() && s.history.since(s.Task.ID) && !s.history.known[s.Task.ID]
}

// lastHeard is what the events say of a task that is gone.
func (s *snapshot) lastHeard() string {
	if s.history.known[s.Task.ID] {
		return ", but there are events of it"
	}
	return "; the events do not go back to when its id was given out"
}

func (s *snapshot) listed() string { return cmp.Or(s.ListedText(", "), "no set") }

// foreignArchive reports whether a foreign manager has archived the task: it
// moves the id and leaves the record at the outcome. The set wins.
func (s *snapshot) foreignArchive() bool {
	return s.Task.State.IsOutcome() && len(s.Listed) == 1 && s.Listed[0] == statemachine.Archived
}

// state is where the task is.
func (s *snapshot) state() statemachine.State {
	if s.foreignArchive() {
		return statemachine.Archived
	}
	return s.Task.State
}

// sets: exactly one, equal to the hash.
func (s *snapshot) sets() {
	if len(s.Listed) != 1 || s.Listed[0] != s.state() {
		s.say(Sets, "its record says %s, it is listed in %s", s.Task.State, s.listed())
	}
}

// counters: each round but the present one ended in a way that was counted, and
// the present one too if the task has ended by that.
func (s *snapshot) counters() {
	t := &s.Task
	want := t.Round
	if s.countedOut() {
		want++
	}
	switch {
	case t.State == statemachine.Archived && !t.Outcome.IsOutcome():
		s.say(Counters, "archived, but its outcome is %q", t.Outcome)
	case t.Ends() != want:
		s.say(Counters, "round %d, but fails %d, timeouts %d, losses %d, releases %d, faults %d (%s)",
			t.Round, t.Fails, t.Timeouts, t.Losses, t.Releases, t.Faults, t.State)
	}
}

// countedOut reports whether the task ended by the count of a round.
func (s *snapshot) countedOut() bool {
	end := s.Task.End()
	return slices.ContainsFunc(statemachine.Counters(), func(c statemachine.Counter) bool {
		return end != statemachine.None && c.End() == end
	})
}

// limits: a counter passes its maximum only by ending the task, and by one.
func (s *snapshot) limits() {
	t, end := &s.Task, s.Task.End()
	exceeded, reached := false, false
	for _, c := range statemachine.Counters() {
		over := statemachine.Limit(t.Counted(c)) - t.Limit(c)
		ended := c.End() != statemachine.None && end == c.End()
		reached = reached || ended && over == 1
		if over > 1 || over == 1 && !ended {
			s.say(Limits, "%s %d is beyond its maximum of %s (%s)", c, t.Counted(c), t.Limit(c).Text(), end)
			exceeded = true
		}
	}
	if !exceeded && !reached && !s.final() {
		s.say(Limits, "ended %s, but no counter is beyond its maximum", end)
	}
}

// final reports whether the task may be where it is with all counters within their
// limits: it did not end by one, a stop was asked for, or its round is final.
func (s *snapshot) final() bool {
	switch end := s.Task.End(); {
	case !s.countedOut():
		return true
	case s.Task.StopAsked: // a task that is lost after that is no orphan
		return end != statemachine.Orphaned
	default:
		return end == statemachine.Failed && s.finalRound()
	}
}

// finalRound reports whether the last round rules out another, by the word of its
// worker or by its exit code.
func (s *snapshot) finalRound() bool {
	t, code := &s.Task, s.Task.Current.ExitCode
	return t.Current.Retry == statemachine.Never || t.Current.HasExit && (slices.Contains(t.FatalCodes, code) ||
		len(t.RetryCodes) > 0 && !slices.Contains(t.RetryCodes, code))
}

// recorded: each round that is over was opened, claimed and worked by somebody,
// and the present one has the moments its state implies.
func (s *snapshot) recorded() {
	var missing []string
	need := func(round int, names ...string) {
		for _, name := range names {
			if !s.stamped(round, name) {
				missing = append(missing, statemachine.RoundField(round, name))
			}
		}
	}
	for n := range min(s.Task.Round, mostRounds) {
		need(n, string(statemachine.Open), string(statemachine.Running), "worker")
	}
	if s.Task.Round < mostRounds {
		need(s.Task.Round, s.implied()...)
	}
	if len(missing) > 0 {
		s.say(Stamps, "it is %s in round %d, but there is no %s", s.state(), s.Task.Round, strings.Join(missing, ", "))
	}
}

// implied are the fields the present round must have.
func (s *snapshot) implied() []string {
	names := []string{string(s.Task.State)}
	if !s.neverOpen() {
		names = append(names, string(statemachine.Open))
	}
	if s.foreignArchive() {
		names = append(names, string(statemachine.Archived))
	}
	last := s.Task.End()
	if last.IsOutcome() {
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
func (s *snapshot) neverOpen() bool {
	switch s.Task.End() {
	case statemachine.Blocked, statemachine.Cancelled, statemachine.Expired:
		return s.Task.Round == 0 && s.stamped(0, string(statemachine.Blocked))
	default:
		return false
	}
}

// order: within a round, open or blocked, running, executed, the end; and then the
// next round. A clock that was set back breaks that, and so do the clocks of clients in
// other languages. It is a violation where the events prove that neither was the
// case, and else a note. The first of a task is told.
func (s *snapshot) order() {
	past := moment{}
	for n := range min(s.Task.Round+1, mostRounds) {
		latest := past
		for _, names := range moments() {
			group := latest
			for _, name := range names {
				m := s.moment(n, name)
				if m.at == 0 {
					continue
				}
				if m.at < latest.at {
					s.disorder(latest, m)
					return
				}
				group = slices.MaxFunc([]moment{group, m}, func(x, y moment) int { return cmp.Compare(x.at, y.at) })
			}
			latest = group
		}
		past = latest
	}
}

// moment is a stamp; ours says that one of our own programs has set it, by the clock of
// Redis.
type moment struct {
	field string
	at    statemachine.Time
	ours  bool
}

// moments are the stamps of a round in order; those in one group come in any order.
func moments() [][]string {
	ends := make([]string, 0, len(statemachine.Outcomes()))
	for _, state := range statemachine.Outcomes() {
		ends = append(ends, string(state))
	}
	return [][]string{
		{string(statemachine.Open), string(statemachine.Blocked)}, {string(statemachine.Running)}, {string(statemachine.Executed)},
		{statemachine.StampTimeout, statemachine.StampFailure}, ends, {string(statemachine.Archived)},
	}
}

func (s *snapshot) moment(round int, name string) moment {
	m := moment{field: statemachine.RoundField(round, name)}
	if text := s.stamps[m.field]; text != "" {
		m.at, _ = statemachine.ParseTime(text) // a malformed time is not compared
	}
	switch statemachine.State(name) {
	case statemachine.Archived:
	case statemachine.Open, statemachine.Blocked:
		m.ours = round > 0 || s.history.made[s.Task.ID]
	case statemachine.Running, statemachine.Executed:
		m.ours = s.stamped(round, "claim")
	default:
		m.ours = true
	}
	return m
}

func (s *snapshot) disorder(first, second moment) {
	text := fmt.Sprintf("%s is %s, before %s at %s", second.field, second.at.Text(), first.field, first.at.Text())
	if h := s.history; first.ours && second.ours && h.inOrder && h.first > 0 && second.at >= h.first {
		s.say(Order, "%s", text)
	} else {
		s.remark(Order, "%s: a clock was set back, or is another client's", text)
	}
}

// ends: each round that is over has one end, which the task has counted, and the
// present round has one if the task has ended.
func (s *snapshot) ends() {
	if s.Task.Round >= mostRounds {
		return
	}
	timeouts, failures := 0, 0
	for n := range s.Task.Round + 1 {
		timeout, failure := s.stamped(n, statemachine.StampTimeout), s.stamped(n, statemachine.StampFailure)
		if timeout {
			timeouts++
		}
		if failure {
			failures++
		}
		if timeout && failure {
			s.say(Ends, "round %d has timed out and has failed", n)
		}
		s.endStates(n)
		s.closed(n)
	}
	switch {
	case s.violations != nil:
	case timeouts != s.Task.Timeouts:
		s.say(Ends, "timeouts is %d, but %d rounds have timed out", s.Task.Timeouts, timeouts)
	case failures != s.Task.Fails+s.Task.Faults:
		s.say(Ends, "fails and faults are %d, but %d rounds have failed", s.Task.Fails+s.Task.Faults, failures)
	}
}

func (s *snapshot) stamped(round int, name string) bool {
	return s.stamps[statemachine.RoundField(round, name)] != ""
}

// endStates: only the last round ends the task, and in one way.
func (s *snapshot) endStates(round int) {
	var others []string
	for _, state := range append(statemachine.Outcomes(), statemachine.Archived) {
		if s.stamped(round, string(state)) && (round < s.Task.Round || state != s.state() && state != s.Task.End()) {
			others = append(others, string(state))
		}
	}
	switch {
	case len(others) == 0:
	case round < s.Task.Round:
		s.say(Ends, "round %d was followed by another, but has ended the task as well: %s", round, strings.Join(others, ", "))
	default:
		s.say(Ends, "it is %s, but has also been %s in round %d", s.state(), strings.Join(others, ", "), round)
	}
}

// closedBy is the stamp that belongs to the event by which a worker has closed
// its round.
var closedBy = map[statemachine.Event]string{
	statemachine.Report:      string(statemachine.Executed),
	statemachine.StopOverdue: statemachine.StampTimeout,
	statemachine.Terminate:   string(statemachine.Terminated),
}

// closed: what the worker has closed the round by is what was recorded.
func (s *snapshot) closed(round int) {
	end := statemachine.Event(s.stamps[statemachine.RoundField(round, "end")])
	stamp, ok := closedBy[end]
	switch {
	case ok && !s.stamped(round, stamp):
		s.say(Ends, "round %d was closed by %s, but is not stamped %s", round, end, stamp)
	case end != "" && end != statemachine.Report && s.stamped(round, string(statemachine.Executed)):
		s.say(Ends, "round %d was closed by %s, but was also executed", round, end)
	}
}
