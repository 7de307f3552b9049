package manager

import (
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	sm "github.com/tdf-go/tdf/statemachine"
)

// A reason is one line: it stands in a log.
func TestReasonIsALine(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	mustOpen(t, m, 1, spec())
	for field, call := range map[string]func() error{
		"reason": func() error { _, err := m.Cancel(t.Context(), []int64{1}, ChangeOptions{Reason: "a\nb"}); return err },
		"by":     func() error { _, err := m.Unhold(t.Context(), []int64{1}, ChangeOptions{By: "\x1b[2J"}); return err },
	} {
		if got := fieldOf(call()); got != field {
			t.Errorf("%q is blamed, want %q", got, field)
		}
	}
	if state := mustTask(t, m, 1).State; state != sm.Open {
		t.Errorf("the task is %s", state)
	}
}
