// Package doctor looks at a Redis, at the namespace in it and at this host, and
// says what is wrong, how bad it is, and what to do about it.
//
// [Gather] reads the facts once. The judges are pure functions over them: those
// of the namespace stand here, those of Redis and of the host in files of their own.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Facts is all that the judges look at.
type Facts struct {
	// Redis is what the configuration says of the connection.
	Redis config.Redis
	// Exposed are files with secrets that every user of this host can read.
	Exposed []string
	// Server is what Redis says of itself, Refused why [conn.Conn.Check] refuses it.
	Server  upkeep.Facts
	Refused error
	// CheckWarnings are those of [conn.Conn.Check].
	CheckWarnings []string

	// Now is the time of Redis, ServerSeen when a server was alive last (0: never).
	Now, ServerSeen statemachine.Time
	Workers         []task.Worker
	Nodes           []task.Node
	// Quarantine is the mode that servers have published.
	Quarantine string
	// Step is the last step of the clock of Redis that a server has noticed.
	Step  conn.Step
	Gaps  []conn.Epoch
	Sizes upkeep.Sizes
	// HalfBuilt are the plans that nobody makes ready any more.
	HalfBuilt []task.Plan
	// Config is what the configuration says of servers, nil if it says nothing; Overstayed is how many archived tasks should have left
	// Redis long ago if all servers had it.
	Config     *config.Server
	Overstayed int64

	// Places are local directories that a worker of this configuration writes to.
	Places []Place
}

// Gather reads the facts. The error matches [task.ErrUnreachable] if Redis cannot
// be asked. The store's Check, which refuses some servers, only becomes a fact.
func Gather(ctx context.Context, st *store.Store, cfg *config.File) (*Facts, error) {
	f := &Facts{Redis: cfg.Redis, Exposed: cfg.Exposed()}
	info, err := st.Check(ctx)
	if errors.Is(err, task.ErrUnfit) {
		f.Refused, err = err, nil
	}
	if err != nil {
		return nil, err
	}
	f.CheckWarnings = info.Warnings
	if f.Server, err = st.Facts(ctx); err != nil {
		return nil, err
	}
	if err := f.namespace(ctx, st); err != nil {
		return nil, err
	}
	if cfg.Given("server") {
		f.Config = &cfg.Server
		if f.Overstayed, err = st.Overstayed(ctx, cfg.Server.ArchiveRetention, overstay); err != nil {
			return nil, err
		}
	}
	if cfg.Given("worker") {
		f.Places = places(&cfg.Worker)
	}
	return f, nil
}

// namespace reads what stands in the namespace.
func (f *Facts) namespace(ctx context.Context, st *store.Store) (err error) {
	f.ServerSeen, err = st.ServerSeen(ctx) // before the time
	if err == nil {
		f.Workers, f.Now, err = st.Workers(ctx)
	}
	read(ctx, &err, &f.Nodes, st.NodeRecords)
	read(ctx, &err, &f.Quarantine, st.Quarantine)
	read(ctx, &err, &f.Gaps, st.Gaps)
	read(ctx, &err, &f.Step, st.LastStep)
	read(ctx, &err, &f.HalfBuilt, st.HalfBuilt)
	read(ctx, &err, &f.Sizes, st.Sizes)
	return err
}

// read reads one fact, unless one before it could not be read.
func read[T any](ctx context.Context, err *error, fact *T, ask func(context.Context) (T, error)) {
	if *err == nil {
		*fact, *err = ask(ctx)
	}
}

// Severity is how bad a finding is.
type Severity string

// The severities.
const (
	// OK is as it should be.
	OK Severity = "ok"
	// Skip could not be looked at, or not with this login.
	Skip Severity = "skip"
	// Warn works, but is unwise.
	Warn Severity = "warn"
	// Fail loses or betrays something sooner or later, or does so now.
	Fail Severity = "fail"
)

// Finding is one thing that was looked at.
type Finding struct {
	// Check names the subject, such as "persistence".
	Check string `json:"check"`
	// Severity is how bad it is.
	Severity Severity `json:"severity"`
	// Found says what there is, Remedy what to do; empty where nothing is.
	Found  string `json:"found"`
	Remedy string `json:"remedy,omitempty"`
}

// subjects are all that is looked at, in the order of the report, each with its judge.
var subjects = []struct {
	check string
	judge func(*Facts, *report)
}{
	{"version", judgeVersion}, {"memory", judgeMemory}, {"persistence", judgePersistence}, {"durability", judgeDurability},
	{"replication", judgeReplication}, {"clock", judgeClock}, {"latency", judgeLatency}, {"login", judgeLogin},
	{"network", judgeNetwork}, {"secrets", judgeSecrets}, {"server", judgeServer}, {"workers", judgeWorkers},
	{"versions", judgeVersions}, {"nodes", judgeNodes}, {"history", judgeHistory}, {"tasks", judgeTasks},
	{"plans", judgePlans}, {"retention", judgeRetention}, {"disk", judgeDisk},
}

// Examine judges the facts.
func Examine(f *Facts) []Finding {
	var all []Finding
	for _, s := range subjects {
		r := report{check: s.check}
		s.judge(f, &r)
		all = append(all, r.findings...)
	}
	return all
}

// Sick reports whether a finding is a failure.
func Sick(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == Fail })
}

// report is what a judge finds of its subject.
type report struct {
	check    string
	findings []Finding
}

func (r *report) add(s Severity, found, remedy string) {
	r.findings = append(r.findings, Finding{r.check, s, found, remedy})
}

func (r *report) ok(found string)           { r.add(OK, found, "") }
func (r *report) skip(found string)         { r.add(Skip, found, "") }
func (r *report) warn(found, remedy string) { r.add(Warn, found, remedy) }
func (r *report) fail(found, remedy string) { r.add(Fail, found, remedy) }

// unknown is the finding of what Redis does not answer: an access list forbids it, or
// this kind of Redis does not have it.
func (r *report) unknown(what, command string) {
	r.skip(what + " not checked: Redis does not answer " + command + " to this user")
}

// serverSilence is how long a server may be silent, which publishes its settings
// every repair_interval, 5 s unless set.
const serverSilence = 60 * statemachine.Second

func judgeServer(f *Facts, r *report) {
	const remedy = "start tdf-server; several may run at a time"
	age := f.Now.Sub(f.ServerSeen)
	ago := (time.Duration(age) * time.Microsecond).Round(100 * time.Millisecond).String()
	switch {
	case f.ServerSeen == 0:
		r.fail("no server has ever run on this namespace: nothing that is executed is settled", remedy)
	case age > serverSilence:
		r.fail("no server has been seen for "+ago+": nothing that is executed is settled", remedy)
	default:
		r.ok("a server was seen " + ago + " ago")
	}
}

// alive are the workers with a session.
func (f *Facts) alive() (workers []task.Worker) {
	for _, w := range f.Workers {
		if w.State != task.WorkerLost && w.State != task.WorkerStopped {
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

func judgeWorkers(f *Facts, r *report) {
	alive := f.alive()
	if len(alive) == 0 {
		r.warn("no worker is alive", "start tdf-worker")
		return
	}
	for _, w := range alive {
		kind := strings.TrimSpace(strings.SplitN(w.Containment+"+", "+", 2)[0])
		kind, _, _ = strings.Cut(kind, " ")
		if why, is := weak[kind]; is {
			r.warn(fmt.Sprintf("worker %s: containment %q: %s", w.Name, w.Containment, why),
				"let it make PID namespaces or own a cgroup: docs/CONFIGURATION.md, containment; require_containment=true refuses less")
		}
		if w.Stuck > 0 {
			r.warn(fmt.Sprintf("worker %s: %d slots hold a process that does not end", w.Name, w.Stuck),
				"look at that host for hung disks or network file systems, then restart the worker")
		}
	}
	if r.findings == nil {
		r.ok(fmt.Sprintf("%d alive, all contain their rounds", len(alive)))
	}
}

func judgeVersions(f *Facts, r *report) {
	count := map[string]int{}
	for _, w := range f.alive() {
		count[w.Version]++
	}
	versions := slices.Sorted(maps.Keys(count))
	switch len(versions) {
	case 0:
		r.ok("no worker is alive that could differ")
	case 1:
		r.ok("all workers are of version " + versions[0])
	default:
		for i, v := range versions {
			versions[i] = fmt.Sprintf("%s: %d", v, count[v])
		}
		r.warn("workers of several versions: "+strings.Join(versions, ", "),
			"finish the upgrade. Under access lists a worker needs a server of its own version, which loads its scripts")
	}
}

func judgeNodes(f *Facts, r *report) {
	var aside []string
	for i := range f.Nodes {
		if q := &f.Nodes[i]; !q.Quarantined.IsZero() {
			aside = append(aside, q.Name)
		}
	}
	if len(aside) > 0 {
		r.warn("in quarantine: "+strings.Join(aside, ", "), "tdf-manager node show NAME says why; docs/QUARANTINE.md")
		return
	}
	r.ok(fmt.Sprintf("%d known, none in quarantine (quarantine=%s)", len(f.Nodes), f.Quarantine))
}

// judgeHistory looks at whether Redis has lost what it acknowledged.
func judgeHistory(f *Facts, r *report) {
	epochs := slices.DeleteFunc(slices.Clone(f.Gaps), func(e conn.Epoch) bool { return e.Confirmed })
	if n := len(epochs); n == 0 {
		r.ok(fmt.Sprintf("epoch %d: nothing is known to be lost", f.Sizes.Epoch))
	} else {
		last := &epochs[n-1]
		r.warn(fmt.Sprintf(
			"epoch %d: Redis has lost what it had acknowledged, last seen at %s: at least %d changes; "+
				"ids %d to %d were left out, some of which may have been given out",
			f.Sizes.Epoch, time.UnixMicro(int64(last.At)).UTC().Format(time.DateTime+" MST"), last.Lost, last.FromID+1, last.ToID),
			"open again what is missing (tdf-manager verify compares); see durability in docs/OPERATIONS.md for how to lose less")
	}
	if f.Sizes.Behind {
		r.fail("Redis has gone back in time, and no server has opened a new epoch yet: every program waits",
			"start tdf-server; its log says what was lost")
	}
	for i := range f.Gaps {
		if e := &f.Gaps[i]; e.SureID < e.FromID {
			r.fail(fmt.Sprintf("ids %d to %d may have been given out twice: "+
				"they were taken after Redis had been started anew or failed over, and before a server looked", e.SureID+1, e.FromID),
				"compare these tasks with what those who opened them have noted; clients that take ids by INCR cannot be held back")
		}
	}
	if f.Sizes.Unconfirmed && !f.Sizes.Behind {
		r.fail("Redis was started anew or failed over, and no server has confirmed it: no task can be opened",
			"start tdf-server, which does so within seconds")
	}
}

// manyArchived is from how many archived tasks on it is worth a thought to delete some.
const manyArchived = 1_000_000

func judgeTasks(f *Facts, r *report) {
	if n := f.Sizes.DeadLetters; n > 0 {
		r.warn(fmt.Sprintf("%d damaged tasks are dead letters", n), "tdf-manager verify says which, and why")
	}
	if n := f.Sizes.Archived; n >= manyArchived {
		r.warn(fmt.Sprintf("%d archived tasks are kept in memory", n),
			"let them leave Redis: [server] archive_retention, and archive_dir for a copy; docs/OPERATIONS.md")
	}
	if r.findings == nil {
		r.ok(fmt.Sprintf("no dead letters; %d archived, %d events", f.Sizes.Archived, f.Sizes.Events))
	}
}

// mostPlans is how many plans are named one by one.
const mostPlans = 10

// judgePlans looks for plans that were begun and not made ready: their tasks do not run.
func judgePlans(f *Facts, r *report) {
	if len(f.HalfBuilt) == 0 {
		r.ok("all are ready")
		return
	}
	for i := range f.HalfBuilt[:min(len(f.HalfBuilt), mostPlans)] {
		p := &f.HalfBuilt[i]
		name := ""
		if p.Name != "" {
			name = " (" + clean.Line(p.Name, 100) + ")"
		}
		if p.Job {
			r.warn(fmt.Sprintf("job %s%s was begun %v ago, and its submission has not ended: it has %d tasks so far",
				plans.JobName(p.ID), name, task.Moment(f.Now).Sub(p.Created).Round(time.Second), p.Total),
				"if that is gone, submit it again with its --request-key, which opens the others")
			continue
		}
		r.warn(fmt.Sprintf(
			"plan %d%s was begun %v ago and not made to its end: nothing of it runs, and its %d tasks wait",
			p.ID, name, task.Moment(f.Now).Sub(p.Created).Round(time.Second), p.Left),
			fmt.Sprintf("submit it again with its --key, which finishes it; or tdf-manager plan cancel %d", p.ID))
	}
	if more := len(f.HalfBuilt) - mostPlans; more > 0 {
		r.warn(fmt.Sprintf("%d more plans were begun and not made to their ends", more),
			"tdf-manager plan ls shows them as building")
	}
}

const (
	// overstay is how long an archived task that should have left may still be there: servers may have much to do.
	overstay = 10 * time.Minute
	// turnSilence is how long there may be no server whose turn it is to let tasks go; one that is at work renews it each second.
	turnSilence = 60 * statemachine.Second
)

// judgeRetention looks at whether archived tasks leave Redis as they should.
func judgeRetention(f *Facts, r *report) {
	active := f.Sizes.PurgeLease != 0 && f.Now.Sub(f.Sizes.PurgeLease) <= turnSilence
	wanted := f.Config != nil && len(f.Config.ArchiveRetention) > 0
	switch {
	case f.Sizes.ArchiveError != "":
		r.fail("archived tasks cannot be written to the archive, and stay in Redis: "+f.Sizes.ArchiveError,
			"make room there, or mount the disk again; servers try again by themselves")
	case wanted && !active:
		r.warn("this configuration has archive_retention, and no server lets archived tasks go now",
			"give all servers the same [server] archive_retention, and start one")
	case wanted && f.Overstayed > 0:
		r.warn(fmt.Sprintf("%d archived tasks should have left Redis more than %v ago", f.Overstayed, overstay),
			"servers cannot keep up, or some have another archive_retention: look into their logs")
	case f.Config != nil && !wanted && active:
		r.warn("a server lets archived tasks go, and archive_retention is not in this configuration",
			"give all servers the same [server] archive_retention")
	case active:
		r.ok("a server lets archived tasks go when their time has come")
	default:
		r.ok("archived tasks stay in Redis")
	}
}
