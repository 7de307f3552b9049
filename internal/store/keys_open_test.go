package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	await "github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// openAll opens tasks under a request of their own.
func openAll(t *testing.T, sp *storetest.Space, specs ...task.Definition) []task.Opened {
	t.Helper()
	opened, err := sp.Store.OpenAll(t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: specs})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// TestKeys: a key is unique in its queue, within a request as well; the first task
// is the answer, also after other tasks and in another order.
func TestKeys(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.AddQueue(t, task.ParseQueue("q", nil))
	for _, c := range []struct {
		specs []task.Definition
		want  []task.Opened
	}{
		{[]task.Definition{withKey("", "k")}, []task.Opened{{ID: 1}}},
		{[]task.Definition{withKey("", "k")}, []task.Opened{{ID: 1, Existing: true}}},
		{[]task.Definition{withKey(task.DefaultQueue, "k"), withKey("q", "k")}, []task.Opened{{ID: 1, Existing: true}, {ID: 2}}},
		{
			[]task.Definition{withKey("", "x"), withKey("", ""), withKey("", "x"), withKey("q", "k"), withKey("", "")},
			[]task.Opened{{ID: 3}, {ID: 4}, {ID: 3, Existing: true}, {ID: 2, Existing: true}, {ID: 5}},
		},
		{[]task.Definition{withKey("q", "a:b"), withKey("q", "a"), withKey("q", "b")}, []task.Opened{{ID: 6}, {ID: 7}, {ID: 8}}},
	} {
		req := tasks.OpenRequest{Key: conn.NewToken(), Specs: c.specs}
		for range 2 { // the request itself may come twice
			got, err := sp.Store.OpenAll(t.Context(), req)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("opened %+v, error %v, want %+v", got, err, c.want)
			}
		}
	}
	if last, err := sp.Store.LastID(t.Context()); last != 8 || err != nil {
		t.Errorf("%d tasks, error %v", last, err)
	}
	if from, last, err := sp.Store.Watermark(t.Context()); from != last || err != nil {
		t.Errorf("the watermark is at %d of %d: %v", from, last, err)
	}
}

// TestKeyOfATask: a task has its key while it lives, or a retry of it does, and then until its time is over; once it has left Redis too.
func TestKeyOfATask(t *testing.T) {
	t.Parallel()
	const week = 7 * 24 * 3600 * second
	for name, c := range map[string]struct {
		until   string
		life    func(t *testing.T, sp *storetest.Space)
		at      statemachine.Duration // after the opening
		another bool
	}{
		"it is open":                          {"", nil, week + second, false},
		"it is open, until end":               {"end", nil, week + second, false},
		"it has ended":                        {"", keyEnds, week - second, false},
		"it has ended, week over":             {"", keyEnds, week + second, true},
		"it has ended, until end":             {"end", keyEnds, 0, true},
		"it is archived, until end":           {"end", keyArchived, 0, true},
		"it is archived":                      {"", keyArchived, week - second, false},
		"it is retried, until end":            {"end", keyRetried, week + second, false},
		"its retry has ended, until end":      {"end", keyRetryEnds, 0, true},
		"its retry has left Redis, until end": {"end", keyRetryGone, 0, true},
		"it has left Redis":                   {"", keyPurged, week - second, false},
		"it has left Redis, until end":        {"end", keyPurged, 0, true},
		"Redis has lost it":                   {"", keyLost, 0, true},
		"it is damaged":                       {"", keyDamaged, week + second, false},
		"an older release gave it the key":    {"", keyOfOld, week - second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, key := range []string{"k", "*#:" + strings.Repeat("k", 4000)} {
				sp := storetest.New(t)
				sp.SetClock(t, noon)
				keyed := withKey("", key)
				storetest.Set(&keyed, "key_until", c.until)
				openAll(t, sp, keyed)
				if c.life != nil {
					c.life(t, sp)
				}
				sp.SetClock(t, noon.Add(c.at))
				if got := openAll(t, sp, keyed)[0]; got.Existing == c.another || (got.ID == 1) == c.another {
					t.Errorf("it is %+v with a key of %d bytes", got, len(key))
				}
				if got := openAll(t, sp, keyed)[0]; !got.Existing {
					t.Errorf("the next one is %+v with a key of %d bytes", got, len(key))
				}
			}
		})
	}
}

func keyEnds(t *testing.T, sp *storetest.Space) {
	t.Helper()
	must(t, sp, 1, statemachine.Manager, statemachine.Cancel)
}

func keyArchived(t *testing.T, sp *storetest.Space) {
	t.Helper()
	keyEnds(t, sp)
	must(t, sp, 1, statemachine.Manager, statemachine.Archive)
}

func keyRetried(t *testing.T, sp *storetest.Space) {
	t.Helper()
	keyArchived(t, sp)
	openAll(t, sp, retryOf(1))
}

func keyRetryEnds(t *testing.T, sp *storetest.Space) {
	t.Helper()
	keyRetried(t, sp)
	must(t, sp, 2, statemachine.Manager, statemachine.Cancel)
}

func keyRetryGone(t *testing.T, sp *storetest.Space) {
	t.Helper()
	keyRetried(t, sp)
	sp.Raw.Del(t.Context(), sp.Key("task:2"))
}

func keyPurged(t *testing.T, sp *storetest.Space) {
	t.Helper()
	if _, _, err := sp.Store.KeepIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	keyArchived(t, sp)
	key := sp.Raw.Keys(t.Context(), sp.Key("key:*")).Val()[0]
	if got := purge(t, sp, 1); got[0] != upkeep.PurgeDone {
		t.Fatalf("purged: %v", got)
	}
	if ttl := sp.Raw.TTL(t.Context(), key).Val().Hours(); ttl > 0 && (ttl < 160 || ttl > 168) {
		t.Errorf("the key stays for %v hours", ttl)
	}
}

func keyLost(t *testing.T, sp *storetest.Space) {
	t.Helper()
	sp.Raw.Del(t.Context(), sp.Key("task:1"))
}

func keyDamaged(t *testing.T, sp *storetest.Space) {
	t.Helper()
	sp.Raw.HDel(t.Context(), sp.Key("task:1"), "state")
	sp.Raw.Set(t.Context(), sp.Key("task:1"), "damaged", 0)
}

func keyOfOld(t *testing.T, sp *storetest.Space) {
	t.Helper()
	key := sp.Raw.Keys(t.Context(), sp.Key("key:*")).Val()[0]
	sp.Raw.Expire(t.Context(), key, time.Hour)
	sp.Raw.HDel(t.Context(), sp.Key("task:1"), "key_expires", "key_work")
}

// TestKeyOfOtherWork: a task that does something else under a key is refused, with all of the request.
func TestKeyOfOtherWork(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	openAll(t, sp, withKey("", "k"))
	for name, field := range map[string][]string{
		"program": {"program", "other"}, "source": {"source", "http://h/p.zip"}, "class": {"class", "c"}, "input": {"input", "x"},
		"words": {"argv", `["x"]`}, "variables": {"variables", `{"A":"1"}`}, "stdin": {"stdin", "blob:sha256=" + strings.Repeat("0a", 32)},
		"parameters": {"params", `{"a":1}`},
	} {
		other := withKey("", "k")
		storetest.Set(&other, field...)
		twin := withKey("", "new")
		storetest.Set(&twin, field...)
		for _, c := range []struct {
			specs []task.Definition
			want  task.KeyTakenError
		}{
			{[]task.Definition{withKey("", ""), other}, task.KeyTakenError{Key: "k", Task: 1}},
			{[]task.Definition{withKey("", "new"), twin}, task.KeyTakenError{Key: "new"}},
		} {
			_, err := sp.Store.OpenAll(t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: c.specs})
			if taken, ok := errors.AsType[*task.KeyTakenError](err); !ok || *taken != c.want || !errors.Is(err, task.ErrKeyTaken) {
				t.Errorf("another %s: %v, want %+v", name, err, c.want)
			}
		}
	}
	later := withKey("", "k")
	storetest.Set(&later, "start_after", noon.Text(), "priority", "5", "comment", "why", "timeout", "7")
	if got := openAll(t, sp, later)[0]; got != (task.Opened{ID: 1, Existing: true}) {
		t.Errorf("of the same work it is %+v", got)
	}
	if last, err := sp.Store.LastID(t.Context()); last != 1 || err != nil {
		t.Errorf("%d tasks, error %v", last, err)
	}
}

// TestRetryOf: a task is repeated once, however often and by whatever client.
func TestRetryOf(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	id := bring(t, sp, statemachine.Succeeded)
	rev := sp.Task(t, id).Rev
	if got := openAll(t, sp, retryOf(id), retryOf(id)); !slices.Equal(got, []task.Opened{{ID: 2}, {ID: 2, Existing: true}}) {
		t.Errorf("opened %+v", got)
	}
	if got := openAll(t, sp, retryOf(id)); !slices.Equal(got, []task.Opened{{ID: 2, Existing: true}}) {
		t.Errorf("opened %+v", got)
	}
	old, fresh := sp.Task(t, id), sp.Task(t, 2)
	if old.Fields["retried_by"] != "2" || old.Rev != rev+1 || fresh.Fields["retry_of"] != "1" {
		t.Errorf("old %v, new %v", old.Fields, fresh.Fields)
	}
	if got := openAll(t, sp, retryOf(2)); got[0].ID != 3 { // the repetition itself may be repeated
		t.Errorf("opened %+v", got)
	}
	before := dump(t, sp)
	_, err := sp.Store.OpenAll(t.Context(), tasks.OpenRequest{Key: "k", Specs: []task.Definition{storetest.Spec(), retryOf(99)}})
	if !errors.Is(err, task.ErrNoTask) {
		t.Errorf("error %v", err)
	}
	sameDump(t, before, dump(t, sp), "after a request for a task that is not there")
}

// TestUnknownQueue: a slip in the name of a queue does not escape its limits.
func TestUnknownQueue(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	before := dump(t, sp)
	_, err := sp.Store.Open(t.Context(), tasks.OpenRequest{Key: "k", Specs: []task.Definition{storetest.Spec(), withKey("slip", "k")}})
	if !errors.Is(err, task.ErrNoQueue) {
		t.Errorf("error %v", err)
	}
	sameDump(t, before, dump(t, sp), "after a request for a queue that is not there")
	sp.AddQueue(t, task.ParseQueue("slip", nil))
	if err := sp.Store.AddQueue(t.Context(), task.ParseQueue("slip", nil)); !errors.Is(err, task.ErrQueueExists) {
		t.Errorf("added twice: %v", err)
	}
	if err := sp.Store.AddQueue(t.Context(), task.ParseQueue(task.DefaultQueue, nil)); !errors.Is(err, task.ErrQueueExists) {
		t.Errorf("added the default queue: %v", err)
	}
	openAll(t, sp, withKey("slip", "k"))
	if err := sp.Store.RemoveQueue(t.Context(), "slip"); !errors.Is(err, task.ErrQueueInUse) {
		t.Errorf("removed with a task in it: %v", err)
	}
	must(t, sp, 1, statemachine.Manager, statemachine.Cancel)
	if err := sp.Store.RemoveQueue(t.Context(), "slip"); err != nil {
		t.Error(err)
	}
	if _, err := sp.Store.Queue(t.Context(), "slip"); !errors.Is(err, task.ErrNoQueue) {
		t.Errorf("a removed queue: %v", err)
	}
	if err := sp.Store.RemoveQueue(t.Context(), "slip"); !errors.Is(err, task.ErrNoQueue) {
		t.Errorf("removed twice: %v", err)
	}
}

// TestHeldOpen: a task that begins on hold waits in no bucket until it is released.
func TestHeldOpen(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	openAll(t, sp, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "hold", "first look at it") }))
	task := sp.Task(t, 1)
	if task.State != statemachine.Blocked || task.Fields["hold"] != "first look at it" || task.Fields["0:blocked"] == "" {
		t.Errorf("fields %v", task.Fields)
	}
	if got := sp.Claim(t, "w", 1); len(got) != 0 {
		t.Error("claimed")
	}
	must(t, sp, 1, statemachine.Manager, statemachine.Unblock)
	if got := sp.Claim(t, "w", 1); len(got) != 1 {
		t.Error("not claimed")
	}
}

// TestPruned: a bucket that is taken off the list comes back with its next task, also
// with one that is opened again.
func TestPruned(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	w := sp.Register(t, "w")
	b := task.Bucket{Priority: 7}
	openAll(t, sp, storetest.Spec(func(s *task.Definition) { storetest.SetBucket(s, b) }))
	r, err := sp.Store.Claim(t.Context(), tasks.ClaimRequest{
		Worker: "w", Request: "r", Candidates: storetest.Free(b), Max: 1, Incarnation: w.Incarnation,
	})
	if err != nil || len(r.Tasks) != 1 {
		t.Fatalf("claimed %+v, error %v", r, err)
	}
	empty, err := sp.Store.EmptyBuckets(t.Context())
	if err != nil || !slices.Equal(empty, []string{b.Name()}) {
		t.Fatalf("empty: %v, error %v", empty, err)
	}
	known := byRules(t, sp.Store, "w", "n").Known
	if n, err := sp.Store.Prune(t.Context(), append(empty, task.Bucket{}.Name())); n != 1 || err != nil {
		t.Errorf("pruned %d, error %v", n, err)
	}
	if all, err := sp.Store.Buckets(t.Context()); len(all) != 1 || err != nil {
		t.Errorf("buckets %+v, error %v", all, err)
	}
	_, rules := listen(t, sp.Store, "w")
	await.Receive(t, time.Minute, rules, "the subscription is not announced")
	must(t, sp, 1, statemachine.Server, statemachine.Lose)
	await.Receive(t, time.Minute, rules, "workers, which do not wait there, do not hear of it")
	if all, err := sp.Store.Buckets(t.Context()); !slices.Contains(all, b) || err != nil {
		t.Errorf("buckets %+v, error %v", all, err)
	}
	if now := byRules(t, sp.Store, "w", "n").Known; now != known+2 {
		t.Errorf("the list of buckets is of version %d, want %d", now, known+2)
	}
	if n, err := sp.Store.Prune(t.Context(), []string{b.Name()}); n != 0 || err != nil {
		t.Errorf("pruned %d buckets with a task, error %v", n, err)
	}
}

// TestRecountGoesRound: however many sets there are, and ids in them, some calls see
// all of them, and no call sees many more than a thousand.
func TestRecountGoesRound(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	const nodes, each, rounds = 60, 20, 3000
	ids := make([]any, rounds)
	for i := range ids {
		ids[i] = i + 1
	}
	sp.Raw.SAdd(t.Context(), sp.Key("busy:queue:default"), ids...)
	for i := range nodes {
		name := fmt.Sprint("n", i)
		sp.Raw.SAdd(t.Context(), sp.Key("nodes"), name)
		sp.Raw.SAdd(t.Context(), sp.Key("busy:node:"+name), ids[:each]...)
		sp.Raw.HSet(t.Context(), sp.Key("used:"+name), "7", "gpu:1[0]")
	}
	const want = rounds + nodes*(each+1)
	mended, calls := 0, 0
	for ; mended < want && calls < 20; calls++ {
		n, err := sp.Store.Recount(t.Context())
		if err != nil || n > 1200 { // a scan may return some more than it is asked for
			t.Fatalf("%d, error %v", n, err)
		}
		mended += n
	}
	if mended != want || calls < 3 {
		t.Errorf("mended %d in %d calls, want %d", mended, calls, want)
	}
	if n, err := sp.Store.Recount(t.Context()); n != 0 || err != nil {
		t.Errorf("%d, error %v", n, err)
	}
}
