package manager_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// What an example needs beside its own code: a Redis, and somebody who works.

// exampleTB stands in for the testing.TB that examples do not have.
type exampleTB struct{ testing.TB }

func (exampleTB) Helper()                           {}
func (exampleTB) Logf(string, ...any)               {}
func (exampleTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// exampleManager stands for manager.New(site, "adder", manager.Options{}).
func exampleManager(ctx context.Context) *manager.Manager {
	srv := redistest.Shared(exampleTB{}) //nolint:contextcheck // it outlives the example
	site, err := tdf.Connect(ctx, tdf.Config{
		Addr: srv.Socket(), Namespace: redistest.Namespace(exampleTB{}), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	return manager.New(site, "example", manager.Options{})
}

// startWorker works on what m opens. The program adds numbers; it fails on words.
func startWorker(ctx context.Context, m *manager.Manager) (stop func()) {
	srv := redistest.Shared(exampleTB{}) //nolint:contextcheck // it outlives the example
	s, err := store.Dial(storetest.Where(srv), m.Namespace())
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if n, err := worktest.Round(ctx, s, add); n == 0 || err != nil {
				select {
				case <-ctx.Done():
				case <-time.After(5 * time.Millisecond):
				}
			}
		}
	}()
	return func() {
		cancel()
		<-done
		_ = s.Close()
	}
}

// registerWorkers makes idle workers known, on host-a or host-b by their names.
func registerWorkers(ctx context.Context, m *manager.Manager, names ...string) (leave func()) {
	srv := redistest.Shared(exampleTB{}) //nolint:contextcheck // it outlives the example
	s, err := store.Dial(storetest.Where(srv), m.Namespace())
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		_, err := s.Register(ctx, task.Registration{Name: name, Node: "host-" + name[:1], Identity: name, Slots: 8})
		if err != nil {
			panic(err)
		}
	}
	return func() { _ = s.Close() }
}

func add(t *tasks.Claimed) worktest.Result {
	sum := 0
	for word := range strings.FieldsSeq(t.Spec.Input) {
		n := 0
		if _, err := fmt.Sscan(word, &n); err != nil {
			return worktest.Result{Error: word + " is not a number\n"}
		}
		sum += n
	}
	return worktest.Result{Output: fmt.Sprintln(sum)}
}

// Submit a task, wait for its end, and read what it gave.
func Example() {
	ctx := context.Background()
	m := exampleManager(ctx)
	defer startWorker(ctx, m)()

	opened, err := m.Submit(ctx, task.Spec{Program: "sum", Source: "rsync:run.sh", Input: "1 2 3"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for task, err := range m.Ended(ctx, []int64{opened.ID}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("task %d %s: %s", task.ID, task.EndState(), task.Output())
	}
	// Output: task 1 succeeded: 6
}

// Handle what ends, as a program does that collects results.
func ExampleManager_Run() {
	ctx := context.Background()
	m := exampleManager(ctx)
	defer startWorker(ctx, m)()

	for _, input := range []string{"10 11 12", "13 fourteen", "16 17 18"} {
		if _, err := m.Submit(ctx, task.Spec{Program: "sum", Source: "rsync:run.sh", Input: input}); err != nil {
			fmt.Println(err)
			return
		}
	}
	var lines []string
	err := m.Run(ctx, manager.Handlers{
		Succeeded: func(_ context.Context, t *task.Task) error {
			lines = append(lines, fmt.Sprintf("task %d: %s", t.ID, strings.TrimSpace(t.Output())))
			return nil // now it is archived
		},
		Failed: func(_ context.Context, t *task.Task) error {
			lines = append(lines, fmt.Sprintf("task %d failed: %s", t.ID, strings.TrimSpace(t.Failure())))
			return nil
		},
		Stop: func(ctx context.Context, _ int) bool {
			counts, err := m.Count(ctx)
			return err == nil && counts.Unarchived() == 0
		},
	})
	slices.Sort(lines)
	fmt.Println(strings.Join(lines, "\n"))
	fmt.Println(err)
	// Output:
	// task 1: 33
	// task 2 failed: fourteen is not a number
	// task 3: 51
	// <nil>
}

// Take a host out for maintenance: its workers finish what they run and claim
// nothing more, until they are undrained.
func ExampleManager_CommandWorker() {
	ctx := context.Background()
	m := exampleManager(ctx)
	defer registerWorkers(ctx, m, "a1", "a2", "b1")()

	workers, err := m.Workers(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range workers {
		if w.Node != "host-a" || !w.State.Alive() {
			continue
		}
		was, err := m.CommandWorker(ctx, w.Name, task.CommandDrain)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s was %s, %d of %d slots busy\n", was.Name, was.State, was.Busy, was.Slots)
	}
	b1, err := m.Worker(ctx, "b1")
	fmt.Printf("%s has order %q, %v\n", b1.Name, b1.Order, err)
	// Output:
	// a1 was ready, 0 of 8 slots busy
	// a2 was ready, 0 of 8 slots busy
	// b1 has order "", <nil>
}

// Open many tasks. The request key makes the program safe to run again.
func ExampleManager_SubmitAll() {
	ctx := context.Background()
	m := exampleManager(ctx)

	specs := func(yield func(task.Spec) bool) {
		for n := 10; n <= 100; n += 3 {
			spec := task.Spec{
				Program: "sum", Source: "rsync:run.sh",
				Input: fmt.Sprintf("%d %d %d", n, n+1, n+2),
				Retry: task.Retry{Limit: task.AtMost(2)}, // may fail twice and be tried again
			}
			if !yield(spec) {
				return
			}
		}
	}
	for range 2 {
		opened, err := m.SubmitAll(ctx, specs, manager.WithRequestKey("numbers to 100"))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("tasks %d to %d\n", opened[0].ID, opened[len(opened)-1].ID)
	}
	counts, err := m.Count(ctx)
	fmt.Println(counts.Left(), err)
	// Output:
	// tasks 1 to 31
	// tasks 1 to 31
	// 31 <nil>
}
