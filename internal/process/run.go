package process

import (
	"context"
	"errors"
	"runtime"
	"syscall"
	"time"
)

// killPatience is how long a leader may outlive SIGKILL before Run gives it up.
const killPatience = 5 * time.Second

// Run runs one round's program to its end. When ctx is cancelled, the group gets
// SIGTERM and, after s.Grace, SIGKILL, and Result.Cancelled is set; a context
// that is cancelled already starts nothing and gives the same. The exit status
// of the program is no error.
//
// Whatever happens, no process of the group is left when Run returns, else the
// error is ErrUnkillable; Run waits at most five seconds for run.sh to obey
// SIGKILL and one second for the rest. Other errors are a *StartError, with which nothing
// ran, and one or two *OutputError, with which the rest of the Result is good.
func Run(ctx context.Context, s Spec) (Result, error) {
	if ctx.Err() != nil {
		return Result{ExitCode: -1, Cancelled: true}, nil
	}
	if err := s.validate(); err != nil {
		return Result{ExitCode: -1}, err
	}
	files, err := openStdio(&s)
	if err != nil {
		reason := ReasonOutput
		if isAny(err, syscall.EMFILE, syscall.ENFILE) {
			reason = ReasonResources
		}
		return Result{ExitCode: -1}, s.startError(reason, err)
	}
	defer files.close()
	g := &group{grace: s.Grace, signal: syscall.Kill, patience: killPatience, stuck: make(chan struct{})}
	return g.run(ctx, &s, &files)
}

// ending is what is known at the end of a round, its output apart.
type ending struct {
	result Result
	err    error
}

func (g *group) run(ctx context.Context, s *Spec, files *stdio) (Result, error) {
	started := time.Now()
	ended := make(chan ending, 1)
	// A goroutine of its own, so that a leader that hangs in the kernel can be
	// left behind together with its thread.
	go func() { ended <- g.lead(ctx, s, files, started) }()
	var end ending
	select {
	case end = <-ended:
	case <-g.stuck:
		end.result = Result{ExitCode: -1, Started: started, Duration: time.Since(started)}
		end.result.explain(g.reason())
		end.err = ErrUnkillable
	}
	if start := (*StartError)(nil); errors.As(end.err, &start) {
		return end.result, end.err
	}
	return end.result, errors.Join(end.err, end.result.collect(s, files))
}

// lead starts the program and stays on one thread until it is reaped.
func (g *group) lead(ctx context.Context, s *Spec, files *stdio, started time.Time) ending {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pid, err := start(ctx, s, files)
	if err != nil {
		return ending{result: Result{ExitCode: -1}, err: err}
	}
	g.pid = pid
	g.watch(ctx, s.Timeout)
	end := ending{result: Result{ExitCode: -1, Started: started}}
	waitErr := waitEnded(pid)
	end.result.Duration = time.Since(started)
	end.result.explain(g.finish())
	status, usage, err := reap(pid)
	if end.err = errors.Join(waitErr, err); end.err == nil {
		end.result.account(status, &usage)
	}
	if !awaitGone(pid) {
		end.err = errors.Join(end.err, ErrUnkillable)
	}
	return end
}

func (r *Result) explain(why cause) {
	r.TimedOut = why == causeTimeout
	r.Cancelled = why == causeCancel
}

func (r *Result) account(status syscall.WaitStatus, usage *syscall.Rusage) {
	r.ExitCode = status.ExitStatus()
	if status.Signaled() {
		r.Signal = status.Signal()
	}
	r.MaxRSS = usage.Maxrss * 1024
	r.UserTime = time.Duration(usage.Utime.Nano())
	r.SysTime = time.Duration(usage.Stime.Nano())
}
