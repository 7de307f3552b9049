package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tdf-go/tdf/internal/sandbox/process"
)

// await waits for the end of the round.
func (s *Slot) await() (ending, error) {
	late := false
	for {
		k, data, err := s.link.receive()
		if errors.Is(err, os.ErrDeadlineExceeded) && !late {
			// This process may have been the one that was frozen.
			late = true
			s.link.await(answerPatience / 10)
			continue
		}
		if err != nil {
			return ending{}, s.settle(err)
		}
		late = false
		switch k {
		case kindAnswer:
			s.understood(data)
		case kindEnd:
			return s.over(data)
		default:
			return ending{}, s.settle(errGarbled)
		}
	}
}

// understood gives the shim, which is not frozen, the time that the end may take.
func (s *Slot) understood(data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(data) == 1 && kind(data[0]) == s.asked {
		s.link.await(s.pending)
	}
}

func (s *Slot) over(data []byte) (ending, error) {
	s.mu.Lock()
	s.active = false
	s.mu.Unlock()
	var end ending
	if err := json.Unmarshal(data, &end); err != nil {
		return end, s.settle(err)
	}
	return end, nil
}

// settle ends a round whose shim failed: it kills shim and round by all means
// there are, and returns ErrShimLost or, if something is left, ErrUnkillable.
func (s *Slot) settle(cause error) error {
	err := s.lose(fmt.Errorf("%w: %w%s", ErrShimLost, cause, s.child.lastWords()))
	patience := answerPatience
	if errors.Is(cause, os.ErrDeadlineExceeded) {
		patience = 0 // frozen
	}
	if left := s.destroy(patience); left != nil {
		return left
	}
	return err
}

// lose marks the slot as useless and returns why; the first reason counts.
func (s *Slot) lose(why error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = false
	if s.lost == nil {
		s.lost = why
	}
	return s.lost
}

// result is the worker's view of an ending.
func (e *ending) result() Result {
	r := Result{
		Started: e.Started, ExitCode: -1, Cause: e.Cause, MaxMemory: e.Memory,
		UserTime: time.Duration(e.User), SystemTime: time.Duration(e.System),
	}
	if e.Ended {
		r.ExitCode = e.Status.ExitStatus()
		if e.Status.Signaled() {
			r.Signal = e.Status.Signal()
		}
	}
	return r
}

func (f *fault) startError(dir string) error {
	return &process.StartError{
		Path: filepath.Join(dir, "run.sh"), Reason: f.Reason, Err: &detail{text: f.Text, errno: f.Errno},
	}
}
