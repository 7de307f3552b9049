package manager

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// The overview has counts, queues, workers with what they run, and the newest
// failures, archived or not.
func TestOverview(t *testing.T) {
	t.Parallel()
	m := mixed(t)
	s := worktest.Open(t, m.Namespace())
	session, err := s.Register(t.Context(), task.Registration{Name: "w7", Identity: "i", Node: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	redistest.Shared(t).Do(t, "SADD", m.Namespace()+":held:w7", "4")
	redistest.Shared(t).Do(t, "HSET", m.Namespace()+":task:2", "0:class", "disk", "0:node", "n1", "0:error", strings.Repeat("x", 5000))
	o, err := m.Overview(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	if o.Namespace != m.Namespace() || o.At.IsZero() || o.Counts[sm.Running] != 1 || len(o.Queues) != 2 || len(o.Workers) != 1 ||
		o.Workers[0].ID != session.ID || o.Programs[4] != "p" || len(o.Programs) != 1 {
		t.Errorf("%+v", o)
	}
	want := map[sm.State]int64{sm.Failed: 2, sm.Succeeded: 1}
	if diff := cmp.Diff(want, o.Ended()); diff != "" {
		t.Errorf("ended (-want +got):\n%s", diff)
	}
	if len(o.Failures) != 2 || o.Failures[0].Task.ID != 2 || o.Failures[1].Task.ID != 1 {
		t.Fatalf("failures %+v", o.Failures)
	}
	newest, oldest := o.Failures[0], o.Failures[1]
	if newest.Task.End() != sm.Failed || newest.Task.Program != "p" || newest.Task.Queue != task.DefaultQueue ||
		newest.Round.Worker != "w" || newest.Round.Node != "n1" || newest.Round.Class != "disk" ||
		len(newest.Round.Error) != mostError || newest.At.Before(oldest.At) || oldest.At.IsZero() {
		t.Errorf("%+v", newest)
	}
	if oldest.Round.Error != "disk full on 1\n" || oldest.Task.End() != sm.Failed {
		t.Errorf("%+v", oldest)
	}
	for most, want := range map[int]int{0: 0, 1: 1} {
		if o, err = m.Overview(t.Context(), most); err != nil || len(o.Failures) != want {
			t.Errorf("%d failures, %v, want %d", len(o.Failures), err, want)
		}
	}
}
