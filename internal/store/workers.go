package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/statemachine"
)

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
	keys := make([]string, 0, 2+2*len(names))
	keys = append(keys, s.keys.meta(), s.keys.lease())
	args := make([]any, len(names))
	for i, name := range names {
		keys = append(keys, s.keys.workerDoc(name), s.keys.held(name))
		args[i] = name
	}
	r, err := s.runList(ctx, "workers", keys, args...)
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
	r.Env, r.MaxThreads = f.get("env"), route.NoLimit
	if limit, err := route.ParseLimit(f.get("maxthreads")); err == nil {
		r.MaxThreads = limit
	}
	if resources, err := route.ParseResources(f.get("resources")); err == nil {
		r.Resources = resources
	}
}
