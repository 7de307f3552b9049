// Package manager opens tasks and handles their outcomes. A project's own program
// imports it to run work on TDF's workers.
//
// A Manager is made from a tdf.Site. Submit and SubmitAll open tasks, Run
// gives the ended tasks it is to handle to handlers and archives them, Ended gives some tasks as they end
// and archives nothing, Wait says how far they are, and Task reads one with all its rounds. Cancel, Hold, Unhold, Retry
// and Replay change existing tasks, Select and Page find them; AddQueue, SetQueue and SetNode
// limit what runs where. All durable state is in Redis: a manager may end and start
// again at any time.
//
//	site, err := tdf.Connect(ctx, tdf.Config{Addr: "localhost:6379", Namespace: "numbers"})
//	if err != nil {
//		return err
//	}
//	defer site.Close()
//	m := manager.New(site, "adder", manager.Options{})
//	opened, err := m.Submit(ctx, task.Spec{Program: "sum", Source: "rsync:run.sh", Input: "1 2 3"})
//
// Handlers for the outcomes of tasks are called before a task is
// archived and therefore at least once, by one manager at a time ([Handler]).
package manager
