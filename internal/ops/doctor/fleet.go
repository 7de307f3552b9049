package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
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
