package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/cli"
)

// mostSelected bounds what a slip such as 1-999999999999 can ask for.
const mostSelected = 10_000_000

// parseIDs reads selectors: 7, 3-9, 1,3,5-8, or all. All is nil, as is no
// selector at all.
func parseIDs(args []string) ([]int64, error) {
	var ids []int64
	for part := range strings.SplitSeq(strings.Join(args, ","), ",") {
		part = strings.TrimSpace(part)
		if part == "all" || (part == "" && len(args) == 0) {
			if len(args) > 1 || strings.Contains(strings.Join(args, ""), ",") {
				return nil, badSelector(part, "all stands alone")
			}
			return nil, nil
		}
		first, last, err := parseRange(part)
		if err != nil {
			return nil, err
		}
		if last-first >= mostSelected-int64(len(ids)) {
			return nil, badSelector(part, fmt.Sprintf("more than %d tasks; use all", mostSelected))
		}
		for id := first; id <= last; id++ {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func parseRange(part string) (first, last int64, err error) {
	from, to, ranged := strings.Cut(part, "-")
	if !ranged {
		to = from
	}
	first, err1 := strconv.ParseInt(from, 10, 64)
	last, err2 := strconv.ParseInt(to, 10, 64)
	if err1 != nil || err2 != nil || first < 1 || last < first {
		return 0, 0, badSelector(part, "write task ids such as 7, 3-9 or 1,3,5-8, or all")
	}
	return first, last, nil
}

func badSelector(part, remedy string) error {
	return cli.WithCode(cli.ExitUsage, fmt.Errorf("tasks %q: %s", part, remedy))
}

// parseID reads the id of one task.
func parseID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, badSelector(text, "write the id of one task, such as 7")
	}
	return id, nil
}

// ranges writes ids as a selector: 1-31,40.
func ranges(ids []int64) string {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	var parts []string
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		part := strconv.FormatInt(ids[i], 10)
		if j > i {
			part += "-" + strconv.FormatInt(ids[j], 10)
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}
