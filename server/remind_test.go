package server

import (
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A wake-up that is lost together with the worker that got it is given again, also
// that of a task which starts later.
func TestLostWakeUp(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	start(t, sp)
	now, err := sp.Store.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]string{"now": "0", "later": now.Add(2 * statemachine.Second).Text()} {
		bucket := task.Bucket{Env: name}
		ids := sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.SetBucket(s, bucket); storetest.Set(s, "start_after", from) }))
		list := sp.Key("wake:" + bucket.Name())
		for n := range 3 { // each waiter that is woken is killed
			if n == 0 && sp.Raw.Del(t.Context(), list).Val() != 1 {
				t.Errorf("%s: opening wakes nobody", name)
			}
			wait.Eventually(t, time.Minute, func() bool { return sp.Raw.Del(t.Context(), list).Val() == 1 },
				"%s: nobody else is woken for task %d", name, ids[0])
		}
		if at, err := sp.Store.Now(t.Context()); err != nil || at < sp.Task(t, ids[0]).StartAfter {
			t.Errorf("%s: woken at %s, %v, before it starts", name, at.Text(), err)
		}
	}
}
