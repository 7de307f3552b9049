package statemachine_test

import (
	"bytes"
	"encoding/binary"
	"slices"

	sm "github.com/tdf-go/tdf/statemachine"
)

// The most of everything a world can hold; a setup says how much of it is used.
const (
	maxTasks    = 2
	maxWorkers  = 3
	maxServers  = 2
	maxManagers = 2
	maxLate     = 2
	maxClaims   = 5
	maxKept     = 3
)

// world is one situation: the tasks, what each program knows and waits for, and
// the messages still under way. Everything behind a pointer is never changed.
//
// A program that may sleep between any two of its steps is a program whose next
// step is not taken yet, so a pause needs no step of its own.
type world struct {
	now   sm.Time
	tasks [maxTasks]*sm.Task
	// lists has, for each task, one bit for each state list that holds it.
	lists [maxTasks]uint16

	workers [maxWorkers]worker
	// servers and managers hold the decision they have made and not yet seen
	// answered. It was made from an old read by the time it arrives.
	servers  [maxServers]*sm.Move
	managers [maxManagers]boss
	// desk is used in worlds with leases of managers, history in those where Redis
	// loses changes.
	desk    desk
	history history
	// ahead is used in worlds in which workers claim ahead.
	ahead ahead
	// late are messages under way whose sender has given up or died. They may
	// arrive at any time, any number of times, or never.
	late [maxLate]*sm.Move

	made  int8 // claims made so far; each has an id of its own
	edits int8 // changes of a task that are not moves
	holds int8 // decisions to put a task aside

	// What really happened, for the assertions only.
	granted  [maxClaims]grant // by claim: the round it was given
	grants   [maxTasks]int8   // claims accepted in the present round
	archived [maxTasks]int8   // times archived
}

// worker is what one worker knows.
type worker struct {
	// waits is the message sent and not yet answered.
	waits *sm.Move
	// holds is the task as it was told when it got the claim; next is one that it has
	// claimed ahead, while its slot was taken.
	holds, next *sm.Task
	// lease is used in worlds with leases only.
	lease lease
	// epoch is the one its session belongs to.
	epoch int8
}

// grant is the round that a claim was given.
type grant struct {
	task  int64
	round int
	given bool
}

// stateBits numbers the states and events for lists and encodings.
var stateBits, eventBits = func() (map[sm.State]uint8, map[sm.Event]uint8) {
	states, events := map[sm.State]uint8{sm.None: 0}, map[sm.Event]uint8{"": 0}
	for i, s := range sm.States() {
		states[s] = uint8(i + 1)
	}
	for i, e := range sm.Events() {
		events[e] = uint8(i + 1)
	}
	return states, events
}()

// encode writes everything that can make a difference later. Workers, servers
// and late messages stand in sorted order, because they are interchangeable.
// Times of past rounds are left out: nothing reads them, and that they never
// change is checked at every move.
func (w *world) encode(s *setup, b []byte) []byte {
	b = append(b, byte(w.now), byte(w.made), byte(w.edits), byte(w.holds))
	for i := range s.tasks {
		b = appendTask(b, w.tasks[i])
		b = binary.LittleEndian.AppendUint16(b, w.lists[i])
		b = append(b, byte(w.grants[i]), byte(w.archived[i]))
	}
	for _, g := range w.granted[:w.made] {
		b = append(b, byte(g.task), byte(g.round))
	}
	b = appendSorted(b, s.workers, func(b []byte, i int) []byte {
		b = append(b, byte(w.workers[i].epoch))
		b = appendTaskOrNil(appendTaskOrNil(appendMove(b, w.workers[i].waits), w.workers[i].holds), w.workers[i].next)
		return w.workers[i].lease.encode(b)
	})
	b = appendSorted(b, s.servers, func(b []byte, i int) []byte { return appendMove(b, w.servers[i]) })
	b = appendSorted(b, s.late, func(b []byte, i int) []byte { return appendMove(b, w.late[i]) })
	b = appendSorted(b, max(s.managers, 1), func(b []byte, i int) []byte { return w.managers[i].encode(b, i, &w.desk) })
	return w.history.encode(s, w.ahead.encode(s, b))
}

// appendSorted appends n encodings in the order of their bytes.
func appendSorted(b []byte, n int, one func([]byte, int) []byte) []byte {
	var space [maxWorkers][96]byte
	var parts [maxWorkers][]byte
	for i := range n {
		parts[i] = one(space[i][:0], i)
	}
	slices.SortFunc(parts[:n], bytes.Compare)
	for _, p := range parts[:n] {
		b = append(append(b, byte(len(p))), p...)
	}
	return b
}

func appendTaskOrNil(b []byte, t *sm.Task) []byte {
	if t == nil {
		return append(b, 0)
	}
	return appendTask(append(b, 1), t)
}

func appendTask(b []byte, t *sm.Task) []byte {
	b = append(b, byte(t.ID), stateBits[t.State], byte(t.Round), byte(t.Rev), byte(t.EndBefore),
		byte(t.Fails), byte(t.Timeouts), byte(t.Losses), byte(t.Releases), byte(t.Faults), stateBits[t.Outcome],
		byte(t.Current.Running), byte(t.Current.Executed), bit(t.Current.Failed), byte(t.Current.Retry), byte(t.NotBefore), bit(t.StopAsked))
	b = appendClaim(b, t.Current)
	for _, r := range t.Past {
		b = appendClaim(b, r)
	}
	return append(b, 0xff)
}

func appendClaim(b []byte, r sm.Round) []byte {
	return append(append(b, r.Claim...), ',', eventBits[r.End])
}

func appendMove(b []byte, m *sm.Move) []byte {
	if m == nil {
		return append(b, 0)
	}
	b = append(b, byte(m.ID), eventBits[m.Event], stateBits[m.From], stateBits[m.To],
		byte(m.Round), byte(m.Rev), bit(m.Failed), bit(m.Actor == sm.Worker), bit(m.Count == sm.Faults), byte(m.Retry), byte(m.NotBefore), byte(m.Until))
	return append(append(b, m.Claim...), ',')
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}
