package audit

import (
	"fmt"

	"github.com/tdf-go/tdf/statemachine"
)

// Violation is something that cannot be, about one task or, with id 0, about what
// belongs to none.
type Violation struct {
	ID int64 `json:"id"`
	// Kind is one of the constants of this package.
	Kind Kind   `json:"kind"`
	Text string `json:"text"`
}

// Kind says which promise is broken.
type Kind string

// The kinds of violations.
const (
	// Lost: an id was given out, and there is neither a record nor a set with it.
	Lost Kind = "lost"
	// SetAside: a server took the damaged task out of all sets.
	SetAside Kind = "set_aside"
	// Damaged: the hash is missing or does not hold what it must.
	Damaged Kind = "damaged"
	// Sets: the task is not in exactly one state set, equal to its hash.
	Sets Kind = "sets"
	// Counters: they do not add up to the round.
	Counters Kind = "counters"
	// Limits: a counter is beyond its maximum.
	Limits Kind = "limits"
	// Stamps: a moment that must have been recorded is not there.
	Stamps Kind = "stamps"
	// Order: the moments of a task are not in the order in which they must have been.
	Order Kind = "order"
	// Ends: a round has not exactly one end, or one that its task has not counted.
	Ends Kind = "ends"
	// Index: a server or worker will not find the task when it is due, or will find
	// it where it is not, or limits count a round that is none or miss one that is.
	Index Kind = "index"
	// Unknown: a set lists an id that was never given out, or what is no id.
	Unknown Kind = "unknown"
	// Path: an event was recorded that cannot have been, or the task is not where
	// the events leave it.
	Path Kind = "path"
	// Balance: ids given out and ids accounted for are not the same number.
	Balance Kind = "balance"
	// Plan: what a plan counts, what a task of it waits for, and what servers are to
	// do for it do not agree.
	Plan Kind = "plan"
	// Archive: a task that has left Redis is not in the archive, or a segment of that is damaged.
	Archive Kind = "archive"
	// Reused: ids may have been given out twice, after Redis had lost the first time.
	Reused Kind = "reused"
	// LeftOut and Unwritten are notes: ids that a new epoch left out, or that a
	// client in another language has taken and never used.
	LeftOut   Kind = "left_out"
	Unwritten Kind = "unwritten"
)

// Report is what [Verify] found.
type Report struct {
	Namespace string `json:"namespace"`
	// TaskID is the newest id, Checked the number of tasks looked at.
	TaskID  int64 `json:"task_id"`
	Checked int64 `json:"checked"`
	// Plans is the number of plans looked at.
	Plans int64 `json:"plans"`
	// States counts the tasks by state as each was when it was looked at.
	States map[statemachine.State]int64 `json:"states"`
	// Account says what became of the ids up to TaskID.
	Account Account `json:"account"`
	// History says what the recorded events were good for.
	History History `json:"history"`
	// Archive says what is in an archive; nil if none was asked for.
	Archive *ArchiveReport `json:"archive,omitempty"`
	// Violations are sorted by id within each step of the audit.
	Violations []Violation `json:"violations"`
	// Notes are what is not wrong but should be known.
	Notes []Violation `json:"notes"`
	// Omitted is how many violations and notes there are beyond the most that a
	// report lists of each.
	Omitted int64 `json:"omitted"`
}

// Account is what became of all ids that were given out: Opened is the sum of the
// others.
type Account struct {
	Opened   int64 `json:"opened"`
	InStates int64 `json:"in_states"`
	SetAside int64 `json:"set_aside"`
	// LeftOut are ids of epochs that do not exist, Unwritten ids that were taken
	// and never written.
	LeftOut   int64 `json:"left_out"`
	Unwritten int64 `json:"unwritten"`
	// Purged are archived tasks that have left Redis, as archive_retention says.
	Purged int64 `json:"purged"`
	// Missing are lost or damaged; each of them is a violation.
	Missing int64 `json:"missing"`
}

// History is how far back the recorded events go.
type History struct {
	// Events were read, of Tasks tasks, Whole of them from their beginning.
	Events int64 `json:"events"`
	Tasks  int64 `json:"tasks"`
	Whole  int64 `json:"whole"`
	// From and To are the numbers of the first and the last change among them.
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// OK reports whether nothing was found.
func (r *Report) OK() bool { return len(r.Violations) == 0 }

// most is how many violations, and notes, a report lists: a namespace that has
// lost a whole set has as many as tasks.
const most = 10000

func (a *auditor) say(v ...Violation)    { a.keep(&a.report.Violations, v) }
func (a *auditor) remark(v ...Violation) { a.keep(&a.report.Notes, v) }

func (a *auditor) keep(list *[]Violation, more []Violation) {
	n := min(len(more), most-len(*list))
	*list = append(*list, more[:n]...)
	a.report.Omitted += int64(len(more) - n)
}

func sprint(id int64, kind Kind, format string, args ...any) Violation {
	return Violation{ID: id, Kind: kind, Text: fmt.Sprintf(format, args...)}
}
