package statemachine_test

import sm "github.com/tdf-go/tdf/statemachine"

// setup is a small world to explore: who is in it and what may happen.
type setup struct {
	name string
	// tasks, workers, servers and late messages take part, and managers, at least
	// one.
	tasks, workers, servers, managers, late int
	// claims bounds the claims made in one history, and with them the rounds.
	claims int
	// task is the model of every task.
	task sm.Task
	// grace is what servers grant; the clock stops at horizon.
	grace   sm.Duration
	horizon sm.Time
	// by says which events each actor may bring about.
	by map[sm.Actor][]sm.Event
	// ways are those in which workers end a round; nil is all of them.
	ways []sm.Event
	// words are what workers may say of the next round, counted from now on.
	words []sm.Duration
	// settles says that some workers settle what has succeeded, and others do not.
	settles bool
	// foreign workers claim without an id.
	foreign bool
	// edits is how often the manager moves end_before by one, which is a change
	// that is not a move: later while the task waits, sooner while it runs.
	edits int8
	// holds is how often the manager decides to put a task aside.
	holds int8
	// held tasks may begin on hold, and the server may excuse errors.
	held, excuses bool
	// apply is what is examined; nil is [sm.Apply].
	apply apply
	// lease is how long a worker may be silent; 0 is a world without leases,
	// where a server may lose any task at any time.
	lease sm.Duration
	// handling is how long a manager that handles tasks may be silent; 0 is a
	// world in which managers archive without handling. grants bounds those made in
	// one history.
	handling sm.Duration
	grants   int8
	// losses is how often Redis goes back in time, by at most depth changes.
	losses, depth int8
	// ahead says that a worker, which has one slot, may claim one round more; outsiders
	// is how often the round in its slot is of a task beyond this world.
	ahead     bool
	outsiders int8
	// flaw is what is wrong with the leases, with new epochs, or with claims ahead.
	flaw flaw
}

// first is the world before anything has happened.
func (s *setup) first() world {
	var w world
	for i := range s.tasks {
		t := s.task
		t.ID = int64(i + 1)
		w.tasks[i], w.lists[i] = &t, listBit(t.State)
	}
	for i := range w.desk.till {
		w.desk.till[i] = noLease
	}
	return w
}

// slot is where the task with that id stands in a world.
func slot(id int64) int { return int(id-1) % maxTasks }
