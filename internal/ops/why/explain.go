package why

import "github.com/tdf-go/tdf/statemachine"

// Explain says why the task is where it is. What blocks an open or blocked task
// comes first, for the worker that is nearest to taking it: once everything that
// its reasons propose is done, a claim takes the task. Without a reason that
// blocks, the next claim of some worker takes it now.
func Explain(s Situation) Explanation { return append(s.explain(), s.stepped()...) }

func (s *Situation) explain() Explanation {
	switch t := &s.Task; t.State {
	case statemachine.Open:
		return s.open()
	case statemachine.Blocked:
		return s.blocked()
	case statemachine.Running:
		return s.running()
	case statemachine.Executed:
		return s.executed()
	default:
		return s.ended()
	}
}

// held says who holds the task.
func (s *Situation) held() Reason {
	t := &s.Task
	release := Remedy{Object: ObjectTask, Name: s.name(), Attribute: AttrHold}
	text := "held" + by(t.HeldBy) + since(s.Now, t.Since) + saying(t.HoldReason)
	return Reason{Kind: KindHeld, Text: text, Blocks: true, Change: release}
}

// blocked explains a blocked task, and what it will meet once it is released.
func (s *Situation) blocked() Explanation {
	reasons := s.planned()
	if s.Task.Cause.ID != 0 { // it is never going to be open
		return reasons
	}
	reasons = append(reasons, s.timely()...)
	for _, r := range s.hindered() {
		if r.Blocks {
			r.Text = "once released: " + r.Text
			reasons = append(reasons, r)
		}
	}
	return reasons
}
