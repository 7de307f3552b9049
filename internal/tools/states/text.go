package main

import sm "github.com/tdf-go/tdf/statemachine"

const introduction = `<!-- Generated from the transition table in statemachine/table.go by "go generate ./statemachine". Do not edit. -->

# The states of a task

A task is a row in Redis. It is always in exactly one **state**, and only an
atomic *compare and move* changes that. An **actor** (a manager, a worker or a
server) looks at the task, an **event** has happened, and the rules below say
where the task goes. The move is carried out only if the task is still exactly
where the actor saw it. So a message that comes late, comes twice, or comes from
a program that slept for an hour does no harm.

The regular life of a task has five steps:

1. A manager **creates** it; it is ` + "`open`" + `.
2. A worker **claims** it and runs its program; it is ` + "`running`" + `.
3. The worker **reports** the output; it is ` + "`executed`" + `.
4. The server **settles** it: ` + "`succeeded`" + `, or one of the other outcomes.
5. A manager handles the outcome and **archives** it; nothing moves it again.

If a round goes wrong, by an error, a timeout or the loss of the worker, and the
task's limits allow another try, the task is ` + "`open`" + ` again and a new **round**
begins. Rounds are numbered from 0. The record of an ended round never changes.

`

// tableIntroduction takes the events that compare the claim.
const tableIntroduction = `## The transitions

Rows with the same state, event and actor are tried from top to bottom, and the
first whose condition holds is taken; if none holds, it is *not due* yet and the
task stays. What has no row is never allowed and is answered with an error.

- *(stop asked for)*: the task stays there, without a stamp, and is marked. No
  condition that asks for one more round (` + "`timeouts + 1 <= max_timeouts`" + ` and the
  like) holds for a marked task. A worker that does not know of the mark and
  wants the task opened again is refused and decides anew.
- *Effect*: a stamp on the way, which is no state anyone can see; the counter
  that is raised; whether the next round begins.
- A move compares state and round, and for %s the
  **claim**, so that only the worker that holds the round can make it; for all
  others the task's **revision**, so that only a decision made from the present
  state counts.

`

const conditions = `- Comparisons are strict: a task is expired when now is *greater than*
  ` + "`end_before`" + `, and timed out when its round took *longer than* ` + "`timeout`" + `. A
  counter is raised first and compared then, so a task with ` + "`max_fails`" + ` 2 runs up
  to three times.
- An executed task is judged by the time of its execution, not by the time at
  which the server looks. The only clock is that of Redis.
- The grace is what a server leaves to a worker that can stop its own overdue
  round; rounds without a claim id (foreign clients) have none. A round under a
  lease is left to its worker, which is told, until its lease is over.
- An error is *excused* if the server finds that the node is to blame, if the
  round's class is ` + "`shortage`" + ` (its node lacked what the worker needs to begin it;
  the first three times in a row on one node the task is handed back), or if
  ` + "`charge`" + ` is ` + "`program`" + ` and the class is ` + "`fetch`" + `, ` + "`host`" + ` or ` + "`infrastructure`" + `.
- An exit code is *final* if it is in ` + "`fatal_exit_codes`" + `, or if ` + "`retry_exit_codes`" + `
  is set and does not contain it. A round without an exit code never has a final
  one.
- A task that is opened again after a failure, a timeout or an excused error
  rests until ` + "`not_before`" + `: the nth time (n is ` + "`fails + timeouts + faults`" + `) for
  ` + "`retry_delay * retry_backoff^(n-1)`" + `, at most ` + "`retry_max_delay`" + `, less a part left
  to chance within ` + "`retry_jitter`" + `. By default there is no rest.

`

const invariants = `## What always holds

- A task is in exactly one state and in exactly one list, that of its state.
- In each round at most one claim is accepted.
- Nothing is written into a round that has ended. A report lands in the round
  that was claimed, or nowhere.
- ` + "`round = fails + timeouts + losses + releases + faults`" + `; one less on the right
  for a task that ended ` + "`failed`, `timed_out` or `orphaned`" + `, because its last count
  opened no round.
- No counter exceeds its limit by more than one, and by one only in the outcome
  that says so. ` + "`releases`" + ` has no limit: handing back costs a task nothing.
- Once a stop was asked for, the task never enters another round.
- A task that rests is not claimed.
- An outcome is left only for ` + "`archived`" + `, once, and ` + "`archived`" + ` never.
- From everywhere some path leads to ` + "`archived`" + `.
- A move that is refused, or has been made before, changes nothing.

Tests explore [every situation](RELIABILITY.md) and check all of this after each step.
`

// stateMeaning explains each state to a newcomer.
var stateMeaning = map[sm.State]string{
	sm.Blocked:   "Waits for something other than time: an operator's hold, or another task. It cannot be claimed.",
	sm.Open:      "Waits for a worker. It may be claimed from `start_after`, or from the end of its rest after a failure, to `end_before`.",
	sm.Running:   "A worker holds it under a claim and runs its program.",
	sm.Executed:  "The worker has handed in output and error; the server has not settled it yet.",
	sm.Succeeded: "Executed in time and without an error.",
	sm.Failed: "Failed more often than `max_fails`, with a final exit code, or after a stop was asked for; " +
		"or was excused more often than `max_faults`.",
	sm.TimedOut:   "Ran longer than `timeout` more often than `max_timeouts`, or once after a stop was asked for.",
	sm.Expired:    "Was not executed by `end_before`.",
	sm.Cancelled:  "Was cancelled before it ran.",
	sm.Terminated: "Was stopped on request while it ran, or left by its worker after a stop was asked for.",
	sm.Orphaned:   "Lost its worker more often than `max_losses`; a task that kills its workers ends here.",
	sm.Archived:   "A manager has handled the outcome, which is kept in the field `outcome`.",
}

// eventMeaning explains each event.
var eventMeaning = map[sm.Event]string{
	sm.Create:      "A task is opened.",
	sm.Claim:       "A worker takes an open task.",
	sm.Report:      "A worker hands in the result of its round.",
	sm.StopOverdue: "A worker has stopped its own round after its timeout.",
	sm.HandBack:    "A worker gives its task back unharmed, for example when it drains.",
	sm.Deadline:    "A server looks at a task because one of its times has come.",
	sm.Settle:      "A server decides what an executed round was.",
	sm.Lose:        "The worker that held the task is gone.",
	sm.Hold:        "An operator keeps an open task from starting.",
	sm.Unblock:     "A blocked task may start.",
	sm.Cancel:      "A task is cancelled: at once if it waits; else its worker is asked to stop, and it is not opened again.",
	sm.Terminate:   "A running task was stopped on request.",
	sm.Archive:     "A manager has handled an outcome.",
}
