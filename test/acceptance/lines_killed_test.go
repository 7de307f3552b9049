package acceptance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/task"
)

// linesPlan has a step for each line, and one that joins all results.
const linesPlan = `defaults: {max_losses: inf}
steps:
  list: {program: list, source: "%s", input: "104"}
  each: {program: each, source: "%s", foreach: {lines: list}, argv: ["${item}"]}
  join: {program: join, source: "%s", needs: each, args: files}
`

// A plan with a step for lines is submitted and left alone. Servers and workers are killed while its steps are opened and run:
// each line is one task, and their results are joined in order.
func TestLongLinesWhileAllIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.leasing(t)
	list, each, join := w.script(t, "list", `seq "$1" | sed 's/^/line /'`), w.script(t, "each", `echo "<$1>"`),
		w.script(t, "join", `cd "$TDF_ARGS_DIR" && ls | sort -n | while read f; do cat "$f"; done`)
	file := w.file(t, "lines.yaml", fmt.Sprintf(linesPlan, list.Source, each.Source, join.Source), 0o644)
	w.manage(t, 0, "plan", "submit", file)
	worker := w.worker(t, "w", "slots=2")
	plan := func() *task.Plan {
		p, err := w.Store.Plan(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for i, until := range []struct {
		what string
		is   func(*task.Plan) bool
	}{
		{"the lines are known", func(p *task.Plan) bool { return p.Total-p.Left > 0 }},
		{"tasks are opened", func(p *task.Plan) bool { return p.Total > 1 }},
		{"some have ended", func(p *task.Plan) bool { return p.Total-p.Left > 20 }},
	} {
		wait.Eventually(t, 5*patience, func() bool { return until.is(plan()) }, "not: %s", until.what)
		w.kill(t, server)
		server = w.serverWith(t, fmt.Sprint("server-", i), shortLeaseSet)
	}
	w.kill(t, worker)
	w.worker(t, "v", "slots=2")
	wait.Eventually(t, 5*patience, func() bool { return plan().State.Terminal() }, "the plan is not over")
	if p := plan(); p.State != task.PlanCompleted || p.Total != 106 || p.Growing != 0 {
		t.Fatalf("%+v", p)
	}
	var want strings.Builder
	for i := range 104 {
		fmt.Fprintf(&want, "<line %d>\n", i+1)
	}
	ids, err := w.Store.PlanTasks(t.Context(), 1, 105, 1)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := w.Store.Results(t.Context(), ids); err != nil || strings.ReplaceAll(r[0].Text, "><", ">\n<")+"\n" != want.String() {
		t.Errorf("error %v, joined:\n%s", err, r[0].Text)
	}
	w.sound(t)
}
