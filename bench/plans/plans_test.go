package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tdf-go/tdf/bench/frametest"
	"github.com/tdf-go/tdf/bench/redisd"
	"github.com/tdf-go/tdf/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A small run does all that a large one does: every task gets what it should, or this fails.
func TestLongWholeProgram(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	args := []string{"-tasks", "2000", "-layer", "200", "-slices", "2", "-servers", "2", "-profile", "-pauses", "10ms"}
	if err := run(t.Context(), args, &out, t.Output()); err != nil {
		t.Fatal(err)
	}
	frametest.Has(t, out.String(),
		"Plans: 2000 tasks in layers of 200, 10 needs each", "| tasks that need nothing |", "| tasks of the plan |",
		"A task of the plan takes ", "by servers alone: ", "| release |", "| open |", "| script | unconnected: calls a task |",
		"The machine alone stopped a thread ",
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
		var out bytes.Buffer
		words := strings.Fields(args)
		err := g.number(t.Context(), &worker.Job{Input: words[0], Args: words, Stdout: &out})
		if (err == nil) != good || good && out.String() != words[0]+"\n" {
			t.Errorf("%q: %v, output %q", args, err, &out)
		}
	}
}

func TestBadFlags(t *testing.T) {
	t.Parallel()
	frametest.Refuses(t, run, map[string]string{
		"-tasks=0": "-tasks=0: must be at least 1", "-needs=x": "flag -needs", "-slices=0": "-slices=0", "-layer=5 -needs=6": "-needs=6",
	})
}

func TestLimit(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), []string{"-limit=1ns"}, io.Discard, io.Discard)
	if !errors.Is(err, context.DeadlineExceeded) && (err == nil || !strings.Contains(err.Error(), "-limit=1ns is over")) {
		t.Errorf("it does not end: %v", err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	second := []slice{{took: time.Second}}
	f := figures{lives: [2]life{{slices: second}, {slices: []slice{{took: 2 * time.Second}}}}}
	f.slow[planKind] = map[string]slowScript{"move": {longest: longestScript}}
	f.slow[releaseKind] = map[string]slowScript{"open": {longest: time.Second}}
	if err := f.check(); err != nil {
		t.Errorf("what is just enough: %v", err)
	}
	f.lives[planKind].slices[0].took = 3 * time.Second
	f.slow[planKind]["move"] = slowScript{above: 10}
	f.slow[releaseKind]["open"] = slowScript{above: 11}
	f.pauses, f.scripts = redisd.Pauses{Watched: time.Minute, Count: 10}, time.Minute
	err := f.check()
	if !errors.Is(err, errTooMuch) || !strings.Contains(err.Error(), "3.00 times") ||
		!strings.Contains(err.Error(), "21 calls of scripts took more than 5ms, and the machine explains 13.0 at most") {
		t.Errorf("what is too much: %v", err)
	}
}
