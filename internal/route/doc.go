// Package route says where a task may run: the bucket a task waits in, the
// queue it belongs to, what a worker on its node offers, and [Unfit], the one
// function that judges whether these go together. The worker's claim asks it by
// way of [Turns], and so does whoever explains why a task does not run; a rule
// of the linter keeps others from judging on their own.
//
// What changes from claim to claim (limits that are reached, resources in use,
// nodes set aside) is not decided here but inside the claim script, exactly.
//
// The package is pure. Bad input gets a *statemachine.FieldError that names the
// field, the value and what belongs there.
//
// Queues, their limits and lists of nodes are those of Disbatch, env is that of
// Flock.
package route
