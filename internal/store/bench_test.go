package store_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Every benchmark reports the time for one task, over a unix socket, in calls
// of 1 and of 100 tasks, and how much of it scripts of Redis took, and their commands. Tasks have finite deadlines, so all indices are at work.

func BenchmarkOpen(b *testing.B) {
	bySize(b, func(b *testing.B, sp *storetest.Space, size int) {
		timed(b, sp, func() { benchmarkOpen(b, sp, b.N, size) })
	})
}

func BenchmarkClaim(b *testing.B) {
	bySize(b, func(b *testing.B, sp *storetest.Space, size int) {
		benchmarkOpen(b, sp, b.N, 100)
		timed(b, sp, func() { benchmarkClaim(b, sp, b.N, size) })
	})
}

func BenchmarkReport(b *testing.B) {
	bySize(b, func(b *testing.B, sp *storetest.Space, size int) {
		benchmarkOpen(b, sp, b.N, 100)
		held := benchmarkClaim(b, sp, b.N, 100)
		timed(b, sp, func() { benchmarkReport(b, sp, held, size) })
	})
}

// BenchmarkSettle includes reading the executed tasks, as the server does.
func BenchmarkSettle(b *testing.B) {
	bySize(b, func(b *testing.B, sp *storetest.Space, size int) {
		benchmarkOpen(b, sp, b.N, 100)
		benchmarkReport(b, sp, benchmarkClaim(b, sp, b.N, 100), 100)
		timed(b, sp, func() {
			benchmarkMove(b, sp, statemachine.Executed, statemachine.Server, statemachine.Settle, size)
		})
	})
}

// BenchmarkArchive includes reading the succeeded tasks, as the manager does.
func BenchmarkArchive(b *testing.B) {
	bySize(b, func(b *testing.B, sp *storetest.Space, size int) {
		benchmarkOpen(b, sp, b.N, 100)
		benchmarkReport(b, sp, benchmarkClaim(b, sp, b.N, 100), 100)
		benchmarkMove(b, sp, statemachine.Executed, statemachine.Server, statemachine.Settle, 100)
		timed(b, sp, func() {
			benchmarkMove(b, sp, statemachine.Succeeded, statemachine.Manager, statemachine.Archive, size)
		})
	})
}

// BenchmarkPurge includes asking which tasks are to go, and reading them, as the server does; of 100 it removes [store.PurgePage] a call.
func BenchmarkPurge(b *testing.B) {
	bySize(b, func(b *testing.B, sp *storetest.Space, size int) {
		if _, _, err := sp.Store.KeepIndex(b.Context()); err != nil {
			b.Fatal(err)
		}
		benchmarkOpen(b, sp, b.N, 100)
		benchmarkReport(b, sp, benchmarkClaim(b, sp, b.N, 100), 100)
		benchmarkMove(b, sp, statemachine.Executed, statemachine.Server, statemachine.Settle, 100)
		benchmarkMove(b, sp, statemachine.Succeeded, statemachine.Manager, statemachine.Archive, 100)
		b.ResetTimer()
		benchmarkPurge(b, sp, b.N, size)
	})
}

func benchmarkPurge(b *testing.B, sp *storetest.Space, n, size int) {
	b.Helper()
	turn := upkeep.PurgeLease{By: "bench", For: time.Hour}
	rules := []upkeep.Retention{{Outcome: statemachine.Succeeded, Most: 0}}
	for n > 0 {
		found, _, _, err := sp.Store.Outdated(b.Context(), turn, rules, size, nil)
		if err != nil || len(found) != 1 || found[0].Due != int64(n) {
			b.Fatalf("%d tasks are to go: %+v, %v", n, found, err)
		}
		fields, err := sp.Store.Fields(b.Context(), found[0].IDs, "rev")
		if err != nil {
			b.Fatal(err)
		}
		tasks := make([]upkeep.Outgoing, len(fields))
		for i, id := range found[0].IDs {
			rev, _ := strconv.ParseInt(fields[i]["rev"], 10, 64)
			tasks[i] = upkeep.Outgoing{ID: id, Rev: rev, Outcome: statemachine.Succeeded}
		}
		for page := range slices.Chunk(tasks, upkeep.PurgePage) {
			if _, err := sp.Store.Purge(b.Context(), page); err != nil {
				b.Fatal(err)
			}
		}
		n -= len(tasks)
	}
}

func bySize(b *testing.B, run func(*testing.B, *storetest.Space, int)) {
	b.Helper()
	for _, size := range []int{1, 100} {
		b.Run(fmt.Sprint(size), func(b *testing.B) { run(b, storetest.New(b), size) })
	}
}

// timed is what a benchmark is about. No other one uses the Redis meanwhile.
func timed(b *testing.B, sp *storetest.Space, run func()) {
	b.Helper()
	scripts, commands := timesOf(b, sp)
	b.ResetTimer()
	run()
	b.StopTimer()
	scriptsAfter, commandsAfter := timesOf(b, sp)
	b.ReportMetric((scriptsAfter-scripts)/float64(b.N), "redis-µs/op")
	b.ReportMetric((commandsAfter-commands)/float64(b.N), "commands-µs/op")
}

var commandTime = regexp.MustCompile(`cmdstat_([a-z|]+):calls=\d+,usec=(\d+)`)

// timesOf is how many microseconds Redis has spent in scripts, and in commands, most of them within the scripts.
func timesOf(b *testing.B, sp *storetest.Space) (scripts, commands float64) {
	b.Helper()
	for _, found := range commandTime.FindAllStringSubmatch(sp.Raw.Info(b.Context(), "commandstats").Val(), -1) {
		us, err := strconv.ParseFloat(found[2], 64)
		switch {
		case err != nil:
			b.Fatal(err)
		case found[1] == "evalsha":
			scripts += us
		case found[1] != "info":
			commands += us
		}
	}
	return scripts, commands
}

func benchmarkOpen(b *testing.B, sp *storetest.Space, n, size int) {
	b.Helper()
	specs := make([]task.Definition, min(n, size))
	for i := range specs {
		specs[i] = storetest.Spec(func(s *task.Definition) { storetest.Set(s, "end_before", "4000000000", "timeout", "3600") })
	}
	for left := n; left > 0; left -= size {
		sp.Open(b, specs[:min(left, size)]...)
	}
}

func benchmarkClaim(b *testing.B, sp *storetest.Space, n, size int) []tasks.Claimed {
	b.Helper()
	held := make([]tasks.Claimed, 0, n)
	for len(held) < n {
		got := sp.Claim(b, "w", min(size, n-len(held)))
		if len(got) == 0 {
			b.Fatalf("%d of %d tasks could be claimed", len(held), n)
		}
		held = append(held, got...)
	}
	return held
}

func benchmarkReport(b *testing.B, sp *storetest.Space, held []tasks.Claimed, size int) {
	b.Helper()
	for len(held) > 0 {
		part := held[:min(size, len(held))]
		held = held[len(part):]
		commits := make([]tasks.Commit, len(part))
		for i := range part {
			o := statemachine.Occurrence{
				Event: statemachine.Report, Actor: statemachine.Worker, Claim: part[i].Task.Current.Claim, Round: part[i].Task.Round,
			}
			commits[i] = benchmarkDecide(b, &part[i].Task, o, 0)
			commits[i].Fields = []string{"0:output", "33\n", "0:error", ""}
		}
		benchmarkApply(b, sp, commits)
	}
}

func benchmarkMove(
	b testing.TB, sp *storetest.Space, from statemachine.State, actor statemachine.Actor, event statemachine.Event, size int,
) {
	b.Helper()
	for {
		batch, err := sp.Store.Listed(b.Context(), from, 0, size)
		if err != nil {
			b.Fatal(err)
		}
		if len(batch.Tasks) == 0 {
			return
		}
		commits := make([]tasks.Commit, len(batch.Tasks))
		for i := range batch.Tasks {
			commits[i] = benchmarkDecide(b, &batch.Tasks[i].Task, statemachine.Occurrence{Event: event, Actor: actor}, batch.Now)
		}
		benchmarkApply(b, sp, commits)
	}
}

func benchmarkDecide(b testing.TB, t *statemachine.Task, o statemachine.Occurrence, now statemachine.Time) tasks.Commit {
	b.Helper()
	m, err := statemachine.Decide(t, o, now)
	if err != nil {
		b.Fatal(err)
	}
	return tasks.Commit{Move: m, Writer: "bench"}
}

func benchmarkApply(b testing.TB, sp *storetest.Space, commits []tasks.Commit) {
	b.Helper()
	out, err := storetest.Apply(b.Context(), sp.Store, commits...)
	if err != nil {
		b.Fatal(err)
	}
	for _, o := range out {
		if o.Err != nil {
			b.Fatal(o.Err)
		}
	}
}
