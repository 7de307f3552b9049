package worker

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func demands(b task.Bucket) func(*task.Definition) {
	return func(s *task.Definition) { storetest.SetBucket(s, b) }
}

// E04: a task runs only where what it and its queue demand is offered.
func TestTasksGoWhereTheyFit(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.script(t, "p", "true")
	s.queue(t, "render", "class=render")
	s.queue(t, "audio", "class=audio")
	s.queue(t, "elsewhere", "nodes_pin=m")
	s.queue(t, "here", "nodes_pin=n,m", "nodes_ignore=n")
	s.queue(t, "ignored", "nodes_ignore=n")
	offer := setting(t, "node=n", "env=python", "labels=zone=eu,disk=ssd", "classes=render=2.1", "resources=gpu=2")
	fits, away := map[string]task.Bucket{
		"nothing": {}, "env": {Env: "python"}, "label": {Labels: "zone=eu"}, "labels": {Labels: "disk=ssd,zone=eu"},
		"resource": {Resources: "gpu=2"}, "class": {Queue: "render"}, "pin": {Queue: "here"},
	}, map[string]task.Bucket{
		"env": {Env: "java"}, "label": {Labels: "zone=us"}, "labels": {Labels: "cpu=arm,zone=eu"},
		"too much": {Resources: "gpu=3"}, "unknown": {Resources: "tape=1"}, "class": {Queue: "audio"},
		"pin": {Queue: "elsewhere"}, "ignore": {Queue: "ignored"},
	}
	var left []int64
	for _, b := range away {
		left = append(left, s.open(t, p, demands(b)))
	}
	s.start(t, offer)
	for name, b := range fits {
		if task := s.await(t, s.open(t, p, demands(b)), sm.Executed); task.Fields["0:error"] != "" {
			t.Errorf("%s: %q", name, task.Fields["0:error"])
		}
	}
	for _, id := range left {
		checkFields(t, s.Task(t, id), map[string]string{"state": "open", "0:worker": "-"})
	}
	if got := s.worker(t); got.Env != "python" || !slices.Equal(got.Labels, []string{"commands=on", "disk=ssd", "zone=eu"}) ||
		got.Resources["gpu"] != 2 || !slices.Equal(got.Classes, []string{"render=2.1"}) || got.MaxThreads != task.Unlimited {
		t.Errorf("registered %+v", got)
	}
}

// A worker of handlers leaves queues of other classes alone.
func TestHandlersServeTheirClasses(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.queue(t, "echoes", "class=echo")
	s.queue(t, "others", "class=other")
	theirs := s.open(t, forHandler("other"), inQueue("others"))
	got := make(chan string, 1)
	w := s.start(t, handlers(map[string]Handler{
		"echo": func(_ context.Context, j *Job) error { got <- j.Task.Queue; return nil }, "no class": nil,
	}))
	s.await(t, s.open(t, forHandler("echo"), inQueue("echoes")), sm.Executed)
	if q := wait.Receive(t, patience, got, "no job"); q != "echoes" {
		t.Errorf("queue %q", q)
	}
	checkFields(t, s.Task(t, theirs), map[string]string{"state": "open", "0:worker": "-"})
	if n := w.log.count("leaving the task to other workers"); n != 0 {
		t.Errorf("tasks of others were claimed %d times", n)
	}
	if info := s.worker(t); !slices.Equal(info.Classes, []string{"echo"}) {
		t.Errorf("registered classes %v", info.Classes)
	}
}

// A program is told its queue, priority and environment, and which pieces of a
// resource it got.
func TestRoutedEnvironment(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.queue(t, "q")
	p := s.script(t, "p", "env")
	id := s.open(t, p, demands(task.Bucket{Queue: "q", Env: "python", Priority: 7, Resources: "gpu=2,mem=2000"}))
	bare := s.open(t, p, limits("1000", "0"))
	s.start(t, func(o *options) {
		o.Node, o.Env, o.Resources = "n", "python", map[string]int{"gpu": 4, "mem": 5000}
	})
	task := s.await(t, id, sm.Executed)
	checkContains(t, "environment", "\n"+task.Fields["0:output"], "\nTDF_QUEUE=q\n", "\nTDF_ENV=python\n", "\nTDF_PRIORITY=7\n",
		"\nTDF_NODE=n\n", "\nTDF_RESOURCE_GPU=2\n", "\nTDF_RESOURCE_GPU_IDS=0,1\n", "\nTDF_RESOURCE_MEM=2000\n")
	if strings.Contains(task.Fields["0:output"], "MEM_IDS") {
		t.Error("pieces that nobody tells apart are numbered")
	}
	task = s.await(t, bare, sm.Executed)
	out := "\n" + task.Fields["0:output"]
	checkContains(t, "environment", out, "\nTDF_QUEUE=default\n", "\nTDF_PRIORITY=0\n",
		"\nTDF_DEADLINE="+task.Current.Running.Add(1000*sm.Second).Text()+"\n")
	if strings.Contains(out, "TDF_RESOURCE") {
		t.Errorf("resources for nothing:\n%s", out)
	}
}

// Rounds of two workers on one node never have the same piece of a resource.
func TestResourcesAreShared(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir := t.TempDir()
	p := s.script(t, "p", `mkdir "$1/$TDF_RESOURCE_GPU_IDS" || exit 1; sleep 0.05; rmdir "$1/$TDF_RESOURCE_GPU_IDS"
echo "$TDF_RESOURCE_GPU:$TDF_RESOURCE_GPU_IDS"`)
	const tasks = 24
	for range tasks {
		s.open(t, p, input(dir), demands(task.Bucket{Resources: "gpu=1"}))
	}
	for _, name := range []string{"w", "v"} {
		s.start(t, func(o *options) { o.Name, o.Node, o.Slots, o.Resources = name, "n", 3, map[string]int{"gpu": 3} })
	}
	used := map[string]int{}
	for id := int64(1); id <= tasks; id++ {
		task := s.await(t, id, sm.Executed)
		checkFields(t, task, map[string]string{"0:error": ""})
		used[strings.TrimSpace(task.Fields["0:output"])]++
	}
	if len(used) != 3 || used["1:0"] == 0 || used["1:1"] == 0 || used["1:2"] == 0 {
		t.Errorf("pieces used %v, want each of three", used)
	}
}
