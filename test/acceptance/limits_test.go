package acceptance

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	sm "github.com/tdf-go/tdf/statemachine"
)

// What a worker is told to limit and to set up is what its programs find, the
// registry shows how they are contained, and a round after one that ran into a
// limit is not worse for it.
func TestLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		root        bool
		set         []string
		containment string
		body        string
		want        map[string]string
	}{
		"rlimits": {false, []string{"rlimits=nofile=77, core=0, fsize=1MiB"}, "", "ulimit -n; ulimit -Hc; ulimit -Hf",
			map[string]string{"0:output": "77\n0\n2048\n", "0:exit_code": "0"}},
		"fsize is reached": {false, []string{"rlimits=fsize=1KiB"}, "", `head -c 5000 /dev/zero > "$TDF_WORKDIR/big"`,
			map[string]string{"0:exit_code": "*"}},
		"wrapper": {false, []string{"wrapper=nice -n 19 env WRAPPED=yes"}, "", `nice; echo $WRAPPED; printf '[%s]' "$@"`,
			map[string]string{"0:output": "19\nyes\n[a][$(b)]", "0:exit_code": "0"}},
		"run_as": {true, []string{"run_as=nobody"}, "", `id -u; touch mine && echo >> run.sh && stat -c %u mine . run.sh`,
			map[string]string{"0:output": "65534\n65534\n65534\n65534\n", "0:exit_code": "0"}},
		"memory_max": {true, []string{"containment=pidns", "memory_max=40MiB"}, "pidns+cgroup", `x=$(head -c 100000000 /dev/zero | tr '\0' x)`,
			map[string]string{"0:exit_code": "-", "0:signal": "killed", "0:error": "out of memory: memory_max was reached"}},
		"pids_max": {true, []string{"containment=group", "pids_max=20"}, "group", `for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21; do sleep 300 & done`,
			map[string]string{"0:exit_code": "2", "0:error": "*"}},
		"cgroup": {true, []string{"containment=cgroup"}, "pidns+cgroup", `cut -d: -f3 /proc/self/cgroup | grep -c "tdf-"`,
			map[string]string{"0:output": "1\n"}},
		"environment": {false, []string{"environment=MINE"}, "", `echo "$MINE,$OTHER,$TDF_REDIS_HOST"`,
			map[string]string{"0:output": "given,,\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.root {
				needRoot(t, "do what "+name+" is for")
			}
			w := newWorld(t, "slots=1")
			cmd := &exec.Cmd{Path: program(t, "tdf-worker"), Dir: w.own(t, "w"), Env: []string{"MINE=given", "OTHER=hidden", "TDF_REDIS_HOST=" + w.Where.Host}}
			cmd.Args = append([]string{"tdf-worker"}, w.workerArgs("w", c.set...)...)
			w.start(t, cmd)
			spec := w.script(t, "p", c.body)
			spec.Input = "a $(b)"
			checkFields(t, w.await(t, w.open(t, spec)[0], sm.Executed), c.want)
			checkFields(t, w.await(t, w.open(t, w.script(t, "q", "echo fine"))[0], sm.Executed), map[string]string{"0:output": "fine\n", "0:error": ""})
			info, _, err := w.Store.Worker(t.Context(), "w")
			if err != nil || info.Containment == "" || c.containment != "" && info.Containment != c.containment {
				t.Errorf("the registry says %q, %v; want %q", info.Containment, err, c.containment)
			}
			shown, _ := w.manage(t, 0, "worker", "show", "w")
			contains(t, "worker show", shown, info.Containment)
		})
	}
}

// Control groups are made below the one that the worker is told.
func TestCgroupIsBelow(t *testing.T) {
	t.Parallel()
	g := delegate(t, 0)
	w := newWorld(t, "slots=1")
	w.worker(t, "w", "containment=cgroup", "cgroup="+g.dir)
	task := w.await(t, w.open(t, w.script(t, "p", "cat /proc/self/cgroup"))[0], sm.Executed)
	contains(t, "the control group", task.Fields["0:output"], "/"+filepath.Base(g.dir)+"/")
}

// What cannot be had is refused when the worker starts: exit code 2, key, value
// and remedy.
func TestRefusedContainment(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	for name, c := range map[string]struct {
		user bool
		set  []string
		want []string
	}{
		"run_as unknown":     {false, []string{"run_as=nobody-at-all"}, []string{`[worker] run_as = "nobody-at-all"`, "user"}},
		"run_as by a user":   {true, []string{"run_as=daemon"}, []string{`[worker] run_as = "daemon"`, "root"}},
		"wrapper":            {false, []string{"wrapper=no-such-program -x"}, []string{`[worker] wrapper = "no-such-program -x"`, "install the program, or write its whole path"}},
		"rlimit unknown":     {false, []string{"rlimits=nonsense=1"}, []string{"[worker] rlimits", "nonsense", "nofile"}},
		"rlimit raised":      {true, []string{"rlimits=core=0,nofile=999999999"}, []string{"[worker] rlimits", "nofile"}},
		"layer unknown":      {false, []string{"containment=jail"}, []string{`[worker] containment = "jail"`, "pidns"}},
		"memory_max small":   {false, []string{"memory_max=1000"}, []string{"[worker] memory_max", "1MiB"}},
		"memory_max by user": {true, []string{"memory_max=100MiB"}, []string{`[worker] memory_max = "104857600"`, "set memory_max and pids_max to 0"}},
		"pids_max by user":   {true, []string{"pids_max=10"}, []string{`[worker] pids_max = "10"`, "set memory_max and pids_max to 0"}},
		"no cgroup": {true, []string{"containment=cgroup", "require_containment=true"},
			[]string{`[worker] containment = "cgroup"`, "only pidns works here", "Delegate=yes", "require_containment = false"}},
		"slots": {false, []string{"slots=-1"}, []string{`[worker] slots = "-1"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worldOn(t, reachable(t, srv))
			ctx, cancel := context.WithTimeout(t.Context(), patience) // one that is not refused runs on
			defer cancel()
			cmd := exec.CommandContext(ctx, program(t, "tdf-worker"), w.workerArgs("w", c.set...)...)
			cmd.Dir = w.own(t, "w")
			if c.user {
				w.asUser(t, cmd)
			}
			cmd.Env = append(os.Environ(), raceSettings...)
			out, _ := cmd.CombinedOutput() // the exit code says it
			if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != exitUsage {
				t.Fatalf("ended with %v: %s", cmd.ProcessState, out)
			}
			contains(t, "the message", string(out), c.want...)
			if strings.Contains(string(out), "goroutine ") {
				t.Errorf("not a message:\n%s", out)
			}
		})
	}
}

// Where the layer asked for is not available and not required, the worker takes
// the next one, says so in its log, and shows it in the registry.
func TestWeakerContainment(t *testing.T) {
	t.Parallel()
	w := worldOn(t, reachable(t, redistest.Shared(t)))
	cmd := &exec.Cmd{Path: program(t, "tdf-worker"), Dir: w.own(t, "w")}
	cmd.Args = append([]string{"tdf-worker"}, w.workerArgs("w", "containment=cgroup")...)
	w.asUser(t, cmd)
	worker := w.start(t, cmd)
	worker.Says(t, "weaker containment than asked for: cgroup: ")
	worker.Says(t, `"message":"registered"`)
	info, _, err := w.Store.Worker(t.Context(), "w")
	if err != nil || info.Containment != "pidns" {
		t.Errorf("the registry says %q, %v", info.Containment, err)
	}
	w.await(t, w.open(t, w.script(t, "p", "true"))[0], sm.Executed)
}
