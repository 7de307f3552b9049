package server

import (
	"testing"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// claims lets a host claim, and compares what it got.
func claims(t *testing.T, h *host, want ...int64) statemachine.Time {
	t.Helper()
	r := h.claim(t)
	got := make([]int64, len(r.Tasks))
	for i := range r.Tasks {
		got[i] = r.Tasks[i].Task.ID
	}
	if len(got) != len(want) {
		t.Fatalf("%s claims %v, want %v", h.node, got, want)
	}
	for i, id := range want {
		if got[i] != id {
			t.Errorf("%s claims %v, want %v", h.node, got, want)
		}
	}
	return r.Next
}

// twoHosts have a slot each, and tasks that may fail.
func twoHosts(t *testing.T, n int) (*farm, *host, *host, *Server) {
	t.Helper()
	sp := storetest.New(t)
	f := newFleet(t, sp, config.QuarantineOff, 2, 1)
	openMany(t, sp, n, func(s *task.Definition) { storetest.Set(s, "max_fails", "5", "retry_delay", "0") })
	s, _ := judging(t, sp, config.QuarantineOff)
	return f, f.hosts[0], f.hosts[1], s
}

// A task that has failed on a node is left to another that is alive and fits, for half a minute; the node goes on with what
// is behind it, which is not touched by that.
func TestRetryElsewhere(t *testing.T) {
	t.Parallel()
	f, a, b, s := twoHosts(t, 2)
	claims(t, a, 1)
	f.advance(t, 1)
	a.end(t, bad)
	pass(t, s)
	checkFields(t, f.sp, 1, map[string]string{"state": "open", "round": "1", "avoid": at(f.now+30).Text() + " n0"})
	claims(t, a, 2)
	a.end(t, good)
	if next := claims(t, a); next != at(f.now+30) {
		t.Errorf("the next start is %v, want when the node takes it again, %v", next, at(f.now+30))
	}
	checkFields(t, f.sp, 2, map[string]string{"avoid": "-"})
	claims(t, b, 1)
	b.end(t, bad) // on the last node that is left it is run after all, if that one is still there
	pass(t, s)
	checkFields(t, f.sp, 1, map[string]string{"avoid": at(f.now+30).Text() + " n1"})
	claims(t, b)
	claims(t, a, 1)
}

// The wait for another node is bounded.
func TestRetryElsewhereIsBounded(t *testing.T) {
	t.Parallel()
	f, a, _, s := twoHosts(t, 1)
	claims(t, a, 1)
	a.end(t, bad)
	pass(t, s)
	f.advance(t, 29)
	claims(t, a)
	f.advance(t, 1)
	claims(t, a, 1)
}

// What no other worker may take goes on where it was, at once.
func TestRetryHere(t *testing.T) {
	t.Parallel()
	set := func(field, value string) func(*testing.T, *storetest.Space) {
		return func(t *testing.T, sp *storetest.Space) {
			t.Helper()
			if err := sp.Raw.HSet(t.Context(), sp.Key("worker:w-n1"), field, value).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, spoil := range map[string]func(*testing.T, *storetest.Space){
		"it is the only node": set("node", "n0"),
		"it drains":           set("state", "draining"),
		"it is told to drain": set("order", "drain"),
		"it claims nothing":   set("reason", "its disk is full"),
		"it does not fit": func(t *testing.T, sp *storetest.Space) {
			t.Helper()
			_, err := sp.Store.SetQueue(t.Context(), task.DefaultQueue, func(q *task.QueueSpec) error { q.Ignore = []string{"n1"}; return nil })
			if err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, a, _, s := twoHosts(t, 1)
			spoil(t, f.sp)
			claims(t, a, 1)
			a.end(t, bad)
			pass(t, s)
			checkFields(t, f.sp, 1, map[string]string{"state": "open", "avoid": "-"})
			claims(t, a, 1)
		})
	}
}

// A node that has failed very many passes over some of them only: more would hide what is behind them, and nobody else has come for them.
func TestRetryElsewhereOfMany(t *testing.T) {
	t.Parallel()
	const many = 20
	f, a, b, s := twoHosts(t, many)
	a.slots, b.slots = many, many
	all := make([]int64, many)
	for i := range all {
		all[i] = int64(i + 1)
	}
	claims(t, a, all...)
	for range many {
		a.end(t, bad)
	}
	pass(t, s)
	a.slots = 1
	claims(t, a, 17)
	claims(t, b, append(all[:16:16], all[17:]...)...)
	checkFields(t, f.sp, 20, map[string]string{"1:node": "n1"})
}

// A task whose version only some workers keep is passed over by the others, however many such there are; what nobody keeps by none.
func TestLeftToKeepers(t *testing.T) {
	t.Parallel()
	f, a, b, _ := twoHosts(t, 30)
	leave := func(id int64, to string) {
		t.Helper()
		if err := f.sp.Raw.HSet(t.Context(), f.sp.Key("task:"+conn.IDText(id)), "avoid", at(f.now+60).Text()+" "+to).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for id := range int64(28) {
		leave(id+1, "/other/w-n1/")
	}
	leave(29, "/")
	a.slots, b.slots = 30, 30
	if next := claims(t, a, 29, 30); next != at(f.now+60) {
		t.Errorf("the next start is %v, want %v, when their time is over", next, at(f.now+60))
	}
	b.slots = 1
	claims(t, b, 1)
	f.advance(t, 60)
	a.slots = 3
	claims(t, a, 2)
}

// Where very many are left to others, some are taken all the same: claims that only pass over would find nothing behind them, and be
// repeated at once.
func TestManyLeftToKeepers(t *testing.T) {
	t.Parallel()
	const many = 150
	f, a, _, _ := twoHosts(t, many)
	for id := range int64(many) {
		f.sp.Raw.HSet(t.Context(), f.sp.Key("task:"+conn.IDText(id+1)), "avoid", at(f.now+60).Text()+" /other/")
	}
	claims(t, a, 101)
	a.slots = many
	if r := a.claim(t); len(r.Tasks) != many-101 || r.More {
		t.Errorf("%d are claimed (more: %v)", len(r.Tasks), r.More)
	}
}

// What is passed over stays where it is, whatever lies between and leaves the bucket, in either order.
func TestRetryElsewhereAmongOthers(t *testing.T) {
	t.Parallel()
	for _, order := range []task.Order{task.Fifo, task.Lifo} {
		t.Run(string(order), func(t *testing.T) {
			t.Parallel()
			f, a, b, s := twoHosts(t, 40)
			_, err := f.sp.Store.SetQueue(t.Context(), task.DefaultQueue, func(q *task.QueueSpec) error { q.Order = order; return nil })
			if err != nil {
				t.Fatal(err)
			}
			a.slots, b.slots = 20, 40
			a.claim(t)
			for i := range 20 {
				if i%2 == 0 {
					a.end(t, bad)
				} else {
					a.back(t)
				}
			}
			pass(t, s)
			var failed, theirs []int64
			for id := range int64(40) {
				switch fields := f.sp.Task(t, id+1).Fields; {
				case fields["avoid"] != "":
					failed = append(failed, id+1)
				case fields["round"] == "1" && len(theirs) < 5: // a client of the original claims it
					theirs = append(theirs, id+1)
					f.sp.Raw.ZRem(t.Context(), f.sp.Key("open"), id+1)
				}
			}
			a.slots = 40
			if r := a.claim(t); len(failed) != 10 || len(theirs) != 5 || len(r.Tasks) != 25 || r.More {
				t.Errorf("%d failed, %d are gone, n0 claims %d (more: %v)", len(failed), len(theirs), len(r.Tasks), r.More)
			}
			if r := b.claim(t); len(r.Tasks) != 10 {
				t.Errorf("n1 claims %d, want what has failed on n0", len(r.Tasks))
			}
			if n := f.sp.Raw.ZCard(t.Context(), f.sp.Key("ready:"+task.DefaultBucketName)).Val(); n != 0 {
				t.Errorf("%d are left in the bucket", n)
			}
		})
	}
}
