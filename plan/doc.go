// Package plan builds graphs of tasks whose results become arguments, on top of
// package manager.
//
// A plan is filled with tasks, each of which may need others, and is then marked
// ready: nothing of it runs before. A task starts once all that it needs has
// ended, and gets the results in the order in which it names them, each as one
// argument after the words of its input.
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
// plan. Tasks may be added to a plan that is ready, also by a task that runs, which
// opens the plan by its id ([Open]); what they need may have ended already. A plan
// that is over takes no more.
//
// What does not outlive a crash is in memory only: the tasks not sent. A program
// that begins again, makes the plan with the same [WithRequestKey] and adds and
// sends the same tasks, goes on with the plan of the first time, and opens
// nothing twice.
package plan
