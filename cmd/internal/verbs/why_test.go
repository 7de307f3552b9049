package verbs

import (
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

func TestWhy(t *testing.T) {
	t.Parallel()
	b := played(t)
	b.must("queue", "add", "nightly", "paused=true")
	b.must("submit", "--program", "p", "--queue", "nightly")
	wantText(t, b.must("why", "6"), "* queue nightly is paused\n    -> tdf-manager queue resume nightly\n")
	wantText(t, b.must("why", "--queue", "nightly"), "* queue nightly is paused", "1 task waits")
	object := b.value(0, "why", "last").(map[string]any)
	reasons := object["reasons"].([]any)
	reason := reasons[len(reasons)-1].(map[string]any)
	change := reason["change"].(map[string]any)
	if object["id"] != 6.0 || object["blocked"] != true || reason["kind"] != "paused" || change["attribute"] != "paused" || change["value"] != "false" {
		t.Errorf("JSON: %v", object)
	}
	if object := b.value(0, "why", "--queue", "default").(map[string]any); object["queue"] != "default" || object["reasons"] == nil {
		t.Errorf("JSON: %v", object)
	}
	wantText(t, b.must("why", "2"), "failed")
	b.must("hold", "5")
	wantText(t, b.must("why", "5"), "-> tdf-manager release 5\n")
	b.worker("w1")
	b.must("submit", "--program", "p", "--label", "disk=tape") // beside gpu=1 and disk=ssd
	wantText(t, b.must("why", "last"), "-> put disk=tape into [worker] labels of worker w1, and start it again\n")
	b.must("submit", "--program", "p", "--environment", "ruby", "--label", "gpu=1")
	wantText(t, b.must("why", "last"), "-> set [worker] env = ruby for worker w1, and start it again\n")
}

func TestWhyRefuses(t *testing.T) {
	t.Parallel()
	b := played(t)
	b.must("queue", "add", "nightly")
	for args, say := range map[string]string{
		"": "--queue NAME", "5 --queue nightly": "--queue NAME", "99": "no such task", "x": "id of one task",
		"--queue nightli": `did you mean "nightly"?`, "1 2": "at most 1",
	} {
		r := b.run(append([]string{"why"}, fields(args)...)...)
		if r.code != 2 || !strings.Contains(r.err, say) {
			t.Errorf("%q: %+v, want 2 and %q", args, r, say)
		}
	}
}

// A worker of Go functions leaves a task without a class alone: that is in the way, and who would take it is told.
func TestWhyHandlersOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	only := storetest.Registration("w")
	only.Classes, only.HandlersOnly = []string{"echo", "sum"}, true
	if _, err := b.store.Register(t.Context(), only); err != nil {
		t.Fatal(err)
	}
	b.must("submit", "--program", "echo")
	wantText(t, b.must("why", "1"), "* has no class, the worker runs no programs and takes only what has one of its classes: echo,sum (worker w on node-1)\n"+
		"    -> start a worker that runs programs, or let worker w run them too; submit tasks of a handler with --class\n")
	b.must("submit", "--program", "echo", "--class", "echo")
	wantText(t, b.must("why", "2"), "nothing is in the way: the next claim of worker w on node-1")
	wantText(t, b.must("show", "2"), "class", "echo")
	b.must("submit", "--program", "echo", "--class", "render")
	wantText(t, b.must("why", "3"), "needs class render, the worker serves echo,sum", "-> put render into [worker] classes of worker w, and start it again")
	if r := b.run("submit", "--program", "echo", "--class", "a b"); r.code != 2 || !strings.Contains(r.err, "blanks") {
		t.Errorf("%+v, want 2 and why", r)
	}
}

// A worker of Go functions takes what has its class, also where it has no handler for it, and hands that back: that is in the way.
func TestWhyNoHandler(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.planCrew()
	b.must("submit", "--program", "other")
	says := func(text string) { // while a slot of the worker has the task, it only runs
		t.Helper()
		wait.Eventually(t, limit, func() bool { return strings.Contains(b.must("why", "1"), text) }, "why does not say %q", text)
	}
	says("* no live worker has a handler for program other or runs programs: handed back by w\n" +
		"    -> give worker w a handler of the name other, or start a worker that runs programs\n")
	programs := storetest.Registration("programs")
	programs.Labels, programs.Classes = nil, []string{"go"}
	if _, err := b.store.Register(t.Context(), programs); err != nil {
		t.Fatal(err)
	}
	says("nothing is in the way: the next claim of worker programs on node-1")
}
