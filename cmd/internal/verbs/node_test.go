package verbs

import (
	"strings"
	"testing"

	"github.com/tdf-go/tdf/task"
)

func TestNodes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	wantText(t, b.must("node", "ls"), "no node is known yet; start a worker: tdf-worker NAME worker.cfg\n")
	if list := b.value(0, "node", "ls").([]any); len(list) != 0 {
		t.Errorf("nobody: %v, want []", list)
	}
	w := b.worker("w1")
	b.must("submit", "--program", "p")
	w.claim()
	w.beat(task.WorkerReady, 1, 0, "")
	wantText(t, b.must("node", "ls"), "NAME", "node-1  1/1      1        ", "QUARANTINE")
	wantText(t, b.must("node", "show", "node-1"), "node        node-1", "running     1", "workers\n", "w1", "gpu=1 disk=ssd")
	object := b.value(0, "node", "show", "node-1").(map[string]any)
	workers := object["workers"].([]any)
	if object["running"] != 1.0 || object["set"] != false || len(workers) != 1 || object["quarantine"].(map[string]any)["since"] != nil {
		t.Errorf("JSON: %v", object)
	}
}

func TestNodeSet(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.worker("w1")
	wantText(t, b.must("node", "set", "node-1", "maxthreads=3"), "node node-1: maxthreads ", " -> 3\n")
	wantText(t, b.must("node", "set", "node-1", "maxthreads=3"), "is so already")
	wantText(t, b.must("node", "show", "node-1"), "maxthreads  3 (set)")
	object := b.value(0, "node", "set", "node-1", "maxthreads=none").(map[string]any)
	if object["maxthreads"] != nil || object["set"] != true {
		t.Errorf("JSON: %v", object)
	}
	b.must("node", "set", "node-1", "maxthreads=")
	wantText(t, b.must("node", "show", "node-1"), "(by its workers)")
	r := b.run("node", "set", "node-2", "maxthreads=0")
	if r.code != 0 || !strings.Contains(r.err, `no worker has registered from node node-2 yet; did you mean "node-1"?`) {
		t.Errorf("a node not seen yet: %+v", r)
	}
	wantText(t, b.must("node", "ls"), "node-2  0/0      0        0 ")
}

func TestNodeRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.worker("w1")
	for args, say := range map[string]string{
		"set node-1 maxthreads=many": "many", "set node-1 threads=3": "threads", "set node-1": "at least 2",
		"set bad/node maxthreads=1": "bad/node", "show node1": `did you mean "node-1"?`, "show elsewhere": "node ls",
	} {
		r := b.unchanged(append([]string{"node"}, fields(args)...)...)
		if r.code != 2 || !strings.Contains(r.err, say) {
			t.Errorf("%s: %+v, want 2 and %q", args, r, say)
		}
	}
}

func TestNodeRm(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.worker("w1")
	if r := b.unchanged("node", "rm", "node-1"); r.code != 1 || !strings.Contains(r.err, "w1") || !strings.Contains(r.err, "worker stop") {
		t.Errorf("a node at work: %+v", r)
	}
	w.leave()
	wantText(t, b.must("node", "rm", "node-1", "-n"), "would remove node node-1\n")
	wantText(t, b.must("node", "ls"), "node-1")
	if out := b.must("node", "rm", "node-1", "node-1"); out != "removed node node-1\n" {
		t.Errorf("named twice: %q", out)
	}
	wantText(t, b.must("node", "ls"), "no node is known yet")
	if r := b.unchanged("node", "rm", "node-1"); r.code != 2 || !strings.Contains(r.err, "no such node") {
		t.Errorf("a node that is gone: %+v", r)
	}
}
