package task

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of a [Record].
const (
	// MaxRecordValue is how many bytes its value may have.
	MaxRecordValue = 64 << 10
	// maxRecordName is how many bytes its name may have.
	maxRecordName = 200
)

// Record is a text that is kept under a name, and read again when it is due: what a clock of tasks
// remembers of them. One is written only as it was read, so any number of programs may do it.
type Record struct {
	// Kind is what it is of, one of RecordKinds. Name is unique among its kind: printable, up to 200 bytes.
	Kind, Name string
	// Version changes with each write; 0: it is not there yet.
	Version int64
	Value   string
	// Due is when somebody has to look at it, by TIME of Redis; zero for never.
	Due time.Time
	// Opened are the tasks that were opened with its last write that opened any.
	Opened []int64
	// Ended is how many of the tasks that were opened with Watched have ended since the last write that knew of them.
	Ended int64
}

// KindSeries is the kind of the records of series.
const KindSeries = "series"

// KindFlock is the kind of the records of Flock's functions.
const KindFlock = "flock"

// RecordKinds are all kinds of records.
func RecordKinds() []string { return []string{KindFlock, KindSeries} }

// Check returns a *statemachine.FieldError about a kind, name or value that cannot be.
func (r *Record) Check() error {
	switch {
	case !slices.Contains(RecordKinds(), r.Kind):
		return bad("kind", r.Kind, strings.Join(RecordKinds(), " or "))
	case r.Name == "":
		return bad("name", r.Name, "a name")
	case len(r.Value) > MaxRecordValue:
		return bad("value", strconv.Itoa(len(r.Value))+" bytes", fmt.Sprintf("at most %d bytes", MaxRecordValue))
	}
	return named("name", printed(maxRecordName)(r.Name))
}

// RecordChangedError is a record that is not as it was when it was read, so that it was not written. It matches
// [ErrRecordChanged].
type RecordChangedError struct{ Kind, Name string }

// Error names the record.
func (e *RecordChangedError) Error() string {
	return fmt.Sprintf("%s %q: %v; read it again", e.Kind, e.Name, ErrRecordChanged)
}

// Is reports whether target is ErrRecordChanged.
func (e *RecordChangedError) Is(target error) bool { return target == ErrRecordChanged }
