package config

import (
	"slices"
	"time"

	"github.com/tdf-go/tdf/internal/route"
)

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
			{"node", "", text(&w.Node, optional(ruled(route.CheckNode))), "Name of the host in records and in the registry; empty for its host name."},
			{"task_output_filename", "", text(&w.TaskOutputFilename, checkFilename), "File that receives all of a program's stdout; empty for none. `$worker`, `$taskId`, `$round` and `$program` are replaced."},
			{"task_error_filename", "", text(&w.TaskErrorFilename, checkFilename), "The same for stderr."},
			{"sleep_after_success", "0", seconds(&w.SleepAfterSuccess, 0, longest), "Pause after a round that succeeded."},
			{"sleep_after_failure", "0", seconds(&w.SleepAfterFailure, 0, longest), "Pause after a round that failed."},
			{"output_limit", "1MiB", size(&w.OutputLimit, kib, 256*mib), "How much of each stream is stored with the task; of more, head and tail are kept."},
			{"kill_grace", "5", seconds(&w.KillGrace, 0, time.Hour), "Time between SIGTERM and SIGKILL for a program that must stop. It must be shorter than the timeout_grace of the servers: where that is known, a worker with a longer one refuses to start."},
			{"program_dir", ".", text(&w.ProgramDir, notEmpty), "Directory that holds one directory per program; relative to the working directory."},
			{"environment", "", list(&w.Environment, checkVariable), "Names of the worker's environment variables that programs may see too, separated by commas; `JAVA_*` are all that begin so."},
			{"temp_dir", "", noneable(&w.TempDir), "Where private directories of rounds are made; empty for the system's choice."},
		}, idleKeys(w), offerKeys(w), lifeKeys(w), limitKeys(w), fetchKeys(w)),
	}
}

// idleKeys are about how long an idle worker waits.
func idleKeys(w *Worker) []key {
	return []key{
		{"sleep_initial", "0.1", seconds(&w.SleepInitial, shortest, longest), "Longest wait of an idle worker before it looks for tasks again, if it had one before. It is woken at once when a task is due; this covers what wakes nobody, such as a worker that is killed in the moment it is woken."},
		{"sleep_increase", "1.5", factor(&w.SleepIncrease, 1, 1000), "By how much each wait that brings nothing may be longer than the one before. After a task the waits begin with `sleep_initial` again."},
		{"sleep_max", "10", seconds(&w.SleepMax, shortest, longest), "Where the waits stop growing; also counts if `sleep_initial` is longer. While limits keep due tasks from the worker it waits at most 3 seconds."},
		{"sleep_after_no_process_claimed", infinite, bound(&w.SleepAfterNoProcessClaimed, shortest, longest), "Bounds every one of these waits, also the first; the shorter one of it and what the three above say counts. `inf` for no such bound."},
	}
}

// offerKeys are about which tasks this worker may run.
func offerKeys(w *Worker) []key {
	return []key{
		{"env", "", text(&w.Env, ruled(route.CheckEnv)), "Environment of this worker, for example `python`: a task that demands one runs only where it is the same, a task that demands none runs anywhere. Empty for none."},
		{"labels", "", list(&w.Labels, ruled(checkLabel)), "What this worker offers to tasks that demand it, as label=value, separated by commas."},
		{"resources", "", resources(&w.Resources), "What this node has in all for tasks that ask for it, as name=number, separated by commas, for example `gpu=4,mem=65536`. The workers of one node share it and should all say the same."},
		{"classes", "", list(&w.Classes, ruled(route.CheckOffer)), "Classes of queues that this worker serves, as name or name=version, separated by commas. A queue without a class is served by every worker, one with a class only by those that name it here."},
		{"maxthreads", route.Unlimited, threads(&w.MaxThreads), "How many tasks may run at a time on this node, over all queues and all its workers; 0 for nothing new. `none` means `unlimited` too. `tdf-manager node set NODE maxthreads=N` counts instead, where given."},
	}
}

// lifeKeys are about the worker's own life: its end, its lease, its disk.
func lifeKeys(w *Worker) []key {
	return []key{
		{"drain_timeout", "20", seconds(&w.DrainTimeout, 0, longest), "How long running programs may go on after the first SIGTERM or SIGINT before their tasks are handed back."},
		{"on_redis_loss", "stop", word(&w.OnRedisLoss, "stop", "finish"), "When the lease cannot be renewed because nothing listens where Redis was: `stop` ends the programs before the lease does, `finish` lets them go on while that stays so, for hosts that reach Redis directly: a proxy, a tunnel or a firewall that refuses in its place is mistaken for a Redis that is gone. A worker that is cut off in any other way always stops them."},
		{"spool_dir", "", noneable(&w.SpoolDir), "Where results wait that could not be delivered yet; empty for `.tdf/spool` in `program_dir`."},
		{"disk_reserve", "64MiB", size(&w.DiskReserve, 0, tib), "Free space of `program_dir`, `temp_dir` and `spool_dir` below which nothing is claimed; 0 for none."},
		{"keep_rounds", "10", orNone(integer(&w.KeepRounds, 0, 1_000_000), "0"), "Of how many rounds a task keeps its output, half of them the first and half the last. 0 means `unlimited` too."},
	}
}

// limitKeys are about what a program may do.
func limitKeys(w *Worker) []key {
	return []key{
		{"containment", "auto", word(&w.Containment, "auto", "pidns", "cgroup", "group"), "How it is made sure that nothing survives its round: `pidns` by a PID namespace, `cgroup` by a control group in one, `group` only by finding all descendants; `auto` is `pidns`, and where that is not available a control group alone, or `group`. What each cannot hold: [PROGRAMS.md](PROGRAMS.md#what-is-contained)."},
		{"require_containment", "false", boolean(&w.RequireContainment), "Refuse to start where `containment` is not available; with `auto`, where only `group` is. Otherwise the next best one is taken and the log says so."},
		{"cgroup", "", noneable(&w.Cgroup, checkCgroup), "Absolute path of a directory in the cgroup file system below which this worker may make cgroups; empty for its own cgroup."},
		{"run_as", "", noneable(&w.RunAs, checkRunAs), "User, or user:group, that programs run as, by name or number; empty for the worker's own. Needs root. All programs of a worker have the same user and can read each other's files; the worker's own, such as its configuration, only if they may."},
		{"wrapper", "", noneable(&w.Wrapper, checkWrapper), "Words put before `./run.sh`, for example `nice -n 10` or `bwrap --ro-bind / /`. They are split at blanks; no shell reads them."},
		{"rlimits", "", list(&w.Rlimits, checkRlimit), "Resource limits of a program, as name=value separated by commas: `nofile`, `nproc`, `fsize`, `core`, `as`, `cpu` (seconds), `stack`, `data`, `memlock`; sizes may have units; `unlimited` or `inf` for none."},
		{"memory_max", route.Unlimited, orNone(size(&w.MemoryMax, 0, 1024*tib), "0"), "Most memory of all processes of a round, by cgroup, at least 1MiB. 0 means `unlimited` too."},
		{"pids_max", route.Unlimited, orNone(integer(&w.PidsMax, 0, 4_194_304), "0"), "Most processes and threads of a round, by cgroup. 0 means `unlimited` too."},
	}
}

func fetchKeys(w *Worker) []key {
	return []key{
		{"fetch_timeout", "600", seconds(&w.FetchTimeout, time.Second, longest), "Longest time to fetch and unpack one program."},
		{"fetch_max_bytes", "1GiB", size(&w.FetchMaxBytes, 1, tib), "Largest program, as downloaded and as unpacked."},
		{"fetch_max_entries", "100000", integer(&w.FetchMaxEntries, 1, 10_000_000), "Most entries of an archive."},
		{"fetch_max_file_bytes", "512MiB", size(&w.FetchMaxFileBytes, 1, tib), "Largest file of an archive."},
		{"fetch_max_redirects", "5", integer(&w.FetchMaxRedirects, 0, 20), "Most redirects of a download."},
		{"netrc_file", "", noneable(&w.NetrcFile), "File in netrc form with the logins of http and https sources."},
		{"ca_file", "", noneable(&w.CAFile), "PEM file of the certificates to trust for https instead of the system's."},
		{"ssh_options", "", noneable(&w.SSHOptions, checkSSHOptions), "Words for ssh when rsync uses it, for example `-i /etc/tdf/key -p 2222`."},
		{"rsync_path", "rsync", text(&w.RsyncPath, notEmpty), "The rsync program; without a slash it is searched in PATH."},
		{"require_pinned", "false", boolean(&w.RequirePinned), "Refuse sources without `#sha256=HEX`."},
	}
}
