package fleet

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func (s *Fleet) nodeNames(ctx context.Context) ([]string, error) {
	names, err := s.Redis.SMembers(ctx, s.Keys.Nodes()).Result()
	if err != nil {
		return nil, s.Failed("nodes", err)
	}
	slices.Sort(names)
	return names, nil
}

// Nodes returns all nodes that a worker has ever registered with, or that were
// set, by name, and the time of the reading.
func (s *Fleet) Nodes(ctx context.Context) ([]task.Node, statemachine.Time, error) {
	infos, err := s.NodeRecords(ctx)
	if err != nil {
		return nil, 0, err
	}
	workers, now, err := s.Workers(ctx)
	if err != nil {
		return nil, 0, err
	}
	for i := range workers {
		for n := range infos {
			if infos[n].Name == workers[i].Node {
				infos[n].Add(workers[i])
			}
		}
	}
	return infos, now, nil
}

// NodeRecords is [Fleet.Nodes] without the workers: what the server looks at.
func (s *Fleet) NodeRecords(ctx context.Context) ([]task.Node, error) {
	names, err := s.nodeNames(ctx)
	if err != nil || len(names) == 0 {
		return []task.Node{}, err
	}
	docs, running := make([]*redis.MapStringStringCmd, len(names)), make([]*redis.IntCmd, len(names))
	used := make([]*redis.MapStringStringCmd, len(names))
	err = s.Pipelined(ctx, "nodes", func(p redis.Pipeliner) {
		for i, name := range names {
			docs[i], running[i] = p.HGetAll(ctx, s.Keys.Node(name)), p.SCard(ctx, s.Keys.BusyNode(name))
			used[i] = p.HGetAll(ctx, s.Keys.Used(name))
		}
	})
	infos := make([]task.Node, len(names))
	for i, name := range names {
		infos[i] = task.ParseNode(name, docs[i].Val()).Idle()
		infos[i].Running = running[i].Val()
		if n := running[i].Val(); n > 0 {
			infos[i].Used[task.CPUs] = int(n)
		}
		countUsed(&infos[i], used[i].Val())
	}
	return infos, err
}

// countUsed notes what rounds have got.
func countUsed(n *task.Node, allotted map[string]string) {
	for field, text := range allotted {
		id, _ := strconv.ParseInt(field, 10, 64)
		n.Held[id] = task.Resources{}
		for name, a := range task.ParseAllotted(text) {
			n.Held[id][name] = a.Count
			if name == task.CPUs {
				a.Count-- // it is one of those that run
			}
			n.Used[name] += a.Count
		}
	}
}

// SetNode applies change to the record of a node with optimistic locking, as
// [Fleet.SetQueue] does. A node that no worker has registered with yet may be
// set too. What servers find about the node is not changed so (see
// [Fleet.Judge]), but what cannot be read of it is dropped. The error may be that of
// [ChangedNode].
func (s *Fleet) SetNode(ctx context.Context, name string, change func(*task.NodeRecord) error) (task.NodeRecord, error) {
	if name == "" {
		return task.NodeRecord{}, &statemachine.FieldError{Field: "node", Value: name, Want: "the name of a node"}
	}
	k := s.Keys
	var after task.NodeRecord
	err := s.record(ctx, "set", func(*Rules) (recordCall, error) {
		rules, err := s.Rules(ctx, name)
		if err != nil {
			return recordCall{}, err
		}
		if after, err = ChangedNode(rules.Node, change); err != nil {
			return recordCall{}, err
		}
		call := recordCall{name: name, keys: []string{k.Nodes(), k.Node(name), k.WakeNode(name), k.BusyQueue(""), k.Tally("")}}
		fields := after.Fields()
		if at := slices.Index(fields, maxThreadsField); at >= 0 {
			call.set = fields[at : at+2]
		} else {
			call.drop = []string{maxThreadsField}
		}
		call.drop = append(call.drop, after.Damaged.Fields()...) // servers find it out anew
		after.Damaged = nil
		return call, nil
	})
	return after, err
}

// ChangedNode is the record of a node after a change of its MaxThreads; what servers have
// found stays. The error is that of change, or a *statemachine.FieldError about another
// name, a limit that cannot be, or a damaged one that was not set anew.
func ChangedNode(n task.NodeRecord, change func(*task.NodeRecord) error) (task.NodeRecord, error) {
	after := n
	if err := change(&after); err != nil {
		return n, err
	}
	if after.Name != n.Name {
		return n, renamed("node", n.Name, after.Name)
	}
	if slices.Contains(after.Damaged.Fields(), maxThreadsField) {
		return n, after.Damaged.Err()
	}
	after.Quarantine = n.Quarantine
	return after, after.Set(maxThreadsField, string(after.MaxThreads))
}

const maxThreadsField = "maxthreads"

// RemoveNode takes away all that is known of a node: its limit, what servers have
// found of it, its place in the list. The error matches [task.ErrNodeInUse] while a
// worker of the node has a lease or a round runs there, or is a
// *statemachine.FieldError. Removing an unknown node is not an error.
func (s *Fleet) RemoveNode(ctx context.Context, name string) error {
	if err := task.CheckNode(name); err != nil {
		return err
	}
	v, err := s.Run(ctx, "forget", conn.Subject{Node: name}, name)
	if err != nil {
		return err
	}
	why, _ := v.(string)
	switch worker, registered := strings.CutPrefix(why, "worker "); {
	case registered:
		return fmt.Errorf("node %s: worker %s is registered from there: %w", conn.Quote(name), conn.Quote(worker), task.ErrNodeInUse)
	case why != "":
		return fmt.Errorf("node %s: tasks run there: %w", conn.Quote(name), task.ErrNodeInUse)
	}
	return nil
}
