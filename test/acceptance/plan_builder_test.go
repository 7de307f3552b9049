package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/task"
)

// planBuilder is the first argument that makes the test binary a manager that builds
// a plan; see runBuilder.
const planBuilder = "plan-builder"

// recipe is a plan as a builder is told to make it, in a file. Made again, it is the
// same plan.
type recipe struct {
	Name    string // of the plan, and its request key
	Program task.Spec
	Portion int // tasks to send at a time
	Pace    time.Duration
	Steps   []recipeStep
}

// recipeStep is a task: its words, and the places of those that it needs.
type recipeStep struct {
	Argv  []string
	Needs []int
	// Skipped says that it needs the failure of the others, and so never runs.
	Skipped bool
}

// build makes the plan ready, and says how far it is; nothing runs before.
func (r *recipe) build(ctx context.Context, m *manager.Manager, says io.Writer) (*plan.Plan, []*plan.Task, error) {
	p, err := plan.New(ctx, m, r.Name, plan.WithRequestKey(r.Name))
	if err != nil {
		return nil, nil, err
	}
	fmt.Fprintln(says, "plan", p.ID())
	tasks := make([]*plan.Task, len(r.Steps))
	for i, step := range r.Steps {
		spec := r.Program
		spec.Argv = step.Argv
		deps := make([]plan.Dep, len(step.Needs))
		for j, k := range step.Needs {
			if deps[j] = tasks[k]; step.Skipped {
				deps[j] = plan.Failure(tasks[k])
			}
		}
		tasks[i] = p.Add(spec, deps...)
		if (i+1)%r.Portion != 0 {
			continue
		}
		if err := p.Send(ctx); err != nil {
			return nil, nil, err
		}
		fmt.Fprintln(says, "sent", i+1, ".")
		<-time.After(r.Pace)
	}
	err = p.Ready(ctx)
	fmt.Fprintln(says, "ready")
	return p, tasks, err
}

// runBuilder builds the plan of a recipe, and waits until it is over.
func runBuilder(cfg, file string) error {
	ctx := context.Background()
	var r recipe
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return err
	}
	site, err := connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = site.Close() }()
	p, _, err := r.build(ctx, manager.New(site, "builder", manager.Options{}), os.Stdout)
	if err != nil {
		return err
	}
	status, err := p.Wait(ctx)
	fmt.Fprintln(os.Stdout, "over", status.State)
	return err
}

// builder is a manager that builds the plan.
func (w *world) builder(t *testing.T, r *recipe) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exec.Command(self, planBuilder, w.cfg, w.file(t, r.Name+"/recipe", string(text), 0o600))
}
