package worker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// oneQueue is a backend in memory, for one worker: a queue of tasks, and a session.
type oneQueue struct {
	work, renew chan struct{} // there is a task, a heartbeat is wanted
	reports     chan worker.Commit
	chunks      chan worker.Chunk

	mu      sync.Mutex
	due     []worker.Claimed
	session worker.Session
	ended   int64 // sessions up to this incarnation are over

	followed []worker.Followed
}

func now() statemachine.Time { return statemachine.Time(time.Now().UnixMicro()) }

// open adds a task.
func (q *oneQueue) open(id int64, input string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.due = append(q.due, worker.Claimed{
		Task: statemachine.Task{
			ID: id, State: statemachine.Running, EndBefore: statemachine.Never, Timeout: statemachine.Forever,
			Current: statemachine.Round{Claim: fmt.Sprint("claim of ", id), Running: now()},
		},
		Spec: task.Spec{Program: "p", Input: input}, Expiry: statemachine.Never,
	})
	q.work <- struct{}{}
}

// end ends all sessions so far, as for a worker that was silent for too long.
func (q *oneQueue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = q.session.Incarnation
	q.renew <- struct{}{}
}

func (q *oneQueue) holds(incarnation int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if incarnation <= q.ended {
		return worker.ErrLeaseLost
	}
	return nil
}

func (q *oneQueue) Site(context.Context) (worker.Site, error) {
	return worker.Site{Namespace: "n", Mark: "memory", Grace: statemachine.Forever}, nil
}

func (q *oneQueue) Register(_ context.Context, r task.Registration) (worker.Registered, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.session = worker.Session{Name: r.Name, ID: 1, Incarnation: q.session.Incarnation + 1, Lease: 300 * statemachine.Second}
	return worker.Registered{Session: q.session, Now: now()}, nil
}

func (q *oneQueue) Renew(_ context.Context, s worker.Session, _ worker.Heartbeat) (worker.Renewal, error) {
	return worker.Renewal{Lease: s.Lease, Now: now(), Redis: now(), Followed: q.followed}, q.holds(s.Incarnation)
}

func (q *oneQueue) Leave(_ context.Context, s worker.Session) error { return q.holds(s.Incarnation) }

func (q *oneQueue) Listen(ctx context.Context, _ string, renew, _ func(), _ func(string)) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-q.renew:
			renew()
		}
	}
}

func (q *oneQueue) Errand(context.Context, string, string, func(string) string) error { return nil }

func (q *oneQueue) Rules(context.Context, string) (worker.Rules, error) {
	return worker.Rules{Version: 1, Known: 1, Buckets: []task.Bucket{{}}}, nil
}

func (q *oneQueue) Claim(_ context.Context, req worker.ClaimRequest) (worker.ClaimReply, error) {
	if err := q.holds(req.Incarnation); err != nil {
		return worker.ClaimReply{}, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(req.Max, len(q.due))
	reply := worker.ClaimReply{Tasks: slices.Clone(q.due[:n]), More: n < len(q.due), Now: now(), Next: statemachine.Never}
	q.due = q.due[n:]
	return reply, nil
}

func (q *oneQueue) WaitAndClaim(ctx context.Context, _ worker.WaitFor, d time.Duration, req worker.ClaimRequest) (w worker.Waited) {
	select { // nobody else could use a wake-up
	case <-ctx.Done():
		w.Reply.Stale = true
		return w
	case <-time.After(d):
	case <-q.work:
	}
	w.Reply, w.Claimed = q.Claim(ctx, req)
	return w
}

func (q *oneQueue) PassOn(context.Context, worker.WakeUp) error { return nil }

func (q *oneQueue) Turn(ctx context.Context, commits []worker.Commit, next *worker.ClaimRequest) (t worker.Turn) {
	for i := range commits {
		t.Outcomes = append(t.Outcomes, worker.Outcome{ID: commits[i].ID, Result: statemachine.Moved})
		q.reports <- commits[i]
	}
	if next != nil {
		t.Reply, t.Claimed = q.Claim(ctx, *next)
	}
	return t
}

func (q *oneQueue) Tell(_ context.Context, _ string, _ *statemachine.Task, news worker.News) error {
	for _, c := range news.Chunks {
		q.chunks <- c
	}
	return nil
}

func (q *oneQueue) Results(context.Context, []int64) ([]task.Result, error) { return nil, nil }

func (q *oneQueue) Fields(_ context.Context, ids []int64, _ ...string) ([]map[string]string, error) {
	return make([]map[string]string, len(ids)), nil
}

func (q *oneQueue) Blob(context.Context, string, io.Writer) error { return task.ErrNoBlob }

func (q *oneQueue) FirstVersion(_ context.Context, _ task.PlanID, _, sha256 string) (string, error) {
	return sha256, nil
}

func (q *oneQueue) Keepers(context.Context, string, task.Bucket, string) ([]string, int, error) {
	return nil, 0, nil
}

func (q *oneQueue) PutFiles(context.Context, string, int64, io.ReaderAt, bool) error {
	return task.ErrNoRoom
}

func newQueue() *oneQueue {
	return &oneQueue{
		work: make(chan struct{}, 10), renew: make(chan struct{}, 10), reports: make(chan worker.Commit, 10),
		chunks: make(chan worker.Chunk, 10), followed: []worker.Followed{{ID: 7, Since: now()}},
	}
}

func optionsFor(t *testing.T, b worker.Backend, handler worker.Handler) worker.Options {
	t.Helper()
	return worker.Options{Name: "w", Backend: b, Handlers: map[string]worker.Handler{"p": handler}, Settings: worker.Settings{
		Slots: 1, TempDir: t.TempDir(), SpoolDir: t.TempDir(), ProgramDir: t.TempDir(), DiskReserve: -1,
	}}
}

// run runs a worker until the test ends.
func run(t *testing.T, o worker.Options) {
	t.Helper()
	w, err := worker.New(nil, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := wait.Receive(t, time.Minute, done, "it does not stop"); err != nil {
			t.Error(err)
		}
	})
}

// startWorker runs a worker with a queue of its own until the test ends.
func startWorker(t *testing.T, handler worker.Handler) *oneQueue {
	t.Helper()
	q := newQueue()
	run(t, optionsFor(t, q, handler))
	return q
}

// All that a worker needs of a site is a Backend: it does the task that it claims, and the one that its report brings.
func TestBackend(t *testing.T) {
	t.Parallel()
	q := startWorker(t, func(_ context.Context, job *worker.Job) error {
		fmt.Fprint(job.Stdout(), strings.ToUpper(job.Task.Input))
		if job.Task.Input == "broken" {
			return errors.New("it broke")
		}
		return nil
	})
	words := []string{"well", "done", "broken"}
	for id, word := range words {
		q.open(int64(id), word)
	}
	for id, word := range words {
		got := wait.Receive(t, time.Minute, q.reports, "task %d is not reported", id)
		output, node, to := slices.Index(got.Fields, "0:output"), worker.NodeGood, statemachine.Succeeded
		if word == "broken" {
			node, to = worker.NodeBad, statemachine.Executed
		}
		if got.ID != int64(id) || got.Claim != fmt.Sprint("claim of ", id) || got.To != to || got.Writer != "w" || got.Node != node ||
			output < 0 || got.Fields[output+1] != strings.ToUpper(word) {
			t.Errorf("reported %+v", got)
		}
	}
}

// While somebody follows a task, what it writes comes in chunks, none too long, in their order.
func TestBackendFollows(t *testing.T) {
	t.Parallel()
	const length = 2*worker.MaxChunk + 1
	release := make(chan struct{})
	q := startWorker(t, func(ctx context.Context, job *worker.Job) error {
		_, err := job.Stdout().Write(make([]byte, length))
		select {
		case <-release:
		case <-ctx.Done():
		}
		return err
	})
	defer close(release)
	q.open(7, "")
	wait.Eventually(t, time.Minute, func() bool {
		q.renew <- struct{}{}
		return len(q.chunks) > 0
	}, "nothing comes of what is written")
	for at := int64(0); at < length; {
		c := wait.Receive(t, time.Minute, q.chunks, "the output ends at byte %d", at)
		if c.Stream != "output" || c.Offset != at || len(c.Data) > worker.MaxChunk {
			t.Fatalf("%d bytes of %q from %d, want them from %d", len(c.Data), c.Stream, c.Offset, at)
		}
		at += int64(len(c.Data))
	}
}

// taken is a queue where another worker has the name, and has left a task.
type taken struct {
	*oneQueue

	alive bool
	asked int
}

func (b *taken) Register(ctx context.Context, r task.Registration) (worker.Registered, error) {
	b.asked++
	holder := task.Worker{Registration: task.Registration{Name: r.Name, Host: "elsewhere"}, Incarnation: 5}
	if b.alive {
		holder.Heartbeat = time.Unix(int64(b.asked), 0)
	}
	switch {
	case r.Replaces != holder.Incarnation:
		return worker.Registered{}, &worker.NameTakenError{Holder: holder}
	case len(b.reports) == 0:
		lost := statemachine.Task{ID: 3, State: statemachine.Running, MaxLosses: 1, EndBefore: statemachine.Never, Timeout: statemachine.Forever}
		return worker.Registered{Former: []worker.Former{{Task: lost}}, Now: now()}, nil
	}
	return b.oneQueue.Register(ctx, r)
}

// A worker takes the place of a silent one of its name, whose tasks it gives up first; one that lives keeps the name.
func TestBackendNameTaken(t *testing.T) {
	t.Parallel()
	for _, alive := range []bool{false, true} {
		q := newQueue()
		b := &taken{oneQueue: q, alive: alive}
		w, err := worker.New(nil, optionsFor(t, b, nil))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		if !alive {
			got := wait.Receive(t, time.Minute, q.reports, "the task that was left is not given up")
			if got.ID != 3 || got.To != statemachine.Open || got.Node != "" {
				t.Errorf("%+v", got)
			}
			cancel()
		}
		err = wait.Receive(t, time.Minute, done, "it does not end")
		var name *worker.NameTakenError
		if alive != errors.As(err, &name) || alive && (!errors.Is(err, worker.ErrNameTaken) || name.Holder.Host != "elsewhere") {
			t.Errorf("alive %t: %v", alive, err)
		}
	}
}

// away is a queue that answers one more heartbeat once a round has begun, and then none.
type away struct {
	*oneQueue

	begun chan struct{}
	err   error         // of the others, if the worker asks what it is
	last  time.Time     // when it answered last
	over  chan struct{} // the lease that it told then would have ended
}

func (b *away) Renew(ctx context.Context, s worker.Session, h worker.Heartbeat) (worker.Renewal, error) {
	const lease = 10
	switch {
	case len(b.begun) == 0:
		return b.oneQueue.Renew(ctx, s, h)
	case b.last.IsZero():
		b.last = time.Now()
		return worker.Renewal{Lease: lease * statemachine.Second, Now: now(), Redis: now()}, nil
	case time.Since(b.last) > 1.5*lease*time.Second && len(b.over) == 0:
		b.over <- struct{}{}
	}
	if !h.Outlast {
		return worker.Renewal{}, task.ErrUnreachable
	}
	return worker.Renewal{}, b.err
}

// A round outlives the lease only where nobody can reach Redis, and the worker is to finish then.
func TestLongBackendAway(t *testing.T) {
	t.Parallel()
	gone := fmt.Errorf("%w: %w", task.ErrUnreachable, worker.ErrAway)
	for name, c := range map[string]struct {
		err      error
		loss     string
		outlives bool
	}{
		"away, finish":        {gone, "finish", true},
		"away, stop":          {gone, "stop", false},
		"unreachable, finish": {task.ErrUnreachable, "finish", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &away{oneQueue: newQueue(), begun: make(chan struct{}, 1), err: c.err, over: make(chan struct{}, 1)}
			stopped := make(chan error, 1)
			o := optionsFor(t, b, func(ctx context.Context, _ *worker.Job) error {
				b.begun <- struct{}{}
				select {
				case <-b.over:
				case <-ctx.Done():
				}
				stopped <- context.Cause(ctx)
				return ctx.Err()
			})
			o.OnRedisLoss = c.loss
			run(t, o)
			b.open(1, "")
			wait.Eventually(t, time.Minute, func() bool { return len(b.begun) > 0 }, "the handler is not called")
			b.renew <- struct{}{}
			err := wait.Receive(t, time.Minute, stopped, "the round goes on")
			if c.outlives != (err == nil) || err != nil && !errors.Is(err, worker.ErrLeaseLost) {
				t.Errorf("the cause of its end: %v", err)
			}
		})
	}
}

// A heartbeat that finds the session over stops the round, and the worker begins another session.
func TestBackendEndsSession(t *testing.T) {
	t.Parallel()
	begun, stopped := make(chan struct{}), make(chan error, 1)
	q := startWorker(t, func(ctx context.Context, _ *worker.Job) error {
		close(begun)
		<-ctx.Done()
		stopped <- context.Cause(ctx)
		return ctx.Err()
	})
	q.open(1, "")
	wait.Closed(t, time.Minute, begun, "the handler is not called")
	q.end()
	if err := wait.Receive(t, time.Minute, stopped, "the round goes on without a lease"); !errors.Is(err, worker.ErrLeaseLost) {
		t.Error(err)
	}
	wait.Eventually(t, time.Minute, func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.session.Incarnation == 2
	}, "it does not register again")
}
