package chaos

import (
	"fmt"
	"testing"

	"github.com/tdf-go/tdf/internal/ops/trace"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// readHistory finds out how often servers noticed that Redis had forgotten what it
// had acknowledged, and when: not by the clock of Redis, which steps. A server may be
// killed before it has logged an epoch, and Redis may forget one in a second loss
// before the watcher has seen it: both are asked.
func (tr *trial) readHistory(t *testing.T) {
	t.Helper()
	gaps, err := tr.Store.Gaps(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[int64]bool{}
	for _, n := range tr.logged(t) {
		numbers[n.Epoch] = true
		tr.noticed = append(tr.noticed, n.Time)
	}
	for n, at := range tr.watch.epochs {
		numbers[n] = true
		tr.noticed = append(tr.noticed, at)
	}
	for _, g := range gaps {
		tr.forgotten = append(tr.forgotten, idRange{g.FromID, g.ToID})
	}
	tr.report.HistoryLosses = len(numbers)
}

// idRange are the ids after the first one, up to the last.
type idRange struct{ after, last int64 }

// missing notes a task that is not there. If a server has said that it may be
// forgotten, that is no broken promise.
func (tr *trial) missing(id int64) {
	for _, ids := range tr.forgotten {
		if id > ids.after && id <= ids.last {
			tr.report.Forgotten++
			return
		}
	}
	tr.report.violate(lost, "task %d is not there", id)
}

// checkTrace replays the events against the state machine, and looks for what was
// accepted twice.
func (tr *trial) checkTrace(t *testing.T) {
	t.Helper()
	events := tr.events(t)
	tr.report.Events = len(events)
	tr.checkForeigners(t, events)
	if len(events) == 0 {
		tr.report.violate(illegal, "there are no events")
	}
	for _, p := range trace.Check(events) {
		tr.report.violate(illegal, "%v", p)
	}
	seen := map[string]bool{}
	for _, e := range events {
		step := fmt.Sprintf("task %d, round %d: %s", e.ID, e.Round, e.Event)
		switch {
		case !seen[step]:
			seen[step] = true
		case e.Event == statemachine.Report:
			tr.report.violate(doubled, "%s again, #%d", step, e.Seq)
		case e.Event == statemachine.Archive:
			tr.report.violate(twice, "%s again, #%d", step, e.Seq)
		}
	}
}

// events reads the whole stream.
func (tr *trial) events(t *testing.T) []task.Event {
	t.Helper()
	const most = 5000
	var events []task.Event
	for next := int64(0); ; {
		found, err := tr.Store.Events(t.Context(), next, most)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range found {
			if e.Err != nil {
				t.Fatalf("event %d: %v", e.Seq, e.Err)
			}
			next = e.Seq + 1
		}
		events = append(events, found...)
		if len(found) < most {
			return events
		}
	}
}
