// Package audit looks at a namespace and says what cannot be: every task must be
// in exactly one state, with counters, limits, stamps and indices that agree, every
// id that was given out must be accounted for, and the recorded events must be
// steps that the state machine allows.
//
// [Verify] reads only, through the store, and decides nothing: what it finds is for
// people, and for tests that want proof. A task that moves while it is looked at
// is looked at again before anything is said about it. The servers repair what can be repaired.
package audit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// auditor is one audit under way.
type auditor struct {
	store   *store.Store
	report  Report
	adopted int64
	grace   statemachine.Duration
	asides  map[int64]upkeep.Aside
	// gaps are the ids that epochs left out, there those of them that exist all
	// the same.
	gaps  []tasks.Span
	there map[int64]bool
	// purged are the ids of archived tasks that have left Redis.
	purged  []tasks.Span
	history history
	// members are the tasks that say to which plan they belong, by plan.
	members map[task.PlanID][]int64
	// needed are the uploads that tasks need which have not ended, by hash: one of these tasks.
	needed map[string]int64
	pause  time.Duration
}

// chunk is how many tasks are looked at in one call.
const chunk = 200

// A task about which there is something to say is looked at again, looks times
// in all, lookAgain apart: a client that moves it in several steps is done then.
const (
	looks     = 4
	lookAgain = 150 * time.Millisecond
)

// maxLooks ends the audit of a task that never stops moving.
const maxLooks = 20

// Verify audits all tasks of a namespace. It may be used while everything is at
// work. The error is that of a call to Redis; what is wrong with tasks is in
// the report.
func Verify(ctx context.Context, s *store.Store) (Report, error) {
	a := newAuditor(s)
	err := a.run(ctx)
	return a.report, err
}

func newAuditor(s *store.Store) *auditor {
	return &auditor{
		store: s, pause: lookAgain, asides: map[int64]upkeep.Aside{}, there: map[int64]bool{},
		members: map[task.PlanID][]int64{}, needed: map[string]int64{},
		report: Report{
			Namespace: s.Namespace(), States: map[statemachine.State]int64{}, Violations: []Violation{}, Notes: []Violation{},
		},
	}
}

// run makes all steps of the audit. The newest id is read before the events, so
// that whatever our own clients have opened up to it has left its event there.
func (a *auditor) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		a.begin, a.readHistory, a.walk, a.unknown, a.strays, a.counts, a.compareHistory, a.account, a.plans, a.blobs,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// begin reads what tasks are compared with.
func (a *auditor) begin(ctx context.Context) (err error) {
	if a.adopted, a.report.TaskID, err = a.store.Watermark(ctx); err != nil {
		return err
	}
	a.report.Account.Opened = a.report.TaskID
	if a.grace, _, err = a.store.Grace(ctx); err != nil {
		return err
	}
	if err := a.readGaps(ctx); err != nil {
		return err
	}
	return a.readPurged(ctx)
}

// walk audits all ids but those that epochs left out.
func (a *auditor) walk(ctx context.Context) error {
	return a.between(ctx, 1, a.report.TaskID)
}

func (a *auditor) between(ctx context.Context, first, last int64) error {
	ids := make([]int64, 0, chunk)
	for id := a.skip(first); id <= last; id = a.skip(id + 1) {
		if ids = append(ids, id); len(ids) == chunk {
			if err := a.tasks(ctx, ids); err != nil {
				return err
			}
			ids = ids[:0]
		}
	}
	return a.tasks(ctx, ids)
}

// tasks audits some tasks.
func (a *auditor) tasks(ctx context.Context, ids []int64) error {
	ids = slices.Clone(ids)
	before := map[int64]string{}
	for look := 1; len(ids) > 0; look++ {
		found, err := a.look(ctx, ids)
		if err != nil {
			return err
		}
		ids = ids[:0]
		for i := range found {
			sight := &found[i]
			sight.judge()
			id := sight.Task.ID
			settled := len(sight.violations)+len(sight.notes) == 0 || look >= looks && before[id] == sight.Fingerprint()
			if !settled && look < maxLooks {
				before[id] = sight.Fingerprint()
				ids = append(ids, id)
				continue
			}
			a.note(sight)
		}
		if len(ids) > 0 && !timing.Pause(ctx, a.pause) {
			return ctx.Err()
		}
	}
	return nil
}

// note counts the task and keeps what there is to say about it.
func (a *auditor) note(s *snapshot) {
	a.report.Checked++
	a.history.hear(s)
	if id := task.PlanOf(s.stamps["plan"]); id > 0 {
		a.members[id] = append(a.members[id], s.Task.ID)
	}
	switch {
	case s.purged: // see settle
	case s.isDeadLetter():
		a.report.Account.DeadLetters++
	case s.unwritten():
		a.report.Account.Unwritten++
	case s.Task.Err != nil:
		a.report.Account.Missing++
	default:
		a.need(s)
		a.report.States[s.state()]++
		a.report.Account.InStates++
	}
	a.say(s.violations...)
	a.remark(s.notes...)
}

// snapshot is one task as seen in one look.
type snapshot struct {
	*upkeep.Inspection
	// stamps are the fields of the rounds that must be there; see fieldsOf.
	stamps map[string]string
	aside  *upkeep.Aside
	// adopted says that a server has had the task, so its indices must be there.
	adopted bool
	// purged says that it was archived and has left Redis.
	purged  bool
	now     statemachine.Time
	grace   statemachine.Duration
	history *history

	violations, notes []Violation
}

// look reads tasks with what the audit needs of them.
func (a *auditor) look(ctx context.Context, ids []int64) ([]snapshot, error) {
	found, now, err := a.store.Inspect(ctx, ids)
	if err != nil {
		return nil, err
	}
	stamps, err := a.store.Fields(ctx, ids, stampFields(found)...)
	if err != nil {
		return nil, err
	}
	if err := a.readAsides(ctx, found); err != nil {
		return nil, err
	}
	var absent []int64
	for i, id := range ids {
		if found[i].Absent() {
			absent = append(absent, id)
		}
	}
	if err := a.learnPurged(ctx, absent); err != nil {
		return nil, err
	}
	sights := make([]snapshot, len(found))
	for i, id := range ids {
		sights[i] = snapshot{
			Inspection: &found[i], stamps: stamps[i], now: now, grace: a.grace, history: &a.history,
			adopted: id <= a.adopted,
			purged:  found[i].Absent() && a.isPurged(id),
		}
		if aside, ok := a.asides[id]; ok {
			sights[i].aside = &aside
		}
	}
	return sights, nil
}

// readAsides reads the dead letters, if a task may be one.
func (a *auditor) readAsides(ctx context.Context, found []upkeep.Inspection) error {
	for i := range found {
		if found[i].Task.Err == nil && len(found[i].Listed) > 0 {
			continue
		}
		list, err := a.store.Asides(ctx)
		for _, aside := range list {
			a.asides[aside.ID] = aside
		}
		return err
	}
	return nil
}

// mostRounds bounds how many rounds of a task are looked at; a spoilt round
// field may be any number.
const mostRounds = 100

// roundFields are what is read of each round beside the stamps of states.
var roundFields = []string{"worker", "claim", "end", statemachine.StampTimeout, statemachine.StampFailure}

// stampFields are the fields that may have to be there, for any of the tasks.
func stampFields(found []upkeep.Inspection) []string {
	last := 0
	for i := range found {
		last = max(last, min(found[i].Task.Round, mostRounds-1))
	}
	fields := make([]string, 0, 3+(len(roundFields)+len(statemachine.States()))*(last+1))
	fields = append(fields, "state", "plan", "source", "stdin")
	for n := range last + 1 {
		for _, name := range roundFields {
			fields = append(fields, statemachine.RoundField(n, name))
		}
		for _, state := range statemachine.States() {
			fields = append(fields, statemachine.RoundField(n, string(state)))
		}
	}
	return fields
}

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

// Repairable reports whether servers repair most violations of the kind: they put sets, indices and lists of plans right, and set
// damaged tasks aside.
func (k Kind) Repairable() bool {
	return k == Sets || k == Index || k == Unknown || k == Plan || k == Damaged
}

// The kinds of violations.
const (
	// Lost: an id was given out, and there is neither a record nor a set with it.
	Lost Kind = "lost"
	// DeadLetter: the task is a dead letter: it was damaged, and a server took it out of all sets.
	DeadLetter Kind = "set_aside"
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
	// it where it is not, or limits count a round that does not run, or miss one that does.
	Index Kind = "index"
	// Unknown: a set lists an id that was never given out, or a malformed id.
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
	// Blob: an upload is not whole, wrongly counted, or missing although a task needs it.
	Blob Kind = "blob"
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
	Opened      int64 `json:"opened"`
	InStates    int64 `json:"in_states"`
	DeadLetters int64 `json:"set_aside"`
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
