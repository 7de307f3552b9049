package plan_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"testing"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// exampleTB stands in for the testing.TB that examples do not have.
type exampleTB struct {
	testing.TB
	dir string
}

func (exampleTB) Helper()                           {}
func (exampleTB) Logf(string, ...any)               {}
func (exampleTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (tb exampleTB) TempDir() string                { return tb.dir }

// add is a Go function that workers run as the program "add".
func add(_ context.Context, j *worker.Job) error {
	sum := 0
	for _, word := range j.Args {
		n, err := strconv.Atoi(word)
		if err != nil {
			return err
		}
		sum += n
	}
	fmt.Fprintln(j.Stdout(), sum)
	return nil
}

// The results of two tasks are the arguments of a third one.
func Example() {
	ctx := context.Background()
	tb := exampleTB{dir: exampleDir()}
	defer func() { _ = os.RemoveAll(tb.dir) }()
	srv := redistest.Shared(tb)
	site, err := tdf.Connect(ctx, tdf.Config{Addr: srv.Socket(), Namespace: redistest.Namespace(tb), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	defer func() { _ = site.Close() }()
	m := manager.New(site, "example", manager.Options{})
	defer crew(ctx, tb, m.Namespace(), 2, handlers{"add": add})()

	p, err := plan.New(ctx, m, "sum")
	if err != nil {
		panic(err)
	}
	left := p.Add(task.Spec{Program: "add", Input: "1 2"})
	right := p.Add(task.Spec{Program: "add", Input: "3 4"})
	total := p.Add(task.Spec{Program: "add"}, left, right)
	if err := p.Ready(ctx); err != nil {
		panic(err)
	}
	status, err := p.Wait(ctx)
	if err != nil {
		panic(err)
	}
	sum, err := p.Result(ctx, total)
	fmt.Println(status.State, sum, err)
	// Output: completed 10 <nil>
}
