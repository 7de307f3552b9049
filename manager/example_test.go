package manager_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/tdftest"
	"github.com/tdf-go/tdf/worker"
)

// Submit a task, wait for its end, and read what it gave.
func Example() {
	site, _, stop, err := tdftest.Start() // else tdf.Connect
	if err != nil {
		panic(err)
	}
	defer stop()
	m := manager.New(site, "example", manager.Options{})
	ctx, drain := context.WithCancel(context.Background())
	drained := make(chan error)
	go func() { // a worker, which may be on any host
		drained <- worker.Run(ctx, site, worker.Options{Handlers: map[string]worker.Handler{
			"greet": func(_ context.Context, job *worker.Job) error {
				_, err := fmt.Fprintf(job.Stdout(), "hello %s", job.Task.Input)
				return err
			},
		}})
	}()

	opened, err := m.Submit(ctx, task.Spec{Program: "greet", Class: "greet", Input: "world"})
	if err != nil {
		panic(err)
	}
	for t, err := range m.Ended(ctx, []int64{opened.ID}) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("task %d %s: %s\n", t.ID, t.EndState(), t.Output())
	}
	drain()
	fmt.Println(<-drained)
	// Output:
	// task 1 succeeded: hello world
	// <nil>
}

// Handle what ends, as a program does that collects results.
func ExampleManager_Run() {
	site, _, stop, err := tdftest.Start() // else tdf.Connect
	if err != nil {
		panic(err)
	}
	defer stop()
	m := manager.New(site, "example", manager.Options{})
	ctx, drain := context.WithCancel(context.Background())
	drained := make(chan error)
	go func() {
		drained <- worker.Run(ctx, site, worker.Options{Handlers: map[string]worker.Handler{
			"half": func(_ context.Context, job *worker.Job) error {
				var n int
				if _, err := fmt.Sscan(job.Task.Input, &n); err != nil {
					return fmt.Errorf("%s is not a number", job.Task.Input)
				}
				_, err := fmt.Fprint(job.Stdout(), n/2)
				return err
			},
		}})
	}()

	for _, input := range []string{"10", "eleven", "12"} {
		if _, err := m.Submit(ctx, task.Spec{Program: "half", Class: "half", Input: input}); err != nil {
			panic(err)
		}
	}
	var lines []string
	err = m.Run(ctx, manager.Handlers{
		Succeeded: func(_ context.Context, t *task.Task) error {
			lines = append(lines, fmt.Sprintf("task %d: %s", t.ID, t.Output()))
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
	drain()
	fmt.Println(err, <-drained)
	// Output:
	// task 1: 5
	// task 2 failed: eleven is not a number
	// task 3: 6
	// <nil> <nil>
}

// Take a worker out for maintenance: it finishes what it runs and claims nothing more,
// until the order is taken back.
func ExampleManager_CommandWorker() {
	site, _, stop, err := tdftest.Start() // else tdf.Connect
	if err != nil {
		panic(err)
	}
	defer stop()
	m := manager.New(site, "example", manager.Options{})
	ctx, leave := context.WithCancel(context.Background())
	left, working := make(chan error), make(chan struct{})
	go func() {
		left <- worker.Run(ctx, site, worker.Options{
			Name: "worker-A", Settings: worker.Settings{Node: "host-1"},
			Handlers: map[string]worker.Handler{"work": func(_ context.Context, job *worker.Job) error {
				close(working)
				<-job.Draining()
				return nil
			}},
		})
	}()
	if _, err := m.Submit(ctx, task.Spec{Program: "work", Class: "work"}); err != nil {
		panic(err)
	}
	<-working

	was, err := m.CommandWorker(ctx, "worker-A", task.CommandDrain)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s on %s was %s\n", was.Name, was.Node, was.State)
	is, err := m.Worker(ctx, "worker-A")
	fmt.Println("its order is now to", is.Order, err)
	leave()
	fmt.Println(<-left)
	// Output:
	// worker-A on host-1 was ready
	// its order is now to drain <nil>
	// <nil>
}

// Open many tasks. The request key makes the program safe to run again.
func ExampleManager_SubmitAll() {
	site, _, stop, err := tdftest.Start() // else tdf.Connect
	if err != nil {
		panic(err)
	}
	defer stop()
	m := manager.New(site, "example", manager.Options{})
	ctx := context.Background()

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
			panic(err)
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

// Watch what happens, for a page or a log. A program that comes back goes on after the last
// event it has dealt with.
func ExampleManager_Events() {
	site, _, stop, err := tdftest.Start() // else tdf.Connect
	if err != nil {
		panic(err)
	}
	defer stop()
	m := manager.New(site, "example", manager.Options{})
	ctx := context.Background()

	after, err := m.NewestEvent(ctx)
	if err != nil {
		panic(err)
	}
	opened, err := m.Submit(ctx, task.Spec{Program: "sum", Source: "rsync:run.sh"})
	if err != nil {
		panic(err)
	}
	if _, err := m.Cancel(ctx, []int64{opened.ID}, manager.ChangeOptions{}); err != nil {
		panic(err)
	}
	for e, err := range m.Events(ctx, after) {
		if gap, missing := errors.AsType[*manager.GapError](err); missing {
			fmt.Printf("events %d to %d may be missing: read all tasks anew\n", gap.After+1, gap.Newest)
			continue
		}
		if err != nil {
			panic(err)
		}
		fmt.Printf("event %d: %s of task %d by a %s; it is %s now\n", e.Seq, e.Event, e.ID, e.Actor, e.To)
		if e.To.Terminal() {
			break
		}
	}
	// Output:
	// event 1: create of task 1 by a manager; it is open now
	// event 2: cancel of task 1 by a manager; it is cancelled now
}
