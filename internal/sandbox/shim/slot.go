package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tdf-go/tdf/internal/sandbox/cgroup"
	"github.com/tdf-go/tdf/internal/sandbox/process"
)

const (
	// answerPatience is how long a shim may take to say that it understood: one
	// that does not is frozen.
	answerPatience = time.Second
	// endPatience is how long it may take from then on, or from the end of the
	// grace, to report the end: it gives up by itself after killPatience.
	endPatience = killPatience + 2*time.Second
)

// Slot is a running shim: one program at a time. Its methods may be called at
// the same time.
type Slot struct {
	container *Container
	token     string
	hostProc  string
	link      *link
	group     *cgroup.Group // nil without
	child     *child

	running sync.Mutex // held by Run

	ending   sync.Mutex   // held while shim and round are killed
	attempts atomic.Int64 // counts how often that was tried
	left     error        // what the last attempt could not kill

	mu      sync.Mutex
	round   int           // counts the rounds
	active  bool          // a round is under way
	asked   kind          // the last stop or kill of the round
	pending time.Duration // how long the end may take once that is understood
	lost    error         // why there will be no more rounds
}

// Run runs one program to its end; when it returns, nothing of it is left, else
// the error matches ErrUnkillable. Other errors are a *process.StartError, with
// which nothing ran, or ErrShimLost, with which everything of the round is dead
// too; after either of ErrShimLost and ErrUnkillable the slot is of no use any
// more. A context that is done already starts nothing. Calls wait for each other.
func (s *Slot) Run(ctx context.Context, p Program) (Result, error) {
	s.running.Lock()
	defer s.running.Unlock()
	if ctx.Err() != nil {
		return Result{ExitCode: -1, Cause: Cancelled}, nil
	}
	ask, err := s.request(&p)
	if err != nil {
		return Result{ExitCode: -1}, err
	}
	before := s.memoryBefore()
	round, err := s.begin(ask, p.Files)
	if err != nil {
		return Result{ExitCode: -1}, s.refused(&p, err)
	}
	detach := context.AfterFunc(ctx, func() { s.stop(round, kindStop, p.graceNow()) })
	defer detach()
	end, err := s.await()
	if err != nil {
		return Result{ExitCode: -1, Started: true}, err
	}
	result := end.result()
	s.memoryAfter(before, &result)
	if end.Fault != nil {
		err = end.Fault.startError(p.Dir)
	}
	if end.Unkillable {
		err = s.lose(ErrUnkillable)
	}
	return result, err
}

// begin sends the request.
func (s *Slot) begin(ask *request, files [3]*os.File) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != nil {
		return 0, s.lost
	}
	s.link.await(0)
	if err := s.link.sendRun(ask, files); err != nil {
		return 0, err
	}
	s.round++
	s.active, s.asked, s.pending = true, 0, 0
	return s.round, nil
}

// refused explains a request that could not be sent.
func (s *Slot) refused(p *Program, err error) error {
	switch {
	case errors.Is(err, ErrShimLost), errors.Is(err, ErrUnkillable):
		return err
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.ETOOMANYREFS):
		return &process.StartError{Path: filepath.Join(p.Dir, "run.sh"), Reason: process.ReasonResources, Err: err}
	}
	return s.settle(err)
}

// stop asks the shim to end the round of that number, if that is under way.
func (s *Slot) stop(round int, how kind, grace time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.active || round != s.round || s.asked == kindKill {
		return
	}
	s.asked, s.pending = how, grace+endPatience
	// A frozen shim is not to cost more than the grace that was granted.
	s.link.await(max(grace, answerPatience))
	// If it cannot be sent, the end of patience brings the end.
	_ = s.link.send(encodeTime(how, grace))
}

// Kill kills the round under way at once, without grace. It does not wait; Run
// returns, soon, even if the shim hangs. Without a round it does nothing: one
// that is about to begin is ended by its ctx, see Program.Hurry.
func (s *Slot) Kill() {
	s.mu.Lock()
	round := s.round
	s.mu.Unlock()
	s.stop(round, kindKill, 0)
}

// Extend moves the moment at which the shim kills its round by itself; at is on
// the clock of Now, and 0 is never, as at first. The deadline holds for later
// rounds too: one that is started after it is not executed. It is cheap. The
// error says that the shim is lost or does not read any more.
func (s *Slot) Extend(at Instant) error {
	if err := s.link.send(encodeTime(kindLease, at)); err != nil {
		return fmt.Errorf("%w: %w", ErrShimLost, err)
	}
	return nil
}

// PID is the number of the shim, for the log and tests.
func (s *Slot) PID() int { return s.child.pid }
