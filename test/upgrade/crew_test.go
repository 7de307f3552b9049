package upgrade

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// crew is the programs that share one namespace, as a directory of each.
type crew struct {
	builds builds
	dir    string
	logs   *os.File
	byName map[string]*member
}

// member is one running program.
type member struct {
	release release
	cmd     *exec.Cmd
	ended   chan error
}

func newCrew(t *testing.T, b builds, dir string) *crew {
	t.Helper()
	logs, err := os.Create(filepath.Join(dir, "crew.log"))
	if err != nil {
		t.Fatal(err)
	}
	c := &crew{builds: b, dir: dir, logs: logs, byName: map[string]*member{}}
	t.Cleanup(func() {
		for _, m := range c.byName {
			_ = m.cmd.Process.Kill()
			<-m.ended
		}
		if t.Failed() {
			t.Logf("the last the programs said:\n%s", c.tail(t))
		}
		_ = logs.Close()
	})
	return c
}

func (c *crew) tail(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(c.logs.Name())
	if err != nil {
		t.Error(err)
	}
	return text[max(0, len(text)-4096):]
}

// start runs a program of a release in the directory of its name, which its other
// release has left or will find.
func (c *crew) start(t *testing.T, name string, r release) {
	t.Helper()
	dir := filepath.Join(c.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(c.builds[r], binary(name)), c.args(name)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, c.logs, c.logs
	// The previous release knows one version of a program, and cannot be beside others.
	cmd.Env = append(os.Environ(), "UPGRADE_LEDGER="+filepath.Join(c.dir, "ledger"), fmt.Sprintf("TDF_WORKER_PROGRAM_DIR=../programs-%d", r))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait(); close(ended) }()
	c.byName[name] = &member{release: r, cmd: cmd, ended: ended}
}

// binary is the program of a member: those of the manager are archived by the
// handler of the chaos test.
func binary(name string) string {
	kind, _, _ := strings.Cut(name, "-")
	if kind == "manager" {
		return "handler"
	}
	return "tdf-" + kind
}

func (c *crew) args(name string) []string {
	if binary(name) == "handler" {
		return []string{"../crew.cfg", "../handled"}
	}
	return []string{name, "../crew.cfg"}
}

// replace ends a program with a signal and starts it from the other release.
func (c *crew) replace(t *testing.T, name string, by syscall.Signal) {
	t.Helper()
	m := c.byName[name]
	if err := m.cmd.Process.Signal(by); err != nil {
		t.Fatalf("%s has ended by itself: %v", name, err)
	}
	select {
	case err := <-m.ended:
		c.checkEnd(t, name, err, by)
	case <-time.After(15 * time.Second):
		t.Fatalf("%s does not end", name)
	}
	c.start(t, name, 1-m.release)
}

// checkEnd fails if a program that was asked to end did not do so in good order.
// The handler is a program of the tests, which knows no signals.
func (c *crew) checkEnd(t *testing.T, name string, err error, by syscall.Signal) {
	t.Helper()
	var exit *exec.ExitError
	if by == syscall.SIGTERM && binary(name) != "handler" && errors.As(err, &exit) && exit.ExitCode() != 128+int(by) {
		t.Errorf("%s ended badly when it was replaced: %v", name, err)
	}
}

// checkAlive fails if a program has ended that nobody has ended.
func (c *crew) checkAlive(t *testing.T) {
	t.Helper()
	for name, m := range c.byName {
		select {
		case err := <-m.ended:
			t.Errorf("%s has ended by itself: %v", name, err)
		default:
		}
	}
}

// manage runs a verb of tdf-manager.
func (c *crew) manage(t *testing.T, r release, input string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(c.builds[r], "tdf-manager"), args...)
	cmd.Args = append(cmd.Args, "--config", filepath.Join(c.dir, "crew.cfg"))
	cmd.Stdin = bytes.NewReader([]byte(input))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("tdf-manager %v: %v\n%s", args, err, out)
	}
}
