package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// WorkerState is what a worker does, as the registry shows it.
type WorkerState string

// The states of a worker. The first three are the worker's own word; a server
// says lost, and a worker that has left in good order says stopped.
const (
	WorkerReady    WorkerState = "ready"
	WorkerDraining WorkerState = "draining" // claims nothing, still runs something
	WorkerDrained  WorkerState = "drained"  // claims nothing, runs nothing
	WorkerLost     WorkerState = "lost"
	WorkerStopped  WorkerState = "stopped"
)

// WorkerOrder is what an operator wants of a worker.
type WorkerOrder string

// The orders. OrderDrain stays with the name until OrderNone replaces it;
// OrderStop is forgotten when the worker registers anew.
const (
	OrderNone  WorkerOrder = ""
	OrderDrain WorkerOrder = "drain"
	OrderStop  WorkerOrder = "stop"
)

// Registration is what a worker says of itself at its start (Disbatch: node
// registration).
type Registration struct {
	Name string
	// Node is the name of the host in records, Host the host's own name.
	Node, Host string
	PID        int
	// Identity says which start of which process of which boot of which host this
	// is, so that a successor on the same host can tell that it is gone, and so
	// that a registration whose answer was lost is recognised. Required.
	Identity    string
	Version     string
	Containment string
	Slots       int
	Labels      []string
	// Env, Resources, Classes and MaxThreads are what the worker offers beside
	// its labels (see task.Offer).
	Env        string
	Resources  task.Resources
	Classes    []string
	MaxThreads task.Limit
	// Replaces is the incarnation that the caller knows to be dead, although no
	// server has said so: that of a process of this host that is gone, one whose
	// heartbeat the caller has seen stand still for one full lease by its own
	// clock, or the caller's own session that it gives up. 0 for none.
	Replaces int64
}

// Session is a registered worker. Its lease ends if it is not renewed.
type Session struct {
	Name string
	// ID stays with the name; Incarnation is raised by each registration.
	ID, Incarnation int64
	// Lease is how long the worker may be silent.
	Lease statemachine.Duration
	// Order is what an operator has ordered for the name.
	Order WorkerOrder
}

// Registered is the answer to a registration.
type Registered struct {
	Session
	// Former are tasks that an earlier incarnation still holds. While there are
	// any the worker is not registered: move them (event Lose) and register again.
	Former []TaskHeader
	Now    statemachine.Time
}

// QueueUse is a worker's use of one queue (Disbatch: queue heartbeat object).
type QueueUse struct {
	Class      string `json:"class"`
	Queue      string `json:"queue"`
	Threads    int    `json:"threads"`
	Idle       int    `json:"idle"`
	Processing int    `json:"processing"`
}

// ReasonSetAside begins the reason of a worker whose node is in quarantine.
const ReasonSetAside = "the node is set aside"

// Heartbeat is what a worker says of itself when it renews its lease.
type Heartbeat struct {
	State WorkerState
	// Reason is why nothing is claimed, for people; empty if there is no reason.
	Reason string
	// Busy slots run a task; stuck ones hold one that does not end.
	Busy, Stuck int
	Queues      []QueueUse
	// Outlast says that the worker goes on while nobody can reach Redis: the error of
	// [Store.Renew] then says so (see [ErrAway]). It is not recorded.
	Outlast bool
}

// Renewal is the answer to a heartbeat.
type Renewal struct {
	Lease statemachine.Duration
	Order WorkerOrder
	// Followed are tasks of this worker whose output somebody reads just now.
	Followed []Followed
	// Stops are tasks of this worker that it has to stop (see [Store.AskStop]).
	Stops []int64
	// Overdue are those whose time is over, for servers (see [Store.TellOverdue]), at
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
	Tasks []TaskHeader
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

// WorkerInfo is a worker as the registry knows it.
type WorkerInfo struct {
	Registration
	ID, Incarnation int64
	State           WorkerState
	Order           WorkerOrder
	Reason          string
	// Started, Heartbeat and Ended are moments of this incarnation; 0 if not yet.
	Started, Heartbeat, Ended statemachine.Time
	Busy, Stuck               int
	Queues                    []QueueUse
	// Tasks are the ids it holds.
	Tasks []int64
}

// maxWorkersRead is how many workers one script reads.
const maxWorkersRead = 100

// Workers lists the registered workers by name, also those that have ended;
// the time is that of the reading.
func (s *Store) Workers(ctx context.Context) ([]WorkerInfo, statemachine.Time, error) {
	names, err := s.rdb.SMembers(ctx, s.keys.worker()).Result()
	if err != nil {
		return nil, 0, s.failed("workers", err)
	}
	slices.Sort(names)
	var all []WorkerInfo
	now := statemachine.Time(0)
	for part := range slices.Chunk(names, maxWorkersRead) {
		var found []WorkerInfo
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

// Worker returns one worker by name, or an error matching [ErrNoWorker].
func (s *Store) Worker(ctx context.Context, name string) (WorkerInfo, statemachine.Time, error) {
	found, now, err := s.readWorkers(ctx, []string{name})
	if err != nil {
		return WorkerInfo{}, 0, err
	}
	if len(found) == 0 {
		return WorkerInfo{}, now, noWorker(name)
	}
	return found[0], now, nil
}

func noWorker(name string) error { return fmt.Errorf("worker %s: %w", quote(name), ErrNoWorker) }

// readWorkers leaves out who has never registered, such as foreign workers.
func (s *Store) readWorkers(ctx context.Context, names []string) ([]WorkerInfo, statemachine.Time, error) {
	var of subject
	args := make([]any, len(names))
	for i, name := range names {
		of.more = append(of.more, s.keys.workerDoc(name), s.keys.held(name))
		args[i] = name
	}
	r, err := s.runList(ctx, "workers", of, args...)
	if err != nil {
		return nil, 0, err
	}
	var found []WorkerInfo
	for i, name := range names {
		one := r.list(1).list(i)
		if len(one.list(2)) == 0 {
			continue
		}
		w := decodeWorker(name, one.time(0), one.list(2))
		for n := range one.list(1) {
			w.Tasks = append(w.Tasks, one.list(1).number(n))
		}
		slices.Sort(w.Tasks)
		found = append(found, w)
	}
	return found, r.time(0), nil
}

// heartbeatText is the field heartbeat: Disbatch's heartbeat object.
type heartbeatText struct {
	DateTime time.Time  `json:"datetime"`
	Queues   []QueueUse `json:"queues"`
}

// decodeWorker reads a worker's hash, given as fields and values in turn, and
// its entry in the list of leases. What is damaged has its zero value: the
// registry is for people, nothing is decided from here.
func decodeWorker(name string, beat statemachine.Time, doc reply) WorkerInfo {
	f := fieldReader{get: func(field string) string {
		for i := 0; i+1 < len(doc); i += 2 {
			if doc.text(i) == field {
				return doc.text(i + 1)
			}
		}
		return ""
	}}
	w := WorkerInfo{
		Registration: Registration{
			Name: name, Node: f.get("node"), Host: f.get("host"), PID: f.count("pid"), Identity: f.get("identity"),
			Version: f.get("version"), Containment: f.get("containment"), Slots: f.count("slots"),
		},
		ID: int64(f.count("id")), Incarnation: int64(f.count("incarnation")),
		State: WorkerState(f.get("state")), Order: WorkerOrder(f.get("order")), Reason: f.get("reason"),
		Started: f.stamp("started"), Heartbeat: beat, Ended: f.stamp("ended"), Busy: f.count("busy"), Stuck: f.count("stuck"),
	}
	w.offers(f)
	var last heartbeatText
	if json.Unmarshal([]byte(f.get("heartbeat")), &last) == nil {
		w.Queues = last.Queues
	}
	if beat == statemachine.Never { // no lease any more
		w.Heartbeat = max(0, statemachine.Time(last.DateTime.UnixMicro()))
	}
	return w
}

// offers reads what the worker offers to tasks.
func (r *Registration) offers(f fieldReader) {
	list := func(field string) []string {
		if text := f.get(field); text != "" {
			return strings.Split(text, ",")
		}
		return nil
	}
	r.Labels, r.Classes = list("labels"), list("classes")
	r.Env, r.MaxThreads = f.get("env"), task.NoLimit
	if limit, err := task.ParseLimit(f.get("maxthreads")); err == nil {
		r.MaxThreads = limit
	}
	if resources, err := task.ParseResources(f.get("resources")); err == nil {
		r.Resources = resources
	}
}

// OrderWorker tells a worker what to do, at once where it is reachable. It
// returns the worker as it was, or an error matching [ErrNoWorker].
func (s *Store) OrderWorker(ctx context.Context, name string, order WorkerOrder) (WorkerInfo, error) {
	if order != OrderNone && order != OrderDrain && order != OrderStop {
		return WorkerInfo{}, &statemachine.FieldError{Field: "order", Value: string(order), Want: "drain, stop, or empty for none"}
	}
	before, _, err := s.Worker(ctx, name)
	if err != nil {
		return WorkerInfo{}, err
	}
	v, err := s.run(ctx, "order", subject{worker: name}, string(order), name)
	if err != nil {
		return WorkerInfo{}, err
	}
	if v == int64(0) {
		return WorkerInfo{}, noWorker(name)
	}
	return before, nil
}

// InterruptServer ends the wait of one server in [Store.WaitServer].
func (s *Store) InterruptServer(ctx context.Context) error {
	_, err := s.run(ctx, "token", subject{more: []string{s.keys.wakeServer()}})
	return err
}

// PassOn gives a wake-up to the next waiter. It is for a worker that was woken
// and does not claim, or whose claim had no use for it. An empty one was for nobody else.
func (s *Store) PassOn(ctx context.Context, w WakeUp) error {
	if w == "" {
		return nil
	}
	_, err := s.run(ctx, "token", subject{more: []string{string(w)}})
	return err
}
