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
	v := &archiveAudit{store: s, a: &auditor{report: *report}, dirs: dirs, found: ArchiveReport{Dirs: dirs}}
	// What has left Redis by now was written before.
	if err := v.ask(ctx); err != nil {
		return err
	}
	if err := v.read(ctx); err != nil {
		return err
	}
	if err := v.compare(); err != nil {
		return err
	}
	*report = v.a.report
	report.Archive = &v.found
	return nil
}

// archiveAudit is one comparison.
type archiveAudit struct {
	store *store.Store
	a     *auditor
	dirs  []string
	// origin is the epoch in which the ids began; records of before are of tasks that were flushed.
	origin int64
	purged []tasks.Span
	ids    archive.IDs
	found  ArchiveReport
}

// ask reads what has left Redis.
func (v *archiveAudit) ask(ctx context.Context) (err error) {
	if v.origin, err = v.store.Origin(ctx); err == nil {
		v.purged, err = v.store.PurgedAll(ctx)
	}
	return err
}

// read reads all segments.
func (v *archiveAudit) read(ctx context.Context) error {
	r := archive.Reader{Dirs: v.dirs, Namespace: v.store.Namespace(), Verify: true, Damaged: func(e *archive.DamageError) {
		v.a.say(Violation{Kind: Archive, Text: e.Error()})
	}}
	return r.Each(ctx, func(e *archive.Entry) error {
		v.found.Records++
		if e.Epoch >= v.origin {
			v.ids.Add(e.ID)
		}
		return nil
	})
}

// compare looks for each id that has left.
func (v *archiveAudit) compare() error {
	before, err := v.before()
	if err != nil {
		return err
	}
	v.found.Tasks = v.ids.Len()
	var early, missing spans
	for _, p := range v.purged {
		for id := p.First; id <= p.Last; id++ {
			v.found.Purged++
			switch {
			case v.ids.Has(id):
				v.found.InArchive++
			case before.has(id):
				early.add(id)
			default:
				missing.add(id)
			}
		}
	}
	v.found.Before, v.found.Missing = early.n, missing.n
	where := strings.Join(v.dirs, ", ")
	if early.n > 0 {
		text := fmt.Sprintf("%d tasks had left Redis before the archive in %s was begun: %s", early.n, where, early.text())
		v.a.remark(Violation{Kind: Archive, Text: text})
	}
	if missing.n > 0 {
		v.a.say(Violation{Kind: Archive, Text: fmt.Sprintf("%d tasks have left Redis and are not in %s: %s; "+
			"a server without archive_dir, or with another one, has removed them, or segments are missing", missing.n, where, missing.text())})
	}
	return nil
}

// before are the ids that had left before any of the directories was begun. What had left before only some of them were begun is in
// one of the others.
func (v *archiveAudit) before() (spans, error) {
	var common spans
	for i, dir := range v.dirs {
		ranges, err := archive.Before(dir, v.store.Namespace(), v.origin)
		if err != nil {
			return common, fmt.Errorf("archive %s: %w", filepath.Clean(dir), err)
		}
		one := spans{list: ranges}
		if common = one.with(&common); i == 0 {
			common = one
		}
	}
	return common, nil
}

// spans are ids as ranges in order.
type spans struct {
	list []archive.Range
	n    int64
}

// add adds an id above all others.
func (s *spans) add(id int64) {
	s.n++
	if last := len(s.list) - 1; last >= 0 && s.list[last][1] == id-1 {
		s.list[last][1] = id
		return
	}
	s.list = append(s.list, archive.Range{id, id})
}

func (s *spans) has(id int64) bool {
	i, found := slices.BinarySearchFunc(s.list, id, func(r archive.Range, id int64) int {
		switch {
		case r[1] < id:
			return -1
		case r[0] > id:
			return 1
		default:
			return 0
		}
	})
	return found && i < len(s.list)
}

// with are the ids that are in both.
func (s *spans) with(o *spans) (both spans) {
	for i, j := 0, 0; i < len(s.list) && j < len(o.list); {
		a, b := s.list[i], o.list[j]
		if r := (archive.Range{max(a[0], b[0]), min(a[1], b[1])}); r[0] <= r[1] {
			both.list = append(both.list, r)
		}
		if a[1] < b[1] {
			i++
		} else {
			j++
		}
	}
	return both
}

// text names the ids, if they are not too many ranges.
func (s *spans) text() string {
	const most = 1000
	parts := make([]string, 0, min(len(s.list), most))
	for _, r := range s.list[:min(len(s.list), most)] {
		if r[0] == r[1] {
			parts = append(parts, strconv.FormatInt(r[0], 10))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", r[0], r[1]))
		}
	}
	if more := len(s.list) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more ranges", more))
	}
	return strings.Join(parts, ",")
}
