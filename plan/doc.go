// Package plan builds graphs of tasks whose results become arguments, on top of
// package manager.
//
// A program adds tasks, each of which may need others, and marks the plan ready: no
// task runs before. A task starts once all tasks it needs have ended, and gets their
// results in the order of its needs, each as one argument after the words of its
// input.
//
//	p, err := plan.New(ctx, m, "count", plan.OnFailure(task.FailureHolds))
//	if err != nil {
//		return err
//	}
//	left := p.Add(task.Spec{Program: "count", Source: source, Input: "left.txt"})
//	right := p.Add(task.Spec{Program: "count", Source: source, Input: "right.txt"})
//	total := p.Add(task.Spec{Program: "add", Source: source}, left, right)
//	if err := p.Ready(ctx); err != nil {
//		return err
//	}
//	if _, err := p.Wait(ctx); err != nil {
//		return err
//	}
//	sum, err := p.Result(ctx, total)
//
// Add keeps tasks in memory; Send, and Ready, which sends first, add them to the
// plan. A plan that is ready accepts more tasks, also from one of its own tasks,
// which opens the plan by its id ([Load]); their needs may have ended already. A plan
// that is over accepts none.
//
// A crash loses only the tasks in memory, those not sent. A program that starts
// again, makes the plan with the same [WithRequestKey] and sends the same tasks
// continues the first plan and opens nothing twice.
package plan
