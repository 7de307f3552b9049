package manager

import (
	"regexp"

	"github.com/tdf-go/tdf/statemachine"
)

// IDRange is the ids from First to Last, both included.
type IDRange struct{ First, Last int64 }

// Selection says which tasks are meant: those that fit all its conditions. One
// without IDs, All or another condition is refused, so that a slip does not mean
// every task.
type Selection struct {
	// IDs are the tasks meant, one range after the other; All says that every task
	// is, as far as the other conditions go.
	IDs []IDRange
	All bool
	// States are those a task may be in, in the order wanted; none means every
	// state, but Archived only where IDs or Outcomes are given, or with Archived.
	States   []statemachine.State
	Archived bool
	// Outcomes are how an ended task may have ended, archived or not.
	Outcomes []statemachine.State
	// Queue and Program are exact names; empty means any.
	Queue, Program string
	// Match is looked for in the error of the last round that a worker has begun.
	Match *regexp.Regexp

	// Fields are further hash fields to read into Summary.Fields.
	Fields []string
	// Newest lists, of each state, the tasks first that came into it last, at most
	// Limit of a state (0: no limit). It is for looking: tasks that move meanwhile
	// may be missed or come twice. Without it all that fit are found once, in no
	// promised order, also if they are changed page by page.
	Newest bool
	Limit  int
}

// Summary is what a list tells of a task.
type Summary struct {
	ID             int64
	State, Outcome statemachine.State
	Round          int
	Program, Queue string
	Priority       int
	// Error is the beginning of that of the last round that a worker has begun, at
	// most 1 KiB. It is read only where Selection.Match is given.
	Error string
	// Fields are the hash fields that were read, as they stand in Redis, for the
	// names of SummaryFields and Selection.Fields.
	Fields map[string]string

	matched bool // by Selection.Match
}

// SummaryFields are the hash fields that are read for every [Summary].
func SummaryFields() []string {
	return []string{"state", "outcome", "round", "program", "queue", "priority"}
}
