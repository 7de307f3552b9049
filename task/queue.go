package task

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/statemachine"
)

// Order is which of two tasks of the same effective priority comes first.
type Order string

// The orders of a queue.
const (
	Fifo Order = "fifo" // the one that is due longer (the default)
	Lifo Order = "lifo" // the one that became due last
)

// DefaultAging is how long a task waits for one point of priority.
const DefaultAging = Seconds(time.Hour)

// QueueSpec are the attributes of a queue, as its record has them. Zero values are
// the defaults (see [QueueSpec.Complete]).
type QueueSpec struct { //nolint:recvcheck // Set changes a queue, Fields only reads it
	Name string `json:"name"`
	// Description is for people.
	Description string `json:"description"`
	// Class is what a worker must offer to take from the queue; empty for none.
	Class string `json:"class"`
	// Threads is how many tasks of the queue may run at a time in the whole
	// fleet, MaxThreads on each node (default Unlimited); AtMost(0) of either lets
	// nothing new begin.
	Threads    Limit `json:"threads"`
	MaxThreads Limit `json:"maxthreads"`
	// Pin are the only nodes that take from the queue; Ignore are nodes that do
	// not. With both, Pin counts. At most 1000 each; empty is absent.
	Pin    []string `json:"nodes_pin"`
	Ignore []string `json:"nodes_ignore"`
	// Paused queues are not taken from.
	Paused bool `json:"paused"`
	// Order is Fifo or Lifo (default Fifo).
	Order Order `json:"order"`
	// Aging is how long a task has to wait for one point of priority (default
	// DefaultAging), from a second to a year; negative for never, which is strict priority
	// and 0 in the record. It does not count with Lifo (see [QueueSpec.EffectiveAging]).
	Aging Seconds `json:"aging"`
	// Defaults are values of new tasks that their opener did not give, by name,
	// each as [Parse] takes it; see [DefaultNames].
	Defaults Defaults `json:"defaults"`
	// Created is when the queue was made, by the time of Redis; zero if nobody recorded it.
	Created time.Time `json:"created,omitzero"`
	// Damaged is what of its record cannot be read. Such a queue is not taken from, as if it
	// were paused, and takes no change that does not set this anew ([QueueSpec.Set]).
	Damaged Damage `json:"damaged"`
}

// Queue is a queue and what lies in it.
type Queue struct {
	QueueSpec

	// Waiting tasks are open, whenever they start; Due ones may start now, the
	// Oldest of them since that moment (zero if there is none).
	Waiting int64     `json:"waiting"`
	Due     int64     `json:"due"`
	Oldest  time.Time `json:"oldest,omitzero"`
	// Running is the number of rounds under way, RunningByNode the same by node.
	Running       int64            `json:"running"`
	RunningByNode map[string]int64 `json:"running_by_node"`
	// Ended counts the tasks that came to each outcome since the queue exists, without
	// those that were retried: Retried counts them.
	Ended   map[statemachine.State]int64 `json:"ended"`
	Retried int64                        `json:"retried"`
	// RetriedAs counts those by the outcome that they came to before, so that with Ended it tells of each end.
	RetriedAs map[statemachine.State]int64 `json:"-"`
	// Lines are the buckets of its tasks.
	Lines []Line `json:"-"`
}

// Line is a bucket and how many of its tasks may start now.
type Line struct {
	Bucket

	Due int64
}

// newQueue has the attributes of a queue for which none was set.
func newQueue(name string) QueueSpec {
	return QueueSpec{
		Name: name, Threads: Unlimited, MaxThreads: Unlimited, Pin: []string{}, Ignore: []string{}, Order: Fifo, Aging: DefaultAging,
	}
}

// Complete is the queue as a record has it: with the defaults in the place of zero
// values, and every value in its one form. The error is a *statemachine.FieldError about
// what [QueueSpec.Set] would refuse, about a name that cannot be, or about what is damaged.
func (q QueueSpec) Complete() (QueueSpec, error) {
	c := newQueue(q.Name)
	c.Created = q.Created
	err := cmp.Or(q.Damaged.Err(), CheckQueueName(q.Name),
		named("nodes_pin", checkNodes(q.Pin)), named("nodes_ignore", checkNodes(q.Ignore)))
	if err != nil {
		return q, err //nolint:wrapcheck // it is one of ours
	}
	for _, a := range attributes {
		if err := c.set(a.name, a.get(&q)); err != nil {
			return q, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(q.Defaults)) {
		if err := c.set(defaultPrefix+name, q.Defaults[name]); err != nil {
			return q, err
		}
	}
	return c, nil
}

// Empty is the queue with these attributes and no tasks.
func (q QueueSpec) Empty() Queue {
	return Queue{
		QueueSpec: q, RunningByNode: map[string]int64{}, Ended: map[statemachine.State]int64{}, RetriedAs: map[statemachine.State]int64{},
	}
}

// EffectiveAging is Aging for a queue that is first in, first out, and 0 for any
// other: who wants the newest task first does not want the old ones to catch up.
func (q *QueueSpec) EffectiveAging() statemachine.Duration {
	if q.Order == Lifo {
		return 0
	}
	return max(0, q.Aging.micros())
}

// defaultPrefix begins the attributes of a queue that are defaults of its tasks.
const defaultPrefix = "default_"

// attribute is one of a queue: how it is read and how it is written.
type attribute struct {
	name string
	set  func(q *QueueSpec, value string) error
	get  func(q *QueueSpec) string
}

// attributeOf binds an attribute to a field.
func attributeOf[T any](name string, field func(*QueueSpec) *T, parse func(string) (T, error), text func(T) string) attribute {
	set := func(q *QueueSpec, value string) error {
		v, err := parse(value)
		if err == nil {
			*field(q) = v
		}
		return err
	}
	return attribute{name, set, func(q *QueueSpec) string { return text(*field(q)) }}
}

// attributes are the attributes of a queue beside the defaults of its tasks.
var attributes = []attribute{
	attributeOf("description", func(q *QueueSpec) *string { return &q.Description }, checked(printed(maxDescription)), itself),
	attributeOf("class", func(q *QueueSpec) *string { return &q.Class }, checked(CheckClass), itself),
	attributeOf("threads", func(q *QueueSpec) *Limit { return &q.Threads }, ParseLimit, Limit.Text),
	attributeOf("maxthreads", func(q *QueueSpec) *Limit { return &q.MaxThreads }, ParseLimit, Limit.Text),
	attributeOf("nodes_pin", func(q *QueueSpec) *[]string { return &q.Pin }, parseNodes, joined),
	attributeOf("nodes_ignore", func(q *QueueSpec) *[]string { return &q.Ignore }, parseNodes, joined),
	attributeOf("paused", func(q *QueueSpec) *bool { return &q.Paused }, parseFlag, flag),
	attributeOf("order", func(q *QueueSpec) *Order { return &q.Order }, parseOrder, func(o Order) string { return string(o) }),
	attributeOf("aging", func(q *QueueSpec) *Seconds { return &q.Aging }, parseAging, agingText),
}

// QueueKeys are the attributes that [QueueSpec.Set] knows: description, class,
// threads, maxthreads, nodes_pin, nodes_ignore, paused, order, aging, and
// default_NAME for each value that a queue can give to its tasks.
func QueueKeys() []string {
	keys := make([]string, 0, len(attributes)+len(table))
	for _, a := range attributes {
		keys = append(keys, a.name)
	}
	for _, name := range DefaultNames() {
		keys = append(keys, defaultPrefix+name)
	}
	return keys
}

// Set changes one attribute by its name, one of [QueueKeys]. The empty value
// brings its default back. Nothing changes with an error, which names the
// attribute, the value and what belongs there. What was set is no longer damaged.
func (q *QueueSpec) Set(key, value string) error {
	err := q.set(key, value)
	if err == nil {
		q.Damaged = q.Damaged.without(key)
	}
	return err
}

func (q *QueueSpec) set(key, value string) error {
	for _, a := range attributes {
		if a.name == key {
			return named(key, a.set(q, value))
		}
	}
	name, ok := strings.CutPrefix(key, defaultPrefix)
	if !ok || !slices.Contains(DefaultNames(), name) {
		return unknownKey(key, QueueKeys())
	}
	return named(key, q.setDefault(name, value))
}

// setDefault works on a copy of the map: queues are passed on by value.
func (q *QueueSpec) setDefault(name, value string) error {
	defaults := Defaults{}
	for n, v := range q.Defaults {
		if n != name {
			defaults[n] = v
		}
	}
	if value != "" {
		text, err := Parse(name, value)
		if err != nil {
			return err
		}
		defaults[name] = text
	}
	if q.Defaults = defaults; len(defaults) == 0 {
		q.Defaults = nil
	}
	return nil
}

// maxDescription is the longest description, in bytes; maxNodes the most nodes in
// a list; longestAging a year.
const (
	maxDescription = 1024
	maxNodes       = 1000
	longestAging   = 365 * 86400 * statemachine.Second
)

// never is the aging of a queue of strict priority.
const never Seconds = -1

func parseFlag(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "1", "true", "yes", "on":
		return true, nil
	case "", "0", "false", "no", "off":
		return false, nil
	default:
		return false, bad("", s, "true or false")
	}
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

func parseOrder(s string) (Order, error) {
	switch o := Order(s); o {
	case "":
		return Fifo, nil
	case Fifo, Lifo:
		return o, nil
	default:
		return "", bad("", s, "fifo or lifo")
	}
}

func parseAging(s string) (Seconds, error) {
	if s == "" {
		return DefaultAging, nil
	}
	d, err := parseSeconds(s)
	if err != nil || d != 0 && d < statemachine.Second || d > longestAging {
		return 0, bad("", s, "0, which is strict priority, or a number of seconds from 1 to 31536000; write for example 3600 or 1h")
	}
	if d == 0 {
		return never, nil
	}
	return secondsOf(d), nil
}

// agingText is the aging as records have it, empty for the default.
func agingText(s Seconds) string {
	switch {
	case s == 0:
		return ""
	case s < 0:
		return "0"
	}
	return secondsText(max(1, s.micros()))
}

func joined(list []string) string { return strings.Join(list, ",") }

// parseNodes takes names separated by commas or blanks.
func parseNodes(s string) ([]string, error) {
	nodes := strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
	if err := checkNodes(nodes); err != nil {
		return nil, err
	}
	slices.Sort(nodes)
	if nodes = slices.Compact(nodes); len(nodes) > maxNodes {
		return nil, bad("", s, "a list of at most 1000 nodes")
	}
	return nodes, nil
}

func checkNodes(names []string) error {
	for _, n := range names {
		if err := CheckNode(n); err != nil {
			return err
		}
	}
	return nil
}

const createdField = "created"

// Fields are all hash fields of a complete queue but for its name, each followed by its
// value. They replace the hash: a default of its tasks that is not set has none.
func (q QueueSpec) Fields() []string {
	fields := make([]string, 0, 2*(len(attributes)+len(q.Defaults)+1))
	for _, a := range attributes {
		fields = append(fields, a.name, a.get(&q))
	}
	for _, name := range slices.Sorted(maps.Keys(q.Defaults)) {
		fields = append(fields, defaultPrefix+name, q.Defaults[name])
	}
	if !q.Created.IsZero() {
		fields = append(fields, createdField, Stamp(q.Created).Text())
	}
	return fields
}

// ParseQueue reads what [QueueSpec.Fields] wrote. What is missing has its default;
// fields of other clients are not looked at. A field that holds what it must not
// has its default too and is told in Damaged, but for the time of its making,
// which nothing depends on.
func ParseQueue(name string, fields map[string]string) QueueSpec {
	q := newQueue(name)
	if len(fields) == 0 {
		return q
	}
	for _, key := range QueueKeys() {
		q.Damaged = q.Damaged.with(q.Set(key, fields[key]))
	}
	q.Created, _ = stampOf(fields, createdField)
	return q
}

// stampOf reads a time; a missing one is zero.
func stampOf(fields map[string]string, name string) (time.Time, error) {
	text := fields[name]
	if text == "" {
		return time.Time{}, nil
	}
	t, err := statemachine.ParseTime(text)
	if err != nil || t == statemachine.Never {
		return time.Time{}, bad(name, text, "a time in seconds since 1970")
	}
	return Moment(t), nil
}
