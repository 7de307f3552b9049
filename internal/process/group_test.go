package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// recorded is a group whose signals are only written down.
func recorded(grace time.Duration, sent *[]syscall.Signal) *group {
	g := &group{pid: 1 << 30, grace: grace, patience: time.Hour, stuck: make(chan struct{})}
	g.signal = func(_ int, sig syscall.Signal) error {
		*sent = append(*sent, sig)
		return nil
	}
	return g
}

func TestFirstCauseWins(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ first, second cause }{{causeTimeout, causeCancel}, {causeCancel, causeTimeout}} {
		var sent []syscall.Signal
		g := recorded(time.Hour, &sent)
		g.watch(context.Background(), time.Hour)
		g.terminate(c.first)
		g.terminate(c.second)
		if got := g.finish(); got != c.first {
			t.Errorf("cause %v, want %v", got, c.first)
		}
		if diff := cmp.Diff([]syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}, sent); diff != "" {
			t.Errorf("signals (-want +got):\n%s", diff)
		}
	}
}

// After finish the number may belong to somebody else.
func TestNoSignalAfterFinish(t *testing.T) {
	t.Parallel()
	var sent []syscall.Signal
	ctx, cancel := context.WithCancel(context.Background())
	g := recorded(time.Hour, &sent)
	g.watch(ctx, time.Hour)
	if got := g.finish(); got != causeNone {
		t.Errorf("cause %v", got)
	}
	if g.detach() || g.timeout.Stop() {
		t.Error("the group still listens to its context or its timer")
	}
	cancel()
	g.terminate(causeTimeout)
	g.kill()
	if diff := cmp.Diff([]syscall.Signal{syscall.SIGKILL}, sent); diff != "" {
		t.Errorf("signals (-want +got):\n%s", diff)
	}
}

// A leader that SIGKILL does not end, as one that hangs in the kernel, must not
// hold up the worker. The signal is withheld here to imitate it.
func TestUnkillableLeaderIsGivenUp(t *testing.T) {
	t.Parallel()
	dir := script(t, `echo partial; echo $$ > pid; exec sleep 300`)
	name := filepath.Join(dir, "pid")
	g := &group{patience: 50 * time.Millisecond, stuck: make(chan struct{})}
	g.signal = func(int, syscall.Signal) error { return nil }
	s := Spec{Dir: dir, Env: os.Environ(), OutputLimit: 100, TempDir: t.TempDir()}
	files, err := openStdio(&s)
	if err != nil {
		t.Fatal(err)
	}
	defer files.close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go cancelWhen(ctx, cancel, name)
	r, err := g.run(ctx, &s, &files)
	if !errors.Is(err, ErrUnkillable) || !r.Cancelled || r.ExitCode != -1 || string(r.Stdout) != "partial\n" {
		t.Errorf("got %+v, %v", r, err)
	}
	// The goroutine left behind ends, and reaps, as soon as the leader does.
	pid := readPid(name)
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "leader reaped", func() bool { return errors.Is(unix.Kill(pid, 0), unix.ESRCH) })
}
