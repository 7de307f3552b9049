package server

import (
	"context"
	"slices"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// takeBack moves the tasks of workers whose lease is over until no such worker
// is left but those whose tasks cannot be decided about. It returns how many it
// moved and how long it is until it should look again.
func (s *Server) takeBack(ctx context.Context) (moved int, next time.Duration, err error) {
	for {
		watched, wait := s.steady.watched()
		if wait > 0 {
			return moved, wait, nil
		}
		lost, err := s.store.Lost(ctx, s.opt.BatchSize, watched)
		if err != nil {
			return moved, -1, err
		}
		s.steady.answered(lost.Now)
		s.steady.rely(max(s.opt.WorkerTimeout, timing.ToStd(lost.Longest)))
		s.announce(ctx, lost.Workers)
		n, gone, err := s.applyAll(ctx, s.judge(heldBy(lost), statemachine.Lose, nobody, nil))
		moved += n
		if err != nil || gone+takenOff(lost) == 0 {
			return moved, s.untilLook(lost), err
		}
	}
}

// takenOff counts the workers that held nothing: they do not come again.
func takenOff(l store.Lost) int {
	n := 0
	for i := range l.Workers {
		if l.Workers[i].Err == nil && len(l.Workers[i].Tasks) == 0 {
			n++
		}
	}
	return n
}

// untilLease is how long it is until the next lease ends, negative if there is
// none.
func untilLease(l store.Lost) time.Duration {
	if l.Next == statemachine.Never {
		return -1
	}
	return max(0, timing.ToStd(l.Next.Sub(l.Now)))
}

// stuckInterval is how soon the server looks again at lost workers of which it
// could take nothing back.
const stuckInterval = 100 * time.Millisecond

// untilLook is untilLease, but not sooner than stuckInterval where lost workers
// are left: if they are as many as one look returns, the next lease has ended
// already for all that is known, and passes would follow one another at once. So they
// would where a lease is over by the time of the namespace and not by the server's own.
func (s *Server) untilLook(l store.Lost) time.Duration {
	next := untilLease(l)
	switch {
	case next < 0:
		return next
	case len(l.Workers) > 0:
		return max(next, stuckInterval)
	default:
		return max(next, s.opt.WorkerTimeout/50)
	}
}

// heldBy gathers the tasks of all lost workers.
func heldBy(l store.Lost) store.Batch {
	b := store.Batch{Now: l.Now}
	for i := range l.Workers {
		b.Tasks = append(b.Tasks, l.Workers[i].Tasks...)
	}
	return b
}

// applyAll is apply for any number of orders.
func (s *Server) applyAll(ctx context.Context, orders []store.Order) (moved, gone int, err error) {
	for part := range slices.Chunk(orders, s.opt.BatchSize) {
		m, g, err := s.apply(ctx, part)
		moved, gone = moved+m, gone+g
		if err != nil {
			return moved, gone, err
		}
	}
	return moved, gone, nil
}

// announce says once of each incarnation that it is lost.
func (s *Server) announce(ctx context.Context, lost []store.LostWorker) {
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
func (s *Server) sayLost(ctx context.Context, w *store.LostWorker) {
	if w.Err != nil {
		s.log.Error().Err(w.Err).Str("worker", w.Name).Msg("could not take back the tasks of a lost worker")
		return
	}
	silent := timing.ToStd(w.Silent).Seconds()
	info, _, err := s.store.Worker(ctx, w.Name)
	if err != nil || info.Incarnation != w.Incarnation {
		s.log.Warn().Str("worker", w.Name).Msgf("worker %s is lost: silent for %.1f s; taking back %d tasks or more",
			w.Name, silent, len(w.Tasks))
		return
	}
	s.log.Warn().Str("worker", w.Name).Msgf("worker %s (%s, %s, %d) is lost: silent for %.1f s; taking back %d tasks",
		w.Name, info.Node, info.Host, info.PID, silent, len(info.Tasks))
}
