package fleet

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/blame"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
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
	task.NodeRecord
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

// Suspects names the nodes that fail, or are in quarantine.
func (s *Fleet) Suspects(ctx context.Context) ([]string, error) {
	names, err := s.Redis.SMembers(ctx, s.Keys.Suspects()).Result()
	if err != nil {
		return nil, s.Failed("suspects", err)
	}
	slices.Sort(names)
	return names, nil
}

// SuspectNodes reads nodes by name, whether they are suspects or not.
func (s *Fleet) SuspectNodes(ctx context.Context, names ...string) ([]Suspect, error) {
	if len(names) == 0 {
		return nil, nil
	}
	docs, running := make([]*redis.MapStringStringCmd, len(names)), make([]*redis.StringSliceCmd, len(names))
	err := s.Pipelined(ctx, "suspects", func(p redis.Pipeliner) {
		for i, name := range names {
			docs[i], running[i] = p.HGetAll(ctx, s.Keys.Node(name)), p.SMembers(ctx, s.Keys.BusyNode(name))
		}
	})
	nodes := make([]Suspect, len(names))
	for i, name := range names {
		nodes[i] = suspectOf(name, docs[i].Val(), running[i].Val())
	}
	return nodes, err
}

func suspectOf(name string, doc map[string]string, running []string) Suspect {
	n := Suspect{NodeRecord: task.ParseNode(name, doc), Running: len(running), Programs: programsOf(doc["failing"])}
	n.Passed, _ = statemachine.ParseTime(doc["passed"]) // a malformed time means never
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
	// Quarantined is since when the node is in quarantine, 0 for not. Trials counts
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
func (s *Fleet) Judge(ctx context.Context, v Verdict) (bool, error) {
	run, trials := v.Node.seen[0], ""
	if v.Forgive {
		run = "0" // not nothing: the era ends only with a success
	}
	if v.Trials > 0 {
		trials = strconv.Itoa(v.Trials)
	}
	args := conn.Args([]any{v.Node.Name}, v.Node.seen[:]...)
	args = append(args, run, v.Node.seen[1], tasks.RestText(v.Quarantined), trials, tasks.RestText(v.TrialAt), "", v.Reason)
	r, err := s.Run(ctx, "judge", conn.Subject{Node: v.Node.Name}, args...)
	return r == int64(1), err
}

// Evidence returns for each program how it went on each node.
func (s *Fleet) Evidence(ctx context.Context, programs ...string) (map[string]blame.Evidence, error) {
	if len(programs) == 0 {
		return map[string]blame.Evidence{}, nil
	}
	cmds := make([]*redis.MapStringStringCmd, len(programs))
	err := s.Pipelined(ctx, "evidence", func(p redis.Pipeliner) {
		for i, program := range programs {
			cmds[i] = p.HGetAll(ctx, s.Keys.Evidence(program))
		}
	})
	if err != nil {
		return nil, err
	}
	// The eras are read after the records: a run that has ended since is over.
	eras, err := s.eras(ctx, cmds)
	if err != nil {
		return nil, err
	}
	all := make(map[string]blame.Evidence, len(programs))
	for i, program := range programs {
		all[program] = blame.Evidence{}
		for node, text := range cmds[i].Val() {
			if r, ok := recordOf(text, eras[node]); ok {
				all[program][node] = r
			}
		}
	}
	return all, nil
}

// recordOf reads a record. What failed in another era of the node is no run of
// now.
func recordOf(text string, now int64) (r blame.Record, ok bool) {
	era := int64(0)
	if _, err := fmt.Sscanf(text, "%d %d %d %d %d", &r.Good, &r.Bad, &r.Run, &r.Fresh, &era); err != nil {
		return blame.Record{}, false
	}
	if era != now {
		r.Run, r.Fresh = 0, 0
	}
	return r, true
}

// eras reads how many runs of each node named in the records have ended.
func (s *Fleet) eras(ctx context.Context, records []*redis.MapStringStringCmd) (map[string]int64, error) {
	names := map[string]*redis.StringCmd{}
	for _, c := range records {
		for node := range c.Val() {
			names[node] = nil
		}
	}
	if len(names) == 0 {
		return map[string]int64{}, nil
	}
	err := s.Pipelined(ctx, "evidence", func(p redis.Pipeliner) {
		for _, node := range slices.Sorted(maps.Keys(names)) {
			names[node] = p.HGet(ctx, s.Keys.Node(node), "era")
		}
	})
	eras := make(map[string]int64, len(names))
	for node, c := range names {
		eras[node], _ = c.Int64() // a node without has had none
	}
	return eras, err
}

// PublishQuarantine says whether claims honour the gate of a node: off, warn or
// on; and that a server is there, for [Fleet.ServerSeen].
func (s *Fleet) PublishQuarantine(ctx context.Context, mode string) error {
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	if err := s.Redis.HSet(ctx, s.Keys.Meta(), "quarantine", mode, "server_seen", now.Text()).Err(); err != nil {
		return s.Failed("publish", err)
	}
	return nil
}

// Quarantine is what a server has published last; warn if none has.
func (s *Fleet) Quarantine(ctx context.Context) (string, error) {
	mode, err := s.Redis.HGet(ctx, s.Keys.Meta(), "quarantine").Result()
	if err != nil && !conn.IsNil(err) {
		return "", s.Failed("quarantine", err)
	}
	return cmp.Or(mode, "warn"), nil
}

// ServerSeen is when a server has published its settings last, which it does
// every repair_interval; 0 if none has.
func (s *Fleet) ServerSeen(ctx context.Context) (statemachine.Time, error) {
	text, err := s.Redis.HGet(ctx, s.Keys.Meta(), "server_seen").Result()
	if err != nil && !conn.IsNil(err) {
		return 0, s.Failed("server", err)
	}
	f := tasks.FieldReader{Get: func(string) string { return text }}
	return f.Stamp("server_seen"), f.Err
}
