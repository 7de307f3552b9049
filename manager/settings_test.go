package manager

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// What a task's opener leaves open comes from [task_defaults], each value on its own.
func TestTaskDefaults(t *testing.T) {
	t.Parallel()
	for key, c := range map[string]struct{ text, want string }{
		"start_after": {"12345", "12345"}, "end_before": {"5000000000", "5000000000"}, "timeout": {"7", "7"},
		"max_fails": {"2", "2"}, "max_timeouts": {"3", "3"}, "max_losses": {"9", "9"}, "max_faults": {"8", "8"},
		"fail_on": {"exit", "exit"}, "charge": {"program", "program"}, "workdir": {"shared", "shared"}, "on_cut": {"fail", "fail"},
		"retry_delay": {"90", "90"}, "retry_backoff": {"2", "2"}, "retry_max_delay": {"3600", "3600"}, "retry_jitter": {"0.5", "0.5"},
		"retry_exit_codes": {"75,1", "1,75"}, "fatal_exit_codes": {"2", "2"},
		"queue": {"q", "q"}, "env": {"py", "py"}, "labels": {"zone=eu", "zone=eu"}, "resources": {"gpu=1", "gpu=1"}, "priority": {"-7", "-7"},
	} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			ns := redistest.Namespace(t)
			m := newManager(t, ns, withSettings("task_defaults."+key+"="+c.text))
			if _, err := m.AddQueue(t.Context(), task.QueueSpec{Name: "q"}, ChangeOptions{}); err != nil {
				t.Fatal(err)
			}
			id := mustOpen(t, m, 1, spec())[0]
			if got := redistest.Shared(t).Do(t, "HGET", ns+":task:"+fmt.Sprint(id), key); fmt.Sprint(got) != c.want {
				t.Errorf("%s = %v, want %s", key, got, c.want)
			}
		})
	}
}

// A task has its key for as long as [manager] key_ttl says.
func TestKeyIsRemembered(t *testing.T) {
	t.Parallel()
	ns, srv := redistest.Namespace(t), redistest.Shared(t)
	m := newManager(t, ns, withSettings("manager.key_ttl=90"))
	s := spec()
	s.Key = "k"
	id := mustOpen(t, m, 1, s)[0]
	fields, _ := srv.Do(t, "HMGET", fmt.Sprint(ns, ":task:", id), "key_expires", "0:open").([]any)
	expires, err := strconv.ParseInt(fmt.Sprint(fields[0]), 10, 64)
	opened, err2 := statemachine.ParseTime(fmt.Sprint(fields[1]))
	if left := statemachine.Time(expires*1e6) - opened; err != nil || err2 != nil || left < 89e6 || left > 90e6 {
		t.Errorf("it has the key for %d µs, want 90 s (%v, %v)", left, err, err2)
	}
}

// A round lasts as long as [manager] round_duration says; the timer is the test's.
func TestRoundDuration(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t), withSettings("manager.round_duration=0.7"))
	asked := make(chan time.Duration, 1000)
	m.after = func(d time.Duration) <-chan time.Time {
		asked <- d
		return time.After(d)
	}
	background(t, m, Handlers{Unhandled: Archive})
	if d := <-asked; d != 700*time.Millisecond {
		t.Errorf("the first round lasts %v, want 0.7s", d)
	}
}

// The pauses of a handler that fails, and where they stop growing, are those of [manager].
func TestHandlerBackoff(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t), withSettings("manager.handler_backoff=40", "manager.handler_backoff_max=100"))
	for i, want := range []float64{40, 80, 100, 100} {
		if _, pause := m.retries.fail(7, errors.New("x"), time.Unix(1000, 0), i); pause.Seconds() != want {
			t.Errorf("attempt %d: pause %v, want %v s", i+1, pause, want)
		}
	}
}

// A manager that handles tasks may be silent for as long as [manager] handling_lease says.
func TestHandlingLease(t *testing.T) {
	t.Parallel()
	ns, srv := redistest.Namespace(t), redistest.Shared(t)
	m := newManager(t, ns, withSettings("manager.handling_lease=100"))
	before := redisTime(t, srv)
	h, err := m.beginHandling(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.end(t.Context())
	text := fmt.Sprint(srv.Do(t, "HGET", ns+":handling", "@"+h.Instance))
	if till, err := strconv.ParseFloat(text, 64); err != nil || till < before+100 || till > redisTime(t, srv)+100 {
		t.Errorf("the lease ends at %s, want 100 s after %f", text, before)
	}
}

// redisTime is the time of Redis, in seconds.
func redisTime(t *testing.T, srv *redistest.Server) float64 {
	t.Helper()
	var parts [2]float64
	for i, text := range srv.Do(t, "TIME").([]any) {
		parts[i], _ = strconv.ParseFloat(fmt.Sprint(text), 64)
	}
	return parts[0] + parts[1]/1e6
}
