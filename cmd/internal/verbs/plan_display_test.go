package verbs

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/ops/planview"
	"github.com/tdf-go/tdf/internal/testkit/daemontest"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// screen is what stands on a terminal on which such a text was written: it knows the sequences that the display uses.
func screen(text string) []string {
	lines, row, column := []string{""}, 0, 0
	for text != "" {
		switch {
		case strings.HasPrefix(text, "\x1b[J"):
			lines = lines[:row+1]
			lines[row] = string([]rune(lines[row])[:column])
			text = text[3:]
			continue
		case strings.HasPrefix(text, "\x1b[") && len(text) > 3 && text[3] == 'A':
			row -= int(text[2] - '0')
			text = text[4:]
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		switch r {
		case '\r':
			column = 0
		case '\n':
			row, column = row+1, 0
			if row == len(lines) {
				lines = append(lines, "")
			}
		default:
			line := []rune(lines[row])
			lines[row] = string(line[:min(column, len(line))]) + string(r)
			column++
		}
	}
	return lines
}

// TestPaint draws lines in the place of those before, however many these were.
func TestPaint(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	d := &display{out: &out}
	for _, text := range []string{"one", "first\nsecond\nthird", "a\nb", "a much longer line\n" + strings.Repeat("x", 100) + "\n3", "done"} {
		lines := strings.Split(text, "\n")
		d.paint(lines)
		if len(lines) > 1 && len(lines[1]) == 100 {
			lines[1] = strings.Repeat("x", 78) + "…"
		}
		if got := screen(out.String()); strings.Join(got, "\n") != strings.Join(lines, "\n") {
			t.Errorf("the screen shows %q, want %q", got, lines)
		}
	}
	before := out.Len()
	if d.paint([]string{"done"}); out.Len() != before {
		t.Error("what stands there already is drawn again")
	}
}

// ahead is an outlook over tasks in these states, with what each needs.
func aheadOf(now statemachine.Time, tasks ...*planview.Task) *outlook {
	for i, t := range tasks {
		t.ID, t.Program = int64(i+1), "p"
	}
	return &outlook{planview.Look(tasks, task.FailureCancels, now, nil)}
}

func TestPlanLines(t *testing.T) {
	t.Parallel()
	const second = statemachine.Time(statemachine.Second)
	needs := func(n int64) []task.Need { return []task.Need{{Task: n}} }
	tasks := []*planview.Task{
		{Step: "fetch", End: statemachine.Succeeded, Began: 1 * second, Executed: 61 * second},
		{Step: "work[1]", End: statemachine.Running, Began: 61 * second, Needs: needs(1)},
		{Step: "work[2]", End: statemachine.Open, Needs: needs(1)},
		{Step: "join", End: statemachine.Blocked, Needs: needs(3)},
	}
	p := &task.Plan{Total: 4, Left: 3, State: task.PlanReady, Ended: map[statemachine.State]int64{statemachine.Succeeded: 1}}
	o := aheadOf(71*second, tasks...)
	want := "1/4  succeeded 1  running 1  open 1  blocked 1; running: work[1] for 10 s; " +
		"about 3 min left, critical path: work[2] -> join (2 min)" // 50 s, 60 s and 60 s one after the other
	if got := strings.Join(planLines(p, o, false), "; "); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	lines := planLines(p, o, true)
	if len(lines) != 3 || !strings.Contains(lines[0], "25%") || !strings.Contains(lines[0], "(1/4)") {
		t.Errorf("%q", lines)
	}
	if got := strings.Join(planLines(p, nil, false), "; "); got != "1/4  succeeded 1" {
		t.Errorf("%q", got)
	}
	if got := planLines(&task.Plan{State: task.PlanBuilding}, nil, true); len(got) != 1 || got[0] != "building" {
		t.Errorf("%q", got)
	}
	p.Growing = 1
	if got := strings.Join(planLines(p, nil, false), "; "); got != "1/4  succeeded 1  1 step is not opened yet" {
		t.Errorf("%q", got)
	}
}

// TestOutlookUnknown is about times that nobody can know.
func TestOutlookUnknown(t *testing.T) {
	t.Parallel()
	first := &planview.Task{End: statemachine.Open}
	if got := aheadOf(9, first).String(); got != "unknown time left (none has succeeded yet), critical path: task 1" {
		t.Error(got)
	}
	long := []*planview.Task{{Step: "s[1]", End: statemachine.Succeeded, Began: 1, Executed: 3_600_000_001}}
	for i := range 8 {
		long = append(long, &planview.Task{End: statemachine.Blocked, Needs: []task.Need{{Task: int64(i + 1)}}})
	}
	want := "unknown time left (no worker is ready), critical path: task 2 -> task 3 -> task 4 -> ... 3 more ... -> task 8 -> task 9 (8 h 0 min)"
	if got := aheadOf(9, long...).String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestRoughly(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"less than 1 s": 999 * time.Millisecond, "1 s": time.Second, "59 s": 59*time.Second + 900*time.Millisecond, "1 min": time.Minute,
		"2 min": 90 * time.Second, "60 min": time.Hour - 1, "1 h 0 min": time.Hour, "47 h 59 min": 48*time.Hour - 1, "3 days 2 h": 74 * time.Hour,
	} {
		if got := roughly(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

// TestPlanRunOnATerminal is about what a person sees.
func TestPlanRunOnATerminal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	crew := b.planCrew()
	p := hosttest.OpenTerminal(t)
	file, code := planFile(t, gated), make(chan int, 1)
	go func() {
		code <- executeTo(t.Context(), "", &daemontest.Output{}, p.Slave, "--config", b.file, "plan", "run", file)
	}()
	p.Await(t, "running 2  open 1  blocked 1")
	p.Await(t, "running: work[")
	p.Await(t, "left, critical path: work[")
	crew.open()
	if got := wait.Receive(t, time.Minute, code, "run does not end"); got != 0 {
		t.Errorf("ended with %d", got)
	}
	p.Await(t, "succeeded 5\r\n")
	text := strings.ReplaceAll(p.Text(), "\r\n", "\n")
	if got := screen(text); len(got) != 2 || !strings.Contains(got[0], "100%") || got[1] != "" {
		t.Errorf("the terminal shows %q", got)
	}
}

// TestPlanRunLines is about a run without a terminal: a line now and then.
func TestPlanRunLines(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.planCrew()
	s := b.session()
	b.must("plan", "submit", planFile(t, gated))
	out := &daemontest.Output{}
	progress := &planProgress{s: s}
	d := &display{of: progress, out: out, stop: func() {}}
	wait.Eventually(t, time.Minute, func() bool {
		plan, err := s.manager.Plan(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		progress.plan.Store(plan)
		progress.look(t.Context())
		d.draw()
		return strings.Contains(out.String(), "\n1/5  succeeded 1  running 2  open 1  blocked 1; running: work[")
	}, "no such line")
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("escapes: %q", out)
	}
	d.close()
}
