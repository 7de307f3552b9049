package config

import (
	"math"
	"slices"
	"time"

	"github.com/tdf-go/tdf/task"
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
			doc: "What all programs of one project share. Required, but for a worker with [`--url`](HTTP.md#tdf-worker).",
			keys: []key{
				{"namespace", "", needed(text(&f.TDF.Namespace, ValidNamespace), "MyProject"), "Start of the name of every key in Redis. In braces, as in `{sum}`, for a Redis Cluster."},
				{"pprof", "", textOrNone(&f.TDF.Pprof, checkLoopback), "Loopback address and port, such as `127.0.0.1:6060`, at which tdf-server, tdf-worker and `tdf-manager run` answer to `go tool pprof`; port 0 means any free one, which the log names. Every user of the host can ask. Empty for none."},
			},
		},
		{
			name: "http", doc: "What tdf-server and tdf-worker [show over HTTP](OPERATIONS.md#watching-a-site).",
			keys: []key{
				{"listen", "", textOrNone(&f.HTTP.Listen, func(s string) error { return checkListen(s, "write 127.0.0.1:7480") }), "Address and port to answer on, such as `127.0.0.1:7480`; port 0 means any free one, which the log names. An address that other hosts can reach needs `cert_file` and `key_file`, or `insecure`. Health and metrics are for everyone who can connect, the rest for those with a token. Empty for nowhere."},
				{"worker_listen", "", textOrNone(&f.HTTP.WorkerListen, func(s string) error { return checkListen(s, "write 127.0.0.1:7481") }), "Address and port at which tdf-worker answers with its [metrics](OPERATIONS.md#metrics-of-a-worker), as `listen` is that of tdf-server. Empty for nowhere."},
				{"cert_file", "", textOrNone(&f.HTTP.CertFile), "PEM file of the server's certificate, with intermediate ones after it; needs `key_file`. With it all answers are over TLS, at least 1.2. Both files are read again when they change."},
				{"key_file", "", textOrNone(&f.HTTP.KeyFile), "PEM file of the certificate's key; needs `cert_file`."},
				{"insecure", disabled, boolean(&f.HTTP.Insecure), "Allow an address that other hosts can reach also without `cert_file`. Nothing is encrypted then."},
				{"flock", disabled, boolean(&f.HTTP.Flock), "Answer to clients and workers of [Flock](FLOCK.md) as well, on the same address: `/func`, `/task`, `/worker`, and a page at `/`. They need a token too."},
				{"disbatch", disabled, boolean(&f.HTTP.Disbatch), "Answer to clients of [Disbatch](DISBATCH.md) as well, on the same address: `/nodes`, `/plugins`, `/queues` and `/tasks`. They need a token too."},
			},
		},
		serverSection(&f.Server),
		workerSection(&f.Worker),
		managerSection(&f.Manager, &f.Pin),
		taskDefaultsSection(&f.TaskDefaults),
	}
}

func redisSection(r *Redis) section {
	return section{
		name: "redis", required: true, example: "a line [redis] and below it host=localhost",
		doc: "The Redis server to use. Required, but for a worker with [`--url`](HTTP.md#tdf-worker), which does not look at it.",
		keys: []key{
			{"host", "localhost", text(&r.Host, checkHost), "Host name, IP address or absolute path of a unix socket. `embedded`, for the server only, starts a Redis inside it for trials: nothing survives its end."},
			{"port", "6379", integer(&r.Port, 0, 65535), "Port. 0, with `host=embedded` only, means any free one. A Kubernetes service must not be named tdf-redis, as that would set the variable to a URL, which is refused."},
			{"username", "", textOrNone(&r.Username), "ACL user; empty or `None` for the default user."},
			{"password", "", secret(&r.Password), "Password; empty or `None` for none. All characters count, also `#` and `;`."},
			{"password_file", "", textOrNone(&r.PasswordFile), "File that holds the password, for example a secret mounted by an orchestrator; a line end at its end is ignored. Not together with `password`."},
			{"db", "0", integer(&r.DB, 0, math.MaxInt32), "Index of the database."},
			{"tls", disabled, boolean(&r.TLS), "Encrypt the connection, at least TLS 1.2."},
			{"ca_file", "", textOrNone(&r.CAFile), "PEM file of the certificates to trust instead of the system's."},
			{"cert_file", "", textOrNone(&r.CertFile), "PEM file of a client certificate; needs `key_file`."},
			{"key_file", "", textOrNone(&r.KeyFile), "PEM file of the client certificate's key; needs `cert_file`."},
			{"server_name", "", textOrNone(&r.ServerName), "Name expected in the server's certificate; empty for `host`."},
			{"sentinel_master", "", textOrNone(&r.SentinelMaster), "Name of the master to ask Redis Sentinel for; needs `sentinel_addrs`, and replaces `host` and `port`."},
			{"sentinel_addrs", "", list(&r.SentinelAddrs, checkAddr), "Sentinels, as host:port, separated by commas."},
			{"sentinel_password", "", secret(&r.SentinelPassword), "Password of the sentinels; empty or `None` for none."},
			{"cluster_addrs", "", list(&r.ClusterAddrs, checkAddr), "Some nodes of a Redis Cluster, as host:port, separated by commas; replaces `host` and `port`."},
			{"dial_timeout", "5", seconds(&r.DialTimeout, time.Millisecond, time.Hour), "Longest time to make a connection."},
			{"read_timeout", "3", seconds(&r.ReadTimeout, time.Millisecond, time.Hour), "Longest wait for a reply that is not to a blocking read."},
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
			{"timeout_grace", "10", seconds(&s.TimeoutGrace, 0, longest), "How long to wait, after a round's timeout, for the report of its worker; then a server tells the worker to end the round, or ends it itself where there is no lease. Published for all workers: one whose kill_grace is not shorter refuses to start."},
			{"worker_timeout", "15", seconds(&s.WorkerTimeout, time.Second, longest), "The lease: a worker that is silent for this long is lost, and its tasks are opened again. Published for all workers, which send three heartbeats in this time."},
			{"quarantine", QuarantineWarn, word(&s.Quarantine, QuarantineOff, QuarantineWarn, QuarantineOn), "What happens to a node where tasks fail that succeed elsewhere: `on` keeps it from claiming until a probe succeeds there, `warn` only logs it, `off` does nothing."},
			{"quarantine_probe", "60", seconds(&s.QuarantineProbe, time.Second, longestProbe), "Pause before a quarantined node may try a task; doubles with each failed probe, up to an hour."},
			{"history_file", "", textOrNone(&s.HistoryFile), "File in which the server keeps how far it has seen the history of the namespace, so that a loss of Redis is noticed even after a restart of everything; empty for memory only."},
			{"events", "10000", integer(&s.Events, 0, 100_000_000), "How many of the newest events of tasks Redis keeps, for `verify` and for people; 0 for none."},
			{"blob_limit", "64MiB", size(&s.BlobLimit, 1, 4*gib), "Most bytes, packed, of one upload, or of the files that one round returns. Published for all."},
			{"blob_quota", "1GiB", size(&s.BlobQuota, 1, tib), "Most bytes of all uploads and returned files that Redis keeps. Uploads that nothing refers to leave after a day, returned files after `file_retention`. Published for all."},
			{"file_retention", "604800", seconds(&s.FileRetention, time.Second, 366*longest), "How long the files are kept that rounds return (default: seven days). Published for all workers."},
			{"archive_retention", "off", retention(&s.ArchiveRetention), "How long archived tasks stay in Redis. Each entry is an outcome, or none for all others, and an age (`90s`, `30m`, `12h`, `7d`, `4w`), a number of newest tasks, or both (whichever comes first). `unlimited` keeps all. See [OPERATIONS.md](OPERATIONS.md#archived-tasks-leave-redis)."},
			{"archive_dir", "", textOrNone(&s.ArchiveDir), "Directory to which archived tasks are written before they leave Redis, as compressed JSON Lines; `tdf-manager` reads it with `--archive`. Relative to the working directory; made with mode 0700; servers may share it. Needs `archive_retention`. Empty: no copy. See [OPERATIONS.md](OPERATIONS.md#the-archive-on-disk)."},
			{"batch_size", "100", integer(&s.BatchSize, 1, 10000), "Most tasks settled at once."},
			{"repair_interval", "5", seconds(&s.RepairInterval, shortest, longest), "Time between two background passes that adopt foreign tasks and repair indices."},
			{"repair_batch", "1000", integer(&s.RepairBatch, 1, 100000), "Most tasks one such pass looks at."},
		},
	}
}

func managerSection(m *Manager, pin *string) section {
	return section{
		name: "manager", doc: "Read by tdf-manager and by programs that use the package manager.",
		keys: []key{
			{"round_duration", "1.3", seconds(&m.RoundDuration, shortest, longest), "Longest time between two passes over ended tasks; woken, the manager reacts at once."},
			{"batch_size", "100", integer(&m.BatchSize, 1, 10000), "Most tasks opened or archived at once."},
			{"pin", PinAuto, word(pin, PinAuto, PinRequire, PinOff), "What `submit`, `plan submit` and `plan run` do without `--pin`: `auto` has all tasks run the version of the program that its source holds now, where that can be read, and else the one that the first worker finds; `require` refuses what cannot be read; `off` pins nothing. In Go `manager.Options.Pin` says it."},
			{"key_ttl", "604800", seconds(&m.KeyTTL, time.Minute, 366*longest), "How long a task has its key from when it was opened (default: seven days), and until it has ended in any case. Until then no second task with that key is opened in the same queue."},
			{"handler_backoff", "1", seconds(&m.HandlerBackoff, 0, longest), "Pause before a task is given again to a handler that returned an error; doubles each time."},
			{"handler_backoff_max", "60", seconds(&m.HandlerBackoffMax, 0, longest), "Longest such pause."},
			{"handling_lease", "15", seconds(&m.HandlingLease, time.Second, time.Hour), "How long a manager may be silent before another one gets the tasks of its handlers, which are told to end before that. The other one watches for that long by its own clock, so a manager that has just begun takes nothing over at first."},
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

// Sizes in bytes.
const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
	tib = 1 << 40
)

func workerSection(w *Worker) section {
	return section{
		name: "worker", doc: "Read by tdf-worker.",
		keys: slices.Concat([]key{
			{"slots", "0", integer(&w.Slots, 0, 1024), "How many tasks run at a time; 0 for the number of cores."},
			{"ahead", "4", integer(&w.Ahead, 0, MaxAhead), "How many tasks the worker may claim before it has a free slot for them, so that claims and reports share a trip to Redis. It does so only if it has no handlers and its last 100 programs took less than 10 ms on average, and never for more than 20 ms of work. Tasks of plans, tasks that need resources, and tasks that count against a limit are not claimed ahead. A task that has not begun after 20 ms is handed back at no charge. 0 turns this off."},
			{"node", "", text(&w.Node, optional(task.CheckNode)), "Name of the host in records and in the registry; empty for its host name."},
			{"task_output_filename", "", text(&w.OutputFile, checkFilename), "File that receives all of a program's stdout; empty for none. `$worker`, `$taskId`, `$round` and `$program` are replaced."},
			{"task_error_filename", "", text(&w.ErrorFile, checkFilename), "The same for stderr."},
			{"sleep_after_success", "0", seconds(&w.SleepAfterSuccess, 0, longest), "Pause after a round that succeeded."},
			{"sleep_after_failure", "0", seconds(&w.SleepAfterFailure, 0, longest), "Pause after a round that failed."},
			{"output_limit", "1MiB", size(&w.OutputLimit, kib, 256*mib), "How much of each stream is stored with the task; beyond it, head and tail are kept."},
			{"output_max", "64MiB", size(&w.OutputMax, 0, 512*mib), "How much of a stream longer than `output_limit` is kept beside the record, compressed, for the `file_retention` of the server. Of a still longer one so much is kept, and the end. 0 keeps none."},
			{"kill_grace", "5", seconds(&w.KillGrace, 0, time.Hour), "Time between SIGTERM and SIGKILL for a program that must stop; shorter than the timeout_grace of the servers, or the worker refuses to start."},
			{"program_dir", ".", text(&w.ProgramDir, notEmpty), "Directory that holds the programs, each version in a directory of its own; relative to the working directory."},
			{"environment", "", list(&w.Environment, checkVariable), "Names of the worker's environment variables that programs may see too, separated by commas; `JAVA_*` are all that begin so."},
			{"temp_dir", "", textOrNone(&w.TempDir), "Where private directories of rounds are made; empty for the system's choice."},
		}, idleKeys(w), offerKeys(w), lifeKeys(w), limitKeys(w), fetchKeys(w)),
	}
}

// idleKeys are about how long an idle worker waits.
func idleKeys(w *Worker) []key {
	return []key{
		{"sleep_initial", "0.1", seconds(&w.SleepInitial, shortest, longest), "First wait of an idle worker before it looks for tasks again. It is woken at once when a task is due; this covers lost wake-ups."},
		{"sleep_increase", "1.5", factor(&w.SleepIncrease, 1, 1000), "Factor by which each wait that brings nothing is longer than the one before. After a task the waits begin with `sleep_initial` again."},
		{"sleep_max", "10", seconds(&w.SleepMax, shortest, longest), "Longest wait, also if `sleep_initial` is longer. While limits keep due tasks from the worker it waits at most 3 seconds."},
		{"sleep_after_no_process_claimed", infinite, bound(&w.SleepAfterNoProcessClaimed, shortest, longest), "Bounds each of these waits, also the first. `inf` for no such bound."},
	}
}

// offerKeys are about which tasks this worker may run.
func offerKeys(w *Worker) []key {
	return []key{
		{"env", "", text(&w.Env, task.CheckEnv), "Environment of this worker, for example `python`: a task that demands one runs only where it is the same, a task that demands none runs anywhere. Empty for none."},
		{"labels", "", list(&w.Labels, checkLabel), "What this worker offers to tasks that demand it, as label=value, separated by commas."},
		{"resources", "", resources(&w.Resources), "What this node has for tasks that ask for it, as name=number, separated by commas, for example `gpu=4`. The workers of one node share it and should offer the same. `mem`, unless it is given here, is the memory in MiB; `cpus` is the number of slots and cannot be given."},
		{"classes", "", list(&w.Classes, task.CheckOffer), "Classes that this worker serves, as name or name=version, separated by commas. A task has a class of its own, or that of its queue. The worker takes tasks of these classes, and tasks without a class if it runs programs."},
		{"maxthreads", string(task.Unlimited), threads(&w.MaxThreads), "How many tasks may run at a time on this node, over all queues and all its workers; 0 for nothing new. `none` means `unlimited` too. `tdf-manager node set NODE maxthreads=N` counts instead, where given."},
	}
}

// lifeKeys are about the worker's own life: its end, its lease, its disk.
func lifeKeys(w *Worker) []key {
	return []key{
		{"drain_timeout", "20", seconds(&w.DrainTimeout, 0, longest), "How long running programs may go on after the first SIGTERM or SIGINT before their tasks are handed back."},
		{"on_redis_loss", StopOnLoss, word(&w.OnRedisLoss, StopOnLoss, FinishOnLoss), "When the lease cannot be renewed because nothing listens where Redis was: `stop` ends the programs before the lease does, `finish` lets them go on while that stays so. `finish` is for hosts that reach Redis directly, since a proxy, tunnel or firewall that refuses looks like a Redis that is gone. A worker that is cut off in any other way always stops them."},
		{"spool_dir", "", textOrNone(&w.SpoolDir), "Where results wait that could not be delivered yet; empty for `.tdf/spool` in `program_dir`."},
		{"workdir", task.WorkdirPrivate, word(&w.Workdir, task.WorkdirPrivate, task.WorkdirShared), "The directory that a round runs in, unless its task says otherwise: `private`, one of its own that shows the program's files and is removed after the round, or `shared`, one for all rounds of a version, which keeps what they write."},
		{"commands", CommandsOn, word(&w.Commands, CommandsOn, CommandsOff), "Whether tasks can run commands of this host (`command:NAME` as source), or only programs that are fetched or were put there. The worker offers it as a label, so that tasks with a command go to workers that run them."},
		{"program_cache", "10GiB", size(&w.ProgramCache, 0, tib), "Room for the versions of programs in `program_dir`. When a new one was installed, those go that were used longest ago, until the rest fits; versions of rounds that run stay, and programs put there by hand. 0 for no limit."},
		{"disk_reserve", "64MiB", size(&w.DiskReserve, 0, tib), "Free space of `program_dir`, `temp_dir` and `spool_dir` below which nothing is claimed; 0 for none."},
		{"settle", SettleByWorker, word(&w.Settle, SettleByWorker, SettleByServer), "Who settles a task that has succeeded: `worker` in the move that reports it, so that no server is needed for it, or `server` afterwards. What fails, comes too late, was cancelled or belongs to a plan is settled by a server in any case."},
		{"keep_rounds", "10", orNone(integer(&w.KeepRounds, 0, 1_000_000), "0"), "Number of rounds whose output a task keeps, half of them the first and half the last. 0 means `unlimited` too."},
	}
}

// limitKeys are about what a program may do.
func limitKeys(w *Worker) []key {
	return []key{
		{"containment", "auto", word(&w.Containment, "auto", "pidns", "cgroup", "group"), "What keeps programs from surviving their round: `pidns` a PID namespace, `cgroup` a control group in one, `group` only a search for all descendants; `auto` is `pidns`, or where that is not available a control group alone, or `group`. What each cannot hold: [PROGRAMS.md](PROGRAMS.md#what-is-contained)."},
		{"require_containment", disabled, boolean(&w.RequireContainment), "Refuse to start where `containment` is not available; with `auto`, where only `group` is. Otherwise the next best one is taken and the log says so."},
		{"cgroup", "", textOrNone(&w.Cgroup, checkCgroup), "Absolute path of a directory in the cgroup file system below which this worker may make cgroups; empty for its own cgroup."},
		{"run_as", "", textOrNone(&w.RunAs, checkRunAs), "User, or user:group, that programs run as, by name or number; empty for the worker's own. Needs root. All programs of a worker share the user and can read each other's files."},
		{"wrapper", "", textOrNone(&w.Wrapper, checkWrapper), "Words before `./run.sh`, for example `nice -n 10` or `bwrap --ro-bind / /`, split at blanks, without a shell. They are started with the environment of the program, the variables of its task included."},
		{"rlimits", "", rlimits(&w.Rlimits), "Resource limits of a program, as name=value separated by commas: `nofile`, `nproc`, `fsize`, `core`, `as`, `cpu` (seconds), `stack`, `data`, `memlock`; sizes may have units; `unlimited` or `inf` for none."},
		{"memory_max", string(task.Unlimited), orNone(size(&w.MemoryMax, 0, 1024*tib), "0"), "Most memory of all processes of a round, by cgroup, at least 1MiB. 0 means `unlimited` too. Tasks with a `memory_max` of their own go to workers that have one."},
		{"pids_max", string(task.Unlimited), orNone(integer(&w.PidsMax, 0, 4_194_304), "0"), "Most processes and threads of a round, by cgroup. 0 means `unlimited` too. Tasks with a `pids_max` of their own go to workers that have one."},
	}
}

func fetchKeys(w *Worker) []key {
	return []key{
		{"fetch_timeout", "600", seconds(&w.FetchTimeout, time.Second, longest), "Longest time to fetch and unpack one program."},
		{"fetch_max_bytes", "1GiB", size(&w.FetchMaxBytes, 1, tib), "Largest program, as downloaded and as unpacked; and most bytes of the files that a round returns elsewhere than to Redis (`return_to`)."},
		{"fetch_max_entries", "100000", integer(&w.FetchMaxEntries, 1, 10_000_000), "Most entries of an archive; and most such files."},
		{"fetch_max_file_bytes", "512MiB", size(&w.FetchMaxFileBytes, 1, tib), "Largest file of an archive; and of those that are returned so."},
		{"fetch_max_redirects", "5", integer(&w.FetchMaxRedirects, 0, 20), "Most redirects of a download."},
		{"revalidate", "60", seconds(&w.Revalidate, time.Second, longest), "Longest time for which a source without `#sha256=HEX` is taken for unchanged. A local path is looked at before each round."},
		{"netrc_file", "", textOrNone(&w.NetrcFile), "File in netrc form with the logins of http and https sources."},
		{"ca_file", "", textOrNone(&w.CAFile), "PEM file of the certificates to trust for https instead of the system's."},
		{"ssh_options", "", textOrNone(&w.SSHOptions, checkSSHOptions), "Words for ssh when rsync uses it, for example `-i /etc/tdf/key -p 2222`."},
		{"rsync_path", "rsync", text(&w.RsyncPath, notEmpty), "The rsync program; without a slash it is searched in PATH."},
		{"require_pinned", disabled, boolean(&w.RequirePinned), "Refuse sources without `#sha256=HEX`, and with them commands."},
	}
}

func taskDefaultsSection(d *TaskDefaults) section {
	sec := section{
		name: "task_defaults", doc: "Values of a new task that its opener did not give. Read by tdf-manager and by programs that use the package manager.",
	}
	for _, f := range task.Fields() {
		if f.Configured {
			sec.keys = append(sec.keys, key{f.Name, f.Default, ofTask(d, f), f.Doc})
		}
		if f.Name == "end_before" {
			sec.keys = append(sec.keys, key{"add_random_start_offset", "False", boolean(&d.AddRandomStartOffset), "Add a random part of a second to `start_after`, to mix tasks with the same start."})
		}
	}
	return sec
}
