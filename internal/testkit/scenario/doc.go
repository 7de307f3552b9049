// Package scenario runs small stories about tasks, written as text, on any
// [World] that has tasks: the pure model ([NewPure]) and a real store. The same
// files must give the same answers on both. It is imported by tests only.
//
// A file holds commands, each followed by the answer that is expected:
//
//	# A15: a task beyond its end_before is not claimed, even before a server looks.
//	> open end_before=1s
//	opened task 1
//
//	> advance 2s
//
//	> claim W1
//	nothing to claim
//
//	> deadline 1
//	task 1: open -> expired, round 0
//
// Times count from the beginning of the story, and stand still except for
// "advance". Workers speak from what they were told at their claim; servers
// and managers decide from what they read now, or, with "by=NAME", from what
// NAME read before with "read".
//
// The commands:
//
//	open [start_after=T] [end_before=T] [timeout=D] [held=yes]
//	     [max_fails=N] [max_timeouts=N] [max_losses=N] [max_faults=N] [charge=program]
//	     [retry_delay=D] [retry_backoff=F] [retry_max_delay=D] [retry_jitter=F]
//	     [retry_exit_codes=N,N...] [fatal_exit_codes=N,N...]
//	claim WORKER                        takes the next due task
//	heartbeat WORKER ID                 learns whether a stop was asked for
//	report WORKER ID ok|error [class=C] [exit_code=N]
//	stop-overdue WORKER ID [random=F]   hand-back, terminate WORKER ID
//	deadline ID [grace=D] [random=F] [by=NAME]
//	settle ID [excused=yes] [random=F] [by=NAME]
//	lose ID [by=NAME]                   the server takes it from a lost worker
//	take-back ID [by=NAME]              a worker loses what its name held before
//	archive ID [by=NAME]                hold, unblock, cancel ID [by=NAME]
//	read NAME ID                        what NAME will decide from, once
//	repeat NAME                         sends NAME's last message again
//	try ACTOR EVENT ID                  an event by a kind of actor, allowed or not
//	advance D                           lets time pass
//	show ID                             state, counters and stamps
//
// After every command the runner checks that each task stands in exactly one
// list, the one of its state, that its counters agree with its round, and that
// what was refused or repeated has changed nothing.
package scenario
