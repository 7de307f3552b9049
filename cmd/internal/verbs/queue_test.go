package verbs

import (
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
)

func TestQueueLs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.run("queue", "ls")
	wantText(t, r.out, "NAME", "MAXTHREADS", "default  -       0 ", "unlimited ")
	wantText(t, r.err, "tdf-manager queue add NAME")
	b.must("queue", "add", "nightly", "threads=20", "maxthreads=2", "paused=true")
	b.must("submit", "--program", "p", "--array", "1-3")
	worktest.Drain(t, b.store, func(c *tasks.Claimed) worktest.Result {
		return worktest.Result{Overdue: c.Spec.Input == "2"}
	})
	b.must("submit", "--program", "p", "--start-after", "4000000000")
	b.must("submit", "--program", "p", "--queue", "nightly")
	out := b.must("queue", "ls")
	wantText(t, out, "nightly  paused  1        1    0        20         2 ", "succeeded 2  timed_out 1", "default  -       1        0 ")
	list := b.value(0, "queue", "ls").([]any)
	one := list[1].(map[string]any)
	if len(list) != 2 || one["name"] != "nightly" || one["paused"] != true || one["threads"] != 20.0 || one["due"] != 1.0 ||
		!isMoment(one["oldest"]) || len(one["nodes_pin"].([]any)) != 0 {
		t.Errorf("JSON: %v", one)
	}
	if d := list[0].(map[string]any); d["threads"] != nil || d["ended"].(map[string]any)["succeeded"] != 2.0 {
		t.Errorf("JSON: %v", d)
	}
}

func TestQueueAddSetShow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	wantText(t, b.must("queue", "add", "q", "threads=4", "default_max_fails=2"),
		"added queue q: threads unlimited -> 4, default_max_fails none -> 2\n")
	wantText(t, b.must("queue", "set", "q", "threads=unlimited", "nodes_pin=b,a", "order=lifo", "aging=1h"),
		"queue q: threads 4 -> unlimited, nodes_pin none -> a,b, order fifo -> lifo\n")
	wantText(t, b.must("queue", "set", "q", "order=lifo"), "queue q is so already; nothing changes\n")
	wantText(t, b.must("queue", "show", "q"), "queue              q", "nodes_pin          a,b", "default_max_fails  2",
		"aging              3600", "created ", "waiting            0, 0 of them due")
	object := b.value(0, "queue", "set", "q", "default_max_fails=", "maxthreads=0").(map[string]any)
	changed := object["changed"].(map[string]any)
	if object["maxthreads"] != 0.0 || len(changed) != 2 || len(object["defaults"].(map[string]any)) != 0 {
		t.Errorf("JSON: %v", object)
	}
	made := b.value(0, "queue", "add", "threads=1").(map[string]any)
	if name, _ := made["name"].(string); name == "" || b.value(0, "queue", "show", name).(map[string]any)["threads"] != 1.0 {
		t.Errorf("without a name: %v", made)
	}
}

func TestQueuePauseAndRemove(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must("queue", "add", "q")
	out := b.must("queue", "pause", "q", "default", "q")
	if out != "queue q: paused\nqueue default: paused\n" {
		t.Errorf("%q", out)
	}
	wantText(t, b.must("queue", "pause", "q"), "queue q: it is paused already\n")
	list := b.value(0, "queue", "resume", "q").([]any)
	if one := list[0].(map[string]any); len(list) != 1 || one["was"] != true || one["paused"] != false {
		t.Errorf("JSON: %v", list)
	}
	b.must("submit", "--program", "p", "--queue", "q")
	r := b.run("queue", "rm", "q")
	if r.code != 1 || !strings.Contains(r.err, "tdf-manager cancel --queue q") {
		t.Errorf("in use: %+v", r)
	}
	b.must("cancel", "--queue", "q")
	wantText(t, b.must("queue", "rm", "q"), "removed queue q\n")
	if r := b.run("queue", "show", "q"); r.code != 2 {
		t.Errorf("removed: %+v", r)
	}
}

func TestQueueRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must("queue", "add", "nightly")
	for _, c := range []struct {
		args string
		code int
		say  []string
	}{
		{"add nightly", 1, []string{"nightly", "queue set nightly"}},
		{"add bad/name", 2, []string{"bad/name"}},
		{"add q thread=2", 2, []string{"thread"}},
		{"add q threads=2 threads=3", 2, []string{"threads", "twice"}},
		{"add q threads", 2, []string{"name=value"}},
		{"set nightly threads=-1", 2, []string{"threads", "-1"}},
		{"set nightly maxthread=2", 2, []string{"maxthread"}},
		{"set nightly", 2, []string{"at least 2"}},
		{"set nightli threads=2", 2, []string{"no such queue", `did you mean "nightly"?`}},
		{"pause nightli", 2, []string{`did you mean "nightly"?`}},
		{"resume nightly zzzzzzzz", 2, []string{"zzzzzzzz", "queue ls"}},
		{"rm default", 2, []string{"default"}},
		{"rm nobody-knows", 2, []string{"queue ls"}},
		{"show nightli", 2, []string{"nightly"}},
		{"", 2, []string{"command is missing"}},
	} {
		r := b.unchanged(append([]string{"queue"}, fields(c.args)...)...)
		if r.code != c.code {
			t.Errorf("queue %s: ended with %d, want %d: %s", c.args, r.code, c.code, r.err)
		}
		wantText(t, r.err, c.say...)
	}
}
