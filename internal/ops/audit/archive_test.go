package audit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/internal/ops/archive"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/task"
)

// shelf is a namespace from which archived tasks leave, some with a copy.
type shelf struct {
	t     *testing.T
	store *store.Store
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	return &shelf{t, worktest.Open(t, redistest.Namespace(t))}
}

// archived makes n archived tasks and returns their ids.
func (s *shelf) archived(n int) []int64 {
	s.t.Helper()
	spec := storetest.Define("program", "p", "source", "s", "max_losses", "0")
	ids, err := s.store.Open(s.t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: slices.Repeat([]task.Definition{spec}, n)})
	if err != nil {
		s.t.Fatal(err)
	}
	worktest.Drain(s.t, s.store, worktest.Echo)
	for _, id := range ids {
		archiveTask(s.t, s.store, id)
	}
	return ids
}

// leave removes tasks, after a copy of each was written to the directory, unless that is empty.
func (s *shelf) leave(dir string, ids ...int64) {
	s.t.Helper()
	ctx := s.t.Context()
	tasks, err := s.store.TasksByID(ctx, ids)
	if err != nil {
		s.t.Fatal(err)
	}
	sizes, err := s.store.Sizes(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	var out []upkeep.Outgoing
	var records []archive.Record
	for _, t := range tasks {
		out = append(out, upkeep.Outgoing{ID: t.ID, Rev: t.Rev, Outcome: t.Outcome})
		records = append(records, archive.NewRecord(t.ID, sizes.Epoch, t.Outcome, t.Fields))
	}
	if dir != "" {
		s.begin(dir)
		w, err := archive.Open(archive.Options{Dir: dir, Namespace: s.store.Namespace()})
		if err == nil {
			err = w.Write(records)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	if answers, err := s.store.Purge(ctx, out); err != nil || slices.ContainsFunc(answers, func(p upkeep.Purged) bool { return p != upkeep.PurgeDone }) {
		s.t.Fatal(answers, err)
	}
}

// begin notes what has left before.
func (s *shelf) begin(dir string) {
	s.t.Helper()
	origin, err := s.store.Origin(s.t.Context())
	if err == nil {
		err = archive.Begin(dir, s.store.Namespace(), origin, func() ([]archive.Range, error) {
			spans, err := s.store.PurgedAll(s.t.Context())
			var all []archive.Range
			for _, p := range spans {
				all = append(all, archive.Range{p.First, p.Last})
			}
			return all, err
		})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// verify compares with directories; said are all violations and notes.
func (s *shelf) verify(dirs ...string) (r Report, said string) {
	s.t.Helper()
	r, err := Verify(s.t.Context(), s.store)
	if err == nil {
		err = VerifyArchive(s.t.Context(), s.store, &r, dirs)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	for _, v := range r.Notes {
		said += "note: " + v.Text + "\n"
	}
	for _, v := range r.Violations {
		said += string(v.Kind) + ": " + v.Text + "\n"
	}
	return r, said
}

// Each task that has left is in the archive, or had left before that was begun, or is missing; and these are named.
func TestArchiveIsComplete(t *testing.T) {
	t.Parallel()
	s, dirs := newShelf(t), []string{t.TempDir(), t.TempDir()}
	ids := s.archived(12)
	s.leave("", ids[:3]...)
	s.leave(dirs[0], ids[3:6]...)
	r, said := s.verify(dirs[0])
	if want := "note: 3 tasks had left Redis before the archive in " + dirs[0] + " was begun: 1-3\n"; !r.OK() || said != want {
		t.Errorf("%s, want %s", said, want)
	}
	s.leave(dirs[1], ids[6:8]...)
	r, said = s.verify(dirs[0])
	if r.OK() || !strings.Contains(said, "archive: 2 tasks have left Redis and are not in "+dirs[0]+": 7-8;") {
		t.Errorf("without the second directory: %s", said)
	}
	if r, said := s.verify(dirs[1]); !r.OK() || !strings.Contains(said, "6 tasks had left") {
		t.Errorf("without the first directory: %s", said)
	}
	r, said = s.verify(dirs...)
	if a := *r.Archive; !r.OK() || strings.Count(said, "\n") != 1 || a.Tasks != 5 || a.Records != 5 || a.Purged != 8 || a.InArchive != 5 || a.Before != 3 || a.Missing != 0 {
		t.Errorf("%+v, %s", a, said)
	}
	s.leave("", ids[9], ids[11])
	r, said = s.verify(dirs...)
	if r.OK() || r.Archive.Missing != 2 || !strings.Contains(said, ": 10,12;") {
		t.Errorf("%+v, %s", r.Archive, said)
	}
}

// A damaged segment is a violation, and so is each task that is lost with it.
func TestDamagedArchive(t *testing.T) {
	t.Parallel()
	s, dir := newShelf(t), t.TempDir()
	ids := s.archived(4)
	s.leave(dir, ids[:2]...)
	s.leave(dir, ids[2:]...)
	if r, said := s.verify(dir); !r.OK() || said != "" {
		t.Errorf("whole: %s", said)
	}
	segments, err := filepath.Glob(filepath.Join(dir, "*.zst"))
	if err != nil || len(segments) != 2 {
		t.Fatal(segments, err)
	}
	if err := os.Truncate(segments[0], 30); err != nil {
		t.Fatal(err)
	}
	r, said := s.verify(dir)
	if len(r.Violations) != 2 || !strings.Contains(said, segments[0]) || r.Archive.Missing != 2 {
		t.Errorf("%s", said)
	}
}

// After a flush the ids begin again, and what was written before says nothing of them.
func TestArchiveAfterFlush(t *testing.T) {
	t.Parallel()
	s, dir := newShelf(t), t.TempDir()
	s.leave(dir, s.archived(3)...)
	if _, err := s.store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	ids := s.archived(3)
	s.begin(dir)
	s.leave("", ids[0])
	r, said := s.verify(dir)
	if r.OK() || r.Archive.Missing != 1 || r.Archive.Tasks != 0 || r.Archive.Records != 3 {
		t.Errorf("%+v, %s", r.Archive, said)
	}
	s.leave(dir, ids[1:]...)
	if r, said := s.verify(dir); r.Archive.Missing != 1 || r.Archive.InArchive != 2 {
		t.Errorf("%+v, %s", r.Archive, said)
	}
}

// Ranges behave as sets of ids.
func TestSpansOfIDs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		set := map[int64]bool{}
		for _, id := range rapid.SliceOf(rapid.Int64Range(1, 30)).Draw(t, "ids") {
			set[id] = true
		}
		var list spans
		for id := range int64(31) {
			if set[id] {
				list.add(id)
			}
		}
		for id := range int64(32) {
			if found := in(list.list, id) != nil; found != set[id] {
				t.Fatalf("%d of %v: %v", id, list.list, found)
			}
		}
		if len(set) == 0 != (list.text() == "") {
			t.Fatal(list.text())
		}
	})
}
