package server

import (
	"testing"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// BenchmarkRetire lets archived tasks go, as many as -benchtime says, without and with a copy on disk:
//
//	go test -run - -bench Retire -benchtime 20000x ./server
func BenchmarkRetire(b *testing.B) {
	for name, dir := range map[string]string{"gone": "", "copied": b.TempDir()} {
		b.Run(name, func(b *testing.B) {
			st := worktest.Open(b, redistest.Namespace(b))
			fillArchive(b, st, b.N)
			opt := fromConfig(config.Defaults().Server)
			opt.Name, opt.store = "s", st
			opt.ArchiveDir, opt.ArchiveRetention = dir, []upkeep.Retention{{Outcome: statemachine.Succeeded}}
			s, err := assemble(opt)
			if err != nil {
				b.Fatal(err)
			}
			r := newPurger(s)
			b.ResetTimer()
			for more := true; more; {
				if more, err = r.pass(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			s.copies.close()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
		})
	}
}

// fillArchive makes n archived tasks.
func fillArchive(b *testing.B, st *store.Store, n int) {
	b.Helper()
	const page = 100
	for left := n; left > 0; left -= page {
		specs := make([]task.Definition, min(left, page))
		for i := range specs {
			specs[i] = storetest.Define("program", "p", "source", "s", "input", "some words of input", "max_losses", "0")
		}
		ids, err := st.Open(b.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: specs})
		if err != nil {
			b.Fatal(err)
		}
		worktest.Drain(b, st, worktest.Echo)
		var commits []tasks.Commit
		found, err := st.TasksByID(b.Context(), ids)
		if err != nil {
			b.Fatal(err)
		}
		for _, t := range found {
			move, err := statemachine.Decide(&t.Task, statemachine.Occurrence{Event: statemachine.Archive, Actor: statemachine.Manager}, 1)
			if err != nil {
				b.Fatal(err)
			}
			commits = append(commits, tasks.Commit{Move: move, Writer: "m"})
		}
		if _, err := storetest.Apply(b.Context(), st, commits...); err != nil {
			b.Fatal(err)
		}
	}
}
