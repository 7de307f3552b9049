package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func epochCall(seen int64) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		st.Remember(conn.History{Epoch: 1, Seq: seen, ID: 7})
		return func() (any, error) { return st.OpenEpoch(t.Context(), false) }
	}
}

func flushCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return func() (any, error) { return st.Flush(t.Context()) }
}

func arriveCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return func() (any, error) { return arrive(t.Context(), st, "another") }
}

// A loss is also noticed when, after a restart, others have counted more than was
// lost before the client that knows of it calls again.
func TestLossIsCaughtUp(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.Open(t, storetest.Spec(), storetest.Spec(), storetest.Spec())
	life := sp.Raw.HGet(t.Context(), sp.Key("meta"), "lives").Val()
	sp.Raw.HSet(t.Context(), sp.Key("meta"), "seq", 1, "lives", life+" restarted.2:1")
	other := sp.Dial(t)
	if e, err := other.OpenEpoch(t.Context(), true); err != nil || !e.Confirmed {
		t.Fatalf("%+v, error %v; want the life of Redis confirmed", e, err)
	}
	for range 3 {
		if _, err := other.Open(t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: []task.Definition{storetest.Spec()}}); err != nil {
			t.Fatal(err)
		}
	}
	if seen, behind := other.History(); behind || seen.Seq != 5 || !strings.HasSuffix(seen.Life, ".3") {
		t.Fatalf("the other has seen %v, behind: %v", seen, behind)
	}
	if _, err := sp.Store.Task(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if _, _, err := sp.Store.Inspect(t.Context(), []int64{1}); !errors.Is(err, conn.ErrHistory) {
		t.Fatalf("error %v, want one of the history", err)
	}
	if sizes, err := other.Sizes(t.Context()); err != nil || !sizes.Behind {
		t.Errorf("sizes %+v, error %v; want those of a Redis that is behind", sizes, err)
	}
	if e, err := sp.Store.OpenEpoch(t.Context(), false); err != nil || e.Epoch != 2 || e.Lost != 2 {
		t.Errorf("epoch %+v, error %v", e, err)
	}
	if _, _, err := sp.Store.Inspect(t.Context(), []int64{1}); err != nil {
		t.Errorf("in the new epoch: %v", err)
	}
	if sizes, err := other.Sizes(t.Context()); err != nil || sizes.Behind {
		t.Errorf("in the new epoch: %+v, error %v", sizes, err)
	}
}

// A life that goes on from what was seen is no loss.
func TestRestartIsNoLoss(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.Open(t, storetest.Spec(), storetest.Spec())
	life := sp.Raw.HGet(t.Context(), sp.Key("meta"), "lives").Val()
	for _, lives := range []string{life + " next.2:2", life + " next.2:2 third.3:7", ""} {
		sp.Raw.HSet(t.Context(), sp.Key("meta"), "lives", lives)
		if _, _, err := sp.Store.Inspect(t.Context(), []int64{1}); err != nil {
			t.Errorf("lives %q: %v", lives, err)
		}
	}
}

// Sixteen lives are kept. A client that was last here in an older one may have seen what the first of those after it lost, although all
// that are kept began further on.
func TestLossBeforeTheLivesThatAreKept(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.Open(t, storetest.Spec(), storetest.Spec(), storetest.Spec())
	sp.Raw.HSet(t.Context(), sp.Key("meta"), "seq", 1) // it comes back without two of them
	other := sp.Dial(t)
	for n := range 18 {
		if _, err := arrive(t.Context(), other, fmt.Sprintf("life%d", n)); err != nil {
			t.Fatal(err)
		}
		if e, err := other.OpenEpoch(t.Context(), true); err != nil || !e.Confirmed {
			t.Fatalf("%+v, error %v; want the life of Redis confirmed", e, err)
		}
		open(t, other)
		open(t, other)
	}
	if lives := strings.Fields(sp.Raw.HGet(t.Context(), sp.Key("meta"), "lives").Val()); len(lives) != 16 || !strings.HasPrefix(lives[0], "life") {
		t.Fatalf("lives %q, want the newest 16", lives)
	}
	if _, _, err := sp.Store.Inspect(t.Context(), []int64{1}); !errors.Is(err, conn.ErrHistory) {
		t.Fatalf("error %v, want one of the history", err)
	}
	if e, err := other.OpenEpoch(t.Context(), false); err != nil || e.Epoch != 2 {
		t.Errorf("epoch %+v, error %v", e, err)
	}
}

// Redis that goes back in time is found out by a client that has seen more, and does
// nothing for it.
func TestHistoryIsMissed(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.Open(t, storetest.Spec())
	back := sp.Snapshot(t)
	sp.Open(t, storetest.Spec(), storetest.Spec())
	back()
	before := dump(t, sp)
	_, err := sp.Store.Open(t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: []task.Definition{storetest.Spec()}})
	var lost *conn.HistoryError
	if !errors.Is(err, conn.ErrHistory) || !errors.Is(err, task.ErrUnreachable) || !errors.As(err, &lost) {
		t.Fatalf("error %v, want one of the history, which is temporary", err)
	}
	if lost.Seen.Life = ""; lost.Seen != (conn.History{Epoch: 1, Seq: 3, ID: 3}) || lost.Redis.Seq != 1 {
		t.Errorf("seen %v, redis is at %v", lost.Seen, lost.Redis)
	}
	after := dump(t, sp)
	if after["meta"] = strings.Replace(after["meta"], ` "witness":"1 3 3 2"`, "", 1); !cmp.Equal(before, after) {
		t.Errorf("the refused call has changed something:\n%s", cmp.Diff(before, after))
	}
	other := sp.Dial(t)
	if _, err := other.Register(t.Context(), storetest.Registration("other")); err != nil {
		t.Fatalf("who has seen nothing is refused: %v", err)
	}
	if _, behind := other.History(); !behind {
		t.Error("who has seen nothing does not hear of the loss")
	}
}

// A new epoch: what was claimed and registered before is over, ids go on beyond
// those that were given out, and the rounds are opened again at no cost.
func TestNewEpoch(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	w := sp.Register(t, "w")
	sp.Open(t, storetest.Spec(), storetest.Spec())
	c := sp.ClaimUnder(t, w, 1)
	back := sp.Snapshot(t)
	sp.Open(t, storetest.Spec(), storetest.Spec())
	back()
	fresh := sp.Dial(t) // has seen nothing itself
	if _, err := sp.Store.Now(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := sp.Store.Renew(t.Context(), w, fleet.Heartbeat{}); !errors.Is(err, conn.ErrHistory) {
		t.Fatalf("renewed: %v", err)
	}
	e, err := fresh.OpenEpoch(t.Context(), false)
	if err != nil || e.Epoch != 2 || e.Lost != 2 || e.FromID != 2 || e.ToID != 4+1_000_000 {
		t.Fatalf("epoch %+v, error %v", e, err)
	}
	if again, err := sp.Store.OpenEpoch(t.Context(), false); err != nil || again.Epoch != 0 {
		t.Errorf("a second epoch: %+v, error %v", again, err)
	}
	if _, err := sp.Store.Renew(t.Context(), w, fleet.Heartbeat{}); !errors.Is(err, conn.ErrLeaseLost) {
		t.Errorf("the session of the former epoch renews: %v", err)
	}
	if _, err := sp.Store.Claim(t.Context(), tasks.ClaimRequest{
		Worker: w.Name, Incarnation: w.Incarnation, Request: "late", Max: 1, Candidates: storetest.Free(task.Bucket{}),
	}); !errors.Is(err, conn.ErrLeaseLost) {
		t.Errorf("the session of the former epoch claims: %v", err)
	}
	report := decideWorker(t, &c[0].Task, statemachine.Report)
	if out, err := sp.Store.Apply(t.Context(), tasks.Commit{Move: report, Writer: "w"}); err != nil || !errors.Is(out[0].Err, statemachine.ErrStale) {
		t.Errorf("the round of the former epoch is reported: %+v, error %v", out, err)
	}
	if task := sp.Task(t, c[0].Task.ID); !sp.Store.FromLostEpoch(&task.Task) {
		t.Error("the round is not void")
	}
	if ids := sp.Open(t, storetest.Spec()); ids[0] != 4+1_000_000+1 {
		t.Errorf("the next id is %d", ids[0])
	}
}

// The same process registers anew at once and gets back what it held before.
func TestRegisterInNewEpoch(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	w := sp.Register(t, "w")
	sp.Open(t, storetest.Spec())
	sp.ClaimUnder(t, w, 1)
	sp.Store.Remember(conn.History{Epoch: 1, Seq: 99})
	if _, err := sp.Store.OpenEpoch(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	another := storetest.Registration("w")
	another.Identity = "another"
	if _, err := sp.Store.Register(t.Context(), another); !errors.Is(err, conn.ErrNameTaken) {
		t.Errorf("another process takes the name: %v", err)
	}
	r, err := sp.Store.Register(t.Context(), storetest.Registration("w"))
	if err != nil || len(r.Former) != 1 || !sp.Store.FromLostEpoch(&r.Former[0].Task) {
		t.Fatalf("registered %+v, error %v; want the former round", r, err)
	}
	m, err := statemachine.Decide(&r.Former[0].Task, statemachine.Occurrence{
		Event: statemachine.Lose, Actor: statemachine.Worker, FromLostEpoch: true,
	}, r.Now)
	if err != nil || m.Count != statemachine.Releases {
		t.Fatalf("move %+v, error %v", m, err)
	}
	if out, err := sp.Store.Apply(t.Context(), tasks.Commit{Move: m, Writer: "w"}); err != nil || out[0].Err != nil {
		t.Fatalf("%+v, error %v", out, err)
	}
	if r, err = sp.Store.Register(t.Context(), storetest.Registration("w")); err != nil || r.Incarnation != 1_000_001 { // none of the former epoch can have it
		t.Errorf("registered %+v, error %v", r, err)
	}
}

// What was decided from changes that are lost is refused, though the task came to
// the same state and number of changes again.
func TestDecisionOfLostChanges(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	id := sp.Open(t, storetest.Spec())[0]
	back := sp.Snapshot(t)
	hold(t, sp, id)
	task := sp.Task(t, id)
	release, err := statemachine.Decide(&task.Task, statemachine.Occurrence{Event: statemachine.Unblock, Actor: statemachine.Manager}, noon)
	if err != nil {
		t.Fatal(err)
	}
	back()
	if _, err := sp.Store.OpenEpoch(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	hold(t, sp, id)
	out, err := sp.Store.Apply(t.Context(), tasks.Commit{Move: release, Writer: "m"})
	if err != nil || !errors.Is(out[0].Err, statemachine.ErrConflict) {
		t.Errorf("%+v, error %v; want a conflict", out, err)
	}
	if rev := sp.Task(t, id).Rev; rev != 1_000_000_000 {
		t.Errorf("the first revision of epoch 2 is %d", rev)
	}
}

func hold(t *testing.T, sp *storetest.Space, id int64) {
	t.Helper()
	must(t, sp, id, statemachine.Manager, statemachine.Hold)
}

// A list of buckets that is lost is a loss: its version would be given out again, and
// stand for another list.
func TestPruneIsLost(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.Open(t, storetest.Spec())
	sp.Raw.SAdd(t.Context(), sp.Key("buckets"), task.Bucket{Priority: 1}.Name())
	back := sp.Snapshot(t)
	empty, err := sp.Store.EmptyBuckets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := sp.Store.Prune(t.Context(), empty); err != nil || n == 0 {
		t.Fatalf("pruned %d of %v, %v", n, empty, err)
	}
	back()
	if _, err := sp.Store.Rules(t.Context(), ""); !errors.Is(err, conn.ErrHistory) {
		t.Errorf("error %v, want one of the history", err)
	}
}

// A flush is no loss: ids begin at 1 again, and nobody is refused.
func TestFlushIsNoLoss(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.Open(t, storetest.Spec(), storetest.Spec())
	other := sp.Dial(t)
	if _, err := other.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ids := sp.Open(t, storetest.Spec()); ids[0] != 1 {
		t.Errorf("the first id is %d", ids[0])
	}
	if h, behind := sp.Store.History(); h.Epoch != 2 || behind {
		t.Errorf("history %v, behind %v", h, behind)
	}
}

func TestParseHistory(t *testing.T) {
	t.Parallel()
	want := conn.History{Epoch: 2, Seq: 30, ID: 4}
	if got, err := conn.ParseHistory(want.String() + "\n"); err != nil || got != want {
		t.Errorf("%v, error %v", got, err)
	}
	want.Life = "abc.7"
	if got, err := conn.ParseHistory(want.String()); err != nil || got != want {
		t.Errorf("%v, error %v", got, err)
	}
	for _, text := range []string{"", "1 2", "1 2 x", "-1 2 3", "1 2 3 x y"} {
		if _, err := conn.ParseHistory(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

func decideWorker(t *testing.T, task *statemachine.Task, event statemachine.Event) statemachine.Move {
	t.Helper()
	m, err := statemachine.Decide(task, statemachine.Occurrence{
		Event: event, Actor: statemachine.Worker, Claim: task.Current.Claim, Round: task.Round,
	}, noon)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func epochOf(sp *storetest.Space) int64 {
	seen, _ := sp.Store.History()
	return seen.Epoch
}

// arrive notes that a life of Redis has begun, as each new connection does.
func arrive(ctx context.Context, s *store.Store, run string) (any, error) {
	return s.Run(ctx, "arrive", conn.Subject{}, run, 16, "")
}
