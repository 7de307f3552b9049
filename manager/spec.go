package manager

import (
	"errors"
	"math"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
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
