package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/blame"
	"github.com/tdf-go/tdf/statemachine"
)

// facts are what verdicts about nodes are made from.
type facts struct {
	// nodes are the suspects and those asked for, by name.
	nodes    []store.Suspect
	evidence map[string]blame.Evidence // by program
	live     map[string]bool
}

// gather reads the suspects, the nodes asked for, and the evidence about
// programs that it may name after seeing them. Where there are no such programs
// it stops there.
func (j *nodeJudge) gather(ctx context.Context, nodes []string, programs func([]store.Suspect) []string) (*facts, error) {
	names, err := j.store.Suspects(ctx)
	if err != nil {
		return nil, err
	}
	f := &facts{evidence: map[string]blame.Evidence{}}
	if f.nodes, err = j.store.SuspectNodes(ctx, unique(append(names, nodes...))...); err != nil {
		return nil, err
	}
	about := unique(programs(f.nodes))
	if len(about) == 0 {
		return f, nil
	}
	tracks, err := j.store.Evidence(ctx, about...)
	if err != nil {
		return nil, err
	}
	for program, nodes := range tracks {
		f.evidence[program] = evidenceOf(program, nodes)
	}
	f.live, err = j.live.read(ctx, j.Server)
	return f, err
}

func unique(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

func evidenceOf(program string, nodes map[string]store.Track) blame.Evidence {
	e := blame.Evidence{Program: program, Nodes: make(map[string]blame.Record, len(nodes))}
	for name, t := range nodes {
		e.Nodes[name] = blame.Record(t)
	}
	return e
}

// node finds one by name.
func (f *facts) node(name string) *store.Suspect {
	i, found := slices.BinarySearchFunc(f.nodes, name, func(n store.Suspect, name string) int { return strings.Compare(n.Name, name) })
	if !found {
		return nil
	}
	return &f.nodes[i]
}

// known is the node as the rules want it.
func known(n *store.Suspect) blame.Node {
	return blame.Node{Run: n.Run, Running: n.Running, Quarantined: n.Quarantined != 0, Trials: n.Trials}
}

// alive is how many live nodes are not set aside, this one included.
func (f *facts) alive(name string) int {
	alive := 1
	for other := range f.live {
		if n := f.node(other); other != name && (n == nil || n.Quarantined == 0) {
			alive++
		}
	}
	return alive
}

// about is the evidence on one node: that of the programs it fails, and whether
// it passes anything.
func (f *facts) about(n *store.Suspect, now statemachine.Time) []blame.Evidence {
	list := make([]blame.Evidence, 0, len(n.Programs)+1)
	for _, program := range n.Programs {
		list = append(list, f.evidence[program])
	}
	if n.Passed != 0 && now.Sub(n.Passed) <= timing.FromStd(blame.Window) {
		list = append(list, blame.Evidence{Nodes: map[string]blame.Record{n.Name: {Good: 1}}})
	}
	return list
}

// mostNamed is how many programs a reason names.
const mostNamed = 3

// reason says for people what speaks against a node.
func (f *facts) reason(n *store.Suspect) string {
	good, bad := 0, 0
	for _, program := range n.Programs {
		for name, r := range f.evidence[program].Nodes {
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
		if w := &workers[i]; w.Node != "" && w.State != store.WorkerLost && w.State != store.WorkerStopped {
			l.names[w.Node] = true
		}
	}
	return l.names, nil
}
