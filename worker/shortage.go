package worker

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// short reports whether this host has no more of what the worker needs to begin a
// round: descriptors, processes, memory, room on its disk.
func short(err error) bool {
	for _, errno := range []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM, syscall.ENOSPC, syscall.EDQUOT,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// shortage is how long the worker claims nothing because its host could not begin
// a round. The zero value is no shortage.
type shortage struct {
	mu    sync.Mutex
	pause timing.Backoff
	until time.Time
	why   string
}

// begin starts a rest, longer than the one before if no program ran meanwhile.
func (s *shortage) begin(why error) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pause.First, s.pause.Most = 500*time.Millisecond, 30*time.Second
	if time.Now().Before(s.until) {
		return time.Until(s.until) // another slot has met it in the same moment
	}
	rest := s.pause.Next()
	s.until, s.why = time.Now().Add(rest), why.Error()
	return rest
}

// over is called when a program could be started.
func (s *shortage) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pause.Reset()
}

// now is why the worker rests, "" if it does not.
func (s *shortage) now() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().Before(s.until) {
		return s.why
	}
	return ""
}

// spareThreads are for what the worker does beside its slots. A slot needs two: one
// that waits for its shim, and one for a call to the system that takes long.
const spareThreads = 8

// makeThreads makes so many threads, which the runtime keeps for later: one that
// it needs and cannot get ends the process.
func makeThreads(n int) {
	var together sync.WaitGroup
	together.Add(n)
	for range n {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			together.Done()
			together.Wait()
		}()
	}
	together.Wait()
}

// countShortage makes a round that this host could not begin a fault, where its
// task was handed back for that often enough. Only here are the rounds before this
// one asked for.
func (r *round) countShortage(ctx context.Context, end *ending) {
	unable, ok := errors.AsType[*hostError](end.why)
	if !ok || end.event != statemachine.HandBack {
		return
	}
	task, err := r.worker.opts.Store.Task(ctx, r.task.ID)
	if err != nil {
		r.log.Debug().Err(err).Msg("could not read how the rounds before ended; the task is handed back")
		return
	}
	if statemachine.ShortageCounts(shortOn(task, r.task.Round), r.worker.opts.Node) {
		end.event = statemachine.Report
		end.fails(nil, unable)
		end.class = statemachine.ClassShortage
	}
}

// shortOn are the nodes of the rounds right before that of the number, the latest
// first, that their nodes could not begin.
func shortOn(task *store.Task, round int) (nodes []string) {
	for n := round - 1; n >= 0; n-- {
		if statemachine.Class(task.Fields[statemachine.RoundField(n, "class")]) != statemachine.ClassShortage {
			break
		}
		nodes = append(nodes, task.Fields[statemachine.RoundField(n, "node")])
	}
	return nodes
}
