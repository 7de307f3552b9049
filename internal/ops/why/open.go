package why

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// open explains an open task.
func (s *Situation) open() (Explanation, error) {
	reasons := s.timely()
	found, err := s.hindered(len(reasons) == 0)
	return append(reasons, found...), err
}

// recent is for how long a step of the clock of Redis is named.
const recent = 3600 * statemachine.Second

// stepped names a step of the clock of Redis, of which people may wonder at the times.
func (s *Situation) stepped() Explanation {
	step, ahead := s.Clock, s.ahead()
	if step.At == 0 || s.Now.Sub(step.At) > recent && ahead < statemachine.Second {
		return nil
	}
	way := "forward"
	if step.By < 0 {
		way = "back"
	}
	text := fmt.Sprintf("the clock of Redis stepped %s by %s, %s ago", way, span(timing.FromStd(step.By.Abs())), span(s.Now.Sub(step.At)))
	if ahead > 0 {
		text += fmt.Sprintf("; stamps are %s ahead of it, start_after and end_before mean what it shows", span(ahead))
	}
	return Explanation{{Kind: KindClock, Text: text}}
}

// timely finds why the task could not even be claimed if every worker were free.
func (s *Situation) timely() Explanation {
	var found Explanation
	t := &s.Task
	add := func(kind Kind, change Remedy, format string, args ...any) {
		found = append(found, blocks(kind, change, fmt.Sprintf(format, args...)))
	}
	if s.Unlisted {
		add(KindUnlisted, s.onTask(AttrListed, "true"),
			"another client opened it, and no server has taken it over yet: is one running?")
	}
	wait := func(until statemachine.Time) Remedy {
		return Remedy{Object: "time", Attribute: AttrNow, Value: until.Text()}
	}
	if redis := s.redis(); t.StartAfter > redis {
		add(KindStart, wait(t.StartAfter), "not due until %s, in %s", moment(t.StartAfter), span(t.StartAfter.Sub(redis)))
	}
	if till, to := s.left(); t.NotBefore > s.Now && to == "/" {
		add(KindVersion, wait(t.NotBefore), "no worker had %s; it waits for one until %s, and is tried again %s",
			s.version(), moment(till), moment(t.NotBefore))
	} else if t.NotBefore > s.Now {
		add(KindBackoff, wait(t.NotBefore), "rests until %s, in %s%s", moment(t.NotBefore), span(t.NotBefore.Sub(s.Now)), s.lastEnd())
	}
	if s.at().Add(-s.ahead()) > t.EndBefore {
		change := s.onTask(AttrEndBefore, statemachine.Never.Text())
		if redis := s.redis(); redis > t.EndBefore {
			add(KindLate, change, "its end_before was %s, %s ago: a server will end it as expired",
				moment(t.EndBefore), span(redis.Sub(t.EndBefore)))
		} else {
			add(KindLate, change, "its end_before is %s, before it may start: it will expire", moment(t.EndBefore))
		}
	}
	return found
}

// lastEnd says how the last round ended.
func (s *Situation) lastEnd() string {
	if r := lastEnded(&s.Record); r != nil {
		return " after " + roundText(r)
	}
	return ""
}

// planned says what keeps a blocked task from being opened.
func (s *Situation) planned() Explanation {
	if s.Record.Plan == 0 {
		return Explanation{s.held()}
	}
	if id := s.Record.DoomedBy; id != 0 {
		change := s.onPlan(AttrRetry, strconv.FormatInt(id, 10))
		return Explanation{blocks(KindDoomed, change, s.verdict()+": a server will cancel it"), s.cause()}
	}
	var found Explanation
	if s.HandHeld {
		found = append(found, s.held())
	}
	if r := s.planState(); r.Text != "" {
		found = append(found, r)
	}
	if len(s.Needs) > 0 {
		found = append(found, blocks(KindNeeds, s.onTask(AttrNeeds, ""), s.missing()))
	}
	if len(found) > 0 {
		return found
	}
	if s.Plan.Window > 0 {
		text := plans.WindowText(&s.Plan) + ": it is opened when one of them has ended"
		return Explanation{blocks(KindPlan, s.onPlan(AttrWindow, ""), text)}
	}
	text := fmt.Sprintf("plan %d lets it run now: it waits for a server to open it", s.Record.Plan) + s.server()
	return Explanation{blocks(KindServer, s.onTask(AttrListed, "true"), text)}
}

// planState says why nothing of the plan starts; without a text it does.
func (s *Situation) planState() Reason {
	p := &s.Plan
	says := func(attribute, value, text string) Reason {
		return blocks(KindPlan, s.onPlan(attribute, value), fmt.Sprintf("plan %d %s", s.Record.Plan, text))
	}
	before, after := strings.CutPrefix(p.HeldBy, plans.HeldByJob)
	switch failed, _ := strconv.ParseInt(p.HeldBy, 10, 64); {
	case plans.Runs(p):
		return Reason{}
	case p.State == task.PlanBuilding:
		return says(AttrReady, "true", "is being built: nothing of it runs before it is marked ready")
	case p.State == task.PlanHeld && failed != 0:
		return says(AttrRetry, p.HeldBy, "is held, because "+called(failed, s.FailedStep)+" did not succeed")
	case p.State == task.PlanHeld && after:
		text := fmt.Sprintf("job %s waits for the end of job %s", plans.JobName(s.Record.Plan), before)
		return blocks(KindPlan, s.onPlan(AttrAfter, before), text)
	case p.State == task.PlanHeld:
		return says(AttrHold, "", "is held"+with(" by ", p.HeldBy))
	default:
		return says(AttrSubmit, "", "is "+string(p.State)+": nothing more of it runs")
	}
}

// missing names the tasks that it waits for, and how far they are.
func (s *Situation) missing() string {
	names := make([]string, len(s.Needs))
	for i, n := range s.Needs {
		names[i] = strings.TrimSpace(strconv.FormatInt(n.ID, 10)+" "+n.Step) + " (" + n.text() + ")"
	}
	return "waits for " + things(int64(len(names)), "task", "tasks") + ": " + some(names)
}

// text is how far a task is that is needed.
func (n *Need) text() string {
	text := string(n.State)
	switch {
	case text == "":
		text = "there is no record of it"
	case n.State.IsOutcome() && n.On == task.NeedsSuccess && n.State != statemachine.Succeeded:
		text += ", to be retried"
	case n.State.IsOutcome():
		text += ", a server is to tell it"
	case n.On == task.NeedsAny:
		text += ", its end is enough"
	case n.On == task.NeedsFailure:
		text += ", must not succeed"
	default: // it is to succeed
	}
	return text
}

// called is a task by its id and its step.
func called(id int64, step string) string {
	if step != "" {
		step = " (" + step + ")"
	}
	return fmt.Sprintf("task %d%s", id, step)
}

// verdict says that the task never runs.
func (s *Situation) verdict() string {
	if s.Record.Skipped {
		return fmt.Sprintf("skipped: it was to run only if %s did not succeed", s.doomer())
	}
	return s.doomer() + ", which it needs, did not succeed"
}

// doomer is the task because of which this one never runs.
func (s *Situation) doomer() string {
	if s.Cause == nil {
		return called(s.Record.DoomedBy, "")
	}
	return called(s.Record.DoomedBy, s.Cause.Step)
}

// cause says how that one ended.
func (s *Situation) cause() Reason {
	if s.Cause == nil || s.Cause.End() == statemachine.None {
		return Reason{Kind: KindCause, Text: fmt.Sprintf("there is no record of how %s ended", s.doomer())}
	}
	text := fmt.Sprintf("%s ended %s", s.doomer(), s.Cause.End())
	if r := lastEnded(s.Cause); r != nil && s.Cause.End() != statemachine.Succeeded {
		text += ": " + roundText(r)
	}
	return Reason{Kind: KindCause, Text: text}
}
