package access

import "slices"

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
		"llen", "lrange", "lpos", "scard", "sismember", "smembers", "smismember", "sscan",
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
