// Package worker claims due tasks, runs their programs and reports the results.
//
// A Worker has slots. Each does one task at a time: fetch the program if it is
// not there yet, run run.sh in the slot's shim (package internal/sandbox/shim) or call
// the Go function registered for it, report. What it promises:
//
//   - A worker is registered under its name and holds a lease, which it renews
//     with a heartbeat. When it cannot, it kills its programs (and cancels its
//     handlers) before a server may give their tasks away. While a name is alive nobody else can have it.
//   - It takes only tasks that fit what it offers, by the rules for queues and
//     nodes that are in force at the moment of the claim (package task).
//   - A round is reported at most once, under the claim id of its claim; if the
//     server has taken the task back meanwhile, the report is refused and the
//     worker drops the round.
//   - The round is stopped by the worker itself when its timeout (counted from
//     the claim, fetch included) or the task's end_before is over.
//   - The round of a cancelled task is stopped at once, and what it wrote is kept;
//     such a task is never opened again.
//   - Nothing of a program outlives its round, nor the worker, however it ends.
//   - Redis may go away. A finished result stays in memory and on disk and is
//     reported again and again until Redis records or refuses it.
//   - When Run is cancelled, nothing new is claimed and programs may come to
//     their end for a while; what is left is stopped and handed back: it is open
//     again at once, in the next round, and that costs it nothing.
//
// Whatever a task contains, the worker lives: what goes wrong stands in the
// round's error field, and a panic inside a round is that round's error too.
// Each failure has a class, which says whether it is the program's.
//
// The only clock for moments is that of Redis: between two of its answers the
// worker adds the elapsed monotonic time to the last one. The lease is counted
// on the host's clock since its boot. Wall clocks do not matter.
//
// Where to find what: backend.go says what a worker asks of its site, load.go makes
// one that talks to Redis; session.go begins a session and heartbeat.go holds it;
// dispatch.go and claim.go take tasks, slot.go hands out slots; round.go does one
// round, ending.go judges and records it, report.go reports it; stop.go ends a
// round or all of them.
package worker
