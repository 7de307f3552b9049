package verbs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/internal/store"
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
			h, err := readHistory(ctx, s.store, id)
			if err != nil {
				return err
			}
			return s.result(h, func() { h.print(s.out) })
		}),
	})
}

// taskHistory are the events of one task.
type taskHistory struct {
	ID int64 `json:"id"`
	// From is the number of the oldest change of the namespace that is recorded.
	From   int64         `json:"from"`
	Events []eventObject `json:"events"`
}

// eventObject is an event as it is printed: the time is in seconds, as Redis has it.
type eventObject struct {
	task.Event

	At string `json:"at"`
}

// readHistory goes through all events, since Redis keeps no list for each task.
func readHistory(ctx context.Context, s *store.Store, id int64) (*taskHistory, error) {
	const most = 1000
	h := &taskHistory{ID: id, Events: []eventObject{}}
	for next := int64(0); ; {
		events, err := s.Events(ctx, next, most)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			next = e.Seq + 1
			if h.From == 0 {
				h.From = e.Seq
			}
			if e.ID == id && e.Err == nil { // of others verify tells
				h.Events = append(h.Events, eventObject{e, task.Stamp(e.At).Text()})
			}
		}
		if len(events) < most {
			break
		}
	}
	if len(h.Events) > 0 {
		return h, nil
	}
	_, err := s.Task(ctx, id)
	return h, err
}

func (h *taskHistory) print(out *cli.Output) {
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
