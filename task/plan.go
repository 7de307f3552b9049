package task

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/statemachine"
)

// PlanNeed is a plan that a job comes after. Its end is completed or, for NeedsFailure, any other.
type PlanNeed struct {
	Plan PlanID `json:"plan"`
	// On is when it is enough; empty for NeedsSuccess.
	On When `json:"on,omitempty"`
}

// PlanState is the state of a plan.
type PlanState string

// The states of a plan.
const (
	PlanBuilding  PlanState = "building"  // nothing of it runs yet
	PlanReady     PlanState = "ready"     // its tasks run
	PlanHeld      PlanState = "held"      // nothing more of it is opened
	PlanCompleted PlanState = "completed" // all of it has ended, and nothing has failed
	PlanFailed    PlanState = "failed"    // all of it has ended, and something has failed
	PlanCancelled PlanState = "cancelled" // an operator has cancelled it
)

// Terminal reports whether nothing more of such a plan is going to start.
func (st PlanState) Terminal() bool {
	return st == PlanCompleted || st == PlanFailed || st == PlanCancelled
}

// OnFailure says what becomes of the tasks that need one which failed.
type OnFailure string

// What a plan does on a failure.
const (
	FailureCancels   OnFailure = "cancel"   // they are cancelled, and what does not need it goes on; the default
	FailureHolds     OnFailure = "hold"     // the plan holds until the task is retried, or the plan is resumed
	FailureContinues OnFailure = "continue" // they run nevertheless
)

// PlanSpec defines a plan.
type PlanSpec struct {
	// Name is for people, at most 256 bytes in one line.
	Name string `json:"name"`
	// OnFailure is FailureCancels if empty.
	OnFailure OnFailure `json:"on_failure"`
	// Job says that its tasks need nothing of one another. They may run as soon as they are added, also before the plan is
	// ready, and cost what tasks of no plan do. It is what one call of the verb submit has made.
	Job bool `json:"job"`
	// Window is how many tasks of a job may be open or run at a time; 0 for any number. After are the jobs, or plans, that one
	// comes after: its tasks wait until all of these are over, and are cancelled where one has not ended as it should.
	// Tasks of either wait until the plan is ready, and servers open them.
	Window int        `json:"window,omitempty"`
	After  []PlanNeed `json:"after,omitempty"`
	// RequestKey names the request for 24 hours: given again, it returns the id of
	// the first time. Without it one is made up, which covers replies lost on the way.
	RequestKey string `json:"-"`
	// Contents says what the plan is made of, where that is known (see manager.Digest): the
	// RequestKey given again for other contents, another name or OnFailure is refused.
	Contents string `json:"-"`
}

// PlanID is the number of a plan, from 1 on. Tasks are numbered on their own, so that task 7
// and plan 7 have nothing to do with one another.
type PlanID int64

// PlanOf reads the field plan of a task: the number of a plan; j and that of a job, or w if it has a window; 0 for another
// text, such as that of a task of a series.
func PlanOf(text string) PlanID {
	id, _ := strconv.ParseInt(strings.TrimLeft(text, "jw"), 10, 64)
	return PlanID(id)
}

// Plan is a plan as it was when it was read: a named set of tasks that need one
// another's results. Its RequestKey and Contents are empty.
type Plan struct {
	PlanSpec

	ID    PlanID    `json:"id"`
	State PlanState `json:"state"`
	// HeldBy is why the plan holds: the id of the task that failed, or the name of
	// the operator who holds it.
	HeldBy string `json:"held_by"`
	// Total is how many tasks it has, those that were retried not counted; Left is how many
	// of them have not ended. Skipped are those that were needed only after a failure
	// which did not come; Ended says how the others ended.
	Total   int64                        `json:"total"`
	Left    int64                        `json:"left"`
	Skipped int64                        `json:"skipped"`
	Ended   map[statemachine.State]int64 `json:"ended"`
	// Failures are the first tasks of a job that did not end as they should, and were not retried: up to five.
	Failures []int64 `json:"failures,omitempty"`
	// Cut says that a round of one of its tasks lost a part of its output or files; see [Task.Cut].
	Cut bool `json:"any_cut,omitempty"`
	// Growing is how many of its steps servers open once the lines of a result are known, and
	// GrowthError why some of these cannot be.
	Growing     int64  `json:"growing"`
	GrowthError string `json:"growth_error"`
	// Created, Ready and Over are when it was made, when it was marked ready last, and
	// when all of it had ended; zero for not yet.
	Created time.Time `json:"created,omitzero"`
	Ready   time.Time `json:"ready,omitzero"`
	Over    time.Time `json:"over,omitzero"`
}

// PlanStep is a step of a plan that servers open once it runs.
type PlanStep struct {
	Name string `json:"step"`
	// Lines is the step for whose lines it is repeated, empty for none.
	Lines string `json:"lines"`
	// State is waits, due, opened, skipped or doomed, and Why says it for people.
	State string `json:"state"`
	Why   string `json:"why"`
	// Opened is how many tasks were opened, Tasks their ids.
	Opened int     `json:"opened"`
	Tasks  []int64 `json:"-"`
}

// StepNeed is a step that another one needs.
type StepNeed struct {
	Step string `json:"step"`
	// On is when it is enough; empty for NeedsSuccess.
	On When `json:"on,omitempty"`
}

// Result is the result of a task: an argument of the tasks that need it.
type Result struct {
	// Task is its id: that of the last retry that has ended, or succeeded if one has.
	Task int64 `json:"task"`
	// End is how it ended; empty if it has not.
	End statemachine.State `json:"end"`
	// Text is what the program wrote as result= to $TDF_CONTROL, or else its output
	// without the newline at the end.
	Text string `json:"text"`
	// Cut says that the output was cut, so that Text is not all of it and no argument.
	Cut bool `json:"cut"`
}

// buildTime is how long building a plan usually takes at most.
const buildTime = time.Minute

// HalfBuilt reports whether the plan should be ready by now. The program that
// builds it may be gone; until it is made ready its tasks do not run.
func (p *Plan) HalfBuilt(now time.Time) bool {
	return p.State == PlanBuilding && now.Sub(p.Created) > buildTime
}

// Verdict is what the end of a task means to one that needs it.
type Verdict string

// What an end can mean.
const (
	VerdictWait  Verdict = "wait"  // it is not enough yet: none has come, or the plan holds until the task is retried
	VerdictMet   Verdict = "met"   // it is enough
	VerdictNever Verdict = "never" // it never will be, which is a failure
	VerdictSkip  Verdict = "skip"  // it never will be, which is no failure
)

// Verdict is the rule that scripts have in lib/plans.lua. on is which end is enough, empty for NeedsSuccess; end
// is how the task ended, empty if it has not, and skipped that it was not needed; f is what its plan does on a
// failure.
func (on When) Verdict(end statemachine.State, skipped bool, f OnFailure) Verdict {
	switch {
	case end == statemachine.None:
		return VerdictWait
	case on == NeedsAny:
		return VerdictMet
	case skipped, on == NeedsFailure && end == statemachine.Succeeded:
		return VerdictSkip
	case on == NeedsFailure, end == statemachine.Succeeded, f == FailureContinues:
		return VerdictMet
	case f == FailureHolds:
		return VerdictWait
	default:
		return VerdictNever
	}
}

// When says which end of a task is enough for one that needs it.
type When string

// Which ends are enough.
const (
	NeedsSuccess When = "success" // the task has succeeded, and has a result; the default
	NeedsAny     When = "any"     // it has ended, however
	NeedsFailure When = "failure" // it has ended without success; otherwise the dependent task is skipped
)

// Need is a task that another one waits for, and whose result it gets as an argument.
type Need struct {
	// Task is its id; 0 if it is an earlier one of the same submission: then Index is its place there, from 0.
	Task  int64 `json:"task"`
	Index int   `json:"-"`
	// On is when it is enough; empty for NeedsSuccess.
	On When `json:"on"`
}

// Values of Spec.Args.
const (
	ArgsWords = "words" // results come as words after those of the input, and as files; the default
	ArgsFiles = "files" // results come as files only
)

// Text is the need as a record has it.
func (n Need) Text() string {
	id := strconv.FormatInt(n.Task, 10)
	if n.On == "" || n.On == NeedsSuccess {
		return id
	}
	return id + ":" + string(n.On)
}

// ParseNeeds reads the field needs of a task. It leaves out what is damaged.
func ParseNeeds(text string) []Need {
	var needs []Need
	for item := range strings.FieldsSeq(text) {
		id, on, _ := strings.Cut(item, ":")
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			continue
		}
		needs = append(needs, Need{Task: n, On: When(cmp.Or(on, string(NeedsSuccess)))})
	}
	return needs
}

// MaxNeeds is the most tasks that one task may need: a script blocks Redis while it runs.
const MaxNeeds = 1000

// CheckNeeds returns a [*statemachine.FieldError] for what a task at a place of its submission cannot need.
func CheckNeeds(needs []Need, place int) error {
	if len(needs) > MaxNeeds {
		return bad("needs", strconv.Itoa(len(needs))+" tasks", "at most "+strconv.Itoa(MaxNeeds))
	}
	kinds := map[[2]int64]When{}
	for _, n := range needs {
		on := cmp.Or(n.On, NeedsSuccess)
		switch {
		case on != NeedsSuccess && on != NeedsAny && on != NeedsFailure:
			return bad("needs", string(n.On), "success, any or failure")
		case !n.before(place):
			return bad("needs", n.Text(), "the id of a task, or one before this one in the request: neither itself nor a later one")
		}
		needed := [2]int64{n.Task, int64(n.Index)}
		if was, again := kinds[needed]; again && was != on {
			return bad("needs", n.Text(), "the same end of a task each time it is named")
		}
		kinds[needed] = on
	}
	return nil
}

// before reports whether a need is an id, or stands before a place in the submission.
func (n Need) before(place int) bool {
	return n.Task > 0 || n.Task == 0 && n.Index >= 0 && n.Index < place
}
