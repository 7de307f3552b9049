package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// maxFormer is the most tasks of an earlier session one registration returns.
const maxFormer = 100

// maxLost is the most workers one call of [Store.Lost] fences.
const maxLost = 16

// over is what scripts answer to a session that is over.
const over = -1

func leaseLost(op, name string, incarnation int64) error {
	return fmt.Errorf("%s: worker %s, incarnation %d: %w", op, quote(name), incarnation, ErrLeaseLost)
}

// Register makes a worker known under its name and begins its lease. While
// another has the name the error is a *[NameTakenError], matching
// [ErrNameTaken]. Silence alone never frees a name, because the clock of Redis
// runs on while Redis is away: only a verdict of [Store.Lost], [Store.Leave] and
// Replaces do.
func (s *Store) Register(ctx context.Context, r task.Registration) (Registered, error) {
	if err := checkRegistration(&r); err != nil {
		return Registered{}, err
	}
	fields := registrationFields(&r)
	args := append([]any{
		r.Name, r.Replaces, r.Identity, DefaultLease, string(statemachine.Running), maxFormer,
		string(task.WorkerReady), string(task.WorkerLost), string(task.WorkerStopped), string(task.OrderDrain), task.DefaultBucketName, r.PID, r.Node,
		len(fields),
	}, fields...)
	v, err := s.runOn(ctx, s.session, "register", subject{worker: r.Name}, args...)
	if err != nil {
		return Registered{}, err
	}
	return s.registered(r.Name, asReply(v))
}

// checkRegistration returns a *statemachine.FieldError for what cannot be.
func checkRegistration(r *task.Registration) error {
	switch {
	case r.Name == "":
		return &statemachine.FieldError{Field: "name", Value: r.Name, Want: "a worker's name"}
	case r.Identity == "":
		return &statemachine.FieldError{Field: "identity", Value: r.Identity, Want: "a text that is unique for the start of a process"}
	case r.Node != "":
		return task.CheckNode(r.Node)
	}
	return nil
}

// registrationFields are what the script takes as it is.
func registrationFields(r *task.Registration) []any {
	return []any{
		"node", r.Node, "host", r.Host, "version", r.Version, "containment", r.Containment,
		"slots", r.Slots, "labels", strings.Join(r.Labels, ","), "busy", 0, "stuck", 0, "reason", "",
		"env", r.Env, resourcesField, r.Resources.Text(), "classes", strings.Join(r.Classes, ","),
		"maxthreads", r.MaxThreads.Text(),
		"spec_version", SpecVersion, "queuetypes", queueTypes(r.Classes),
	}
}

// SpecVersion is that of Disbatch's node specification which the registry follows.
const SpecVersion = "1.1"

// queueTypes are the classes the worker offers, as a Disbatch node says it.
func queueTypes(classes []string) string {
	types := make([]queueType, len(classes))
	for i, class := range classes {
		types[i].Class, types[i].Version, _ = strings.Cut(class, "=")
	}
	text, err := json.Marshal(types)
	if err != nil { // two texts can always be written
		return "[]"
	}
	return string(text)
}

// queueType is a class of queues that a node serves (Disbatch: queuetypes).
type queueType struct {
	Class   string `json:"class"`
	Version string `json:"version"`
}

// registered reads the answer to a registration.
func (s *Store) registered(name string, answer reply) (Registered, error) {
	reg := Registered{Now: answer.time(1)}
	switch answer.text(0) {
	case "registered":
		reg.Session = Session{
			Name: name, ID: answer.number(2), Incarnation: answer.number(3), Lease: answer.duration(4),
			Order: task.WorkerOrder(answer.text(5)),
		}
		return reg, nil
	case "taken":
		holder := decodeWorker(name, reg.Now, answer.time(2), answer.list(4))
		return reg, &NameTakenError{Holder: holder, Silent: reg.Now.Sub(answer.time(2)), Lease: answer.duration(3)}
	default:
		reg.Former = decodeSeenList(answer.list(2), clock{now: reg.Now})
		for i := range reg.Former {
			reg.Former[i].Void = s.FromLostEpoch(&reg.Former[i].Task)
		}
		return reg, nil
	}
}

// Renew is the heartbeat: it prolongs the lease. The error matches
// [ErrLeaseLost] if the lease was given up meanwhile; then every round is lost
// and the worker has to register again. To a worker that asks (see
// [Heartbeat].Outlast) it matches [ErrAway] if nobody can reach Redis.
func (s *Store) Renew(ctx context.Context, w Session, h Heartbeat) (Renewal, error) {
	queues, err := json.Marshal(append([]task.QueueUse{}, h.Queues...))
	if err != nil {
		return Renewal{}, fmt.Errorf("renew: %w", err)
	}
	v, err := s.runOn(ctx, s.session, "renew", subject{worker: w.Name},
		w.Name, w.Incarnation, DefaultLease, string(task.WorkerLost), string(task.WorkerStopped),
		string(h.State), h.Reason, h.Busy, h.Stuck, string(queues))
	if err != nil && h.Outlast && s.away(ctx, err) {
		err = awayError{err}
	}
	if err != nil {
		return Renewal{}, err
	}
	if v == int64(over) {
		return Renewal{}, leaseLost("renew", w.Name, w.Incarnation)
	}
	r := asReply(v)
	renewal := Renewal{Now: r.time(0), Redis: clockOf(r, 6).Redis(), Lease: r.duration(1), Order: task.WorkerOrder(r.text(2))}
	for i := range r.list(3) {
		f := r.list(3).list(i)
		renewal.Followed = append(renewal.Followed, Followed{ID: f.number(0), Since: f.time(1)})
	}
	for i := range r.list(4) {
		renewal.Stops = append(renewal.Stops, r.list(4).number(i))
	}
	for i := range r.list(5) {
		renewal.Overdue = append(renewal.Overdue, r.list(5).number(i))
	}
	return renewal, nil
}

// Leave ends the session of a worker that holds nothing any more. The error
// matches [ErrHolding] if it does, and [ErrLeaseLost] if the session is over.
func (s *Store) Leave(ctx context.Context, w Session) error {
	v, err := s.runOn(ctx, s.session, "leave", subject{worker: w.Name},
		w.Name, w.Incarnation, string(task.WorkerLost), string(task.WorkerStopped), string(statemachine.Running))
	switch {
	case err != nil:
		return err
	case v == int64(over):
		return leaseLost("leave", w.Name, w.Incarnation)
	case v != int64(0):
		return fmt.Errorf("leave: worker %s, %v tasks: %w", quote(w.Name), v, ErrHolding)
	}
	return nil
}

// NameTakenError says who has a worker's name. It matches [ErrNameTaken].
type NameTakenError struct {
	// Holder is the worker that has the name.
	Holder task.Worker
	// Silent is how long it has not been heard of, by the clock of Redis, which
	// runs on while Redis is away. Lease is how long it may be silent.
	Silent, Lease statemachine.Duration
}

// Error implements error.
func (e *NameTakenError) Error() string {
	h := &e.Holder
	return fmt.Sprintf("%v: worker %s runs as process %d on host %s (node %s) and was heard of %s ago; "+
		"stop it, give this worker another name, or, if it is dead, start this one again and let it watch for %s",
		ErrNameTaken, quote(h.Name), h.PID, quote(h.Host), quote(h.Node), roughly(e.Silent), roughly(e.Lease))
}

// Unwrap returns [ErrNameTaken].
func (e *NameTakenError) Unwrap() error { return ErrNameTaken }

// roughly writes a time span for people.
func roughly(d statemachine.Duration) string {
	return (time.Duration(d) * time.Microsecond).Round(100 * time.Millisecond).String()
}

// DefaultLease is the lease in seconds where no server has published another.
const DefaultLease = 15

// Watched says that the caller has watched for the time Span, by its own clock, that
// who sent the last heartbeat before the time Until of the namespace has sent none since.
// The zero value leaves the lease to the time of the namespace, which may jump ahead.
type Watched struct {
	Span  statemachine.Duration
	Until statemachine.Time
}

// args are those of the script.
func (w Watched) args() []any {
	if w.Span == 0 {
		return []any{"", ""}
	}
	return []any{w.Span.Text(), w.Until.Text()}
}

// Lost reads the workers whose lease is over with their tasks, at most limit of
// each, and fences them: they can neither renew nor claim any more. One that
// holds nothing is taken off the list. Repeat until no worker is left, but for
// those with an Err or with tasks that cannot be moved, which come again.
func (s *Store) Lost(ctx context.Context, limit int, watched Watched) (Lost, error) {
	r, err := s.runList(ctx, "lost", subject{},
		append([]any{DefaultLease, maxLost, limit, string(statemachine.Running), string(task.WorkerLost)}, watched.args()...)...)
	if err != nil {
		return Lost{}, err
	}
	at := clockOf(r, 4)
	lost := Lost{Now: at.now, Next: r.time(1), Longest: r.duration(3)}
	for i := range r.list(2) {
		w := r.list(2).list(i)
		one := LostWorker{
			Name: w.text(0), Incarnation: w.number(1), Silent: lost.Now.Sub(w.time(2)), Tasks: decodeSeenList(w.list(4), at),
		}
		if key := w.text(3); key != "" {
			one.Err = fmt.Errorf("worker %s: %w: the key %s:<name> has another type; delete it", quote(one.Name), ErrDamaged, key)
		}
		lost.Workers = append(lost.Workers, one)
	}
	return lost, nil
}

// PublishLease sets the lease for all workers, and where it is another one calls them, so that they renew and hear of it at
// once. One that was told a longer lease keeps it until its next heartbeat.
func (s *Store) PublishLease(ctx context.Context, lease statemachine.Duration) error {
	if lease <= 0 {
		return &statemachine.FieldError{Field: "worker_timeout", Value: lease.Text(), Want: "more than 0 seconds"}
	}
	was, err := s.rdb.HGet(ctx, s.keys.meta(), "worker_timeout").Result()
	if err == nil && was == lease.Text() {
		return nil
	}
	if err := s.rdb.HSet(ctx, s.keys.meta(), "worker_timeout", lease.Text(), "protocol", Protocol).Err(); err != nil {
		return s.failed("publish", err)
	}
	names, err := s.rdb.ZRange(ctx, s.keys.lease(), 0, -1).Result()
	if err != nil {
		return s.failed("publish", err)
	}
	return s.pipelined(ctx, "publish", func(p redis.Pipeliner) {
		for _, name := range names {
			p.Publish(ctx, s.keys.call(name), "1")
		}
	})
}

// Lease returns what a server has published by [Store.PublishLease], or
// [DefaultLease] seconds where none has.
func (s *Store) Lease(ctx context.Context) (statemachine.Duration, error) {
	lease, _, err := s.published(ctx, "worker_timeout", DefaultLease*statemachine.Second)
	return lease, err
}

// published reads a time span that servers set for all, and reports whether one has.
func (s *Store) published(
	ctx context.Context, field string, otherwise statemachine.Duration,
) (d statemachine.Duration, set bool, err error) {
	text, err := s.rdb.HGet(ctx, s.keys.meta(), field).Result()
	if isNil(err) {
		return otherwise, false, nil
	}
	if err != nil {
		return 0, false, s.failed(field, err)
	}
	if d, err = statemachine.ParseDuration(text); err != nil {
		return 0, false, fmt.Errorf("meta %s: %w", field, err)
	}
	return d, true, nil
}
