package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// maxFormer is the most tasks of an earlier session one registration returns.
const maxFormer = 100

// maxLost is the most workers one call of [Fleet.Lost] fences.
const maxLost = 16

// Register makes a worker known under its name and begins its lease. While
// another has the name the error is a *[NameTakenError], matching
// [conn.ErrNameTaken]. Silence alone never frees a name, because the clock of Redis
// runs on while Redis is away: only a verdict of [Fleet.Lost], [Fleet.Leave] and
// Replaces do.
func (s *Fleet) Register(ctx context.Context, r task.Registration) (Registered, error) {
	if err := checkRegistration(&r); err != nil {
		return Registered{}, err
	}
	fields := registrationFields(&r)
	args := append([]any{
		r.Name, r.Replaces, r.Identity, DefaultLease, string(statemachine.Running), maxFormer,
		string(task.WorkerReady), string(task.WorkerLost), string(task.WorkerStopped), string(task.CommandDrain),
		task.DefaultBucketName, r.PID, r.Node,
		len(fields),
	}, fields...)
	v, err := s.RunOn(ctx, s.Session, "register", conn.Subject{Worker: r.Name}, args...)
	if err != nil {
		return Registered{}, err
	}
	return s.registered(r.Name, conn.AsReply(v))
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
		"env", r.Env, tasks.ResourcesField, r.Resources.Text(), "classes", strings.Join(r.Classes, ","),
		"maxthreads", r.MaxThreads.Text(), "handlers_only", conn.Flag(r.HandlersOnly),
		"spec_version", task.DisbatchSpec, "queuetypes", queueTypes(r.Classes),
	}
}

// queueTypes are the classes the worker offers, as a Disbatch node says it.
func queueTypes(classes []string) string {
	text, err := json.Marshal(task.QueueTypes(classes))
	if err != nil { // two texts can always be written
		return "[]"
	}
	return string(text)
}

// registered reads the answer to a registration.
func (s *Fleet) registered(name string, answer conn.Reply) (Registered, error) {
	reg := Registered{Now: answer.Time(1)}
	switch answer.Text(0) {
	case "registered":
		reg.Session = Session{
			Name: name, ID: answer.Number(2), Incarnation: answer.Number(3), Lease: answer.Duration(4),
			Order: task.WorkerCommand(answer.Text(5)),
		}
		return reg, nil
	case "taken":
		holder := decodeWorker(name, reg.Now, answer.Time(2), answer.List(4))
		return reg, &NameTakenError{Holder: holder, Silent: reg.Now.Sub(answer.Time(2)), Lease: answer.Duration(3)}
	default:
		reg.Former = tasks.DecodeSeenList(answer.List(2), conn.Clock{Now: reg.Now})
		for i := range reg.Former {
			reg.Former[i].FromLostEpoch = s.FromLostEpoch(&reg.Former[i].Task)
		}
		tasks.MarkUnbegun(reg.Former, int(answer.Number(3)))
		return reg, nil
	}
}

// Renew is the heartbeat: it prolongs the lease. The error matches
// [conn.ErrLeaseLost] if the lease was given up meanwhile; then every round is lost
// and the worker has to register again. To a worker that asks (see
// [Heartbeat].Outlast) it matches [conn.ErrAway] if nobody can reach Redis.
func (s *Fleet) Renew(ctx context.Context, w Session, h Heartbeat) (Renewal, error) {
	queues, err := json.Marshal(append([]task.QueueUse{}, h.Queues...))
	if err != nil {
		return Renewal{}, fmt.Errorf("renew: %w", err)
	}
	v, err := s.RunOn(ctx, s.Session, "renew", conn.Subject{Worker: w.Name},
		w.Name, w.Incarnation, DefaultLease, string(task.WorkerLost), string(task.WorkerStopped),
		string(h.State), h.Reason, h.Busy, h.Stuck, string(queues))
	if err != nil && h.Outlast && s.Away(ctx, err) {
		err = awayError{err}
	}
	if err != nil {
		return Renewal{}, err
	}
	if v == int64(tasks.Over) {
		return Renewal{}, tasks.LeaseLost("renew", w.Name, w.Incarnation)
	}
	r := conn.AsReply(v)
	renewal := Renewal{Now: r.Time(0), Redis: conn.ClockOf(r, 6).Redis(), Lease: r.Duration(1), Order: task.WorkerCommand(r.Text(2))}
	for i := range r.List(3) {
		f := r.List(3).List(i)
		renewal.Followed = append(renewal.Followed, Followed{ID: f.Number(0), Since: f.Time(1)})
	}
	for i := range r.List(4) {
		renewal.Stops = append(renewal.Stops, r.List(4).Number(i))
	}
	for i := range r.List(5) {
		renewal.Overdue = append(renewal.Overdue, r.List(5).Number(i))
	}
	return renewal, nil
}

// Leave ends the session of a worker that holds nothing any more. The error
// matches [conn.ErrHolding] if it does, and [conn.ErrLeaseLost] if the session is over.
func (s *Fleet) Leave(ctx context.Context, w Session) error {
	v, err := s.RunOn(ctx, s.Session, "leave", conn.Subject{Worker: w.Name},
		w.Name, w.Incarnation, string(task.WorkerLost), string(task.WorkerStopped), string(statemachine.Running))
	switch {
	case err != nil:
		return err
	case v == int64(tasks.Over):
		return tasks.LeaseLost("leave", w.Name, w.Incarnation)
	case v != int64(0):
		return fmt.Errorf("leave: worker %s, %v tasks: %w", conn.Quote(w.Name), v, conn.ErrHolding)
	}
	return nil
}

// NameTakenError says who has a worker's name. It matches [conn.ErrNameTaken].
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
		conn.ErrNameTaken, conn.Quote(h.Name), h.PID, conn.Quote(h.Host), conn.Quote(h.Node), roughly(e.Silent), roughly(e.Lease))
}

// Unwrap returns [conn.ErrNameTaken].
func (e *NameTakenError) Unwrap() error { return conn.ErrNameTaken }

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
// each, or as many as it can hold if that is more, in the order of
// [tasks.MarkUnbegun], and fences them: they can neither renew nor claim any
// more. One that holds nothing is taken off the list. Repeat until no worker is
// left, but for those with an Err or with tasks that cannot be moved, which
// come again.
func (s *Fleet) Lost(ctx context.Context, limit int, watched Watched) (Lost, error) {
	r, err := s.RunList(ctx, "lost", conn.Subject{},
		append([]any{DefaultLease, maxLost, limit, string(statemachine.Running), string(task.WorkerLost)}, watched.args()...)...)
	if err != nil {
		return Lost{}, err
	}
	at := conn.ClockOf(r, 4)
	lost := Lost{Now: at.Now, Next: r.Time(1), Longest: r.Duration(3)}
	for i := range r.List(2) {
		w := r.List(2).List(i)
		one := LostWorker{
			Name: w.Text(0), Incarnation: w.Number(1), Silent: lost.Now.Sub(w.Time(2)), Tasks: tasks.DecodeSeenList(w.List(4), at),
		}
		tasks.MarkUnbegun(one.Tasks, int(w.Number(5)))
		if key := w.Text(3); key != "" {
			one.Err = fmt.Errorf("worker %s: %w: the key %s:<name> has another type; delete it", conn.Quote(one.Name), task.ErrDamaged, key)
		}
		lost.Workers = append(lost.Workers, one)
	}
	return lost, nil
}

// PublishLease sets the lease for all workers, and where it is another one calls them, so that they renew and hear of it at
// once. One that was told a longer lease keeps it until its next heartbeat.
func (s *Fleet) PublishLease(ctx context.Context, lease statemachine.Duration) error {
	if lease <= 0 {
		return &statemachine.FieldError{Field: "worker_timeout", Value: lease.Text(), Want: "more than 0 seconds"}
	}
	was, err := s.Redis.HGet(ctx, s.Keys.Meta(), "worker_timeout").Result()
	if err == nil && was == lease.Text() {
		return nil
	}
	if err := s.Redis.HSet(ctx, s.Keys.Meta(), "worker_timeout", lease.Text(), "protocol", conn.Protocol).Err(); err != nil {
		return s.Failed("publish", err)
	}
	names, err := s.Redis.ZRange(ctx, s.Keys.Lease(), 0, -1).Result()
	if err != nil {
		return s.Failed("publish", err)
	}
	return s.Pipelined(ctx, "publish", func(p redis.Pipeliner) {
		for _, name := range names {
			p.Publish(ctx, s.Keys.Call(name), "1")
		}
	})
}

// Lease returns what a server has published by [Fleet.PublishLease], or
// [DefaultLease] seconds where none has.
func (s *Fleet) Lease(ctx context.Context) (statemachine.Duration, error) {
	lease, _, err := s.Published(ctx, "worker_timeout", DefaultLease*statemachine.Second)
	return lease, err
}

// Grace returns what a server has published by [conn.Conn.PublishGrace], or
// [DefaultGrace] seconds where none has: published tells the two apart.
func (s *Fleet) Grace(ctx context.Context) (grace statemachine.Duration, published bool, err error) {
	return s.Published(ctx, "timeout_grace", tasks.DefaultGrace*statemachine.Second)
}

// Site is the namespace that a worker works for.
type Site struct {
	Namespace string
	// Mark tells it from one of the same name elsewhere; it can be part of a file name.
	Mark string
	// Version is that of Redis, empty where it does not say.
	Version string
	// Grace is how long servers leave an overdue round to its worker,
	// statemachine.Forever where none has said it.
	Grace statemachine.Duration
	// Warnings are sentences for the log: legal, but unwise.
	Warnings []string
}

// Site is [conn.Conn.Check] for a worker, with what it has to know of the namespace
// before it registers.
func (s *Fleet) Site(ctx context.Context) (Site, error) {
	info, err := s.Check(ctx)
	if err != nil {
		return Site{}, err
	}
	site := Site{Namespace: s.Namespace(), Mark: s.Mark(), Version: info.Version, Grace: statemachine.Forever, Warnings: info.Warnings}
	grace, published, err := s.Grace(ctx)
	if published {
		site.Grace = grace
	}
	return site, err
}

// awayError is an error that matches [conn.ErrAway] as well.
type awayError struct{ error }

// Is reports whether target is ErrAway.
func (awayError) Is(target error) bool { return target == conn.ErrAway }

// Unwrap returns the error.
func (e awayError) Unwrap() error { return e.error }
