// Package worker claims due tasks, runs their programs and reports the results.
//
// A Worker has slots. Each executes one task at a time: it fetches the program if
// it is missing, runs run.sh in the slot's shim (package internal/sandbox/shim) or calls
// the Go function registered for it, and reports. Guarantees:
//
//   - A worker is registered under its name and holds a lease, which it renews
//     with a heartbeat. When it cannot, it kills its programs (and cancels its
//     handlers) before a server may give their tasks away. No other worker can use its
//     name meanwhile.
//   - It claims only tasks that fit its offer, by the rules for queues and nodes in
//     force at the moment of the claim (package task).
//   - A round is reported at most once, under the claim id of its claim; if the
//     server has taken the task back meanwhile, the report is refused and the
//     worker drops the round.
//   - The worker itself stops a round when its timeout (counted from the claim, or
//     from its beginning if it was claimed ahead; fetch included) or the task's
//     end_before is over.
//   - The round of a cancelled task is stopped at once, and its output is kept;
//     the task is never opened again.
//   - No process of a program outlives its round or the worker, however that ends.
//   - Redis may go away. A finished result stays in memory and on disk and is
//     reported again and again until Redis records or refuses it.
//   - When Run is cancelled, the worker claims nothing more. Programs may go on for
//     drain_timeout; then they are stopped and their tasks handed back: these are open
//     again at once, in the next round, at no cost.
//
// No task can end the worker: an error is recorded in the round's error field, and
// so is a panic inside the round. Each failure has a class, which says whether the
// program is at fault.
//
// Moments are those of Redis' clock: between two of its answers the worker adds the
// elapsed monotonic time to the last one. The lease is counted on the host's clock
// since its boot. Wall clocks do not matter.
//
// The files: backend.go declares the calls to the site, load.go connects them to
// Redis; session.go begins a session and heartbeat.go holds it;
// dispatch.go and claim.go claim tasks, slot.go hands out slots; round.go does one
// round, handler.go, job.go and tries.go that of a Go function, ending.go judges and records
// it, report.go reports it; gone.go leaves one to workers that have its version; stop.go ends a round or all of them;
// errand.go does what managers ask beside that. The gateway files are the site for workers
// without Redis: gateway.go their sessions, gateway_turn.go claims, gateway_report.go reports.
package worker
