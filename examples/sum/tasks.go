package main

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/manager"
)

// open opens a task for each bucket of numbers. Called again after an error,
// with the same numbers, it opens no task twice: that is what the key is for.
func (a *adder) open(ctx context.Context, m *manager.Manager, all iter.Seq[string]) error {
	key := manager.WithRequestKey("sum-" + strconv.Itoa(a.opened))
	if _, err := m.OpenAll(ctx, a.specs(all), key); err != nil {
		return err
	}
	a.opened++
	return nil
}

// specs are the tasks that add the numbers up.
func (a *adder) specs(all iter.Seq[string]) iter.Seq[manager.Spec] {
	return func(yield func(manager.Spec) bool) {
		for bucket := range buckets(all, a.bucket) {
			fmt.Fprintf(a.out, "creating task for numbers: %s\n", list(bucket))
			// The path is relative to the directory in which a worker was started.
			spec := manager.Spec{Program: "sum", Source: "rsync:run.sh", Input: strings.Join(bucket, " ")}
			if !yield(spec) {
				return
			}
		}
	}
}

// numbers yields every number of a range, both ends included.
func numbers(from, to int64) iter.Seq[string] {
	return func(yield func(string) bool) {
		for n := from; n <= to; n++ {
			if !yield(strconv.FormatInt(n, 10)) {
				return
			}
		}
	}
}

// buckets yields all numbers in groups of size; the last one may be smaller.
func buckets(all iter.Seq[string], size int) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		var bucket []string
		for number := range all {
			if bucket = append(bucket, number); len(bucket) < size {
				continue
			}
			if !yield(bucket) {
				return
			}
			bucket = nil
		}
		if len(bucket) > 0 {
			yield(bucket)
		}
	}
}

// list writes numbers as the example of 2017 did: ['10', '11'].
func list(numbers []string) string {
	if len(numbers) == 0 {
		return "[]"
	}
	return "['" + strings.Join(numbers, "', '") + "']"
}
