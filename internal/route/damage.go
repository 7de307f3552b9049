package route

import (
	"errors"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/statemachine"
)

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
