package task

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/clean"
)

// Values of Spec.FailOn.
const (
	FailOnAny    = "any"    // text on stderr, a non-zero exit, or a signal; the default
	FailOnStderr = "stderr" // text on stderr only
	FailOnExit   = "exit"   // a non-zero exit or a signal only
)

// Values of Spec.Workdir.
const (
	WorkdirByWorker = "worker"  // as the worker is configured; the default
	WorkdirPrivate  = "private" // in a directory that shows the program's files and is removed after the round
	WorkdirShared   = "shared"  // in one that all rounds of the version on that worker share, and that stays
)

// Values of Spec.OnCut.
const (
	OnCutKeep = "keep" // the round counts as it ended, and its record says what is missing; the default
	OnCutFail = "fail" // the round fails
)

// Values of Spec.ReturnOn.
const (
	ReturnOnSuccess = "success" // a round that succeeds returns its files; the default
	ReturnOnEnd     = "end"     // one that fails does too, if its program has ended by itself
)

// Values of Spec.Charge.
const (
	ChargeAll     = "all"     // every failure counts as a fail; the default
	ChargeProgram = "program" // those of the program and of its limits; others count as faults
)

// Values of Spec.KeyUntil. A task that has not ended has its key in any case.
const (
	KeyUntilTTL = "ttl" // it has it for [manager] key_ttl from when it was opened, by default seven days; the default
	KeyUntilEnd = "end" // it has it until it ends, and no longer
)

// Values of Spec.Archive.
const (
	ArchiveByManager = "manager" // a manager archives the task, after its handlers; the default
	ArchiveAtOnce    = "at_once" // what ends the task archives it in the same move; no handler gets it
)

// Spec defines a task to open. Zero values are replaced by the defaults of its
// queue, or else by [task_defaults] of the configuration. A negative duration means
// none, whatever the defaults are.
type Spec struct { //nolint:recvcheck // Set changes a spec, WithWords makes another
	// Program names the directory the program lives in; Source says where to get
	// it: "https://host/program.zip", "rsync:host:program.tar", ".../run.sh".
	Program, Source string
	// Input is split at blanks into the words that run.sh is called with. Nothing
	// in it is interpreted.
	Input string
	// Argv, if not nil, is the exact list of words and takes the place of Input.
	Argv []string
	// Variables are set in the environment of the program, and of nothing else, in the place of those of the worker. Their names
	// are letters, digits and underscores, without TDF_ in front, their values UTF-8 texts; as JSON all have at most 64 KiB. They may
	// be secrets: a task that is read has *** for each value.
	Variables map[string]string
	// Params are parameters for the program, a JSON object of at most 64 KiB, whose numbers keep all their digits: the program has it as
	// TDF_PARAMS. While the task waits they may be changed, see SetParams of package manager. (Flock: params; Disbatch: parameters)
	Params json.RawMessage
	// Stdin is what the program reads from its standard input; empty for nothing. "file:PATH" is a file where the task is
	// opened, which the submission takes along: the task has "blob:sha256=HEX" then, what Redis keeps under that hash (see
	// PutStdin of package manager).
	Stdin string
	// MemoryMax, in bytes, at least 1 MiB, and PidsMax bound all processes of a round together, within what its worker allows; 0 for
	// no limit of the task's own. Only workers that have such a limit themselves take it (see [LimitLabel]). Nice, up to 19, lowers
	// the priority of the program below that of its worker.
	MemoryMax     int64
	PidsMax, Nice int
	// StartAfter is the earliest start, EndBefore the latest moment of being executed,
	// both on Redis' clock. StartIn and EndIn are the same as so long after the task is
	// opened; negative for at once, and for no end. Of a start only one can be given,
	// and of an end.
	StartAfter, EndBefore time.Time
	StartIn, EndIn        time.Duration
	// Timeout bounds each round, fetching included; negative for no bound.
	Timeout time.Duration
	// Retry says whether and when the task runs again after a failure.
	Retry Retry
	// MaxTimeouts, MaxLosses and MaxFaults are how often the task may time out, lose
	// its worker, or fail through no fault of its own (see ChargeProgram), and be opened
	// again.
	MaxTimeouts, MaxLosses, MaxFaults Limit
	// FailOn says what makes a round a failure: FailOnAny, FailOnStderr or FailOnExit.
	FailOn string
	// OnCut says what happens to a round whose stdout or stderr is not kept in full (output_max): OnCutKeep or
	// OnCutFail.
	OnCut string
	// Return names files of the directory of the round that are kept when it ends (see Round.Files): slash-separated
	// paths in it as path.Match has them, such as "out/*.csv". A directory stands for all that is in it, and ** as one
	// element for any number of directories. Files that the program came with, and links, are left out. A round that
	// would otherwise succeed fails if a name matches no file.
	Return []string
	// ReturnOn says which rounds return files: ReturnOnSuccess or ReturnOnEnd.
	ReturnOn string
	// ReturnTo is where these files, and output beyond the record, go: a directory at the host of the worker, such as a disk
	// that hosts share (file:/DIR), or rsync (rsync://HOST/MODULE/PATH, rsync:HOST:PATH), where those of a round are below
	// ID.ROUND and ID.ROUND.logs; empty for Redis.
	ReturnTo string

	// Queue is the queue of the task, which must exist. Its defaults come before
	// those of the configuration.
	Queue string
	// Env is shared by the task and its workers; Labels are the label=value pairs
	// that a worker must offer, Resources what the task takes of its node while it
	// runs. A list or map that is empty but not nil demands nothing, whatever the
	// defaults are.
	Env       string
	Labels    []string
	Resources map[string]int
	// Class is what a worker must serve to take the task, such as the name of one of
	// its handlers (see worker.Options.Classes), a text without blanks, commas and
	// equals signs of at most 128 bytes. Default: the class of the queue.
	Class string
	// Priority is from -1000 to 1000, higher first.
	Priority *int
	// Charge says which failures count as fails: ChargeAll or ChargeProgram.
	Charge string
	// Archive says who archives the task when it has ended: ArchiveByManager or ArchiveAtOnce.
	Archive string
	// Workdir says where the program runs: WorkdirByWorker, WorkdirPrivate or WorkdirShared.
	Workdir string
	// Hold is why the task begins blocked, until an operator lets it go; empty: it
	// does not.
	Hold string
	// Key makes the task unique in its queue, a line of at most 4096 bytes: opened again with the same key, there is
	// no second task, and one that runs something else is refused (see [KeyTakenError]). Empty for none. The task has
	// it while it lives, or a retry of it does, and then as long as KeyUntil says.
	Key string
	// KeyUntil is KeyUntilTTL or KeyUntilEnd.
	KeyUntil string

	// Comment is a note for people, a line of at most 1024 bytes; empty for none.
	Comment string

	// Meta is passed on to who runs the task, such as the id of a trace or of a tenant:
	// at most 32 names of small letters, digits and underscores, with lines of printable
	// text of at most 1024 bytes. A handler reads it from its Job, a program NAME as
	// TDF_META_NAME.
	Meta map[string]string

	// Needs are the tasks of its plan that the task waits for, at most MaxNeeds, in the
	// order in which it gets their results; only in a plan.
	Needs []Need
	// Args says how a program gets those: ArgsWords (empty) or ArgsFiles.
	Args string
	// Step is what the task is called within its plan, for people: at most 128 bytes in
	// one line, such as "count" or, of a step with several tasks, "count[2]"; empty for none.
	Step string
}

// Retry is what happens to a task that failed. Zero values are replaced by the defaults
// of the task; a negative duration or part means none, whatever these are.
type Retry struct {
	// Limit is how often the task may fail and be opened again.
	Limit Limit
	// Delay is the pause before the task runs again after its first failure, MaxDelay
	// the longest one.
	Delay, MaxDelay time.Duration
	// Backoff, at least 1, is the factor from one pause to the next; Jitter, up to 1,
	// the part of a pause that is left to chance.
	Backoff, Jitter float64
	// ExitCodes, if there are any, are the only exit codes after which the task runs
	// again; after one of FatalExitCodes it never does. Lists that are empty but not
	// nil are none, whatever the defaults are.
	ExitCodes, FatalExitCodes []int
}

// From returns the spec with StartAfter and EndBefore in the place of a StartIn and an
// EndIn above 0, counted from now on. Where both are given it is left as it is:
// [Define] refuses that.
func (s Spec) From(now time.Time) Spec {
	if s.StartIn > 0 && s.StartAfter.IsZero() {
		s.StartAfter, s.StartIn = now.Add(s.StartIn), 0
	}
	if s.EndIn > 0 && s.EndBefore.IsZero() {
		s.EndBefore, s.EndIn = now.Add(s.EndIn), 0
	}
	return s
}

// checkTimes refuses times that say two things.
func (s *Spec) checkTimes() error {
	switch {
	case s.StartIn != 0 && !s.StartAfter.IsZero():
		return bad("start_in", s.StartIn.String(), "given alone; leave out one of StartIn and StartAfter")
	case s.EndIn != 0 && !s.EndBefore.IsZero():
		return bad("end_in", s.EndIn.String(), "given alone; leave out one of EndIn and EndBefore")
	case s.EndIn > 0 && s.StartIn > s.EndIn:
		return bad("start_in", s.StartIn.String(), "earlier than end_in = "+s.EndIn.String())
	}
	return nil
}

// Set sets a field by its name to what its text says: as flags, JSON and
// configurations have it, times also as RFC 3339 or, such as +10m, from now on.
// The empty text leaves the field to the defaults; none is an empty list. The
// error is a [*statemachine.FieldError]; then nothing changes.
func (s *Spec) Set(name, text string, now time.Time) error {
	f, err := find(name)
	if err != nil {
		return err
	}
	if text == "" {
		f.clear(s)
		return nil
	}
	canonical, err := f.read(text, now)
	if err != nil {
		return named(name, err)
	}
	f.set(s, canonical)
	return nil
}

// Text is what the spec says for a field by its name, as a record has it; false
// if the spec leaves it to the defaults. A value that cannot be has a text too.
func (s *Spec) Text(name string) (string, bool) {
	f, err := find(name)
	if err != nil {
		return "", false
	}
	return f.get(s)
}

// Texts are those of all fields that decide what the task does, in the order of
// the table, for digests: "\x00" for one that is left to the defaults. Moments,
// which are often counted from now, and Meta, which may name the call of the opener,
// are not among them.
func (s *Spec) Texts() []string {
	texts := make([]string, 0, len(table)+len(s.Needs))
	for i := range table {
		f := &table[i]
		if f.moment || f.Name == "meta" {
			continue
		}
		text, said := f.get(s)
		if !said {
			text = "\x00"
		}
		texts = append(texts, text)
	}
	for _, n := range s.Needs {
		texts = append(texts, n.Text(), strconv.Itoa(n.Index))
	}
	return texts
}

// InputText shows what a program is called with: the input, or else quoted words.
func InputText(input string, argv []string) string {
	if argv == nil {
		return input
	}
	quoted := make([]string, len(argv))
	for i, word := range argv {
		quoted[i] = word
		if word == "" || strings.ContainsAny(word, " \t\n\"'\\") {
			quoted[i] = strconv.Quote(word)
		}
	}
	return strings.Join(quoted, " ")
}

// WithWords returns the spec with f applied to its input and to each word of its argv.
func (s Spec) WithWords(f func(string) string) Spec {
	s.Input = f(s.Input)
	s.Argv = slices.Clone(s.Argv)
	for i, word := range s.Argv {
		s.Argv[i] = f(word)
	}
	return s
}

// decode sets the spec to what a record says, and else to the defaults of TDF. Where
// there is no moment, no duration and no part it is zero; so is what cannot be read.
func (s *Spec) decode(fields map[string]string) {
	for i := range table {
		f := &table[i]
		text := fields[f.Name]
		if text == "" {
			if f.Default != "" {
				f.set(s, f.Default)
			}
			continue
		}
		if f.secret {
			text = clean.Values(text)
		}
		canonical, err := f.parse(text)
		switch {
		case f.textual: // shown also where no client of ours writes it
			f.set(s, cmp.Or(canonical, text))
		case err == nil:
			f.set(s, canonical)
		}
	}
	s.Needs = ParseNeeds(fields["needs"])
	s.StartIn, s.EndIn, s.Timeout = 0, 0, max(0, s.Timeout)
	s.Retry.Delay, s.Retry.MaxDelay, s.Retry.Jitter = max(0, s.Retry.Delay), max(0, s.Retry.MaxDelay), max(0, s.Retry.Jitter)
}

// members are those of the JSON object of a task: of what nobody said the defaults
// of TDF, and nothing where that is empty.
func (s *Spec) members() map[string]any {
	members := make(map[string]any, len(table))
	for i := range table {
		f := &table[i]
		from := s
		text, said := f.get(s)
		if !said {
			text, from = f.Default, &Spec{}
			f.set(from, text)
		}
		none := text == "" || f.moment && text == "0" || f.Planned && text == f.Default
		if !none {
			members[f.Name] = f.member(from)
		}
	}
	if len(s.Needs) > 0 {
		members["needs"] = s.Needs
	}
	return members
}

// member is the JSON value of a field as [Spec.SetJSON] takes it.
func (f *Field) member(s *Spec) any {
	text, _ := f.get(s)
	switch v := f.value(s).(type) {
	case string:
		if f.Name == "source" || f.Name == "return_to" {
			return clean.Source(v)
		}
	case Limit:
		if v == Unlimited {
			return string(v)
		}
	case time.Time:
		if text != infinite {
			return v.UTC().Truncate(time.Microsecond)
		}
		return infinite
	case time.Duration:
		if text != infinite {
			return max(v, 0).Seconds()
		}
		return infinite
	case float64:
		return max(v, 0)
	}
	return f.value(s)
}

// Opened is a task that a submission asked for.
type Opened struct {
	ID int64
	// Existing says that the task was there before: the one with the same Spec.Key, or
	// the one that a retry has opened already.
	Existing bool
}

// IDs are the ids of tasks that were opened, in their order.
func IDs(opened []Opened) []int64 {
	ids := make([]int64, len(opened))
	for i, o := range opened {
		ids[i] = o.ID
	}
	return ids
}
