package scenario

import (
	"fmt"
	"maps"
	"strconv"

	sm "github.com/tdf-go/tdf/statemachine"
)

// World is a place where tasks live. It has one clock, which stands still
// between two calls of Advance and begins anywhere.
//
// Errors other than those named end the story.
type World interface {
	// Open creates a task with the times, limits, backoff, exit codes and charge
	// of spec and returns its id; the first is 1, the next 2. If spec.State is
	// [sm.Blocked] the task begins on hold. No other field of spec is set.
	Open(spec sm.Task) (int64, error)
	// Claim gives a worker the next due task, by the time it is due, then first in,
	// first out, and false if there is none. The task comes as it stands after
	// the claim. The same request again returns the same task.
	Claim(worker, request string) (sm.Task, bool, error)
	// Read returns a task. Past rounds may be missing.
	Read(id int64) (sm.Task, error)
	// Move carries a decision out. If m.Failed, the round's error text becomes
	// one that is not empty; m.Class and, if m.HasExit, m.ExitCode become the
	// round's. A refusal matches [sm.ErrStale], [sm.ErrConflict] or
	// [sm.ErrStopAsked].
	Move(m sm.Move) (sm.Result, error)
	// Stamps returns the recorded moments of a task by their field names:
	// "0:running".
	Stamps(id int64) (map[string]sm.Time, error)
	// Lists returns the state lists in which the task stands.
	Lists(id int64) ([]sm.State, error)
	// Now is the time of the world's clock.
	Now() (sm.Time, error)
	// Advance sets the world's clock forward.
	Advance(d sm.Duration) error
}

// Pure is a [World] in memory: the state machine and nothing else.
type Pure struct {
	now    sm.Time
	tasks  []*record
	claims map[string]sm.Task // by request
}

// record is a task with what a store keeps of it beside.
type record struct {
	task   sm.Task
	stamps map[string]sm.Time
	lists  map[sm.State]bool
}

var _ World = (*Pure)(nil)

// NewPure returns an empty world whose clock shows an hour after 1970.
func NewPure() *Pure {
	return &Pure{now: sm.Time(3600 * sm.Second), claims: map[string]sm.Task{}}
}

// Open implements [World].
func (p *Pure) Open(spec sm.Task) (int64, error) {
	spec.ID = int64(len(p.tasks) + 1)
	held := spec.State == sm.Blocked
	spec.State = sm.None
	r := &record{task: spec, stamps: map[string]sm.Time{}, lists: map[sm.State]bool{}}
	m, err := sm.Decide(&r.task, sm.Occurrence{Event: sm.Create, Actor: sm.Manager, Held: held}, p.now)
	if err != nil {
		return 0, err
	}
	p.tasks = append(p.tasks, r)
	_, err = p.Move(m)
	return spec.ID, err
}

// Claim implements [World].
func (p *Pure) Claim(_, request string) (sm.Task, bool, error) {
	if t, ok := p.claims[request]; ok {
		return t, true, nil
	}
	o := sm.Occurrence{Event: sm.Claim, Actor: sm.Worker, Claim: request}
	var first *sm.Task
	var since sm.Time
	for _, r := range p.tasks {
		t := &r.task
		if _, err := sm.Decide(t, o, p.now); err == nil && (first == nil || r.line() < since) {
			first, since = t, r.line()
		}
	}
	if first == nil {
		return sm.Task{}, false, nil
	}
	m, err := sm.Decide(first, o, p.now)
	if err == nil {
		_, err = p.Move(m)
	}
	p.claims[request] = *first
	return *first, true, err
}

// line is from when on an open task counts as waiting: from its start_after if
// it was given one, else, and when it was opened again, from the move to open.
func (r *record) line() sm.Time {
	if r.task.Round == 0 && r.task.StartAfter > 0 && r.stamps[sm.RoundField(0, string(sm.Blocked))] == 0 {
		return r.task.StartAfter
	}
	return max(r.task.Due(), r.stamps[sm.RoundField(r.task.Round, string(sm.Open))])
}

// Read implements [World].
func (p *Pure) Read(id int64) (sm.Task, error) {
	r, err := p.record(id)
	if err != nil {
		return sm.Task{}, err
	}
	return r.task, nil
}

// Move implements [World].
func (p *Pure) Move(m sm.Move) (sm.Result, error) {
	r, err := p.record(m.ID)
	if err != nil {
		return sm.Refused, err
	}
	after, result, err := sm.Apply(r.task, m, p.now)
	if result != sm.Moved {
		return result, err
	}
	r.task = after
	delete(r.lists, m.From)
	r.lists[m.To] = true
	for _, field := range m.Stamps() {
		r.stamps[field] = p.now
	}
	return result, nil
}

// Stamps implements [World].
func (p *Pure) Stamps(id int64) (map[string]sm.Time, error) {
	r, err := p.record(id)
	if err != nil {
		return nil, err
	}
	return maps.Clone(r.stamps), nil
}

// Lists implements [World].
func (p *Pure) Lists(id int64) ([]sm.State, error) {
	r, err := p.record(id)
	if err != nil {
		return nil, err
	}
	var lists []sm.State
	for _, s := range sm.States() {
		if r.lists[s] {
			lists = append(lists, s)
		}
	}
	return lists, nil
}

// Now implements [World].
func (p *Pure) Now() (sm.Time, error) { return p.now, nil }

// Advance implements [World].
func (p *Pure) Advance(d sm.Duration) error {
	p.now = p.now.Add(d)
	return nil
}

func (p *Pure) record(id int64) (*record, error) {
	if id < 1 || id > int64(len(p.tasks)) {
		return nil, fmt.Errorf("no task %s", strconv.FormatInt(id, 10))
	}
	return p.tasks[id-1], nil
}
