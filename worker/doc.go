// Package worker claims due tasks, runs their programs and reports the results.
//
// One Worker does one task at a time: claim, fetch the program if it is not
// there yet, run run.sh, report. What it promises:
//
//   - A round is reported at most once, under the claim id of its claim; if the
//     server has taken the task back meanwhile, the report is refused and the
//     worker drops the round.
//   - The round is stopped by the worker itself when its timeout (counted from
//     the claim, fetch included) or the task's end_before is over.
//   - Redis may go away. A finished result stays in memory and is reported
//     again and again until Redis records or refuses it.
//   - When Run is cancelled, nothing new is claimed, a running program gets
//     SIGTERM, then SIGKILL, and its task is handed back: it is open again at
//     once, in the next round, and that costs it nothing.
//
// Whatever a task contains, the worker lives: what goes wrong stands in the
// round's error field, and a panic inside a round is that round's error too.
//
// The only clock is that of Redis. Between two of its answers the worker adds
// the elapsed monotonic time to the last one; its own wall clock does not matter.
package worker
