package server

import (
	"context"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/blame"
	"github.com/tdf-go/tdf/statemachine"
)

// excuses reads what is known about the failed rounds among the tasks, and
// returns which of them are not to be charged. Where none can be it reads
// nothing.
func (j *nodeJudge) excuses(ctx context.Context, tasks []store.Seen) (func(*store.Seen) bool, error) {
	var nodes, programs []string
	for i := range tasks {
		if t := &tasks[i]; j.blamable(t) {
			nodes, programs = append(nodes, t.Node), append(programs, t.Program)
		}
	}
	if len(nodes) == 0 {
		return nobody, nil
	}
	f, err := j.gather(ctx, nodes, func([]store.Suspect) []string { return programs })
	if err != nil {
		return nil, err
	}
	return func(t *store.Seen) bool { return j.blamable(t) && f.excuse(t) }, nil
}

// blamable says that the round failed on a node that may be to blame.
func (j *nodeJudge) blamable(t *store.Seen) bool {
	return j.on() && t.Err == nil && t.Current.Failed && t.Node != "" && t.Current.Class != statemachine.ClassInfrastructure
}

func (f *facts) excuse(t *store.Seen) bool {
	n := blame.Node{}
	if node := f.node(t.Node); node != nil {
		n = known(node)
	}
	return blame.Excuse(blame.Failure{Node: t.Node, Others: others(t)}, f.evidence[t.Program], n, f.alive(t.Node))
}

// others is on how many other nodes the task has failed.
func others(t *store.Seen) (n int) {
	for _, name := range t.FailedNodes {
		if name != t.Node {
			n++
		}
	}
	return n
}
