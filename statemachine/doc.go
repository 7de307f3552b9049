// Package statemachine holds the rules of TDF: which states a task can be in,
// who may move it from one to another, and when. It is pure. It reads no
// clock, opens no connection and starts no goroutine; the time is an argument
// and a decision is a value.
//
// The rules exist once, as the table returned by [Table]. [Decide] looks a
// task and an event up in it and answers with a [Move]: an order of the form
// "if the task is still exactly there, move it here". [Apply] carries a move
// out on a value in memory; the store's move script is its twin in Redis. A
// move names what it was decided from (state, round and either the claim id or
// the revision), so a decision that comes late or twice changes nothing.
package statemachine

//go:generate go run ../internal/tools/states -o ../docs/STATES.md
