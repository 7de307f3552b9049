package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/worker"
)

// graph is a plan of layers. Tasks are numbered from 0; each one brings its number.
type graph struct{ tasks, layer, needs int }

// of are the numbers of the tasks that a task needs: spread over the layer before, so that each one there is needed
// as often as any other.
func (g graph) of(n int) []int {
	first := n/g.layer*g.layer - g.layer
	if first < 0 {
		return nil
	}
	numbers := make([]int, g.needs)
	for i := range numbers {
		numbers[i] = first + (n+i*g.layer/g.needs)%g.layer
	}
	return numbers
}

// edges is how many needs the plan has.
func (g graph) edges() int { return max(0, g.tasks-g.layer) * g.needs }

// add fills a plan.
func (g graph) add(p *plan.Plan) {
	all := make([]*plan.Task, g.tasks)
	for n := range all {
		var deps []plan.Dep
		for _, need := range g.of(n) {
			deps = append(deps, all[need])
		}
		all[n] = p.Add(spec(n), deps...)
	}
}

const program = "number"

func spec(n int) manager.Spec { return manager.Spec{Program: program, Input: strconv.Itoa(n)} }

// flat is as many tasks of which none needs another.
func (g graph) flat() graph { return graph{tasks: g.tasks, layer: g.tasks} }

// halves is a plan of two layers, of which the second can be released at once.
func (g graph) halves() graph {
	half := max(g.needs, g.tasks/2)
	return graph{tasks: 2 * half, layer: half, needs: g.needs}
}

// number is the handler of all tasks: it brings the number of the task, and refuses other arguments than those that
// the task should have.
func (g graph) number(_ context.Context, j *worker.Job) error {
	n, err := strconv.Atoi(j.Input)
	if err != nil {
		return fmt.Errorf("input %q: %w", j.Input, err)
	}
	var want []string
	for _, need := range g.of(n) {
		want = append(want, strconv.Itoa(need))
	}
	if got := j.Args[1:]; !slices.Equal(got, want) {
		return fmt.Errorf("task %d got %v, want %v", n, got, want)
	}
	_, err = fmt.Fprintln(j.Stdout, n)
	return err
}
