package store

import (
	"strconv"

	"github.com/tdf-go/tdf/statemachine"
)

// reply is an array that a script returned. Its accessors give the zero value
// for what is not there: the scripts are ours, and a task that is damaged is
// recognised by its fields.
type reply []any

func asReply(v any) reply {
	list, _ := v.([]any)
	return list
}

func (r reply) text(i int) string {
	if i >= len(r) {
		return ""
	}
	switch v := r[i].(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	default:
		return ""
	}
}

func (r reply) number(i int) int64 {
	if i >= len(r) {
		return 0
	}
	switch v := r[i].(type) {
	case int64:
		return v
	case string:
		n, _ := strconv.ParseInt(v, 10, 64)
		return n
	default:
		return 0
	}
}

func (r reply) list(i int) reply {
	if i >= len(r) {
		return nil
	}
	return asReply(r[i])
}

// time reads a time; what is empty or no time is statemachine.Never.
func (r reply) time(i int) statemachine.Time {
	t, err := statemachine.ParseTime(r.text(i))
	if err != nil {
		return statemachine.Never
	}
	return t
}

// duration reads a time span; what is empty or none is 0.
func (r reply) duration(i int) statemachine.Duration {
	d, err := statemachine.ParseDuration(r.text(i))
	if err != nil {
		return 0
	}
	return d
}

// texts reads an array of texts; nil if there are none.
func (r reply) texts() []string {
	if len(r) == 0 {
		return nil
	}
	all := make([]string, len(r))
	for i := range r {
		all[i] = r.text(i)
	}
	return all
}

// fields reads an array of fields and values in turn.
func (r reply) fields() map[string]string {
	m := make(map[string]string, len(r)/2)
	for i := 0; i+1 < len(r); i += 2 {
		m[r.text(i)] = r.text(i + 1)
	}
	return m
}
