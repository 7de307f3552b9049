package plan_test

import (
	"context"
	"fmt"
	"strconv"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/tdftest"
	"github.com/tdf-go/tdf/worker"
)

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
	_, err := fmt.Fprint(j.Stdout(), sum)
	return err
}

// The results of two tasks are the arguments of a third one.
func Example() {
	site, _, stop, err := tdftest.Start() // else tdf.Connect
	if err != nil {
		panic(err)
	}
	defer stop()
	ctx, drain := context.WithCancel(context.Background())
	drained := make(chan error)
	go func() {
		drained <- worker.Run(ctx, site, worker.Options{Handlers: map[string]worker.Handler{"add": add}})
	}()

	p, err := plan.New(ctx, manager.New(site, "example", manager.Options{}), "sum")
	if err != nil {
		panic(err)
	}
	left := p.Add(task.Spec{Program: "add", Class: "add", Input: "1 2"})
	right := p.Add(task.Spec{Program: "add", Class: "add", Input: "3 4"})
	total := p.Add(task.Spec{Program: "add", Class: "add"}, left, right)
	if err := p.Ready(ctx); err != nil {
		panic(err)
	}
	status, err := p.Wait(ctx)
	if err != nil {
		panic(err)
	}
	sum, err := p.Result(ctx, total)
	fmt.Println(status.State, sum, err)
	drain()
	fmt.Println("drained:", <-drained)
	// Output:
	// completed 10 <nil>
	// drained: <nil>
}
