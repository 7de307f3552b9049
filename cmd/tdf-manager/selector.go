package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/manager"
)

// mostSelected bounds what a slip such as 1-999999999999 can ask for.
const mostSelected = 10_000_000

// The words that stand for tasks.
const (
	allTasks = "all"
	lastTask = "last" // the one that was opened last
)

// parseSelector reads selectors: 7, 3-9, 1,3,5-8, last, or all. newest says what
// last is. The ranges are sorted and do not overlap; no selector at all is none,
// and not all.
func parseSelector(args []string, newest func() (int64, error)) (list []manager.IDRange, all bool, err error) {
	if len(args) == 0 {
		return nil, false, nil
	}
	text := strings.Join(args, ",")
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == allTasks {
			if text != allTasks {
				return nil, false, badSelector(part, "all stands alone")
			}
			return nil, true, nil
		}
		var r manager.IDRange
		if part == lastTask {
			r.First, err = newest()
			r.Last = r.First
		} else {
			r, err = parseRange(part)
		}
		if err != nil {
			return nil, false, err
		}
		list = append(list, r)
	}
	list = merge(list)
	if count(list) > mostSelected {
		return nil, false, badSelector(text, fmt.Sprintf("more than %d tasks; use all", mostSelected))
	}
	return list, false, nil
}

// merge sorts ranges and joins those that touch, so that no task comes twice.
func merge(list []manager.IDRange) []manager.IDRange {
	slices.SortFunc(list, func(a, b manager.IDRange) int { return cmp.Compare(a.First, b.First) })
	var merged []manager.IDRange
	for _, r := range list {
		if n := len(merged); n > 0 && r.First <= merged[n-1].Last {
			merged[n-1].Last = max(merged[n-1].Last, r.Last)
			continue
		}
		merged = append(merged, r)
	}
	return merged
}

// count is the number of ids, at most one more than mostSelected.
func count(list []manager.IDRange) int64 {
	n := int64(0)
	for _, r := range list {
		if n += min(r.Last-r.First, mostSelected) + 1; n > mostSelected {
			break
		}
	}
	return min(n, mostSelected+1)
}

func parseRange(part string) (manager.IDRange, error) {
	from, to, ranged := strings.Cut(part, "-")
	if !ranged {
		to = from
	}
	first, err1 := strconv.ParseInt(from, 10, 64)
	last, err2 := strconv.ParseInt(to, 10, 64)
	if err1 != nil || err2 != nil || first < 1 || last < first {
		return manager.IDRange{}, badSelector(part, "write task ids such as 7, 3-9 or 1,3,5-8, last, or all")
	}
	return manager.IDRange{First: first, Last: last}, nil
}

func badSelector(part, remedy string) error {
	return cli.WithCode(cli.ExitUsage, fmt.Errorf("tasks %q: %s", part, remedy))
}

// parseID reads the id of one task.
func parseID(text string, newest func() (int64, error)) (int64, error) {
	if text == lastTask {
		return newest()
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, badSelector(text, "write the id of one task, such as 7, or last")
	}
	return id, nil
}

// newest makes the function that finds the task opened last.
func (s *session) newest(ctx context.Context) func() (int64, error) {
	return func() (int64, error) {
		id, err := s.lastID(ctx)
		if err == nil && id == 0 {
			err = badSelector(lastTask, "no task has been opened yet")
		}
		return id, err
	}
}

func (s *session) lastID(ctx context.Context) (id int64, err error) {
	direct, err := store.Dial(s.cfg.Redis, s.cfg.TDF.Namespace)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, direct.Close()) }()
	return direct.NewestID(ctx)
}

// shortRanges is ranges for people, who read no thousand of them.
func shortRanges(ids []int64) string {
	const most = 500
	text := ranges(ids)
	if len(text) <= most {
		return text
	}
	whole := text[:strings.LastIndexByte(text[:most], ',')]
	return whole + ",... (--json has all of them)"
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
