package task

import (
	"errors"
	"fmt"
	"testing"
)

// Whatever is not there can be matched as that, and a task that has left Redis is not there either.
func TestNotFound(t *testing.T) {
	t.Parallel()
	for err, kinds := range map[error][]error{
		ErrNoTask:   {ErrNoTask, ErrNotFound},
		ErrPurged:   {ErrPurged, ErrNoTask, ErrNotFound},
		ErrNoRound:  {ErrNoRound, ErrNotFound},
		ErrNoPlan:   {ErrNoPlan, ErrNotFound},
		ErrNoQueue:  {ErrNoQueue, ErrNotFound},
		ErrNoWorker: {ErrNoWorker, ErrNotFound},
		ErrNoReplay: {ErrNoReplay, ErrNotFound},
		ErrDamaged:  {ErrDamaged},
	} {
		is := map[error]bool{}
		for _, kind := range kinds {
			is[kind] = true
		}
		wrapped := fmt.Errorf("it: %w", err)
		for _, kind := range []error{ErrNotFound, ErrNoTask, ErrPurged, ErrNoRound, ErrNoPlan, ErrNoQueue, ErrNoWorker, ErrNoReplay, ErrDamaged} {
			if errors.Is(wrapped, kind) != is[kind] {
				t.Errorf("%v is %v: %v", err, kind, !is[kind])
			}
		}
	}
}
