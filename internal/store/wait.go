package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/route"

	"github.com/redis/go-redis/v9"
)

// WaitFor says what an idle worker waits for.
type WaitFor struct {
	Worker, Node string
	// Turns are what it may claim from. Full, Elsewhere and NodeFull are those of
	// the last [ClaimReply]: it is not woken for what it would find full again.
	Turns           []route.Turn
	Full, Elsewhere []string
	NodeFull        bool
}

// lists are the lists to wait at: the worker's own; that of its node if the node
// lacked something at the last claim; and of each queue the one for a place in the
// fleet if only that was lacking, else those of its buckets if nothing was. Who
// waits for a place would take the wake-up from others that need it.
func (w *WaitFor) lists(k keys) []string {
	lists := []string{k.halt(w.Worker)}
	if w.NodeFull || len(w.Full) > 0 {
		lists = append(lists, k.wakeNode(w.Node))
	}
	for i := range w.Turns {
		queue := w.Turns[i].Queue.Name
		switch {
		case w.NodeFull:
		case slices.Contains(w.Elsewhere, queue):
			lists = append(lists, k.wakeQueue(queue))
		case !slices.Contains(w.Full, queue):
			for _, b := range w.Turns[i].Buckets {
				lists = append(lists, k.wake(b.Name()))
			}
		}
	}
	return lists
}

// WaitWork waits until there is work for this worker, at most d (1 ms or more), or
// until [Store.Interrupt]. It returns what woke it, empty if nothing did or the wake-up was for it
// alone. A wake-up goes to one waiter: whoever gets it claims, and the claim
// passes it on; or it calls [Store.PassOn], also if it was [Store.Unused].
func (s *Store) WaitWork(ctx context.Context, w WaitFor, d time.Duration) (WakeUp, error) {
	lists := w.lists(s.keys)
	for end := time.Now().Add(d); ; d = time.Until(end) {
		list, err := s.wait(ctx, lists, min(d, longestBlockOfWorker))
		switch {
		case err != nil || list == lists[0]:
			return "", err
		case list != "" || d <= longestBlockOfWorker:
			return WakeUp(list), nil
		}
	}
}

// longestBlockOfWorker is the longest that one command waits for work: a Redis that hangs
// is noticed read_timeout later.
const longestBlockOfWorker = 3 * time.Second

// WakeUp is a wake-up that was got.
type WakeUp string

// Unused reports whether a wake-up was for a place, in a queue or on the node,
// for which the worker that got it has no use: by its next claim it found nothing
// due there, and will not wait there. Then it should be passed on (see
// [Store.PassOn]) to others that wait for the place.
func (s *Store) Unused(w WakeUp, r *ClaimReply) bool {
	if strings.HasPrefix(string(w), s.keys.wakeNode("")) {
		return !r.NodeFull && len(r.Full) == 0 && len(r.Tasks) == 0
	}
	queue, ok := strings.CutPrefix(string(w), s.keys.wakeQueue(""))
	took := func(t Claimed) bool { return t.Bucket.QueueName() == queue }
	return ok && !r.NodeFull && !slices.Contains(r.Full, queue) && !slices.ContainsFunc(r.Tasks, took)
}

// WaitServer waits until there is work for a server, at most d.
func (s *Store) WaitServer(ctx context.Context, d time.Duration) (bool, error) {
	list, err := s.wait(ctx, []string{s.keys.wakeServer()}, d)
	return list != "", err
}

// wait sends BLPOP itself: the client's own method knows whole seconds only. It
// returns the list that had a token.
func (s *Store) wait(ctx context.Context, lists []string, d time.Duration) (string, error) {
	args := make([]any, 0, len(lists)+2)
	args = append(args, "blpop")
	for _, l := range lists {
		args = append(args, l)
	}
	ctx, cancel := s.whileBlocked(ctx, d)
	defer cancel()
	cmd := redis.NewStringSliceCmd(ctx, append(args, bounded(d).Seconds())...)
	err := s.patient.Process(ctx, cmd)
	switch {
	case err == nil && len(cmd.Val()) == 2:
		return cmd.Val()[0], nil
	case err == nil, errors.Is(err, redis.Nil):
		return "", nil
	default:
		return "", s.failed("wait", err)
	}
}

// longestBlock is the longest that a command waits in Redis. Its connection has
// so much more time to answer.
const longestBlock = 5 * time.Second

// whileBlocked is for a command that waits in Redis for d: it must have answered
// within read_timeout of that. The limit of the connection, which is for the longest
// wait, would notice late that a master hangs and was replaced.
func (s *Store) whileBlocked(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, bounded(d)+s.answerLimit())
}

// answerLimit is how long Redis may take to answer what does not wait.
func (s *Store) answerLimit() time.Duration {
	if s.where.ReadTimeout > 0 {
		return s.where.ReadTimeout
	}
	return longestBlock
}

// bounded keeps a wait above 0, which would be for ever, and below longestBlock.
func bounded(d time.Duration) time.Duration { return max(min(d, longestBlock), time.Millisecond) }
