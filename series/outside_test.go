package series_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/series"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// TestFromOutside: a program of a user makes series of each sort, and reads them back as it has made them.
func TestFromOutside(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	m := manager.New(storetest.At(t, sp.Where, sp.Namespace, nil), "test", manager.Options{})
	made := map[string]*series.Series{}
	for i, overlap := range []series.Overlap{series.OverlapSkip, series.OverlapQueue, series.OverlapAllow, series.OverlapReplace} {
		missed := []series.Missed{series.MissedSkip, series.MissedOnce, series.MissedAll}[i%3]
		one, err := series.Add(t.Context(), m, series.Definition{
			Key: string(overlap), Task: series.NewTask(&task.Spec{Program: "sum", Input: "1 2"}), Every: task.Seconds(time.Hour),
			Overlap: overlap, Missed: missed,
		}, manager.ChangeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		made[one.Key] = one
	}
	var keys []string
	for one, err := range series.List(t.Context(), m, "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, one.Key)
		if was := made[one.Key]; one.Overlap != was.Overlap || one.Missed != was.Missed || !one.Next.Equal(was.Next) || one.Number != 0 {
			t.Errorf("%+v, want %+v", one, was)
		}
	}
	if !slices.Equal(keys, []string{"allow", "queue", "replace", "skip"}) {
		t.Errorf("%q", keys)
	}
}

// TestHandlerSaysWhen: a test of a handler sees when it wants to run again.
func TestHandlerSaysWhen(t *testing.T) {
	t.Parallel()
	var job worker.Job
	at := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	if err := job.SetETA(at); err != nil || !job.Said().ETA.Equal(at) {
		t.Errorf("%v, %v", job.Said().ETA, err)
	}
}
