package acceptance

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// D05: a pinned queue is served by its nodes only, one that ignores nodes by all
// others; with both, the pin alone counts; an empty list means no list.
func TestPinAndIgnore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.archiver(t)
	w.nodes(t, []string{"n1", "n2", "n3"}, "slots=1")
	for _, c := range []struct {
		queue string
		set   []string
		want  map[string]int
	}{
		{"pinned", []string{"nodes_pin=n1"}, map[string]int{"n1": 1}},
		{"ignoring", []string{"nodes_ignore=n2"}, map[string]int{"n1": 1, "n3": 1}},
		{"both", []string{"nodes_pin=n1,n2", "nodes_ignore=n1"}, map[string]int{"n1": 1, "n2": 1}},
		{"empty", []string{"nodes_pin=", "nodes_ignore="}, map[string]int{"n1": 1, "n2": 1, "n3": 1}},
	} {
		w.queue(t, c.queue, c.set...)
		spec, l := w.waiting(t, c.queue, c.queue)
		ids := w.open(t, times(4, spec)...)
		l.begun(t, 0, len(c.want)) // on each node that may, since each has one slot
		l.stays(t, len(c.want))
		busy := map[string]int{}
		for _, e := range l.entries(t) {
			busy[e.worker]++
		}
		if fmt.Sprint(busy) != fmt.Sprint(c.want) {
			t.Errorf("queue %s runs on %v, want %v", c.queue, busy, c.want)
		}
		l.release(t)
		for node := range where(w.ended(t, ids, sm.Succeeded)) {
			if c.want[node] == 0 {
				t.Errorf("queue %s has used node %s, want only %v", c.queue, node, c.want)
			}
		}
	}
	w.sound(t)
}

// D06, F06: two nodes race for 200 due tasks; each task is run once, by the worker
// in its record, as the programs say themselves.
func TestNodesRace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	book := w.file(t, "book", "", 0o666)
	spec := w.script(t, "p", `echo "$TDF_TASK_ID/$TDF_ROUND $TDF_NODE" >>"$1"`)
	spec.Input = book
	const tasks = 200
	ids := w.open(t, times(tasks, spec)...)
	w.server(t)
	w.nodes(t, []string{"n1", "n2"}, "slots=3")
	runs, nodes := map[string]int{}, map[string]int{}
	for _, id := range ids {
		task := w.await(t, id, sm.Succeeded)
		for round := range task.Round {
			checkFields(t, task, map[string]string{sm.RoundField(round, "end"): "hand_back"})
		}
		if last(task, "error") != "" {
			t.Errorf("task %d: %s", id, last(task, "error"))
		}
		nodes[last(task, "node")]++
		runs[fmt.Sprintf("%d/%d %s", id, task.Round, last(task, "node"))] = 0
	}
	for line := range strings.Lines(content(t, book) + "\n") {
		runs[strings.TrimSpace(line)]++
	}
	for run, n := range runs {
		if n != 1 {
			t.Errorf("%q was run %d times", run, n)
		}
	}
	if len(runs) != tasks || nodes["n1"] == 0 || nodes["n2"] == 0 {
		t.Errorf("%d different runs, by %v; want %d, by both nodes", len(runs), nodes, tasks)
	}
	w.sound(t)
}

// F07: a worker never gets a task of another env, nor does one without an env;
// tasks without one run anywhere.
func TestEnvIsShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	spec := w.script(t, "p", `echo "$TDF_ENV"`)
	open := func(env string) []int64 {
		spec.Env = env
		return w.open(t, times(6, spec)...)
	}
	python, java, anywhere := open("python"), open("java"), open("")
	w.node(t, "java", "env=java")
	w.node(t, "bare")
	for _, id := range java {
		checkFields(t, w.await(t, id, sm.Succeeded), map[string]string{"0:worker": "java", "0:output": "java\n"})
	}
	for _, id := range anywhere {
		w.await(t, id, sm.Succeeded)
	}
	for _, id := range python {
		checkFields(t, w.Task(t, id), map[string]string{"state": "open", "0:worker": "-"})
	}
	w.node(t, "python", "env=python")
	for _, id := range python {
		checkFields(t, w.await(t, id, sm.Succeeded), map[string]string{"0:worker": "python", "0:output": "python\n"})
	}
	w.sound(t)
}

// Labels that a task demands are offered by the worker that gets it, all of them.
func TestLabelsAreDemanded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.node(t, "n1", "labels=zone=eu,disk=ssd")
	w.node(t, "n2", "labels=zone=us,disk=ssd")
	p := w.script(t, "p", "true")
	want := map[int64]string{}
	for range 5 {
		want[w.submitted(t, p, "--label", "zone=eu")] = "n1"
		want[w.submitted(t, p, "-l", "disk=ssd", "-l", "zone=us")] = "n2"
	}
	nowhere := w.submitted(t, p, "-l", "zone=eu", "-l", "disk=hdd")
	for id, node := range want {
		checkFields(t, w.await(t, id, sm.Succeeded), map[string]string{"0:node": node})
	}
	checkFields(t, w.Task(t, nowhere), map[string]string{"state": "open", "0:worker": "-"})
}

// submitted opens a task of the spec's program with tdf-manager and returns its id.
func (w *world) submitted(t *testing.T, spec task.Spec, args ...string) int64 {
	t.Helper()
	all := append([]string{"submit", "--program", spec.Program, "--source", spec.Source}, args...)
	ids, ok := w.object(t, 0, all...)["ids"].([]any)
	if !ok || len(ids) != 1 {
		t.Fatalf("%v opened %v", args, ids)
	}
	id, _ := ids[0].(float64)
	return int64(id)
}

// Two workers of one node share what the node has: a piece of it is never with two
// rounds at a time. The programs find that out themselves, by directories.
func TestResourcesNeverOverlap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	dir := w.own(t, "pieces")
	spec := w.script(t, "p", `for id in $(echo "$TDF_RESOURCE_GPU_IDS" | tr , ' '); do mkdir "$1/$id" || exit 1; done
sleep 0.05
for id in $(echo "$TDF_RESOURCE_GPU_IDS" | tr , ' '); do rmdir "$1/$id" || exit 1; done
echo "$TDF_RESOURCE_GPU $TDF_RESOURCE_GPU_IDS $TDF_WORKER"`)
	spec.Input = dir
	var specs []task.Spec
	for i := range 40 {
		spec.Resources = map[string]int{"gpu": 1 + i%2}
		specs = append(specs, spec)
	}
	for _, name := range []string{"w1", "w2"} {
		w.worker(t, name, "node=n", "slots=4", "resources=gpu=3")
	}
	workers := map[string]bool{}
	for i, id := range w.open(t, specs...) {
		task := w.await(t, id, sm.Succeeded)
		words := strings.Fields(task.Fields["0:output"])
		if len(words) != 3 || words[0] != fmt.Sprint(1+i%2) || len(strings.Split(words[1], ",")) != 1+i%2 {
			t.Errorf("task %d, which asks %d, got %v", id, 1+i%2, words)
			continue
		}
		workers[words[2]] = true
	}
	if len(workers) != 2 {
		t.Errorf("only %v worked: the test would prove nothing", workers)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 0 {
		t.Errorf("%v are left, %v", left, err)
	}
	wait.Eventually(t, patience, func() bool { return strings.Contains(w.text(t, "node", "ls"), "gpu 0/3") }, "node ls does not say that all is free")
	w.sound(t)
}
