package store

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/statemachine"
)

// ProbeState is how the probe of a node stands.
type ProbeState string

// The states of a probe.
const (
	ProbeNone    ProbeState = ""
	ProbeRunning ProbeState = "running"
	ProbePassed  ProbeState = "passed"
	ProbeFailed  ProbeState = "failed"
	// ProbeGone is one that said nothing of the node: lost, handed back, stopped
	// or overdue.
	ProbeGone ProbeState = "gone"
)

// Suspect is a node as the judge of nodes needs it.
type Suspect struct {
	route.Node
	// Running is the number of rounds under way on the node.
	Running int
	// Probe is how its last trial stands.
	Probe ProbeState
	// Programs are those that its run is made of, at most 16.
	Programs []string
	// Passed is when something succeeded here last; 0 for never.
	Passed statemachine.Time

	seen [6]string
}

// suspectFields is what a verdict is compared by, in the order of judge.lua.
var suspectFields = [6]string{"run", "era", "quarantined", "trials", "trial_at", "probe"}

// Suspects names the nodes that fail, or are set aside.
func (s *Store) Suspects(ctx context.Context) ([]string, error) {
	names, err := s.rdb.SMembers(ctx, s.keys.suspects()).Result()
	if err != nil {
		return nil, s.failed("suspects", err)
	}
	slices.Sort(names)
	return names, nil
}

// SuspectNodes reads nodes by name, whether they are suspects or not.
func (s *Store) SuspectNodes(ctx context.Context, names ...string) ([]Suspect, error) {
	if len(names) == 0 {
		return nil, nil
	}
	docs, running := make([]*redis.MapStringStringCmd, len(names)), make([]*redis.StringSliceCmd, len(names))
	err := s.pipelined(ctx, "suspects", func(p redis.Pipeliner) {
		for i, name := range names {
			docs[i], running[i] = p.HGetAll(ctx, s.keys.node(name)), p.SMembers(ctx, s.keys.busyNode(name))
		}
	})
	nodes := make([]Suspect, len(names))
	for i, name := range names {
		nodes[i] = suspectOf(name, docs[i].Val(), running[i].Val())
	}
	return nodes, err
}

func suspectOf(name string, doc map[string]string, running []string) Suspect {
	n := Suspect{Node: route.ParseNode(name, doc), Running: len(running), Programs: programsOf(doc["failing"])}
	n.Passed, _ = statemachine.ParseTime(doc["passed"]) // what is no time was never
	for i, field := range suspectFields {
		n.seen[i] = doc[field]
	}
	switch probe := doc["probe"]; {
	case probe == string(ProbeNone), probe == string(ProbePassed), probe == string(ProbeFailed):
		n.Probe = ProbeState(probe)
	case slices.Contains(running, probe):
		n.Probe = ProbeRunning
	default:
		n.Probe = ProbeGone
	}
	return n
}

// programsOf reads a list such as 1:p3:q/r.
func programsOf(list string) (programs []string) {
	for list != "" {
		head, rest, _ := strings.Cut(list, ":")
		n, err := strconv.Atoi(head)
		if err != nil || n < 0 || n > len(rest) {
			return programs
		}
		programs, list = append(programs, rest[:n]), rest[n:]
	}
	return programs
}

// Verdict is what a server makes of a node.
type Verdict struct {
	// Node is the node as it was read. If it has changed meanwhile, nothing
	// happens.
	Node Suspect
	// Forgive begins the count of failures in a row anew.
	Forgive bool
	// Quarantined is since when the node is set aside, 0 for not. Trials counts
	// its probes.
	Quarantined statemachine.Time
	Trials      int
	// TrialAt is when the node may claim one task to try, 0 for never.
	TrialAt statemachine.Time
	Reason  string
}

// Judge writes a verdict and wakes the workers of the node. Of several servers
// that judge at the same time one has its way: the others are told false, and so
// is one whose node has changed since it was read.
func (s *Store) Judge(ctx context.Context, v Verdict) (bool, error) {
	k, run, trials := s.keys, v.Node.seen[0], ""
	if v.Forgive {
		run = "0" // not nothing: the era ends only with a success
	}
	if v.Trials > 0 {
		trials = strconv.Itoa(v.Trials)
	}
	args := make([]any, 0, 2*len(suspectFields)+2)
	args = append(args, v.Node.Name)
	for _, text := range v.Node.seen {
		args = append(args, text)
	}
	args = append(args, run, v.Node.seen[1], restText(v.Quarantined), trials, restText(v.TrialAt), "", v.Reason)
	r, err := s.run(ctx, "judge", []string{k.meta(), k.node(v.Node.Name), k.wakeNode(v.Node.Name), k.nodes(), k.suspects()}, args...)
	return r == int64(1), err
}
