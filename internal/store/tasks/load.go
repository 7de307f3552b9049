package tasks

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// TaskHeader is a task as decisions need it. Where it was read together with a time all
// its moments are by that clock, that of the namespace, also start_after and end_before.
type TaskHeader struct {
	statemachine.Task
	Bucket task.Bucket
	// Worker is who has claimed the current round, empty before that.
	// Incarnation is that of the worker's session, 0 if the claim is without a lease.
	Worker      string
	Incarnation int64
	// Node is where the current round runs or ran, Program what.
	Node, Program string
	// FailedNodes are nodes on which a round of the task has failed, at most 16;
	// none where quarantine is off.
	FailedNodes []string
	// FromLostEpoch says, in [Registered], that the round was claimed in an epoch that is over
	// (see [conn.Conn.FromLostEpoch]).
	FromLostEpoch bool
	// Unbegun says that the lost worker of the round had not begun it (see [MarkUnbegun]).
	Unbegun bool
	// Fields are all hash fields as they stand in Redis, where the task was read whole
	// ([task.Decode] makes a task of them); else nil.
	Fields map[string]string
	// Err matches [task.ErrDamaged] if the task's hash does not hold what it must;
	// then only ID can be relied on.
	Err error
	// Found is where the task was seen.
	Found Found
}

// Found are the texts in a task's hash that say where it is, however damaged.
type Found struct{ State, Round, Rev string }

// Leased reports whether a worker's session runs the task.
func (t *TaskHeader) Leased() bool { return t.State == statemachine.Running && t.Incarnation > 0 }

// Batch is a part of a set, read at one moment.
type Batch struct {
	Tasks []TaskHeader
	// Next is the score of the first entry that is not due yet, or Never.
	Next statemachine.Time
	Now  statemachine.Time
	conn.Clock
}

// Due reads the tasks whose deadline has come, the longest overdue first.
func (s *Tasks) Due(ctx context.Context, limit int) (Batch, error) {
	return s.load(ctx, s.Keys.Due(), "due", 0, limit)
}

// Listed reads the tasks of a state from the given rank on, the oldest first.
func (s *Tasks) Listed(ctx context.Context, state statemachine.State, offset, limit int) (Batch, error) {
	return s.load(ctx, s.Keys.State(state), "rank", offset, limit)
}

func (s *Tasks) load(ctx context.Context, key, how string, offset, limit int) (Batch, error) {
	r, err := s.RunList(ctx, "load", conn.Subject{More: []string{key}}, how, offset, limit)
	if err != nil {
		return Batch{}, err
	}
	at := conn.ClockOf(r, 3)
	return Batch{Clock: at, Now: at.Now, Next: r.Time(1), Tasks: DecodeSeenList(r.List(2), at)}, nil
}

// DecodeSeenList reads tasks as scripts list them.
func DecodeSeenList(list conn.Reply, at conn.Clock) []TaskHeader {
	if len(list) == 0 {
		return nil
	}
	seen := make([]TaskHeader, len(list))
	for i := range list {
		t := list.List(i)
		if all := t.List(1); len(all) > 0 {
			seen[i] = seenAt(decodeHeader(t.Number(0), wholeFields(all.Fields())), at)
			continue
		}
		seen[i] = DecodeSeen(t.Number(0), t[1:], at)
	}
	return seen
}

// headerFields are read by lib/light.lua, beside state and round: those that a task gets while it lives, and of those that
// its opener gave the program, the class, who archives it, and what a default can be given for.
var headerFields = append([]string{
	"rev", "fails", "timeouts", "losses", "releases", "faults", "not_before", "outcome", "cancel_requested", "failed_nodes", "program",
	ClassField, "archive",
}, configured()...)

// roundFields are read of the round that the task is in. The colon tells them from those of the task.
var roundFields = []string{":claim", ":running", ":executed", ":worker", ":incarnation", ":node", ":class", ":exit_code", ":retry"}

// headerOrder is the order in which lib/light.lua returns a task.
var headerOrder = slices.Concat([]string{"state", "round"}, headerFields, roundFields, []string{"failed"})

// configured are the names of the fields of a task that a default can be given for.
func configured() []string {
	var names []string
	for _, f := range task.Fields() {
		if f.Configured {
			names = append(names, f.Name)
		}
	}
	return names
}

var headerIndex = placesOf(headerOrder)

func placesOf(names []string) map[string]int {
	m := make(map[string]int, len(names))
	for i, name := range names {
		m[name] = i
	}
	return m
}

// wholeFields reads the fields of a header from all that a task has.
func wholeFields(fields map[string]string) FieldReader {
	round := fields["round"]
	return FieldReader{Get: func(name string) string {
		switch {
		case name[0] == ':':
			return fields[round+name]
		case name == "failed":
			return conn.Flag(fields[round+":error"] != "")
		default:
			return fields[name]
		}
	}}
}

// DecodeSeen reads a task that was read at a time: all its moments are by the time of the namespace then.
func DecodeSeen(id int64, r conn.Reply, at conn.Clock) TaskHeader {
	return seenAt(decodeHeader(id, FieldReader{Get: func(name string) string { return r.Text(headerIndex[name]) }}), at)
}

func seenAt(t TaskHeader, at conn.Clock) TaskHeader {
	if at.Ahead > 0 {
		t.StartAfter, t.EndBefore = at.Moment(t.StartAfter), at.Moment(t.EndBefore)
	}
	return t
}

func decodeHeader(id int64, f FieldReader) TaskHeader {
	t := TaskHeader{Found: Found{State: f.Get("state"), Round: f.Get("round"), Rev: f.Get("rev")}}
	t.ID = id
	switch {
	case t.Found.State == "" && t.Found.Round == "":
		t.Err = &conn.DamageError{ID: id, Reason: "hash is missing"}
		return t
	case !statemachine.State(t.Found.State).Valid():
		t.Err = &conn.DamageError{ID: id, Reason: "field state: " + conn.Quote(t.Found.State) + " is not a state"}
		return t
	case t.Found.Round == "":
		t.Err = &conn.DamageError{ID: id, Reason: "field round is missing"}
		return t
	}
	t.Task = f.task(id)
	t.Current = f.current()
	t.Node, t.Program = f.Get(":node"), f.Get("program")
	t.Bucket = f.bucket()
	if names := f.Get("failed_nodes"); names != "" {
		t.FailedNodes = strings.Split(names, ",")
	}
	t.Worker, t.Incarnation = f.Get(":worker"), int64(f.Count(":incarnation"))
	if f.Err != nil {
		t.Err = &conn.DamageError{ID: id, Reason: f.Err.Error()}
	}
	return t
}

// FieldReader decodes hash fields and keeps the first thing that was wrong.
type FieldReader struct {
	Get func(name string) string
	Err error
}

func named(field string, err error) error {
	if fe, ok := err.(*statemachine.FieldError); ok && fe.Field == "" { //nolint:errorlint // made one line above, never wrapped
		return &statemachine.FieldError{Field: field, Value: fe.Value, Want: fe.Want}
	}
	return err
}

func (f *FieldReader) fail(field string, err error) {
	if f.Err == nil && err != nil {
		f.Err = named(field, err)
	}
}

// Count reads a counter; a missing one is 0.
func (f *FieldReader) Count(field string) int {
	text := f.Get(field)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		f.fail(field, &statemachine.FieldError{Value: text, Want: "a whole number that is not negative"})
	}
	return n
}

func (f *FieldReader) time(field string) statemachine.Time {
	t, err := statemachine.ParseTime(f.Get(field))
	f.fail(field, err)
	return t
}

// Stamp is time for a field that may be missing: then 0.
func (f *FieldReader) Stamp(field string) statemachine.Time {
	if f.Get(field) == "" {
		return 0
	}
	return f.time(field)
}

func (f *FieldReader) duration(field string) statemachine.Duration {
	d, err := statemachine.ParseDuration(f.Get(field))
	f.fail(field, err)
	return d
}

func (f *FieldReader) limit(field string) statemachine.Limit {
	l, err := statemachine.ParseLimit(f.Get(field))
	f.fail(field, err)
	return l
}

// limitOr is limit for a field that may be missing.
func (f *FieldReader) limitOr(field string, otherwise statemachine.Limit) statemachine.Limit {
	if f.Get(field) == "" {
		return otherwise
	}
	return f.limit(field)
}

// part reads a number that is not negative; a missing one is 0.
func (f *FieldReader) part(field string) float64 {
	text := f.Get(field)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0) { // the form is true for NaN
		f.fail(field, &statemachine.FieldError{Value: text, Want: "a number that is not negative"})
	}
	return n
}

// span is duration for a field that may be missing: then 0.
func (f *FieldReader) span(field string) statemachine.Duration {
	if f.Get(field) == "" {
		return 0
	}
	return f.duration(field)
}

// codes reads a list such as "75,111".
func (f *FieldReader) codes(field string) []int {
	text := f.Get(field)
	if text == "" {
		return nil
	}
	var codes []int
	for item := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(item)
		if err != nil || n < 0 || n > 255 {
			f.fail(field, &statemachine.FieldError{Value: text, Want: "exit codes from 0 to 255, separated by commas"})
			return nil
		}
		codes = append(codes, n)
	}
	return codes
}

// task reads all that does not depend on the round.
func (f *FieldReader) task(id int64) statemachine.Task {
	return statemachine.Task{
		ID: id, State: statemachine.State(f.Get("state")), Round: f.Count("round"), Rev: int64(f.Count("rev")),
		Fails: f.Count("fails"), Timeouts: f.Count("timeouts"), Losses: f.Count("losses"), Releases: f.Count("releases"),
		Faults:     f.Count("faults"),
		StopAsked:  f.Get("cancel_requested") != "",
		StartAfter: f.time(startField), EndBefore: f.time("end_before"), Timeout: f.duration("timeout"),
		NotBefore: f.Stamp("not_before"),
		Backoff: statemachine.Backoff{
			Delay: f.span("retry_delay"), Max: f.span("retry_max_delay"),
			Factor: f.part("retry_backoff"), Jitter: f.part("retry_jitter"),
		},
		MaxFails: f.limit("max_fails"), MaxTimeouts: f.limit("max_timeouts"),
		MaxLosses:  f.limitOr("max_losses", statemachine.DefaultMaxLosses),
		MaxFaults:  f.limitOr("max_faults", statemachine.DefaultMaxFaults),
		RetryCodes: f.codes("retry_exit_codes"), FatalCodes: f.codes("fatal_exit_codes"),
		ChargeProgram: f.Get("charge") == task.ChargeProgram,
		AtOnce:        f.Get("archive") == task.ArchiveAtOnce,
		Outcome:       statemachine.State(f.Get("outcome")),
	}
}

// current reads the round the task is in.
func (f *FieldReader) current() statemachine.Round {
	r := statemachine.Round{
		Claim: f.Get(":claim"), Running: f.Stamp(":running"), Executed: f.Stamp(":executed"), Failed: f.Get("failed") != "",
		Class: statemachine.Class(f.Get(":class")), Retry: f.Stamp(":retry"),
	}
	if code, err := strconv.Atoi(f.Get(":exit_code")); err == nil {
		r.ExitCode, r.HasExit = code, true
	}
	return r
}

func (f *FieldReader) bucket() task.Bucket {
	b := task.Bucket{
		Queue: f.Get("queue"), Env: f.Get("env"), Labels: f.Get("labels"), Resources: f.Get("resources"), Class: f.Get(ClassField),
	}
	if text := f.Get("priority"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			f.fail("priority", &statemachine.FieldError{Value: text, Want: "a whole number"})
		}
		b.Priority = n
	}
	if b.Queue == task.DefaultQueue {
		b.Queue = ""
	}
	return b
}

// Runs says who runs the task: "0" nobody, "1" a worker that has claimed it by
// the claim script, empty any other.
func (t *TaskHeader) Runs() string {
	switch {
	case t.State != statemachine.Running:
		return "0"
	case t.Current.Claim != "":
		return "1"
	default:
		return ""
	}
}

// MarkUnbegun sorts the rounds of a lost worker, the last claim first, and marks those that it cannot have begun: a worker begins
// its rounds in the order of its claims, at most as many at a time as it has slots. If they are taken back in this order, those that
// an interruption leaves are marked as they were before. With 0 slots, which means that they are not known, none is marked.
func MarkUnbegun(held []TaskHeader, slots int) {
	slices.SortFunc(held, func(a, b TaskHeader) int {
		return cmp.Or(-cmp.Compare(a.Current.Running, b.Current.Running), -cmp.Compare(claimNumber(&a), claimNumber(&b)))
	})
	for i := range len(held) - slots {
		held[i].Unbegun = slots > 0
	}
}

// claimNumber is that of the task among those of its claim, 0 for a foreign one.
func claimNumber(t *TaskHeader) int {
	n, _ := strconv.Atoi(t.Current.Claim[strings.LastIndexByte(t.Current.Claim, '.')+1:])
	return n
}
