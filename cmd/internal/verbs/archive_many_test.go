package verbs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/ops/archive"
	"github.com/tdf-go/tdf/statemachine"
)

// many makes an archive of n tasks, each there twice.
func many(t *testing.T, n int64) (dir string) {
	t.Helper()
	dir = t.TempDir()
	w, err := archive.Open(archive.Options{Dir: dir, Namespace: "sum", MaxBytes: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	for rev := range 2 {
		var batch []archive.Record
		for id := int64(1); id <= n; id++ {
			batch = append(batch, archive.NewRecord(id, 1, statemachine.Succeeded, map[string]string{
				"state": "archived", "outcome": "succeeded", "round": "0", "program": "p", "input": fmt.Sprint("input", id),
				"0:archived": fmt.Sprint(1000 + id), "0:open": "1", "rev": fmt.Sprint(5 + rev), "priority": fmt.Sprint(rev),
			}))
			if len(batch) == 100 || id == n {
				if err := w.Write(batch); err != nil {
					t.Fatal(err)
				}
				batch = nil
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// More than a page of tasks is listed without holding them: one head, one JSON value, each task once.
func TestArchiveOfManyTasks(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{page, 2*page + 7} {
		dir := many(t, n)
		table := execute(t.Context(), "", "ls", "--limit", "0", "--archive", dir)
		if heads := strings.Count(table.out, "PROGRAM"); heads != 1 || strings.Count(table.out, "\n") != int(n)+1 || table.code != 0 {
			t.Errorf("%d heads, %d lines, %+v", heads, strings.Count(table.out, "\n"), table.err)
		}
		list := execute(t.Context(), "", "ls", "--limit", "0", "--json", "--archive", dir)
		all, _ := oneValue(t, list.out).([]any)
		if len(all) != int(n) || len(byID(all)) != int(n) || byID(all)["7"].(map[string]any)["priority"] != 1.0 {
			t.Errorf("%d objects of %d tasks", len(all), len(byID(all)))
		}
		last := execute(t.Context(), "", "ls", "--limit", "3", "--json", "--archive", dir)
		want := []string{fmt.Sprint(n), fmt.Sprint(n - 1), fmt.Sprint(n - 2)}
		var got []string
		newest, _ := oneValue(t, last.out).([]any)
		for _, one := range newest {
			got = append(got, fmt.Sprint(one.(map[string]any)["id"]))
		}
		if !slices.Equal(got, want) {
			t.Errorf("the newest three are %v, want %v", got, want)
		}
	}
}
