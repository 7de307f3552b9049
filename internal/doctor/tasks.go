package doctor

import "fmt"

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
