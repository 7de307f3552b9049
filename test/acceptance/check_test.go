package acceptance

import (
	"os"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
)

// checkFields compares fields: "-" means that there is none, "*" that there is one.
func checkFields(t *testing.T, task *tasks.TaskHeader, want map[string]string) {
	t.Helper()
	for name, value := range want {
		got, ok := task.Fields[name]
		switch {
		case value == "-" && ok, value == "*" && !ok, value != "-" && value != "*" && got != value:
			t.Errorf("task %d: %s = %.500q (there: %v), want %.500q", task.ID, name, got, ok, value)
		}
	}
}

// last is a field of the task's last round. It is not round 0 if a worker has handed the task back: one that it claimed ahead
// and had no slot for in time, or that it got just as it stopped or its disk became full.
func last(task *tasks.TaskHeader, field string) string {
	return task.Fields[sm.RoundField(task.Round, field)]
}

func contains(t *testing.T, what, got string, want ...string) {
	t.Helper()
	for _, s := range want {
		if !strings.Contains(got, s) {
			t.Errorf("%s lacks %q:\n%.2000s", what, s, got)
		}
	}
}

// content waits until a program has made the file, and reads it.
func content(t *testing.T, name string) string {
	t.Helper()
	var data []byte
	wait.Eventually(t, patience, func() bool {
		var err error
		data, err = os.ReadFile(name)
		return err == nil && len(data) > 0
	}, "file %s is not made", name)
	return strings.TrimSpace(string(data))
}

// made waits until a program has made the file.
func made(t *testing.T, name string) {
	t.Helper()
	wait.Eventually(t, patience, func() bool {
		_, err := os.Stat(name)
		return err == nil
	}, "file %s is not made", name)
}

// late is a text made when it is printed.
type late func() string

func (l late) String() string { return l() }
