package manager

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// newFields are the hash fields that the original does not have.
func newFields(t *task.Task) map[string]string {
	fields := map[string]string{}
	for _, name := range []string{
		"queue", "env", "labels", "resources", "priority", "max_faults", "charge", "on_cut", "workdir", "retry_delay", "retry_backoff",
		"retry_max_delay", "retry_jitter", "retry_exit_codes", "fatal_exit_codes", "hold", "key", "max_losses", "fail_on",
	} {
		if text, ok := t.Fields[name]; ok {
			fields[name] = text
		}
	}
	return fields
}

// Every value of a spec comes into the record, and reads back.
func TestSubmitWithEverything(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	if _, err := m.AddQueue(t.Context(), task.QueueSpec{Name: "render"}, ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	id, err := idOf(m.Submit(t.Context(), task.Spec{
		Program: "p", Queue: "render", Env: "py", Labels: []string{"zone=eu", "gpu=a100"}, Resources: map[string]int{"mem": 2048, "gpu": 1},
		Priority: new(-7), MaxFaults: task.AtMost(2), Retry: task.Retry{
			Delay: 90 * time.Second, MaxDelay: time.Hour, Backoff: 2, Jitter: 0.5, ExitCodes: []int{75, 1}, FatalExitCodes: []int{2},
		},
		Charge: task.ChargeProgram, Workdir: task.WorkdirShared, OnCut: task.OnCutFail, Hold: "wait", Key: "k1",
	}))
	if err != nil {
		t.Fatal(err)
	}
	task := mustTask(t, m, id)
	want := map[string]string{
		"queue": "render", "env": "py", "labels": "gpu=a100,zone=eu", "resources": "gpu=1,mem=2048", "priority": "-7",
		"max_faults": "2", "charge": "program", "workdir": "shared", "on_cut": "fail", "retry_delay": "90", "retry_backoff": "2", "retry_max_delay": "3600",
		"retry_jitter": "0.5", "retry_exit_codes": "1,75", "fatal_exit_codes": "2", "hold": "wait", "key": "k1",
	}
	if diff := cmp.Diff(want, newFields(task)); diff != "" {
		t.Errorf("hash (-want +got):\n%s", diff)
	}
	if task.Err != nil || task.State != statemachine.Blocked || task.Queue != "render" || task.Env != "py" || *task.Priority != -7 ||
		!slices.Equal(task.Labels, []string{"gpu=a100", "zone=eu"}) || !cmp.Equal(task.Resources, map[string]int{"mem": 2048, "gpu": 1}) ||
		task.Hold != "wait" || task.Key != "k1" || task.MaxFaults.N() != 2 || task.Charge != "program" ||
		task.Retry.Delay != 90*time.Second || task.DisbatchStatus() != -4 {
		t.Errorf("read back: %+v", task)
	}
}

// The spec comes before the queue, the queue before the configuration.
func TestDefaultsOfQueueAndConfiguration(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t), withSettings(
		"task_defaults.queue=q", "task_defaults.env=conf", "task_defaults.charge=program", "task_defaults.retry_delay=5",
		"task_defaults.priority=3", "task_defaults.fail_on=exit", "task_defaults.labels=a=1"))
	_, err := m.AddQueue(t.Context(), task.QueueSpec{Name: "q", Defaults: task.Defaults{
		"env": "queue", "max_fails": "4", "fail_on": "any", "resources": "gpu=1", "timeout": "5m",
	}}, ChangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	plain, own := task.Spec{Program: "p"}, task.Spec{
		Program: "p", Env: "own", Retry: task.Retry{Limit: task.AtMost(0), Delay: -1}, FailOn: task.FailOnStderr, Priority: new(0), Labels: []string{},
		Resources: map[string]int{}, Charge: task.ChargeAll, Timeout: -1,
	}
	other := task.Spec{Program: "p", Queue: task.DefaultQueue}
	for i, want := range []map[string]string{
		{"queue": "q", "env": "queue", "charge": "program", "retry_delay": "5", "priority": "3", "labels": "a=1", "resources": "gpu=1"},
		{"queue": "q", "env": "own", "fail_on": "stderr"},
		{"env": "conf", "charge": "program", "retry_delay": "5", "priority": "3", "labels": "a=1", "fail_on": "exit"},
	} {
		id, err := idOf(m.Submit(t.Context(), []task.Spec{plain, own, other}[i]))
		if err != nil {
			t.Fatal(err)
		}
		task := mustTask(t, m, id)
		if diff := cmp.Diff(want, newFields(task)); diff != "" {
			t.Errorf("spec %d (-want +got):\n%s", i, diff)
		}
		limits := [][2]string{{"4", "300"}, {"0", "inf"}, {"0", "inf"}}[i]
		if got := [2]string{task.Fields["max_fails"], task.Fields["timeout"]}; got != limits {
			t.Errorf("spec %d: max_fails, timeout %q, want %q", i, got, limits)
		}
	}
}

// What cannot be is refused by field.
func TestSpecRefusesByField(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	for _, c := range []struct {
		field string
		spec  task.Spec
	}{
		{"queue", task.Spec{Queue: "-x"}}, {"env", task.Spec{Env: "a b"}}, {"labels", task.Spec{Labels: []string{"gpu"}}},
		{"resources", task.Spec{Resources: map[string]int{"gpu": 0}}}, {"resources", task.Spec{Resources: map[string]int{"GPU": 1}}},
		{"priority", task.Spec{Priority: new(1001)}}, {"max_faults", task.Spec{MaxFaults: task.AtMost(-1)}},
		{"retry_delay", task.Spec{Retry: task.Retry{Delay: math.MaxInt64}}},
		{"retry_backoff", task.Spec{Retry: task.Retry{Backoff: 0.5}}}, {"retry_backoff", task.Spec{Retry: task.Retry{Backoff: math.NaN()}}},
		{"retry_jitter", task.Spec{Retry: task.Retry{Jitter: 1.5}}}, {"retry_exit_codes", task.Spec{Retry: task.Retry{ExitCodes: []int{256}}}},
		{"fatal_exit_codes", task.Spec{Retry: task.Retry{FatalExitCodes: []int{-1}}}}, {"charge", task.Spec{Charge: "host"}},
		{"hold", task.Spec{Hold: "a\nb"}}, {"key", task.Spec{Key: "a\x00b"}}, {"key", task.Spec{Key: string(make([]byte, 300))}},
	} {
		c.spec.Program = "p"
		if got := fieldOf(m.Check(c.spec)); got != c.field {
			t.Errorf("%+v: %q is blamed, want %q", c.spec, got, c.field)
		}
	}
	var spec *SpecError
	_, err := m.SubmitAll(t.Context(), slices.Values([]task.Spec{{Program: "p"}, {Program: "p", Queue: "rendr"}}))
	if !errors.Is(err, task.ErrNoQueue) || !errors.As(err, &spec) || spec.Index != 1 {
		t.Errorf("an unknown queue: %v", err)
	}
	if n, _ := m.Count(t.Context()); n.Total() != 0 {
		t.Errorf("%d tasks are there", n.Total())
	}
}

// A key makes one task, in one submission and in several, in each queue.
func TestKeys(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	if _, err := m.AddQueue(t.Context(), task.QueueSpec{Name: "q"}, ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	a, b, inQueue := spec(), spec(), spec()
	a.Key, b.Key, inQueue.Key, inQueue.Queue = "a", "b", "a", "q"
	first, err := m.SubmitAll(t.Context(), slices.Values([]task.Spec{a, spec(), a, inQueue}))
	if want := []task.Opened{{ID: 1, Existing: false}, {ID: 2, Existing: false}, {ID: 1, Existing: true}, {ID: 3, Existing: false}}; err != nil || !slices.Equal(first, want) {
		t.Errorf("opened %v, %v, want %v", first, err, want)
	}
	second, err := m.SubmitAll(t.Context(), slices.Values([]task.Spec{b, a, spec()}))
	if want := []task.Opened{{ID: 4, Existing: false}, {ID: 1, Existing: true}, {ID: 5, Existing: false}}; err != nil || !slices.Equal(second, want) {
		t.Errorf("opened %v, %v, want %v", second, err, want)
	}
	if id, err := idOf(m.Submit(t.Context(), b)); err != nil || id != 4 {
		t.Errorf("opened %d, %v, want 4", id, err)
	}
}
