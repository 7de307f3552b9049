package audit

import (
	"runtime"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/task"
)

// BenchmarkVerify audits as many tasks as -benchtime says, such as 1000000x, half of which
// have been worked on:
//
//	go test -run - -bench Verify -benchtime 1000000x ./internal/ops/audit
func BenchmarkVerify(b *testing.B) {
	s := worktest.Open(b, redistest.Namespace(b))
	specs := make([]task.Definition, 0, 1000)
	for n := range b.N {
		spec := storetest.Define("program", "p", "source", "s", "input", "x", "end_before", "9000000000", "timeout", "60", "max_losses", "0")
		if n%2 == 0 {
			storetest.Set(&spec, "start_after", "8000000000")
		}
		if specs = append(specs, spec); len(specs) == cap(specs) || n == b.N-1 {
			if _, err := s.Open(b.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: specs}); err != nil {
				b.Fatal(err)
			}
			specs = specs[:0]
			worktest.Drain(b, s, worktest.Echo)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	began := time.Now()
	r, err := Verify(b.Context(), s)
	took := time.Since(began)
	b.StopTimer()
	runtime.ReadMemStats(&after)
	if err != nil || !r.OK() || r.Checked != int64(b.N) {
		b.Fatalf("%d of %d checked: %v, %v", r.Checked, b.N, r.Violations, err)
	}
	b.ReportMetric(float64(b.N)/took.Seconds(), "tasks/s")
	b.ReportMetric(float64(after.HeapSys)/(1<<20), "MB-heap")
}
