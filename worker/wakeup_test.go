package worker

import (
	"testing"

	"github.com/tdf-go/tdf/internal/store"
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
	place := store.WakeUp(s.Key("wake_queue:q"))
	for name, c := range map[string]struct {
		reply        store.ClaimReply
		passed, kept bool
	}{
		"unused":         {reply: store.ClaimReply{Unused: true}, passed: true},
		"another's task": {reply: store.ClaimReply{Unused: true, Tasks: []store.Claimed{{}}}, passed: true},
		"used":           {reply: store.ClaimReply{Tasks: []store.Claimed{{}}}},
		"nothing due":    {},
		"stale":          {reply: store.ClaimReply{Stale: true}, kept: true},
		"new buckets":    {reply: store.ClaimReply{NewBuckets: true, Unused: true}, kept: true},
		"more":           {reply: store.ClaimReply{More: true, Unused: true}, kept: true},
	} {
		s.Raw.Del(t.Context(), string(place))
		w.woken = place
		w.useWakeUp(t.Context(), &c.reply)
		if passed := s.Raw.LLen(t.Context(), string(place)).Val() == 1; passed != c.passed || (w.woken != "") != c.kept {
			t.Errorf("%s: passed on %v, kept %q", name, passed, w.woken)
		}
	}
}
