package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A failure that another try would not mend ends the task, whatever its spec says.
func TestPermanent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start(t, handlers(map[string]Handler{
		"bad": func(context.Context, *Job) error { return fmt.Errorf("look: %w", Permanent(exit(1))) },
		"both": func(context.Context, *Job) error {
			return RetryAfter(Permanent(errors.New("no such account")), time.Hour)
		},
	}))
	for name, text := range map[string]string{"bad": "look: it gave up", "both": "no such account"} {
		id := s.open(t, forHandler(name), func(sp *task.Definition) { storetest.Set(sp, "max_fails", "5", "retry_exit_codes", "1") })
		checkFields(t, s.finish(t, id, sm.Failed), map[string]string{"round": "0", "fails": "1", "0:error": text, "0:retry": "inf"})
	}
	if err := Permanent(nil); err != nil {
		t.Error(err)
	}
}

// The handler says when its task is tried again, if the task is.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const pause = 300 * time.Millisecond
	s.start(t, handlers(map[string]Handler{
		"busy": func(_ context.Context, j *Job) error {
			if j.Task.Round == 0 {
				return fmt.Errorf("look: %w", RetryAfter(errors.New("the service is busy"), pause))
			}
			return nil
		},
	}))
	again := func(maxFails string) func(*task.Definition) {
		return func(sp *task.Definition) { storetest.Set(sp, "max_fails", maxFails, "retry_delay", "1h") }
	}
	checkFields(t, s.finish(t, s.open(t, forHandler("busy"), again("0")), sm.Failed), map[string]string{"round": "0", "0:retry": "*"})
	tried := s.finish(t, s.open(t, forHandler("busy"), again("1")), sm.Succeeded)
	checkFields(t, tried, map[string]string{"fails": "1", "0:error": "look: the service is busy", "1:retry": "-"})
	rested(t, tried.Fields, pause)
	if err := RetryAfter(nil, pause); err != nil {
		t.Error(err)
	}
	for d, want := range map[time.Duration]sm.Time{0: 3, -time.Hour: 3, time.Second: 5 + sm.Time(sm.Second)} {
		if got := nextTry(RetryAfter(errors.ErrUnsupported, d), 3, 5); got != want {
			t.Errorf("after %s: %d, want %d", d, got, want)
		}
	}
	if got := nextTry(RetryAfter(errors.ErrUnsupported, 1<<63-1), 3, 5); got == sm.Never {
		t.Error("a long time is for ever")
	}
}

// rested expects that the second round began no sooner after the first one.
func rested(t *testing.T, fields map[string]string, least time.Duration) {
	t.Helper()
	first, err := sm.ParseTime(fields["0:running"])
	second, err2 := sm.ParseTime(fields["1:running"])
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if d := second.Sub(first); d < sm.Duration(least.Microseconds()) || d > 60*sm.Second {
		t.Errorf("the second round began %s after the first, want at least %s", d.Text(), least)
	}
}

// A handler hands its task back, which costs the task nothing.
func TestHandBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const pause = 300 * time.Millisecond
	s.start(t, handlers(map[string]Handler{
		"later": func(_ context.Context, j *Job) error {
			if j.Task.Round == 0 {
				fmt.Fprintln(j.Stderr(), "not recorded")
				return fmt.Errorf("no licence: %w", HandBack(pause))
			}
			return nil
		},
		"soon": func(_ context.Context, j *Job) error {
			if j.Task.Round < 3 {
				return HandBack(0)
			}
			return nil
		},
	}))
	later := s.finish(t, s.open(t, forHandler("later")), sm.Succeeded)
	checkFields(t, later, map[string]string{"fails": "0", "releases": "1", "0:error": "-", "0:end": "hand_back", "0:class": "-"})
	checkContains(t, "log", later.Fields["log"], "handing back task 1: no licence: its handler hands it back for 300ms")
	rested(t, later.Fields, pause)
	soon := s.finish(t, s.open(t, forHandler("soon")), sm.Succeeded)
	checkFields(t, soon, map[string]string{"round": "3", "fails": "0", "releases": "3"})
}

// A task that was cancelled is not handed back, nor is one whose time is over.
func TestHandBackTooLate(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	begun := make(chan struct{}, 1)
	s.start(t, handlers(map[string]Handler{"h": func(ctx context.Context, _ *Job) error {
		begun <- struct{}{}
		<-ctx.Done()
		return fmt.Errorf("%w: %w", HandBack(0), ctx.Err())
	}}))
	id := s.open(t, forHandler("h"))
	wait.Receive(t, patience, begun, "the handler does not begin")
	s.askStop(t, id)
	checkFields(t, s.await(t, id, sm.Terminated), map[string]string{"state": "terminated", "releases": "-"})
	late := s.await(t, s.open(t, forHandler("h"), limits("1", "0")), sm.TimedOut)
	checkFields(t, late, map[string]string{"state": "timed_out", "releases": "-"})
}

// A handler learns that its worker drains, keeps what it has, and hands its task back.
func TestDraining(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	begun := make(chan struct{}, 1)
	h := func(ctx context.Context, j *Job) error {
		begun <- struct{}{}
		select {
		case <-j.Draining():
			return HandBack(time.Hour)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	w := s.start(t, handlers(map[string]Handler{"h": h}), func(o *options) { o.DrainTimeout = 2 * patience })
	first := s.open(t, forHandler("h"))
	wait.Receive(t, patience, begun, "the handler does not begin")
	s.command(t, task.CommandDrain)
	checkFields(t, s.await(t, first, sm.Open), map[string]string{"releases": "1", "0:end": "hand_back", "not_before": "*"})
	second := s.open(t, forHandler("h"))
	s.command(t, task.NoCommand)
	wait.Receive(t, patience, begun, "the handler does not begin, undrained")
	wait.Never(t, 100*time.Millisecond, func() bool { return s.Task(t, second).State != sm.Running }, "it drains again")
	w.cancel()
	checkFields(t, s.await(t, second, sm.Open), map[string]string{"releases": "1", "not_before": "*"})
	wait.Receive(t, patience, w.done, "the worker waits for nothing")
}
