package worker

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// P13: the table of zk-plan, in milliseconds. What a row leaves open has its default.
func TestIdleBackoff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		initial, longest int
		increase         float64
		waits, want      int
	}{
		{initial: 1234, want: 1234}, {want: 100}, {increase: 2, initial: 1, waits: 8, want: 256}, {waits: 1, want: 150},
		{longest: 300, waits: 20, want: 300}, {waits: 20, want: 10000}, {longest: 1000, waits: 100, want: 1000},
		{waits: math.MaxInt - 1, want: 10000}, {initial: 500, longest: 300, want: 300},
	} {
		o := complete(Options{}, config.Defaults().Worker)
		if c.initial > 0 {
			o.SleepInitial = ms(c.initial)
		}
		if c.increase > 0 {
			o.SleepIncrease = c.increase
		}
		if c.longest > 0 {
			o.SleepMax = ms(c.longest)
		}
		if got := o.patience(c.waits); got != ms(c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
	o := complete(Options{}, config.Defaults().Worker)
	for n, want := range []int{100, 150, 225, 337, 506, 759, 1139, 1708, 2562, 3844, 5766, 8649, 10000, 10000} {
		if got := o.patience(n); got != ms(want) {
			t.Errorf("wait %d: %v, want %d ms", n, got, want)
		}
	}
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// The wait of an idle worker ends with whatever comes first: its patience, the fixed bound of
// the TDF document, the start of the next task, or, where limits keep tasks from it, three seconds.
func TestIdleTime(t *testing.T) {
	t.Parallel()
	o := complete(Options{}, config.Defaults().Worker)
	o.Name = "w"
	for name, c := range map[string]struct {
		waits       int
		bound       time.Duration
		reply       tasks.ClaimReply
		quarantined string
		want        time.Duration
	}{
		"first":           {want: 100 * time.Millisecond},
		"later":           {waits: 50, want: 10 * time.Second},
		"bound":           {waits: 50, bound: 2 * time.Second, want: 2 * time.Second},
		"loose bound":     {bound: 2 * time.Second, want: 100 * time.Millisecond},
		"queue full":      {waits: 50, reply: tasks.ClaimReply{Full: []string{"q"}}, want: 3 * time.Second},
		"node full":       {waits: 50, reply: tasks.ClaimReply{NodeFull: true}, want: 3 * time.Second},
		"quarantined":     {waits: 50, quarantined: "why", want: 3 * time.Second},
		"next soon":       {waits: 50, reply: tasks.ClaimReply{Next: 1e15 + 300e3}, want: 300 * time.Millisecond},
		"next after that": {waits: 50, reply: tasks.ClaimReply{Next: 1e15 + 100e6}, want: 10 * time.Second},
		"next now":        {waits: 50, reply: tasks.ClaimReply{Next: 1e15}, want: time.Millisecond},
		"next long ago":   {waits: 50, reply: tasks.ClaimReply{Next: 1}, want: time.Millisecond},
	} {
		o.SleepAfterNoProcessClaimed = c.bound
		if c.reply.Next == 0 {
			c.reply.Next = sm.Never
		}
		c.reply.Now = 1e15
		w := &Worker{opts: o, waits: c.waits, rules: &rulebook{}}
		w.rules.view.Store(&view{quarantined: c.quarantined})
		if got := w.idleTime(&c.reply); got != c.want {
			t.Errorf("%s: waits %v, want %v", name, got, c.want)
		}
	}
}

// A49: the bound of the TDF document counts where it is shorter than what a wait has
// grown to, and no longer one is asked of Redis.
func TestWaitsAreBounded(t *testing.T) {
	t.Parallel()
	s := siteOn(t, storetest.On(t, redistest.Start(t)))
	waits := s.Server.Blocks(t)
	s.start(t, setting(t, "sleep_initial=0.01", "sleep_after_no_process_claimed=0.02"))
	for i, want := range []string{"0.01", "0.015", "0.02", "0.02", "0.02"} {
		if got := wait.Receive(t, time.Minute, waits, "it does not wait"); got != want {
			t.Errorf("wait %d: %s s, want %s s", i, got, want)
		}
	}
}

// A worker that finds nothing waits longer each time, and begins anew after a task.
func TestWaitsGrowUntilThereIsATask(t *testing.T) {
	t.Parallel()
	s := siteOn(t, storetest.On(t, redistest.Start(t)))
	waits := s.Server.Blocks(t)
	s.start(t, setting(t, "sleep_initial=0.01", "sleep_increase=2", "sleep_max=0.05"),
		handlers(map[string]Handler{"p": func(context.Context, *Job) error { return nil }}))
	growing := []string{"0.01", "0.02", "0.04", "0.05", "0.05"}
	next := func() string { return wait.Receive(t, time.Minute, waits, "it does not wait") }
	var got []string
	for range growing {
		got = append(got, next())
	}
	if !slices.Equal(got, growing) {
		t.Fatalf("waits %v, want %v", got, growing)
	}
	id := s.open(t, func(spec *task.Definition) { storetest.Set(spec, "program", "p", "class", "p") })
	s.await(t, id, sm.Executed)
	for at := next(); at != growing[0]; at = next() {
		if at != "0.05" {
			t.Fatalf("waits %s s, want 0.05 s until it has a task, and then %s s", at, growing[0])
		}
	}
}
