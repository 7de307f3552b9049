package acceptance

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/manager"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// project is package manager on the namespace, as a project uses it.
func (w *world) project(t *testing.T) *manager.Manager {
	t.Helper()
	site, err := connect(t.Context(), w.cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = site.Close() })
	return manager.New(site, "project", manager.Options{})
}

// queue makes a queue with tdf-manager.
func (w *world) queue(t *testing.T, name string, set ...string) {
	t.Helper()
	w.manage(t, 0, append([]string{"queue", "add", name}, set...)...)
}

// node starts a worker on a node, both of that name. Nothing but being woken makes
// it look for work within the time of a test.
func (w *world) node(t *testing.T, name string, set ...string) *daemon {
	t.Helper()
	return w.worker(t, name, append([]string{"node=" + name, "sleep_initial=600", "sleep_max=600", "drain_timeout=1"}, set...)...)
}

// nodes starts a worker on each of some nodes, with the same further settings.
func (w *world) nodes(t *testing.T, names []string, set ...string) {
	t.Helper()
	for _, name := range names {
		w.node(t, name, set...)
	}
}

// waits is a program that says in the ledger $1 when it begins and ends, and waits
// in between until it is released.
const waits = `say() { read up _ </proc/uptime; echo "$TDF_TASK_ID $TDF_ROUND $TDF_WORKER $1 $up" >>"$ledger"; }
ledger=$1; say start
until [ -e "$ledger.go" ] || [ -e "$ledger.$TDF_TASK_ID.go" ]; do sleep 0.1; done
say end; echo "round $TDF_ROUND by $TDF_WORKER"`

// waiting makes a ledger of that name and a task of a queue whose program writes
// to it and waits.
func (w *world) waiting(t *testing.T, name, queue string) (task.Spec, ledger) {
	t.Helper()
	l := ledger{w.file(t, filepath.Join("ledgers", name), "", 0o666)}
	spec := w.script(t, "waits", waits)
	spec.Input, spec.Queue = l.path, queue
	return spec, l
}

// ended waits until all tasks are archived after that end, and reads them.
func (w *world) ended(t *testing.T, ids []int64, outcome sm.State) []*tasks.TaskHeader {
	t.Helper()
	found := make([]*tasks.TaskHeader, len(ids))
	for i, id := range ids {
		found[i] = w.archived(t, id, outcome)
	}
	return found
}

// where counts the tasks by the node of their first round.
func where(found []*tasks.TaskHeader) map[string]int {
	nodes := map[string]int{}
	for _, task := range found {
		nodes[task.Fields["0:node"]]++
	}
	return nodes
}

// on are those of the tasks whose first round was on the node.
func on(node string, found []*tasks.TaskHeader) []*tasks.TaskHeader {
	return slices.DeleteFunc(slices.Clone(found), func(task *tasks.TaskHeader) bool { return task.Fields["0:node"] != node })
}

// most replays the claims and ends of first rounds in order and returns how many of
// them were under way at a time, at most, right after a claim since that moment.
func most(t *testing.T, found []*tasks.TaskHeader, since sm.Time) int {
	t.Helper()
	type event struct {
		at   sm.Time
		step int
	}
	var events []event
	for _, task := range found {
		stamps := storetest.Stamps(task, 0)
		if stamps["running"] == 0 || stamps["executed"] == 0 {
			t.Fatalf("task %d has not run: %v", task.ID, stamps)
		}
		events = append(events, event{stamps["running"], 1}, event{stamps["executed"], -1})
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.step, b.step)) })
	now, peak := 0, 0
	for _, e := range events {
		if now += e.step; e.step > 0 && e.at >= since {
			peak = max(peak, now)
		}
	}
	return peak
}

// order are the ids of tasks in the order in which they were claimed.
func order(found []*tasks.TaskHeader) []int64 {
	by := map[sm.Time]int64{}
	for _, task := range found {
		by[storetest.Stamps(task, 0)["running"]] = task.ID
	}
	ids := make([]int64, 0, len(by))
	for _, at := range slices.Sorted(maps.Keys(by)) {
		ids = append(ids, by[at])
	}
	return ids
}

// object is what a verb of tdf-manager prints as JSON, ending with the code.
func (w *world) object(t *testing.T, code int, args ...string) map[string]any {
	t.Helper()
	out, _ := w.manage(t, code, append(args, "--json")...)
	var object map[string]any
	if err := json.Unmarshal([]byte(out), &object); err != nil {
		t.Fatalf("%v prints no object: %v\n%s", args, err, out)
	}
	return object
}

// status is the number Disbatch has for the state of a task.
func (w *world) status(t *testing.T, id int64) int {
	t.Helper()
	number, ok := w.object(t, 0, "show", id2text(id))["status"].(float64)
	if !ok {
		t.Fatalf("task %d has no status", id)
	}
	return int(number)
}

// link makes a symbolic link.
func link(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}
