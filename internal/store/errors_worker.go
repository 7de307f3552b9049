package store

import (
	"fmt"
	"time"

	"github.com/tdf-go/tdf/statemachine"
)

// NameTakenError says who has a worker's name. It matches [ErrNameTaken].
type NameTakenError struct {
	// Holder is the worker that has the name.
	Holder WorkerInfo
	// Silent is how long it has not been heard of, by the clock of Redis, which
	// runs on while Redis is away. Lease is how long it may be silent.
	Silent, Lease statemachine.Duration
}

// Error implements error.
func (e *NameTakenError) Error() string {
	h := &e.Holder
	return fmt.Sprintf("%v: worker %s runs as process %d on host %s (node %s) and was heard of %s ago; "+
		"stop it, give this worker another name, or, if it is dead, start this one again and let it watch for %s",
		ErrNameTaken, quote(h.Name), h.PID, quote(h.Host), quote(h.Node), roughly(e.Silent), roughly(e.Lease))
}

// Unwrap returns [ErrNameTaken].
func (e *NameTakenError) Unwrap() error { return ErrNameTaken }

// roughly writes a time span for people.
func roughly(d statemachine.Duration) string {
	return (time.Duration(d) * time.Microsecond).Round(100 * time.Millisecond).String()
}
