package conn

import (
	"errors"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/statemachine"
)

// Reply is an array that a script returned. Its accessors return the zero value
// for missing parts: the scripts are ours, and the fields of a damaged task
// show the damage.
type Reply []any

// AsReply is the list that a script has answered, nil for another answer.
func AsReply(v any) Reply {
	list, _ := v.([]any)
	return list
}

// Text is a part as a text, empty if it is missing.
func (r Reply) Text(i int) string {
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

// Number is a part as a number, 0 if it is missing or no number.
func (r Reply) Number(i int) int64 {
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

// List is a part that is a list itself.
func (r Reply) List(i int) Reply {
	if i >= len(r) {
		return nil
	}
	return AsReply(r[i])
}

// Time reads a time; what is empty or no time is statemachine.Never.
func (r Reply) Time(i int) statemachine.Time {
	t, err := statemachine.ParseTime(r.Text(i))
	if err != nil {
		return statemachine.Never
	}
	return t
}

// Duration reads a time span; what is empty or none is 0.
func (r Reply) Duration(i int) statemachine.Duration {
	d, err := statemachine.ParseDuration(r.Text(i))
	if err != nil {
		return 0
	}
	return d
}

// Texts reads an array of texts; nil if it is empty.
func (r Reply) Texts() []string {
	if len(r) == 0 {
		return nil
	}
	all := make([]string, len(r))
	for i := range r {
		all[i] = r.Text(i)
	}
	return all
}

// Fields reads an array of fields and values in turn.
func (r Reply) Fields() map[string]string {
	m := make(map[string]string, len(r)/2)
	for i := 0; i+1 < len(r); i += 2 {
		m[r.Text(i)] = r.Text(i + 1)
	}
	return m
}

// IDOf reads an id in its one form, 0 for any other text.
func IDOf(text string) int64 {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 || strconv.FormatInt(id, 10) != text {
		return 0
	}
	return id
}

// Args appends the values of a list to the arguments of a script.
func Args[T any](args []any, list ...T) []any {
	args = slices.Grow(args, len(list))
	for _, v := range list {
		args = append(args, v)
	}
	return args
}

// Scanned are the members that a scan has found, without the value or score that comes with each member of a hash or
// sorted set (paired), and where to go on. A key of another type has none.
func (s *Conn) Scanned(op string, scan *redis.ScanCmd, paired bool) (members []string, next uint64, err error) {
	found, next, err := scan.Result()
	if err != nil && !AboutData(err) {
		return nil, 0, s.Failed(op, err)
	}
	if !paired {
		return found, next, nil
	}
	for pair := range slices.Chunk(found, 2) {
		members = append(members, pair[0])
	}
	return members, next, nil
}

// Flag is a truth as scripts and records have it: 1 or nothing.
func Flag(b bool) string {
	if b {
		return "1"
	}
	return ""
}

// IsNil reports whether Redis has answered that nothing is there.
func IsNil(err error) bool { return errors.Is(err, redis.Nil) }
