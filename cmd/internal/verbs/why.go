package verbs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

func (a *app) why() *cobra.Command {
	var queue string
	cmd := withJSON(&cobra.Command{
		Use: "why ID | why --queue NAME", Short: "Say why a task waits, or how it ended, and the remedy",
		Long: "why says, for a task in any state, why it is there: what keeps it from being claimed, how its round goes,\n" +
			"or by which rule it ended. Below each reason is its remedy. A reason marked with * alone keeps\n" +
			"the task from running. With --queue it says what keeps the tasks of a queue. A step of a plan that\n" +
			"has not been opened has no task yet: plan show says what it waits for.",
		Example: "  tdf-manager why 7\n  tdf-manager why last --json\n  tdf-manager why --queue nightly",
		Args:    cobra.MaximumNArgs(1),
		RunE: a.withManager(func(ctx context.Context, s *session) error {
			if s.cmd.Flags().Changed("queue") == (len(s.args) == 1) {
				return cli.Usagef("write the id of one task, or --queue NAME")
			}
			found, err := s.explain(ctx, queue)
			if err != nil {
				return err
			}
			return s.result(found, func() { printReasons(s, found.Reasons) })
		}),
	})
	cmd.Flags().StringVar(&queue, "queue", "", "explain this queue, and not a task")
	return cmd
}

// explained is why a task, or what waits in a queue, does not run.
type explained struct {
	ID      int64               `json:"id,omitempty"`
	Queue   string              `json:"queue,omitempty"`
	Blocked bool                `json:"blocked"`
	Reasons manager.Explanation `json:"reasons"`
}

// explain asks for the reasons, of the task that the argument names if no queue is named.
func (s *session) explain(ctx context.Context, queue string) (found explained, err error) {
	var reasons manager.Explanation
	if len(s.args) == 0 {
		found.Queue = queue
		reasons, err = s.manager.WhyQueue(ctx, queue)
		err = s.unknownQueue(ctx, queue, err)
	} else if found.ID, err = manager.ParseID(s.args[0], s.manager.Newest(ctx)); err == nil {
		reasons, err = s.manager.Why(ctx, found.ID)
	}
	found.Blocked, found.Reasons = reasons.Blocked(), jsonList(reasons)
	return found, err
}

func printReasons(s *session, reasons manager.Explanation) {
	for i := range reasons {
		r := &reasons[i]
		s.printf("%s %s\n", map[bool]string{true: "*", false: " "}[r.Blocks], cli.Safe(r.Text))
		if change := s.remedyText(&r.Change); change != "" {
			s.printf("    -> %s\n", cli.Safe(change))
		}
	}
}

// remedyText says how to make a change: by a command where there is one. It is empty for none.
func (s *session) remedyText(r *manager.Remedy) string {
	switch r.Object {
	case "":
		return ""
	case "plan":
		return s.planText(r)
	case workerField:
		return s.workerText(r)
	}
	switch r.Object + "." + r.Attribute {
	case "task.hold":
		return s.command("release %s", r.Name)
	case "task.needs":
		return "wait until they have ended; " + s.command("retry") + " brings back one that failed"
	case "queue.paused":
		return s.command("queue resume %s", r.Name)
	case "task.end_before":
		return "submit it again with a later --end-before"
	case "task.resources":
		return "submit it again with less of --resource"
	case "task.before":
		return "it comes in its turn; a higher --priority comes sooner"
	case "time.now":
		return "wait until then"
	case "task.listed":
		return "start a server: " + s.named("tdf-server") + " server.cfg"
	case "node.free":
		return "wait until " + r.Value + " is free on " + r.Name
	case "server.quarantine":
		return "set [server] quarantine = " + r.Value
	}
	return s.settingText(r)
}

// planText is about plans.
func (s *session) planText(r *manager.Remedy) string {
	switch r.Attribute {
	case "hold":
		return s.command("plan resume %s", r.Name)
	case "retry":
		return s.command("plan retry %s", r.Name)
	case "ready":
		return "the program that builds the plan marks it ready; if it is gone, submit the plan again with its --key, " +
			"or " + s.command("plan cancel %s", r.Name)
	default:
		return "submit the plan again"
	}
}

// settingText is about attributes that are set by their own names.
func (s *session) settingText(r *manager.Remedy) string {
	switch r.Object {
	case queueField, nodeField:
		return s.command("%s set %s %s=%s", r.Object, r.Name, r.Attribute, r.Value)
	default:
		return fmt.Sprintf("%s %s: %s = %s", r.Object, r.Name, r.Attribute, r.Value)
	}
}

// workerText is about workers and their configuration, where lists (labels, resources,
// classes) hold more than what is missing.
func (s *session) workerText(r *manager.Remedy) string {
	switch r.Attribute {
	case "start":
		return "start a worker with: " + r.Value
	case "state":
		return s.command("worker undrain %s", r.Name) + ", or start it again"
	case "reason":
		return "mend what it says on its host"
	case "free_slots":
		return "wait for a slot, or give it more slots"
	case "handlers":
		return fmt.Sprintf("give worker %s a handler of the name %s, or start a worker that runs programs", r.Name, r.Value)
	case envField:
		return fmt.Sprintf("set [worker] env = %s for worker %s, and start it again", r.Value, r.Name)
	}
	return fmt.Sprintf("put %s into [worker] %s of worker %s, and start it again", r.Value, r.Attribute, r.Name)
}
