package shim

import (
	"errors"
	"fmt"
	"time"

	"github.com/tdf-go/tdf/internal/cgroup"
)

// treePasses bounds the search for descendants of a frozen shim, which itself
// reaps none; the sweep comes after.
const treePasses = 5

// Close ends the shim and everything in it, and removes the cgroup of the slot.
// A Run under way returns ErrShimLost. The error matches ErrUnkillable if
// something is left.
func (s *Slot) Close() error {
	_ = s.lose(fmt.Errorf("%w: the slot is closed", ErrShimLost))
	s.link.close()
	err := s.destroy(answerPatience)
	if s.group != nil {
		err = errors.Join(err, s.group.Remove())
	}
	return err
}

// destroy kills the shim, then what its layer may have left, once. It gives the
// shim some time to do so itself.
func (s *Slot) destroy(patience time.Duration) error {
	s.ending.Do(func() {
		s.link.close()
		s.left = s.killAll(patience)
		s.child.forget()
	})
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
			s.child.wait(answerPatience / 100)
		}
	}
	s.child.kill()
	if !s.child.wait(killPatience) {
		return fmt.Errorf("%w: shim %d", ErrUnkillable, s.child.pid)
	}
	if namespace {
		return nil
	}
	_, err := sweep(func(token string) bool { return token == s.token }, killPatience)
	return errors.Join(s.killGroup(), err)
}

func (s *Slot) killGroup() error {
	if s.group == nil || s.group.FD() < 0 {
		return nil
	}
	err := s.group.Kill()
	if errors.Is(err, cgroup.ErrPopulated) {
		return fmt.Errorf("%w: %w", ErrUnkillable, err)
	}
	return err
}
