package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/task"
)

// TestWorkerKeys loads each key of a worker's life and limits.
func TestWorkerKeys(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		line string
		got  func(w *Worker) any
		want any
	}{
		{"ahead=0", func(w *Worker) any { return w.Ahead }, 0},
		{"slots=8", func(w *Worker) any { return w.Slots }, 8},
		{"node=rack-7", func(w *Worker) any { return w.Node }, "rack-7"},
		{"labels=gpu=a100, zone=eu", func(w *Worker) any { return w.Labels }, []string{"gpu=a100", "zone=eu"}},
		{"env=python", func(w *Worker) any { return w.Env }, "python"},
		{"resources=mem=65536, gpu=4", func(w *Worker) any { return w.Resources }, task.Resources{"gpu": 4, "mem": 65536}},
		{"classes=render=2.1, index", func(w *Worker) any { return w.Classes }, []string{"render=2.1", "index"}},
		{"maxthreads=0", func(w *Worker) any { return w.MaxThreads }, task.AtMost(0)},
		{"maxthreads=3", func(w *Worker) any { return w.MaxThreads }, task.AtMost(3)},
		{"maxthreads=none", func(w *Worker) any { return w.MaxThreads }, task.Unlimited},
		{"drain_timeout=5m", func(w *Worker) any { return w.DrainTimeout }, 5 * time.Minute},
		{"drain_timeout=0", func(w *Worker) any { return w.DrainTimeout }, time.Duration(0)},
		{"on_redis_loss=finish", func(w *Worker) any { return w.OnRedisLoss }, "finish"},
		{"containment=pidns", func(w *Worker) any { return w.Containment }, "pidns"},
		{"containment=cgroup", func(w *Worker) any { return w.Containment }, "cgroup"},
		{"containment=group\nrequire_containment=true", func(w *Worker) any { return w.RequireContainment }, true},
		{"cgroup=/sys/fs/cgroup/tdf", func(w *Worker) any { return w.Cgroup }, "/sys/fs/cgroup/tdf"},
		{"cgroup=None", func(w *Worker) any { return w.Cgroup }, ""},
		{"run_as=nobody", func(w *Worker) any { return w.RunAs }, "nobody"},
		{"run_as=65534:nogroup", func(w *Worker) any { return w.RunAs }, "65534:nogroup"},
		{`run_as=EXAMPLE\jane.doe`, func(w *Worker) any { return w.RunAs }, `EXAMPLE\jane.doe`},
		{"run_as=None", func(w *Worker) any { return w.RunAs }, ""},
		{"wrapper=nice -n 10", func(w *Worker) any { return w.Wrapper }, "nice -n 10"},
		{"wrapper=/usr/bin/bwrap --ro-bind / /", func(w *Worker) any { return w.Wrapper }, "/usr/bin/bwrap --ro-bind / /"},
		{"rlimits=nofile=1024,core=0 fsize=1GiB", func(w *Worker) any { return w.Rlimits }, map[string]uint64{"nofile": 1024, "core": 0, "fsize": 1 << 30}},
		{"memory_max=512MiB", func(w *Worker) any { return w.MemoryMax }, int64(512 << 20)},
		{"memory_max=0", func(w *Worker) any { return w.MemoryMax }, int64(0)},
		{"pids_max=100", func(w *Worker) any { return w.PidsMax }, 100},
		{"disk_reserve=0", func(w *Worker) any { return w.DiskReserve }, int64(0)},
		{"disk_reserve=2GiB", func(w *Worker) any { return w.DiskReserve }, int64(2 << 30)},
		{"workdir=shared", func(w *Worker) any { return w.Workdir }, "shared"},
		{"program_cache=1GiB", func(w *Worker) any { return w.ProgramCache }, int64(1 << 30)},
		{"commands=off", func(w *Worker) any { return w.Commands }, "off"},
		{"settle=server", func(w *Worker) any { return w.Settle }, "server"},
		{"keep_rounds=0", func(w *Worker) any { return w.KeepRounds }, 0},
		{"spool_dir=/var/spool/tdf", func(w *Worker) any { return w.SpoolDir }, "/var/spool/tdf"},
		{"ssh_options=-i /etc/tdf/key", func(w *Worker) any { return w.SSHOptions }, "-i /etc/tdf/key"},
	} {
		t.Run(tc.line, func(t *testing.T) {
			t.Parallel()
			f := mustLoad(t, with("worker", tc.line), ForWorker)
			if diff := cmp.Diff(tc.want, tc.got(&f.Worker)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestRefusedWorkerKeys: each error names key, value and remedy.
func TestRefusedWorkerKeys(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ line, problem string }{
		{"ahead=5", "out of range"},
		{"slots=-1", "out of range"},
		{"slots=1025", "out of range"},
		{"slots=auto", "not a whole number"},
		{"node=a/b", "not the name of a node"},
		{"node=a b", "not the name of a node"},
		{"node=a\u00a0b", "not the name of a node"},
		{"node=a,b", "not the name of a node"},
		{"labels=gpu", "not label=value"},
		{"labels=gpu = a100", "not label=value"},
		{"labels=a=b=c", "not label=value"},
		{"labels=gpu=a\u00a0b", "not label=value"},
		{"env=py thon", "not empty or a name"},
		{"env=-x", "not empty or a name"},
		{"resources=gpu", "not a list of at most 16"},
		{"resources=gpu=0", "not a list of at most 16"},
		{"resources=gpu=1,gpu=2", "not a list of at most 16"},
		{"resources=GPU=1", "not a list of at most 16"},
		{"classes=render=", "not name or name=version"},
		{"classes=a=b=c", "not name or name=version"},
		{"maxthreads=-1", "not a whole number"},
		{"maxthreads=inf", "not a whole number"},
		{"drain_timeout=-1", "negative"},
		{"drain_timeout=25h", "out of range"},
		{"on_redis_loss=continue", "not one of the known words"},
		{"on_redis_loss=", "empty"},
		{"containment=docker", "not one of the known words"},
		{"containment=", "empty"},
		{"require_containment=maybe", "neither true nor false"},
		{"cgroup=tdf", "not an absolute path"},
		{"run_as=a:b:c", "neither user nor user:group"},
		{"run_as=:staff", "neither user nor user:group"},
		{"run_as=nobody:", "neither user nor user:group"},
		{"run_as=-1", "neither user nor user:group"},
		{"run_as=jane doe", "neither user nor user:group"},
		{"wrapper=sh -c 'nice ./run.sh'", "only a shell would understand"},
		{"wrapper=env HOME=$TDF_WORKDIR", "only a shell would understand"},
		{"wrapper=nice > log", "only a shell would understand"},
		{"wrapper=-n 10", "starts with an option"},
		{"wrapper=LANG=C nice", "starts with an assignment"},
		{"wrapper=./wrap.sh", "a relative path"},
		{"rlimits=files=10", "not a resource limit"},
		{"rlimits=nofile=1\x01", "control character"},
		{"rlimits=nofile", "not a resource limit"},
		{"rlimits=nofile=many", "not a value of nofile"},
		{"rlimits=nofile=-1", "not a value of nofile"},
		{"rlimits=nofile=1,core=0,nofile=2", "sets nofile twice"},
		{"memory_max=512", "less than any program needs"},
		{"memory_max=2048TiB", "out of range"},
		{"pids_max=-1", "out of range"},
		{"disk_reserve=-1", "not a size"},
		{"disk_reserve=10%", "not a size"},
		{"disk_reserve=2TiB", "out of range"},
		{"keep_rounds=-1", "out of range"},
		{"workdir=worker", "not one of the known words"},
		{"workdir=", "empty"},
		{"program_cache=-1", "not a size"},
		{"commands=sh", "not one of the known words"},
		{"settle=manager", "not one of the known words"},
		{"settle=", "empty"},
		{"spool_dir=a\x01b", "control character"},
		{`ssh_options=-o "ProxyCommand x"`, "a quote or a backslash"},
	} {
		t.Run(tc.line, func(t *testing.T) {
			t.Parallel()
			name, value, _ := strings.Cut(tc.line, "=")
			e := refused(t, with("worker", tc.line), ForWorker)
			if e.Section != "worker" || e.Key != name || e.Value != value || e.Remedy == "" || !strings.Contains(e.Problem, tc.problem) {
				t.Errorf("got %#v, want problem %q with key, value and remedy", e, tc.problem)
			}
		})
	}
}

// TestFinishNeedsOneAddress: only there a refused connection proves something.
func TestFinishNeedsOneAddress(t *testing.T) {
	t.Parallel()
	const finish = "[worker]\non_redis_loss=finish\n"
	for _, redis := range []string{"sentinel_master=m\nsentinel_addrs=a:1", "cluster_addrs=a:1"} {
		text := strings.Replace(with("redis", redis), "namespace=t", "namespace={t}", 1)
		mustLoad(t, text, ForWorker)
		e := refused(t, text+finish, ForWorker)
		if e.Key != "on_redis_loss" || e.Value != "finish" || !strings.Contains(e.Remedy, "on_redis_loss=stop") {
			t.Errorf("%s: %v", redis, e)
		}
	}
}

func TestRlimit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint64{"nofile=1024": 1024, "as=2GiB": 2 << 30, "core=0": 0, "stack=inf": Unlimited, "data=unlimited": Unlimited} {
		name, value, err := rlimit(text)
		if err != nil || value != want || name+"=" != text[:len(name)+1] {
			t.Errorf("%s: %s %d %v, want %d", text, name, value, err, want)
		}
	}
	for _, name := range rlimitNames {
		if _, _, err := rlimit(name + "=1"); err != nil {
			t.Error(err)
		}
	}
}

// A worker over HTTP needs no [redis], and is not bothered with what one says; what it cannot keep is refused.
func TestWithoutRedis(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "[worker]\nslots=3\n", "[redis]\nhost=embedded\npassword_file=/no/such\ncert_file=/no/such\n[worker]\nslots=3\n"} {
		if f := mustLoad(t, text, ForWorker, WithoutRedis()); f.Redis.Host != "localhost" || text != "" && f.Worker.Slots != 3 {
			t.Errorf("%q: %v, %+v", text, f.Redis, f.Worker)
		}
	}
	for line, want := range map[string]string{
		"on_redis_loss=finish": "write on_redis_loss=stop",
		"output_limit=1048577": "output_max keeps",
		"output_limt=1":        "output_limit",
		"[redis]\npasword=1":   "password",
		"[tdf]\nnamespace=a b": "namespace",
	} {
		if e := refused(t, "[worker]\n"+line+"\n", ForWorker, WithoutRedis()); !strings.Contains(e.Error(), want) {
			t.Errorf("%s: %v", line, e)
		}
	}
	if _, err := load(t, "[worker]\nslots=3\n", ForWorker); err == nil {
		t.Error("with Redis a configuration needs no [redis]")
	}
	mustLoad(t, minimal+"[worker]\noutput_limit=2MiB\non_redis_loss=finish\n", ForWorker)
}
