package workercmd

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

const patience = 15 * time.Second

// output gathers what a process writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// command is the worker as a process of its own in an empty directory.
type command struct {
	*exec.Cmd
	out  *output
	done chan int // gets the exit code, -1 for a signal
}

func prepare(t *testing.T, args ...string) *command {
	t.Helper()
	c := &command{Cmd: exec.Command(os.Args[0], args...), out: &output{}, done: make(chan int, 1)}
	c.Dir, c.Stdout, c.Stderr = t.TempDir(), c.out, c.out
	c.Env = append(os.Environ(), asCommand+"=1")
	return c
}

func (c *command) start(t *testing.T) *command {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = c.Wait() // the exit code says it
		c.done <- c.ProcessState.ExitCode()
		close(c.done)
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		for range c.done {
		}
		if t.Failed() {
			t.Logf("%v wrote:\n%s", c.Args[1:], c.out)
		}
	})
	return c
}

func (c *command) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := c.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func (c *command) exit(t *testing.T, want int) string {
	t.Helper()
	if got := wait.Receive(t, patience, c.done, "the command does not end"); got != want {
		t.Errorf("%v ended with %d, want %d:\n%s", c.Args[1:], got, want, c.out)
	}
	return c.out.String()
}

// configure writes a worker.cfg for the space, with further lines of [worker].
func configure(t *testing.T, sp *storetest.Space, lines ...string) string {
	t.Helper()
	text := "[redis]\nhost=" + sp.Where.Host + "\nusername=" + sp.Where.Username + "\npassword=" + sp.Where.Password +
		"\n[tdf]\nnamespace=" + sp.Namespace + "\n[worker]\nkill_grace=1\n" + strings.Join(lines, "\n") + "\n"
	return write(t, filepath.Join(t.TempDir(), "worker.cfg"), text, 0o600)
}

func write(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return name
}

// open opens a task that runs a script with one word of input.
func open(t *testing.T, sp *storetest.Space, script, input string, change ...func(*task.Definition)) int64 {
	t.Helper()
	file := write(t, filepath.Join(t.TempDir(), "run.sh"), "#!/bin/sh\n"+script, 0o755)
	change = append(change, func(s *task.Definition) { storetest.Set(s, "program", "p", "source", "rsync:"+file, "input", input) })
	return sp.Open(t, storetest.Spec(change...))[0]
}

func await(t *testing.T, sp *storetest.Space, id int64, state statemachine.State) *tasks.TaskHeader {
	t.Helper()
	wait.Eventually(t, patience, func() bool { return sp.Task(t, id).State == state }, "task %d is not %s", id, state)
	return sp.Task(t, id)
}

func awaitFile(t *testing.T, name string) string {
	t.Helper()
	var text []byte
	wait.Eventually(t, patience, func() bool {
		text, _ = os.ReadFile(name)
		return len(text) > 0
	}, "file %s is not made", name)
	return strings.TrimSpace(string(text))
}

func contains(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not in:\n%s", w, text)
		}
	}
}

func lacks(t *testing.T, text, what string) {
	t.Helper()
	if strings.Contains(text, what) {
		t.Errorf("%q is in:\n%s", what, text)
	}
}

// A48 and everything else that must be refused before Redis is asked.
func TestRefusals(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	good := configure(t, sp)
	bad := configure(t, sp, "output_limt=1")
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"expecting 2 arguments (0 given)", "Usage:", "tdf-worker NAME worker.cfg"}},
		{[]string{"w"}, []string{"expecting 2 arguments (1 given)"}},
		{[]string{"w", good, "x"}, []string{"expecting 2 arguments (3 given)"}},
		{[]string{"a/b", good}, []string{"a/b", "slash"}},
		{[]string{"a\nb", good}, []string{"control"}},
		{[]string{"w", "/no/such.cfg"}, []string{"/no/such.cfg"}},
		{[]string{"w", bad}, []string{bad, "output_limt", "output_limit"}},
		{[]string{"w", good, "--check", "--set", "worker.output_limit=-1"}, []string{"output_limit", "-1"}},
		{[]string{"w", good, "--set", "worker.temp_dir=/no/such/dir"}, []string{"TempDir", "/no/such/dir", "[worker] temp_dir"}},
		{[]string{"w", good, "--set", "worker.netrc_file=/no/such/netrc"}, []string{"/no/such/netrc"}},
		{[]string{"w", good, "--log-level", "loud"}, []string{"loud"}},
		{[]string{"w", good, "--nonsense"}, []string{"nonsense"}},
	} {
		contains(t, prepare(t, c.args...).start(t).exit(t, cli.ExitUsage), c.want...)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	file := configure(t, sp)
	contains(t, prepare(t, "w", file, "--check").start(t).exit(t, 0), "configuration ok")
	contains(t, prepare(t, "--version").start(t).exit(t, 0), "tdf-worker ")
	text := prepare(t, "w", file, "--print-config").start(t).exit(t, 0)
	contains(t, text, "kill_grace", "****")
	lacks(t, text, sp.Where.Password)
}

// A44: what is wrong with Redis is said with section, key and remedy.
func TestRedisErrors(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	evicting := storetest.On(t, redistest.Start(t, redistest.WithConfig("maxmemory-policy", "allkeys-lru")))
	file := configure(t, sp)
	// Another user, so that the refusal is not held against the one of this test.
	wrong := strings.NewReplacer("password="+sp.Where.Password, "password=wrong", "username=", "username=no-").
		Replace(read(t, file))
	wrong = write(t, filepath.Join(t.TempDir(), "wrong.cfg"), wrong, 0o600)
	for _, c := range []struct {
		file string
		set  string
		code int
		want []string
	}{
		{file, "redis.host=/no/such.sock", cli.ExitRedis, []string{"[redis]", "/no/such.sock"}},
		{file, "redis.db=999", cli.ExitRedis, []string{"[redis] db", "999"}},
		{wrong, "redis.db=0", cli.ExitRedis, []string{"[redis] password"}},
		{configure(t, evicting), "redis.db=0", cli.ExitUsage, []string{"maxmemory-policy", "allkeys-lru"}},
	} {
		contains(t, prepare(t, "w", c.file, "--set", c.set).start(t).exit(t, c.code), c.want...)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The whole program: first line, fetch into the working directory, output
// files, nothing of its environment or files for the program, orderly end.
func TestWork(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	id := open(t, sp, `env; ls -l /proc/self/fd | sed 's/.*-> //'`, "1 2")
	file := configure(t, sp, "task_output_filename=res/$worker-$taskId-$round-$program.out")
	write(t, file, strings.Replace(read(t, file), "password="+sp.Where.Password, "", 1), 0o600)
	c := prepare(t, "w", file)
	c.Env = append(c.Env, "TDF_REDIS_PASSWORD="+sp.Where.Password)
	secret, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	c.ExtraFiles = []*os.File{secret}
	c.start(t)
	_ = secret.Close()
	task := await(t, sp, id, statemachine.Executed)
	c.signal(t, syscall.SIGTERM)
	text := c.exit(t, 0)
	contains(t, text, "executing task 1: p 1 2", "stopped")
	first, _, _ := strings.Cut(text, "\n")
	contains(t, first, "initializing 'w' for namespace '"+sp.Namespace+"' (config: '"+file+"')")
	out := task.Fields["0:output"]
	contains(t, out, "TDF_TASK_ID=1", "TDF_WORKER=w")
	for _, bad := range []string{"TDF_REDIS", sp.Where.Password, "worker.cfg", asCommand} {
		if strings.Contains(out, bad) {
			t.Errorf("the program sees %q:\n%s", bad, out)
		}
	}
	if got := read(t, filepath.Join(c.Dir, "res", "w-1-0-p.out")); got != out {
		t.Errorf("the output file holds %q, the task %q", got, out)
	}
	read(t, filepath.Join(c.Dir, "p", task.Fields["0:program_sha256"], "run.sh"))
	if task.Fields["0:error"] != "" {
		t.Errorf("error: %s", task.Fields["0:error"])
	}
}

const sleeper = `echo $$ > "$1.tmp"; mv "$1.tmp" "$1"; while :; do sleep 0.05; done`

// A program dies with its worker.
func TestKilledWorkerTakesItsProgramAlong(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	pid := filepath.Join(t.TempDir(), "pid")
	open(t, sp, sleeper, pid)
	c := prepare(t, "w", configure(t, sp)).start(t)
	awaitFile(t, pid)
	c.signal(t, syscall.SIGKILL)
	c.exit(t, -1)
	hosttest.AwaitNoProcess(t, 2*time.Second, "TDF_NAMESPACE="+sp.Namespace)
}

// After drain_timeout the task is handed back, and at the second signal at once.
func TestSignals(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]bool{"one": false, "two": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			pid := filepath.Join(t.TempDir(), "pid")
			stubborn := `trap 'echo > "$1.term"' TERM; `
			id := open(t, sp, stubborn+sleeper, pid)
			drain := "drain_timeout=0.3"
			if second {
				drain = "drain_timeout=600"
			}
			file := configure(t, sp)
			c := prepare(t, "w", file, "--set", "worker.kill_grace=0.3", "--set", "worker."+drain).start(t)
			awaitFile(t, pid)
			c.signal(t, syscall.SIGTERM)
			if second {
				wait.Eventually(t, patience, func() bool { return strings.Contains(c.out.String(), "draining") }, "it does not drain")
				c.signal(t, syscall.SIGTERM)
			}
			c.exit(t, 0)
			if task := sp.Task(t, id); task.State != statemachine.Open || task.Releases != 1 {
				t.Errorf("task is %s with %d releases", task.State, task.Releases)
			}
			hosttest.AwaitNoProcess(t, 2*time.Second, "TDF_NAMESPACE="+sp.Namespace)
		})
	}
}

// A13 with a worker that is really frozen: its late word changes nothing.
func TestFrozenWorker(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	pid := filepath.Join(t.TempDir(), "pid")
	id := open(t, sp, sleeper, pid, func(s *task.Definition) { storetest.Set(s, "timeout", "5", "max_timeouts", "1") })
	c := prepare(t, "w", configure(t, sp)).start(t)
	awaitFile(t, pid)
	c.signal(t, syscall.SIGSTOP)
	now := sp.Task(t, id).Current.Running.Add(6 * statemachine.Second)
	wait.Eventually(t, patience, func() bool {
		at, err := sp.Store.Now(t.Context())
		return err == nil && at > now
	}, "time stands still")
	task := sp.Task(t, id)
	move, err := statemachine.Decide(&task.Task, statemachine.Occurrence{
		Event: statemachine.Deadline, Actor: statemachine.Server,
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	out, err := sp.Store.Apply(t.Context(), tasks.Commit{Move: move, Writer: "server"})
	if err != nil || out[0].Err != nil {
		t.Fatal(err, out)
	}
	held := sp.Claim(t, "other", 1)
	before := sp.Task(t, id).Fields
	c.signal(t, syscall.SIGCONT)
	wait.Eventually(t, patience, func() bool {
		return strings.Contains(c.out.String(), "could not mark task 1 as timed out (timed out by server?)")
	}, "the refusal is not logged")
	if after := sp.Task(t, id).Fields; !reflect.DeepEqual(before, after) {
		t.Errorf("the late report changed the task:\n%v\n%v", before, after)
	}
	if out := sp.Report(t, &held[0], "theirs", ""); out.Err != nil {
		t.Errorf("the holder's report: %v", out.Err)
	}
	if task := sp.Task(t, id); task.Timeouts != 1 || task.Round != 1 {
		t.Errorf("timeouts=%d, round=%d", task.Timeouts, task.Round)
	}
}

func TestProcessorsOfAWorker(t *testing.T) {
	t.Parallel()
	for slots, want := range map[int]int{1: 1, 15: 1, 16: 2, 64: 5, 0: 1 + runtime.NumCPU()/16} {
		if n := processors(slots); n != want {
			t.Errorf("%d slots: %d processors, want %d", slots, n, want)
		}
	}
}

// A worker that cannot serve profiles has ended before anybody could ask it; by then it is sealed.
func TestSealedBeforeProfilesAreServed(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	c := prepare(t, "w", configure(t, storetest.New(t)), "--set", "tdf.pprof="+taken.Addr().String())
	c.Env = append(c.Env, asCommand+"="+revealed)
	text := c.start(t).exit(t, cli.ExitUsage)
	for _, want := range []string{"cannot be listened on", "dumpable: 0 <nil>"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q", want)
		}
	}
}
