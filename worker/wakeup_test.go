package worker

import (
	"testing"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/task"
)

// A wake-up for a place that the claim after it has no use for goes on to others;
// one that was used, or is not decided yet, does not.
func TestWakeUpsArePassedOn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w, err := New(s.options(t, s.Store))
	if err != nil {
		t.Fatal(err)
	}
	place, bucket := store.WakeUp(s.Key("wake_queue:q")), store.WakeUp(s.Key("wake:q:::0"))
	inQ := []store.Claimed{{Bucket: task.Bucket{Queue: "q"}}}
	for name, c := range map[string]struct {
		woken        store.WakeUp
		reply        store.ClaimReply
		passed, kept bool
	}{
		"nothing due":    {woken: place, passed: true},
		"others due":     {woken: place, reply: store.ClaimReply{Full: []string{"other"}}, passed: true},
		"another's task": {woken: place, reply: store.ClaimReply{Tasks: []store.Claimed{{}}}, passed: true},
		"its task":       {woken: place, reply: store.ClaimReply{Tasks: inQ}},
		"full again":     {woken: place, reply: store.ClaimReply{Full: []string{"q"}}},
		"a bucket":       {woken: bucket},
		"stale":          {woken: place, reply: store.ClaimReply{Stale: true}, kept: true},
		"more":           {woken: place, reply: store.ClaimReply{More: true}, kept: true},
	} {
		s.Raw.Del(t.Context(), string(c.woken))
		w.woken = c.woken
		w.useWakeUp(t.Context(), &c.reply)
		if passed := s.Raw.LLen(t.Context(), string(c.woken)).Val() == 1; passed != c.passed || (w.woken != "") != c.kept {
			t.Errorf("%s: passed on %v, kept %q", name, passed, w.woken)
		}
	}
}
