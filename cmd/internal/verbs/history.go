package verbs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func (a *app) history() *cobra.Command {
	return withJSON(&cobra.Command{
		Use: "history ID", Short: "Show the recorded events of a task", Args: cobra.ExactArgs(1),
		Long: "history prints the events of a task: the time, the number of the change in the namespace, the event,\n" +
			"the states before and after, the round, and who caused it. Redis keeps only the newest events of the\n" +
			"namespace ([server] events), and none of clients in other languages. The log of the task (show) goes\n" +
			"back to its creation.",
		Example: "  tdf-manager history 7\n  tdf-manager history last --json",
		RunE: a.withManager(func(ctx context.Context, s *session) error {
			id, err := bulk.ParseID(s.args[0], bulk.Newest(ctx, s.manager))
			if err != nil {
				return err
			}
			h, err := answer.History(ctx, s.manager, id)
			if err != nil {
				return err
			}
			return s.result(h, func() { printHistory(s.out, h) })
		}),
	})
}

func printHistory(out *cli.Output, h *answer.Events) {
	if len(h.Events) == 0 {
		if h.From == 0 {
			out.Printf("no events are recorded\n")
		} else {
			out.Printf("no events of task %d are recorded, from change %d of the namespace on\n", h.ID, h.From)
		}
		return
	}
	if first := &h.Events[0]; first.Event.Event != statemachine.Create {
		out.Printf("... what came before change %d is not recorded\n", first.Seq)
	}
	for i := range h.Events {
		e := &h.Events[i].Event
		by := string(e.Actor)
		if e.By != "" {
			by += " " + e.By
		}
		out.Printf("%s  #%-8d %-12s %-26s round %d  %s\n",
			moment(task.Stamp(e.At)), e.Seq, cli.Safe(string(e.Event)), stepOf(e), e.Round, cli.Safe(by))
	}
}

// stepOf is where the task went from and to.
func stepOf(e *task.Event) string {
	from, to := e.From, e.To
	if from == statemachine.None {
		from = "-"
	}
	if to == statemachine.None {
		to = "-"
	}
	return cli.Safe(fmt.Sprintf("%s -> %s", from, to))
}
