package answer

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Attribute is one of a queue or a node, as it is written in a set.
type Attribute struct{ Name, Text string }

// QueueAttributes are all that can be set, defaults of tasks only where there are. Some have other words in records.
func QueueAttributes(q *task.Queue) []Attribute {
	var list []Attribute
	for pair := range slices.Chunk(q.Fields(), 2) {
		a := Attribute{pair[0], pair[1]}
		switch name, ofTasks := strings.CutPrefix(a.Name, "default_"); {
		case name == "created":
			continue
		case name == "paused":
			a.Text = strconv.FormatBool(q.Paused)
		case strings.HasSuffix(name, "threads") && a.Text == task.Unlimited.Text(),
			ofTasks && strings.HasPrefix(name, "max_") && a.Text == statemachine.Unlimited.Text():
			a.Text = string(task.Unlimited)
		}
		list = append(list, a)
	}
	return list
}

func nodeAttributes(n *task.Node) []Attribute {
	text := string(n.MaxThreads)
	if !n.MaxThreadsSet {
		text += " (by its workers)"
	}
	return []Attribute{{"maxthreads", text}}
}

// Difference is an attribute before and after; [None] where it is not set.
type Difference struct{ Name, Before, After string }

// None stands for an attribute that is not set.
const None = "none"

// Differences compares two lists of attributes, in the same order.
func Differences(before, after []Attribute) []Difference {
	var list []Difference
	old := map[string]string{}
	for _, a := range before {
		old[a.Name] = a.Text
	}
	for _, a := range after {
		if was, ok := old[a.Name]; !ok || was != a.Text {
			list = append(list, Difference{Name: a.Name, Before: cmp.Or(was, None), After: a.Text})
		}
		delete(old, a.Name)
	}
	for _, a := range before {
		if was, gone := old[a.Name]; gone {
			list = append(list, Difference{Name: a.Name, Before: was, After: None})
		}
	}
	return list
}

// Changes are what the answer to a set has beside the queue or the node: each attribute
// before and after.
type Changes struct {
	DryRun      bool                 `json:"dry_run"`
	Changed     map[string][2]string `json:"changed"`
	Differences []Difference         `json:"-"` // the same in order
}

func changesOf(before, after []Attribute, dryRun bool) Changes {
	c := Changes{DryRun: dryRun, Changed: map[string][2]string{}, Differences: Differences(before, after)}
	for _, d := range c.Differences {
		c.Changed[d.Name] = [2]string{d.Before, d.After}
	}
	return c
}

// setAll works in the order of the names, so that the same input has the same error.
func setAll[T interface {
	Set(name, value string) error
}](to T, set map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if err := to.Set(name, set[name]); err != nil {
			return err
		}
	}
	return nil
}

// QueueAdded is a queue that was made.
type QueueAdded struct {
	*task.Queue

	DryRun bool `json:"dry_run"`
}

// AddQueue makes a queue; without a name it makes one up.
func AddQueue(ctx context.Context, m *manager.Manager, name string, set map[string]string, o manager.ChangeOptions) (*QueueAdded, error) {
	spec := task.QueueSpec{Name: name}
	if err := setAll(&spec, set); err != nil {
		return nil, err
	}
	var q task.Queue
	err := m.Logged(ctx, "queue add", named(set), o, func(ctx context.Context) (err error) {
		q, err = m.AddQueue(ctx, spec, o)
		return err
	})
	return &QueueAdded{&q, o.DryRun}, err
}

// named is what the log of changes says of attributes that are set.
func named(set map[string]string) string {
	return strings.TrimSpace(bulk.SetText(slices.Sorted(maps.Keys(set))))
}

// pausing is the verb that pauses something, or resumes it.
func pausing(what string, pause bool) string {
	if pause {
		return what + " pause"
	}
	return what + " resume"
}

// QueueSet is a queue whose attributes were changed.
type QueueSet struct {
	*task.Queue
	Changes
}

// SetQueue changes attributes of a queue, all of them or none.
func SetQueue(ctx context.Context, m *manager.Manager, name string, set map[string]string, o manager.ChangeOptions) (*QueueSet, error) {
	before, err := m.Queue(ctx, name)
	if err != nil {
		return nil, err
	}
	var after task.Queue
	err = m.Logged(ctx, "queue set", named(set), o, func(ctx context.Context) error {
		after, err = m.SetQueue(ctx, name, func(q *task.QueueSpec) error { return setAll(q, set) }, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &QueueSet{&after, changesOf(QueueAttributes(&before), QueueAttributes(&after), o.DryRun)}, nil
}

// QueuePaused is a queue that was paused or resumed.
type QueuePaused struct {
	Name    string `json:"name"`
	Paused  bool   `json:"paused"`
	Was     bool   `json:"was"`
	Running int64  `json:"running"`
	DryRun  bool   `json:"dry_run"`
}

// PauseQueue pauses a queue, which was read before, or resumes it.
func PauseQueue(ctx context.Context, m *manager.Manager, q *task.Queue, pause bool, o manager.ChangeOptions) (*QueuePaused, error) {
	err := m.Logged(ctx, pausing("queue", pause), "", o, func(ctx context.Context) error {
		_, err := m.SetQueue(ctx, q.Name, func(q *task.QueueSpec) error { return q.Set("paused", strconv.FormatBool(pause)) }, o)
		return err
	})
	return &QueuePaused{Name: q.Name, Paused: pause, Was: q.Paused, Running: q.Running, DryRun: o.DryRun}, err
}

// NodeSet is a node whose attributes were changed.
type NodeSet struct {
	*task.Node
	Changes

	New   bool     `json:"-"` // nobody knew it
	Known []string `json:"-"` // the nodes that were known
}

// SetNode changes attributes of a node, which need not have registered.
func SetNode(ctx context.Context, m *manager.Manager, name string, set map[string]string, o manager.ChangeOptions) (*NodeSet, error) {
	nodes, err := m.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	s := &NodeSet{New: true}
	before := task.ParseNode(name, nil).Idle()
	for i := range nodes {
		if s.Known = append(s.Known, nodes[i].Name); nodes[i].Name == name {
			before, s.New = nodes[i], false
		}
	}
	var after task.Node
	err = m.Logged(ctx, "node set", named(set), o, func(ctx context.Context) error {
		after, err = m.SetNode(ctx, name, func(n *task.NodeRecord) error { return setAll(n, set) }, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.Node, s.Changes = &after, changesOf(nodeAttributes(&before), nodeAttributes(&after), o.DryRun)
	return s, nil
}

// PlanRetried is what [manager.Manager.RetryPlan] has opened, by the ids of the tasks before.
type PlanRetried struct {
	Plan   task.PlanID     `json:"plan"`
	Opened map[int64]int64 `json:"opened"`
	DryRun bool            `json:"dry_run"`
	IDs    []int64         `json:"-"` // those before, in order
	Fresh  []int64         `json:"-"`
}

// RetriedPlan is the answer to the retry of a plan; the error is the first of its tasks.
func RetriedPlan(plan task.PlanID, retried []manager.Retried, dryRun bool) (answer *PlanRetried, failed error) {
	answer = &PlanRetried{Plan: plan, Opened: map[int64]int64{}, DryRun: dryRun}
	for i := range retried {
		r := &retried[i]
		if r.Err != nil {
			if failed == nil {
				failed = r.Err
			}
			continue
		}
		answer.Opened[r.ID] = r.New
		answer.IDs, answer.Fresh = append(answer.IDs, r.ID), append(answer.Fresh, r.New)
	}
	return answer, failed
}

// Span reads a duration above 0, or inf, as the fields of tasks have it. An empty text is 0. The error names field.
func Span(field, text string) (time.Duration, error) {
	var spec task.Spec
	err := spec.Set("timeout", text, time.Time{})
	return spec.Timeout, About(field, err)
}

// About names another field in an error.
func About(field string, err error) error {
	if fe, ok := errors.AsType[*statemachine.FieldError](err); ok {
		return &statemachine.FieldError{Field: field, Value: fe.Value, Want: fe.Want}
	}
	return err
}
