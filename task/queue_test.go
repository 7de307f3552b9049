package task_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func TestQueueSet(t *testing.T) {
	t.Parallel()
	q := task.ParseQueue("q", nil)
	for _, set := range [][2]string{
		{"description", "nightly"}, {"class", "render"}, {"threads", "9"}, {"maxthreads", "2"}, {"nodes_pin", "n2, n1,n2"},
		{"nodes_ignore", "n3"}, {"paused", "true"}, {"order", "lifo"}, {"aging", "90m"},
		{"default_max_fails", "3"}, {"default_labels", "b=1,a=1"}, {"default_timeout", "1m"},
	} {
		if err := q.Set(set[0], set[1]); err != nil {
			t.Errorf("%s: %v", set[0], err)
		}
	}
	want := task.QueueSpec{
		Name: "q", Description: "nightly", Class: "render", Threads: task.AtMost(9), MaxThreads: task.AtMost(2), Pin: []string{"n1", "n2"}, Ignore: []string{"n3"},
		Paused: true, Order: task.Lifo, Aging: task.Seconds(90 * time.Minute),
		Defaults: map[string]string{"max_fails": "3", "labels": "a=1,b=1", "timeout": "60"},
	}
	if diff := cmp.Diff(want, q); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, key := range task.QueueKeys() {
		if err := q.Set(key, ""); err != nil {
			t.Errorf("%s empty: %v", key, err)
		}
	}
	if diff := cmp.Diff(task.ParseQueue("q", nil), q); diff != "" {
		t.Errorf("empty values are not the defaults: -want +got:\n%s", diff)
	}
}

// TestQueueSetRefuses: the error names the attribute, nothing changes.
func TestQueueSetRefuses(t *testing.T) {
	t.Parallel()
	q := task.ParseQueue("q", nil)
	for _, tc := range []struct{ key, value, field string }{
		{"description", "a\nb", "description"}, {"description", strings.Repeat("x", 1025), "description"},
		{"class", "a b", "class"}, {"threads", "-1", "threads"}, {"maxthreads", "many", "maxthreads"},
		{"nodes_pin", "a/b", "nodes_pin"}, {"nodes_ignore", "..", "nodes_ignore"}, {"paused", "maybe", "paused"}, {"order", "random", "order"},
		{"aging", "0.5", "aging"}, {"aging", "inf", "aging"}, {"aging", "-1", "aging"}, {"aging", "31536001", "aging"}, {"aging", "x", "aging"},
		{"default_max_fails", "-1", "default_max_fails"}, {"default_retry_jitter", "2", "default_retry_jitter"},
		{"max_fails", "1", "name"}, {"default_", "1", "name"}, {"created", "1", "name"}, {"", "1", "name"},
	} {
		refused(t, q.Set(tc.key, tc.value), tc.field)
	}
	if diff := cmp.Diff(task.ParseQueue("q", nil), q); diff != "" {
		t.Errorf("a refused value was taken: -want +got:\n%s", diff)
	}
	for slip, near := range map[string]string{"max-threads": "maxthreads", "node_pin": "nodes_pin", "default_max_fial": "default_max_fails"} {
		if err := q.Set(slip, "1"); err == nil || !strings.Contains(err.Error(), "did you mean "+near) {
			t.Errorf("%s: %v", slip, err)
		}
	}
	if err := q.Set("quux", "1"); err == nil || !strings.Contains(err.Error(), "known are description, class") {
		t.Error(err)
	}
}

// TestQueueSetLeavesCopiesAlone: queues are passed on by value.
func TestQueueSetLeavesCopiesAlone(t *testing.T) {
	t.Parallel()
	q := task.ParseQueue("q", nil)
	if err := q.Set("default_env", "python"); err != nil {
		t.Fatal(err)
	}
	twin := q
	for _, value := range []string{"go", ""} {
		if err := twin.Set("default_env", value); err != nil {
			t.Fatal(err)
		}
		if q.Defaults["env"] != "python" {
			t.Errorf("the original has %v", q.Defaults)
		}
	}
}

// values are some good values of each attribute.
func values() map[string][]string {
	v := map[string][]string{
		"description": {"", "a, b=c"}, "class": {"", "render"}, "threads": {"none", "0", "12"}, "maxthreads": {"none", "0", "3"},
		"nodes_pin": {"", "a,b"}, "nodes_ignore": {"", "c"}, "paused": {"0", "1"}, "order": {"fifo", "lifo"}, "aging": {"0", "1.5", "3600"},
	}
	for name, some := range map[string]string{
		"archive": "at_once", "charge": "program", "env": "python", "fail_on": "any", "labels": "a=b,c=d", "priority": "-3", "resources": "gpu=1",
		"workdir": "shared", "on_cut": "fail", "retry_backoff": "1.5", "retry_jitter": "0.5", "retry_exit_codes": "1,2", "fatal_exit_codes": "3",
	} {
		v["default_"+name] = []string{"", some}
	}
	for _, key := range task.QueueKeys() {
		if v[key] == nil {
			v[key] = []string{"", "7"}
		}
	}
	return v
}

func TestQueueRoundTrip(t *testing.T) {
	t.Parallel()
	some := values()
	rapid.Check(t, func(rt *rapid.T) {
		q := task.ParseQueue("q", nil)
		q.Created = task.Moment(statemachine.Time(rapid.Int64Range(0, 4e15).Draw(rt, "created")))
		for _, key := range task.QueueKeys() {
			if err := q.Set(key, rapid.SampledFrom(some[key]).Draw(rt, key)); err != nil {
				rt.Fatal(err)
			}
		}
		fields := pairs(t, q.Fields())
		fields["queries"] = "of another client"
		if diff := cmp.Diff(q, task.ParseQueue("q", fields)); diff != "" {
			rt.Fatalf("-want +got:\n%s", diff)
		}
	})
}

func TestParseQueue(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(task.ParseQueue("q", nil), task.ParseQueue("q", nil)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !slices.IsSorted(task.DefaultNames()) {
		t.Errorf("not sorted: %q", task.DefaultNames())
	}
}

func TestNodeRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := task.ParseNode("n", nil)
		if err := n.Set("maxthreads", of("", "none", "0", "5").Draw(rt, "maxthreads")); err != nil {
			rt.Fatal(err)
		}
		n.Run, n.Trials = rapid.IntRange(0, 5).Draw(rt, "run"), rapid.IntRange(0, 3).Draw(rt, "trials")
		n.Quarantined = task.Moment(statemachine.Time(rapid.Int64Range(0, 4e15).Draw(rt, "quarantined")))
		n.NextTrial = task.Moment(statemachine.Time(rapid.Int64Range(0, 4e15).Draw(rt, "trial")))
		n.Reason = rapid.String().Draw(rt, "reason")
		if diff := cmp.Diff(n, task.ParseNode("n", pairs(t, n.Fields()))); diff != "" {
			rt.Fatalf("-want +got:\n%s", diff)
		}
	})
}

// TestNodeCap: none is a cap of its own (no cap), empty leaves it to the workers.
func TestNodeCap(t *testing.T) {
	t.Parallel()
	n := task.ParseNode("n", nil)
	for _, tc := range []struct {
		value string
		want  task.Limit
	}{{"2", task.AtMost(2)}, {"none", task.Unlimited}, {"0", task.AtMost(0)}, {"", ""}} {
		if err := n.Set("maxthreads", tc.value); err != nil || n.MaxThreads != tc.want {
			t.Errorf("%q: %+v, %v", tc.value, n, err)
		}
	}
	refused(t, n.Set("maxthreads", "-1"), "maxthreads")
	refused(t, n.Set("maxthread", "1"), "name")
}
