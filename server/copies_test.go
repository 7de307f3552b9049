package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/ops/archive"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
)

// keepNothing lets all archived tasks that have succeeded go at once, into a directory.
func keepNothing(t *testing.T, dir string) func(*options) {
	t.Helper()
	given := setting(t, "archive_retention=succeeded 0", "archive_dir="+dir)
	return func(o *options) {
		given(o)
		o.Version = "test"
	}
}

// kept reads an archive.
func kept(t *testing.T, sp *storetest.Space, dirs ...string) map[int64]archive.Record {
	t.Helper()
	r := archive.Reader{Dirs: dirs, Namespace: sp.Namespace, Verify: true, Damaged: func(e *archive.DamageError) { t.Error(e) }}
	all := map[int64]archive.Record{}
	err := r.Latest(t.Context(), func(e *archive.Entry) error {
		record, err := e.Record()
		all[e.ID] = record
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// What leaves Redis is in the archive with every field that it had, also bytes that are no text, and in one segment.
func TestCopies(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	dir := filepath.Join(t.TempDir(), "a", "b")
	ids := archived(t, sp, 120, func(i int) bool { return i%3 == 2 })
	sp.Raw.HSet(t.Context(), sp.Key("task:1"), "0:output", "\xff\x00\n", "1:\xfe", "x")
	before := map[int64]map[string]string{}
	for _, id := range ids {
		before[id] = sp.Task(t, id).Fields
	}
	s, _ := newServer(t, sp, keepNothing(t, dir))
	r := newPurger(s)
	retireAll(t, r)
	records := kept(t, sp, dir)
	if len(records) != 80 || len(left(t, sp)) != 40 {
		t.Fatalf("%d are in the archive, %d are left, want 80 and 40", len(records), len(left(t, sp)))
	}
	for id, record := range records {
		if !maps.Equal(record.Fields, before[id]) {
			t.Errorf("task %d was %v and is %v in the archive", id, before[id], record.Fields)
		}
		if record.Outcome != "succeeded" || record.Epoch != 1 || record.Rev == 0 || record.Archived == "" || record.Created == "" {
			t.Errorf("task %d: %+v", id, record.Head)
		}
	}
	s.copies.close()
	if sealed, _ := filepath.Glob(filepath.Join(dir, "*.zst")); len(sealed) != 1 {
		t.Errorf("segments: %v", sealed)
	}
	if gone, err := archive.Before(dir, sp.Namespace, 1); err != nil || gone == nil || len(gone) != 0 {
		t.Errorf("before the archive began had left %v, %v", gone, err)
	}
	sound(t, sp)
}

// Large tasks are read a few at a time, and fewer where even these were too many.
func TestCopiesOfLargeTasks(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.Where.ReadTimeout = time.Minute // not what is tested here
	dir := t.TempDir()
	ids := archived(t, sp, 30, none)
	for _, id := range ids {
		sp.Raw.HSet(t.Context(), sp.Key(fmt.Sprint("task:", id)), "0:output", strings.Repeat("x", 1<<20))
	}
	s, _ := newServer(t, sp, keepNothing(t, dir))
	retireAll(t, newPurger(s))
	if s.copies.page > 25 {
		t.Errorf("still reads %d of them at once", s.copies.page)
	}
	if records := kept(t, sp, dir); len(records) != 30 || len(records[7].Fields["0:output"]) != 1<<20 {
		t.Errorf("%d are in the archive", len(records))
	}
	before := s.copies.page
	away, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, _, err := s.copies.read(away, statemachine.Succeeded, ids); err == nil || s.copies.page != before/2 {
		t.Errorf("%v; reads %d of them at once, after %d", err, s.copies.page, before)
	}
	s.copies.close()
}

// A task that changes between copy and removal stays, until its newest revision is in the archive.
func TestCopyOfAnotherRevision(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	dir := t.TempDir()
	ids := archived(t, sp, 2, none)
	s, _ := newServer(t, sp, keepNothing(t, dir))
	if _, _, err := s.store.KeepIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	tasks, err := s.copies.keep(t.Context(), statemachine.Succeeded, append(ids, 99))
	if err != nil || len(tasks) != 3 {
		t.Fatalf("%v, %v", tasks, err)
	}
	sp.Raw.HIncrBy(t.Context(), sp.Key("task:1"), "rev", 1)
	sp.Raw.HSet(t.Context(), sp.Key("task:1"), "note", "new")
	answers, err := s.store.Purge(t.Context(), tasks)
	if want := []upkeep.Purged{upkeep.PurgeChanged, upkeep.PurgeDone, upkeep.PurgeStray}; err != nil || !slices.Equal(answers, want) {
		t.Errorf("%v, %v, want %v", answers, err, want)
	}
	// One that was not archived when it was looked at must not go if it is when it is to go.
	sp.Raw.HSet(t.Context(), sp.Key("task:1"), "state", "succeeded", "rev", "0")
	if tasks, err = s.copies.keep(t.Context(), statemachine.Succeeded, ids[:1]); err != nil {
		t.Fatal(err)
	}
	sp.Raw.HSet(t.Context(), sp.Key("task:1"), "state", "archived")
	if answers, err := s.store.Purge(t.Context(), tasks); err != nil || answers[0] != upkeep.PurgeChanged {
		t.Errorf("%v, %v, want that it stays", answers, err)
	}
	sp.Raw.HSet(t.Context(), sp.Key("task:1"), "rev", "99")
	retireAll(t, newPurger(s))
	if records := kept(t, sp, dir); len(records) != 2 || records[1].Fields["note"] != "new" {
		t.Errorf("%+v", records)
	}
	s.copies.close()
}

// While no copy can be written nothing goes; the log says it once and Redis knows. Then all goes on.
func TestNoCopyNoRemoval(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	dir := hosttest.SmallDisk(t, "1m")
	ids := archived(t, sp, 20, none)
	for _, id := range ids {
		sp.Raw.HSet(t.Context(), sp.Key(fmt.Sprint("task:", id)), "0:output", fmt.Sprint(id, conn.NewToken()))
	}
	s, logs := newServer(t, sp, keepNothing(t, dir))
	s.copies.after = 0
	r := newPurger(s)
	filler := hosttest.FillDisk(t, dir)
	for range 3 {
		if _, err := r.pass(t.Context()); !errors.Is(err, errCopies) {
			t.Errorf("%v, want that no copy can be written", err)
		}
	}
	if n := len(left(t, sp)); n != len(ids) {
		t.Errorf("%d of %d are left in Redis", n, len(ids))
	}
	if n := strings.Count(logs.String(), "no copy can be written"); n != 1 {
		t.Errorf("the log says it %d times", n)
	}
	sizes, err := sp.Store.Sizes(t.Context())
	if err != nil || !strings.Contains(sizes.ArchiveError, "no space left") || !strings.Contains(sizes.ArchiveError, " on ") {
		t.Errorf("Redis knows %q, %v", sizes.ArchiveError, err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	retireAll(t, r)
	if sizes, err := sp.Store.Sizes(t.Context()); err != nil || sizes.ArchiveError != "" {
		t.Errorf("Redis still knows %q, %v", sizes.ArchiveError, err)
	}
	if len(left(t, sp)) != 0 || len(kept(t, sp, dir)) != len(ids) {
		t.Errorf("%d are left", len(left(t, sp)))
	}
	s.copies.close()
	sound(t, sp)
}

// A server that cannot write rests for longer than its turn, and another one takes over.
func TestAnotherServerTakesOver(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.SetClock(t, noon)
	archived(t, sp, 3, none)
	dirs := []string{filepath.Join(t.TempDir(), "a"), t.TempDir()}
	a, _ := newServer(t, sp, keepNothing(t, dirs[0]))
	b, _ := newServer(t, sp, keepNothing(t, dirs[1]))
	ra, rb := newPurger(a), newPurger(b)
	if err := os.RemoveAll(dirs[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := ra.pass(t.Context()); !errors.Is(err, errCopies) {
		t.Errorf("%v, want that no copy can be written", err)
	}
	retireAll(t, rb)
	if n := len(left(t, sp)); n != 3 {
		t.Errorf("%d of 3 are left in the turn of the other", n)
	}
	sp.SetClock(t, noon.Add(16*statemachine.Second))
	retireAll(t, ra)
	retireAll(t, rb)
	if n := len(kept(t, sp, dirs[1])); n != 3 || len(left(t, sp)) != 0 {
		t.Errorf("%d are in the archive", n)
	}
	b.copies.close()
}

// A directory that cannot be, or one that nothing is ever written to, ends the start.
func TestArchiveDirRefused(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	for dir, some := range map[string][]upkeep.Retention{"/proc/self/none": {{Outcome: statemachine.Failed}}, t.TempDir(): nil} {
		opt := fromConfig(config.Defaults().Server)
		opt.Name, opt.store, opt.ArchiveDir, opt.ArchiveRetention = "s", sp.Store, dir, some
		_, err := assemble(opt)
		if !errors.Is(err, errOption) || !strings.Contains(err.Error(), "ArchiveDir") {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// Servers that share a directory, each of which leaves a part and is heard of no more, lose nothing.
func TestCopiesByServersInTurn(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	dir := t.TempDir()
	total := 0
	for range 5 {
		total += len(archived(t, sp, 60, none))
		ctx, cancel := context.WithCancel(t.Context())
		s, _ := newServer(t, sp, keepNothing(t, dir))
		r := newPurger(s)
		r.lease.By = "one" // as if the former had been silent
		for range 2 {
			if _, err := r.pass(ctx); err != nil {
				t.Fatal(err)
			}
		}
		cancel() // and its part is left, as by one that was killed
	}
	start(t, sp, keepNothing(t, dir))
	wait.Eventually(t, time.Minute, func() bool { return len(left(t, sp)) == 0 }, "tasks are left")
	if n := len(kept(t, sp, dir)); n != total {
		t.Errorf("%d of %d are in the archive", n, total)
	}
	sound(t, sp)
}
