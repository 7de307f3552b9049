package manager

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/task"
)

// childEnv makes the test binary a manager, in a process that may be killed.
const childEnv = "TEST_MANAGER"

// childManager is a manager on the namespace. Its handler opens a task whose input
// is the idempotency key, and then it "dies", or "freezes" until SIGCONT and
// returns once its context has ended; then the child writes the cause and how
// many tasks it has archived.
func childManager(tb testing.TB, what, ns string) *exec.Cmd {
	tb.Helper()
	child := exec.CommandContext(tb.Context(), os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+what+" "+redistest.Shared(tb).Socket()+" "+ns)
	child.Stderr = tb.Output()
	return child
}

// runChild is the process of childManager.
func runChild(args ...string) {
	ctx := context.Background()
	site, err := tdf.Connect(ctx, tdf.Config{Addr: args[1], Namespace: args[2]})
	if err != nil {
		panic(err)
	}
	m := New(site, "child", Options{Settings: Settings{
		RoundDuration: 50 * time.Millisecond, HandlerBackoff: 20 * time.Millisecond, HandlingLease: time.Second,
	}})
	signal := map[string]syscall.Signal{"dies": syscall.SIGKILL, "freezes": syscall.SIGSTOP}[args[0]]
	var cause error
	err = m.Run(ctx, Handlers{
		Succeeded: func(ctx context.Context, t *task.Task) error {
			if _, err := m.Submit(ctx, task.Spec{Program: "called", Input: t.IdempotencyKey(), StartAfter: time.Unix(1<<32, 0)}); err != nil {
				panic(err)
			}
			if err := syscall.Kill(os.Getpid(), signal); err != nil {
				panic(err)
			}
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil
		},
		Stop: func(context.Context, int) bool { return cause != nil },
	})
	fmt.Printf("archived %d, %v, %v\n", m.Stats().Archived, cause, err)
}
