package audit

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/ops/archive"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/tasks"
)

// ArchiveReport is what [VerifyArchive] found.
type ArchiveReport struct {
	Dirs []string `json:"dirs"`
	// Tasks is how many tasks with ids of the namespace as it is now the directories have, Records how many records there are,
	// those of before a flush and those that are there more than once included.
	Tasks   int64 `json:"tasks"`
	Records int64 `json:"records"`
	// Purged is how many tasks have left Redis; InArchive of them are in the archive, Before had left before it was begun,
	// Missing should be there and are not.
	Purged    int64 `json:"purged"`
	InArchive int64 `json:"in_archive"`
	Before    int64 `json:"before"`
	Missing   int64 `json:"missing"`
}

// VerifyArchive compares the tasks that have left Redis with an archive, and the segments of that with their manifests, and adds what
// is wrong to the report. It may be used while servers are at work. The error is that of a call to Redis, or that a directory
// cannot be read.
func VerifyArchive(ctx context.Context, s *store.Store, report *Report, dirs []string) error {
	origin, err := s.Origin(ctx) // records of epochs before are of tasks that were flushed
	if err != nil {
		return err
	}
	purged, err := s.PurgedAll(ctx) // what has left Redis by now was written before
	if err != nil {
		return err
	}
	a := auditor{report: *report}
	found := ArchiveReport{Dirs: dirs}
	r := archive.Reader{Dirs: dirs, Namespace: s.Namespace(), Verify: true, Damaged: func(e *archive.DamageError) {
		a.say(Violation{Kind: Archive, Text: e.Error()})
	}}
	var ids archive.IDs
	err = r.Each(ctx, func(e *archive.Entry) error {
		found.Records++
		if e.Epoch >= origin {
			ids.Add(e.ID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	before, err := leftBefore(dirs, s.Namespace(), origin)
	if err != nil {
		return err
	}
	found.Tasks = ids.Len()
	a.compareArchive(&found, purged, &ids, before)
	*report = a.report
	report.Archive = &found
	return nil
}

// compareArchive looks for each id that has left in the archive, or among those that had left before it was begun.
func (a *auditor) compareArchive(found *ArchiveReport, purged []tasks.Span, ids *archive.IDs, before func(id int64) bool) {
	var early, missing spans
	for _, p := range purged {
		for id := p.First; id <= p.Last; id++ {
			found.Purged++
			switch {
			case ids.Has(id):
				found.InArchive++
			case before(id):
				early.add(id)
			default:
				missing.add(id)
			}
		}
	}
	found.Before, found.Missing = early.n, missing.n
	where := strings.Join(found.Dirs, ", ")
	if early.n > 0 {
		a.remark(sprint(0, Archive, "%d tasks had left Redis before the archive in %s was begun: %s", early.n, where, early.text()))
	}
	if missing.n > 0 {
		a.say(sprint(0, Archive, "%d tasks have left Redis and are not in %s: %s; "+
			"a server without archive_dir, or with another one, has removed them, or segments are missing", missing.n, where, missing.text()))
	}
}

// leftBefore says which ids had left before any of the directories was begun. What had left before only some of them were begun is in
// one of the others.
func leftBefore(dirs []string, namespace string, origin int64) (func(id int64) bool, error) {
	lists := make([][]tasks.Span, len(dirs))
	for i, dir := range dirs {
		ranges, err := archive.Before(dir, namespace, origin)
		if err != nil {
			return nil, fmt.Errorf("archive %s: %w", filepath.Clean(dir), err)
		}
		for _, r := range ranges {
			lists[i] = append(lists[i], tasks.Span{First: r[0], Last: r[1]})
		}
	}
	return func(id int64) bool {
		return !slices.ContainsFunc(lists, func(list []tasks.Span) bool { return in(list, id) == nil })
	}, nil
}

// spans are ids as ranges in order.
type spans struct {
	list []tasks.Span
	n    int64
}

// add adds an id above all others.
func (s *spans) add(id int64) {
	s.n++
	if last := len(s.list) - 1; last >= 0 && s.list[last].Last == id-1 {
		s.list[last].Last = id
		return
	}
	s.list = append(s.list, tasks.Span{First: id, Last: id})
}

// text names the ids, if they are not too many ranges.
func (s *spans) text() string {
	const most = 1000
	parts := make([]string, 0, min(len(s.list), most))
	for _, r := range s.list[:min(len(s.list), most)] {
		if r.First == r.Last {
			parts = append(parts, strconv.FormatInt(r.First, 10))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", r.First, r.Last))
		}
	}
	if more := len(s.list) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more ranges", more))
	}
	return strings.Join(parts, ",")
}
