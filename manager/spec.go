package manager

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Values of a [Spec] that mean "no limit".
const (
	// Forever is a Timeout that never comes.
	Forever time.Duration = math.MaxInt64
	// Unlimited is a limit that no counter exceeds.
	Unlimited = math.MaxInt
)

// Never is an EndBefore that never comes.
func Never() time.Time { return time.UnixMicro(math.MaxInt64) }

// Values of Spec.FailOn.
const (
	FailOnAny    = "any"    // text on stderr, a non-zero exit, or a signal
	FailOnStderr = "stderr" // text on stderr only
	FailOnExit   = "exit"   // a non-zero exit or a signal only
)

// Values of Spec.Charge.
const (
	ChargeAll     = "all"     // every failure counts as a fail
	ChargeProgram = "program" // only those of the program and of its limits; others count as faults
)

// NoDelay is a Spec.RetryDelay of nothing, whatever the defaults are.
const NoDelay time.Duration = -1

// Spec defines a task to open. Zero values are replaced by the defaults of its
// queue, or else by [task_defaults] of the configuration.
type Spec struct {
	// Program names the directory the program lives in; Source says where to get
	// it: "https://host/program.zip", "rsync:host:program.tar", ".../run.sh".
	Program, Source string
	// Input is split at blanks into the words that run.sh is called with. Nothing
	// in it is interpreted.
	Input string
	// Argv, if not nil, is the exact list of words and takes the place of Input.
	Argv []string
	// StartAfter is the earliest start, EndBefore the latest moment of being
	// executed (see Never), both on Redis' clock.
	StartAfter, EndBefore time.Time
	// Timeout bounds each round, fetching included (see Forever).
	Timeout time.Duration
	// MaxFails, MaxTimeouts and MaxLosses are how often the task may fail, time
	// out or lose its worker and be opened again (see Unlimited).
	MaxFails, MaxTimeouts, MaxLosses *int
	// FailOn says what makes a round a failure: FailOnAny, FailOnStderr or FailOnExit.
	FailOn string

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
	// Priority is from -1000 to 1000, higher first.
	Priority *int
	// MaxFaults is how often the task may fail without being to blame (see
	// ChargeProgram) and be opened again.
	MaxFaults *int
	// RetryDelay is how long the task rests before it is run again after the first
	// failure, RetryMaxDelay the most that it ever rests (see NoDelay, Forever).
	RetryDelay, RetryMaxDelay time.Duration
	// RetryBackoff, at least 1, is by how much each rest is longer than the one
	// before; RetryJitter, from 0 to 1, the part of it that is left to chance.
	RetryBackoff, RetryJitter *float64
	// RetryExitCodes, if there are any, are the only exit codes after which the
	// task is run again; after one of FatalExitCodes it never is. Lists that are
	// empty but not nil are none, whatever the defaults are.
	RetryExitCodes, FatalExitCodes []int
	// Charge says which failures count as fails: ChargeAll or ChargeProgram.
	Charge string
	// Hold is why the task begins blocked, to be released by hand (see
	// [Manager.Release]); empty: it does not.
	Hold string
	// Key makes the task unique in its queue for as long as [manager] key_ttl says,
	// by default seven days: opened again with the same key, there is no second
	// task. Empty for none.
	Key string

	// Needs are the tasks of its plan that the task waits for, at most 1000, in the order
	// in which it gets their results; only with [InPlan].
	Needs []Need
	// Args says how a program gets those: ArgsWords (empty) or ArgsFiles.
	Args string
	// Step is what the task is called within its plan, for people: at most 128 bytes in
	// one line, such as "count" or, of a step with several tasks, "count[2]"; empty for none.
	Step string
}

// Check says what is wrong with a spec, defaults of the configuration included,
// without opening it: a *statemachine.FieldError that names the field, or nil.
// Whether the queue is there only opening finds out.
func (m *Manager) Check(spec Spec) error {
	_, err := m.complete(&spec, &m.cfg.TaskDefaults, nil)
	return err
}

// complete fills in the defaults, those of the queue given first, and validates.
func (m *Manager) complete(spec *Spec, c *config.TaskDefaults, queue map[string]string) (store.Spec, error) {
	if err := spec.checkTexts(); err != nil {
		return store.Spec{}, err
	}
	d := defaults{queue: queue, config: c}
	s := store.Spec{
		Program: spec.Program, Source: spec.Source, Input: spec.Input, Argv: spec.Argv,
		StartAfter: timeText(spec.StartAfter, c.StartAfter), EndBefore: timeText(spec.EndBefore, c.EndBefore),
		Timeout:     durationText(spec.Timeout, d.of("timeout", c.Timeout)),
		MaxFails:    limitText(spec.MaxFails, d.of("max_fails", c.MaxFails)),
		MaxTimeouts: limitText(spec.MaxTimeouts, d.of("max_timeouts", c.MaxTimeouts)),
		MaxLosses:   limitText(spec.MaxLosses, d.of("max_losses", c.MaxLosses)),
		FailOn:      failOnText(orText(spec.FailOn, d.of("fail_on", orText(c.FailOn, FailOnAny)))),
		Held:        spec.Hold, Key: spec.Key, ArgsAs: spec.Args, Step: spec.Step,
	}
	if err := d.routed(spec, &s); err != nil {
		return store.Spec{}, err
	}
	if err := d.repeated(spec, &s); err != nil {
		return store.Spec{}, err
	}
	if err := s.Check(); err != nil {
		return store.Spec{}, spec.blame(err, &s)
	}
	if c.AddRandomStartOffset {
		s.StartAfter = withRandomOffset(s.StartAfter, s.EndBefore)
	}
	return s, nil
}

// blame names the field that the caller has set, where an error is about two of
// which the other is a default.
func (s *Spec) blame(err error, complete *store.Spec) error {
	var field *statemachine.FieldError
	late := errors.As(err, &field) && field.Field == "start_after" && s.StartAfter.IsZero() && !s.EndBefore.IsZero()
	if !late {
		return err
	}
	return fieldError("end_before", complete.EndBefore, "later than start_after = "+complete.StartAfter)
}

// checkTexts refuses what no worker could run.
func (s *Spec) checkTexts() error {
	if config.ValidName("program", s.Program) != nil {
		return fieldError("program", s.Program,
			"a name for a directory: 1 to 128 bytes of visible text without a slash, not a dot or two, no blank at its ends")
	}
	switch s.FailOn {
	case "", FailOnAny, FailOnStderr, FailOnExit:
	default:
		return fieldError("fail_on", s.FailOn, "any, stderr or exit")
	}
	if s.Timeout < 0 {
		return fieldError("timeout", s.Timeout.String(), "a duration above 0")
	}
	for field, text := range map[string]string{"source": clean.Source(s.Source), "input": s.Input} {
		if strings.ContainsRune(text, 0) {
			return fieldError(field, text, "a text without NUL characters")
		}
	}
	for _, word := range s.Argv {
		if strings.ContainsRune(word, 0) || !utf8.ValidString(word) {
			return fieldError("argv", word, "UTF-8 text without NUL characters")
		}
	}
	return s.checkNew()
}

// maxKey is the longest key, in bytes.
const maxKey = 256

// checkNew is about what the original does not know.
func (s *Spec) checkNew() error {
	switch {
	case s.Queue != "" && task.CheckQueueName(s.Queue) != nil:
		return task.CheckQueueName(s.Queue)
	case s.RetryDelay < 0 && s.RetryDelay != NoDelay:
		return fieldError("retry_delay", s.RetryDelay.String(), "a duration that is not negative, or NoDelay")
	case s.RetryMaxDelay < 0:
		return fieldError("retry_max_delay", s.RetryMaxDelay.String(), "a duration above 0")
	case len(s.Key) > maxKey:
		return fieldError("key", s.Key, "a line of printable text of at most 256 bytes")
	}
	if err := checkLine("key", s.Key); err != nil {
		return err
	}
	if err := checkLine("step", s.Step); err != nil {
		return err
	}
	return checkLine("hold", s.Hold)
}

func fieldError(field, value, want string) error {
	return &statemachine.FieldError{Field: field, Value: value, Want: want}
}

// CheckSpecs is [Manager.Check] without Redis and a configuration: defaults are
// those of TDF. The error is a *[SpecError].
func CheckSpecs(specs []Spec) error {
	cfg, err := config.Load("", config.ForManager, config.WithEnviron([]string{}),
		config.WithSettings("redis.host=localhost", "tdf.namespace=check"))
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	m := &Manager{cfg: cfg}
	for i := range specs {
		if err := m.Check(specs[i]); err != nil {
			return &SpecError{Index: i, Err: err}
		}
	}
	return nil
}

// defaults are the values of a task that its opener did not give: those of its
// queue, by the names of their fields, before those of the configuration.
type defaults struct {
	queue  map[string]string
	config *config.TaskDefaults
}

func (d *defaults) of(name, configured string) string {
	if text, ok := d.queue[name]; ok {
		return text
	}
	return configured
}

// routed fills in where and when the task may run.
func (d *defaults) routed(spec *Spec, s *store.Spec) error {
	priority := strconv.Itoa(d.config.Priority)
	b := &s.Bucket
	for _, f := range []field{
		{"env", orText(spec.Env, d.of("env", d.config.Env)), &b.Env},
		{"labels", labelsText(spec.Labels, d.of("labels", d.config.Labels)), &b.Labels},
		{"resources", resourcesText(spec.Resources, d.of("resources", d.config.Resources)), &b.Resources},
		{"priority", intText(spec.Priority, d.of("priority", priority)), &priority},
	} {
		if err := f.check(); err != nil {
			return err
		}
	}
	b.Priority, _ = strconv.Atoi(priority) // checked
	if b.Queue = d.queueOf(spec); b.Queue == DefaultQueue {
		b.Queue = ""
	}
	return nil
}

// queueOf is the queue of a task.
func (d *defaults) queueOf(spec *Spec) string {
	return orText(orText(spec.Queue, d.config.Queue), DefaultQueue)
}

// repeated fills in when the task is run again.
func (d *defaults) repeated(spec *Spec, s *store.Spec) error {
	c := d.config
	for _, f := range []field{
		{"max_faults", limitText(spec.MaxFaults, d.of("max_faults", c.MaxFaults)), &s.MaxFaults},
		{"charge", orText(spec.Charge, d.of("charge", orText(c.Charge, ChargeAll))), &s.Charge},
		{"retry_delay", delayText(spec.RetryDelay, d.of("retry_delay", c.RetryDelay)), &s.RetryDelay},
		{"retry_backoff", floatText(spec.RetryBackoff, d.of("retry_backoff", c.RetryBackoff)), &s.RetryBackoff},
		{"retry_max_delay", durationText(spec.RetryMaxDelay, d.of("retry_max_delay", c.RetryMaxDelay)), &s.RetryMaxDelay},
		{"retry_jitter", floatText(spec.RetryJitter, d.of("retry_jitter", c.RetryJitter)), &s.RetryJitter},
		{"retry_exit_codes", codesText(spec.RetryExitCodes, d.of("retry_exit_codes", c.RetryExitCodes)), &s.RetryExitCodes},
		{"fatal_exit_codes", codesText(spec.FatalExitCodes, d.of("fatal_exit_codes", c.FatalExitCodes)), &s.FatalExitCodes},
	} {
		if err := f.check(); err != nil {
			return err
		}
	}
	return nil
}

// field is a value of a task on its way into the record.
type field struct {
	name, text string
	into       *string
}

func (f *field) check() (err error) {
	*f.into, err = task.ParseDefault(f.name, f.text)
	return err
}

func timeText(t time.Time, otherwise string) string {
	if t.IsZero() {
		return otherwise
	}
	return short(statemachine.Time(t.UnixMicro()).Text())
}

func durationText(d time.Duration, otherwise string) string {
	switch d {
	case 0:
		return otherwise
	case Forever:
		return statemachine.Forever.Text()
	default:
		return short(statemachine.Duration(max(1, d.Microseconds())).Text())
	}
}

func limitText(n *int, otherwise string) string {
	switch {
	case n == nil:
		return otherwise
	case *n == Unlimited:
		return statemachine.Unlimited.Text()
	default:
		return strconv.Itoa(*n)
	}
}

// failOnText is how a record says it: the default as nothing.
func failOnText(f string) string {
	if f == FailOnAny {
		return ""
	}
	return f
}

// short leaves out zeros after the decimal point: people read these numbers.
func short(seconds string) string {
	if !strings.Contains(seconds, ".") {
		return seconds
	}
	return strings.TrimSuffix(strings.TrimRight(seconds, "0"), ".")
}

// withRandomOffset adds up to a second, so that tasks opened with the same
// start run in mixed order (TDF document), but not beyond end.
func withRandomOffset(start, end string) string {
	from, err := statemachine.ParseTime(start)
	if err != nil {
		return start // validated before
	}
	room := int64(statemachine.Second)
	if last, err := statemachine.ParseTime(end); err == nil {
		room = min(room, int64(last.Sub(from)))
	}
	if room <= 0 {
		return start
	}
	return (from + statemachine.Time(rand.Int64N(room))).Text()
}

func orText(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func labelsText(labels []string, otherwise string) string {
	if labels == nil {
		return otherwise
	}
	return strings.Join(labels, ",")
}

func resourcesText(r map[string]int, otherwise string) string {
	if r == nil {
		return otherwise
	}
	return task.Resources(r).Text()
}

func intText(n *int, otherwise string) string {
	if n == nil {
		return otherwise
	}
	return strconv.Itoa(*n)
}

func floatText(f *float64, otherwise string) string {
	if f == nil {
		return otherwise
	}
	return strconv.FormatFloat(*f, 'f', -1, 64)
}

func codesText(codes []int, otherwise string) string {
	if codes == nil {
		return otherwise
	}
	texts := make([]string, len(codes))
	for i, n := range codes {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ",")
}

func delayText(d time.Duration, otherwise string) string {
	if d == NoDelay {
		return "0"
	}
	return durationText(d, otherwise)
}
