package store

import (
	"strconv"

	"github.com/tdf-go/tdf/statemachine"
)

// fieldReader decodes hash fields and keeps the first thing that was wrong.
type fieldReader struct {
	get func(name string) string
	err error
}

func named(field string, err error) error {
	if fe, ok := err.(*statemachine.FieldError); ok && fe.Field == "" { //nolint:errorlint // made one line above, never wrapped
		return &statemachine.FieldError{Field: field, Value: fe.Value, Want: fe.Want}
	}
	return err
}

func (f *fieldReader) fail(field string, err error) {
	if f.err == nil && err != nil {
		f.err = named(field, err)
	}
}

// count reads a counter; a missing one is 0.
func (f *fieldReader) count(field string) int {
	text := f.get(field)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		f.fail(field, &statemachine.FieldError{Value: text, Want: "a whole number that is not negative"})
	}
	return n
}

func (f *fieldReader) time(field string) statemachine.Time {
	t, err := statemachine.ParseTime(f.get(field))
	f.fail(field, err)
	return t
}

// stamp is time for a field that may be missing: then 0.
func (f *fieldReader) stamp(field string) statemachine.Time {
	if f.get(field) == "" {
		return 0
	}
	return f.time(field)
}

func (f *fieldReader) duration(field string) statemachine.Duration {
	d, err := statemachine.ParseDuration(f.get(field))
	f.fail(field, err)
	return d
}

func (f *fieldReader) limit(field string) statemachine.Limit {
	l, err := statemachine.ParseLimit(f.get(field))
	f.fail(field, err)
	return l
}
