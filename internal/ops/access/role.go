package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Role is what a program is to a namespace.
type Role string

// The roles.
const (
	// Server is tdf-server: it settles tasks and loads the scripts.
	Server Role = "server"
	// Worker is tdf-worker: it claims, executes and reports, and opens nothing.
	Worker Role = "worker"
	// Manager is a program that opens and archives tasks, and tdf-manager of an operator.
	Manager Role = "manager"
	// Viewer reads, and changes nothing.
	Viewer Role = "viewer"
)

// Errors of what a user is made from.
var (
	ErrRole = errors.New("no such role")
	ErrName = errors.New("unusable name of a Redis user")
)

// Roles returns all roles.
func Roles() []Role { return []Role{Server, Worker, Manager, Viewer} }

// ParseRole returns the role of that name.
func ParseRole(name string) (Role, error) {
	if role := Role(name); slices.Contains(Roles(), role) {
		return role, nil
	}
	names := make([]string, 0, len(grants))
	for _, role := range Roles() {
		names = append(names, string(role))
	}
	return "", fmt.Errorf("%w: %q; want %s", ErrRole, name, strings.Join(names, ", "))
}

// grant allows commands on keys.
type grant struct {
	commands []string
	// keys are families. Without any, the commands are those that name no key.
	keys []string
}

// rights are all that a role has. The channels are families like keys.
type rights struct {
	grants   []grant
	channels []string
}

// Commands, by what they are for.
var (
	// connection is sent by every client: on a new connection, for the checks of a
	// start, in transactions, and on a Redis Cluster.
	connection = []string{
		"ping", "hello", "auth", "time", "info", "multi", "exec", "discard", "readonly", "role",
		"command", "cluster|slots", "acl|whoami",
	}
	// reading are the commands that change nothing, and the call of a script, for
	// which Redis demands all rights on the keys it names. The script itself can
	// only do what the grants say.
	reading = []string{
		"evalsha", "exists", "type", "object|encoding", "ttl", "pttl", "strlen", "get",
		"hexists", "hget", "hgetall", "hkeys", "hlen", "hmget", "hstrlen", "hvals", "hscan",
		"llen", "lrange", "lpos", "scard", "sdiff", "sismember", "smembers", "smismember", "sscan",
		"zcard", "zcount", "zrange", "zrangebyscore", "zrevrange", "zrevrangebyscore", "zscore", "zmscore", "zscan",
		"xlen", "xrange", "xrevrange", "xread",
	}
	// changing are the commands of scripts that change something.
	changing = []string{
		"hset", "hdel", "hincrby", "sadd", "srem", "zadd", "zrem", "lpush", "blpop", "set", "del", "expire", "incr", "xadd",
	}
	// linking are those that tie the tasks of a plan together.
	linking = []string{"rpush", "lpop"}
	// creating are those that tasks are opened with: servers open those of steps of a plan.
	creating  = []string{"incrby", "hsetnx"}
	listening = []string{"subscribe", "unsubscribe"}
	telling   = []string{"publish"}
)

// grants is what each role may do.
var grants = map[Role]rights{
	Server: {
		channels: whole,
		grants: []grant{
			{commands: slices.Concat(connection, listening, telling, []string{"wait", "script|load", "script|exists", "config|get"})},
			{commands: slices.Concat(reading, changing, linking, creating), keys: whole},
		},
	},
	Worker: {
		channels: []string{"call:*", "changed", "rules"},
		grants: []grant{
			{commands: slices.Concat(connection, listening, telling, []string{"wait"})},
			{commands: reading, keys: slices.Concat(workerKeys, states, seenByWorkers)},
			{commands: changing, keys: workerKeys},
		},
	},
	Manager: {
		channels: []string{"call:*", "changed", "rules"},
		grants: []grant{
			{commands: slices.Concat(connection, listening, telling, []string{"wait"})},
			{commands: reading, keys: whole},
			{commands: slices.Concat(changing, linking, creating), keys: managerKeys},
			{commands: []string{"rpush"}, keys: []string{"changes"}}, // to add entries, and to remove none
		},
	},
	Viewer: {
		channels: []string{"changed", "rules"},
		grants: []grant{
			{commands: slices.Concat(connection, listening)},
			{commands: reading, keys: whole},
		},
	},
}

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
	// goals tell a plan that a task of it has ended, or is held.
	goals = []string{"plan:*", "freed:*", "draining"}
	// registry is who the workers are.
	registry = []string{"worker", "worker_id", "worker_id:*", "worker:*", "lease", "halt:*"}
)

// Keys of each role that the scripts of the role change.
var (
	workerKeys = slices.Concat(history, line, counts, health, goals, registry,
		[]string{
			"open", "running", "executed", "succeeded", "timed_out", "terminated", "orphaned", "archived", "archived:*",
			"claim:*", "live:*", "follow", "files", "file:*", "answer:*", "records_ended:*",
		})
	managerKeys = slices.Concat(history, line, counts, states, goals, []string{
		"archived:*", "task_id", "request:*", "key:*", "queues", "queue:*", "nodes", "node:*", "suspects", "evidence:*",
		"managers", "handling", "follow", "worker:*", "halt:*", "errand:*", "answer:*",
		"plan_id", "plans", "plan_tasks:*", "dependants:*", "stuck:*", "growth:*", "blobs", "blob:*", "tokens",
		"record:*", "records:*", "records_due:*", "records_ended:*",
	})
)

// seenByWorkers are the keys that a worker reads beside its own.
var seenByWorkers = []string{"queues", "queue:*", "set_aside", "epochs", "purged_ids", "blob:*", "errand:*", "record:*"}

// whole are all keys of the namespace.
var whole = []string{"*"}
