package server

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/link"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func keeperOf(s *Server) *janitor {
	return &janitor{Server: s, redis: link.New(slog.New(slog.DiscardHandler))}
}

// A bucket is taken off the list when it is found empty the second time; one
// that was used in between stays.
func TestPrunesEmptyBuckets(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	f := newFleet(t, sp, config.QuarantineOff, 1, 1)
	gone, used := task.Bucket{Priority: 1}, task.Bucket{Priority: 2}
	in := func(b task.Bucket) task.Definition {
		return storetest.Spec(func(s *task.Definition) { storetest.SetBucket(s, b) })
	}
	take := func(b task.Bucket) {
		t.Helper()
		r, err := sp.Store.Claim(t.Context(), tasks.ClaimRequest{
			Worker: "w", Request: conn.NewToken(), Candidates: storetest.Free(b), Max: 9, MaxThreads: task.Unlimited,
		})
		if err != nil || len(r.Tasks) != 1 {
			t.Fatalf("claimed %+v, %v", r, err)
		}
	}
	check := func(when string, want ...task.Bucket) {
		t.Helper()
		all, err := sp.Store.Buckets(t.Context())
		all = slices.DeleteFunc(all, func(b task.Bucket) bool { return b == task.Bucket{} })
		slices.SortFunc(all, func(a, b task.Bucket) int { return a.Priority - b.Priority })
		if err != nil || !slices.Equal(all, want) {
			t.Errorf("%s: buckets %+v, %v", when, all, err)
		}
	}
	s, _ := judging(t, f.sp, config.QuarantineOff)
	k := keeperOf(s)
	prune := func() {
		t.Helper()
		if err := k.prune(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sp.Open(t, in(gone), in(used))
	prune()
	take(gone)
	take(used)
	prune()
	check("empty once", gone, used)
	sp.Open(t, in(used))
	prune()
	check("empty twice", used)
	take(used)
	prune()
	check("empty again", used)
	prune()
	check("empty twice at last")
}

// A round that a foreign client has ended does not count against a limit for
// long.
func TestRecounts(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	f := newFleet(t, sp, config.QuarantineOff, 1, 2)
	openMany(t, sp, 2)
	f.hosts[0].claim(t)
	sp.Raw.HSet(t.Context(), sp.Key("task:1"), "state", "executed")
	s, l := judging(t, sp, config.QuarantineOff)
	k := keeperOf(s)
	for range 2 {
		if err := k.recount(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.record(t, "n0").Running; n != 1 {
		t.Errorf("%d rounds count on the node, want 1\n%s", n, l)
	}
	if n := s.Stats().Repairs; n != 3 { // in the counts of the queue, the node and the worker
		t.Errorf("%d repairs, want 3", n)
	}
	if n := times([]*logs{l}, "took rounds that are over out of the counts"); n != 1 {
		t.Errorf("said %d times\n%s", n, l)
	}
}

// A round that was dropped from what limits are enforced by is put back.
func TestCountsAgain(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	f := newFleet(t, sp, config.QuarantineOff, 1, 1)
	openMany(t, sp, 1)
	f.hosts[0].claim(t)
	s, l := judging(t, sp, config.QuarantineOff)
	for _, key := range []string{"busy:queue:default", "busy:node:n0"} {
		sp.Raw.Del(t.Context(), sp.Key(key))
		found, now, err := sp.Store.Inspect(t.Context(), []int64{1})
		if err != nil || !found[0].Uncounted {
			t.Fatalf("%+v, %v", found, err)
		}
		if err := keeperOf(s).reindex(t.Context(), &found[0], now); err != nil {
			t.Fatal(err)
		}
		if !sp.Raw.SIsMember(t.Context(), sp.Key(key), "1").Val() {
			t.Errorf("%s lacks the round\n%s", key, l)
		}
	}
}

// Claims hear from the server whether they honour gates.
func TestPublishesQuarantine(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			s, _ := judging(t, sp, mode)
			if err := keeperOf(s).repair(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := sp.Raw.HGet(t.Context(), sp.Key("meta"), "quarantine").Val(); got != mode {
				t.Errorf("published %q, want %q", got, mode)
			}
		})
	}
}

// Servers publish what may be uploaded, and remove what nothing refers to.
func TestUploadsLeave(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, l := newServer(t, sp, setting(t, "blob_limit=4", "blob_quota=10", "file_retention=60"))
	keeper := keeperOf(s)
	if err := keeper.repair(t.Context()); err != nil {
		t.Fatal(err)
	}
	put := func(hash string, size int64) error {
		return sp.Store.PutBlob(t.Context(), hash, size, strings.NewReader("abcde"))
	}
	for hash, size := range map[string]int64{"0a": 5, "0b": 4} { // the one is too large
		if err := put(hash, size); errors.Is(err, task.ErrNoRoom) != (size == 5) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if err := sp.Store.PutFiles(t.Context(), "0a", 4, strings.NewReader("file"), true); err != nil {
		t.Fatal(err)
	}
	till, err := sp.Store.FilesUntil(t.Context(), "0a")
	if err != nil || time.Until(till) > time.Hour {
		t.Errorf("returned files are kept until %v, error %v, want a minute", till, err)
	}
	if err := put("0c", 3); !errors.Is(err, task.ErrNoRoom) {
		t.Errorf("error %v, want that all together are too many", err)
	}
	sp.Raw.ZAdd(t.Context(), sp.Key("blobs"), redis.Z{Member: "0b", Score: 1})
	sp.Raw.ZAdd(t.Context(), sp.Key("files"), redis.Z{Member: "0a", Score: 1})
	keeper.pruned = time.Time{}
	if err := keeper.repair(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, there, err := sp.Store.BlobSize(t.Context(), "0b"); there || err != nil {
		t.Errorf("it is there: %v, error %v", there, err)
	}
	if till, err := sp.Store.FilesUntil(t.Context(), "0a"); !till.IsZero() || err != nil {
		t.Errorf("returned files are kept until %v, error %v", till, err)
	}
	for _, want := range []string{"removed uploads that nothing refers to", "removed returned files after file_retention"} {
		if !strings.Contains(l.String(), want) {
			t.Errorf("the log does not say %q: %s", want, l)
		}
	}
}

// What is known of workers that have left, or were lost, goes after a week, and nothing else: a drain stays, and so do the records of
// those that live, hold tasks, or are another client's. A session that was taken away so fits no later one of the name.
func TestForgetsWorkers(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp)
	k := keeperOf(s)
	leave := func(names ...string) {
		for _, name := range names {
			if err := sp.Store.Leave(t.Context(), sp.Register(t, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	names := func() (all []string) {
		t.Helper()
		if err := k.dismiss(t.Context()); err != nil {
			t.Fatal(err)
		}
		all, err := sp.Raw.SMembers(t.Context(), sp.Key("worker")).Result()
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(all)
		return all
	}
	sp.SetClock(t, noon)
	sp.Raw.SAdd(t.Context(), sp.Key("worker"), "foreign")
	leave("left", "kept", "again", "again")
	former := sp.Register(t, "drained")
	sp.Register(t, "lost")
	if _, err := sp.Store.CommandWorker(t.Context(), "drained", task.CommandDrain); err != nil {
		t.Fatal(err)
	}
	if err := sp.Store.Leave(t.Context(), former); err != nil {
		t.Fatal(err)
	}
	again := sp.Register(t, "again")
	sp.SetClock(t, noon.Add(60*statemachine.Second))
	if _, err := s.store.Lost(t.Context(), 9, fleet.Watched{}); err != nil { // "lost", and "again"
		t.Fatal(err)
	}
	sp.Raw.SAdd(t.Context(), sp.Key("held:kept"), "7")
	const day = 24 * 3600 * statemachine.Second
	sp.SetClock(t, noon.Add(7*day))
	leave("late")
	sp.Register(t, "alive")
	all := []string{"again", "alive", "drained", "foreign", "kept", "late", "left", "lost"}
	if got := names(); !slices.Equal(got, all) {
		t.Errorf("in the week: %q", got)
	}
	sp.SetClock(t, noon.Add(7*day+61*statemachine.Second))
	if got := names(); !slices.Equal(got, []string{"alive", "drained", "foreign", "kept", "late"}) {
		t.Errorf("after it: %q", got)
	}
	left, err := sp.Raw.Keys(t.Context(), sp.Key("*again")).Result()
	if err != nil || len(left) > 0 {
		t.Errorf("%q, %v", left, err)
	}
	for range 2 {
		if _, err := sp.Store.Renew(t.Context(), again, fleet.Heartbeat{State: task.WorkerReady}); !errors.Is(err, conn.ErrLeaseLost) {
			t.Errorf("a former session: %v", err)
		}
		for _, name := range []string{"again", "new"} {
			if now := sp.Register(t, name); now.Incarnation <= again.Incarnation || now.ID <= again.ID {
				t.Errorf("%+v, then %+v", again, now)
			}
		}
	}
}
