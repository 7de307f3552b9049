package verbs

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/trace"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

func (a *app) history() *cobra.Command {
	cmd := &cobra.Command{
		Use: "history ID", Short: "Show the recorded events of a task", Args: cobra.ExactArgs(1),
		Long: "history shows what happened to a task, step by step: when, the number of the change in the namespace,\n" +
			"what it was, from where to where, in which round, and who did it. Redis keeps the newest events of the\n" +
			"namespace only ([server] events); what came before, and what clients in other languages do, is not among\n" +
			"them. The log of the task (show) goes back to its creation.",
		Example: "  tdf-manager history 7\n  tdf-manager history last --json",
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = a.withManager(false, noOptions, func(ctx context.Context, s *session) error {
		id, err := manager.ParseID(s.args[0], s.manager.Newest(ctx))
		if err != nil {
			return err
		}
		h, err := readHistory(ctx, s.store, id)
		if err != nil {
			return err
		}
		if *asJSON {
			return cli.WriteJSON(s.out, h)
		}
		return h.print(s.out)
	})
	return cmd
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
	trace.Event

	At string `json:"at"`
}

// readHistory goes through all events, since Redis keeps no list for each task.
func readHistory(ctx context.Context, s *store.Store, id int64) (*taskHistory, error) {
	const most = 1000
	h := &taskHistory{ID: id, Events: []eventObject{}}
	for after := ""; ; {
		entries, err := s.Events(ctx, after, most)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			after = entry.ID
			e, err := trace.Parse(entry.ID, entry.Fields)
			if err != nil {
				continue // verify tells of it
			}
			if h.From == 0 {
				h.From = e.Seq
			}
			if e.ID == id {
				e.By = strings.TrimRight(e.By, " ") // names in logs have blanks behind them
				h.Events = append(h.Events, eventObject{e, e.At.Text()})
			}
		}
		if len(entries) < most {
			break
		}
	}
	if len(h.Events) > 0 {
		return h, nil
	}
	_, err := s.Task(ctx, id)
	return h, err
}

func (h *taskHistory) print(w io.Writer) error {
	if len(h.Events) == 0 {
		if h.From == 0 {
			return printf(w, "no events are recorded\n")
		}
		return printf(w, "no events of task %d are recorded, from change %d of the namespace on\n", h.ID, h.From)
	}
	if first := &h.Events[0]; first.Event.Event != statemachine.Create {
		if err := printf(w, "... what came before change %d is not recorded\n", first.Seq); err != nil {
			return err
		}
	}
	for i := range h.Events {
		e := &h.Events[i].Event
		by := string(e.Actor)
		if e.By != "" {
			by += " " + e.By
		}
		if err := printf(w, "%s  #%-8d %-12s %-26s round %d  %s\n",
			moment(e.At), e.Seq, cli.Safe(string(e.Event)), stepOf(e), e.Round, cli.Safe(by)); err != nil {
			return err
		}
	}
	return nil
}

// stepOf is where the task went from and to.
func stepOf(e *trace.Event) string {
	from, to := e.From, e.To
	if from == statemachine.None {
		from = "-"
	}
	if to == statemachine.None {
		to = "-"
	}
	return cli.Safe(fmt.Sprintf("%s -> %s", from, to))
}
