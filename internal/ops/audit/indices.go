package audit

import (
	"github.com/tdf-go/tdf/statemachine"
)

// foreignDelay is how long the servers may take to give a claim of a foreign
// client its deadline.
const foreignDelay = 60 * statemachine.Second

// indices: an open task that may still run lies in its bucket, and one with a
// deadline in the index of deadlines.
func (s *sight) indices() []problem {
	if !s.adopted {
		return nil
	}
	found := s.waiting()
	if s.Uncounted {
		found = append(found, s.violation(Index, "it runs in queue %s on node %q, but is not counted there: a limit may be exceeded",
			s.Bucket.QueueName(), s.Node)...)
	}
	if s.Unwatched {
		found = append(found, s.violation(Index,
			"it runs on worker %s, but no lease watches over it: nobody learns of that worker's death", s.Worker)...)
	}
	if s.Abandoned {
		found = append(found, s.violation(Index, "worker %s has registered anew since it claimed the round: nobody runs it", s.Worker)...)
	}
	if s.Untold {
		found = append(found, s.violation(Index, "a stop was asked for, but worker %s will not hear of it", s.Worker)...)
	}
	return append(found, s.deadline()...)
}

// waiting: an open task that may still run lies in its bucket, where workers look.
func (s *sight) waiting() []problem {
	switch {
	case s.State != statemachine.Open || s.now > s.EndBefore:
		return nil
	case !s.InBucket:
		return s.violation(Index, "it is open, but not in its bucket %s: no worker finds it", s.Bucket.Name())
	case s.unlisted:
		return s.violation(Index, "it is open, but its bucket %s is not on the list of buckets: no worker finds it", s.Bucket.Name())
	}
	return nil
}

// deadline: whoever has one is in the index of deadlines in time. Ended tasks that are
// in it are found there, see strays.
func (s *sight) deadline() []problem {
	foreign := s.State == statemachine.Running && s.Current.Claim == ""
	fresh := foreign && s.now.Sub(s.Current.Running) < foreignDelay
	want := s.Deadline(s.grace)
	switch {
	case fresh || want == statemachine.Never && (s.Due == statemachine.Never || foreign || s.setToRest()):
		return nil
	case want == statemachine.Never:
		return s.violation(Index, "it is %s without a deadline, but in the index of deadlines at %s", s.State, s.Due.Text())
	case s.Due == statemachine.Never:
		return s.violation(Index, "it is %s with a deadline, but not in the index of deadlines", s.State)
	case s.Due > want.Add(foreignDelay) && s.Due > s.now.Add(foreignDelay):
		return s.violation(Index, "its deadline is %s, but the index of deadlines has it at %s", want.Text(), s.Due.Text())
	}
	return nil
}

// setToRest reports whether the task has no deadline because of the state it is in.
func (s *sight) setToRest() bool {
	return s.State == statemachine.Executed || s.State == statemachine.Archived || s.State.Ended()
}
