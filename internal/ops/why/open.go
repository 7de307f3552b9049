package why

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// name is how the task is called.
func (s *Situation) name() string { return strconv.FormatInt(s.Task.ID, 10) }

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
	if s.Stepped == 0 || s.Now.Sub(s.Stepped) > recent && s.Ahead < statemachine.Second {
		return nil
	}
	way := "forward"
	if s.StepBy < 0 {
		way = "back"
	}
	text := fmt.Sprintf("the clock of Redis stepped %s by %s, %s ago", way, span(max(s.StepBy, -s.StepBy)), span(s.Now.Sub(s.Stepped)))
	if s.Ahead > 0 {
		text += fmt.Sprintf("; stamps are %s ahead of it, start_after and end_before mean what it shows", span(s.Ahead))
	}
	return Explanation{{Kind: KindClock, Text: text}}
}

// timely finds why the task could not even be claimed if every worker were free.
func (s *Situation) timely() Explanation {
	var found Explanation
	t := &s.Task
	add := func(kind Kind, change Remedy, format string, args ...any) {
		found = append(found, Reason{Kind: kind, Text: fmt.Sprintf(format, args...), Blocks: true, Change: change})
	}
	if t.Unlisted {
		add(KindUnlisted, Remedy{Object: ObjectTask, Name: s.name(), Attribute: AttrListed, Value: "true"},
			"another client opened it, and no server has taken it over yet: is one running?")
	}
	wait := func(until statemachine.Time) Remedy {
		return Remedy{Object: ObjectTime, Attribute: AttrNow, Value: until.Text()}
	}
	if redis := s.redis(); t.StartAfter > redis {
		add(KindStart, wait(t.StartAfter), "not due until %s, in %s", moment(t.StartAfter), span(t.StartAfter.Sub(redis)))
	}
	if t.NotBefore > s.Now {
		add(KindBackoff, wait(t.NotBefore), "rests until %s, in %s%s", moment(t.NotBefore), span(t.NotBefore.Sub(s.Now)), s.lastEnd())
	}
	if s.At().Add(-s.Ahead) > t.EndBefore {
		change := Remedy{Object: ObjectTask, Name: s.name(), Attribute: AttrEndBefore, Value: statemachine.Never.Text()}
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
	if len(s.Task.Rounds) == 0 {
		return ""
	}
	return " after " + roundText(&s.Task.Rounds[len(s.Task.Rounds)-1])
}

// Plan is the plan of a task.
type Plan struct {
	ID int64
	// State is one of the constants below; another one is that of a plan that is over.
	State PlanState
	// HeldBy is who holds it, with what that said; FailedTask is the task because of which it holds, 0 if a person does, and
	// FailedStep what that is called in the plan.
	HeldBy     string
	FailedTask int64
	FailedStep string
}

// PlanState is how far a plan has come.
type PlanState string

// The states of a plan that matter here.
const (
	PlanBuilding  PlanState = "building"
	PlanReady     PlanState = "ready"
	PlanHeld      PlanState = "held"
	PlanCancelled PlanState = "cancelled"
)

// Need is a task that another one waits for; of one that was retried, the last.
type Need struct {
	ID int64
	// Step is what it is called in the plan, empty for nothing.
	Step string
	// State is where it is, On which end is enough: success, any or failure.
	State statemachine.State
	On    string
}

// Cause is a task because of which another one never runs.
type Cause struct {
	ID int64
	// Step is what it is called in the plan, empty for nothing.
	Step string
	// End is how it ended, Round how its last round did, if it had any.
	End   statemachine.State
	Round *task.Round
	// Skipped says that it is no failure: the other was to run only if this one did not succeed.
	Skipped bool
}

// planned says what keeps a blocked task from being opened.
func (s *Situation) planned() Explanation {
	t := &s.Task
	if t.Plan.ID == 0 {
		return Explanation{s.held()}
	}
	if t.Cause.ID != 0 {
		text := t.Cause.verdict() + ": a server will cancel it"
		change := t.Plan.remedy(AttrRetry, strconv.FormatInt(t.Cause.ID, 10))
		return Explanation{{Kind: KindDoomed, Text: text, Blocks: true, Change: change}, t.Cause.reason()}
	}
	var found Explanation
	if t.HandHeld {
		found = append(found, s.held())
	}
	if r := s.planState(); r.Text != "" {
		found = append(found, r)
	}
	if len(t.Needs) > 0 {
		change := Remedy{Object: ObjectTask, Name: s.name(), Attribute: AttrNeeds}
		found = append(found, Reason{Kind: KindNeeds, Text: t.missing(), Blocks: true, Change: change})
	}
	if len(found) > 0 {
		return found
	}
	change := Remedy{Object: ObjectTask, Name: s.name(), Attribute: AttrListed, Value: "true"}
	text := fmt.Sprintf("plan %d lets it run now: it waits for a server to open it", t.Plan.ID) + s.server()
	return Explanation{{Kind: KindServer, Text: text, Blocks: true, Change: change}}
}

func (p *Plan) remedy(attribute, value string) Remedy {
	return Remedy{Object: ObjectPlan, Name: strconv.FormatInt(p.ID, 10), Attribute: attribute, Value: value}
}

// planState says why nothing of the plan starts; without a text it does.
func (s *Situation) planState() Reason {
	p := &s.Task.Plan
	blocks := func(change Remedy, format string, args ...any) Reason {
		return Reason{Kind: KindPlan, Text: fmt.Sprintf("plan %d "+format, append([]any{p.ID}, args...)...), Blocks: true, Change: change}
	}
	switch {
	case p.State == PlanReady:
		return Reason{}
	case p.State == PlanBuilding:
		return blocks(p.remedy(AttrReady, "true"), "is being built: nothing of it runs before it is marked ready")
	case p.State == PlanHeld && p.FailedTask != 0:
		change := p.remedy(AttrRetry, strconv.FormatInt(p.FailedTask, 10))
		return blocks(change, "is held, because %s did not succeed", called(p.FailedTask, p.FailedStep))
	case p.State == PlanHeld:
		return blocks(p.remedy(AttrHold, ""), "is held%s", by(p.HeldBy))
	default:
		return blocks(p.remedy(AttrSubmit, ""), "is %s: nothing more of it runs", p.State)
	}
}

// missing names the tasks that it waits for, and how far they are.
func (t *Task) missing() string {
	names := make([]string, len(t.Needs))
	for i, n := range t.Needs {
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
	case n.State.Ended() && n.On == "success" && n.State != statemachine.Succeeded:
		text += ", to be retried"
	case n.State.Ended():
		text += ", a server is to tell it"
	case n.On == "any":
		text += ", its end is enough"
	case n.On == "failure":
		text += ", must not succeed"
	default: // it is to succeed
	}
	return text
}

// called is a task by its id and its step.
func called(id int64, step string) string {
	if step == "" {
		return fmt.Sprintf("task %d", id)
	}
	return fmt.Sprintf("task %d (%s)", id, step)
}

// verdict says that the task never runs.
func (c *Cause) verdict() string {
	if c.Skipped {
		return fmt.Sprintf("skipped: it was to run only if %s did not succeed", called(c.ID, c.Step))
	}
	return called(c.ID, c.Step) + ", which it needs, did not succeed"
}

// reason says how the cause came about.
func (c *Cause) reason() Reason {
	text := fmt.Sprintf("%s ended %s", called(c.ID, c.Step), c.End)
	if c.End == statemachine.None {
		text = fmt.Sprintf("there is no record of how %s ended", called(c.ID, c.Step))
	}
	if c.Round != nil && c.End != statemachine.Succeeded {
		text += ": " + roundText(c.Round)
	}
	return Reason{Kind: KindCause, Text: text}
}
