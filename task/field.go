package task

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/statemachine"
)

// Field is an attribute of a task that its opener can set.
type Field struct {
	// Name is that of the field in records, configurations and JSON; see [Field.Flag].
	Name string
	// Default is the text where nobody says anything.
	Default string
	// Doc says what it is, for the reference; see [Field.Usage].
	Doc string
	// Configured says that [task_defaults] can give it.
	Configured bool
	// Planned says that only a task of a plan has it.
	Planned bool

	kind
	queued bool // a queue can give it too
	always bool // it stands in each record, as the original has it
}

// Who may give a value, beside the opener of the task.
const (
	byPlan   = iota // it is the plan, and nobody else
	byOpener        // nobody
	byConfig
	byQueue     // a queue, and the configuration
	byQueueOnly // a queue
)

// table describes the fields of a task. To add one, add it to
// [Spec] and one line here; flags, JSON, configuration, defaults of queues,
// validation, records and the reference follow.
var table = []Field{
	line("program", "", byOpener, text(func(s *Spec) *string { return &s.Program }, checkProgram), "Name of the program."),
	line("source", "", byOpener, text(func(s *Spec) *string { return &s.Source }, checkSource), "Where to get the program: `https://...`, `rsync:...`."),
	line("input", "", byOpener, text(func(s *Spec) *string { return &s.Input }, func(string) error { return nil }), "Words that run.sh is called with, separated by blanks."),
	line("argv", "", byOpener, argv(func(s *Spec) *[]string { return &s.Argv }), "Exact list of words that run.sh is called with, in the place of `input`."),
	line("variables", "", byOpener, variables(func(s *Spec) *map[string]string { return &s.Variables }), "Environment variables of the program alone: a JSON object of texts. Names that begin with `TDF_` are the worker's."),
	line("params", "", byOpener, params(func(s *Spec) *json.RawMessage { return &s.Params }), "Parameters for the program, a JSON object of at most 64 KiB, which it finds as `TDF_PARAMS`. They may be changed while the task waits."),
	line("stdin", "", byOpener, stdin(func(s *Spec) *string { return &s.Stdin }), "What the program reads from its standard input, as `blob:sha256=HEX`, or a file that lies where the task is opened, as `file:PATH`; empty for nothing."),
	line("memory_max", "", byOpener, bytesOf(func(s *Spec) *int64 { return &s.MemoryMax }), "Most memory of all processes of a round, such as `2GiB`; of this and the `memory_max` of the worker the smaller one counts. It goes only to workers that have one."),
	line("pids_max", "", byOpener, within(func(s *Spec) *int { return &s.PidsMax }, maxPids), "Most processes and threads of a round; of this and the `pids_max` of the worker the smaller one counts. It goes only to workers that have one."),
	line("nice", "", byOpener, within(func(s *Spec) *int { return &s.Nice }, 19), "How much lower than that of its worker the priority of the program is, as by nice(1)."),
	line("start_after", "0", byConfig, moment(func(s *Spec) (*time.Time, *time.Duration) { return &s.StartAfter, &s.StartIn }, "0"), "Earliest start, in unix seconds."),
	line("end_before", infinite, byConfig, moment(func(s *Spec) (*time.Time, *time.Duration) { return &s.EndBefore, &s.EndIn }, infinite), "Latest moment of being executed, in unix seconds."),
	line("timeout", infinite, byQueue, span(func(s *Spec) *time.Duration { return &s.Timeout }), "Longest time a round may run, its fetch included."),
	line("max_fails", "0", byQueue, count(func(s *Spec) *Limit { return &s.Retry.Limit }), "How often the task may fail and be opened again."),
	line("max_timeouts", "0", byQueue, count(func(s *Spec) *Limit { return &s.MaxTimeouts }), "How often the task may time out and be opened again."),
	line("max_losses", statemachine.DefaultMaxLosses.Text(), byQueue, count(func(s *Spec) *Limit { return &s.MaxLosses }), "How often the task may lose its worker and be opened again."),
	line("max_faults", statemachine.DefaultMaxFaults.Text(), byQueue, count(func(s *Spec) *Limit { return &s.MaxFaults }), "How often the task may fail through no fault of its own (see `charge`) and be opened again."),
	line("fail_on", FailOnAny, byQueue, word(func(s *Spec) *string { return &s.FailOn }, FailOnAny, FailOnStderr, FailOnExit), "What makes a round a failure: `stderr` any output there, `exit` only the exit status or a signal, `any` (or empty) either of them."),
	line("on_cut", OnCutKeep, byQueue, word(func(s *Spec) *string { return &s.OnCut }, OnCutKeep, OnCutFail), "What happens to a round whose output is not kept in full (`output_max`): with `keep` it counts as it ended, and its record says what is missing, with `fail` it fails."),
	line("return", "", byOpener, patterns(func(s *Spec) *[]string { return &s.Return }), "Files of the round's directory to keep when it ends, for `results`: a list of names such as `out/*.csv`; of a directory all that is in it, and `**` stands for any directories."),
	line("return_on", ReturnOnSuccess, byOpener, word(func(s *Spec) *string { return &s.ReturnOn }, ReturnOnSuccess, ReturnOnEnd), "Which rounds return files: with `success` those that succeed, with `end` also those whose program fails."),
	line("return_to", "", byOpener, destination(func(s *Spec) *string { return &s.ReturnTo }), "Where files are returned to in the place of Redis: `file:/DIR`, a directory at the worker's host, or `rsync:...`. Those of a round are below `ID.ROUND`, and output beyond the record is in `ID.ROUND.logs`."),
	line("charge", ChargeAll, byQueue, word(func(s *Spec) *string { return &s.Charge }, ChargeAll, ChargeProgram), "Which failures count against `max_fails`: `all` of them (or empty), or with `program` only those of the program and of its limits; where it could not be fetched or the node could not run it, `max_faults` counts."),
	line("archive", ArchiveByManager, byQueueOnly, word(func(s *Spec) *string { return &s.Archive }, ArchiveByManager, ArchiveAtOnce), "Who archives the task when it has ended: a `manager`, which gives it to its handlers first, or with `at_once`, as the command line opens tasks, the move that ends it: no handler gets it, and no manager has to run."),
	line("workdir", WorkdirByWorker, byQueue, word(func(s *Spec) *string { return &s.Workdir }, WorkdirByWorker, WorkdirPrivate, WorkdirShared), "Where the program runs: in a `private` directory that shows its files and is removed after the round, in one `shared` by all rounds of its version on the worker, which stays, or as the `worker` is configured."),
	line("retry_delay", "0", byQueue, delay(func(s *Spec) *time.Duration { return &s.Retry.Delay }), "Pause before the task runs again after a failure, a timeout or a fault."),
	line("retry_backoff", "1", byQueue, factor(func(s *Spec) *float64 { return &s.Retry.Backoff }, 1, 1000), "Factor from one pause to the next."),
	line("retry_max_delay", infinite, byQueue, pause(func(s *Spec) *time.Duration { return &s.Retry.MaxDelay }), "Longest pause before the task runs again."),
	line("retry_jitter", "0", byQueue, factor(func(s *Spec) *float64 { return &s.Retry.Jitter }, 0, 1), "Part of a pause that is left to chance, so that tasks that failed together do not come back together."),
	line("retry_exit_codes", "", byQueue, codes(func(s *Spec) *[]int { return &s.Retry.ExitCodes }), "Exit codes after which the task runs again, for example `75,111`; empty for all. A failure without an exit code is not affected."),
	line("fatal_exit_codes", "", byQueue, codes(func(s *Spec) *[]int { return &s.Retry.FatalExitCodes }), "Exit codes after which the task never runs again, whatever `max_fails` and `retry_exit_codes` say."),
	line("queue", DefaultQueue, byConfig, text(func(s *Spec) *string { return &s.Queue }, CheckQueueName), "Queue of the task. It must exist; `default` always does."),
	line("env", "", byQueue, text(func(s *Spec) *string { return &s.Env }, CheckEnv), "Environment that a worker must share; empty for none, so that the task runs anywhere."),
	line("labels", "", byQueue, labels(func(s *Spec) *[]string { return &s.Labels }), "What a worker must offer, all of it."),
	line("resources", "", byQueue, resources(func(s *Spec) *map[string]int { return &s.Resources }), "What the task takes of its node while it runs, for example `gpu=1,mem=2048`."),
	line("class", "", byOpener, text(func(s *Spec) *string { return &s.Class }, CheckClass), "Class that a worker must serve, such as the name of a Go function; empty for that of the queue."),
	line("priority", "0", byQueue, whole(func(s *Spec) **int { return &s.Priority }, minPriority, maxPriority), "Priority in its queue, higher first; waiting raises it (see the attribute `aging` of queues)."),
	line("key", "", byOpener, text(func(s *Spec) *string { return &s.Key }, printed(maxKey)), "Name that makes the task unique in its queue: the same key opens no second one, and is refused for other work."),
	line("key_until", KeyUntilTTL, byOpener, word(func(s *Spec) *string { return &s.KeyUntil }, KeyUntilTTL, KeyUntilEnd), "Until when it has its key: with `ttl` for `[manager] key_ttl` (7 days), and until it has ended in any case; with `end` no longer than that."),
	line("hold", "", byOpener, text(func(s *Spec) *string { return &s.Hold }, printed(maxHold)), "Why the task begins held, until it is released."),
	line("comment", "", byOpener, text(func(s *Spec) *string { return &s.Comment }, printed(maxHold)), "Note for people, shown with the task."),
	line("meta", "", byOpener, meta(func(s *Spec) *map[string]string { return &s.Meta }), "What is passed on with the task, such as the id of a trace: a JSON object of texts."),
	line("args", ArgsWords, byPlan, word(func(s *Spec) *string { return &s.Args }, ArgsWords, ArgsFiles), "How the program gets the results of the tasks it needs."),
	line("step", "", byPlan, text(func(s *Spec) *string { return &s.Step }, printed(maxStep)), "Name of the task within its plan."),
}

// original are the fields that each record has.
var original = []string{"program", "source", "input", "start_after", "end_before", "timeout", "max_fails", "max_timeouts"}

func line(name, otherwise string, by int, k kind, doc string) Field {
	switch k.value(&Spec{}).(type) {
	case string, []string:
		k.textual = true
	}
	return Field{
		Name: name, Default: otherwise, Doc: doc, Configured: by == byConfig || by == byQueue, Planned: by == byPlan,
		kind: k, queued: by >= byQueue, always: slices.Contains(original, name),
	}
}

var places = func() map[string]int {
	at := make(map[string]int, len(table))
	for i := range table {
		at[table[i].Name] = i
	}
	return at
}()

// find returns the field of a name that a caller gave.
func find(name string) (*Field, error) {
	at, known := places[name]
	if !known {
		return nil, unknownKey(name, names(func(*Field) bool { return true }))
	}
	return &table[at], nil
}

// Fields are the fields of a task that its opener can set, in the order of the reference.
func Fields() []Field { return slices.Clone(table) }

// ValueType is the type of the field's value in a [Spec].
func (f *Field) ValueType() reflect.Type { return reflect.TypeOf(f.value(&Spec{})) }

// names are those of some fields, sorted.
func names(which func(*Field) bool) []string {
	var found []string
	for i := range table {
		if which(&table[i]) {
			found = append(found, table[i].Name)
		}
	}
	slices.Sort(found)
	return found
}

// DefaultNames are the names of the fields that a queue can give to its tasks, sorted.
func DefaultNames() []string { return names(func(f *Field) bool { return f.queued }) }

// Parse checks the text of a field by its name and returns its one form: times in
// seconds, lists sorted. The error is a [*statemachine.FieldError].
func Parse(name, text string) (string, error) {
	f, err := find(name)
	if err != nil {
		return "", err
	}
	canonical, err := f.parse(text)
	return canonical, named(name, err)
}

// Type is the kind of the field and Limits what bounds it, for the reference.
func (f *Field) Type() (kind, limits string) { return f.name, f.limits }

// List reports whether the field is a list.
func (f *Field) List() bool { return f.list }

// Flag is the name of the flag for the field: it has dashes for the underscores, and
// env is --environment, since --env gives the program a variable.
func (f *Field) Flag() string {
	if f.Name == "env" {
		return "environment"
	}
	return strings.ReplaceAll(f.Name, "_", "-")
}

// Usage is the beginning of Doc, for the help of a flag.
func (f *Field) Usage() string {
	end := strings.IndexAny(f.Doc, ".:;(")
	if comma := strings.Index(f.Doc, ", "); comma >= 0 {
		end = min(end, comma)
	}
	usage := strings.ReplaceAll(strings.ToLower(f.Doc[:1])+strings.TrimSpace(f.Doc[1:end]), "`", "")
	if !f.Planned && (f.name == "word" || f.name == "number") {
		usage += ": " + f.limits
	}
	return usage
}

// read is parse for people, who have more words for some values.
func (f *Field) read(text string, now time.Time) (string, error) {
	switch {
	case f.moment:
		if at, ok := fromNow(text, now); ok {
			return at, nil
		}
		canonical, err := f.parse(text)
		if err != nil {
			return "", bad("", text, "a time such as 1795230670.5, 2026-11-21T08:00:00Z, +10m or inf")
		}
		return canonical, nil
	case f.list && text == emptyList:
		return "", nil
	default:
		return f.parse(text)
	}
}

// fromNow reads +10m and RFC 3339.
func fromNow(text string, now time.Time) (string, bool) {
	if later, ok := strings.CutPrefix(text, "+"); ok {
		if d, err := parseSeconds(later); err == nil && d != statemachine.Forever {
			return MomentText(now.Add(time.Duration(d) * time.Microsecond)), true
		}
	}
	t, err := time.Parse(time.RFC3339, text)
	return MomentText(t), err == nil
}

// SetJSON sets a field by its name to a JSON value: a text as [Spec.Set] takes it,
// a number where the field is one, a list of texts or numbers, an object of pairs,
// for hold also true.
func (s *Spec) SetJSON(name string, raw json.RawMessage, now time.Time) error {
	f, err := find(name)
	if err != nil {
		return err
	}
	text, err := f.fromJSON(raw)
	if err != nil {
		return named(name, err)
	}
	return s.Set(name, text, now)
}
