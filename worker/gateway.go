package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Gateway is the site for workers that cannot, or must not, reach Redis, for instance those behind HTTP. Each call is a
// request of such a worker, which may be sent twice, and then is answered as if it was sent once. All that lasts is in
// Redis, so any gateway of the site answers any of them. A worker says how a round ended; the gateway decides what that
// means, and believes nothing about tasks that the worker does not hold.
type Gateway struct {
	site  gatewaySite
	close func() error

	mu       sync.Mutex
	sessions map[string]*guest // by the names of the workers, as they were seen last
	rules    chan struct{}     // closed when the rules change, which begins another one
}

// gatewaySite is what a gateway talks to.
type gatewaySite interface {
	Backend
	Worker(ctx context.Context, name string) (task.Worker, statemachine.Time, error)
	Now(ctx context.Context) (statemachine.Time, error)
	TasksByID(ctx context.Context, ids []int64) ([]*Former, error)
}

// mostSessions is how many sessions are remembered; those of others are read again.
const mostSessions = 10_000

// Close ends the connections.
func (g *Gateway) Close() error { return g.close() }

// rulesChanged ends all waits: there may be tasks of a kind that was never there, or a queue is not paused any more.
func (g *Gateway) rulesChanged() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.rules)
	g.rules = make(chan struct{})
}

// untilRules ends ctx when the rules change after this.
func (g *Gateway) untilRules(ctx context.Context) (context.Context, context.CancelFunc) {
	g.mu.Lock()
	changed := g.rules
	g.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-changed:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// guest is the session of a worker that speaks through a gateway.
type guest struct {
	Session

	mu      sync.Mutex // held from a claim to its answer, but not while that waits
	claims  *claimer
	clock   redisClock
	renewed time.Time             // when a heartbeat was sent last
	stops   []Stop                // as it said
	follows []followedTask        // as it said
	ahead   statemachine.Duration // how much the time of the site is ahead of that of Redis, as it said
	told    Standing              // what the worker has been told
}

// Standing is what a worker has to know of its session. The JSON names are those of the interface over HTTP.
type Standing struct {
	// Incarnation is the number of the session.
	Incarnation int64 `json:"incarnation" doc:"Number of the session, for the requests that follow."`
	// Lease is how long the worker may be silent before its tasks are given to others.
	Lease task.Seconds `json:"lease" doc:"How long the worker may be silent, in seconds; then its tasks go to others."`
	// Order is what an operator has ordered.
	Order task.WorkerCommand `json:"order" doc:"drain: it gets no tasks; stop: it is to end; or empty."`
	// Stops are rounds that the worker is to end.
	Stops []Stop `json:"stops" doc:"Rounds that it is to end."`
	// Followed are tasks whose output somebody reads just now.
	Followed []followedTask `json:"followed" doc:"Tasks whose output somebody reads just now: news may have it."`
	// Now is the time of the site, Redis that of the clock of Redis, which end_before is compared with.
	Now   time.Time `json:"now" doc:"Time of the site."`
	Redis time.Time `json:"redis_time" doc:"Time of the clock of Redis, which end_before is compared with."`
}

// followedTask is a task whose output somebody reads, all of it from the beginning, since a time.
type followedTask struct {
	Task  int64     `json:"task" doc:"Id of the task."`
	Since time.Time `json:"since" doc:"When the last of its readers began, who wants it from its beginning."`
}

// Stop is a round that a worker is to end.
type Stop struct {
	Task int64 `json:"task" doc:"Id of the task."`
	// Ended is what the report of the round is to say.
	Ended Ended `json:"ended" doc:"What the report is to say: cancelled or timed_out."`
}

// SessionRequest is what a worker says of itself when it registers. Texts are as in [worker] of its configuration.
type SessionRequest struct {
	Node         string `json:"node,omitempty" maxLength:"128" doc:"Its node, for limits; by default the address that it asks from."`
	Slots        int    `json:"slots,omitempty" minimum:"1" maximum:"1000" default:"1" doc:"How many tasks it runs at a time."`
	Version      string `json:"version,omitempty" maxLength:"100" doc:"What it says of its own version."`
	PID          int    `json:"pid,omitempty" minimum:"0" doc:"Its process id on its host, for people."`
	Env          string `json:"env,omitempty" doc:"As [worker] env."`
	Labels       string `json:"labels,omitempty" maxLength:"2000" doc:"As [worker] labels." example:"zone=a,os=linux"`
	Resources    string `json:"resources,omitempty" maxLength:"2000" doc:"As [worker] resources." example:"gpu=4"`
	Classes      string `json:"classes,omitempty" maxLength:"2000" doc:"As [worker] classes." example:"encode"`
	MaxThreads   string `json:"maxthreads,omitempty" doc:"As [worker] maxthreads."`
	HandlersOnly bool   `json:"handlers_only,omitempty" doc:"It takes no task without a class."`
	// Host is the name that its host has, Containment what keeps its programs in; for people.
	Host        string `json:"host,omitempty" maxLength:"255" doc:"Name of its host, for people; by default the address that it asks from."`
	Containment string `json:"containment,omitempty" maxLength:"100" doc:"What keeps its programs in, for people."`
	// Identity is unlike that of any other start of a process: a request that is sent again with it begins no other session.
	Identity string `json:"identity,omitempty" maxLength:"200" doc:"A text unlike that of any other start of a process."`
	// TakeOver says that the process that has the name is dead, or the caller itself.
	TakeOver bool `json:"take_over,omitempty" doc:"The process that has the name is dead, or this one itself; its session is over then."`
	// Replaces is the session that the caller knows to be dead, of all that may have the name.
	Replaces int64 `json:"replaces,omitempty" minimum:"1" doc:"The same of one session alone: its number."`
	// Keep says that tasks of an earlier session are not given up yet.
	Keep bool `json:"keep,omitempty" doc:"While an earlier session holds tasks, none begins: incarnation is 0, and lost has those tasks."`
}

// registration is what the site is told of a worker. The error is a *statemachine.FieldError.
func (r *SessionRequest) registration(name, host string) (task.Registration, error) {
	w, err := offered(map[string]string{
		"env": r.Env, "labels": r.Labels, "resources": r.Resources, "classes": r.Classes, "maxthreads": r.MaxThreads,
	})
	if err != nil {
		return task.Registration{}, err
	}
	return task.Registration{
		Name: name, Node: cmp.Or(r.Node, host), Host: cmp.Or(r.Host, host), PID: r.PID, Identity: overHTTP + cmp.Or(r.Identity, newToken()),
		Version: r.Version, Containment: cmp.Or(r.Containment, "http"), Replaces: r.Replaces, Slots: max(1, r.Slots),
		Env: w.Env, Labels: w.Labels, Resources: w.Resources, Classes: w.Classes,
		MaxThreads: w.MaxThreads, HandlersOnly: r.HandlersOnly,
	}, nil
}

// overHTTP begins the identity of a worker that speaks through a gateway.
const overHTTP = "http "

// offered reads texts of [worker].
func offered(texts map[string]string) (config.Worker, error) {
	w, err := config.Offer(texts)
	if wrong, ok := errors.AsType[*config.Error](err); ok {
		err = &statemachine.FieldError{Field: wrong.Key, Value: wrong.Value, Want: "right: " + wrong.Problem + "; " + wrong.Remedy}
	}
	return w, err
}

// Register begins a session of a worker at a host. While another process has the name the error is a [*NameTakenError],
// unless this one takes over. What an earlier session of the name still held is lost, and returned; with Keep it is only returned,
// and no session begins. The error is a *statemachine.FieldError, and nothing happens, if the worker cannot offer what it does.
func (g *Gateway) Register(ctx context.Context, name, host string, r *SessionRequest) (_ Standing, lost []int64, err error) {
	said, err := r.registration(name, host)
	if err != nil {
		return Standing{}, nil, err
	}
	lost = []int64{}
	for takeOver := r.TakeOver; ; {
		got, err := g.site.Register(ctx, said)
		if taken, ok := errors.AsType[*NameTakenError](err); ok && takeOver {
			said.Replaces, takeOver = taken.Holder.Incarnation, false
			continue
		}
		if err != nil {
			return Standing{}, nil, err
		}
		if len(got.Former) == 0 {
			return g.remember(&said, got.Session, got.Now).standing(), lost, nil
		}
		if r.Keep {
			for i := range got.Former {
				lost = append(lost, got.Former[i].ID)
			}
			return noStanding(got.Now), lost, nil
		}
		orders, err := losses(name, &got)
		if err != nil {
			return Standing{}, nil, err
		}
		turn := g.site.Turn(ctx, orders, nil)
		if turn.Moved != nil {
			return Standing{}, nil, turn.Moved
		}
		for _, o := range turn.Outcomes {
			if o.Err == nil { // else a server was first
				lost = append(lost, o.ID)
			}
		}
	}
}

// losses are the moves of tasks that a former session held. The error is about those that cannot be moved, which a server
// sets aside, if there is nothing else to move.
func losses(name string, r *Registered) (orders []Commit, err error) {
	var damaged []error
	for i := range r.Former {
		t := &r.Former[i]
		move, err := statemachine.Decide(&t.Task, statemachine.Occurrence{
			Event: statemachine.Lose, Actor: statemachine.Worker, FromLostEpoch: t.FromLostEpoch, Unbegun: t.Unbegun,
		}, r.Now)
		if err = errors.Join(t.Err, err); err != nil {
			damaged = append(damaged, fmt.Errorf("task %d: %w", t.ID, err))
			continue
		}
		orders = append(orders, Commit{Move: move, Writer: name, Bucket: t.Bucket})
	}
	if len(orders) == 0 {
		return nil, errors.Join(damaged...)
	}
	return orders, nil
}

// remember keeps a session that is known to exist.
func (g *Gateway) remember(r *task.Registration, session Session, now statemachine.Time) *guest {
	s := &guest{Session: session, clock: newClock(now), renewed: time.Now()}
	s.claims = newClaimer(g.site, newRulebook(g.site, r.Offer(), func() int { return 0 }, func() {}))
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.sessions) >= mostSessions {
		clear(g.sessions)
	}
	g.sessions[r.Name] = s
	return s
}

// session is that of a worker. The error matches [ErrLeaseLost] if it is over.
func (g *Gateway) session(ctx context.Context, name string, incarnation int64) (*guest, error) {
	g.mu.Lock()
	s := g.sessions[name]
	g.mu.Unlock()
	if s != nil && s.Incarnation == incarnation {
		return s, nil
	}
	over := fmt.Errorf("worker %s, incarnation %d: %w", name, incarnation, ErrLeaseLost)
	w, now, err := g.site.Worker(ctx, name)
	switch {
	case errors.Is(err, task.ErrNotFound):
		return nil, over
	case err != nil:
		return nil, err
	case w.Incarnation != incarnation || !w.State.Alive():
		return nil, over
	}
	session := Session{Name: name, ID: w.ID, Incarnation: incarnation, Order: w.Order}
	s = g.remember(&w.Registration, session, now)
	s.renewed = time.Time{} // what it is to stop is not known
	return s, nil
}

// SessionBeat is the heartbeat of a worker.
type SessionBeat struct {
	Incarnation int64 `json:"incarnation" minimum:"1" doc:"Number of the session."`
	// Busy is how many rounds it runs; the rest is what a tdf-worker says of itself, for those who look at workers.
	Busy   int              `json:"busy,omitempty" minimum:"0" maximum:"1000" doc:"How many rounds it runs, for those who look at workers."`
	Stuck  int              `json:"stuck,omitempty" minimum:"0" maximum:"1000" doc:"How many slots hold a round that does not end."`
	State  task.WorkerState `json:"state,omitempty" enum:"ready,draining,drained" doc:"What it does; by default as it is ordered."`
	Reason string           `json:"reason,omitempty" maxLength:"2000" doc:"Why it takes no tasks."`
	Queues []task.QueueUse  `json:"queues,omitempty" maxItems:"1000" doc:"What it has for which queue."`
}

// Renew is the heartbeat of a worker. The error matches [ErrLeaseLost] if its session is over.
func (g *Gateway) Renew(ctx context.Context, name string, b *SessionBeat) (Standing, error) {
	s, err := g.session(ctx, name, b.Incarnation)
	if err != nil {
		return Standing{}, err
	}
	err = g.renew(ctx, s, b)
	return s.standing(), err
}

// heartbeat is what the site is told.
func (b *SessionBeat) heartbeat(order task.WorkerCommand, quarantined string) Heartbeat {
	h := Heartbeat{State: b.State, Busy: b.Busy, Stuck: b.Stuck, Queues: b.Queues, Reason: cmp.Or(b.Reason, quarantined)}
	switch {
	case h.State != "":
	case order == task.NoCommand:
		h.State = task.WorkerReady
	case h.Busy == 0:
		h.State = task.WorkerDrained
	default:
		h.State = task.WorkerDraining
	}
	return h
}

func (g *Gateway) renew(ctx context.Context, s *guest, b *SessionBeat) error {
	s.mu.Lock()
	session := s.Session
	s.mu.Unlock()
	sent := time.Now()
	r, err := g.site.Renew(ctx, session, b.heartbeat(session.Order, s.claims.rules.last().quarantined))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewed, s.Lease, s.Order, s.clock = sent, cmp.Or(r.Lease, s.Lease), r.Order, newClock(r.Now)
	s.stops, s.follows, s.ahead = nil, nil, r.Now.Sub(r.Redis)
	for _, id := range r.Stops {
		s.stops = append(s.stops, Stop{Task: id, Ended: EndedCancelled})
	}
	for _, id := range r.Overdue {
		if !slices.Contains(r.Stops, id) {
			s.stops = append(s.stops, Stop{Task: id, Ended: EndedOverdue})
		}
	}
	for _, f := range r.Followed {
		s.follows = append(s.follows, followedTask{Task: f.ID, Since: task.Moment(f.Since)})
	}
	return nil
}

// standing is what the worker is told now.
func (s *guest) standing() Standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.now()
	s.told = Standing{
		Incarnation: s.Incarnation, Lease: task.Seconds(timing.ToStd(s.Lease)), Order: s.Order, Stops: append([]Stop{}, s.stops...),
		Followed: append([]followedTask{}, s.follows...), Now: task.Moment(now), Redis: task.Moment(now.Add(-s.ahead)),
	}
	return s.told
}

// noStanding is that of a worker without a session.
func noStanding(now statemachine.Time) Standing {
	return Standing{Stops: []Stop{}, Followed: []followedTask{}, Now: task.Moment(now), Redis: task.Moment(now)}
}

// untold reports whether the worker is to do something that it has not been told: then it waits no longer.
func (s *guest) untold() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Order == task.CommandStop && s.told.Order != s.Order ||
		slices.ContainsFunc(s.stops, func(stop Stop) bool { return !slices.Contains(s.told.Stops, stop) })
}

// ordered reports whether an operator wants the worker to get nothing.
func (s *guest) ordered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Order != task.NoCommand
}

// usualBeats is the time between two heartbeats for the usual lease.
const usualBeats = 5 * time.Second

// due reports whether a heartbeat is due: a third of the lease after the last.
func (s *guest) due() bool { return s.untilBeat() <= 0 }

func (s *guest) untilBeat() time.Duration {
	beats := s.beats()
	s.mu.Lock()
	defer s.mu.Unlock()
	return beats - time.Since(s.renewed)
}

// beats is the time between two heartbeats, or a usual one where the lease is not known yet.
func (s *guest) beats() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(timing.ToStd(s.Lease)/3, usualBeats)
}

// Leave ends the session of a worker that holds nothing any more. The error matches [task.ErrNotEnded] if it does, and
// [ErrLeaseLost] if the session is over.
func (g *Gateway) Leave(ctx context.Context, name string, incarnation int64) error {
	err := g.site.Leave(ctx, Session{Name: name, Incarnation: incarnation})
	if errors.Is(err, errHolding) {
		return fmt.Errorf("%w: %w; report how they ended, or hand them back", task.ErrNotEnded, err)
	}
	return err
}

// Tell records news of a round that runs. The error matches statemachine.ErrStale if the round is over, or not the worker's.
func (g *Gateway) Tell(ctx context.Context, name string, n *RoundNews) error {
	if err := n.check(); err != nil {
		return err
	}
	s, err := g.session(ctx, name, n.Incarnation)
	if err != nil {
		return err
	}
	known, err := g.facts(ctx, name, n.RoundRef)
	if err != nil {
		return err
	}
	if known[0].err != nil {
		return known[0].err
	}
	return g.site.Tell(ctx, name, n.task(), n.news(s.now()))
}

func (s *guest) now() statemachine.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock.now()
}
