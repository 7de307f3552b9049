// Stream submits a thousand tasks and adds up their results as they come.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

const many = 1000

// square is what a task does: its input is a number.
func square(_ context.Context, job *worker.Job) error {
	var n int
	if _, err := fmt.Sscan(job.Task.Input, &n); err != nil {
		return worker.Permanent(err)
	}
	_, err := fmt.Fprint(job.Stdout(), n*n)
	return err
}

func specs(yield func(task.Spec) bool) {
	for n := range many {
		if !yield(task.Spec{Program: "square", Class: "square", Input: fmt.Sprint(n)}) {
			return
		}
	}
}

func main() {
	ctx := context.Background()
	site, err := tdf.Connect(ctx, tdf.Config{Addr: "localhost:6379", Namespace: "stream"})
	if err != nil {
		log.Fatal(err)
	}
	defer site.Close()
	go worker.Run(ctx, site, worker.Options{Handlers: map[string]worker.Handler{"square": square}})
	m := manager.New(site, "stream", manager.Options{})
	opened, err := m.SubmitAll(ctx, specs)
	if err != nil {
		log.Fatal(err)
	}
	sum, results := 0, 0
	for t, err := range m.Ended(ctx, task.IDs(opened)) {
		if err != nil {
			log.Fatal(err)
		}
		n := 0
		fmt.Sscan(t.Output(), &n)
		sum, results = sum+n, results+1
	}
	fmt.Println(results, "results, sum", sum)
}
