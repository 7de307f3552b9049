package manager

import (
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tdf-go/tdf/internal/config"
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

// Spec defines a task to open. Zero values are replaced by [task_defaults] of
// the configuration.
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
}

// Check says what is wrong with a spec, defaults included, without opening it:
// a *statemachine.FieldError that names the field, or nil.
func (m *Manager) Check(spec Spec) error {
	_, err := m.complete(&spec)
	return err
}

// complete fills in the defaults and validates.
func (m *Manager) complete(spec *Spec) (store.Spec, error) {
	d := &m.cfg.TaskDefaults
	if err := spec.checkTexts(); err != nil {
		return store.Spec{}, err
	}
	s := store.Spec{
		Program: spec.Program, Source: spec.Source, Input: spec.Input, Argv: spec.Argv,
		StartAfter: timeText(spec.StartAfter, d.StartAfter), EndBefore: timeText(spec.EndBefore, d.EndBefore),
		Timeout:     durationText(spec.Timeout, d.Timeout),
		MaxFails:    limitText(spec.MaxFails, d.MaxFails),
		MaxTimeouts: limitText(spec.MaxTimeouts, d.MaxTimeouts),
		MaxLosses:   limitText(spec.MaxLosses, d.MaxLosses),
		FailOn:      failOnText(spec.FailOn, d.FailOn),
	}
	if err := s.Check(); err != nil {
		return store.Spec{}, spec.blame(err, &s)
	}
	if d.AddRandomStartOffset {
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
	for field, text := range map[string]string{"source": s.Source, "input": s.Input} {
		if strings.ContainsRune(text, 0) {
			return fieldError(field, text, "a text without NUL characters")
		}
	}
	for _, word := range s.Argv {
		if strings.ContainsRune(word, 0) || !utf8.ValidString(word) {
			return fieldError("argv", word, "UTF-8 text without NUL characters")
		}
	}
	return nil
}

func fieldError(field, value, want string) error {
	return &statemachine.FieldError{Field: field, Value: value, Want: want}
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

func failOnText(f, otherwise string) string {
	switch f {
	case "":
		return otherwise
	case FailOnAny:
		return ""
	default:
		return f
	}
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
