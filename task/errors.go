package task

import (
	"errors"
	"fmt"
)

// Errors that more than one package returns; match them with errors.Is. A value that
// cannot be used is a *statemachine.FieldError; find it with errors.As.
var (
	// ErrUnreachable means that Redis is not there, or cannot serve now: cut off, refusing the
	// password, loading its data, out of memory. The same call may succeed later.
	ErrUnreachable = errors.New("redis is unreachable")
	// ErrUnfit means that Redis is not one to trust: too old, or set up to evict keys, or
	// not as durable as the configuration demands.
	ErrUnfit = errors.New("redis is not fit for TDF")
	// ErrProtocol means that a release of another major version uses the namespace.
	ErrProtocol = errors.New("protocol version not supported")

	// ErrNotFound means that something is not there. All up to ErrNoReplay match it.
	ErrNotFound = errors.New("not found")
	// ErrNoTask means that there is no task with that id.
	ErrNoTask error = missingError("no such task")
	// ErrPurged means that the task was archived and has left Redis since, as the servers'
	// archive_retention says. It matches ErrNoTask too.
	ErrPurged error = missingError("the task has left Redis")
	// ErrNoRound means that a task has no such round, or that no worker has begun it.
	ErrNoRound error = missingError("no such round")
	// ErrNoPlan means that there is no plan with that id.
	ErrNoPlan error = missingError("no such plan")
	// ErrNoQueue means that there is no queue of that name.
	ErrNoQueue error = missingError("no such queue")
	// ErrNoWorker means that no worker has ever had that name.
	ErrNoWorker error = missingError("no such worker")
	// ErrNoBlob means that a blob is not in Redis, or not whole.
	ErrNoBlob error = missingError("no such blob")
	// ErrNoToken means that there is no access token of that name or id.
	ErrNoToken error = missingError("no such token")
	// ErrNoRecord means that there is no record of that kind and name.
	ErrNoRecord error = missingError("no such record")
	// ErrNoReplay means that a task is not the replay of another.
	ErrNoReplay error = missingError("the task is not a replay")

	// ErrGone means that a task or plan that was being watched is not there any more, and
	// perhaps another one under its id: the namespace was flushed, or Redis has lost changes.
	ErrGone = errors.New("it was flushed, or lost by Redis")
	// ErrDamaged means that a task's record in Redis is missing or spoilt.
	ErrDamaged = errors.New("damaged task")
	// ErrNotEnded means that a task has not ended, so that it cannot be repeated.
	ErrNotEnded = errors.New("the task has not ended")
	// ErrNeedsResults means that a task cannot be repeated by itself, because it had the
	// results of other tasks as its arguments.
	ErrNeedsResults = errors.New("it had the results of other tasks as arguments: retry it, which gives it those again")
	// ErrBegun means that a task does not wait any more, so that what changes only tasks that wait leaves it as it is.
	ErrBegun = errors.New("the task does not wait any more")
	// ErrWaits means that a task of a plan waits for others, and cannot be released by hand.
	ErrWaits = errors.New("the task waits for others of its plan")
	// ErrPlanState means that a plan is in a state that does not allow something.
	ErrPlanState = errors.New("the state of the plan does not allow it")
	// ErrQueueExists means that there is a queue of that name already.
	ErrQueueExists = errors.New("the queue exists")
	// ErrTokenExists means that there is an access token of that name already.
	ErrTokenExists = errors.New("the token exists")
	// ErrToken means that what a caller shows is no access token, or one that was revoked or
	// has expired. It does not say which.
	ErrToken = errors.New("no valid access token; make one with tdf token add")
	// ErrQueueInUse means that a queue has tasks that have not ended.
	ErrQueueInUse = errors.New("the queue is in use")
	// ErrNodeInUse means that a worker is registered from a node, or a task runs there.
	ErrNodeInUse = errors.New("the node is in use")
	// ErrNoRoom means that a blob is too large, or that Redis has no room for it.
	ErrNoRoom = errors.New("no room for a blob")
	// ErrRecordChanged means that a record is not as it was when it was read: see [RecordChangedError].
	ErrRecordChanged = errors.New("the record was changed meanwhile")
	// ErrKeyTaken means that a task with that key runs something else: see [KeyTakenError].
	ErrKeyTaken = errors.New("a task with that key runs something else")
	// ErrRequestKey means that a request key was used for other tasks before.
	ErrRequestKey = errors.New("the request key was used for other tasks")
)

// missingError is the error about something that is not there.
type missingError string

// Error says what.
func (e missingError) Error() string { return string(e) }

// Is reports whether target is ErrNotFound; ErrPurged is also an ErrNoTask.
func (e missingError) Is(target error) bool {
	return target == ErrNotFound || e == ErrPurged && target == ErrNoTask
}

// KeyTakenError is a task that is not opened, since the task with that id, or one of the same submission if it is 0, has its
// key and runs something else: another program, source or class, or on another input. It matches [ErrKeyTaken].
type KeyTakenError struct {
	Key  string
	Task int64
}

// Error names the key, and says what to do.
func (e *KeyTakenError) Error() string {
	who := "another task of the submission"
	if e.Task > 0 {
		who = fmt.Sprintf("task %d", e.Task)
	}
	return fmt.Sprintf("key %q: %s has it, and runs something else: give another key, or the program and input of that one", e.Key, who)
}

// Is reports whether target is ErrKeyTaken.
func (e *KeyTakenError) Is(target error) bool { return target == ErrKeyTaken }
