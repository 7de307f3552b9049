package manager

import (
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
)

// When says which end of a task is enough for one that needs it.
type When string

// Which ends are enough.
const (
	// NeedsSuccess waits for the result; the default.
	NeedsSuccess = When(store.NeedsSuccess)
	// NeedsAny waits for the end, whatever it is.
	NeedsAny = When(store.NeedsAny)
	// NeedsFailure waits for any end but success; if it succeeds, the dependant is skipped.
	NeedsFailure = When(store.NeedsFailure)
)

// Need is a task that another one waits for, and whose result it gets as an
// argument (zk-plan: prov and dep).
type Need struct {
	// Task is its id; 0 if it is one before in the same submission: then Index is its
	// place there, from 0.
	Task  int64
	Index int
	// On is when it is enough; empty for NeedsSuccess.
	On When
}

// Values of Spec.Args.
const (
	ArgsWords = store.ArgsWords // results come as words after those of the input, and as files; the default
	ArgsFiles = store.ArgsFiles // results come as files only
)

// InPlan adds the tasks to a plan, in calls of at most 100 tasks or 100 needs.
// What the spec of a task and its queue leave open is as plans have it
// (max_fails 5, retry_delay 100 ms, growing by 1.5 up to 10 s), whatever
// [task_defaults] says of these four. The error may match [ErrNoPlan] or
// [ErrPlanState], or be a *[NeedError].
func InPlan(id int64) OpenOption {
	return func(s *submission) { s.plan, s.size = id, min(s.size, store.PlanTasks) }
}

// planDefaults are the defaults of tasks in plans (zk-plan: the backoff of workers).
func planDefaults(c config.TaskDefaults) config.TaskDefaults {
	c.MaxFails, c.RetryDelay, c.RetryBackoff, c.RetryMaxDelay = "5", "0.1", "1.5", "10"
	return c
}

// resolve puts ids for what was opened before in the same submission.
func (s *submission) resolve(needs []Need) []store.Need {
	if len(needs) == 0 {
		return nil
	}
	resolved := make([]store.Need, 0, len(needs))
	for _, n := range needs {
		r := store.Need{Task: n.Task, On: store.When(n.On)}
		switch {
		case n.Task != 0:
		case n.Index >= 0 && n.Index < len(s.opened):
			r.Task = s.opened[n.Index].ID
		default:
			r.Index = n.Index - len(s.opened)
		}
		resolved = append(resolved, r)
	}
	return resolved
}

// full reports whether a batch with so many needs takes no task with more.
func (s *submission) full(more int) bool {
	return len(s.batch) > 0 && (len(s.batch) >= s.size || s.needs+more > store.PlanNeeds)
}

// needsOf reads what the record of a task says that it needs.
func needsOf(text string) []Need {
	found := store.ParseNeeds(text)
	if len(found) == 0 {
		return nil
	}
	needs := make([]Need, 0, len(found))
	for _, n := range found {
		needs = append(needs, Need{Task: n.Task, On: When(n.On)})
	}
	return needs
}
