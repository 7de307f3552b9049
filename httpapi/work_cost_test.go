package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// reads is how often Redis has read from a connection, this time included: once for what is sent at once.
func (c *client) reads(t *testing.T) (n int) {
	t.Helper()
	text, err := c.sp.Raw.Info(t.Context(), "stats").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(text, "total_reads_processed:")
	if _, err := fmt.Sscanf(rest, "%d", &n); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return n
}

// A turn goes to Redis for its token, for the fields that its reports are judged by, and once for all moves and the claim, however many
// there are.
func TestWorkCost(t *testing.T) {
	t.Parallel()
	c := clientOf(t, storetest.On(t, redistest.Start(t)), task.TokenAdmin)
	f := c.worker(t, "py-1", `{"slots":40}`)
	trips := func(members string) (worker.RoundAnswer, int) {
		t.Helper()
		want[worker.Standing](t, f.ask(t, http.MethodPut, "/session", fmt.Sprintf(`{"incarnation":%d}`, f.incarnation)), http.StatusOK) // none is due
		before := c.reads(t)
		got := f.turn(t, members)
		return got, c.reads(t) - before - 1
	}
	// reports are those of all tasks of an answer.
	reports := func(a worker.RoundAnswer) string {
		var all []string
		for i := range a.Tasks {
			all = append(all, strings.TrimSuffix(strings.TrimPrefix(endOf(&a.Tasks[i], `"exit_code":0`), `"reports":[`), "]"))
		}
		return `"reports":[` + strings.Join(all, ",") + "]"
	}
	said := ""
	for again := range 2 { // once all scripts are known
		for range 82 {
			c.open(t)
		}
		for _, tt := range []struct {
			what                string
			slots, tasks, trips int
		}{
			{"a claim, by rules that may have to be read", 1, 1, 0}, {"a report and a claim", 1, 1, 3}, {"a report and a claim of forty", 40, 40, 3}, {"forty reports and as many claims", 40, 40, 3},
			{"forty reports", 0, 0, 3}, {"nothing", 0, 0, 1}, {"a claim where nothing is due", 1, 0, 4},
		} {
			members := fmt.Sprintf(`"slots":%d%s`, tt.slots, said)
			got, n := trips(members)
			if said = ""; len(got.Tasks) > 0 {
				said = "," + reports(got)
			}
			if len(got.Tasks) != tt.tasks || again > 0 && tt.trips > 0 && n != tt.trips {
				t.Errorf("%s: %d tasks by %d trips to Redis, want %d by %d", tt.what, len(got.Tasks), n, tt.tasks, tt.trips)
			}
		}
	}
}
