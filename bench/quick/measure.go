package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/bench/contend"
)

// sample is one run of one contender.
type sample struct {
	// rate is tasks a second.
	rate float64
	// cpu is the processor time a task, of this process and of those it started that have ended.
	cpu time.Duration
}

// measure runs every contender once a round, one after the other: a machine that is busy for a while slows them alike.
func measure(ctx context.Context, o options, all []contend.Contender, progress io.Writer) ([][]sample, error) {
	samples := make([][]sample, len(all))
	for round := range o.rounds {
		for i, c := range all {
			before := processorTime()
			took, err := c.Run(ctx, o.tasks)
			if err != nil {
				return nil, err
			}
			s := sample{float64(o.tasks) / took.Seconds(), (processorTime() - before) / time.Duration(o.tasks)}
			samples[i] = append(samples[i], s)
			_, _ = fmt.Fprintf(progress, "round %d: %s: %.0f tasks a second\n", round+1, c.Name, s.rate)
		}
	}
	return samples, nil
}

// processorTime is that of this process and of all descendants that were waited for.
func processorTime() (sum time.Duration) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var usage unix.Rusage
		_ = unix.Getrusage(who, &usage) // it fails only for another who
		sum += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return sum
}

// rates picks the tasks a second.
func rates(samples []sample) []float64 {
	return pick(samples, func(s sample) float64 { return s.rate })
}

// costs picks the processor time a task, in milliseconds.
func costs(samples []sample) []float64 {
	return pick(samples, func(s sample) float64 { return s.cpu.Seconds() * 1000 })
}

func pick(samples []sample, value func(sample) float64) []float64 {
	out := make([]float64, 0, len(samples))
	for _, s := range samples {
		out = append(out, value(s))
	}
	return out
}
