// Package chaos proves that nothing is lost and nothing is counted twice while
// the real programs are killed at random. Its test starts two servers, four
// workers of two slots and a manager on a redis-server of its own, kills one of
// them every few hundred milliseconds with SIGKILL, or freezes a worker with
// SIGSTOP for up to two and a half leases, and lets 200 tasks run: some succeed,
// some fail now and then, some take too long, some only end when their worker is
// lost. At the end everything must be archived exactly once, no process of a task
// may be left, and the auditor must find nothing.
//
// The test lasts TDF_CHAOS_DURATION (default 60s) and is repeated with
// TDF_CHAOS_SEED, which it prints.
package chaos
