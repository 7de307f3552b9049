package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// A small run does all that a large one does: every task gets what it should, or this fails.
func TestLongPlans(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	args := []string{"plans", "-tasks", "2000", "-layer", "200", "-rounds", "2", "-servers", "2"}
	if err := run(t.Context(), args, &out, t.Output()); err != nil {
		t.Fatal(err)
	}
	has(t, out.String(),
		"Plans: 2000 tasks in layers of 200, 10 needs each", "| tasks that need nothing |", "| tasks of the plan |",
		"| plans | tasks of the plan | tasks that need nothing | µs a task |", "by servers alone: ", "| notify |", "| open |",
	)
}

// Each task of a layer is needed as often as any other.
func TestGraph(t *testing.T) {
	t.Parallel()
	g := graph{tasks: 120, layer: 40, needs: 7}
	for n := range g.layer {
		if got := g.of(n); got != nil {
			t.Fatalf("task %d of the first layer needs %v", n, got)
		}
	}
	needed := map[int]int{}
	for n := g.layer; n < 2*g.layer; n++ {
		of := g.of(n)
		slices.Sort(of)
		if of = slices.Compact(of); len(of) != g.needs || of[0] < 0 || of[g.needs-1] >= g.layer {
			t.Errorf("task %d needs %v", n, of)
		}
		for _, need := range of {
			needed[need]++
		}
	}
	for n := range g.layer {
		if needed[n] != g.needs {
			t.Errorf("task %d is needed by %d", n, needed[n])
		}
	}
	if g.edges() != 80*7 || g.flat().edges() != 0 {
		t.Errorf("%d needs, %d where there are none", g.edges(), g.flat().edges())
	}
}

// The handler refuses what is not exactly what the task should get.
func TestNumber(t *testing.T) {
	t.Parallel()
	g := graph{tasks: 20, layer: 10, needs: 2}
	for args, good := range map[string]bool{
		"12 2 7": true, "12 7 2": false, "12 2": false, "12 2 7 7": false, "12": false, "2": true, "2 1": false, "x": false,
	} {
		words := strings.Fields(args)
		job := &worker.Job{Task: task.Task{Spec: task.Spec{Input: words[0]}}, Args: words}
		err := g.number(t.Context(), job)
		if out := job.Said().Stdout; (err == nil) != good || good && out != words[0]+"\n" {
			t.Errorf("%q: %v, output %q", args, err, out)
		}
	}
}

func TestTooSlow(t *testing.T) {
	t.Parallel()
	p := planCost{slow: map[string]map[string]slowScript{
		planName: {"move": {longest: longestScript}}, notifyName: {"open": {longest: time.Second}},
	}}
	if err := p.tooSlow(); err != nil {
		t.Errorf("what is just enough: %v", err)
	}
	p.slow[planName]["move"], p.slow[notifyName]["open"] = slowScript{above: 10}, slowScript{above: 11}
	err := p.tooSlow()
	if !errors.Is(err, errMissed) || !strings.Contains(err.Error(), "21 calls of scripts took more than 5ms") {
		t.Errorf("what is too much: %v", err)
	}
}
