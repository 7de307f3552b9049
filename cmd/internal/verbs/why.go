package verbs

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/manager"
)

func (a *app) why() *cobra.Command {
	var queue string
	cmd := withJSON(&cobra.Command{
		Use: "why ID | why --queue NAME", Short: "Say why a task waits, or how it ended, and the remedy",
		Long: "why explains the state of a task: what keeps it from being claimed, how its round goes, or by which\n" +
			"rule it ended. Below each reason is its remedy. Only reasons marked with * keep the task from\n" +
			"running. With --queue it explains why the tasks of a queue wait. A step of a plan that is not opened\n" +
			"yet has no task: see plan show.",
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

// explain asks for the reasons, of the task that the argument names if no queue is named.
func (s *session) explain(ctx context.Context, queue string) (*answer.Explained, error) {
	if len(s.args) == 0 {
		found, err := answer.WhyQueue(ctx, s.manager, queue)
		return found, s.unknownQueue(ctx, queue, err)
	}
	id, err := bulk.ParseID(s.args[0], bulk.Newest(ctx, s.manager))
	if err != nil {
		return nil, err
	}
	return answer.Why(ctx, s.manager, id)
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

// remedies say how to make a change, by object and attribute, or by the object alone: by a command where there is one. Lists of a
// worker's configuration (labels, resources, classes) hold more than what is missing.
var remedies = map[string]string{
	"task.hold":         "tdf-manager release NAME",
	"task.needs":        "wait until they have ended; tdf-manager retry brings back one that failed",
	"task.fail_on":      "submit it again with --fail-on VALUE, which accepts text on stderr",
	"task.end_before":   "submit it again with a later --end-before",
	"task.resources":    "submit it again with less of --resource",
	"task.before":       "it comes in its turn; a higher --priority comes sooner",
	"task.listed":       "start a server: tdf-server server.cfg",
	"time.now":          "wait until then",
	"queue":             "tdf-manager queue set NAME ATTRIBUTE=VALUE",
	"queue.paused":      "tdf-manager queue resume NAME",
	"node":              "tdf-manager node set NAME ATTRIBUTE=VALUE",
	"node.free":         "wait until VALUE is free on NAME",
	"server.quarantine": "set [server] quarantine = VALUE",
	"plan":              "submit the plan again",
	"plan.hold":         "tdf-manager plan resume NAME",
	"plan.after":        "wait until VALUE has ended; tdf-manager plan resume NAME would begin without it",
	"plan.retry":        "tdf-manager plan retry NAME",
	"plan.window":       "wait until one of them has ended",
	"plan.ready": "the program that builds the plan marks it ready; if it is gone, submit the plan again with its --key, " +
		"or tdf-manager plan cancel NAME",
	"worker":               "put VALUE into [worker] ATTRIBUTE of worker NAME, and start it again",
	"worker.start":         "start a worker with: VALUE",
	"worker.state":         "tdf-manager worker undrain NAME, or start it again",
	"worker.reason":        "mend what it says on its host",
	"worker.free_slots":    "wait for a slot, or give it more slots",
	"worker.handlers":      "give worker NAME a handler of the name VALUE, or start a worker that runs programs",
	"worker.handlers_only": "start a worker that runs programs, or let worker NAME run them too; submit tasks of a handler with --class",
	"worker.commands":      "set [worker] commands = VALUE for worker NAME, and start it again",
	"worker.memory_max":    "set [worker] memory_max = VALUE, or to the most that a round may have, for worker NAME, and start it again",
	"worker.pids_max":      "set [worker] pids_max = VALUE, or to the most that a round may have, for worker NAME, and start it again",
	"worker.env":           "set [worker] env = VALUE for worker NAME, and start it again",
}

// remedyText says how to make a change. It is empty for none.
func (s *session) remedyText(r *manager.Remedy) string {
	if r.Object == "" {
		return ""
	}
	text := cmp.Or(remedies[r.Object+"."+r.Attribute], remedies[r.Object], r.Object+" NAME: ATTRIBUTE = VALUE")
	return strings.NewReplacer("NAME", r.Name, "ATTRIBUTE", r.Attribute, "VALUE", r.Value).Replace(s.named(text))
}
