package worker_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// exampleTB stands in for the testing.TB that examples do not have.
type exampleTB struct{ testing.TB }

func (exampleTB) Helper()                           {}
func (exampleTB) Logf(string, ...any)               {}
func (exampleTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// workplace stands for a file worker.cfg and for a manager that has opened a
// task of the program shout.
func workplace(ctx context.Context) (cfg string, remove func()) {
	srv, namespace := redistest.Shared(exampleTB{}), redistest.Namespace(exampleTB{}) //nolint:contextcheck // it outlives the example
	dir, err := os.MkdirTemp("", "tdf-example-")
	if err != nil {
		panic(err)
	}
	cfg = filepath.Join(dir, "worker.cfg")
	text := fmt.Sprintf("[redis]\nhost=%s\n[tdf]\nnamespace=%s\n[worker]\nprogram_dir=%s\n", srv.Socket(), namespace, dir)
	if err := os.WriteFile(cfg, []byte(text), 0o600); err != nil {
		panic(err)
	}
	st, err := store.Dial(storetest.Where(srv), namespace)
	if err != nil {
		panic(err)
	}
	defer func() { _ = st.Close() }()
	spec := storetest.Spec(func(s *task.Definition) {
		storetest.Set(s, "program", "shout", "class", "shout", "input", "hello world")
	})
	if _, err := st.Open(ctx, tasks.OpenRequest{Key: conn.NewToken(), Specs: []task.Definition{spec}}); err != nil {
		panic(err)
	}
	return cfg, func() { _ = os.RemoveAll(dir) }
}

// A worker that does tasks by Go functions. What a manager opens for the
// program shout, this process does.
func ExampleNew() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	cfg, remove := workplace(ctx)
	defer remove()

	shout := func(_ context.Context, job *worker.Job) error {
		fmt.Println("task", job.Task.ID, "round", job.Task.Round)
		fmt.Fprintln(job.Stdout(), strings.ToUpper(job.Task.Input)) // goes into the task's record
		stop()                                                      // one is enough for an example
		return nil
	}
	config, err := tdf.Load(cfg)
	if err != nil {
		panic(err)
	}
	site, err := tdf.Connect(ctx, config)
	if err != nil {
		panic(err)
	}
	defer func() { _ = site.Close() }()
	w, err := worker.New(site, worker.Options{Handlers: map[string]worker.Handler{"shout": shout}})
	if err != nil {
		panic(err)
	}
	fmt.Println("drained:", w.Run(ctx))
	// Output:
	// task 1 round 0
	// drained: <nil>
}
