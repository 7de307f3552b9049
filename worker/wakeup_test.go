package worker

import (
	"testing"

	"github.com/tdf-go/tdf/internal/store/tasks"
)

// A wake-up for a place that the claim after it has no use for goes on to others;
// one that was used, or is not decided yet, does not.
func TestWakeUpsArePassedOn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w, err := assemble(s.options(t, s.Store))
	if err != nil {
		t.Fatal(err)
	}
	place := tasks.WakeUp(s.Key("wake_queue:q"))
	for name, c := range map[string]struct {
		reply        tasks.ClaimReply
		passed, kept bool
	}{
		"unused":         {reply: tasks.ClaimReply{Unused: true}, passed: true},
		"another's task": {reply: tasks.ClaimReply{Unused: true, Tasks: []tasks.Claimed{{}}}, passed: true},
		"used":           {reply: tasks.ClaimReply{Tasks: []tasks.Claimed{{}}}},
		"nothing due":    {},
		"stale":          {reply: tasks.ClaimReply{Stale: true}, kept: true},
		"new buckets":    {reply: tasks.ClaimReply{NewBuckets: true, Unused: true}, kept: true},
		"more":           {reply: tasks.ClaimReply{More: true, Unused: true}, kept: true},
	} {
		s.Raw.Del(t.Context(), string(place))
		w.woken = place
		w.useWakeUp(t.Context(), &c.reply)
		if passed := s.Raw.LLen(t.Context(), string(place)).Val() == 1; passed != c.passed || (w.woken != "") != c.kept {
			t.Errorf("%s: passed on %v, kept %q", name, passed, w.woken)
		}
	}
}
