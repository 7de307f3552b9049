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
	sessions map[string]*remote // by the names of the workers, as they were seen last
	rules    chan struct{}      // closed when the rules change, which begins another one
}

// gatewaySite is what a gateway talks to.
type gatewaySite interface {
	Backend
	Worker(ctx context.Context, name string) (task.Worker, statemachine.Time, error)
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

// remote is the session of a worker that speaks through a gateway.
type remote struct {
	Session

	mu      sync.Mutex // held from a claim to its answer, but not while that waits
	claims  *claimer
	clock   redisClock
	renewed time.Time // when a heartbeat was sent last
	stops   []Stop    // as it said
	told    Standing  // what the worker has been told
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
	// Identity is unlike that of any other start of a process: a request that is sent again with it begins no other session.
	Identity string `json:"identity,omitempty" maxLength:"100" doc:"A text unlike that of any other start of a process."`
	// TakeOver says that the process that has the name is dead, or the caller itself.
	TakeOver bool `json:"take_over,omitempty" doc:"The process that has the name is dead, or this one itself; its session is over then."`
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
		Name: name, Node: cmp.Or(r.Node, host), Host: host, PID: r.PID, Identity: "http " + cmp.Or(r.Identity, newToken()), Version: r.Version,
		Containment: "http", Slots: max(1, r.Slots), Env: w.Env, Labels: w.Labels, Resources: w.Resources, Classes: w.Classes,
		MaxThreads: w.MaxThreads, HandlersOnly: r.HandlersOnly,
	}, nil
}

// offered reads texts of [worker].
func offered(texts map[string]string) (config.Worker, error) {
	w, err := config.Offer(texts)
	if wrong, ok := errors.AsType[*config.Error](err); ok {
		err = &statemachine.FieldError{Field: wrong.Key, Value: wrong.Value, Want: "right: " + wrong.Problem + "; " + wrong.Remedy}
	}
	return w, err
}

// Register begins a session of a worker at a host. While another process has the name the error is a [*NameTakenError],
// unless this one takes over. What an earlier session of the name still held is lost, and returned. The error is a
// *statemachine.FieldError, and nothing happens, if the worker cannot offer what it does.
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
func (g *Gateway) remember(r *task.Registration, session Session, now statemachine.Time) *remote {
	s := &remote{Session: session, clock: newClock(now), renewed: time.Now()}
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
func (g *Gateway) session(ctx context.Context, name string, incarnation int64) (*remote, error) {
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

// Renew is the heartbeat of a worker that runs busy rounds. The error matches [ErrLeaseLost] if its session is over.
func (g *Gateway) Renew(ctx context.Context, name string, incarnation int64, busy int) (Standing, error) {
	s, err := g.session(ctx, name, incarnation)
	if err != nil {
		return Standing{}, err
	}
	err = g.renew(ctx, s, busy)
	return s.standing(), err
}

func (g *Gateway) renew(ctx context.Context, s *remote, busy int) error {
	s.mu.Lock()
	session := s.Session
	s.mu.Unlock()
	h := Heartbeat{State: task.WorkerReady, Busy: busy, Reason: s.claims.rules.last().quarantined}
	if session.Order != task.NoCommand {
		h.State = task.WorkerDraining
		if busy == 0 {
			h.State = task.WorkerDrained
		}
	}
	sent := time.Now()
	r, err := g.site.Renew(ctx, session, h)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewed, s.Lease, s.Order = sent, cmp.Or(r.Lease, s.Lease), r.Order
	s.stops = nil
	for _, id := range r.Stops {
		s.stops = append(s.stops, Stop{Task: id, Ended: EndedCancelled})
	}
	for _, id := range r.Overdue {
		if !slices.Contains(r.Stops, id) {
			s.stops = append(s.stops, Stop{Task: id, Ended: EndedOverdue})
		}
	}
	return nil
}

// standing is what the worker is told now.
func (s *remote) standing() Standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = Standing{
		Incarnation: s.Incarnation, Lease: task.Seconds(timing.ToStd(s.Lease)), Order: s.Order, Stops: append([]Stop{}, s.stops...),
	}
	return s.told
}

// untold reports whether the worker is to do something that it has not been told: then it waits no longer.
func (s *remote) untold() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Order == task.CommandStop && s.told.Order != s.Order ||
		slices.ContainsFunc(s.stops, func(stop Stop) bool { return !slices.Contains(s.told.Stops, stop) })
}

// ordered reports whether an operator wants the worker to get nothing.
func (s *remote) ordered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Order != task.NoCommand
}

// due reports whether a heartbeat is due: a third of the lease after the last.
func (s *remote) due() bool { return s.untilBeat() <= 0 }

func (s *remote) untilBeat() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return timing.ToStd(s.Lease)/3 - time.Since(s.renewed)
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

func (s *remote) now() statemachine.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock.now()
}
