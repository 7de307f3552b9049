package config

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// seedForm is a file as the original's documentation describes it, of all
// three programs together.
const seedForm = `
[redis]
host=redis.example.org
port=6380
password=None
db=2

[tdf]
namespace=MyProject

[server]
round_duration=1.3

[worker]
task_output_filename=results/$worker-$taskId-$round.out
task_error_filename=results/$worker-$taskId-$round.err
sleep_after_success=0.1
sleep_after_failure=0.5
sleep_after_no_process_claimed=2.0

[manager]
round_duration=1.3

[task_defaults]
start_after=0
end_before=inf
timeout=inf
max_fails=0
max_timeouts=0
add_random_start_offset=False
`

func TestLoadSeedForm(t *testing.T) {
	t.Parallel()
	for _, kind := range []Kind{ForServer, ForWorker, ForManager} {
		f := mustLoad(t, seedForm, kind)
		want := defaults(t)
		want.Kind = kind
		want.Redis.Host, want.Redis.Port, want.Redis.DB = "redis.example.org", 6380, 2
		want.TDF.Namespace = "MyProject"
		want.Worker.OutputFile = "results/$worker-$taskId-$round.out"
		want.Worker.ErrorFile = "results/$worker-$taskId-$round.err"
		want.Worker.SleepAfterSuccess = 100 * time.Millisecond
		want.Worker.SleepAfterFailure = 500 * time.Millisecond
		want.Worker.SleepAfterNoProcessClaimed = 2 * time.Second
		if diff := compare(want, f); diff != "" {
			t.Errorf("%s: -want +got:\n%s", kind, diff)
		}
	}
}

// compare ignores where values came from.
func compare(want, got *File) string {
	return cmp.Diff(want, got, cmpopts.IgnoreUnexported(File{}), cmpopts.IgnoreFields(File{}, "Path"), cmpopts.EquateEmpty())
}

func defaults(t *testing.T) *File {
	t.Helper()
	return &File{
		Kind: ForServer,
		Redis: Redis{
			Host: "localhost", Port: 6379, DialTimeout: 5 * time.Second, ReadTimeout: 3 * time.Second, WriteTimeout: 3 * time.Second,
			Durability: DurabilityFast, ReplicationTimeout: time.Second,
		},
		TDF: TDF{Namespace: "t"},
		Server: Server{
			RoundDuration: 1300 * time.Millisecond, TimeoutGrace: 10 * time.Second, WorkerTimeout: 15 * time.Second,
			BatchSize: 100, RepairInterval: 5 * time.Second, RepairBatch: 1000,
			Quarantine: QuarantineWarn, QuarantineProbe: time.Minute, Events: 10000, BlobLimit: 64 << 20, BlobQuota: 1 << 30, FileRetention: 7 * 24 * time.Hour,
		},
		Worker: Worker{
			MaxThreads: task.Unlimited, DrainTimeout: 20 * time.Second, OnRedisLoss: "stop", Containment: "auto", DiskReserve: 64 << 20, KeepRounds: 10, Workdir: "private", Commands: "on", ProgramCache: 10 << 30, Settle: "worker", Ahead: 4,
			SleepInitial: 100 * time.Millisecond, SleepIncrease: 1.5, SleepMax: 10 * time.Second, OutputLimit: 1 << 20, OutputMax: 64 << 20, KillGrace: 5 * time.Second,
			ProgramDir: ".", FetchTimeout: 10 * time.Minute, FetchMaxBytes: 1 << 30, FetchMaxEntries: 100_000,
			FetchMaxFileBytes: 512 << 20, FetchMaxRedirects: 5, Revalidate: time.Minute, RsyncPath: "rsync",
		},
		Manager: Manager{
			RoundDuration: 1300 * time.Millisecond, BatchSize: 100,
			KeyTTL: 7 * 24 * time.Hour, HandlerBackoff: time.Second, HandlerBackoffMax: time.Minute, HandlingLease: 15 * time.Second,
		},
		Pin: PinAuto,
		TaskDefaults: TaskDefaults{Defaults: task.Defaults{
			"start_after": "0", "end_before": "inf", "timeout": "inf", "max_fails": "0", "max_timeouts": "0",
			"max_losses": statemachine.DefaultMaxLosses.Text(), "max_faults": statemachine.DefaultMaxFaults.Text(), "fail_on": "any", "on_cut": "keep", "charge": "all", "workdir": "worker",
			"retry_delay": "0", "retry_backoff": "1", "retry_max_delay": "inf", "retry_jitter": "0", "retry_exit_codes": "", "fatal_exit_codes": "",
			"queue": "default", "env": "", "labels": "", "resources": "", "priority": "0",
		}},
	}
}

func TestLoadDefaults(t *testing.T) {
	t.Parallel()
	if diff := compare(defaults(t), mustLoad(t, minimal, ForServer)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLoadForms(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		got        func(f *File) any
		want       any
	}{
		{"password keeps # and ;", with("redis", "password=ab#cd;ef"), func(f *File) any { return f.Redis.Password }, "ab#cd;ef"},
		{"password keeps blank and #", with("redis", "password=ab #cd ;ef"), func(f *File) any { return f.Redis.Password }, "ab #cd ;ef"},
		{"password keeps = and :", with("redis", "password=a=b:c"), func(f *File) any { return f.Redis.Password }, "a=b:c"},
		{"password keeps quotes", with("redis", `password="ab"`), func(f *File) any { return f.Redis.Password }, `"ab"`},
		{"password keeps backquotes", with("redis", "password=`a`b"), func(f *File) any { return f.Redis.Password }, "`a`b"},
		{"password keeps one backquote", with("redis", "password=`"), func(f *File) any { return f.Redis.Password }, "`"},
		{"password keeps triple quotes", with("redis", `password="""a"b""""`), func(f *File) any { return f.Redis.Password }, `"""a"b""""`},
		{"password keeps backslash at end", with("redis", `password=ab\`), func(f *File) any { return f.Redis.Password }, `ab\`},
		{"password keeps %()s", with("redis", `password=%(host)s`), func(f *File) any { return f.Redis.Password }, `%(host)s`},
		{"password None", with("redis", "password=None"), func(f *File) any { return f.Redis.Password }, ""},
		{"password empty", with("redis", "password="), func(f *File) any { return f.Redis.Password }, ""},
		{"colon as in Python", with("redis", "port: 1234"), func(f *File) any { return f.Redis.Port }, 1234},
		{"blanks around =", with("redis", "port \t=  1234  "), func(f *File) any { return f.Redis.Port }, 1234},
		{"comment lines", with("redis", "# a\n; b\n  # c\nport=1"), func(f *File) any { return f.Redis.Port }, 1},
		{"comment behind section", minimal + "[server] # of the house\nround_duration=2", func(f *File) any { return f.Server.RoundDuration }, 2 * time.Second},
		{"CRLF", "[redis]\r\nport=77\r\n[tdf]\r\nnamespace=t\r\n", func(f *File) any { return f.Redis.Port }, 77},
		{"byte order mark", "\xef\xbb\xbf" + with("redis", "port=5"), func(f *File) any { return f.Redis.Port }, 5},
		{"no line end", minimal + "[server]\nround_duration=2.5", func(f *File) any { return f.Server.RoundDuration }, 2500 * time.Millisecond},
		{"Go duration", with("server", "timeout_grace=5m"), func(f *File) any { return f.Server.TimeoutGrace }, 5 * time.Minute},
		{"Go duration of seconds", with("server", "timeout_grace=1.3s"), func(f *File) any { return f.Server.TimeoutGrace }, 1300 * time.Millisecond},
		{"size with unit", with("worker", "output_limit=64KiB"), func(f *File) any { return f.Worker.OutputLimit }, int64(65536)},
		{"size in thousands", with("worker", "output_limit=64kB"), func(f *File) any { return f.Worker.OutputLimit }, int64(64000)},
		{"size in bytes", with("worker", "output_limit=5000"), func(f *File) any { return f.Worker.OutputLimit }, int64(5000)},
		{"True", with("task_defaults", "add_random_start_offset=True"), func(f *File) any { return f.TaskDefaults.AddRandomStartOffset }, true},
		{"true", with("task_defaults", "add_random_start_offset=true"), func(f *File) any { return f.TaskDefaults.AddRandomStartOffset }, true},
		{"list", with("worker", "environment=LANG, TZ HOME"), func(f *File) any { return f.Worker.Environment }, []string{"LANG", "TZ", "HOME"}},
		{"text kept", with("task_defaults", "timeout=3.50"), func(f *File) any { return f.TaskDefaults.Defaults["timeout"] }, "3.50"},
		{"Go duration becomes seconds", with("task_defaults", "timeout=1m30s"), func(f *File) any { return f.TaskDefaults.Defaults["timeout"] }, "90"},
		{"one spelling of inf", with("task_defaults", "end_before=Infinity"), func(f *File) any { return f.TaskDefaults.Defaults["end_before"] }, "inf"},
		{"no bound", with("worker", "sleep_after_no_process_claimed=inf"), func(f *File) any { return f.Worker.SleepAfterNoProcessClaimed }, time.Duration(0)},
		{"factor", with("worker", "sleep_increase=2.25"), func(f *File) any { return f.Worker.SleepIncrease }, 2.25},
		{"limit inf", with("task_defaults", "max_fails=inf"), func(f *File) any { return f.TaskDefaults.Defaults["max_fails"] }, "inf"},
		{"limit unlimited", with("task_defaults", "max_fails=unlimited"), func(f *File) any { return f.TaskDefaults.Defaults["max_fails"] }, "inf"},
		{"threads unlimited", with("worker", "maxthreads=unlimited"), func(f *File) any { return f.Worker.MaxThreads }, task.Unlimited},
		{"threads none", with("worker", "maxthreads=none"), func(f *File) any { return f.Worker.MaxThreads }, task.Unlimited},
		{"processes unlimited", with("worker", "pids_max=unlimited"), func(f *File) any { return f.Worker.PidsMax }, 0},
		{"memory unlimited", with("worker", "memory_max=unlimited"), func(f *File) any { return f.Worker.MemoryMax }, int64(0)},
		{"rounds unlimited", with("worker", "keep_rounds=unlimited"), func(f *File) any { return f.Worker.KeepRounds }, 0},
		{"limit", with("task_defaults", "max_timeouts=7"), func(f *File) any { return f.TaskDefaults.Defaults["max_timeouts"] }, "7"},
		{"fail_on", with("task_defaults", "fail_on=exit"), func(f *File) any { return f.TaskDefaults.Defaults["fail_on"] }, "exit"},
		{"fail_on any is the default", with("task_defaults", "fail_on=any"), func(f *File) any { return f.TaskDefaults.Defaults["fail_on"] }, "any"},
		{"fail_on empty is the default", with("task_defaults", "fail_on="), func(f *File) any { return f.TaskDefaults.Defaults["fail_on"] }, "any"},
		{"sentinel", with("redis", "sentinel_master=m\nsentinel_addrs=a:1,[::1]:2"), func(f *File) any { return f.Redis.String() }, "sentinel m@a:1,[::1]:2 db 0"},
		{"cluster", "[redis]\ncluster_addrs=a:1\n[tdf]\nnamespace={t}\n", func(f *File) any { return f.Redis.String() }, "cluster a:1"},
		{"embedded", "[redis]\nhost=embedded\nport=0\n[tdf]\nnamespace=t\n", func(f *File) any { return f.Redis.Embedded() }, true},
		{"IPv6", "[redis]\nhost=::1\n[tdf]\nnamespace=t\n", func(f *File) any { return f.Redis.String() }, "[::1]:6379 db 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, tc.got(mustLoad(t, tc.text, ForServer))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAddr(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		redis            Redis
		network, address string
	}{
		{Redis{Host: "h", Port: 1}, "tcp", "h:1"},
		{Redis{Host: "[::1]", Port: 1}, "tcp", "[::1]:1"},
		{Redis{Host: "/run/redis.sock", Port: 1}, "unix", "/run/redis.sock"},
		{Redis{Host: EmbeddedHost, Port: 0}, "tcp", "127.0.0.1:0"},
	} {
		network, address := tc.redis.Addr()
		if network != tc.network || address != tc.address {
			t.Errorf("Addr of %q = %s %s; want %s %s", tc.redis.Host, network, address, tc.network, tc.address)
		}
	}
}
