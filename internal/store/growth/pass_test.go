package growth_test

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/growth"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func (s *scene) want(from int64, want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.tasks(from)); diff != "" {
		s.t.Errorf("tasks, -want +got:\n%s", diff)
	}
}

func (s *scene) fates(want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.status()); diff != "" {
		s.t.Errorf("steps, -want +got:\n%s", diff)
	}
}

// Lines become tasks, and their results come together in the order of the lines.
func TestLines(t *testing.T) {
	t.Parallel()
	s := begin(t, "", template(), "list")
	s.state(task.PlanReady, 1, 2)
	s.fates("count waits: waits for the lines of step list (task 1)", "report waits: waits for step count")
	s.end(1, "a b\n\n c\n", "")
	s.want(2, "2 count[1] (n a b) <- ", "3 count[2] (n ) <- ", "4 count[3] (n  c) <- ", "5 report (1 2) <- 2 3 4 1")
	s.state(task.PlanReady, 5, 0)
	for id := int64(4); id > 1; id-- {
		s.end(id, "out", "")
	}
	s.end(5, "", "")
	s.state(task.PlanCompleted, 5, 0)
	if left := s.Raw.Exists(t.Context(), s.Key("growth:1")).Val(); left != 0 {
		t.Error("the steps are kept after they were opened")
	}
}

// A result without lines is a step without tasks: what needs it runs, with nothing from it.
func TestNoLines(t *testing.T) {
	t.Parallel()
	s := begin(t, "", template(), "list")
	s.end(1, "\n", "")
	s.want(2, "2 report (1 2) <- 1")
	s.end(2, "", "")
	s.state(task.PlanCompleted, 2, 0)
}

// A step may be repeated for the lines of one that is opened later itself.
func TestLinesOfLater(t *testing.T) {
	t.Parallel()
	tpl := template()
	last := spec("last")
	storetest.SetArgv(&last, "x", growth.Item+"/"+growth.Item)
	tpl.Steps[1].Tasks[0].Grows = true
	tpl.Steps = append(tpl.Steps, growth.Step{Name: "last", Lines: "report", Needs: []task.StepNeed{{Step: "count", On: task.NeedsAny}}, Tasks: []task.Definition{last}})
	s := begin(t, "", tpl, "list")
	s.end(1, "a", "")
	s.state(task.PlanReady, 3, 1)
	s.end(2, "", "")
	s.fates("count opened: all 1 tasks are opened", "report opened: all 1 tasks are opened", "last waits: waits for the lines of step report (task 3)")
	s.end(3, "p\nq", "")
	s.want(4, "4 last[1] (1 2) <- 2:any", "5 last[2] (1 2) <- 2:any")
	if argv := s.Task(t, 5).Fields["argv"]; argv != `["x","q/q"]` {
		t.Errorf("argv %q", argv)
	}
	s.end(4, "", "")
	s.end(5, "", "")
	s.state(task.PlanCompleted, 5, 0)
}

// What hangs on a result that never comes is not opened; the retry of that task brings it.
func TestSourceFails(t *testing.T) {
	t.Parallel()
	for _, on := range []task.OnFailure{task.FailureCancels, task.FailureContinues} {
		t.Run(string(on), func(t *testing.T) {
			t.Parallel()
			s := begin(t, on, template(), "list", "other")
			s.end(1, "", "no")
			s.fates("count doomed: never opens: task 1, which it hangs on, did not succeed", map[task.OnFailure]string{
				task.FailureCancels:   "report doomed: never opens: task 1, which it hangs on, did not succeed",
				task.FailureContinues: "report opened: all 1 tasks are opened",
			}[on])
			s.end(2, "", "")
			if on == task.FailureContinues {
				s.want(3, "3 report (1 2) <- 1")
				s.end(3, "", "")
			}
			p, err := s.Store.Plan(t.Context(), s.plan)
			if err != nil || p.State != task.PlanFailed {
				t.Fatalf("%+v, %v", p, err)
			}
			again := s.retry(1)
			s.state(task.PlanReady, p.Total, p.Growing)
			s.end(again, "a", "")
			s.want(again+1, map[task.OnFailure][]string{
				task.FailureCancels:   {"4 count[1] (n a) <- ", "5 report (1 2) <- 4 1"},
				task.FailureContinues: {"5 count[1] (n a) <- "},
			}[on]...)
			s.end(again+1, "", "")
			if on == task.FailureCancels {
				s.end(again+2, "", "")
			}
			s.state(task.PlanCompleted, 4, 0)
		})
	}
}

// In a plan that holds on a failure, a result that does not come holds it; resumed, it ends without what hangs on that.
func TestSourceHolds(t *testing.T) {
	t.Parallel()
	s := begin(t, task.FailureHolds, template(), "list")
	s.end(1, "", "no")
	if p := s.state(task.PlanHeld, 1, 2); p.HeldBy != "1" {
		t.Errorf("held by %q", p.HeldBy)
	}
	waits := []string{"count waits: waits for the lines of step list (task 1)", "report waits: waits for step count"}
	s.fates(waits...)
	s.steer(task.PlanReady)
	s.drain()
	s.state(task.PlanFailed, 1, 2)
	s.fates(waits...)
	again := s.retry(1)
	s.state(task.PlanReady, 1, 2)
	s.finish(again, "", "no")
	s.state(task.PlanHeld, 1, 2)
	s.drain()
	again = s.retry(again)
	s.end(again, "a\nb", "")
	s.state(task.PlanReady, 4, 0)
}

// A step that was to run on a failure only, or for the lines of one that was skipped, is skipped, which is no failure.
func TestSkipped(t *testing.T) {
	t.Parallel()
	tpl := template()
	mend := spec("mend")
	mend.Grows = true
	tpl.Steps = append(tpl.Steps,
		growth.Step{Name: "mend", Needs: []task.StepNeed{{Step: "report", On: task.NeedsFailure}}, Tasks: []task.Definition{mend}},
		growth.Step{Name: "each", Lines: "mend", Tasks: []task.Definition{spec("each")}},
		growth.Step{Name: "after", Needs: []task.StepNeed{{Step: "each"}}, Tasks: []task.Definition{spec("after")}},
		growth.Step{Name: "always", Needs: []task.StepNeed{{Step: "after", On: task.NeedsAny}}, Tasks: []task.Definition{spec("always")}},
	)
	s := begin(t, "", tpl, "list")
	s.end(1, "", "")
	s.end(2, "", "") // report
	s.state(task.PlanReady, 4, 0)
	s.want(3, "3 mend (1 2) <- 2:failure", "4 always (1 2) <- ")
	s.end(4, "", "")
	if p := s.state(task.PlanCompleted, 4, 0); p.Skipped != 1 {
		t.Errorf("%+v", p)
	}
}

// A held plan opens nothing, also in the middle of a step, and goes on where it was. The lines are those that were begun with.
func TestHeldInTheMiddle(t *testing.T) {
	t.Parallel()
	s := begin(t, "", template(), "list")
	lines := strings.Repeat("x\n", 250)
	s.finish(1, lines, "")
	if opened, done, err := growth.Pass(t.Context(), s.Store, s.plan, 1); err != nil || done || opened != 100 {
		t.Fatalf("opened %d, done %v, error %v", opened, done, err)
	}
	s.fates("count due: is being opened: 100 of 250 tasks", "report waits: waits for step count")
	s.steer(task.PlanHeld)
	s.drain()
	s.state(task.PlanHeld, 101, 2)
	again := s.retry(1)
	s.steer(task.PlanReady)
	s.drain()
	s.state(task.PlanReady, 252, 0)
	report := s.Task(t, again+151).Fields
	if report["step"] != "report" || strings.Count(report["needs"], " ") != 250 {
		t.Errorf("%s needs %s", report["step"], report["needs"])
	}
	s.end(again, "other", "")
	s.state(task.PlanReady, 252, 0)
}

// A plan that is called off forgets its steps.
func TestCancelled(t *testing.T) {
	t.Parallel()
	s := begin(t, "", template(), "list")
	s.finish(1, "a", "")
	s.steer(task.PlanCancelled)
	s.drain()
	p := s.state(task.PlanCancelled, 1, 0)
	if left := s.Raw.Exists(t.Context(), s.Key("growth:1"), s.Key("draining")).Val(); left != 0 || p.Over.IsZero() {
		t.Errorf("%d keys are left of %+v", left, p)
	}
}

// What cannot be opened is said, with nothing half made, and can be mended.
func TestTrouble(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		output, want string
		change       func(*growth.Template)
	}{
		"most": {"a\nb\nc", "step count: the result of task 1 has 3 lines, and may have 2", func(tpl *growth.Template) { tpl.Steps[0].Most = 2 }},
		"lines": {strings.Repeat("\n", growth.MaxLines+1), "step count: the result of task 1 has 10001 lines, and may have 10000",
			func(tpl *growth.Template) { tpl.Steps = tpl.Steps[:1] }},
		"fan in": {strings.Repeat("\n", 1000), "step report would need 1001 tasks with the 1000 of step count; a task may need 1000: put steps between that each take some of them", nil},
		"text":   {"a\n\xff", "step count: the result of task 1 is not text in line 2: want UTF-8 without NUL characters", nil},
		"queue":  {"a", "step count: queue \"q\": no such queue", func(tpl *growth.Template) { storetest.Set(&tpl.Steps[0].Tasks[0], "queue", "q") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tpl := template()
			if c.change != nil {
				c.change(tpl)
			}
			s := begin(t, "", tpl, "list")
			s.end(1, c.output, "")
			if p := s.state(task.PlanFailed, 1, int64(len(tpl.Steps))); p.GrowthError != c.want || p.Ended[statemachine.Succeeded] != 1 {
				t.Errorf("%+v", p)
			}
			again := s.retry(1)
			s.end(again, "", "")
			if p, err := s.Store.Plan(t.Context(), s.plan); err != nil || p.State == task.PlanFailed || p.GrowthError != "" || p.Growing != 0 {
				t.Errorf("%+v, error %v", p, err)
			}
		})
	}
}

// A queue that was missing is there: the servers look again when they are told to.
func TestTroubleIsMended(t *testing.T) {
	t.Parallel()
	tpl := template()
	storetest.Set(&tpl.Steps[0].Tasks[0], "queue", "q")
	s := begin(t, "", tpl, "list")
	s.end(1, "a", "")
	s.state(task.PlanFailed, 1, 2)
	if got := s.status()[0]; got != `count due: cannot be opened: step count: queue "q": no such queue` {
		t.Error(got)
	}
	s.Raw.SAdd(t.Context(), s.Key("queues"), "q")
	if again, err := s.Store.RetryGrowth(t.Context(), s.plan); err != nil || !again {
		t.Fatalf("again %v, error %v", again, err)
	}
	s.drain()
	s.state(task.PlanReady, 3, 0)
}

// What cannot be read is a trouble too, and ends the plan.
func TestTemplateIsDamaged(t *testing.T) {
	t.Parallel()
	s := begin(t, "", template(), "list")
	s.Raw.HSet(t.Context(), s.Key("growth:1"), "template", `{"steps":[{"newer":1}]}`)
	s.end(1, "a", "")
	if p := s.state(task.PlanFailed, 1, 2); !strings.HasPrefix(p.GrowthError, growth.ErrTemplate.Error()) {
		t.Errorf("%q", p.GrowthError)
	}
}

// Many servers at once open each task once.
func TestManyServers(t *testing.T) {
	t.Parallel()
	s := begin(t, "", template(), "list")
	var text strings.Builder
	for i := range 350 {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	s.finish(1, text.String(), "")
	var wg sync.WaitGroup
	for range 4 {
		st := s.Dial(t)
		wg.Go(func() {
			for done := false; !done; {
				var err error
				if _, done, err = growth.Pass(t.Context(), st, s.plan, 2); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	s.state(task.PlanReady, 352, 0)
	for i, got := range s.tasks(2)[:350] {
		if want := fmt.Sprintf("%d count[%d] (n line %d) <- ", i+2, i+1, i); got != want {
			t.Fatalf("task %q, want %q", got, want)
		}
	}
}

// A server that dies after any command leaves what another one finishes, each task once.
func TestServerDies(t *testing.T) {
	t.Parallel()
	s := &scene{Space: storetest.New(t), t: t, held: map[int64]tasks.Claimed{}}
	for n := 1; ; n++ {
		s.Anew(t)
		s.begin("", template(), "list")
		s.finish(1, strings.Repeat("x\n", 120), "")
		died := s.dieAfter(n)
		s.drain()
		s.state(task.PlanReady, 122, 0)
		if got := s.tasks(2); !strings.HasPrefix(got[119], "121 count[120] (n x)") || !strings.HasPrefix(got[120], "122 report") {
			t.Fatalf("after command %d: %q", n, got[119:])
		}
		if !died {
			if n < 10 {
				t.Errorf("a pass has only %d commands", n)
			}
			return
		}
	}
}

// dieAfter makes a pass as a server that dies when Redis has carried out its nth command. It reports whether there was one.
func (s *scene) dieAfter(n int) bool {
	s.t.Helper()
	proxy := s.Server.Proxy(s.t)
	host, port, err := net.SplitHostPort(proxy.Addr())
	if err != nil {
		s.t.Fatal(err)
	}
	far := *s.Space
	if far.Where.Port, err = strconv.Atoi(port); err != nil {
		s.t.Fatal(err)
	}
	far.Where.Host = host
	dies, seen := far.Dial(s.t, conn.WithRetries(-1)), 0
	drop := proxy.DropReply(func(args []string) bool {
		if len(args) > 0 && !slices.Contains([]string{"hello", "auth", "select", "client", "ping", "info"}, strings.ToLower(args[0])) {
			seen++
		}
		return seen == n
	})
	_, _, err = growth.Pass(s.t.Context(), dies, s.plan, 10)
	if err != nil && !drop.Happened() {
		s.t.Error(err)
	}
	return drop.Happened()
}
