// Package task has the nouns of TDF, each once: [Spec], the definition of a task;
// [Task] and [Round], its records; [Queue]; [Node]; [Offer], what a worker offers;
// and [Plan] with the [Need] between its tasks.
//
// The fields of a spec stand in one table (see [Fields]), which gives their
// defaults, validation, JSON, records, flags and reference. [Decode] reads a record;
// a task marshals itself as JSON. [Unfit] alone decides where a task may run:
// a worker's claim calls it through [Candidates], and so does every explanation.
// The claim script checks what changes between claims: limits, resources in use,
// nodes in quarantine.
//
// The package is pure: it knows no clock, no context and no Redis. Bad input returns a
// [*statemachine.FieldError] that names the field, the value and the valid form.
package task

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/statemachine"
)

// Task is a task as it was when it was read. Where only a part of its record was
// read, the rest is as in a record without those fields.
type Task struct { //nolint:recvcheck // a value prints itself too
	ID    int64              `json:"id"`
	State statemachine.State `json:"state"`
	// Outcome is how an archived task ended.
	Outcome statemachine.State `json:"outcome,omitempty"`

	// Spec is what was opened, with the defaults of that moment: a limit is a number or
	// Unlimited, and a time, duration or factor that is not set is zero. StartIn and
	// EndIn are StartAfter and EndBefore now. Hold is why the task is held now.
	Spec `json:"-"`

	// Round is the round it is in: starts after the first one. Rev counts the
	// changes of the record.
	Round int   `json:"round"`
	Rev   int64 `json:"rev,omitempty"`
	// Fails, Timeouts, Losses, Releases and Faults count how rounds ended.
	Fails    int `json:"fails"`
	Timeouts int `json:"timeouts"`
	Losses   int `json:"losses"`
	Releases int `json:"releases"`
	Faults   int `json:"faults"`
	// FailedNodes are nodes on which it has failed, at most 16.
	FailedNodes []string `json:"failed_nodes,omitempty"`

	// Created is when the task was opened; it never changes.
	Created time.Time `json:"created,omitzero"`
	// Cut names what of its present round is kept nowhere in full: output, error, and files, if some that it was to return
	// could not be.
	Cut []string `json:"cut,omitempty"`
	// NotBefore is the earliest start after its last failure.
	NotBefore time.Time `json:"not_before,omitzero"`
	// CancelRequested is when a stop was asked for while a worker held the task,
	// zero if none was; CancelReason says why, also of one that was cancelled.
	CancelRequested time.Time `json:"cancel_requested,omitzero"`
	CancelReason    string    `json:"cancel_reason,omitempty"`

	// RetryOf is the task that this one repeats, RetriedBy the one that repeats
	// it; ReplayOf and ReplayRound are the round that this one is compared with.
	// 0 for none.
	RetryOf     int64 `json:"retry_of,omitempty"`
	RetriedBy   int64 `json:"retried_by,omitempty"`
	ReplayOf    int64 `json:"replay_of,omitempty"`
	ReplayRound int   `json:"replay_round,omitempty"`

	// Plan is the plan that the task belongs to, 0 for none. DoomedBy is the task
	// because of which it can never run, 0 for none; Skipped says that this is no
	// failure: it was to run if that one did not succeed.
	Plan     PlanID `json:"plan,omitempty"`
	DoomedBy int64  `json:"doomed_by,omitempty"`
	Skipped  bool   `json:"skipped,omitempty"`

	// Rounds are the records of its rounds, the first one first.
	Rounds []Round `json:"rounds"`
	// Log tells what happened to the task.
	Log []LogEntry `json:"log,omitempty"`

	// Namespace is where the task lives.
	Namespace string `json:"namespace,omitempty"`
	// Fields are the hash fields that were read, as they stand in Redis, also those
	// that other clients have added.
	Fields map[string]string `json:"-"`
	// Err says that the record is damaged; then only ID and Fields can be relied on.
	Err error `json:"-"`
}

// LogEntry is a line of a task's log.
type LogEntry struct {
	// At is zero where the line has no time in front.
	At   time.Time `json:"at,omitzero"`
	Text string    `json:"text"`
}

const (
	logTime = "2006-01-02 15:04:05"
	logDash = " - "
)

func parseLog(text string) []LogEntry {
	if text == "" {
		return nil
	}
	text = strings.TrimSuffix(text, "\n")
	log := make([]LogEntry, 0, 1+strings.Count(text, "\n"))
	for line := range strings.SplitSeq(text, "\n") {
		at, rest, _ := strings.Cut(line, logDash)
		if t, err := time.Parse(logTime, at); err == nil {
			log = append(log, LogEntry{At: t, Text: rest})
		} else {
			log = append(log, LogEntry{Text: line})
		}
	}
	return log
}

// String is the line as the record has it.
func (e LogEntry) String() string {
	if e.At.IsZero() {
		return e.Text
	}
	return e.At.UTC().Format(logTime) + logDash + e.Text
}

// MarshalJSON masks URLs, which may have tokens.
func (e LogEntry) MarshalJSON() ([]byte, error) {
	type plain LogEntry
	e.Text = clean.URLs(e.Text)
	return encode(plain(e))
}

// Decode makes a task of the fields of its record, or of some of them. What
// cannot be read is left out; whether the record is sound is for others to say.
func Decode(id int64, fields map[string]string) *Task {
	number := func(name string) int64 { return numberOf(fields[name]) }
	t := &Task{
		ID: id, State: statemachine.State(fields["state"]), Outcome: statemachine.State(fields["outcome"]),
		Round: int(number("round")), Rev: number("rev"),
		Fails: int(number("fails")), Timeouts: int(number("timeouts")), Losses: int(number("losses")),
		Releases: int(number("releases")), Faults: int(number("faults")), FailedNodes: split(fields["failed_nodes"]),
		Created: created(fields), NotBefore: ParseMoment(fields["not_before"]),
		CancelRequested: ParseMoment(fields["cancel_requested"]), CancelReason: fields["cancel_reason"],
		RetryOf: number("retry_of"), RetriedBy: number("retried_by"),
		ReplayOf: number("replay_of"), ReplayRound: int(number("replay_round")),
		Plan: PlanOf(fields["plan"]), DoomedBy: number("doomed_by"), Skipped: fields["skipped"] == "1",
		Rounds: decodeRounds(fields), Log: parseLog(fields["log"]), Namespace: fields["namespace"], Fields: fields,
	}
	t.decode(fields)
	if words := strings.Fields(fields["cut"]); len(words) > 1 && words[0] == strconv.Itoa(t.Round) {
		t.Cut = words[1:]
	}
	for i := range t.Rounds {
		r := &t.Rounds[i]
		if r.Files.Count > 0 && r.Files.SHA256 == "" {
			r.Files.To = clean.Source(ReturnedTo(t.ReturnTo, id, r.Number))
		}
		for i := range r.Whole {
			if r.Whole[i].SHA256 == "" {
				r.Whole[i].To = clean.Source(ReturnedTo(t.ReturnTo, id, r.Number)) + StreamsSuffix
			}
		}
	}
	return t
}

// HeadNames are the fields of a record but for its rounds and its log: what a list of
// tasks reads, for [Decode].
func HeadNames() []string {
	return append(names(func(*Field) bool { return true }),
		"state", "outcome", "round", "rev", "fails", "timeouts", "losses", "releases", "faults", "failed_nodes",
		"cut", "created", "0:open", "0:blocked", "not_before", "cancel_requested", "cancel_reason",
		"retry_of", "retried_by", "replay_of", "replay_round", "plan", "needs", "doomed_by", "skipped", "namespace")
}

// created is kept apart once a hold or the end of one has stamped a state again.
func created(fields map[string]string) time.Time {
	if at := ParseMoment(fields["created"]); !at.IsZero() {
		return at
	}
	opened, blocked := ParseMoment(fields["0:open"]), ParseMoment(fields["0:blocked"])
	if opened.IsZero() || !blocked.IsZero() && blocked.Before(opened) {
		return blocked // it began held
	}
	return opened
}

// ListedIn corrects the state by the set that lists the task: the original leaves
// the state of an archived one at its outcome.
func (t *Task) ListedIn(state statemachine.State) {
	if state == statemachine.Archived && t.State.IsOutcome() {
		t.Outcome = t.State
	}
	t.State = state
}

// End is how the task ended: its state, or, once it is archived, the outcome. Of
// a task that has not ended it is the state.
func (t *Task) End() statemachine.State {
	if t.State == statemachine.Archived {
		return t.Outcome
	}
	return t.State
}

// EndState is how the task ended, also once it is archived; empty before.
func (t *Task) EndState() statemachine.State {
	if end := t.End(); end.IsOutcome() {
		return end
	}
	return statemachine.None
}

// Last returns the last round that a worker has begun, nil if there is none.
func (t *Task) Last() *Round {
	for i := len(t.Rounds) - 1; i >= 0; i-- {
		if t.Rounds[i].Begun() {
			return &t.Rounds[i]
		}
	}
	return nil
}

// Present is what a list has of the rounds: where the present one runs or ran, what its program has reported, and how far it is
// while it runs.
func (t *Task) Present() []Round {
	i := slices.IndexFunc(t.Rounds, func(r Round) bool { return r.Number == t.Round })
	if i < 0 {
		return nil
	}
	r := Round{Number: t.Round, Worker: t.Rounds[i].Worker, Node: t.Rounds[i].Node, Status: t.Rounds[i].Status}
	if t.State == statemachine.Running {
		r.Progress = t.Rounds[i].Progress
	}
	if r.Worker == "" && r.Node == "" && r.Status == 0 && r.Progress.IsZero() {
		return nil
	}
	return []Round{r}
}

// Output is what the last round wrote to stdout.
func (t *Task) Output() string {
	if last := t.Last(); last != nil {
		return last.Output
	}
	return ""
}

// Failure is the error of the last round, empty if it has none.
func (t *Task) Failure() string {
	if last := t.Last(); last != nil {
		return last.Error
	}
	return ""
}

// OnStderr reports whether the task failed although its program ended with exit status 0: text on stderr fails a
// round unless Spec.FailOn is FailOnExit.
func (t *Task) OnStderr() bool {
	last := t.Last()
	return t.End() == statemachine.Failed && t.FailOn != FailOnExit && last != nil && last.Error != "" &&
		last.ExitCode != nil && *last.ExitCode == 0
}

// IdempotencyKey identifies one outcome: it is made of namespace, id and round, and
// is the same in each call of a handler for that outcome. Receivers of what a
// handler sends can drop repetitions by it. Ids begin again in a namespace that
// was flushed, and the keys with them.
func (t *Task) IdempotencyKey() string {
	return fmt.Sprintf("%s:%d:%d", t.Namespace, t.ID, t.Round)
}

// disbatchStatus are Disbatch's numbers for states.
var disbatchStatus = map[statemachine.State]int{
	statemachine.Orphaned: -6, statemachine.Cancelled: -5, statemachine.Blocked: -4, statemachine.Terminated: -3,
	statemachine.Open: -2, statemachine.Running: 0, statemachine.Executed: 0,
	statemachine.Succeeded: 1, statemachine.Failed: 2, statemachine.TimedOut: 3, statemachine.Expired: 4,
}

// disbatchUnknown is Disbatch's status of a damaged record.
const disbatchUnknown = 2

// DisbatchStatus is the task's status as Disbatch numbers it: -6 orphaned, -5
// cancelled, -4 blocked, -3 terminated, -2 open, 0 running or executed, 1
// succeeded, 2 failed, 3 timed out, 4 expired; of an archived task, that of its
// outcome. A failed task has the number from 2 on that its program has reported
// (Round.Status), if that was read. A damaged record is 2, as in Disbatch.
func (t *Task) DisbatchStatus() int {
	status, known := disbatchStatus[t.End()]
	if !known {
		return disbatchUnknown
	}
	i := slices.IndexFunc(t.Rounds, func(r Round) bool { return r.Number == t.Round })
	if t.End() == statemachine.Failed && i >= 0 {
		status = max(status, t.Rounds[i].Status)
	}
	return status
}

// MarshalJSON writes the one JSON form of a task. The names are those of the
// record, moments are RFC 3339, durations seconds, and what opened the task reads
// as [Spec.SetJSON] takes it. URLs are masked, which may have tokens.
func (t Task) MarshalJSON() ([]byte, error) {
	type plain Task
	if t.Rounds == nil {
		t.Rounds = []Round{}
	}
	life := struct {
		plain

		Status  int    `json:"status"` // of Disbatch
		Damaged string `json:"damaged,omitempty"`
	}{plain: plain(t), Status: t.DisbatchStatus()}
	if t.Err != nil {
		life.Damaged = t.Err.Error()
	}
	text, err := encode(life)
	if err != nil {
		return nil, fmt.Errorf("task %d: %w", t.ID, err)
	}
	members := t.members()
	var others map[string]json.RawMessage
	if err := json.Unmarshal(text, &others); err != nil {
		return nil, fmt.Errorf("task %d: %w", t.ID, err)
	}
	for name, value := range others {
		members[name] = value
	}
	return encode(members)
}

// encode leaves < and > as they are, as the commands do.
func encode(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return text.Bytes(), err
}

// numberOf reads what another client may have written; 0 if that is no number.
func numberOf(text string) int64 {
	if text == "" { // without an error, which has to be made
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Moment is a time on Redis' clock, in UTC; the zero time for 0 and Never, which have not come.
func Moment(t statemachine.Time) time.Time {
	if t == 0 || t == statemachine.Never {
		return time.Time{}
	}
	return time.UnixMicro(int64(t)).UTC()
}

// ParseMoment is the Moment of a text; the zero time for one that is no moment.
func ParseMoment(text string) time.Time {
	if text == "" { // as in numberOf
		return time.Time{}
	}
	t, err := statemachine.ParseTime(text)
	if err != nil || t == statemachine.Never {
		return time.Time{}
	}
	return Moment(t)
}
