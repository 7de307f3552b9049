package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// leasing is what judging leases asks of the store.
type leasing interface {
	Lost(ctx context.Context, limit int, watched fleet.Watched) (fleet.Lost, error)
	Worker(ctx context.Context, name string) (task.Worker, statemachine.Time, error)
}

// takeBack moves the tasks of workers whose lease is over until no such worker
// is left but those whose tasks cannot be decided about. It returns how many it
// moved and how long it is until it should look again.
func (s *Server) takeBack(ctx context.Context) (moved int, next time.Duration, err error) {
	for {
		watched, wait := s.guard.watched()
		if wait > 0 {
			return moved, wait, nil
		}
		lost, err := s.store.Lost(ctx, s.opt.BatchSize, watched)
		if err != nil {
			return moved, never, err
		}
		s.guard.answered(lost.Now)
		s.guard.rely(max(s.opt.WorkerTimeout, timing.ToStd(lost.Longest)))
		s.announce(ctx, lost.Workers)
		n, gone, err := s.applyAll(ctx, s.decide(ctx, heldBy(lost), statemachine.Lose, nobody, nil))
		moved += n
		if err != nil || gone+takenOff(lost) == 0 {
			return moved, s.untilLook(lost), err
		}
	}
}

// takenOff counts the workers that held nothing: they do not come again.
func takenOff(l fleet.Lost) int {
	n := 0
	for i := range l.Workers {
		if l.Workers[i].Err == nil && len(l.Workers[i].Tasks) == 0 {
			n++
		}
	}
	return n
}

// stuckInterval is how soon the server looks again at lost workers of which it
// could take nothing back.
const stuckInterval = 100 * time.Millisecond

// untilLook is how long it is until the next lease ends, but not less than stuckInterval where lost workers
// are left: if they are as many as one look returns, the next lease has ended
// already for all that is known, and passes would follow one another at once. So they
// would where a lease is over by the time of the namespace and not by the server's own.
func (s *Server) untilLook(l fleet.Lost) time.Duration {
	least := s.opt.WorkerTimeout / 50
	if len(l.Workers) > 0 {
		least = stuckInterval
	}
	return max(until(l.Next, l.Now), least)
}

// heldBy gathers the tasks of all lost workers.
func heldBy(l fleet.Lost) tasks.Batch {
	b := tasks.Batch{Now: l.Now}
	for i := range l.Workers {
		b.Tasks = append(b.Tasks, l.Workers[i].Tasks...)
	}
	return b
}

// applyAll is apply for any number of commits.
func (s *Server) applyAll(ctx context.Context, commits []tasks.Commit) (moved, gone int, err error) {
	for part := range slices.Chunk(commits, s.opt.BatchSize) {
		m, g, err := s.apply(ctx, part)
		moved, gone = moved+m, gone+g
		if err != nil {
			return moved, gone, err
		}
	}
	return moved, gone, nil
}

// announce says once of each incarnation that it is lost.
func (s *Server) announce(ctx context.Context, lost []fleet.LostWorker) {
	now := make(map[string]int64, len(lost))
	for i := range lost {
		w := &lost[i]
		now[w.Name] = w.Incarnation
		if was, said := s.announced[w.Name]; !said || was != w.Incarnation {
			s.sayLost(ctx, w)
		}
	}
	s.announced = now
}

// sayLost names the worker as the registry knows it. What cannot be read does
// not keep its tasks waiting.
func (s *Server) sayLost(ctx context.Context, w *fleet.LostWorker) {
	if w.Err != nil {
		s.log.Error("could not take back the tasks of a lost worker", "error", w.Err, "worker", w.Name)
		return
	}
	silent := timing.ToStd(w.Silent).Seconds()
	info, _, err := s.store.Worker(ctx, w.Name)
	if err != nil || info.Incarnation != w.Incarnation {
		s.log.Warn(fmt.Sprintf("worker %s is lost: silent for %.1f s; taking back %d tasks or more",
			w.Name, silent, len(w.Tasks)), "worker", w.Name)
		return
	}
	s.log.Warn(fmt.Sprintf("worker %s (%s, %s, %d) is lost: silent for %.1f s; taking back %d tasks",
		w.Name, info.Node, info.Host, info.PID, silent, len(info.Tasks)), "worker", w.Name)
}

// Why there is no verdict, as the log says it.
const (
	reasonStart = "this server has just started"
	reasonAway  = "Redis was away"
	reasonGap   = "this server was held up, or Redis was"
	reasonBack  = "Redis is behind what this server has seen"
)

// contactGuard says who has been silent for long enough, by the server's own clock: it
// remembers which time of the namespace it read when. Who renews its lease after that
// gets a later time, whatever steps the clock of Redis makes. While Redis was away, or
// this server was frozen, workers may have been alive without a lease to show for it;
// then the watching begins anew. Each server judges this for itself.
type contactGuard struct {
	// lease is the longest that a worker may rely on.
	lease time.Duration
	// now is a clock that does not jump: time.Now, whose readings Go compares by
	// the monotonic clock.
	now func() time.Time
	// say logs, once a break, why there is no verdict for how long.
	say func(reason string, wait time.Duration)

	mu sync.Mutex
	// broken is why the contact is interrupted; empty while it lasts.
	broken string
	// heard is when Redis answered last.
	heard time.Time
	// seen are readings of both clocks since the contact began, the first of them the
	// last that is a lease old, if there is one.
	seen []reading
	// told is the reason said last, forgotten once verdicts are allowed.
	told string
}

// reading is what two clocks showed at one moment.
type reading struct {
	own   time.Time
	redis statemachine.Time
}

func newContactGuard(lease time.Duration, say func(string, time.Duration)) *contactGuard {
	return &contactGuard{lease: lease, now: time.Now, say: say, broken: reasonStart}
}

// failed notes a call without an answer. The watching begins anew with the next one.
func (s *contactGuard) failed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = reasonAway
}

// answered notes an answer of Redis and the time of the namespace it was given at.
func (s *contactGuard) answered(redis statemachine.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := reading{s.now(), redis}
	s.contact(now.own)
	n := len(s.seen)
	if n > 0 && timing.ToStd(s.seen[n-1].redis.Sub(redis)) > s.lease/3 {
		s.broken = cmp.Or(s.broken, reasonBack) // of a living worker the last heartbeat may be so old
	}
	if s.broken != "" {
		s.begin()
	}
	if n = len(s.seen); n == 0 || now.own.Sub(s.seen[n-1].own) >= s.lease/100 {
		s.seen = append(s.seen, now)
	}
	for len(s.seen) > 1 && now.own.Sub(s.seen[1].own) >= s.lease {
		s.seen = s.seen[1:]
	}
}

// touched notes an answer that came without a time: moves that were made, for
// example, which may take a while.
func (s *contactGuard) touched() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.contact(s.now())
}

// contact notes that Redis has answered. Silence for half a lease may hide that it was
// away: a worker whose lease it has cost may be as old as its heartbeat, a third, and that.
func (s *contactGuard) contact(now time.Time) {
	if s.broken == "" && now.Sub(s.heard) > s.lease/2 {
		s.broken = reasonGap
	}
	s.heard = now
}

// begin begins to watch.
func (s *contactGuard) begin() {
	reason := s.broken
	s.seen, s.broken = nil, ""
	if s.told != reason {
		s.told = reason
		s.say(reason, s.lease)
	}
}

// rely sets the longest lease that a worker may rely on.
func (s *contactGuard) rely(lease time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease = lease
}

// wait is how long it is until a verdict is allowed, 0 if it is now.
func (s *contactGuard) wait() time.Duration {
	_, left := s.watched()
	return left
}

// watched is how long this server has watched that who sent the last heartbeat before
// some time of the namespace has sent none since, or how long it is until it has.
func (s *contactGuard) watched() (w fleet.Watched, left time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != "" || len(s.seen) == 0 {
		return w, s.lease
	}
	first := s.seen[0]
	if left = s.lease - s.now().Sub(first.own); left > 0 {
		return w, left
	}
	s.told = ""
	return fleet.Watched{Span: timing.FromStd(s.lease), Until: first.redis}, 0
}
