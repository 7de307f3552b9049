package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store/blame"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// blaming is what judging nodes, and finding another one, asks of the store.
type blaming interface {
	Rules(ctx context.Context, node string) (fleet.Rules, error)
	Workers(ctx context.Context) ([]task.Worker, statemachine.Time, error)
	Evidence(ctx context.Context, programs ...string) (map[string]blame.Evidence, error)
	Judge(ctx context.Context, v fleet.Verdict) (bool, error)
	SuspectNodes(ctx context.Context, names ...string) ([]fleet.Suspect, error)
	Suspects(ctx context.Context) ([]string, error)
}

// nodeJudge finds the nodes on which tasks fail that succeed elsewhere, and acts
// on what package blame says of them. Any number of servers may: each verdict
// names the state of the node it was made from (see [fleet.Fleet.Judge]).
type nodeJudge struct {
	*Server
	// every is the shortest time between two looks at suspects, since reports may
	// wake the server many times a second. looked is when the last one was, busy
	// whether there were any.
	every  time.Duration
	looked time.Time
	busy   bool
	live   liveNodes
	// said is what the log was last told of a node, for what is not written to
	// the node itself.
	said map[string]blame.Verdict
}

// lookInterval bounds what judging costs and what a node waits at its gate.
const lookInterval = 100 * time.Millisecond

func newNodeJudge(s *Server) *nodeJudge {
	return &nodeJudge{Server: s, every: lookInterval, said: map[string]blame.Verdict{}}
}

func (j *nodeJudge) on() bool { return j.opt.Quarantine == config.QuarantineOn }

// judgeAll looks at every node that fails or is quarantined, and does nothing else
// where there is none. It returns how long it is until it should look again,
// never if nothing waits for that.
func (j *nodeJudge) judgeAll(ctx context.Context, now statemachine.Time) (next time.Duration, err error) {
	if j.opt.Quarantine == config.QuarantineOff && !j.looked.IsZero() {
		return never, nil // one look, for nodes that were quarantined before
	}
	if wait := j.every - time.Since(j.looked); wait > 0 && j.busy {
		return wait, nil
	}
	f, err := j.gather(ctx, nil, programsToJudge)
	if err != nil {
		return never, err
	}
	j.looked, j.busy = time.Now(), len(f.nodes) > 0
	j.forget(f)
	for i := range f.nodes {
		if err := j.consider(ctx, f, &f.nodes[i], now); err != nil {
			return never, err
		}
	}
	return never, nil
}

// programsToJudge are those of all nodes that a verdict is due about.
func programsToJudge(nodes []fleet.Suspect) (programs []string) {
	for i := range nodes {
		if nodes[i].Quarantined.IsZero() && nodes[i].Run >= blame.MinRun {
			programs = append(programs, nodes[i].Programs...)
		}
	}
	return programs
}

// forget what was said of nodes whose run has ended.
func (j *nodeJudge) forget(f *facts) {
	for name := range j.said {
		if n := f.node(name); n == nil || n.Run < blame.MinRun {
			delete(j.said, name)
		}
	}
}

// consider judges one node and acts on the verdict.
func (j *nodeJudge) consider(ctx context.Context, f *facts, n *fleet.Suspect, now statemachine.Time) error {
	switch {
	case !n.Quarantined.IsZero() && !j.on():
		return j.lift(ctx, n, "quarantine is "+j.opt.Quarantine)
	case !n.Quarantined.IsZero():
		return j.probe(ctx, n, now)
	case n.Run < blame.MinRun || j.opt.Quarantine == config.QuarantineOff:
		return nil
	}
	switch v := blame.Judge(n.Name, known(n), f.about(n, now), f.alive(n.Name)); {
	case v == blame.Quarantine:
		return j.quarantine(ctx, f, n, now)
	case !j.on() || !known(n).Gated():
		return nil
	case v == blame.Forgive:
		_, err := j.store.Judge(ctx, fleet.Verdict{Node: *n, Forgive: true})
		return err
	default:
		return j.suspect(ctx, f, n, now)
	}
}

// quarantine writes the verdict, or only says it.
func (j *nodeJudge) quarantine(ctx context.Context, f *facts, n *fleet.Suspect, now statemachine.Time) error {
	pause := blame.NextTrial(0, j.opt.QuarantineProbe)
	if !j.on() {
		if was, said := j.said[n.Name]; !said || was != blame.Quarantine {
			j.say(f, n, "would be quarantined if quarantine were on")
		}
		j.said[n.Name] = blame.Quarantine
		return nil
	}
	done, err := j.store.Judge(ctx, fleet.Verdict{
		Node: *n, Quarantined: now, TrialAt: now.Add(timing.FromStd(pause)), Reason: f.reason(n),
	})
	if done {
		j.say(f, n, "is quarantined, and tries one task in "+pause.String())
	}
	return err
}

// suspect lets a node at the gate try one task at a time, with a pause before
// each.
func (j *nodeJudge) suspect(ctx context.Context, f *facts, n *fleet.Suspect, now statemachine.Time) error {
	if waits(n) {
		return nil
	}
	done, err := j.store.Judge(ctx, fleet.Verdict{
		Node: *n, TrialAt: now.Add(timing.FromStd(blame.SuspectTrial)), Reason: f.reason(n),
	})
	if _, said := j.said[n.Name]; done && !said {
		j.say(f, n, "is suspect, and tries one task every "+blame.SuspectTrial.String())
		j.said[n.Name] = blame.Suspect
	}
	return err
}

// waits says that a trial is to come, or under way.
func waits(n *fleet.Suspect) bool {
	return n.Probe == fleet.ProbeRunning || n.Probe == fleet.ProbeNone && !n.NextTrial.IsZero()
}

// probe goes on with a node that is quarantined: the probe alone lifts that, or
// makes the next one wait longer. One that says nothing of the node is made up for.
func (j *nodeJudge) probe(ctx context.Context, n *fleet.Suspect, now statemachine.Time) error {
	trials := n.Trials
	switch {
	case n.Probe == fleet.ProbePassed:
		return j.lift(ctx, n, "its probe succeeded")
	case waits(n):
		return nil
	case n.Probe == fleet.ProbeFailed:
		trials++
	}
	pause := blame.NextTrial(trials, j.opt.QuarantineProbe)
	done, err := j.store.Judge(ctx, fleet.Verdict{
		Node: *n, Quarantined: task.Stamp(n.Quarantined), Trials: trials, TrialAt: now.Add(timing.FromStd(pause)), Reason: n.Reason,
	})
	if done {
		j.log.Info(fmt.Sprintf("node %s stays quarantined, and tries one task in %v", n.Name, pause), "node", n.Name, "trials", trials)
	}
	return err
}

func (j *nodeJudge) lift(ctx context.Context, n *fleet.Suspect, why string) error {
	done, err := j.store.Judge(ctx, fleet.Verdict{Node: *n, Forgive: true})
	if done {
		j.log.Info(fmt.Sprintf("node %s is out of quarantine: %s", n.Name, why), "node", n.Name, "trials", n.Trials)
	}
	return err
}

// say announces what is found about a node.
func (j *nodeJudge) say(f *facts, n *fleet.Suspect, what string) {
	j.log.Warn(fmt.Sprintf("node %s %s: %s", n.Name, what, f.reason(n)), "node", n.Name, "programs", n.Programs, "failures", n.Run)
}

// excuses reads what is known about the failed rounds among the tasks, and
// returns which of them are not to be charged. Where none can be it reads
// nothing.
func (j *nodeJudge) excuses(ctx context.Context, found []tasks.TaskHeader) (func(*tasks.TaskHeader) bool, error) {
	var nodes, programs []string
	for i := range found {
		if t := &found[i]; j.blamable(t) {
			nodes, programs = append(nodes, t.Node), append(programs, t.Program)
		}
	}
	if len(nodes) == 0 {
		return nobody, nil
	}
	f, err := j.gather(ctx, nodes, func([]fleet.Suspect) []string { return programs })
	if err != nil {
		return nil, err
	}
	return func(t *tasks.TaskHeader) bool { return j.blamable(t) && f.excuse(t) }, nil
}

// blamable says that the round failed on a node that may be to blame.
func (j *nodeJudge) blamable(t *tasks.TaskHeader) bool {
	return j.on() && t.Err == nil && t.Current.Failed && t.Node != "" && t.Current.Class != statemachine.ClassInfrastructure
}

func (f *facts) excuse(t *tasks.TaskHeader) bool {
	n := blame.Node{}
	if node := f.node(t.Node); node != nil {
		n = known(node)
	}
	return blame.Excuse(blame.Failure{Node: t.Node, Others: others(t)}, f.evidence[t.Program], n, f.alive(t.Node))
}

// others is on how many other nodes the task has failed.
func others(t *tasks.TaskHeader) (n int) {
	for _, name := range t.FailedNodes {
		if name != t.Node {
			n++
		}
	}
	return n
}

// facts are what verdicts about nodes are made from.
type facts struct {
	// nodes are the suspects and those asked for, by name.
	nodes    []fleet.Suspect
	evidence map[string]blame.Evidence // by program
	live     map[string]bool
}

// gather reads the suspects, the nodes asked for, and the evidence about
// programs that it may name after seeing them. Where there are no such programs
// it stops there.
func (j *nodeJudge) gather(ctx context.Context, nodes []string, programs func([]fleet.Suspect) []string) (*facts, error) {
	names, err := j.store.Suspects(ctx)
	if err != nil {
		return nil, err
	}
	f := &facts{}
	if f.nodes, err = j.store.SuspectNodes(ctx, unique(append(names, nodes...))...); err != nil {
		return nil, err
	}
	about := unique(programs(f.nodes))
	if len(about) == 0 {
		return f, nil
	}
	if f.evidence, err = j.store.Evidence(ctx, about...); err != nil {
		return nil, err
	}
	f.live, err = j.live.read(ctx, j.Server)
	return f, err
}

func unique(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// node finds one by name.
func (f *facts) node(name string) *fleet.Suspect {
	i, found := slices.BinarySearchFunc(f.nodes, name, func(n fleet.Suspect, name string) int { return strings.Compare(n.Name, name) })
	if !found {
		return nil
	}
	return &f.nodes[i]
}

// known is the node as the rules want it.
func known(n *fleet.Suspect) blame.Node {
	return blame.Node{Run: n.Run, Running: n.Running, Quarantined: !n.Quarantined.IsZero()}
}

// alive is how many live nodes are not quarantined, this one included.
func (f *facts) alive(name string) int {
	alive := 1
	for other := range f.live {
		if n := f.node(other); other != name && (n == nil || n.Quarantined.IsZero()) {
			alive++
		}
	}
	return alive
}

// about is the evidence on one node: that of the programs it fails, and whether
// it passes anything.
func (f *facts) about(n *fleet.Suspect, now statemachine.Time) []blame.Evidence {
	list := make([]blame.Evidence, 0, len(n.Programs)+1)
	for _, program := range n.Programs {
		list = append(list, f.evidence[program])
	}
	if n.Passed != 0 && now.Sub(n.Passed) <= timing.FromStd(blame.Window) {
		list = append(list, blame.Evidence{n.Name: {Good: 1}})
	}
	return list
}

// mostNamed is how many programs a reason names.
const mostNamed = 3

// reason says for people what speaks against a node.
func (f *facts) reason(n *fleet.Suspect) string {
	good, bad := 0, 0
	for _, program := range n.Programs {
		for name, r := range f.evidence[program] {
			if name != n.Name {
				good, bad = good+r.Good, bad+r.Bad
			}
		}
	}
	named, more := n.Programs, ""
	if len(named) > mostNamed {
		named, more = named[:mostNamed], " and others"
	}
	return fmt.Sprintf("%d failures in a row, of %s%s; on other nodes %d of their rounds succeeded and %d failed within the hour",
		n.Run, strings.Join(named, ", "), more, good, bad)
}

// liveNodes remembers which nodes have a live worker.
type liveNodes struct {
	names map[string]bool
	at    time.Time
}

// read asks the registry, but not more than once a round unless there seems to
// be a single node, for which other rules hold.
func (l *liveNodes) read(ctx context.Context, s *Server) (map[string]bool, error) {
	if len(l.names) > 1 && time.Since(l.at) < s.opt.RoundDuration {
		return l.names, nil
	}
	workers, _, err := s.store.Workers(ctx)
	if err != nil {
		return nil, err
	}
	l.names, l.at = map[string]bool{}, time.Now()
	for i := range workers {
		if w := &workers[i]; w.Node != "" && w.State != task.WorkerLost && w.State != task.WorkerStopped {
			l.names[w.Node] = true
		}
	}
	return l.names, nil
}
