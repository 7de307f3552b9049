package shim

import (
	"errors"
	"fmt"
)

var (
	// ErrShimLost means that the shim died or no longer answered. Everything of
	// its round is dead; what the round did is not known. The slot is of no use
	// any more: close it and start another.
	ErrShimLost = errors.New("shim: the shim of the slot is lost")
	// ErrUnkillable means that processes of the round outlived SIGKILL, usually
	// because they hang in the kernel (a dead network file system). Take no new
	// work in such a slot.
	ErrUnkillable = errors.New("shim: the round's processes survive SIGKILL")
)

// OptionError is an option that this host or this user cannot meet.
type OptionError struct {
	// Key is the key of [worker] in the configuration, and Value what it holds.
	Key, Value string
	// Remedy is what to do about it.
	Remedy string
	// Err is the reason.
	Err error
}

// Error names key, value, reason and remedy.
func (e *OptionError) Error() string {
	return fmt.Sprintf("[worker] %s = %q: %v; %s", e.Key, e.Value, e.Err, e.Remedy)
}

// Unwrap returns the reason.
func (e *OptionError) Unwrap() error { return e.Err }
