// Package trace replays the event stream of a namespace against the pure state
// machine: it says of each task whether the path that was recorded is one that
// the table of [statemachine] allows, made by actors that may make it.
//
// What it does not know it does not hold against a task. A capped stream begins
// in the middle of lives. Clients in other languages move tasks with plain
// commands and leave no events, so a step may be missing if such a client can
// make it: open a task, claim it, report its own round, archive an outcome. A
// repair by the server or a manager may put a task anywhere.
//
// The stream is to be read as Redis has it at one moment. A copy that was taken
// while Redis forgot its last steps (failover, restored backup) holds steps that
// never happened as far as the namespace is concerned, and is no trace of it.
package trace
