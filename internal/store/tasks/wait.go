package tasks

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// WaitFor says what an idle worker waits for.
type WaitFor struct {
	Worker, Node string
	// Candidates are what it may claim from. Full, Elsewhere and NodeFull are those of
	// the last [ClaimReply]: it is not woken for what it would find full again.
	Candidates      []task.Candidate
	Full, Elsewhere []string
	NodeFull        bool
	// Slots is how many slots are free if the last claim was short of them: it is not woken for tasks that take more.
	Slots int
	// Now is the time of the namespace, 0 if it is not known. A wait that takes several commands claims then at its end only,
	// if nothing ends it before.
	Now statemachine.Time
}

// lists are the lists to wait at: the worker's own; that of its node if the node
// lacked something at the last claim; and of each queue the one for a place in the
// fleet if only that was lacking, else those of its buckets if nothing was. Who
// waits for a place would take the wake-up from others that need it.
func (w *WaitFor) lists(k conn.Keys) []string {
	lists := []string{k.Halt(w.Worker)}
	if w.NodeFull || len(w.Full) > 0 {
		lists = append(lists, k.WakeNode(w.Node))
	}
	for i := range w.Candidates {
		queue := w.Candidates[i].Queue.Name
		switch {
		case w.NodeFull:
		case slices.Contains(w.Elsewhere, queue):
			lists = append(lists, k.WakeQueue(queue))
		case !slices.Contains(w.Full, queue):
			for _, b := range w.Candidates[i].Buckets {
				if w.Slots == 0 || b.Slots() <= w.Slots {
					lists = append(lists, k.Wake(b.Name()))
				}
			}
		}
	}
	return lists
}

// Waited is the answer to a wait and to the claim behind it.
type Waited struct {
	// Woken is what ended the wait, empty if nothing did or the worker was interrupted.
	// It counts also beside errors, since no wake-up must get lost.
	Woken WakeUp
	// Err is the error of the wait.
	Err   error
	Reply ClaimReply
	// Claimed is the error of the claim, as that of Claim.
	Claimed error
}

// WaitAndClaim waits until there is work for this worker, at most d (1 ms or more), or until ctx is done, and is
// [Tasks.Claim] then, in the same trip. Where ctx is done before Redis claims, nothing is claimed: the reply is Stale.
// A wake-up goes to one waiter, which uses it or calls [fleet.Fleet.PassOn].
//
// After an error of the claim it is not known whether Redis has carried it out, or will: repeat it alone, as Waited.
func (s *Tasks) WaitAndClaim(ctx context.Context, w WaitFor, d time.Duration, req ClaimRequest) Waited {
	if err := cmp.Or(ctx.Err(), req.check()); err != nil {
		return Waited{Err: err, Claimed: err}
	}
	defer s.interruptAfter(ctx, &req)()
	lists, begun := w.lists(s.Keys), time.Now()
	for end := begun.Add(d); ; d = time.Until(end) {
		part := conn.Bounded(d)
		req.till = 0
		if part < d && w.Now != 0 {
			req.till = w.Now.Add(timing.FromStd(time.Since(begun) + part))
		}
		if answer, over := s.waitOnce(ctx, lists, part, &req); over {
			return answer
		}
	}
}

// waitOnce waits with one command. The wait is not over if nothing has ended it, so that the claim came too late.
func (s *Tasks) waitOnce(ctx context.Context, lists []string, d time.Duration, req *ClaimRequest) (answer Waited, over bool) {
	pop, call := pop(ctx, lists, d), req.call(s.Keys, "turn", 0, &moveCall{})
	v, err := s.RunBehind(ctx, pop, d, call)
	list, failed := s.popped(pop)
	if list != lists[0] {
		answer.Woken = WakeUp(list)
	}
	answer.Err, req.Woken = failed, answer.Woken
	t := s.turned(nil, req, conn.AsReply(v), err)
	answer.Reply, answer.Claimed = t.Reply, t.Claimed
	if !errors.Is(t.Claimed, errTooLate) {
		return answer, true
	}
	if list == "" && failed == nil {
		return answer, false
	}
	req.till = 0 // it was the last moment
	answer.Reply, answer.Claimed = s.Claim(ctx, *req)
	return answer, true
}

// interruptAfter ends the wait of a worker when ctx is done, and calls off the claim behind it: a command that waits in
// Redis does not end with its context. The caller calls stop once the wait is over.
func (s *Tasks) interruptAfter(ctx context.Context, req *ClaimRequest) (stop func()) {
	done := make(chan struct{})
	worker, request := req.Worker, req.Request
	interrupting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	keep := context.AfterFunc(ctx, func() {
		defer close(done)
		limit, cancel := context.WithTimeout(interrupting, interruptTimeout)
		defer cancel()
		_ = s.Interrupt(limit, worker, request) // the wait has an end of its own
	})
	return func() {
		cancel()
		if !keep() {
			<-done
		}
	}
}

// interruptTimeout is how long it is tried to end a wait early.
const interruptTimeout = 2 * time.Second

// Interrupt ends the wait of the worker of that name in [Tasks.WaitAndClaim], now or when it waits next. If the worker has a session,
// that request claims nothing from now on.
func (s *Tasks) Interrupt(ctx context.Context, name, request string) error {
	_, err := s.Run(ctx, "halt", conn.Subject{Worker: name}, request)
	return err
}

// WakeUp is a wake-up that was got.
type WakeUp string

// Unused reports whether a wake-up was for a place, in a queue or on the node,
// for which the worker that got it has no use: by its next claim it found nothing
// due there, and will not wait there.
func (s *Tasks) Unused(w WakeUp, r *ClaimReply) bool {
	if strings.HasPrefix(string(w), s.Keys.WakeNode("")) {
		return !r.NodeFull && len(r.Full) == 0 && len(r.Tasks) == 0
	}
	queue, ok := strings.CutPrefix(string(w), s.Keys.WakeQueue(""))
	took := func(t Claimed) bool { return t.Bucket.QueueName() == queue }
	return ok && !r.NodeFull && !slices.Contains(r.Full, queue) && !slices.ContainsFunc(r.Tasks, took)
}

// WaitServer waits until there is work for a server, at most d.
func (s *Tasks) WaitServer(ctx context.Context, d time.Duration) (bool, error) {
	ctx, cancel := s.WhileBlocked(ctx, d)
	defer cancel()
	cmd := pop(ctx, []string{s.Keys.WakeServer()}, d)
	_ = s.Patient.Process(ctx, cmd) // the command has the error
	list, err := s.popped(cmd)
	return list != "", err
}

// pop is the command that waits at lists: the client's own method knows whole seconds only.
func pop(ctx context.Context, lists []string, d time.Duration) *redis.StringSliceCmd {
	args := conn.Args([]any{"blpop"}, lists...)
	return redis.NewStringSliceCmd(ctx, append(args, conn.Bounded(d).Seconds())...)
}

// popped is the list that had a token, empty if none had. It is known also where the answer to a command behind this one
// did not come, which the client counts as an error of both.
func (s *Tasks) popped(cmd *redis.StringSliceCmd) (list string, err error) {
	switch err := cmd.Err(); {
	case len(cmd.Val()) == 2:
		return cmd.Val()[0], nil
	case err == nil, errors.Is(err, redis.Nil):
		return "", nil
	default:
		return "", s.Failed("wait", err)
	}
}

// remindBatch is how many buckets one script looks at: it blocks Redis meanwhile.
const remindBatch = 250

// Remind wakes a waiter of each bucket in which a task has been due for the time
// late, at least, and was not claimed. Wake-ups are hints, and go to one waiter, which may be
// killed with it; no other worker would hear of the task before its own poll. It returns how
// long it is until the next task will be as late, statemachine.Forever if none will.
func (s *Tasks) Remind(ctx context.Context, late statemachine.Duration) (statemachine.Duration, error) {
	names, err := s.Redis.SMembers(ctx, s.Keys.Buckets()).Result()
	if err != nil {
		return 0, s.Failed("remind", err)
	}
	next := statemachine.Forever
	for part := range slices.Chunk(names, remindBatch) {
		var of conn.Subject
		for _, name := range part {
			of.More = append(of.More, s.Keys.Ready(name), s.Keys.Wake(name))
		}
		v, err := s.Run(ctx, "remind", of, late.Text())
		if err != nil {
			return 0, err
		}
		text, _ := v.(string)
		if left, err := statemachine.ParseDuration(text); err == nil {
			next = min(next, left)
		}
	}
	return next, nil
}

// Watch announces moves to an outcome and to the archive: the channel gets a
// value soon after one or more of them. It is a hint, several moves may come
// as one value, and some may be missed, so a reader polls as well. A connection that is
// made, at first or anew, is announced like a move. The channel is never closed; stop ends the subscription.
func (s *Tasks) Watch(ctx context.Context) (changes <-chan struct{}, stop func()) {
	return s.hints(ctx, s.Keys.Changed())
}

// Listen announces what the worker of that name should not hear of only at its
// next heartbeat or claim, until ctx is done: it calls renew when something was
// ordered, rules when queues or nodes were changed, and errand with the request of
// an errand, perhaps several times. The calls are hints, like those of [Tasks.Watch], and must not block.
func (s *Tasks) Listen(ctx context.Context, name string, renew, rules func(), errand func(request string)) {
	called := func(message string) {
		if message == "" || message == ordered {
			renew()
		} else {
			errand(message)
		}
	}
	// Many workers are idle most of the time, and their heartbeats tell what a
	// broken subscription would: it need not be looked at every few seconds.
	s.subscribe(ctx, time.Minute, map[string]func(string){s.Keys.Call(name): called, s.Keys.Rules(): func(string) { rules() }})
}

// ordered is the message that calls a worker to renew its lease. Every other one is the request of an errand.
const ordered = "1"

func (s *Tasks) hints(ctx context.Context, channel string) (<-chan struct{}, func()) {
	out := make(chan struct{}, 1)
	hint := func(string) {
		select {
		case out <- struct{}{}:
		default: // the last one was not taken
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.subscribe(ctx, 3*time.Second, map[string]func(string){channel: hint})
	}()
	return out, func() {
		cancel()
		<-done
	}
}

// subscribe calls a function with each message of its channel until ctx is done, and with none when a connection is made. A
// connection that is silent is asked for an answer, and given up if there is none.
func (s *Tasks) subscribe(ctx context.Context, silence time.Duration, outs map[string]func(message string)) {
	l := &listener{store: s, silence: silence, outs: outs}
	defer context.AfterFunc(ctx, l.close)()
	l.run(ctx)
}

// listener is a subscription that notices when its connection is dead on the other
// side only: the client's own keeps such a one for a quarter of an hour, because
// what it sends to ask is taken by the kernel.
type listener struct {
	store *Tasks
	// silence is how long the connection may be silent before it is asked.
	silence time.Duration
	outs    map[string]func(message string) // by channel

	mu     sync.Mutex
	sub    *redis.PubSub
	closed bool
}

// run listens until ctx ends or close is called.
func (l *listener) run(ctx context.Context) {
	pauses := timing.Backoff{First: 100 * time.Millisecond, Most: 2 * time.Second}
	for ctx.Err() == nil {
		sub := l.open(ctx)
		if sub == nil {
			return
		}
		l.hear(ctx, sub, &pauses)
		_ = sub.Close() // the connection goes either way
		timing.Pause(ctx, pauses.Next())
	}
}

// open subscribes, nil if that is not wanted any more.
func (l *listener) open(ctx context.Context) *redis.PubSub {
	sub := l.store.Redis.Subscribe(ctx, slices.Sorted(maps.Keys(l.outs))...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = sub.Close()
		return nil
	}
	l.sub = sub
	return sub
}

// hear passes messages on until close, or until the connection does not answer. One
// that fails the client makes anew.
func (l *listener) hear(ctx context.Context, sub *redis.PubSub, pauses *timing.Backoff) {
	asked := false
	for ctx.Err() == nil {
		patience := l.silence
		if asked {
			patience = l.store.AnswerLimit()
		}
		message, err := sub.ReceiveTimeout(ctx, patience)
		switch {
		case err == nil:
			asked = false
			pauses.Reset()
			l.pass(message)
		case errors.Is(err, redis.ErrClosed), asked && isTimeout(err):
			return
		case isTimeout(err):
			asked = sub.Ping(ctx) == nil
		default:
			asked = false
			timing.Pause(ctx, pauses.Next())
		}
	}
}

// pass gives a hint to whom it is for.
func (l *listener) pass(message any) {
	var channel, text string
	switch m := message.(type) {
	case *redis.Message:
		channel, text = m.Channel, m.Payload
	case *redis.Subscription: // nobody has heard what was said before
		channel = m.Channel
	default: // the answer to a ping
		return
	}
	if out := l.outs[channel]; out != nil {
		out(text)
	}
}

// close ends the wait for a message.
func (l *listener) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.sub != nil {
		_ = l.sub.Close()
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
