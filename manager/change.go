package manager

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tdf-go/tdf/statemachine"
)

// Change says what became of one task, or would become of it in a dry run.
type Change struct {
	ID int64
	// Before and After are the task's states; the same if it did not move.
	Before, After statemachine.State
	// Asked says that the task goes on for now: its worker was told to stop, or
	// its report waits for the server. It is not opened again.
	Asked bool
	// Err is nil unless nothing changed. It matches [ErrNotFound], [ErrDamaged] or
	// statemachine.ErrConflict (the task kept changing), or is a
	// *statemachine.TransitionError: such a task cannot be changed like this.
	Err error
}

// ChangeOption changes how tasks, queues and nodes are changed.
type ChangeOption func(*changing)

// changing is what the options say.
type changing struct {
	dry, again bool
	by         string
	endBefore  time.Time
}

// DryRun changes nothing: the answer is what would be done.
func DryRun() ChangeOption { return func(c *changing) { c.dry = true } }

// By names who wants the change, for the logs of the tasks. Without it that is
// the name of the manager.
func By(name string) ChangeOption { return func(c *changing) { c.by = name } }

// WithEndBefore gives the new tasks of [Manager.Retry] another end_before.
func WithEndBefore(t time.Time) ChangeOption {
	return func(c *changing) { c.endBefore = t }
}

// Again makes [Manager.Retry] open another task where the ended one has been
// repeated already. The new one is not linked to it.
func Again() ChangeOption { return func(c *changing) { c.again = true } }

func (m *Manager) changing(opts []ChangeOption) (changing, error) {
	c := changing{by: m.name}
	for _, opt := range opts {
		opt(&c)
	}
	return c, checkLine("by", c.by)
}

// maxReason is the longest reason, in bytes.
const maxReason = 1024

// checkLine refuses a text that could pass for more than one line of a log.
func checkLine(field, text string) error {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }
	if len(text) > maxReason || strings.ContainsFunc(text, odd) {
		return fieldError(field, text, "a line of printable text of at most 1024 bytes")
	}
	return nil
}
