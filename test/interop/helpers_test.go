package interop

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/server"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/worker"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// foreigner runs the client on a namespace.
type foreigner struct {
	sp   *storetest.Space
	file string
}

// newForeigner builds the client and lets it work on the space.
func newForeigner(t *testing.T, sp *storetest.Space) *foreigner {
	t.Helper()
	file := filepath.Join(t.TempDir(), "client")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", file, "./client").CombinedOutput(); err != nil {
		t.Fatalf("building the client: %v\n%s", err, out)
	}
	return &foreigner{sp, file}
}

// run ends the test if the client fails; it returns what it printed, by words.
func (f *foreigner) run(t *testing.T, args ...string) [][]string {
	t.Helper()
	lines, err := f.try(t, args...)
	if err != nil {
		t.Fatalf("client %v: %v", args, err)
	}
	return lines
}

// try is run for a client that may fail.
func (f *foreigner) try(t *testing.T, args ...string) ([][]string, error) {
	t.Helper()
	flags := []string{"-addr", f.sp.Server.Addr(), "-ns", f.sp.Namespace, "-user", f.sp.Where.Username}
	cmd := exec.CommandContext(t.Context(), f.file, append(flags, args...)...)
	cmd.Env = append(os.Environ(), "REDIS_PASSWORD="+f.sp.Where.Password)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, &exec.Error{Name: strings.TrimSpace(errs.String()), Err: err}
	}
	var lines [][]string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.Fields(line))
	}
	return lines, nil
}

// open opens one task and returns its id.
func (f *foreigner) open(t *testing.T, fields ...string) int64 {
	t.Helper()
	return number(t, f.run(t, append([]string{"open"}, fields...)...)[0][0])
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// background runs a daemon until the test ends.
func background(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := wait.Receive(t, 15*time.Second, done, "a daemon does not stop"); err != nil {
			t.Error(err)
		}
	})
}

// startServer runs our server as it is shipped, with all defaults.
func startServer(t *testing.T, sp *storetest.Space) {
	t.Helper()
	s, err := server.New(sp.Site(t, nil), server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	background(t, s.Run)
}

// program is a worker.Programs with one program for every task.
type program struct{ dir string }

// Ensure implements worker.Programs.
func (p program) Ensure(context.Context, string, string, func(string)) (fetch.Version, error) {
	return fetch.Version{Dir: p.dir}, nil
}

// startWorker runs our worker; its program prints its words and number.
func startWorker(t *testing.T, sp *storetest.Space, name string) {
	t.Helper()
	p := program{t.TempDir()}
	script := "#!/bin/sh\necho ours \"$TDF_TASK_ID\" \"$@\"\n"
	hosttest.WriteProgram(t, filepath.Join(p.dir, "run.sh"), script, 0o700)
	w, err := worker.New(sp.Site(t, nil), worker.Options{Name: name, Programs: p, Settings: worker.Settings{TempDir: t.TempDir(), ProgramDir: p.dir}})
	if err != nil {
		t.Fatal(err)
	}
	background(t, w.Run)
}

// patience is how long a test waits for what takes seconds, on a machine that is busy too.
const patience = time.Minute

// await waits until a task is in a state.
func await(t *testing.T, sp *storetest.Space, id int64, want statemachine.State) {
	t.Helper()
	wait.Eventually(t, patience, func() bool {
		task, err := sp.Store.Task(t.Context(), id)
		return err == nil && task.State == want
	}, "task %d is not %s", id, want)
}
