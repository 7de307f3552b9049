package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/task"
)

func TestFields(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	s := worktest.Open(t, ns)
	spec := storetest.Define("program", "p")
	if _, err := s.Open(t.Context(), tasks.OpenRequest{Key: "k", Specs: []task.Definition{spec, spec, spec}}); err != nil {
		t.Fatal(err)
	}
	srv := redistest.Shared(t)
	srv.Do(t, "DEL", ns+":task:1")
	srv.Do(t, "DEL", ns+":task:2")
	srv.Do(t, "SET", ns+":task:2", "no hash")
	got, err := s.Fields(t.Context(), []int64{3, 1, 2, 99}, "state", "program", "source", "outcome")
	want := []map[string]string{{"state": "open", "program": "p", "source": ""}, nil, nil, nil}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := s.Fields(t.Context(), nil, "state"); err != nil || len(got) != 0 {
		t.Errorf("without ids: %v, %v", got, err)
	}
}
