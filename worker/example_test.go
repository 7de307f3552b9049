package worker_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/tdftest"
	"github.com/tdf-go/tdf/worker"
)

// A worker that does tasks by Go functions, in the process of the manager or in another.
func ExampleRun() {
	site, _, stop, err := tdftest.Start() // else tdf.Connect
	if err != nil {
		panic(err)
	}
	defer stop()
	ctx, drain := context.WithCancel(context.Background())
	shout := func(_ context.Context, job *worker.Job) error {
		fmt.Println("task", job.Task.ID, "attempt", job.Attempt)
		fmt.Fprint(job.Stdout(), strings.ToUpper(job.Task.Input)) // goes into the task's record
		return nil
	}
	drained := make(chan error)
	go func() {
		drained <- worker.Run(ctx, site, worker.Options{Handlers: map[string]worker.Handler{"shout": shout}})
	}()

	m := manager.New(site, "example", manager.Options{})
	opened, err := m.Submit(ctx, task.Spec{Program: "shout", Class: "shout", Input: "hello world"})
	if err != nil {
		panic(err)
	}
	for t, err := range m.Ended(ctx, []int64{opened.ID}) {
		fmt.Println(t.State, t.Output(), err)
	}
	drain()
	fmt.Println("drained:", <-drained)
	// Output:
	// task 1 attempt 1
	// succeeded HELLO WORLD <nil>
	// drained: <nil>
}

// A handler is tested by calling it with a job of its own.
func ExampleJob() {
	greet := func(_ context.Context, job *worker.Job) error {
		job.SetResult("hello " + job.Task.Input)
		return nil
	}
	job := &worker.Job{Task: task.Task{Spec: task.Spec{Input: "world"}}}
	err := greet(context.Background(), job)
	fmt.Println(*job.Said().Result, err)
	// Output: hello world <nil>
}
