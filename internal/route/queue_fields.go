package route

import (
	"maps"
	"slices"

	"github.com/tdf-go/tdf/statemachine"
)

const createdField = "created"

// Fields are all hash fields of the queue but for its name, each followed by its
// value. They replace the hash: a default of its tasks that is not set has none.
func (q Queue) Fields() []string {
	fields := make([]string, 0, 2*(len(attributes)+len(q.Defaults)+1))
	for _, a := range attributes {
		fields = append(fields, a.name, a.get(&q))
	}
	for _, name := range slices.Sorted(maps.Keys(q.Defaults)) {
		fields = append(fields, defaultPrefix+name, q.Defaults[name])
	}
	if q.Created != 0 {
		fields = append(fields, createdField, q.Created.Text())
	}
	return fields
}

// ParseQueue reads what [Queue.Fields] wrote. What is missing has its default;
// fields of other clients are not looked at. A field that holds what it must not
// has its default too and is told in Damaged, but for the time of its making,
// which nothing depends on.
func ParseQueue(name string, fields map[string]string) Queue {
	q := NewQueue(name)
	for _, key := range QueueKeys() {
		q.Damaged = q.Damaged.with(q.Set(key, fields[key]))
	}
	q.Created, _ = moment(fields, createdField)
	return q
}

// moment reads a time; a missing one is 0.
func moment(fields map[string]string, name string) (statemachine.Time, error) {
	if fields[name] == "" {
		return 0, nil
	}
	t, err := statemachine.ParseTime(fields[name])
	return t, named(name, err)
}
