package manager

import (
	"context"
	"slices"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/task"
)

// BenchmarkSubmit opens tasks one by one, and a hundred at a time.
func BenchmarkSubmit(b *testing.B) {
	b.Run("1", func(b *testing.B) {
		m := newManager(b, redistest.Namespace(b), quiet())
		for b.Loop() {
			if _, err := m.Submit(b.Context(), spec()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("100", func(b *testing.B) {
		m := newManager(b, redistest.Namespace(b), quiet())
		specs := slices.Repeat([]task.Spec{spec()}, 100)
		for b.Loop() {
			if _, err := m.SubmitAll(b.Context(), slices.Values(specs)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkRun archives 10,000 succeeded tasks (with -short 100), without handlers and with one
// that does nothing.
func BenchmarkRun(b *testing.B) {
	for name, handler := range map[string]Handler{
		"without": nil,
		"with":    func(context.Context, *task.Task) error { return nil },
	} {
		b.Run(name, func(b *testing.B) {
			n := 10_000
			if testing.Short() {
				n = 100
			}
			for range b.N {
				b.StopTimer()
				ns := redistest.Namespace(b)
				m := newManager(b, ns, quick(), quiet())
				mustOpen(b, m, n, spec())
				worktest.Drain(b, worktest.Open(b, ns), worktest.Echo)
				b.StartTimer()
				err := m.Run(b.Context(), Handlers{Succeeded: handler, Unhandled: Archive, Stop: func(context.Context, int) bool {
					return m.Stats().Archived == n
				}})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "tasks/s")
		})
	}
}
