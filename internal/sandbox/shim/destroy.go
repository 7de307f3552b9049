package shim

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tdf-go/tdf/internal/sandbox/cgroup"
)

// treePasses bounds the search for descendants of a frozen shim, which itself
// reaps none; the sweep comes after.
const treePasses = 5

// Close ends the shim and everything in it, and removes the cgroup of the slot.
// A Run under way returns ErrShimLost. The error matches ErrUnkillable if
// something is left, which costs some six seconds: Close again later, until it
// is nil; the number of the slot is not free before.
func (s *Slot) Close() error {
	_ = s.lose(fmt.Errorf("%w: the slot is closed", ErrShimLost))
	s.link.close()
	if err := s.destroy(answerPatience); err != nil || s.group == nil {
		return err // a cgroup stays for as long as it is needed to kill
	}
	return s.group.Remove()
}

// destroy kills the shim, then what its layer may have left, until that has
// succeeded once. It gives the shim some time to do so itself. Who waited for
// another call has its outcome.
func (s *Slot) destroy(patience time.Duration) error {
	seen := s.attempts.Load()
	s.ending.Lock()
	defer s.ending.Unlock()
	done := s.attempts.Load()
	if done > seen || done > 0 && s.left == nil {
		return s.left
	}
	s.link.close()
	s.left = s.killAll(patience)
	s.child.forget()
	s.attempts.Add(1)
	return s.left
}

// killAll kills all there is. A PID namespace dies with its shim, which is not
// gone before all of it is. Another shim finds its socket closed and kills its
// descendants better than we can, if it is not frozen; in that case it is still
// the ancestor of all, so they are found before it is killed.
func (s *Slot) killAll(patience time.Duration) error {
	namespace := s.container.way.layer == PIDNamespace
	if !namespace && !s.child.wait(patience) {
		for pass := 0; pass < treePasses && killDescendants(s.child.pid) > 0; pass++ {
			if s.child.wait(answerPatience / 100) {
				break // its number may be another's now
			}
		}
	}
	s.child.kill()
	if !s.child.wait(killPatience) {
		return fmt.Errorf("%w: shim %d", ErrUnkillable, s.child.pid)
	}
	if namespace {
		return nil
	}
	return s.killRest()
}

// killRest kills what a shim that is dead has left. Neither way of finding that
// waits for the other, which would double the time that a survivor costs.
func (s *Slot) killRest() error {
	var group error
	var both sync.WaitGroup
	both.Go(func() { group = s.killGroup() })
	_, err := sweep(func(token string) bool { return token == s.token }, killPatience)
	both.Wait()
	return errors.Join(group, err)
}

// killGroup kills what is in the cgroup, or only joined it for the limits.
func (s *Slot) killGroup() error {
	if s.group == nil {
		return nil
	}
	err := s.group.Kill()
	if errors.Is(err, cgroup.ErrPopulated) {
		return fmt.Errorf("%w: %w", ErrUnkillable, err)
	}
	return err
}
