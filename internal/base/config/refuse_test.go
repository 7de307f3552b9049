package config

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// TestRefusedValues has one row per way a key can be wrong.
func TestRefusedValues(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		section, line string
		problem       string
	}{
		{"redis", "port=abc", "not a whole number"},
		{"redis", "port=6379 ; the port", "a comment needs a line of its own"},
		{"redis", "port=65536", "out of range"},
		{"redis", "port=-1", "out of range"},
		{"redis", "port=99999999999999999999", "out of range"},
		{"redis", "port=", "not a whole number"},
		{"redis", "port=0", "only an embedded Redis"},
		{"redis", "db=-1", "out of range"},
		{"redis", "db=1.5", "not a whole number"},
		{"redis", "tls=maybe", "neither true nor false"},
		{"redis", "ca_file=x.pem", "has no effect without tls"},
		{"redis", "server_name=x", "has no effect without tls"},
		{"redis", "tls=true\ncert_file=x.pem", "missing, although cert_file is set"},
		{"redis", "tls=true\nkey_file=x.pem", "missing, although key_file is set"},
		{"redis", "tls=true\nca_file=/does/not/exist.pem", "cannot be read"},
		{"redis", "sentinel_master=m", "missing, although sentinel_master is set"},
		{"redis", "sentinel_addrs=a:1", "missing, although sentinel_addrs is set"},
		{"redis", "sentinel_master=m\nsentinel_addrs=a", "not host:port"},
		{"redis", "sentinel_master=m\nsentinel_addrs=a:0", "port out of range"},
		{"redis", "sentinel_master=m\nsentinel_addrs=a:1\ncluster_addrs=a:1", "given together"},
		{"redis", "sentinel_password=x", "without sentinel_master"},
		{"redis", "cluster_addrs=a:1", "not in braces"},
		{"redis", "cluster_addrs=a:1\ndb=1", "only database 0"},
		{"redis", "dial_timeout=inf", "infinite"},
		{"redis", "read_timeout=0", "out of range"},
		{"redis", "write_timeout=NaN", "NaN"},
		{"redis", "durability=", "empty"},
		{"redis", "durability=best", "not one of the known words"},
		{"redis", "replication_timeout=0", "out of range"},
		{"redis", "durability=ha\nreplication_timeout=3", "not shorter than read_timeout (3)"},
		{"redis", "username=a\x01b", "control character"},
		{"redis", "username=\xffab", "not a text file"},
		{"redis", "password_file=/does/not/exist", "cannot be read"},
		{"tdf", "pprof=6060", "not host:port"},
		{"tdf", "pprof=0.0.0.0:6060", "not a loopback address"},
		{"tdf", "pprof=:6060", "not a loopback address"},
		{"tdf", "pprof=[::]:6060", "not a loopback address"},
		{"tdf", "pprof=redis.example:6060", "not a loopback address"},
		{"tdf", "pprof=127.0.0.1:http", "port out of range"},
		{"tdf", "pprof=127.0.0.1:65536", "port out of range"},
		{"http", "listen=7480", "not host:port"},
		{"http", "listen=127.0.0.1:70000", "port out of range"},
		{"http", "listen=0.0.0.0:7480", "not a loopback address"},
		{"http", "listen=0.0.0.0:7480\ncert_file=x.pem\nkey_file=x.key\ninsecure=true", "has no effect with cert_file"},
		{"http", "listen=:7480\ninsecure=false", "not a loopback address"},
		{"http", "insecure=perhaps", "neither true nor false"},
		{"http", "flock=true", "has no effect without listen"},
		{"http", "disbatch=true", "has no effect without listen"},
		{"http", "listen=0.0.0.0:0\ncert_file=x.pem", "missing, although cert_file is set"},
		{"http", "listen=127.0.0.1:0\nkey_file=x.pem", "missing, although key_file is set"},
		{"http", "cert_file=x.pem\nkey_file=x.pem", "has no effect without listen"},
		{"server", "round_duration=0", "out of range"},
		{"server", "round_duration=-1", "negative"},
		{"server", "round_duration=-1s", "negative"},
		{"server", "round_duration=inf", "infinite"},
		{"server", "round_duration=nan", "NaN"},
		{"server", "round_duration=soon", "not a duration"},
		{"server", "round_duration=1e300", "too long"},
		{"server", "round_duration=1e999", "too large"},
		{"server", "round_duration=0x10p0", "not a duration"},
		{"server", "round_duration=25h", "out of range"},
		{"server", "timeout_grace=", "not a duration"},
		{"server", "worker_timeout=0.5", "out of range"},
		{"server", "worker_timeout=inf", "infinite"},
		{"server", "batch_size=0", "out of range"},
		{"server", "archive_dir=/x", "without archive_retention"},
		{"server", "archive_retention=week", "neither an outcome nor an age nor a number of tasks"},
		{"server", "archive_retention=7d 8d", "neither"},
		{"server", "archive_retention=0.5s", "neither"},
		{"server", "archive_retention=200000d", "neither"},
		{"server", "archive_retention=-5", "neither"},
		{"server", "archive_retention=open 5", "neither"},
		{"server", "archive_retention=failed", "not how long"},
		{"server", "archive_retention=failed 1d, failed 2d", "comes twice"},
		{"server", "archive_retention=1d, 2d", "comes twice"},
		{"server", "quarantine=yes", "not one of the known words"},
		{"server", "quarantine=", "empty"},
		{"server", "quarantine_probe=0", "out of range"},
		{"server", "quarantine_probe=2h", "out of range"},
		{"server", "blob_limit=0", "out of range"},
		{"server", "blob_limit=5GiB", "out of range"},
		{"server", "blob_quota=-1", "not a size"},
		{"server", "file_retention=0", "out of range"},
		{"manager", "key_ttl=59", "out of range"},
		{"manager", "pin=always", "known words"},
		{"manager", "key_ttl=inf", "infinite"},
		{"server", "repair_interval=0", "out of range"},
		{"server", "repair_batch=0", "out of range"},
		{"worker", "task_output_filename=$task_id.out", "unknown placeholder"},
		{"worker", "task_error_filename=${worker}.out", "unknown placeholder"},
		{"worker", "sleep_after_success=-0.1", "negative"},
		{"worker", "sleep_after_failure=inf", "infinite"},
		{"worker", "sleep_after_no_process_claimed=0", "out of range"},
		{"worker", "sleep_after_no_process_claimed=-inf", "infinite"},
		{"worker", "sleep_initial=0.001", "out of range"},
		{"worker", "sleep_initial=inf", "infinite"},
		{"worker", "sleep_max=0", "out of range"},
		{"worker", "sleep_increase=0.9", "out of range"},
		{"worker", "sleep_increase=inf", "out of range"},
		{"worker", "sleep_increase=much", "not a number"},
		{"worker", "sleep_increase=NaN", "NaN"},
		{"worker", "output_limit=1", "out of range"},
		{"worker", "output_limit=-5", "not a size"},
		{"worker", "output_limit=1.5MiB", "not a size"},
		{"worker", "output_limit=1mib", "not a size"},
		{"worker", "output_limit=1TiB", "out of range"},
		{"worker", "output_max=1GiB", "out of range"},
		{"worker", "output_limit=18446744073709551615", "too large"},
		{"worker", "fetch_max_bytes=16777216TiB", "too large"},
		{"worker", "fetch_max_file_bytes=0", "out of range"},
		{"worker", "fetch_max_entries=0", "out of range"},
		{"worker", "fetch_max_redirects=-1", "out of range"},
		{"worker", "fetch_timeout=0", "out of range"},
		{"worker", "revalidate=0", "out of range"},
		{"worker", "kill_grace=2h", "out of range"},
		{"worker", "program_dir=", "empty"},
		{"worker", "rsync_path=", "empty"},
		{"worker", "environment=A=B", "not the name of an environment variable"},
		{"worker", "environment=A*B", "not the name of an environment variable"},
		{"worker", "environment=*", "not the name of an environment variable"},
		{"worker", "environment=LANG,TDF_REDIS_PASSWORD", "cannot be passed on"},
		{"worker", "netrc_file=/does/not/exist", "cannot be read"},
		{"worker", "ca_file=/does/not/exist", "cannot be read"},
		{"worker", "require_pinned=2", "neither true nor false"},
		{"manager", "round_duration=0.001", "out of range"},
		{"manager", "batch_size=x", "not a whole number"},
		{"manager", "handler_backoff=2\nhandler_backoff_max=1", "longer than handler_backoff_max"},
		{"task_defaults", "start_after=inf", "not a time in unix seconds"},
		{"task_defaults", "start_after=-1", "not a time in unix seconds"},
		{"task_defaults", "start_after=NaN", "not a time"},
		{"task_defaults", "start_after=5m", "not a time"},
		{"task_defaults", "start_after=10\nend_before=9", "later than end_before"},
		{"task_defaults", "end_before=-inf", "not a time"},
		{"task_defaults", "start_after=1e12", "not a time"},
		{"task_defaults", "timeout=1e-9", "not a number of seconds above 0"},
		{"task_defaults", "end_before=nan", "not a time"},
		{"task_defaults", "timeout=0", "not a number of seconds above 0"},
		{"task_defaults", "timeout=-3", "above 0"},
		{"task_defaults", "timeout=-inf", "above 0"},
		{"task_defaults", "timeout=NaN", "not a number of seconds"},
		{"task_defaults", "max_fails=-1", "not a whole number"},
		{"task_defaults", "max_fails=1.5", "not a whole number"},
		{"task_defaults", "max_fails=+1", "not a whole number"},
		{"task_defaults", "max_timeouts=nan", "not a whole number"},
		{"task_defaults", "max_losses=-inf", "not a whole number"},
		{"task_defaults", "max_losses=99999999999", "not a whole number"},
		{"task_defaults", "max_faults=-1", "not a whole number"},
		{"task_defaults", "retry_delay=inf", "not a number of seconds"},
		{"task_defaults", "retry_delay=-1", "not a number of seconds"},
		{"task_defaults", "retry_backoff=0.5", "not a number from 1"},
		{"task_defaults", "retry_max_delay=0", "not a number of seconds above 0"},
		{"task_defaults", "retry_jitter=1.1", "not a number from 0 to 1"},
		{"task_defaults", "retry_exit_codes=256", "not a list of exit codes"},
		{"task_defaults", "fatal_exit_codes=x", "not a list of exit codes"},
		{"task_defaults", "charge=host", "not one of all, program"},
		{"task_defaults", "on_cut=maybe", "not one of keep, fail"},
		{"task_defaults", "workdir=here", "not one of worker, private, shared"},
		{"task_defaults", "priority=1001", "from -1000 to 1000"},
		{"task_defaults", "queue=", "not the name of a queue"},
		{"task_defaults", "queue=a:b", "not the name of a queue"},
		{"task_defaults", "env=a b", "not empty or a name"},
		{"task_defaults", "labels=gpu", "not label=value"},
		{"task_defaults", "resources=gpu=x", "not a list of at most 16"},
		{"task_defaults", "fail_on=stdout", "not one of any, stderr, exit"},
		{"task_defaults", "add_random_start_offset=None", "neither true nor false"},
	} {
		t.Run(tc.section+" "+tc.line, func(t *testing.T) {
			t.Parallel()
			e := refused(t, with(tc.section, tc.line), ForWorker)
			if !strings.Contains(e.Problem, tc.problem) {
				t.Errorf("problem %q does not contain %q", e.Problem, tc.problem)
			}
			if e.File == "" || e.Remedy == "" {
				t.Errorf("file or remedy missing in %#v", e)
			}
			if errors.Is(e, ErrUnreadable) {
				return // names the line, as there is no key yet
			}
			if e.Section == "" || e.Key == "" || !errors.Is(e, ErrInvalid) {
				t.Errorf("section, key or sentinel missing in %#v", e)
			}
		})
	}
}

// The certificate of [http] is the server's alone, and lets it listen anywhere.
func TestCertificateOfHTTP(t *testing.T) {
	t.Parallel()
	pem := passwordFile(t, "x", 0o600)
	lines := func(cert, key string) string {
		return with("http", "listen=0.0.0.0:0\ncert_file="+cert+"\nkey_file="+key)
	}
	if f := mustLoad(t, lines(pem, pem), ForServer); len(f.Warnings()) > 0 || f.HTTP.CertFile != pem || f.HTTP.KeyFile != pem {
		t.Errorf("%+v, warnings %v", f.HTTP, f.Warnings())
	}
	for key, text := range map[string]string{"cert_file": lines("/no/such.pem", pem), "key_file": lines(pem, "/no/such.pem")} {
		e := refused(t, text, ForServer)
		if e.Key != key || !strings.Contains(e.Problem, "cannot be read") || !errors.Is(e, os.ErrNotExist) {
			t.Errorf("%s: %v", key, e)
		}
		mustLoad(t, text, ForWorker) // of a file for all programs
	}
	exposed := passwordFile(t, "x", 0o600)
	if err := os.Chmod(exposed, 0o644); err != nil { // whatever the umask
		t.Fatal(err)
	}
	if f := mustLoad(t, lines(exposed, pem), ForServer); len(f.Warnings()) > 0 {
		t.Errorf("of a certificate that all may read: %v", f.Warnings())
	}
	if f := mustLoad(t, lines(pem, exposed), ForServer); len(f.Warnings()) != 1 || !strings.Contains(f.Warnings()[0], exposed) {
		t.Errorf("of a key that all can read: %v", f.Warnings())
	}
	if f := mustLoad(t, lines(pem, exposed), ForWorker); len(f.Warnings()) > 0 {
		t.Errorf("of a key that a worker does not read: %v", f.Warnings())
	}
}

func TestRefusedHosts(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"", "redis:6379", "redis://redis", "a b", "u@h", `"localhost"`} {
		e := refused(t, "[redis]\nhost="+host+"\n[tdf]\nnamespace=t\n", ForServer)
		if e.Section != "redis" || e.Key != "host" || e.Line != 2 {
			t.Errorf("host %q: %v", host, e)
		}
	}
}

func TestEmbeddedIsForTheServerOnly(t *testing.T) {
	t.Parallel()
	const text = "[redis]\nhost=embedded\n[tdf]\nnamespace=t\n"
	mustLoad(t, text, ForServer)
	for _, kind := range []Kind{ForWorker, ForManager} {
		if e := refused(t, text, kind); e.Key != "host" {
			t.Errorf("%s: %v", kind, e)
		}
	}
	for _, line := range []string{"tls=true", "sentinel_master=m\nsentinel_addrs=a:1", "username=u\npassword=p"} {
		refused(t, strings.Replace(text, "[tdf]", line+"\n[tdf]", 1), ForServer)
	}
}

// What cannot keep its promise is refused before anybody asks Redis.
func TestRefusedDurability(t *testing.T) {
	t.Parallel()
	const cluster = "cluster_addrs=a:1\n"
	for line, remedy := range map[string]string{
		"host=embedded\ndurability=safe": "name a Redis server",
		"host=embedded\ndurability=ha":   "name a Redis server",
		cluster + "durability=ha":        "use sentinel_master",
	} {
		e := refused(t, "[redis]\n"+line+"\n[tdf]\nnamespace={t}\n", ForServer)
		if e.Key != "durability" || !strings.Contains(e.Remedy, remedy) {
			t.Errorf("%q: %v", line, e)
		}
	}
	for _, line := range []string{"durability=safe", cluster + "durability=safe", "sentinel_master=m\nsentinel_addrs=a:1\ndurability=ha"} {
		mustLoad(t, "[redis]\n"+line+"\n[tdf]\nnamespace={t}\n", ForServer)
	}
}

// TestErrorNamesEverything is the form that people see.
func TestErrorNamesEverything(t *testing.T) {
	t.Parallel()
	path := write(t, with("redis", "port=abc"))
	_, err := Load(path, ForServer, WithEnviron(nil))
	want := path + `:3: [redis] port = "abc": not a whole number; write a whole number from 0 to 65535`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestAllProblemsAreReported(t *testing.T) {
	t.Parallel()
	_, err := load(t, with("redis", "port=abc\ndb=x\nsize=1"), ForServer)
	for _, want := range []string{"port", "db", "size"} {
		if err == nil || !strings.Contains(err.Error(), "] "+want) {
			t.Errorf("%s is missing in: %v", want, err)
		}
	}
	if !errors.Is(err, ErrInvalid) || !errors.Is(err, ErrUnknown) {
		t.Errorf("sentinels are missing in: %v", err)
	}
}

func TestManyProblemsAreCut(t *testing.T) {
	t.Parallel()
	_, err := load(t, strings.Repeat("geheim\n", 1000), ForServer)
	if err == nil || strings.Count(err.Error(), "\n") != maxProblems || !strings.HasSuffix(err.Error(), "and 980 more problems") {
		t.Errorf("got %v", err)
	}
}
