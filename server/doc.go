// Package server settles tasks: executed ones become succeeded, failed or open
// again, overdue ones expire or time out. Any number of servers may work on
// one namespace, because every decision names the revision of the task it was
// made from and is refused the second time.
//
// A pass costs what is due, not what exists: executed tasks are listed in
// their set, deadlines in an index ordered by time. The server reacts when it
// is woken, when the next deadline comes, and at the latest after
// round_duration. Beside the passes, a slow background job adopts tasks of
// foreign clients and repairs indices.
package server
