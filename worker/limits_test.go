package worker

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// limited is a task with limits of its own, and the labels that its client has put there.
func limited(labels string, pairs ...string) func(*task.Definition) {
	return func(d *task.Definition) { storetest.Set(d, append(pairs, "labels", labels)...) }
}

// A round that reaches the memory_max of its task says so; within it, and beyond that of the worker, it is as ever.
func TestMemoryOfTheTask(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, for memory_max")
	}
	s := newSite(t)
	s.start(t, setting(t, "memory_max=60MiB", "pids_max=100"), func(o *options) {
		var err error
		if o.container, err = shim.New(shim.Options{Want: shim.Group, Name: s.Namespace, MemoryMax: o.MemoryMax, PidsMax: o.PidsMax}); err != nil {
			t.Fatal(err)
		}
	})
	takes := func(bytes string) func(*task.Definition) {
		return command(t, "sh", "-c", `x=$(head -c `+bytes+` /dev/zero | tr '\0' x); nice`)
	}
	const own = "commands=on,memory_max=on,pids_max=on"
	got := s.await(t, s.open(t, takes("40000000"), limited(own, "memory_max", "20971520", "pids_max", "50")), sm.Executed)
	checkFields(t, got, map[string]string{"0:class": "memory", "0:error": "out of memory: memory_max of the task, 20MiB, was reached"})
	for _, wider := range []string{"62914560", "1073741824"} { // as the worker, and beyond it
		got = s.await(t, s.open(t, takes("100000000"), limited(own, "memory_max", wider)), sm.Executed)
		checkFields(t, got, map[string]string{"0:class": "memory", "0:error": "out of memory: memory_max was reached"})
	}
	got = s.await(t, s.open(t, takes("1000"), limited(own, "memory_max", "20971520", "nice", "19")), sm.Executed)
	checkFields(t, got, map[string]string{"0:output": "19\n", "0:error": ""})
	if got := s.worker(t).Labels; !slices.Equal(got, []string{"commands=on", "memory_max=on", "pids_max=on"}) {
		t.Errorf("offers %q", got)
	}
}

// What earlier rounds of the slot have left in its cgroup is not the task's: it gets an empty one.
func TestMemoryThatEarlierRoundsLeft(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, for memory_max")
	}
	left, err := os.CreateTemp("/dev/shm", "tdf-test-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = errors.Join(left.Close(), os.Remove(left.Name())) })
	s := newSite(t)
	s.start(t, setting(t, "memory_max=60MiB"), func(o *options) {
		if o.container, err = shim.New(shim.Options{Want: shim.Group, Name: s.Namespace, MemoryMax: o.MemoryMax}); err != nil {
			t.Fatal(err)
		}
	})
	s.await(t, s.open(t, command(t, "dd", "if=/dev/zero", "of="+left.Name(), "bs=1M", "count=20")), sm.Executed)
	const own = "commands=on,memory_max=on"
	got := s.await(t, s.open(t, command(t, "echo", "fine"), limited(own, "memory_max", "10485760")), sm.Executed)
	checkFields(t, got, map[string]string{"0:output": "fine\n", "0:error": "", "round": "0"})
}

// A worker without limits of its own does not get a task that has some, and hands back the one of a foreign client.
func TestLimitsThatCannotBeKept(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	left := s.open(t, command(t, "echo"), limited("commands=on,memory_max=on", "memory_max", "20971520"))
	foreign := s.open(t, command(t, "echo"), limited("commands=on", "pids_max", "50"))
	wrong := map[string]int64{}
	for name, text := range map[string]string{"memory_max": "2GiB", "pids_max": "-1", "nice": "-20"} {
		wrong[name] = s.open(t, command(t, "echo"))
		s.Raw.HSet(t.Context(), s.Key("task:"+strconv.FormatInt(wrong[name], 10)), name, text)
	}
	handled := s.open(t, func(d *task.Definition) { storetest.Set(d, "program", "h", "nice", "5") })
	r := s.start(t, func(o *options) {
		o.Slots = 2 // one rests after what it hands back
		o.Handlers = map[string]Handler{"h": func(context.Context, *Job) error { return nil }}
	})
	wait.Eventually(t, patience, func() bool { return s.Task(t, foreign).Fields["releases"] != "" }, "it was not handed back")
	r.log.await(t, "has no pids_max of its own, so it cannot keep that of a task")
	checkFields(t, s.Task(t, left), map[string]string{"state": "open", "0:worker": "-"})
	for name, id := range wrong {
		got := s.await(t, id, sm.Executed)
		checkContains(t, "class and error", got.Fields["0:class"]+" "+got.Fields["0:error"], "program", name)
	}
	checkContains(t, "error", s.await(t, handled, sm.Executed).Fields["0:error"], "leave memory_max, pids_max and nice out")
}

// What the worker says of its limits is not the user's to say.
func TestLimitLabels(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"memory_max", "pids_max"} {
		o := newSite(t).options(t, nil)
		o.Labels = []string{task.LimitLabel(name)}
		if _, err := assemble(o); err == nil || !strings.Contains(err.Error(), "set "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
