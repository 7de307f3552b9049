package task

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/statemachine"
)

// Node is what is kept of a host beyond the life of its workers. Make one with
// [NewNode].
type Node struct { //nolint:recvcheck // Set changes a node, Fields only reads it
	Name string
	// MaxThreads is how many tasks may run at a time on the node, over all
	// queues, if MaxThreadsSet; otherwise the configuration of its workers says.
	MaxThreads    Limit
	MaxThreadsSet bool

	// Run is how many failures in a row count against the node.
	Run int
	// Quarantined is since when the node is in quarantine; 0 if it is not.
	Quarantined statemachine.Time
	// Trials is how often it was tried again since.
	Trials int
	// TrialAt is when a quarantined node may try a task again; 0 for others.
	TrialAt statemachine.Time
	// Reason says, for people, why the node is in quarantine.
	Reason string
	// Damaged is what of its record cannot be read; nil for nothing.
	Damaged Damage
}

// NewNode is a node that nobody has said or found anything about.
func NewNode(name string) Node { return Node{Name: name, MaxThreads: NoLimit} }

// NodeKeys are the attributes that [Node.Set] knows.
func NodeKeys() []string { return []string{maxThreadsField} }

const maxThreadsField = "maxthreads"

// Set changes one attribute by its name, one of [NodeKeys]. The empty value
// leaves it to the configuration of the node's workers again.
func (n *Node) Set(key, value string) error {
	if key != maxThreadsField {
		return unknownKey(key, NodeKeys())
	}
	l, err := ParseLimit(value)
	if err != nil {
		return named(key, err)
	}
	n.MaxThreads, n.MaxThreadsSet = l, value != ""
	n.Damaged = n.Damaged.without(key)
	return nil
}

// Fields are all hash fields of the node but for its name, each followed by its
// value. They replace the hash: what is not set has none.
func (n Node) Fields() []string {
	var fields []string
	add := func(set bool, name, value string) {
		if set {
			fields = append(fields, name, value)
		}
	}
	add(n.MaxThreadsSet, maxThreadsField, n.MaxThreads.Text())
	add(n.Run != 0, "run", strconv.Itoa(n.Run))
	add(n.Quarantined != 0, "quarantined", n.Quarantined.Text())
	add(n.Trials != 0, "trials", strconv.Itoa(n.Trials))
	add(n.TrialAt != 0, "trial_at", n.TrialAt.Text())
	add(n.Reason != "", "reason", n.Reason)
	return fields
}

// ParseNode reads what [Node.Fields] wrote. What is missing has its default;
// fields of other clients are not looked at. A field that holds what it must not
// is told in Damaged and has its default, but for maxthreads: where that cannot
// be read, nothing new begins on the node.
func ParseNode(name string, fields map[string]string) Node {
	n := NewNode(name)
	n.Reason = fields["reason"]
	if err := n.Set(maxThreadsField, fields[maxThreadsField]); err != nil {
		n.MaxThreads, n.MaxThreadsSet = 0, true
		n.Damaged = n.Damaged.with(err)
	}
	var errs [4]error
	n.Run, errs[0] = counted(fields, "run")
	n.Quarantined, errs[1] = stampOf(fields, "quarantined")
	n.Trials, errs[2] = counted(fields, "trials")
	n.TrialAt, errs[3] = stampOf(fields, "trial_at")
	for _, err := range errs {
		n.Damaged = n.Damaged.with(err)
	}
	return n
}

// counted reads a counter; a missing one is 0.
func counted(fields map[string]string, name string) (int, error) {
	text := fields[name]
	if text == "" {
		return 0, nil
	}
	n, ok := digitsOf(text, 0, math.MaxInt)
	if !ok {
		return 0, bad(name, text, "a whole number that is not negative")
	}
	return n, nil
}

// Damage is what of a record cannot be read, a field each; nil for nothing. It
// is never changed in place: queues and nodes are passed on by value.
type Damage []statemachine.FieldError

// Err is the first of it, a *statemachine.FieldError, or nil.
func (d Damage) Err() error {
	if len(d) == 0 {
		return nil
	}
	first := d[0]
	return &first
}

// Fields are the names of the fields.
func (d Damage) Fields() []string {
	names := make([]string, len(d))
	for i := range d {
		names[i] = d[i].Field
	}
	return names
}

// Text says it in a line for people; empty for nothing.
func (d Damage) Text() string {
	texts := make([]string, len(d))
	for i := range d {
		texts[i] = d[i].Error()
	}
	return strings.Join(texts, "; ")
}

// with adds the error of a field.
func (d Damage) with(err error) Damage {
	if fe, ok := errors.AsType[*statemachine.FieldError](err); ok {
		return append(slices.Clip(d), *fe)
	}
	return d
}

// without takes a field out.
func (d Damage) without(field string) Damage {
	if !slices.Contains(d.Fields(), field) {
		return d
	}
	rest := slices.DeleteFunc(slices.Clone(d), func(e statemachine.FieldError) bool { return e.Field == field })
	if len(rest) == 0 {
		return nil
	}
	return rest
}
