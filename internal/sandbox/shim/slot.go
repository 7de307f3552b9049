package shim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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
	noView    string
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
// which nothing ran, matching ErrView if that is why, or ErrShimLost, with which everything of the round is dead
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
	if p.limited() {
		if err := s.limit(&p); err != nil {
			return Result{ExitCode: -1}, err
		}
		defer s.unlimit()
	}
	before := s.memoryBefore()
	round, err := s.begin(ask)
	if err != nil {
		return Result{ExitCode: -1}, s.refused(&p, err)
	}
	detach := context.AfterFunc(ctx, func() { s.stop(round, kindStop, p.graceNow()) })
	defer detach()
	end, err := s.await(&p)
	if err != nil {
		return Result{ExitCode: -1, Started: true}, err
	}
	result, err := end.Result, end.lost
	s.memoryAfter(before, &result)
	if end.Fault != nil {
		err = end.Fault.startError(&p)
	}
	if end.Unkillable {
		err = s.lose(ErrUnkillable)
	}
	return result, err
}

// begin sends the request.
func (s *Slot) begin(ask *order) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != nil {
		return 0, s.lost
	}
	s.link.await(0)
	if err := s.link.sendRun(ask); err != nil {
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
		return process.NewStartError(p.Dir, p.File, process.ReasonResources, err)
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

// Program is one round's program.
type Program struct {
	// Dir is the working directory, relative to that of this process; of a program, it
	// holds run.sh.
	Dir string
	// File is executed in the place of ./run.sh; see process.Command.
	File string
	// View is what the round sees in its place.
	View View
	// Args are the words after ./run.sh or File.
	Args []string
	// Env is the complete environment as NAME=value, to which TDF_SHIM is added,
	// and HOME, USER and LOGNAME are those of Options.RunAs if that is set.
	Env []string
	// Variables are set in that environment too, and win. A File is looked up without them.
	Variables map[string]string
	// Stdin is what it reads from stdin, from where the file stands on; nil for nothing. The caller closes it, after Run.
	Stdin *os.File
	// MemoryMax and PidsMax bound the round, within those of Options, each of which must be set where one of these is; 0 leaves it at
	// that. Nice is how much lower than that of the shim the priority of the program is, up to 19.
	MemoryMax     int64
	PidsMax, Nice int
	// Output takes what it writes to stdout and stderr; nil throws it away.
	Output [2]Taker
	// Grace is the time between TERM and KILL once ctx is done; 0 kills at once.
	Grace time.Duration
	// StopNow is asked when ctx is done; true means no grace: KILL at once. Thus a
	// caller who has lost patience before the program started, when Kill finds no
	// round, is heard too. It is called on a goroutine of its own, at most once;
	// nil means false.
	StopNow func() bool
}

// Taker takes what a program writes to one of its streams: all of it in one Write when
// it has ended, or the pipe, of a program that lasts or writes much.
type Taker interface {
	io.Writer
	// Adopt is given the pipe, which is the taker's to read and to close.
	Adopt(pipe int)
}

// taker is that of stdout or stderr.
func (p *Program) taker(stream int) Taker {
	if t := p.Output[stream]; t != nil {
		return t
	}
	return nowhere{io.Discard}
}

// adopt gives the pipes to their takers. They are missing where this process, or all
// of its user, has no room for more descriptors: what the program writes is lost then.
func (p *Program) adopt(m *packet) error {
	if len(m.files) != len(p.Output) {
		m.close()
		return fmt.Errorf("take over what the program writes: %w", syscall.EMFILE)
	}
	for i, pipe := range m.files {
		p.taker(i).Adopt(pipe)
	}
	return nil
}

// nowhere throws away what a program writes.
type nowhere struct{ io.Writer }

// Adopt reads until the last writer is gone.
func (nowhere) Adopt(pipe int) {
	file := os.NewFile(uintptr(pipe), "pipe")
	go func() {
		_, _ = io.Copy(io.Discard, file)
		_ = file.Close() // it was only read
	}()
}

// graceNow is the grace once ctx is done.
func (p *Program) graceNow() time.Duration {
	if p.StopNow != nil && p.StopNow() {
		return 0
	}
	return p.Grace
}

// Cause is why a round was ended from outside.
type Cause string

// The causes. Of several the first counts.
const (
	Ended     Cause = ""          // by itself
	Cancelled Cause = "cancelled" // ctx
	LeaseOver Cause = "lease"     // the deadline of Extend passed
	Killed    Cause = "killed"    // Kill was called
)

// Result is how the program ended. It comes from the shim as it is, but for OutOfMemory
// and the MaxMemory of a cgroup.
type Result struct {
	// Started says that run.sh was executed.
	Started bool `json:"started"`
	// ExitCode is the exit status of run.sh, or -1 for a signal or if it never ran.
	ExitCode int `json:"exitCode"`
	// Signal is the signal that ended run.sh, or 0.
	Signal syscall.Signal `json:"signal"`
	// Cause is why it was ended from outside. The exit code is still that of
	// run.sh, which may handle SIGTERM.
	Cause Cause `json:"cause"`
	// UserTime and SystemTime are the CPU times of run.sh and the children it waited for.
	UserTime   time.Duration `json:"userTime"`
	SystemTime time.Duration `json:"systemTime"`
	// MaxMemory is the most memory of the round's cgroup in bytes, or else the
	// largest resident set among run.sh and the children it waited for, which
	// Linux counts from before exec, so that it is never less than the shim's.
	MaxMemory int64 `json:"maxMemory"`
	// OutOfMemory says that memory_max was reached and the kernel killed for it.
	OutOfMemory bool `json:"outOfMemory"`
}

// await waits for the end of the round.
func (s *Slot) await(p *Program) (ending, error) {
	var lost error
	late := false
	for {
		m, err := s.link.receive()
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
		switch m.kind {
		case kindAnswer:
			s.understood(m.data)
		case kindPipes:
			lost = p.adopt(&m)
		case kindEnd:
			end, err := s.over(p, m.data)
			end.lost = lost
			return end, err
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

func (s *Slot) over(p *Program, data []byte) (ending, error) {
	s.mu.Lock()
	s.active = false
	s.mu.Unlock()
	end, output, err := decodeEnding(data)
	if err != nil {
		return end, s.settle(err)
	}
	for i, text := range output {
		if len(text) > 0 {
			_, _ = p.taker(i).Write(text) // it knows what it could not take
		}
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

func (f *fault) startError(p *Program) error {
	return process.NewStartError(p.Dir, p.File, f.Reason, f)
}

// limited says that the round has limits of its own.
func (p *Program) limited() bool { return p.MemoryMax > 0 || p.PidsMax > 0 }

// limit gives the slot the limits of a round. Where earlier rounds have left memory in its cgroup that cannot be freed, such as page
// cache or files in /dev/shm, the slot is lost: another one begins with an empty cgroup.
func (s *Slot) limit(p *Program) error {
	o := &s.container.options
	if s.group == nil || p.MemoryMax > 0 && o.MemoryMax == 0 || p.PidsMax > 0 && o.PidsMax == 0 {
		return process.NewStartError(p.Dir, p.File, process.ReasonLimits, errNoLimits)
	}
	if err := s.group.Limit(cgroup.Limits{MemoryMax: p.MemoryMax, PidsMax: p.PidsMax}); err != nil {
		return s.lose(fmt.Errorf("%w: %w", ErrShimLost, process.NewStartError(p.Dir, p.File, process.ReasonLimits, err)))
	}
	return nil
}

var errNoLimits = errors.New("memory_max and pids_max of a task can be kept only where the worker has such limits")

// unlimit gives it those of the container again. A slot that keeps a round's would be too narrow for the next one, which a slot
// that is lost does not have.
func (s *Slot) unlimit() {
	if err := s.group.Limit(cgroup.Limits{}); err != nil {
		_ = s.lose(fmt.Errorf("%w: its limits cannot be set: %w", ErrShimLost, err))
	}
}

// memory is what the counters of the slot's cgroup said before a round.
type memory struct {
	kills int64
	peak  bool // the peak is this round's own
}

// memoryBefore reads the counters, where there are any.
func (s *Slot) memoryBefore() memory {
	if s.group == nil || s.container.options.MemoryMax == 0 {
		return memory{}
	}
	// What cannot be read counts as nothing; New refused limits that do not work.
	kills, _ := s.group.OOMKills()
	return memory{kills: kills, peak: s.group.ResetPeak() == nil}
}

// memoryAfter puts into the result what happened since.
func (s *Slot) memoryAfter(before memory, r *Result) {
	if s.group == nil || s.container.options.MemoryMax == 0 || !r.Started {
		return
	}
	if kills, err := s.group.OOMKills(); err == nil {
		r.OutOfMemory = kills > before.kills
	}
	if peak, err := s.group.PeakMemory(); err == nil && before.peak {
		r.MaxMemory = peak
	}
}

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
