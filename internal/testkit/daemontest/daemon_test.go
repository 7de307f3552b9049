package daemontest

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tdf-go/tdf/internal/testkit/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// recorder keeps the errors a helper reports instead of failing the test.
type recorder struct {
	testing.TB
	errors []string
	logs   []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Logf(format string, args ...any) {
	r.logs = append(r.logs, fmt.Sprintf(format, args...))
}

func (r *recorder) Failed() bool { return len(r.errors) > 0 }

func shell(t *testing.T, script string, env ...string) *Daemon {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir, cmd.Env = t.TempDir(), env
	return Start(t, patience, cmd)
}

const loop = "; while :; do sleep 0.02; done"

// A program ends well, badly, only by force, or is killed by the test; one that is
// stopped goes on to end.
func TestStop(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script   string
		patience time.Duration
		before   syscall.Signal
		want     string
	}{
		"well":    {script: "trap 'exit 0' TERM; echo ready" + loop, patience: patience},
		"stopped": {script: "trap 'exit 0' TERM; echo ready" + loop, patience: patience, before: syscall.SIGSTOP},
		"badly":   {script: "trap 'exit 7' TERM; echo ready" + loop, patience: patience, want: "ended with 7"},
		"never":   {script: "trap '' TERM; echo ready" + loop, patience: 50 * time.Millisecond, want: "does not stop"},
		"killed":  {script: "echo ready" + loop, patience: patience, before: syscall.SIGKILL},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := shell(t, c.script)
			d.Says(t, "ready")
			if c.before != 0 {
				d.Signal(t, c.before)
			}
			d.patience = c.patience
			r := &recorder{TB: t}
			Stop(r, []*Daemon{d})
			if got := strings.Join(r.errors, "\n"); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
				t.Errorf("errors %q, want %q", got, c.want)
			}
			if shown := strings.Join(r.logs, ""); strings.Contains(shown, "ready") != r.Failed() {
				t.Errorf("it failed: %v, and its output is shown as %q", r.Failed(), shown)
			}
			if !d.Ended() {
				t.Error("it has not ended")
			}
		})
	}
}

func TestKill(t *testing.T) {
	t.Parallel()
	d := shell(t, "echo ready"+loop)
	d.Says(t, "ready")
	if d.Ended() {
		t.Error("it is said to have ended")
	}
	d.Kill(t)
	wait.Closed(t, patience, d.Done, "it runs on")
	d.Finish(t)
}

// The environment is that of the test, then what was given.
func TestEnvironment(t *testing.T) {
	t.Setenv("DAEMONTEST_OLD", "old")
	t.Setenv("DAEMONTEST_NEW", "old")
	const script = "echo $DAEMONTEST_OLD $DAEMONTEST_NEW; echo bad >&2; exit 3"
	d := shell(t, script, "DAEMONTEST_NEW=new")
	<-d.Done
	if got := d.Log.String(); got != "old new\nbad\n" {
		t.Errorf("a daemon writes %q", got)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Env = []string{"DAEMONTEST_NEW=new"}
	if out, problems, code := Run(t, cmd); out != "old new\n" || problems != "bad\n" || code != 3 {
		t.Errorf("a run to the end: %q, %q, %d", out, problems, code)
	}
}
