package route

import (
	"slices"
	"strings"
)

// defaultPrefix begins the attributes of a queue that are defaults of its tasks.
const defaultPrefix = "default_"

// attributes are the attributes of a queue beside the defaults of its tasks:
// how each is read and how it is written.
var attributes = []struct {
	name string
	set  func(q *Queue, value string) error
	get  func(q *Queue) string
}{
	{"description", setDescription, func(q *Queue) string { return q.Description }},
	{"class", setClass, func(q *Queue) string { return q.Class }},
	{"threads", limitOf(queueThreads), func(q *Queue) string { return q.Threads.Text() }},
	{"maxthreads", limitOf(queueMaxThreads), func(q *Queue) string { return q.MaxThreads.Text() }},
	{"nodes_pin", nodesOf(queuePin), func(q *Queue) string { return strings.Join(q.Pin, ",") }},
	{"nodes_ignore", nodesOf(queueIgnore), func(q *Queue) string { return strings.Join(q.Ignore, ",") }},
	{"paused", setPaused, func(q *Queue) string { return flag(q.Paused) }},
	{"order", setOrder, func(q *Queue) string { return string(q.Order) }},
	{"aging", setAging, func(q *Queue) string { return secondsText(q.Aging) }},
}

// QueueKeys are the attributes that [Queue.Set] knows: those of the queue, then
// the defaults of its tasks.
func QueueKeys() []string {
	keys := make([]string, 0, len(attributes)+len(taskDefaults))
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
func (q *Queue) Set(key, value string) error {
	err := q.set(key, value)
	if err == nil {
		q.Damaged = q.Damaged.without(key)
	}
	return err
}

func (q *Queue) set(key, value string) error {
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
func (q *Queue) setDefault(name, value string) error {
	defaults := map[string]string{}
	for n, v := range q.Defaults {
		if n != name {
			defaults[n] = v
		}
	}
	if value != "" {
		text, err := ParseDefault(name, value)
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
