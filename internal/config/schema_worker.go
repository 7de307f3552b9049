package config

import "time"

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
		keys: append([]key{
			{"task_output_filename", "", text(&w.TaskOutputFilename, checkFilename), "File that receives all of a program's stdout; empty for none. `$worker`, `$taskId`, `$round` and `$program` are replaced."},
			{"task_error_filename", "", text(&w.TaskErrorFilename, checkFilename), "The same for stderr."},
			{"sleep_after_success", "0", seconds(&w.SleepAfterSuccess, 0, longest), "Pause after a round that succeeded."},
			{"sleep_after_failure", "0", seconds(&w.SleepAfterFailure, 0, longest), "Pause after a round that failed."},
			{"sleep_after_no_process_claimed", "1", seconds(&w.SleepAfterNoProcessClaimed, shortest, longest), "Longest wait of an idle worker, which is woken when a task is due."},
			{"output_limit", "1MiB", size(&w.OutputLimit, kib, 256*mib), "How much of each stream is stored with the task; of more, head and tail are kept."},
			{"kill_grace", "5", seconds(&w.KillGrace, 0, time.Hour), "Time between SIGTERM and SIGKILL for a program that must stop."},
			{"program_dir", ".", text(&w.ProgramDir, notEmpty), "Directory that holds one directory per program; relative to the working directory."},
			{"environment", "", list(&w.Environment, checkVariable), "Names of the worker's environment variables that programs may see too, separated by commas."},
			{"temp_dir", "", noneable(&w.TempDir), "Where private directories of rounds are made; empty for the system's choice."},
		}, fetchKeys(w)...),
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
		{"ssh_options", "", text(&w.SSHOptions), "Words for ssh when rsync uses it, for example `-i /etc/tdf/key -p 2222`."},
		{"rsync_path", "rsync", text(&w.RsyncPath, notEmpty), "The rsync program; without a slash it is searched in PATH."},
		{"require_pinned", "false", boolean(&w.RequirePinned), "Refuse sources without `#sha256=HEX`."},
	}
}
