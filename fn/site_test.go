package fn_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/fn"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/testkit/crewtest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/task"
)

func TestMain(m *testing.M) {
	conn.Silence()
	redistest.Main(m)
}

const patience = 3 * time.Minute

// newSite starts a server and a worker of four slots that serves the functions, and
// programs that stand in dir; it returns a manager.
func newSite(tb testing.TB, dir string, functions ...fn.Function) *manager.Manager {
	tb.Helper()
	for name, more := range map[string]string{"server.cfg": "", "worker.cfg": "[worker]\nslots=4\noutput_limit=2000\n"} {
		text := "[redis]\nhost=\n[tdf]\nnamespace=\n" + more
		must(tb, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	place := crewtest.NewPlace(tb)
	crewtest.Start(tb, crewtest.Crew{Dir: dir, Place: place, Workers: []string{"w"}, Handlers: fn.Handlers(functions...)})
	return manager.New(place.Site(tb), "m", manager.Options{})
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func newPlan(t *testing.T, m *manager.Manager, opts ...plan.Option) *plan.Plan {
	t.Helper()
	p, err := plan.New(t.Context(), m, t.Name(), opts...)
	must(t, err)
	return p
}

// run lets a plan run to its end, and expects that state.
func run(t *testing.T, p *plan.Plan, want task.PlanState) {
	t.Helper()
	must(t, p.Ready(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	status, err := p.Wait(ctx)
	if err != nil || status.State != want {
		t.Fatalf("%v, %+v, want %s", err, status, want)
	}
}

// checkValue compares the value of a future.
func checkValue[R any](t *testing.T, f *fn.Future[R], want R) {
	t.Helper()
	if got, err := f.Get(t.Context()); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("task %d has brought %v, %v, want %v", f.ID(), got, err, want)
	}
}

// checkRounds looks at how often a task was run, and at the error of its last round.
func checkRounds(t *testing.T, m *manager.Manager, id int64, rounds int, texts ...string) {
	t.Helper()
	task, err := m.Task(t.Context(), id)
	must(t, err)
	if len(task.Rounds) != rounds {
		t.Errorf("task %d has had %d rounds, want %d: %+v", id, len(task.Rounds), rounds, task.Rounds)
	}
	for _, text := range texts {
		if !strings.Contains(task.Failure(), text) {
			t.Errorf("task %d: %q does not say %q", id, task.Failure(), text)
		}
	}
}

// quick makes calls rest for no time after a failure.
var quick = fn.WithSpec(func(s *task.Spec) { s.Retry.Delay = -1 })
