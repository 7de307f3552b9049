package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Session is a registered worker. Its lease ends if it is not renewed.
type Session struct {
	Name string
	// ID stays with the name; Incarnation is raised by each registration.
	ID, Incarnation int64
	// Lease is how long the worker may be silent.
	Lease statemachine.Duration
	// Order is what an operator has ordered for the name.
	Order task.WorkerCommand
}

// Registered is the answer to a registration.
type Registered struct {
	Session
	// Former are tasks that an earlier incarnation still holds. While there are
	// any the worker is not registered: move them (event Lose) and register again.
	Former []tasks.TaskHeader
	Now    statemachine.Time
}

// ReasonQuarantined begins the reason of a worker whose node is in quarantine.
const ReasonQuarantined = "the node is quarantined"

// Heartbeat is what a worker says of itself when it renews its lease.
type Heartbeat struct {
	State task.WorkerState
	// Reason is why nothing is claimed, for people; empty if there is no reason.
	Reason string
	// Busy slots run a task; stuck ones hold one that does not end.
	Busy, Stuck int
	Queues      []task.QueueUse
	// Outlast says that the worker goes on while nobody can reach Redis: the error of
	// [Fleet.Renew] then says so (see [conn.ErrAway]). It is not recorded.
	Outlast bool
}

// Renewal is the answer to a heartbeat.
type Renewal struct {
	Lease statemachine.Duration
	Order task.WorkerCommand
	// Followed are tasks of this worker whose output somebody reads just now.
	Followed []Followed
	// Stops are tasks of this worker that it has to stop (see [tasks.Tasks.AskStop]).
	Stops []int64
	// Overdue are those whose time is over, for servers (see [tasks.Tasks.TellOverdue]), at
	// the time Redis by TIME.
	Overdue    []int64
	Now, Redis statemachine.Time
}

// Followed is a task whose output somebody reads. Since is when the last of its
// readers began, who wants it from its beginning.
type Followed struct {
	ID    int64
	Since statemachine.Time
}

// LostWorker is a worker whose lease is over.
type LostWorker struct {
	Name        string
	Incarnation int64
	// Silent is how long it has not been heard of.
	Silent statemachine.Duration
	// Tasks are those it holds, at most the limit of the call.
	Tasks []tasks.TaskHeader
	// Err says that the worker's keys are damaged by hand, so that it was not
	// fenced; somebody has to delete the key it names. Else nil.
	Err error
}

// Lost are the workers whose lease is over.
type Lost struct {
	Workers []LostWorker
	// Next is when the next lease ends, or Never.
	Next statemachine.Time
	Now  statemachine.Time
	// Longest is the longest lease of a worker that is silent for whom the caller has
	// not watched long enough, 0 if there is none.
	Longest statemachine.Duration
}

// maxWorkersRead is how many workers one script reads.
const maxWorkersRead = 100

// Workers lists the registered workers by name, also those that have ended;
// the time is that of the reading.
func (s *Fleet) Workers(ctx context.Context) ([]task.Worker, statemachine.Time, error) {
	names, err := s.Redis.SMembers(ctx, s.Keys.Worker()).Result()
	if err != nil {
		return nil, 0, s.Failed("workers", err)
	}
	slices.Sort(names)
	all := []task.Worker{}
	now := statemachine.Time(0)
	for part := range slices.Chunk(names, maxWorkersRead) {
		var found []task.Worker
		if found, now, err = s.readWorkers(ctx, part); err != nil {
			return nil, 0, err
		}
		all = append(all, found...)
	}
	if now == 0 {
		now, err = s.Now(ctx)
	}
	return all, now, err
}

// Worker returns one worker by name, or an error matching [task.ErrNoWorker].
func (s *Fleet) Worker(ctx context.Context, name string) (task.Worker, statemachine.Time, error) {
	found, now, err := s.readWorkers(ctx, []string{name})
	if err != nil {
		return task.Worker{}, 0, err
	}
	if len(found) == 0 {
		return task.Worker{}, now, noWorker(name)
	}
	return found[0], now, nil
}

// DismissWorkers takes away what is known of workers that have left, or were lost, that long ago, among some of those on the
// list, from cursor on: it returns how many, and where to go on, 0 at the end of the list. One with a drain that was not
// taken back stays. The next registration of a name gets another ID and a higher incarnation than any that was taken away.
func (s *Fleet) DismissWorkers(ctx context.Context, age time.Duration, cursor uint64) (gone int, next uint64, err error) {
	names, next, err := s.Scanned("dismiss workers", s.Redis.SScan(ctx, s.Keys.Worker(), cursor, "", maxWorkersRead), false)
	if err != nil {
		return 0, 0, err
	}
	for part := range slices.Chunk(names, maxWorkersRead) {
		fixed := []any{timing.FromStd(age).Text(), string(task.WorkerLost), string(task.WorkerStopped), string(task.CommandDrain)}
		v, err := s.Run(ctx, "dismiss", conn.Subject{}, conn.Args(fixed, part...)...)
		if err != nil {
			return gone, 0, err
		}
		n, _ := v.(int64)
		gone += int(n)
	}
	return gone, next, nil
}

func noWorker(name string) error {
	return fmt.Errorf("worker %s: %w", conn.Quote(name), task.ErrNoWorker)
}

// readWorkers leaves out who has never registered, such as foreign workers.
func (s *Fleet) readWorkers(ctx context.Context, names []string) ([]task.Worker, statemachine.Time, error) {
	var of conn.Subject
	for _, name := range names {
		of.More = append(of.More, s.Keys.WorkerDoc(name), s.Keys.Held(name))
	}
	r, err := s.RunList(ctx, "workers", of, conn.Args(nil, names...)...)
	if err != nil {
		return nil, 0, err
	}
	var found []task.Worker
	for i, name := range names {
		one := r.List(1).List(i)
		if len(one.List(2)) == 0 {
			continue
		}
		w := decodeWorker(name, r.Time(0), one.Time(0), one.List(2))
		for n := range one.List(1) {
			w.Tasks = append(w.Tasks, one.List(1).Number(n))
		}
		slices.Sort(w.Tasks)
		found = append(found, w)
	}
	return found, r.Time(0), nil
}

// heartbeatText is the field heartbeat: Disbatch's heartbeat object.
type heartbeatText struct {
	DateTime time.Time       `json:"datetime"`
	Queues   []task.QueueUse `json:"queues"`
}

// decodeWorker reads a worker's hash as it is now, given as fields and values in
// turn, and its entry in the list of leases. What is damaged has its zero value: the
// registry is for people, nothing is decided from here.
func decodeWorker(name string, now, beat statemachine.Time, doc conn.Reply) task.Worker {
	fields := doc.Fields()
	f := tasks.FieldReader{Get: func(field string) string { return fields[field] }}
	w := task.Worker{
		Registration: task.Registration{
			Name: name, Node: f.Get("node"), Host: f.Get("host"), PID: f.Count("pid"), Identity: f.Get("identity"),
			Version: f.Get("version"), Containment: f.Get("containment"), Slots: f.Count("slots"),
		},
		ID: int64(f.Count("id")), Incarnation: int64(f.Count("incarnation")),
		State: task.WorkerState(f.Get("state")), Order: task.WorkerCommand(f.Get("order")), Reason: f.Get("reason"),
		Busy: f.Count("busy"), Stuck: f.Count("stuck"), Queues: []task.QueueUse{}, Tasks: []int64{},
		Started: task.Moment(f.Stamp("started")), Ended: task.Moment(f.Stamp("ended")),
	}
	readOffer(&w.Registration, f)
	var last heartbeatText
	if json.Unmarshal([]byte(f.Get("heartbeat")), &last) == nil {
		w.Queues = append(w.Queues, last.Queues...)
	}
	if beat == statemachine.Never { // no lease any more
		beat = max(0, statemachine.Time(last.DateTime.UnixMicro()))
	}
	if beat > 0 {
		w.Heartbeat = task.Moment(beat)
		w.Silent = task.Seconds(max(0, time.Duration(now.Sub(beat))*time.Microsecond))
	}
	return w
}

// readOffer reads what the worker offers to tasks.
func readOffer(r *task.Registration, f tasks.FieldReader) {
	list := func(field string) []string {
		if text := f.Get(field); text != "" {
			return strings.Split(text, ",")
		}
		return []string{}
	}
	r.Labels, r.Classes = list("labels"), list("classes")
	r.Env, r.MaxThreads, r.HandlersOnly = f.Get("env"), task.Unlimited, f.Get("handlers_only") != ""
	if limit, err := task.ParseLimit(f.Get("maxthreads")); err == nil {
		r.MaxThreads = limit
	}
	if resources, err := task.ParseResources(f.Get("resources")); err == nil {
		r.Resources = resources
	}
}

// CommandWorker tells a worker what to do, at once where it is reachable. It
// returns the worker as it was, or an error matching [task.ErrNoWorker].
func (s *Fleet) CommandWorker(ctx context.Context, name string, order task.WorkerCommand) (task.Worker, error) {
	if order != task.NoCommand && order != task.CommandDrain && order != task.CommandStop {
		return task.Worker{}, &statemachine.FieldError{Field: "order", Value: string(order), Want: "drain, stop, or empty for none"}
	}
	before, _, err := s.Worker(ctx, name)
	if err != nil {
		return task.Worker{}, err
	}
	v, err := s.Run(ctx, "order", conn.Subject{Worker: name}, string(order), name)
	if err != nil {
		return task.Worker{}, err
	}
	if v == int64(0) {
		return task.Worker{}, noWorker(name)
	}
	return before, nil
}

// InterruptServer ends the wait of one server in [tasks.Tasks.WaitServer].
func (s *Fleet) InterruptServer(ctx context.Context) error {
	_, err := s.Run(ctx, "token", conn.Subject{More: []string{s.Keys.WakeServer()}})
	return err
}

// PassOn gives a wake-up to the next waiter. It is for a worker that was woken
// and does not claim, or whose claim had no use for it. An empty one was for nobody else.
func (s *Fleet) PassOn(ctx context.Context, w tasks.WakeUp) error {
	if w == "" {
		return nil
	}
	_, err := s.Run(ctx, "token", conn.Subject{More: []string{string(w)}})
	return err
}
