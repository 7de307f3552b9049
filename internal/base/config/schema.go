package config

import (
	"math"
	"time"
)

// schema is the table of all sections and keys, bound to the File it fills.
type schema []section

type section struct {
	name, doc string
	required  bool
	example   string // of the whole section, for the error that it is missing
	keys      []key
}

type key struct {
	name     string
	fallback string // the default, as text
	value           // type, limits and where to store it
	doc      string
}

// schemaOf returns the table that fills f. To add a key, add its field to the
// struct and one line here.
func schemaOf(f *File) schema {
	return schema{
		redisSection(&f.Redis),
		{
			name: "tdf", required: true, example: "a line [tdf] and below it namespace=MyProject",
			doc: "What all programs of one project share. Required.",
			keys: []key{
				{"namespace", "", needed(text(&f.TDF.Namespace, ValidNamespace), "MyProject"), "Start of the name of every key in Redis. In braces, as in `{sum}`, for a Redis Cluster."},
				{"pprof", "", noneable(&f.TDF.Pprof, checkLoopback), "Loopback address and port, such as `127.0.0.1:6060`, at which tdf-server, tdf-worker and `tdf-manager run` answer to `go tool pprof`; port 0 means any free one, which the log names. Every user of the host can ask. Empty for none."},
			},
		},
		serverSection(&f.Server),
		workerSection(&f.Worker),
		managerSection(&f.Manager),
		taskDefaultsSection(&f.TaskDefaults),
	}
}

func redisSection(r *Redis) section {
	return section{
		name: "redis", required: true, example: "a line [redis] and below it host=localhost",
		doc: "The Redis server to use. Required.",
		keys: []key{
			{"host", "localhost", text(&r.Host, checkHost), "Host name, IP address or absolute path of a unix socket. `embedded`, for the server only, starts a Redis inside it for trials: nothing survives its end."},
			{"port", "6379", integer(&r.Port, 0, 65535), "Port. 0, with `host=embedded` only, means any free one. A Kubernetes service must not be named tdf-redis, as that would set the variable to a URL, which is refused."},
			{"username", "", noneable(&r.Username), "ACL user; empty or `None` for the default user."},
			{"password", "", secret(&r.Password), "Password; empty or `None` for none. All characters count, also `#` and `;`."},
			{"password_file", "", noneable(&r.PasswordFile), "File that holds the password, for example a secret mounted by an orchestrator; a line end at its end is ignored. Not together with `password`."},
			{"db", "0", integer(&r.DB, 0, math.MaxInt32), "Index of the database."},
			{"tls", "false", boolean(&r.TLS), "Encrypt the connection, at least TLS 1.2."},
			{"ca_file", "", noneable(&r.CAFile), "PEM file of the certificates to trust instead of the system's."},
			{"cert_file", "", noneable(&r.CertFile), "PEM file of a client certificate; needs `key_file`."},
			{"key_file", "", noneable(&r.KeyFile), "PEM file of the client certificate's key; needs `cert_file`."},
			{"server_name", "", noneable(&r.ServerName), "Name expected in the server's certificate; empty for `host`."},
			{"sentinel_master", "", noneable(&r.SentinelMaster), "Name of the master to ask Redis Sentinel for; needs `sentinel_addrs`, and replaces `host` and `port`."},
			{"sentinel_addrs", "", list(&r.SentinelAddrs, checkAddr), "Sentinels, as host:port, separated by commas."},
			{"sentinel_password", "", secret(&r.SentinelPassword), "Password of the sentinels; empty or `None` for none."},
			{"cluster_addrs", "", list(&r.ClusterAddrs, checkAddr), "Some nodes of a Redis Cluster, as host:port, separated by commas; replaces `host` and `port`."},
			{"dial_timeout", "5", seconds(&r.DialTimeout, time.Millisecond, time.Hour), "Longest time to make a connection."},
			{"read_timeout", "3", seconds(&r.ReadTimeout, time.Millisecond, time.Hour), "Longest wait for a reply."},
			{"write_timeout", "3", seconds(&r.WriteTimeout, time.Millisecond, time.Hour), "Longest time to send a command."},
			{"durability", DurabilityFast, word(&r.Durability, DurabilityFast, DurabilitySafe, DurabilityHA), "What Redis must keep of what it has acknowledged, checked at the start. `fast`: as it is set up; without an append-only file a start warns. `safe`: all that was on its disk, so `appendonly yes` and `appendfsync always`. `ha`: what a replica has confirmed, so Redis Sentinel with `min-replicas-to-write 1`; each change then waits for a replica."},
			{"replication_timeout", "1", seconds(&r.ReplicationTimeout, 10*time.Millisecond, time.Hour), "With `durability=ha`, longest wait for a replica to confirm a change, after which it counts as not made and is repeated; shorter than `read_timeout`."},
		},
	}
}

func serverSection(s *Server) section {
	return section{
		name: "server", doc: "Read by tdf-server.",
		keys: []key{
			{"round_duration", "1.3", seconds(&s.RoundDuration, shortest, longest), "Longest time between two passes over due tasks; woken, the server reacts at once."},
			{"timeout_grace", "10", seconds(&s.TimeoutGrace, 0, longest), "How long to wait, after a round's timeout, for the report of its worker; then a server tells the worker to end the round, and ends it itself only where there is no lease. Published for all workers: one whose kill_grace is not shorter refuses to start."},
			{"worker_timeout", "15", seconds(&s.WorkerTimeout, time.Second, longest), "The lease: a worker that has not been heard of for so long is dead, and its tasks are opened again. Published for all workers, which send a heartbeat three times as often."},
			{"quarantine", QuarantineWarn, word(&s.Quarantine, QuarantineOff, QuarantineWarn, QuarantineOn), "What becomes of a node where tasks fail that succeed elsewhere: with `on` it is set aside until a task it is given to try succeeds, with `warn` only the log says so, with `off` nobody looks."},
			{"quarantine_probe", "60", seconds(&s.QuarantineProbe, time.Second, longestProbe), "Pause before a node that was set aside is given a task to try; doubles with each one that fails, up to an hour."},
			{"history_file", "", noneable(&s.HistoryFile), "File in which the server keeps how far it has seen the history of the namespace, so that a loss of Redis is noticed also after everything was started anew; empty for memory only."},
			{"events", "10000", integer(&s.Events, 0, 100_000_000), "How many of the newest events of tasks Redis keeps, for `verify` and for people; 0 for none."},
			{"archive_retention", "off", retention(&s.ArchiveRetention), "How long archived tasks stay in Redis. Each entry is an outcome, or none for all others, and an age (`90s`, `30m`, `12h`, `7d`, `4w`), a number of tasks of which the newest stay, or both: then a task goes by whichever comes first. `unlimited` keeps all. See [OPERATIONS.md](OPERATIONS.md#archived-tasks-leave-redis)."},
			{"archive_dir", "", noneable(&s.ArchiveDir), "Directory into which archived tasks are written before they leave Redis, as compressed JSON Lines; `tdf-manager` reads them with `--archive`. Relative to the working directory; made with mode 0700 if it is missing; servers may share it. Needs `archive_retention`. Empty: no copy is kept. See [OPERATIONS.md](OPERATIONS.md#the-archive-on-disk)."},
			{"batch_size", "100", integer(&s.BatchSize, 1, 10000), "Most tasks settled at once."},
			{"repair_interval", "5", seconds(&s.RepairInterval, shortest, longest), "Time between two background passes that adopt foreign tasks and repair indices."},
			{"repair_batch", "1000", integer(&s.RepairBatch, 1, 100000), "Most tasks one such pass looks at."},
		},
	}
}

func managerSection(m *Manager) section {
	return section{
		name: "manager", doc: "Read by tdf-manager and by programs that use the package manager.",
		keys: []key{
			{"round_duration", "1.3", seconds(&m.RoundDuration, shortest, longest), "Longest time between two passes over ended tasks; woken, the manager reacts at once."},
			{"batch_size", "100", integer(&m.BatchSize, 1, 10000), "Most tasks opened or archived at once."},
			{"key_ttl", "604800", seconds(&m.KeyTTL, time.Minute, 366*longest), "How long the key of a submitted task is remembered, by default seven days: until then, a second task with the same key in the same queue is not opened."},
			{"handler_backoff", "1", seconds(&m.HandlerBackoff, 0, longest), "Pause before a task is given again to a handler that returned an error; doubles each time."},
			{"handler_backoff_max", "60", seconds(&m.HandlerBackoffMax, 0, longest), "Where that pause stops growing."},
			{"handling_lease", "15", seconds(&m.HandlingLease, time.Second, time.Hour), "How long a manager may be silent before another one gets the tasks that its handlers have; its own handlers are told to end before that. The other one watches for that long by its own clock, so the clock of Redis does not matter, and a manager that has just begun takes nothing over for that long."},
		},
	}
}

// Limits of durations: a shorter wait would be a busy loop, a longer one is a slip.
const (
	shortest = 10 * time.Millisecond
	longest  = 24 * time.Hour

	longestProbe = time.Hour // where the pause between probes stops growing
)

// section returns the section with that name, or an empty one.
func (s schema) section(name string) section {
	for _, sec := range s {
		if sec.name == name {
			return sec
		}
	}
	return section{}
}

// key returns the key with that name.
func (s section) key(name string) (key, bool) {
	for _, k := range s.keys {
		if k.name == name {
			return k, true
		}
	}
	return key{}, false
}
