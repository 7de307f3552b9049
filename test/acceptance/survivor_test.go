package acceptance

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// escapes are programs that try to outlive their round. Their first word is the
// directory in which they say that they are ready, the second one is "exit" for
// those that end by themselves.
var escapes = map[string]string{
	"setsid": `setsid sh -c 'sleep 300 & echo > "$0"; exec sleep 300' "$1/setsid" &`,
	"daemon": `(setsid sh -c '(cd / && sleep 300 & echo > "$0")' "$1/daemon" </dev/null >/dev/null 2>&1 &)`,
	"deaf":   `trap "" TERM INT HUP; sh -c 'sleep 300 & exec sleep 300' & echo > "$1/deaf"`,
	"holder": `sleep 300 & (trap "" HUP; exec setsid sleep 300) & echo > "$1/holder"`,
}

// ready waits for what the program has started, which may be on its way yet.
const ready = `
until [ -e "$1/$TDF_PROGRAM" ]; do sleep 0.02; done
[ "$2" = exit ] || sleep 300`

// end is one way for rounds to end; it returns once they have.
type end struct {
	word    string // for the programs
	timeout time.Duration
	bring   func(t *testing.T, c *crowd)
}

var ends = map[string]end{
	"exit":    {"exit", 0, func(t *testing.T, c *crowd) { c.await(t, sm.Executed) }},
	"timeout": {"hang", 3 * time.Second, func(t *testing.T, c *crowd) { c.await(t, sm.TimedOut) }},
	"drain": {"hang", 0, func(t *testing.T, c *crowd) {
		c.worker.Signal(t, syscall.SIGTERM)
		c.worker.Finish(t)
		c.await(t, sm.Open)
	}},
	"worker killed": {"hang", 0, func(t *testing.T, c *crowd) {
		c.worker.Kill(t)
	}},
	"shims killed": {"hang", 0, func(t *testing.T, c *crowd) {
		shims := shimsOf(t, c.worker)
		if len(shims) != len(escapes) {
			t.Fatalf("shims %v, want %d", shims, len(escapes))
		}
		for _, pid := range shims {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil {
				t.Error(err)
			}
		}
		c.await(t, sm.Executed)
		c.goesOn(t)
	}},
}

// F1, F2, and no survivor: whatever a program starts, whichever way its round
// ends and whichever process dies, two seconds later nothing of it is left.
func TestNoSurvivor(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	for _, user := range []string{"root", "user"} {
		for _, layer := range []string{"pidns", "cgroup", "group"} {
			for name, e := range ends {
				t.Run(user+"/"+layer+"/"+name, func(t *testing.T) {
					t.Parallel()
					c := newCrowd(t, srv, user, layer)
					c.worker.Says(t, `"containment":"`+map[string]string{"pidns": "pidns", "cgroup": "pidns+cgroup", "group": "group"}[layer]+`"`)
					c.begin(t, e)
					e.bring(t, c)
					for escape := range escapes {
						t.Run(escape, func(t *testing.T) {
							wait.Eventually(t, 2*time.Second, func() bool { return len(c.left(escape)) == 0 }, "processes of %s are left", escape)
						})
					}
				})
			}
		}
	}
}

// crowd is a worker with one of each program in its slots.
type crowd struct {
	*world
	worker *daemon
	ids    map[string]int64
}

func newCrowd(t *testing.T, srv *redistest.Server, user, layer string) *crowd {
	t.Helper()
	if user == "root" {
		needRoot(t, "be root")
	}
	uid := map[string]int{"root": 0, "user": nobody}[user]
	set, cmd := []string{"containment=" + layer, "require_containment=true"}, &exec.Cmd{Path: program(t, "tdf-worker")}
	if layer == "cgroup" {
		g := delegate(t, uid)
		g.hold(cmd)
		set = append(set, "cgroup="+g.dir)
	}
	w := worldOn(t, reachable(t, srv), "drain_timeout=0.2", "slots=4")
	cmd.Dir, cmd.Args = w.own(t, "w"), append([]string{"tdf-worker"}, w.workerArgs("w", set...)...)
	if uid != 0 {
		w.asUser(t, cmd)
	}
	t.Cleanup(func() { // a safety net for a failing test
		for _, pid := range w.running() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	})
	return &crowd{w, w.start(t, cmd), map[string]int64{}}
}

// begin starts all programs and waits until they have done their worst. Where they have
// a timeout that is over before, on a busy machine, they get a longer one.
func (c *crowd) begin(t *testing.T, e end) {
	t.Helper()
	signs := c.own(t, "signs")
	allow(t, signs, 0o777)
	for timeout := e.timeout; ; timeout *= 2 {
		for name, body := range escapes {
			spec := c.script(t, name, body+ready)
			spec.Input, spec.Timeout = signs+" "+e.word, timeout
			c.ids[name] = c.open(t, spec)[0]
		}
		late := false
		wait.Eventually(t, patience, func() bool {
			late = timeout > 0 && slices.ContainsFunc(slices.Collect(maps.Values(c.ids)), func(id int64) bool { return c.state(t, id) == sm.TimedOut })
			return late || c.atWorst(signs, e)
		}, "too little runs: the test would prove nothing")
		if !late {
			return
		}
		c.await(t, sm.TimedOut)
		for name := range escapes {
			_ = os.Remove(filepath.Join(signs, name)) // it may not have come so far
		}
	}
}

// atWorst reports whether all programs have started what they start.
func (c *crowd) atWorst(signs string, e end) bool {
	for name := range escapes {
		if _, err := os.Stat(filepath.Join(signs, name)); err != nil {
			return false
		}
	}
	for name := range escapes {
		if e.word != "exit" && len(c.left(name)) < 2 { // the sign may come before the last of them
			return false
		}
	}
	return true
}

func (c *crowd) await(t *testing.T, state sm.State) {
	t.Helper()
	for _, id := range c.ids {
		c.world.await(t, id, state)
	}
}

// goesOn is a worker whose shims were killed: it says so in the records, and
// starts others for the next tasks.
func (c *crowd) goesOn(t *testing.T) {
	t.Helper()
	for _, id := range c.ids {
		contains(t, "error", c.Task(t, id).Fields["0:error"], "shim")
	}
	spec := c.script(t, "next", "true")
	specs := make([]task.Spec, len(escapes))
	for i := range specs {
		specs[i] = spec
	}
	for _, id := range c.open(t, specs...) {
		checkFields(t, c.world.await(t, id, sm.Executed), map[string]string{"0:error": "", "0:exit_code": "0"})
	}
}
