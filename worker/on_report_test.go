package worker

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// OnReport hears of each round how it ended, and whether the report was refused.
func TestOnReport(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	seen := make(chan Reported, 10)
	s.start(t, func(o *options) { o.OnReport = func(r Reported) { seen <- r } })
	pid, end := filepath.Join(t.TempDir(), "pid"), filepath.Join(t.TempDir(), "end")
	for _, c := range []struct {
		script  string
		event   sm.Event
		failed  bool
		refused error
	}{
		{"true", sm.Report, false, nil},
		{"exit 3", sm.Report, true, nil},
		{sleeper, sm.Terminate, false, nil},
		{`echo $$ > "$1"; until [ -e ` + end + ` ]; do sleep 0.05; done`, sm.Report, false, sm.ErrStale},
	} {
		id := s.open(t, s.script(t, "p", c.script), input(pid), limits("600", "0"), func(d *task.Definition) {
			storetest.Set(d, "start_after", "1")
		})
		switch {
		case c.refused != nil:
			awaitFile(t, pid)
			s.takeBack(t, id)
			if err := os.WriteFile(end, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		case c.event == sm.Terminate:
			awaitFile(t, pid)
			s.askStop(t, id)
		}
		r := wait.Receive(t, time.Minute, seen, "nothing is said of %q", c.script)
		if r.Queue != task.DefaultQueue || r.Event != c.event || r.Failed != c.failed ||
			!errors.Is(r.Refused, c.refused) || r.Waited < 0 || r.Ran <= 0 {
			t.Errorf("%q: %+v", c.script, r)
		}
		_ = os.Remove(pid)
	}
}

// How long a task has waited is known from when it could start, or has rested after a failure, and not where it waited for others.
func TestWaitedFor(t *testing.T) {
	t.Parallel()
	at := func(seconds int64) sm.Time { return sm.Time(1_800_000_000+seconds) * sm.Time(sm.Second) }
	for name, c := range map[string]struct {
		task  sm.Task
		needs []task.Need
		want  time.Duration
	}{
		"first":              {sm.Task{StartAfter: at(-7)}, nil, 7 * time.Second},
		"not yet":            {sm.Task{StartAfter: at(7)}, nil, 0},
		"after a failure":    {sm.Task{StartAfter: at(-90), NotBefore: at(-3), Round: 1, Fails: 1}, nil, 3 * time.Second},
		"after a loss":       {sm.Task{StartAfter: at(-90), Round: 1, Losses: 1}, nil, -1},
		"needs":              {sm.Task{StartAfter: at(-90)}, []task.Need{{Task: 1}}, -1},
		"nobody said when":   {sm.Task{}, nil, -1},
		"failed, never rest": {sm.Task{StartAfter: at(-90), Round: 1, Fails: 1}, nil, -1},
	} {
		r := &round{Claimed: &Claimed{Task: c.task, Spec: task.Spec{Needs: c.needs}}, clock: newClock(at(0))}
		if got := r.waitedFor(); got < c.want || got > c.want+time.Minute || (got < 0) != (c.want < 0) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
