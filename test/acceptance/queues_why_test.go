package acceptance

import (
	"slices"
	"strings"
	"testing"

	sm "github.com/tdf-go/tdf/statemachine"
)

// obey runs the commands that why proposes for a task, and returns how many there
// were. What it proposes to set for a worker is started as a worker of that name.
func (w *world) obey(t *testing.T, id int64) int {
	t.Helper()
	obeyed := 0
	for line := range strings.Lines(w.text(t, "why", id2text(id))) {
		remedy, proposed := strings.CutPrefix(strings.TrimSpace(line), "-> ")
		command, isCommand := strings.CutPrefix(remedy, "tdf-manager ")
		switch {
		case !proposed:
		case isCommand:
			command, _, _ = strings.Cut(command, ", or ")
			w.manage(t, 0, strings.Fields(command)...)
			obeyed++
		case strings.HasPrefix(remedy, "start a worker with: "):
			w.started(t, strings.TrimPrefix(remedy, "start a worker with: "))
			obeyed++
		default:
			t.Errorf("nothing to do about %q", remedy)
		}
	}
	return obeyed
}

// started starts a worker with settings as why writes them: node = n2; env = java.
func (w *world) started(t *testing.T, settings string) {
	t.Helper()
	set := []string{"drain_timeout=1"}
	for part := range strings.SplitSeq(settings, "; ") {
		if name, value, ok := strings.Cut(part, " = "); ok {
			set = append(set, name+"="+value)
		}
	}
	w.worker(t, "started", set...)
}

// why says what keeps a task, each thing that does, and doing all that it proposes
// makes the task run.
func TestWhyIsRight(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare [][]string // what is done with tdf-manager
		queue   []string   // attributes of the task's queue
		submit  []string
		worker  []string // settings of the one worker, none without
		says    []string
	}{
		"held":       {nil, nil, []string{"--hold=no licence"}, []string{"node=n1"}, []string{"no licence"}},
		"paused":     {[][]string{{"queue", "pause", "q"}}, nil, nil, []string{"node=n1"}, []string{"queue q is paused"}},
		"threads":    {nil, []string{"threads=0"}, nil, []string{"node=n1"}, []string{"threads"}},
		"maxthreads": {nil, []string{"maxthreads=0"}, nil, []string{"node=n1"}, []string{"maxthreads"}},
		"node cap":   {[][]string{{"node", "set", "n1", "maxthreads=0"}}, nil, nil, []string{"node=n1"}, []string{"n1"}},
		"drained":    {[][]string{{"worker", "drain", "w"}}, nil, nil, []string{"node=n1"}, []string{"drain"}},
		"pinned":     {nil, []string{"nodes_pin=n2"}, nil, []string{"node=n1"}, []string{"pinned to n2"}},
		"ignored":    {nil, []string{"nodes_ignore=n1"}, nil, []string{"node=n1"}, []string{"avoids the nodes"}},
		"nobody":     {nil, []string{"class=render"}, []string{"--environment", "java", "-l", "zone=eu", "--resource", "gpu=2"}, nil, []string{"no worker is alive"}},
		"all at once": {[][]string{{"queue", "pause", "q"}, {"node", "set", "n1", "maxthreads=0"}, {"worker", "drain", "w"}},
			[]string{"threads=0", "maxthreads=0"}, []string{"--hold"}, []string{"node=n1"}, []string{"held", "paused", "threads", "drain", "n1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.server(t)
			w.queue(t, "q", c.queue...)
			if c.worker != nil {
				w.worker(t, "w", c.worker...).Says(t, "registered")
			}
			for _, verb := range c.prepare {
				w.manage(t, 0, verb...)
			}
			id := w.submitted(t, w.script(t, "p", "true"), append([]string{"--queue", "q"}, c.submit...)...)
			contains(t, "why", w.text(t, "why", id2text(id)), c.says...)
			if object := w.object(t, 0, "why", id2text(id)); object["blocked"] != true {
				t.Errorf("why does not say that the task is blocked: %v", object)
			}
			if n := w.obey(t, id); n < len(c.prepare) || n == 0 {
				t.Errorf("only %d things to do", n)
			}
			w.await(t, id, sm.Succeeded)
			contains(t, "why", w.text(t, "why", id2text(id)), "succeeded")
		})
	}
}

// why names the worker that comes nearest to what a task needs, and what it lacks.
func TestWhyNamesTheNearest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.worker(t, "far", "node=n1", "env=java", "labels=gpu=v100").Says(t, "registered")
	w.worker(t, "near", "node=n2", "env=python", "labels=gpu=v100", "resources=gpu=1").Says(t, "registered")
	p := w.script(t, "p", "true")
	for _, c := range []struct{ submit, says []string }{
		{[]string{"--environment", "python", "-l", "gpu=a100"}, []string{"gpu=a100", "gpu=v100", "near", "labels"}},
		{[]string{"--environment", "python", "--resource", "gpu=2"}, []string{"gpu", "near", "put gpu=2 into [worker] resources"}},
		{[]string{"--environment", "perl", "--resource", "gpu=1"}, []string{"perl", "python", "near", "env = perl"}},
	} {
		id := w.submitted(t, p, c.submit...)
		contains(t, "why", w.text(t, "why", id2text(id)), c.says...)
		kinds := w.kinds(t, id)
		if slices.Contains(kinds, "claimable") || len(kinds) == 0 {
			t.Errorf("%v: kinds %v", c.submit, kinds)
		}
	}
	contains(t, "why of the queue", w.text(t, "why", "--queue", "default"), "3")
}

// kinds are those of the reasons why a task is where it is.
func (w *world) kinds(t *testing.T, id int64) []string {
	t.Helper()
	reasons, err := w.project(t).Why(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for i := range reasons {
		kinds = append(kinds, string(reasons[i].Kind))
	}
	return kinds
}
