package statemachine_test

import sm "github.com/tdf-go/tdf/statemachine"

// setup is a small world to explore: who is in it and what may happen.
type setup struct {
	name string
	// tasks, workers, servers and late messages take part, beside one manager.
	tasks, workers, servers, late int
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
	// foreign workers claim without an id.
	foreign bool
	// edits is how often the manager moves end_before by one, which is a change
	// that is not a move.
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
	// flaw is what is wrong with the leases.
	flaw flaw
}
