// Package chaos proves that nothing is lost and nothing is counted twice while
// the real programs are killed at random. Its test starts two servers, four
// workers of two slots and a manager on a redis-server of its own, kills one of
// them every few hundred milliseconds with SIGKILL, takes workers away for up to
// three leases, dead or frozen by SIGSTOP, and lets 200 tasks run: some succeed,
// some fail now and then, some take too long, some have no timeout and only the
// loss of their worker brings them back. At the end everything must be archived exactly once, no process of a task
// may be left, and the auditor must find nothing.
//
// The test lasts TDF_CHAOS_DURATION (default 60s) and is repeated with
// TDF_CHAOS_SEED, which it prints.
package chaos
