package store_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// ends is what a worker is about to say: of the rounds it runs, and that it wants more.
type ends struct {
	commits []tasks.Commit
	request tasks.ClaimRequest
}

// runningPlain has a worker that reports one of its rounds and settles the other, without a session.
func runningPlain(t *testing.T, sp *storetest.Space) ends {
	t.Helper()
	opened(5)(t, sp)
	req := tasks.ClaimRequest{Worker: "w", Request: "before", Candidates: storetest.Free(task.Bucket{}), Max: 2, Ahead: 1}
	held, err := sp.Store.Claim(t.Context(), req)
	if err != nil || len(held.Tasks) != 2 {
		t.Fatalf("claimed %+v, error %v", held, err)
	}
	req.Request = "c"
	return ends{[]tasks.Commit{reportOf(t, &held.Tasks[0]), success(t, &held.Tasks[1], held.Now)}, req}
}

// runningUnderLimits has one that settles one of two rounds and hands the other back, in a queue with limits and resources.
func runningUnderLimits(t *testing.T, sp *storetest.Space) ends {
	t.Helper()
	queued("threads", "2")(t, sp)
	sp.Register(t, "w")
	req := byRules(t, sp.Store, "w", "n")
	req.Incarnation, req.Request, req.Max = session(t, sp.Store).Incarnation, "before", 2
	held, err := sp.Store.Claim(t.Context(), req)
	if err != nil || len(held.Tasks) != 2 {
		t.Fatalf("claimed %+v, error %v", held, err)
	}
	first, second := &held.Tasks[0], &held.Tasks[1]
	back, err := statemachine.Decide(&second.Task, statemachine.Occurrence{
		Event: statemachine.HandBack, Actor: statemachine.Worker, Claim: second.Task.Current.Claim, Round: second.Task.Round,
	}, held.Now)
	if err != nil {
		t.Fatal(err)
	}
	req.Request, req.Max = "c", 9
	return ends{[]tasks.Commit{success(t, first, held.Now), {Move: back, Writer: "w", Bucket: second.Bucket}}, req}
}

// A turn does what its moves and its claim would do alone, also with any one key of another type: then the moves may fail, and
// nothing is claimed, or the claim may fail alone.
func TestLongTurnOfSpoiledKeys(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*testing.T, *storetest.Space) ends{
		"plain": runningPlain, "under limits": runningUnderLimits,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			apart, one := storetest.New(t), storetest.New(t)
			begin := func(sp *storetest.Space) ends {
				l := loss{}
				l.begin(t, sp)
				return prepare(t, sp)
			}
			e := begin(apart)
			moved, claimed := twoCalls(t, apart, &e)
			if moved != nil || claimed != nil {
				t.Fatalf("with sound keys: errors %v and %v", moved, claimed)
			}
			failed := 0
			for _, key := range append(spoilable(dump(t, apart)), "") {
				wantMoved, wantClaimed := spoiledEnd(t, apart, begin(apart), key, twoCalls)
				gotMoved, gotClaimed := spoiledEnd(t, one, begin(one), key, oneCall)
				if wantMoved != gotMoved || wantClaimed != gotClaimed {
					t.Errorf("with %q spoiled: errors %q and %q in one call, %q and %q in two", key, gotMoved, gotClaimed, wantMoved, wantClaimed)
				}
				if gotClaimed != "none" {
					failed++
				}
				if diff := cmp.Diff(dump(t, apart), dump(t, one)); diff != "" {
					t.Errorf("with %q spoiled the namespaces differ (- in two calls, + in one):\n%s", key, diff)
				}
			}
			if failed == 0 {
				t.Error("no spoiled key made a difference")
			}
		})
	}
}

// spoiledEnd makes the calls with a key spoiled, unless "", and says of which kind their errors are.
func spoiledEnd(t *testing.T, sp *storetest.Space, e ends, key string,
	calls func(*testing.T, *storetest.Space, *ends) (moved, claimed error),
) (moved, claimed string) {
	t.Helper()
	if key != "" {
		spoil(t, sp, key)
	}
	m, c := calls(t, sp, &e)
	return kindOfError(m), kindOfError(c)
}

func kindOfError(err error) string {
	for kind, is := range map[string]error{"damaged": task.ErrDamaged, "unreachable": task.ErrUnreachable, "lease lost": conn.ErrLeaseLost} {
		if errors.Is(err, is) {
			return kind
		}
	}
	if err != nil {
		return "other"
	}
	return "none"
}

// twoCalls moves, and claims where that has not failed as a whole.
func twoCalls(t *testing.T, sp *storetest.Space, e *ends) (moved, claimed error) {
	t.Helper()
	out, err := sp.Store.Apply(t.Context(), e.commits...)
	if err != nil {
		return err, err
	}
	_, claimed = sp.Store.Claim(t.Context(), e.request)
	return refusals(out), claimed
}

func oneCall(t *testing.T, sp *storetest.Space, e *ends) (moved, claimed error) {
	t.Helper()
	turn := sp.Store.Turn(t.Context(), e.commits, &e.request)
	if turn.Moved != nil {
		return turn.Moved, turn.Claimed
	}
	return refusals(turn.Outcomes), turn.Claimed
}

func refusals(outcomes []tasks.Outcome) error {
	var all error
	for _, o := range outcomes {
		all = errors.Join(all, o.Err)
	}
	return all
}
