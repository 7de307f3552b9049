package access

import "slices"

// Families of keys, without the namespace. A trailing * stands for what follows a prefix.
var (
	// states are the state sets.
	states = []string{
		"blocked", "open", "running", "executed", "succeeded", "failed", "timed_out",
		"expired", "cancelled", "terminated", "orphaned", "archived",
	}
	// history is what every change of a task is counted in.
	history = []string{"meta", "events"}
	// line is what says which tasks may start, and wakes who waits for them.
	line = []string{"task:*", "due", "buckets", "ready:*", "wake:*", "wake_server", "wake_queue:*", "wake_node:*"}
	// counts is what limits count rounds by.
	counts = []string{"held:*", "busy:*", "used:*", "full", "stop:*", "tally:*"}
	// health is what becomes of a node where tasks fail.
	health = []string{"nodes", "node:*", "suspects", "evidence:*"}
	// goals is what tells a plan that a task of it has ended, or has been put aside.
	goals = []string{"plan:*", "freed:*", "draining"}
	// registry is who the workers are.
	registry = []string{"worker", "worker_id", "worker_id:*", "worker:*", "lease", "halt:*"}
)

// Keys of each role that the scripts of the role change.
var (
	workerKeys = slices.Concat(history, line, counts, health, goals, registry,
		[]string{"open", "running", "executed", "timed_out", "terminated", "orphaned", "claim:*", "live:*", "follow"})
	managerKeys = slices.Concat(history, line, counts, states, goals, []string{
		"archived:*", "task_id", "request:*", "key:*", "queues", "queue:*", "nodes", "node:*", "suspects", "evidence:*",
		"managers", "handling", "follow", "worker:*", "halt:*",
		"plan_id", "plans", "plan_tasks:*", "dependants:*", "stuck:*", "growth:*",
	})
)

// seenByWorkers are the keys that a worker reads beside its own.
var seenByWorkers = []string{"queues", "queue:*", "set_aside", "epochs", "purged_ids"}

// whole are all keys of the namespace.
var whole = []string{"*"}
