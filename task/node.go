package task

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/statemachine"
)

// NodeRecord is what is kept of a host beyond the life of its workers.
type NodeRecord struct { //nolint:recvcheck // Set changes a node, Fields only reads it
	Name string `json:"name"`
	// MaxThreads is how many tasks may run at a time on the node, over all
	// queues; empty leaves it to the configuration of its workers.
	MaxThreads Limit `json:"maxthreads"`

	Quarantine `json:"quarantine"`
	// Damaged is what of its record cannot be read.
	Damaged Damage `json:"damaged"`
}

// Quarantine says why servers keep a node from claiming, and until when.
type Quarantine struct {
	// Quarantined is since when the node is in quarantine; zero if it is not.
	Quarantined time.Time `json:"since,omitzero"`
	// Run is how many failures in a row count against the node.
	Run int `json:"run"`
	// Trials is how often it was tried again since, NextTrial when it may try a
	// task again; zero if that is not fixed.
	Trials    int       `json:"trials"`
	NextTrial time.Time `json:"next_trial,omitzero"`
	// Reason says, for people, why the node is in quarantine.
	Reason string `json:"reason"`
}

// Node is a host that workers have registered from, or that was set, and what
// runs there.
type Node struct {
	NodeRecord

	// MaxThreadsSet says that the record has MaxThreads; otherwise it is the most that
	// a live worker allows.
	MaxThreadsSet bool `json:"set"`

	// Running is the number of rounds under way.
	Running int64 `json:"running"`
	// Offered is what its live workers offer of each resource, of [CPUs] all together;
	// Used is how much of it the rounds have, Held the same by task but for the one slot that each has.
	Offered Resources           `json:"offered"`
	Used    Resources           `json:"used"`
	Held    map[int64]Resources `json:"-"`
	// Workers are those registered with the node, by name.
	Workers []Worker `json:"workers"`
}

// Idle is the node with this record where nothing runs.
func (n NodeRecord) Idle() Node {
	idle := Node{
		NodeRecord: n, MaxThreadsSet: n.MaxThreads != "",
		Offered: Resources{}, Used: Resources{}, Held: map[int64]Resources{}, Workers: []Worker{},
	}
	idle.Add()
	return idle
}

// Add puts workers on the node, and counts what they offer.
func (n *Node) Add(workers ...Worker) {
	n.Workers = append(n.Workers, workers...)
	for i := range workers {
		if w := &workers[i]; w.State.Alive() {
			for name, amount := range w.Resources {
				n.Offered[name] = max(n.Offered[name], amount)
			}
			if w.Slots > 0 {
				n.Offered[CPUs] += w.Slots
			}
		}
	}
	if !n.MaxThreadsSet {
		n.MaxThreads = mostThreads(n.Workers)
	}
}

// mostThreads is what the live workers of a node let run there; where they
// differ, that of the one that lets most.
func mostThreads(workers []Worker) Limit {
	most := -1
	for i := range workers {
		if w := &workers[i]; w.State.Alive() {
			most = max(most, cmp.Or(w.MaxThreads, Unlimited).N())
		}
	}
	if most < 0 || most == Unlimited.N() {
		return Unlimited
	}
	return AtMost(most)
}

const maxThreadsField = "maxthreads"

// Set changes one attribute by its name: maxthreads. The empty value
// leaves it to the configuration of the node's workers again.
func (n *NodeRecord) Set(key, value string) error {
	if key != maxThreadsField {
		return unknownKey(key, []string{maxThreadsField})
	}
	var l Limit
	if value != "" {
		var err error
		if l, err = ParseLimit(value); err != nil {
			return named(key, err)
		}
	}
	n.MaxThreads = l
	n.Damaged = n.Damaged.without(key)
	return nil
}

// Fields are all hash fields of the node but for its name, each followed by its
// value. They replace the hash: what is not set has none.
func (n NodeRecord) Fields() []string {
	var fields []string
	add := func(set bool, name, value string) {
		if set {
			fields = append(fields, name, value)
		}
	}
	add(n.MaxThreads != "", maxThreadsField, n.MaxThreads.Text())
	q := &n.Quarantine
	add(q.Run != 0, "run", strconv.Itoa(q.Run))
	add(!q.Quarantined.IsZero(), "quarantined", Stamp(q.Quarantined).Text())
	add(q.Trials != 0, "trials", strconv.Itoa(q.Trials))
	add(!q.NextTrial.IsZero(), "trial_at", Stamp(q.NextTrial).Text())
	add(q.Reason != "", "reason", q.Reason)
	return fields
}

// ParseNode reads what [NodeRecord.Fields] wrote. What is missing has its default;
// fields of other clients are not looked at. A field that holds what it must not
// is told in Damaged and has its default, but for maxthreads: where that cannot
// be read, nothing new begins on the node.
func ParseNode(name string, fields map[string]string) NodeRecord {
	n := NodeRecord{Name: name}
	q := &n.Quarantine
	q.Reason = fields["reason"]
	if err := n.Set(maxThreadsField, fields[maxThreadsField]); err != nil {
		n.MaxThreads = AtMost(0)
		n.Damaged = n.Damaged.with(err)
	}
	var errs [4]error
	q.Run, errs[0] = counted(fields, "run")
	q.Quarantined, errs[1] = stampOf(fields, "quarantined")
	q.Trials, errs[2] = counted(fields, "trials")
	q.NextTrial, errs[3] = stampOf(fields, "trial_at")
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

// MarshalJSON writes a list, also of nothing.
func (d Damage) MarshalJSON() ([]byte, error) {
	return json.Marshal(append([]statemachine.FieldError{}, d...)) //nolint:wrapcheck // it cannot fail
}

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
