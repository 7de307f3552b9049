package top

import (
	"context"
	"time"
)

// NoLimit is the value of a limit that is not set; 0 means that nothing new starts.
const NoLimit = -1

// Source reads what is shown. It must return when ctx ends, which it does when
// the reader leaves or after [Options.Timeout]. An error is shown beside the
// last snapshot, and the source is asked again after the interval.
type Source func(ctx context.Context) (Snapshot, error)

// Snapshot is the state of one namespace at one moment. Its texts may hold
// anything: they are cleaned before they are shown. Times are shown in the
// location they carry. Its lists are shown in the order given, and not changed.
type Snapshot struct {
	Namespace string
	Redis     string    // the address
	At        time.Time // by the clock of Redis, from which ages are told; zero: when it came

	States []StateCount // tasks in each state, in the order shown

	// Done and Failed count, over the life of the namespace, tasks that ended
	// and rounds that failed. A counter that falls starts its rates afresh.
	Done, Failed int64

	Queues   []Queue
	Workers  []Worker
	Failures []Failure // the newest first
}

// StateCount is how many tasks are in a state.
type StateCount struct {
	State string
	Tasks int64
}

// Queue is one line of the table of queues.
type Queue struct {
	Name      string
	Paused    bool
	Waiting   int64     // open tasks
	Running   int64     // tasks held by a worker
	Limit     int       // tasks that may run in the whole fleet (threads), or NoLimit
	NodeLimit int       // tasks that may run on one node (maxthreads), or NoLimit
	Done      int64     // counter of tasks that ended, for the rate
	OldestDue time.Time // since when the task waits that has been due longest; zero: none is due
}

// Worker is one line of the table of workers.
type Worker struct {
	Name, Node, State string
	Busy, Slots       int
	Tasks             []string  // what it runs, one short text a task
	Heartbeat         time.Time // the last one; zero: none yet
}

// Failure is a failed round.
type Failure struct {
	Task, Program, Worker string
	Class                 string // class of the failure, such as program or time
	Error                 string // of which the first line is shown
	At                    time.Time
}
