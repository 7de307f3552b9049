package main

import (
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
)

// build adds the tasks to a plan, in the order of their numbers.
func build(p *plan.Plan, o options) []*plan.Task {
	chance := rand.New(rand.NewPCG(o.seed, 0))
	tasks := make([]*plan.Task, o.tasks)
	for n := range tasks {
		var deps []plan.Dep
		var wanted []string
		if n >= o.needs {
			for _, k := range chance.Perm(n)[:o.needs] {
				deps, wanted = append(deps, tasks[k]), append(wanted, strconv.Itoa(k))
			}
		}
		// A word must not be empty: a leading - stands for nothing.
		input := strconv.Itoa(n) + " -" + strings.Join(wanted, ",")
		tasks[n] = p.Add(manager.Spec{Program: "plan", Source: "rsync:run.sh", Input: input}, deps...)
	}
	return tasks
}
