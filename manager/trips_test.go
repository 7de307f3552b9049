package manager

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/task"
)

var evalsha = regexp.MustCompile(`cmdstat_evalsha:calls=(\d+),`)

// TestOpenIsOneTrip: a manager opens a task in one call, also its first one, and also in
// a queue that gives defaults; only when the queues have changed it reads them, and opens by what they say now.
func TestOpenIsOneTrip(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	ns := redistest.Namespace(t)
	operator := newManager(t, ns, WithSettings(settings(srv.Socket(), ns)...))
	mustOpen(t, operator, 1, spec()) // Redis has the scripts now
	m := newManager(t, ns, WithSettings(settings(srv.Socket(), ns)...))
	calls := func() int {
		n, err := strconv.Atoi(evalsha.FindStringSubmatch(srv.Do(t, "INFO", "commandstats").(string))[1])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	check := func(step string, s task.Spec, want int, fails string) {
		t.Helper()
		before := calls()
		id, err := m.Open(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if got := calls() - before; got != want {
			t.Errorf("%s: %d calls, want %d", step, got, want)
		}
		if got := mustTask(t, m, id).Fields["max_fails"]; got != fails {
			t.Errorf("%s: max_fails %s, want %s", step, got, fails)
		}
	}
	check("the first one", spec(), 1, "0")
	if _, err := operator.AddQueue(t.Context(), "q", map[string]string{"default_max_fails": "3"}); err != nil {
		t.Fatal(err)
	}
	in := spec()
	in.Queue = "q"
	check("in a queue that it does not know", in, 2, "3")
	check("in one that it knows", in, 1, "3")
	if _, err := operator.SetQueue(t.Context(), "q", map[string]string{"default_max_fails": "4"}); err != nil {
		t.Fatal(err)
	}
	check("after a change", in, 3, "4")
	check("after that", in, 1, "4")
}
