package doctor

import (
	"fmt"
	"time"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/timing"
)

// manyArchived is from how many archived tasks on it is worth a thought to delete some.
const manyArchived = 1_000_000

func judgeTasks(f *Facts) []Finding {
	const check = "tasks"
	var found []Finding
	if n := f.Sizes.SetAside; n > 0 {
		found = append(found, warn(check, fmt.Sprintf("%d damaged tasks are set aside", n), "tdf-manager verify says which, and why")...)
	}
	if n := f.Sizes.Archived; n >= manyArchived {
		found = append(found, warn(check, fmt.Sprintf("%d archived tasks are kept in memory", n),
			"let them leave Redis: [server] archive_retention, and archive_dir for a copy; docs/OPERATIONS.md")...)
	}
	if found == nil {
		found = ok(check, fmt.Sprintf("none set aside; %d archived, %d events", f.Sizes.Archived, f.Sizes.Events))
	}
	return found
}

// mostPlans is how many plans are named one by one.
const mostPlans = 10

// judgePlans looks for plans that were begun and not made ready: their tasks do not run.
func judgePlans(f *Facts) []Finding {
	const check = "plans"
	if len(f.HalfBuilt) == 0 {
		return ok(check, "all are ready")
	}
	var found []Finding
	for i := range f.HalfBuilt[:min(len(f.HalfBuilt), mostPlans)] {
		p := &f.HalfBuilt[i]
		name := ""
		if p.Name != "" {
			name = " (" + clean.Line(p.Name, 100) + ")"
		}
		found = append(found, warn(check, fmt.Sprintf(
			"plan %d%s was begun %v ago and not made to its end: nothing of it runs, and its %d tasks wait",
			p.ID, name, timing.ToStd(f.Now.Sub(p.Created)).Round(time.Second), p.Left),
			fmt.Sprintf("submit it again with its --key, which finishes it; or tdf-manager plan cancel %d", p.ID))...)
	}
	if more := len(f.HalfBuilt) - mostPlans; more > 0 {
		found = append(found, warn(check, fmt.Sprintf("%d more plans were begun and not made to their ends", more),
			"tdf-manager plan ls shows them as building")...)
	}
	return found
}
