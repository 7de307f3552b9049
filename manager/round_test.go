package manager

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func hashOf(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

// Wait reports what a running task says of its progress.
func TestWaitReportsProgress(t *testing.T) {
	t.Parallel()
	ns, srv := redistest.Namespace(t), redistest.Shared(t)
	m, s := newManager(t, ns), worktest.Open(t, ns)
	mustOpen(t, m, 2, spec())
	srv.Do(t, "HSET", ns+":task:2", "state", "running", "0:progress", "0.5 half")
	srv.Do(t, "ZREM", ns+":open", "2")
	srv.Do(t, "ZADD", ns+":running", "1", "2")
	var seen []RunningTask
	_, err := m.WaitAll(t.Context(), func(p Progress) {
		if len(p.Running) == 0 {
			return
		}
		if seen == nil {
			srv.Do(t, "HSET", ns+":task:2", "0:progress", "0.9")
		} else {
			srv.Do(t, "HSET", ns+":task:2", "state", "succeeded")
			worktest.Drain(t, s, worktest.Echo)
		}
		seen = append(seen, p.Running...)
	})
	if err != nil || len(seen) != 2 || seen[0].ID != 2 || seen[0].Progress.String() != "50% half" || *seen[1].Progress.Part != 0.9 {
		t.Errorf("saw %+v, %v", seen, err)
	}
}

// An error names what the caller has set, not what came from the defaults.
func TestSpecErrorBlamesTheCaller(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m := newManager(t, ns, withSettings("task_defaults.start_after=2000000000"))
	for want, spec := range map[string]task.Spec{
		"end_before":  {Program: "p", EndBefore: time.Unix(1000, 0)},
		"start_after": {Program: "p", EndBefore: time.Unix(1000, 0), StartAfter: time.Unix(2000, 0)},
		"fail_on":     {Program: "p", FailOn: "never"},
		"program":     {Program: "a/b"},
	} {
		if got := fieldOf(m.Check(spec)); got != want {
			t.Errorf("%q is blamed, want %q", got, want)
		}
	}
}

func fieldOf(err error) string {
	var field *statemachine.FieldError
	if !errors.As(err, &field) {
		return ""
	}
	return field.Field
}
