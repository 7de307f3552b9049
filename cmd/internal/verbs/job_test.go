package verbs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// failing fails the tasks with that input.
func failing(input string) worktest.Program {
	return func(c *tasks.Claimed) worktest.Result {
		if c.Spec.Input == input {
			return worktest.Fail(c)
		}
		return worktest.Echo(c)
	}
}

// jobBench has three jobs: j1 of 3 tasks, of which one has failed, j2 of one task that succeeded, and j3 of 4 that wait.
func jobBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.must("submit", "--program", "p", "--array", "1-3", "--name", "sweep")
	b.must("submit", "--program", "p", "--", "one")
	worktest.Drain(t, b.store, failing("2"))
	b.must("submit", "--array", "6-9", "--", "/usr/bin/simulate", "--seed")
	return b
}

// Nobody holds a task whose job comes after another, and the first remedy is not to let it go without that.
func TestTaskOfALaterJob(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	b.must("submit", "--after", "j3", "--", "late")
	if out := b.must("show", "9"); strings.Contains(out, "held") {
		t.Errorf("show says that somebody holds it:\n%s", out)
	}
	wantText(t, b.must("why", "9"), "* job j4 waits for the end of job j3\n    -> wait until j3 has ended; tdf-manager plan resume 4 would begin without it\n")
}

func TestJobs(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	var rows [][]string
	for line := range strings.Lines(b.must("jobs")) {
		rows = append(rows, strings.Fields(line))
	}
	for i, want := range []string{"JOB NAME STATE TASKS WAITING RUNNING ENDED AGE", "j3 simulate running 4 4 0 -",
		"j2 p completed 1 0 0 succeeded 1", "j1 sweep failed 3 0 0 succeeded 2 failed 1"} {
		if got := strings.Join(rows[i], " "); !strings.HasPrefix(got, want) {
			t.Errorf("row %d is %q, want %q", i, got, want)
		}
	}
	list := b.value(0, "jobs", "--limit", "1").([]any)
	first := list[0].(map[string]any)
	if len(list) != 1 || first["id"] != 3.0 || first["total"] != 4.0 || first["left"] != 4.0 || first["running"] != 0.0 || first["job"] != true {
		t.Errorf("JSON: %v", first)
	}
	wantText(t, b.must("show", "j1"), "sweep", "failed", "succeeded 2  failed 1", "tdf-manager logs j1 --state failed --stderr",
		"tdf-manager retry j1 --failed")
	wantText(t, b.must("show", "last"), "job", "j3", "simulate")
	if object := b.value(0, "show", "j1").(map[string]any); object["total"] != 3.0 || object["name"] != "sweep" {
		t.Errorf("JSON: %v", object)
	}
	for words, says := range map[string]string{
		"jobs --limit 0": "--limit 0 is below 1", "why j1": "ls j1", "cancel j1,4": "a job stands alone", "submit --name= -- x": "--name is empty",
	} {
		if r := b.run(strings.Fields(words)...); r.code != 2 || !strings.Contains(r.err, says) {
			t.Errorf("%s: %+v, want %q", words, r, says)
		}
	}
	for _, words := range []string{"show j99", "wait j99", "cancel j99", "submit --after j99 -- x"} {
		const want = "tdf-manager: job j99: no such job; see tdf-manager jobs\n"
		if r := b.run(strings.Fields(words)...); r.code != 2 || r.out != "" || r.err != want {
			t.Errorf("%s: %+v, want %q", words, r, want)
		}
	}
	if !errors.Is(noJobError("x"), task.ErrNoPlan) {
		t.Error("nobody can match it")
	}
	if out := b.run("plan", "ls").out; strings.Contains(out, "sweep") {
		t.Errorf("plan ls lists jobs:\n%s", out)
	}
	if r := b.run("plan", "show", "last"); r.code != 2 || !strings.Contains(r.err, "there is no plan yet") {
		t.Errorf("the last plan: %+v", r)
	}
}

// The name of a job stands for its tasks in verbs about many tasks.
func TestSelectJob(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	if out := b.must("ls", "j1"); strings.Count(out, "\n") != 4 || strings.Contains(out, "simulate") {
		t.Errorf("ls j1:\n%s", out)
	}
	wantText(t, b.run("ls", "j3", "--limit", "1").err, "more tasks than these are open")
	if out := b.must("ls", "j1", "--state", "failed"); strings.Count(out, "\n") != 2 {
		t.Errorf("ls j1 --state failed:\n%s", out)
	}
	if out := b.must("logs", "j1"); !strings.Contains(out, "==> task 1 <==\n1\n") || !strings.Contains(out, "==> task 3 <==\n3\n") {
		t.Errorf("logs j1:\n%s", out)
	}
	if out := b.must("logs", "j2"); out != "one\n" {
		t.Errorf("logs of a job of one task: %q", out)
	}
	if out := b.must("results", "--csv", "j1"); strings.Count(out, "\n") != 7 { // a head, and two lines of each, since texts end with one
		t.Errorf("results j1:\n%s", out)
	}
	wantText(t, b.must("hold", "j3"), "held 4")
	wantText(t, b.must("release", "j3"), "released 4")
	wantText(t, b.must("cancel", "last"), "cancelled 4")
	wantText(t, b.must("show", "j3"), "cancelled 4")
	wantText(t, b.must("retry", "j1", "--failed"), "opened 1 again: 9")
	wantText(t, b.must("show", "j1"), "running", "succeeded 2")
	worktest.Drain(t, b.store, worktest.Echo)
	wantText(t, b.must("wait", "j1"), "3 of 3 tasks have ended: succeeded 3\n")
}

// A wait for a job is as one for its tasks.
func TestWaitForJob(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	r := b.run("wait", "j1")
	if r.code != 1 {
		t.Errorf("ended with %d", r.code)
	}
	wantText(t, r.out, "3 of 3 tasks have ended: succeeded 2  failed 1\n", "task 2 failed\n    it broke\n", "tdf-manager show 2")
	object := b.value(1, "wait", "j1").(map[string]any)
	states := object["states"].(map[string]any)
	if object["total"] != 3.0 || object["done"] != 3.0 || object["unsuccessful"] != 1.0 || states["succeeded"] != 2.0 || object["timed_out"] != false ||
		fmt.Sprint(object["first_unsuccessful"].([]any)[0].(map[string]any)["id"]) != "2" {
		t.Errorf("JSON: %v", object)
	}
	for _, limit := range []string{"0.01", "0.000001"} { // which is over before Redis answers
		r = b.run("wait", "last", "--timeout", limit)
		if r.code != 4 || !strings.Contains(r.out, "the wait timed out; 0 of 4 tasks have ended: open 4\n") {
			t.Errorf("timed out: %+v", r)
		}
	}
	if r := b.run("wait", "j1", "--state", "succeeded"); r.code != 0 || !strings.Contains(r.out, "2 of 2 tasks have ended") {
		t.Errorf("with a condition: %+v", r)
	}
	b.must("submit", "--program", "p", "--array", "1-4")
	b.must("submit", "--program", "p", "--array", "1-9%2")
	if r := b.run("wait", "j5", "--timeout", "0.01"); !strings.Contains(r.out, "0 of 9 tasks have ended: blocked 7  open 2\n") {
		t.Errorf("with a window: %+v", r)
	}
	b.must("cancel", "j5")
	run := b.start(t.Context(), "wait", "j4")
	worktest.Drain(t, b.store, worktest.Echo)
	run.ends(t, 0)
	wantText(t, run.out.String(), "4 of 4 tasks have ended: succeeded 4\n")
}

// A submission that opens nothing leaves no job; one with tasks that were there before has the others, and waits for all.
func TestJobOfKnownTasks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	submit := []string{"submit", "--program", "p", "--array", "1-2", "--key", "k{}"}
	b.must(submit...)
	wantText(t, b.must(submit...), "2 were there already by their keys: 1-2")
	if object := b.value(0, submit...).(map[string]any); object["job"] != nil {
		t.Errorf("a job without tasks: %v", object)
	}
	if list := b.value(0, "jobs").([]any); len(list) != 1 {
		t.Errorf("jobs: %v", list)
	}
	run := b.start(t.Context(), "submit", "--program", "p", "--array", "1-3", "--key", "k{}", "--wait")
	run.says(t, run.out, "opened 1 tasks: 3, as job j4")
	worktest.Drain(t, b.store, worktest.Echo)
	run.ends(t, 0)
	wantText(t, run.out.String(), "3 of 3 tasks have ended: succeeded 3\n")
	if object := b.value(0, "submit", "--program", "p", "--array", "5-6").(map[string]any); object["job"] != 5.0 {
		t.Errorf("JSON: %v", object)
	}
}

// The tasks of one task's job are of that task in the verbs that show one.
func TestLastOfOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must("submit", "--program", "p", "--", "x")
	worktest.Drain(t, b.store, worktest.Echo)
	if got, want := b.must("show", "last"), b.must("show", "1"); got != want {
		t.Errorf("show last is\n%s\nwant\n%s", got, want)
	}
	if got := b.must("logs", "last"); got != "x\n" {
		t.Errorf("logs last is %q", got)
	}
	if found, err := b.store.Task(t.Context(), 1); err != nil || found.State != statemachine.Archived {
		t.Errorf("%+v, %v", found, err)
	}
}

// A verb that changes many tasks says how far it is: of how many, where they are named or are those of a job.
func TestBulkProgress(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	s := &session{cmd: &cobra.Command{Use: "cancel"}, manager: manager.New(b.site(), "tdf-manager", manager.Options{})}
	for _, c := range []struct {
		words  []string
		state  []string
		states []statemachine.State
		want   string
	}{
		{[]string{"j3"}, nil, []statemachine.State{statemachine.Open}, "3/4"},
		{[]string{"j1"}, nil, statemachine.Outcomes(), "3/3"},
		{[]string{"j1"}, []string{"failed"}, statemachine.Outcomes(), "3 tasks"},
		{[]string{"1,5-8"}, nil, nil, "3/5"},
		{[]string{"all"}, nil, nil, "3 tasks"},
	} {
		v := &bulkVerb{change: &bulk.Change{States: c.states}}
		v.choice.Tasks, v.choice.States = c.words, c.state
		sel, err := v.choice.Selection(nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := v.progress(t.Context(), s, sel)
		if err != nil {
			t.Fatal(err)
		}
		if p.done.Add(3); !slices.Equal(p.lines(false), []string{c.want}) {
			t.Errorf("%s of %q: %q, want %q", c.words, c.state, p.lines(false), c.want)
		}
	}
}

// Verbs about plans take a job too. It is shown at a cost that does not grow with its tasks, and there is nothing to draw.
func TestJobAsPlan(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	wantText(t, b.must("plan", "show", "1"), "job", "j1", "sweep")
	for _, verb := range []string{"hold", "resume", "cancel"} {
		b.must("plan", verb, "j3")
	}
	if r := b.run("plan", "show", "j1", "--graph", "text"); r.code != 2 || !strings.Contains(r.err, "tdf-manager ls j1") {
		t.Errorf("drawn: %+v", r)
	}
	b.srv.Do(t, "SET", b.ns+":plans", "no set")
	if r := b.run("plan", "show", "last"); r.code != 1 || !strings.Contains(r.err, "WRONGTYPE") {
		t.Errorf("the last of damaged plans: %+v", r)
	}
}

// A wait for a job whose submission has not ended says so: where all that was opened has ended, and where nothing runs
// before.
func TestWaitForAJobThatIsOpening(t *testing.T) {
	t.Parallel()
	for _, spec := range []task.PlanSpec{{}, {Window: 1}} {
		b := newBench(t)
		spec.Job, spec.RequestKey = true, "k"
		id, err := b.store.NewPlan(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.store.Open(t.Context(), tasks.OpenRequest{Key: "k", Specs: []task.Definition{storetest.Spec()}, Plan: id}); err != nil {
			t.Fatal(err)
		}
		worktest.Drain(t, b.store, worktest.Echo)
		b.srv.Do(t, "HSET", b.ns+":plan:1", "created", "1000")
		run := b.start(t.Context(), "wait", "j1")
		run.says(t, run.err, "nothing of j1 runs, and its submission has not ended")
		b.must("plan", "cancel", "j1")
		storetest.AdvancePlans(t, b.store, 100, true)
		run.ends(t, map[bool]int{true: 1, false: 0}[spec.Window > 0])
	}
}

// A plan that has failed because steps could not be opened was not cancelled.
func TestStateOfAJob(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]task.Plan{
		"failed":    {State: task.PlanFailed, Total: 1, Ended: map[statemachine.State]int64{statemachine.Succeeded: 1}},
		"cancelled": {State: task.PlanFailed, Total: 1, Ended: map[statemachine.State]int64{statemachine.Cancelled: 1}},
	} {
		if got := (&answer.Job{Plan: p}).Word(); got != want {
			t.Errorf("%+v is %s, want %s", p, got, want)
		}
	}
}

// What it has noted is not all where others failed before a retry of the first five, or servers of an older release ended tasks.
func TestJobFailuresAreLookedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must("submit", "--program", "p", "--source", "http://h/p.zip", "--pin", "off", "--array", "1-2")
	worktest.Drain(t, b.store, worktest.Fail)
	b.srv.Do(t, "HSET", b.ns+":plan:1", "failures", "2")
	if all := b.value(1, "wait", "j1").(map[string]any)["first_unsuccessful"].([]any); len(all) != 2 {
		t.Errorf("first failures: %v", all)
	}
}
