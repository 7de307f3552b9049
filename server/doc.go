// Package server settles tasks: executed ones become succeeded, failed or open
// again, overdue ones expire or time out, and those of dead workers are opened
// again. Any number of servers may work on one namespace, because every decision
// names the revision of the task that it was made from, and is refused the second
// time.
//
// The cost of a pass depends on what is due, not on what exists: executed tasks
// are listed in their set, deadlines in an index ordered by time. The server reacts
// when it is woken, at the next deadline or end of a lease, and at the latest after
// round_duration.
//
// A worker is judged only by its silence, and only after one full lease of unbroken
// contact between server and Redis: after an outage of Redis or a jump of its clock
// live workers need that long to renew their leases.
//
// A node is judged by the outcomes of its failing programs on other nodes (package
// blame). A node at fault is quarantined until a probe succeeds, and its failures
// are not charged to the tasks; by default the server only logs it.
//
// Between the passes a slow background job adopts tasks of foreign clients, and
// repairs indices and the lists of plans.
package server
