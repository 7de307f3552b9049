package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// serverSilence is how long a server may be silent, which publishes its settings
// every repair_interval, 5 s unless set.
const serverSilence = 60 * statemachine.Second

func judgeServer(f *Facts) []Finding {
	const check = "server"
	const remedy = "start tdf-server; several may run at a time"
	age := f.Now.Sub(f.ServerSeen)
	ago := (time.Duration(age) * time.Microsecond).Round(100 * time.Millisecond).String()
	switch {
	case f.ServerSeen == 0:
		return fail(check, "no server has ever run on this namespace: nothing that is executed is settled", remedy)
	case age > serverSilence:
		return fail(check, "no server has been seen for "+ago+": nothing that is executed is settled", remedy)
	default:
		return ok(check, "a server was seen "+ago+" ago")
	}
}

// alive are the workers with a session.
func (f *Facts) alive() (workers []store.WorkerInfo) {
	for _, w := range f.Workers {
		if w.State != store.WorkerLost && w.State != store.WorkerStopped {
			workers = append(workers, w)
		}
	}
	return workers
}

// weak are the ways to contain a round from which a process can escape.
var weak = map[string]string{
	"group": "a process that leaves its group survives the round",
	"":      "it does not say how it contains rounds",
}

func judgeWorkers(f *Facts) []Finding {
	const check = "workers"
	alive := f.alive()
	if len(alive) == 0 {
		return warn(check, "no worker is alive", "start tdf-worker")
	}
	var found []Finding
	for _, w := range alive {
		kind := strings.TrimSpace(strings.SplitN(w.Containment+"+", "+", 2)[0])
		kind, _, _ = strings.Cut(kind, " ")
		if why, is := weak[kind]; is {
			found = append(found, warn(check, fmt.Sprintf("worker %s: containment %q: %s", w.Name, w.Containment, why),
				"let it make PID namespaces or own a cgroup: docs/CONFIGURATION.md, containment; require_containment=true refuses less")...)
		}
		if w.Stuck > 0 {
			found = append(found, warn(check, fmt.Sprintf("worker %s: %d slots hold a process that does not end", w.Name, w.Stuck),
				"look at that host for hung disks or network file systems, then restart the worker")...)
		}
	}
	if found == nil {
		found = ok(check, fmt.Sprintf("%d alive, all contain their rounds", len(alive)))
	}
	return found
}

func judgeVersions(f *Facts) []Finding {
	const check = "versions"
	by := map[string][]string{}
	for _, w := range f.alive() {
		by[w.Version] = append(by[w.Version], w.Name)
	}
	versions := slices.Sorted(maps.Keys(by))
	switch len(versions) {
	case 0:
		return ok(check, "no worker is alive that could differ")
	case 1:
		return ok(check, "all workers are of version "+versions[0])
	}
	parts := make([]string, len(versions))
	for i, v := range versions {
		parts[i] = fmt.Sprintf("%s: %d", v, len(by[v]))
	}
	return warn(check, "workers of several versions: "+strings.Join(parts, ", "),
		"finish the upgrade. Under access lists a worker needs a server of its own version, which loads its scripts")
}

func judgeNodes(f *Facts) []Finding {
	const check = "nodes"
	var aside []string
	for i := range f.Nodes {
		if q := &f.Nodes[i]; q.Quarantined != 0 {
			aside = append(aside, q.Name)
		}
	}
	if len(aside) > 0 {
		return warn(check, "set aside: "+strings.Join(aside, ", "), "tdf-manager node show NAME says why; docs/QUARANTINE.md")
	}
	return ok(check, fmt.Sprintf("%d known, none set aside (quarantine=%s)", len(f.Nodes), f.Quarantine))
}

// judgeHistory looks at whether Redis has lost what it acknowledged.
func judgeHistory(f *Facts) []Finding {
	const check = "history"
	found := ok(check, fmt.Sprintf("epoch %d: nothing is known to be lost", f.Sizes.Epoch))
	epochs := slices.DeleteFunc(slices.Clone(f.Gaps), func(e store.Epoch) bool { return e.Confirmed })
	if n := len(epochs); n > 0 {
		last := &epochs[n-1]
		found = warn(check, fmt.Sprintf(
			"epoch %d: Redis has lost what it had acknowledged, last seen at %s: at least %d changes; "+
				"ids %d to %d were left out, some of which may have been given out",
			f.Sizes.Epoch, time.UnixMicro(int64(last.At)).UTC().Format(time.DateTime+" MST"), last.Lost, last.FromID+1, last.ToID),
			"open again what is missing (tdf-manager verify compares); see durability in docs/OPERATIONS.md for how to lose less")
	}
	if f.Sizes.Behind {
		found = append(found, fail(check, "Redis has gone back in time, and no server has opened a new epoch yet: every program waits",
			"start tdf-server; its log says what was lost")...)
	}
	for i := range f.Gaps {
		if e := &f.Gaps[i]; e.SureID < e.FromID {
			found = append(found, fail(check, fmt.Sprintf("ids %d to %d may have been given out twice: "+
				"they were taken after Redis had been started anew or failed over, and before a server looked", e.SureID+1, e.FromID),
				"compare these tasks with what those who opened them have noted; clients that take ids by INCR cannot be held back")...)
		}
	}
	if f.Sizes.Unconfirmed && !f.Sizes.Behind {
		found = append(found, fail(check, "Redis was started anew or failed over, and no server has confirmed it: no task can be opened",
			"start tdf-server, which does so within seconds")...)
	}
	return found
}

// manyArchived is from how many archived tasks on it is worth a thought to delete some.
const manyArchived = 1_000_000

func judgeTasks(f *Facts) []Finding {
	const check = "tasks"
	var found []Finding
	if n := f.Sizes.SetAside; n > 0 {
		found = append(found, warn(check, fmt.Sprintf("%d damaged tasks are set aside", n), "tdf-manager verify says which, and why")...)
	}
	if n := f.Sizes.Archived; n >= manyArchived {
		found = append(found, warn(check, fmt.Sprintf("%d archived tasks are kept in memory", n),
			"let them leave Redis: [server] archive_retention, and archive_dir for a copy; docs/OPERATIONS.md")...)
	}
	if found == nil {
		found = ok(check, fmt.Sprintf("none set aside; %d archived, %d events", f.Sizes.Archived, f.Sizes.Events))
	}
	return found
}

// mostPlans is how many plans are named one by one.
const mostPlans = 10

// judgePlans looks for plans that were begun and not made ready: their tasks do not run.
func judgePlans(f *Facts) []Finding {
	const check = "plans"
	if len(f.HalfBuilt) == 0 {
		return ok(check, "all are ready")
	}
	var found []Finding
	for i := range f.HalfBuilt[:min(len(f.HalfBuilt), mostPlans)] {
		p := &f.HalfBuilt[i]
		name := ""
		if p.Name != "" {
			name = " (" + clean.Line(p.Name, 100) + ")"
		}
		found = append(found, warn(check, fmt.Sprintf(
			"plan %d%s was begun %v ago and not made to its end: nothing of it runs, and its %d tasks wait",
			p.ID, name, task.Moment(f.Now).Sub(p.Created).Round(time.Second), p.Left),
			fmt.Sprintf("submit it again with its --key, which finishes it; or tdf-manager plan cancel %d", p.ID))...)
	}
	if more := len(f.HalfBuilt) - mostPlans; more > 0 {
		found = append(found, warn(check, fmt.Sprintf("%d more plans were begun and not made to their ends", more),
			"tdf-manager plan ls shows them as building")...)
	}
	return found
}

const (
	// overstay is how long an archived task that should have left may still be there: servers may have much to do.
	overstay = 10 * time.Minute
	// turnSilence is how long there may be no server whose turn it is to let tasks go; one that is at work renews it each second.
	turnSilence = 60 * statemachine.Second
)

// rules are the setting as the store wants it.
func rules(setting []config.Retention) []store.Retention {
	all := make([]store.Retention, len(setting))
	for i, r := range setting {
		all[i] = store.Retention{Outcome: r.Outcome, Age: r.Age, Most: r.Most}
	}
	return all
}

// judgeRetention looks at whether archived tasks leave Redis as they should.
func judgeRetention(f *Facts) []Finding {
	const check = "retention"
	active := f.Sizes.PurgeTurn != 0 && f.Now.Sub(f.Sizes.PurgeTurn) <= turnSilence
	wanted := f.Config != nil && len(f.Config.ArchiveRetention) > 0
	switch {
	case f.Sizes.ArchiveError != "":
		return fail(check, "archived tasks cannot be written to the archive, and stay in Redis: "+f.Sizes.ArchiveError,
			"make room there, or mount the disk again; servers try again by themselves")
	case wanted && !active:
		return warn(check, "this configuration has archive_retention, and no server lets archived tasks go now",
			"give all servers the same [server] archive_retention, and start one")
	case wanted && f.Overstayed > 0:
		return warn(check, fmt.Sprintf("%d archived tasks should have left Redis more than %v ago", f.Overstayed, overstay),
			"servers cannot keep up, or some have another archive_retention: look into their logs")
	case f.Config != nil && !wanted && active:
		return warn(check, "a server lets archived tasks go, and archive_retention is not in this configuration",
			"give all servers the same [server] archive_retention")
	case active:
		return ok(check, "a server lets archived tasks go when their time has come")
	default:
		return ok(check, "archived tasks stay in Redis")
	}
}
