// Package server settles tasks: executed ones become succeeded, failed or open
// again, overdue ones expire or time out, and those of workers that have died
// are taken back. Any number of servers may work on
// one namespace, because every decision names the revision of the task it was
// made from and is refused the second time.
//
// A pass costs what is due, not what exists: executed tasks are listed in
// their set, deadlines in an index ordered by time. The server reacts when it
// is woken, when the next deadline comes or the next lease ends, and at the
// latest after round_duration.
//
// A worker is judged by its silence only, and only after one full lease in which
// the server was in contact with Redis without a break: when Redis was away, or
// its clock jumped, those who live need that long to show it.
//
// A node is judged by how the programs that fail on it fare elsewhere (package
// blame). A node that is to blame is quarantined until a probe succeeds, and its
// failures are not charged to the tasks; by default the log only says so.
//
// Beside the passes, a slow background job adopts tasks of
// foreign clients and repairs indices and the lists of plans.
package server
