package statemachine_test

import (
	"fmt"
	"maps"

	sm "github.com/tdf-go/tdf/statemachine"
)

// pure is a scenario.World in memory: the state machine and nothing else.
type pure struct {
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

// newPure returns an empty world whose clock shows an hour after 1970.
func newPure() *pure {
	return &pure{now: sm.Time(3600 * sm.Second), claims: map[string]sm.Task{}}
}

// Open implements scenario.World.
func (p *pure) Open(spec sm.Task) (int64, error) {
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

// Claim implements scenario.World.
func (p *pure) Claim(_, request string) (sm.Task, bool, error) {
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

// Read implements scenario.World.
func (p *pure) Read(id int64) (sm.Task, error) {
	r, err := p.record(id)
	if err != nil {
		return sm.Task{}, err
	}
	return r.task, nil
}

// Move implements scenario.World.
func (p *pure) Move(m sm.Move) (sm.Result, error) {
	r, err := p.record(m.ID)
	if err != nil {
		return sm.Refused, err
	}
	after, result, err := sm.Apply(r.task, m, p.now)
	if result != sm.Moved {
		return result, err
	}
	r.task = after
	if plain := m.Unsettled(); after.State == plain.To {
		m = plain
	}
	delete(r.lists, m.From)
	r.lists[m.To] = true
	for _, field := range m.Stamps() {
		r.stamps[field] = p.now
	}
	return result, nil
}

// Stamps implements scenario.World.
func (p *pure) Stamps(id int64) (map[string]sm.Time, error) {
	r, err := p.record(id)
	if err != nil {
		return nil, err
	}
	return maps.Clone(r.stamps), nil
}

// Lists implements scenario.World.
func (p *pure) Lists(id int64) ([]sm.State, error) {
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

// Now implements scenario.World.
func (p *pure) Now() (sm.Time, error) { return p.now, nil }

// Advance implements scenario.World.
func (p *pure) Advance(d sm.Duration) error {
	p.now = p.now.Add(d)
	return nil
}

func (p *pure) record(id int64) (*record, error) {
	if id < 1 || id > int64(len(p.tasks)) {
		return nil, fmt.Errorf("no task %d", id)
	}
	return p.tasks[id-1], nil
}
