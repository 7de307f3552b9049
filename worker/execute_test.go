package worker

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func input(text string) func(*task.Definition) {
	return func(s *task.Definition) { storetest.Set(s, "input", text) }
}

// A04, A07, A46: claim, run, report, and what stands in record and log.
func TestTaskIsExecuted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	started, release := filepath.Join(t.TempDir(), "started"), filepath.Join(t.TempDir(), "release")
	id := s.open(t, s.script(t, "p", `echo go > "$1"; while [ ! -e "$2" ]; do sleep 0.01; done; printf 'a\nb\n'`),
		input(started+" "+release))
	w := s.start(t)
	awaitFile(t, started)
	task := s.Task(t, id)
	checkFields(t, task, map[string]string{"state": "running", "0:worker": "w", "0:running": "*", "0:output": "-"})
	if in := s.Sets(t, id); len(in) != 1 || in[0] != sm.Running {
		t.Errorf("listed in %v, want running only", in)
	}
	score := s.Raw.ZScore(t.Context(), s.Key("running"), strconv.FormatInt(id, 10)).Val()
	if sm.Time(score*1e6+0.5) != task.Current.Running {
		t.Errorf("score %f, want the time of the claim %s", score, task.Current.Running.Text())
	}
	touch(t, release)
	task = s.await(t, id, sm.Executed)
	checkFields(t, task, map[string]string{
		"0:output": "a\nb\n", "0:error": "", "0:executed": "*", "0:exit_code": "0", "0:signal": "-",
		"0:output_bytes": "-", "0:error_bytes": "-", "0:stderr": "-",
	})
	task = s.settle(t, id, sm.Succeeded)
	checkFields(t, task, map[string]string{"0:succeeded": "*"})
	checkLines(t, task.Fields["log"],
		"w          moving task 1: open -> running",
		"w          executing task 1: p "+started+" "+release,
		"w          attempting to fetch program 'p' from '"+task.Fields["source"]+"'",
		"w          rsyncing run.sh from "+strings.TrimPrefix(task.Fields["source"], "rsync:"),
		"w          fetched program 'p'",
		"w          moving task 1: running -> executed",
		"server     moving task 1: executed -> succeeded")
	w.log.await(t, "moving task 1: running -> executed")
	checkContains(t, "log", w.log.String(), "moving task 1: open -> running", "claimed task 1", "executing task 1: p "+started)
}

// checkLines compares the lines of a task's log without their times, which
// must not go back.
func checkLines(t *testing.T, log string, want ...string) {
	t.Helper()
	var got []string
	last := ""
	for line := range strings.Lines(log) {
		at, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		if _, err := time.Parse(time.DateTime, at); err != nil || !ok || at < last {
			t.Errorf("line %q after %s: want a time, which does not go back, and a dash", line, last)
		}
		got, last = append(got, text), at
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("log:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A05, A06: due tasks in the order of start_after, later ones not before it.
func TestTasksAreClaimedInOrderWhenDue(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.script(t, "p", "true")
	now, err := s.Store.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	start := func(at sm.Time) func(*task.Definition) {
		return func(sp *task.Definition) { storetest.Set(sp, "start_after", at.Text()) }
	}
	soon := s.open(t, p, start(now.Add(1500*sm.Millisecond)))
	third, first, second := s.open(t, p, start(3e6)), s.open(t, p, start(1e6)), s.open(t, p, start(2e6))
	s.start(t)
	last := sm.Time(0)
	for _, id := range []int64{first, second, third, soon} {
		task := s.await(t, id, sm.Executed)
		if task.Current.Running <= last {
			t.Errorf("task %d was claimed out of order", id)
		}
		last = task.Current.Running
	}
	task := s.Task(t, soon)
	if task.Current.Running < task.StartAfter {
		t.Error("claimed before start_after")
	}
	within(t, "from start_after to the claim", task.StartAfter, task.Current.Running, 2*time.Second)
}

// A08, A09, A10, A40, A41 and the other values of fail_on.
func TestFailure(t *testing.T) {
	t.Parallel()
	type fields = map[string]string
	for name, c := range map[string]struct {
		script, failOn, maxFails string
		state                    sm.State
		fields                   fields
	}{
		"one byte on stderr": {"printf x >&2", "", "0", sm.Failed, fields{
			"0:error": "x", "0:exit_code": "0", "fails": "1", "round": "0", "0:failure": "*", "0:failed": "*",
			"1:open": "-",
		}},
		"always": {"printf $TDF_ROUND >&2", "", "2", sm.Failed, fields{
			"0:error": "0", "1:error": "1", "2:error": "2", "fails": "3", "round": "2",
			"1:open": "*", "2:open": "*", "3:open": "-",
		}},
		"once": {"[ $TDF_ROUND = 1 ] || echo no >&2", "", "1", sm.Succeeded, fields{
			"0:error": "no\n", "1:error": "", "fails": "1", "round": "1",
		}},
		"exit 7": {"echo out; exit 7", "", "0", sm.Failed, fields{
			"0:error": "exit status 7", "0:exit_code": "7", "0:output": "out\n",
		}},
		"exit 7 and stderr": {"echo bad >&2; exit 7", "", "0", sm.Failed, fields{
			"0:error": "bad\n", "0:exit_code": "7",
		}},
		"exit 7, stderr only": {"exit 7", "stderr", "0", sm.Succeeded, fields{
			"0:error": "", "0:exit_code": "7",
		}},
		"warning, stderr only": {"echo warn >&2", "stderr", "0", sm.Failed, fields{"0:error": "warn\n"}},
		"warning, exit only": {"echo warn >&2", "exit", "0", sm.Succeeded, fields{
			"0:error": "", "0:stderr": "warn\n", "0:exit_code": "0",
		}},
		"exit 7, exit only": {"exit 7", "exit", "0", sm.Failed, fields{"0:error": "exit status 7", "0:stderr": "-"}},
		"both, exit only": {"echo warn >&2; exit 7", "exit", "0", sm.Failed, fields{
			"0:error": "warn\n", "0:stderr": "-",
		}},
		"killed": {"kill -KILL $$", "", "0", sm.Failed, fields{
			"0:error": "killed by signal killed", "0:signal": "killed", "0:exit_code": "-",
		}},
		"killed, stderr only": {"kill -KILL $$", "stderr", "0", sm.Succeeded, fields{
			"0:error": "", "0:signal": "killed",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			p := s.script(t, "p", c.script)
			id := s.open(t, p, func(sp *task.Definition) { storetest.Set(sp, "fail_on", c.failOn, "max_fails", c.maxFails) })
			s.start(t)
			task := s.settle(t, id, sm.Failed, sm.Succeeded)
			if task.State != c.state {
				t.Errorf("state %s, want %s", task.State, c.state)
			}
			checkFields(t, task, c.fields)
		})
	}
}

// A program that cannot be started fails its round whatever fail_on says.
func TestProgramCannotBeStarted(t *testing.T) {
	t.Parallel()
	for _, failOn := range []string{"", "stderr", "exit"} {
		t.Run("fail_on="+failOn, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			dir := filepath.Join(s.programs, "p")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "run.sh"), []byte("#!/no/such/shell\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			id := s.open(t, func(sp *task.Definition) { storetest.Set(sp, "fail_on", failOn, "source", "rsync:/x/run.sh") })
			s.start(t)
			task := s.settle(t, id, sm.Failed, sm.Succeeded)
			checkFields(t, task, map[string]string{"state": "failed", "0:exit_code": "-", "0:output": ""})
			checkContains(t, "error", task.Fields["0:error"],
				"could not start program './p/run.sh' at worker 'w'", "interpreter")
		})
	}
}

// A37, A38, A39: words are passed on as they are.
func TestInputIsOnlyWords(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.script(t, "p", `echo $#; for a in "$@"; do printf '[%s]' "$a"; done`)
	evil := filepath.Join(t.TempDir(), "pwn")
	argv := func(words ...string) func(*task.Definition) {
		return func(sp *task.Definition) { storetest.SetArgv(sp, append([]string{}, words...)...) }
	}
	cases := map[int64]string{}
	for text, want := range map[string]string{
		"10 11 12":               "3\n[10][11][12]",
		"":                       "0\n",
		" \t ":                   "0\n",
		"0; touch " + evil:       "3\n[0;][touch][" + evil + "]",
		"$(touch " + evil + ")":  "2\n[$(touch][" + evil + ")]",
		"`id` $HOME > f * 'a b'": "7\n[`id`][$HOME][>][f][*]['a][b']",
		"-n --help":              "2\n[-n][--help]",
		"a\nb":                   "2\n[a][b]",
	} {
		cases[s.open(t, p, input(text))] = want
	}
	cases[s.open(t, p, argv("a b", "", "$x"))] = "3\n[a b][][$x]"
	cases[s.open(t, p, argv(), input("not used"))] = "0\n"
	s.start(t)
	for id, want := range cases {
		task := s.await(t, id, sm.Executed)
		checkFields(t, task, map[string]string{"0:output": want, "0:error": ""})
	}
	if _, err := os.Stat(evil); err == nil {
		t.Error("the input was interpreted")
	}
}

// A log line cannot be forged by an input.
func TestInputStaysOnItsLogLine(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.script(t, "p", "true")
	id := s.open(t, p, input("a\n2020-01-01 00:00:00 - server     moving task 9: open -> archived"))
	long := s.open(t, p, input(strings.Repeat("x ", 100_000)))
	s.start(t)
	task := s.await(t, id, sm.Executed)
	checkContains(t, "log", task.Fields["log"], `executing task 1: p a\n2020-01-01`)
	task = s.await(t, long, sm.Executed)
	checkFields(t, task, map[string]string{"0:error": ""})
	if len(task.Fields["log"]) > 4096 {
		t.Errorf("the log has %d bytes", len(task.Fields["log"]))
	}
}

// What a program sees of its worker and of its task.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.script(t, "p", `env; pwd; stat -c 'mode %a' "$TDF_WORKDIR"
mkdir "$TDF_WORKDIR/d"; echo y > "$TDF_WORKDIR/d/g"; chmod 500 "$TDF_WORKDIR/d"`)
	id := s.open(t, p, input("in put"), func(sp *task.Definition) { storetest.Set(sp, "end_before", "4000000000") })
	private := t.TempDir()
	s.start(t, setting(t, "environment=MINE", "temp_dir="+private), func(o *options) {
		o.environ = []string{
			"PATH=" + os.Getenv("PATH"), "SECRET=1", "TDF_REDIS_PASSWORD=hush", "LD_PRELOAD=", "MINE=yes",
		}
		o.Environment = append(o.Environment, "TDF_*")
	})
	task := s.await(t, id, sm.Executed)
	out := "\n" + task.Fields["0:output"]
	checkFields(t, task, map[string]string{"0:error": ""})
	checkContains(t, "environment", out,
		"\nTDF_TASK_ID=1\n", "\nTDF_ROUND=0\n", "\nTDF_WORKER=w\n", "\nTDF_PROGRAM=p\n",
		"\nTDF_NAMESPACE="+s.Namespace+"\n", "\nTDF_INPUT=in put\n", "\nTDF_SLOT=0\n",
		"\nTDF_DEADLINE=4000000000.000000\n",
		"\nMINE=yes\n", "\nmode 700\n")
	for _, bad := range []string{"SECRET", "hush", "LD_PRELOAD"} {
		if strings.Contains(out, bad) {
			t.Errorf("the program sees %s:\n%s", bad, out)
		}
	}
	_, dir, _ := strings.Cut(out, "TDF_WORKDIR=")
	dir, _, _ = strings.Cut(dir, "\n")
	if !strings.HasPrefix(dir, private+"/") || !strings.Contains(out, "\n"+dir+"\n") {
		t.Errorf("the private directory %q is not in %q, or is not the working directory:\n%s", dir, private, out)
	}
	wait.Eventually(t, patience, func() bool { // it goes once the record is accepted
		_, err := os.Stat(dir + "/d")
		return dir != "" && os.IsNotExist(err)
	}, "what is in the private directory %q is still there", dir)
}

// A42, and the round's number in a second round.
func TestOutputFiles(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir := t.TempDir()
	p := s.script(t, "p", `echo out; [ $TDF_ROUND = 1 ] || echo err >&2`)
	id := s.open(t, p, func(sp *task.Definition) { storetest.Set(sp, "max_fails", "1") })
	name := filepath.Join(dir, "res/$worker-$taskId-$round-$program")
	s.start(t, setting(t, "task_output_filename="+name+".out", "task_error_filename="+name+".err"))
	s.settle(t, id, sm.Succeeded)
	for name, want := range map[string]string{
		"w-1-0-p.out": "out\n", "w-1-0-p.err": "err\n", "w-1-1-p.out": "out\n", "w-1-1-p.err": "",
	} {
		got, err := os.ReadFile(filepath.Join(dir, "res", name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
}

// A43: 100 MB of output, and binary output without a line end.
func TestOutputLimit(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	big := s.open(t, s.script(t, "big", "head -c 100000000 /dev/zero"))
	loud := s.open(t, s.script(t, "loud", "head -c 3000 /dev/zero >&2"))
	exact := s.open(t, s.script(t, "exact", `printf '\000\377\012x'`))
	s.start(t, setting(t, "output_limit=1KiB"))
	task := s.await(t, big, sm.Executed)
	checkFields(t, task, map[string]string{"0:output_bytes": "100000000", "0:error_bytes": "-", "0:error": ""})
	out := task.Fields["0:output"]
	if len(out) > 1200 || !strings.HasPrefix(out, "\x00\x00") || !strings.Contains(out, "99998976") {
		t.Errorf("output of %d bytes: %.600q", len(out), out)
	}
	task = s.await(t, loud, sm.Executed)
	checkFields(t, task, map[string]string{"0:error_bytes": "3000", "0:output_bytes": "-", "0:output": ""})
	checkFields(t, s.await(t, exact, sm.Executed), map[string]string{"0:output": "\x00\xff\nx", "0:output_bytes": "-"})
}

// A task that wants all of its output, or none, fails where something is cut.
func TestOnCut(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	wholly := func(d *task.Definition) { storetest.Set(d, "on_cut", "fail", "fail_on", "exit") }
	long := s.open(t, s.script(t, "long", "echo x > x; head -c 3000 /dev/zero"), wholly, returning("", "x"))
	loud := s.open(t, s.script(t, "loud", "head -c 3000 /dev/zero >&2"), wholly)
	exact := s.open(t, s.script(t, "exact", "head -c 1024 /dev/zero; exit $TDF_ROUND"), wholly)
	bad := s.open(t, s.script(t, "bad", "head -c 3000 /dev/zero; exit 7"), wholly)
	kept := s.open(t, s.script(t, "kept", "head -c 3000 /dev/zero"))
	s.start(t, setting(t, "output_limit=1KiB", "output_max=0"))
	for _, id := range []int64{long, loud} {
		got := s.await(t, id, sm.Executed)
		checkFields(t, got, map[string]string{"0:class": "program", "0:files": "-"}) // it is a failure before files are returned
		checkContains(t, "error", got.Fields["0:error"], "output_limit (1024 bytes)", "on_cut is fail")
	}
	checkFields(t, s.await(t, bad, sm.Executed), map[string]string{"0:error": "exit status 7"})
	for _, id := range []int64{exact, kept} {
		checkFields(t, s.await(t, id, sm.Executed), map[string]string{"0:error": ""})
	}
}

// A28 at modest size: each task is executed once, by one of several workers.
func TestManyWorkers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ledger := filepath.Join(t.TempDir(), "ledger")
	p := s.script(t, "p", `echo $TDF_TASK_ID-$TDF_ROUND >> "$1"`)
	const tasks = 60
	for range tasks {
		s.open(t, p, input(ledger))
	}
	for _, name := range []string{"w1", "w2", "w3", "w4"} {
		s.start(t, func(o *options) { o.Name = name })
	}
	wait.Eventually(t, 2*patience, func() bool {
		n, err := s.Store.Count(t.Context())
		return err == nil && n[sm.Executed]+n[sm.Succeeded] == tasks
	}, "not all tasks are executed")
	runs := map[string]int{}
	for line := range strings.Lines(awaitFile(t, ledger)) {
		runs[line]++
	}
	for line, n := range runs {
		if n != 1 {
			t.Errorf("%s ran %d times", line, n)
		}
	}
	if len(runs) != tasks {
		t.Errorf("%d of %d tasks ran", len(runs), tasks)
	}
}

// A49, and the pauses that can be asked for.
func TestIdleIsSaidOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w := s.start(t, setting(t, "sleep_after_no_process_claimed=0.01"))
	w.log.await(t, `"DEBUG"`)
	wait.Eventually(t, patience, func() bool { return w.log.count("no open task to claim") >= 3 }, "idles too rarely")
	if n := strings.Count(w.log.String(), `"level":"INFO","msg":"no open task to claim","worker":"w"}`); n != 1 {
		t.Errorf("said %d times at info:\n%s", n, w.log)
	}
	id := s.open(t, s.script(t, "p", "true"))
	s.await(t, id, sm.Executed)
	wait.Eventually(t, patience, func() bool {
		return strings.Count(w.log.String(), `"level":"INFO","msg":"no open task to claim","worker":"w"}`) == 2
	}, "a new idle time is not said")
}

func TestPauses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script, setting string
	}{
		"success": {"true", "sleep_after_success=0.7"},
		"failure": {"false", "sleep_after_failure=0.7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			p := s.script(t, "p", c.script)
			first, second := s.open(t, p), s.open(t, p)
			s.start(t, setting(t, c.setting))
			a, b := s.await(t, first, sm.Executed), s.await(t, second, sm.Executed)
			if gap := b.Current.Running.Sub(a.Current.Executed); gap < 700*sm.Millisecond {
				t.Errorf("the next task was claimed after %s s", gap.Text())
			}
		})
	}
}

// Tasks of other buckets are found, within a queue the higher priority first.
func TestBuckets(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.script(t, "p", "true")
	low := s.open(t, p)
	high := s.open(t, p, func(sp *task.Definition) { storetest.SetBucket(sp, task.Bucket{Priority: 5}) })
	other := s.open(t, p, func(sp *task.Definition) { storetest.SetBucket(sp, task.Bucket{Env: "java"}) })
	s.start(t)
	a, b := s.await(t, low, sm.Executed), s.await(t, high, sm.Executed)
	if b.Current.Running > a.Current.Running {
		t.Error("the lower priority was claimed first")
	}
	s.queue(t, "new")
	late := s.open(t, p, func(sp *task.Definition) { storetest.SetBucket(sp, task.Bucket{Queue: "new"}) })
	s.await(t, late, sm.Executed)
	if task := s.Task(t, other); task.State != sm.Open {
		t.Errorf("a task of another env is %s", task.State)
	}
}
