package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

func (a *app) workerShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show all that is known of a worker", Args: cobra.ExactArgs(1),
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = a.withManager(false, noOptions, func(ctx context.Context, s *session) error {
		workers, err := s.manager.Workers(ctx)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(workers, func(w manager.Worker) bool { return w.Name == s.args[0] })
		if at < 0 {
			return unknownWorker(s.args[0], workers)
		}
		if *asJSON {
			return cli.WriteJSON(s.out, workerObject(&workers[at]))
		}
		return showWorker(s.out, &workers[at])
	})
	return cmd
}

func showWorker(w io.Writer, k *manager.Worker) error {
	table := cli.NewTable(w)
	table.Row("worker", k.Name)
	table.Row("id", fmt.Sprintf("%d (incarnation %d)", k.ID, k.Incarnation))
	table.Row("state", workerState(k))
	if k.Reason != "" {
		table.Row("reason", k.Reason)
	}
	table.Row("slots", fmt.Sprintf("%d of %d busy, %d stuck", k.Busy, k.Slots, k.Stuck))
	table.Row(nodeField, k.Node)
	table.Row("host", k.Host)
	table.Row("pid", k.PID)
	table.Row("version", k.Version)
	table.Row("containment", k.Containment)
	table.Row(envField, dashText(k.Env))
	table.Row("labels", dashText(strings.Join(k.Labels, ", ")))
	table.Row("resources", dashText(amounts(k.Resources)))
	table.Row("classes", dashText(strings.Join(k.Classes, ", ")))
	table.Row(maxThreadsField, limitText(k.MaxThreads)+" (on its node)")
	table.Row("started", when(k.Started))
	table.Row("heartbeat", fmt.Sprintf("%s (%s)", when(k.Heartbeat), age(k.Silent)))
	if !k.Ended.IsZero() {
		table.Row("ended", when(k.Ended))
	}
	table.Row("tasks", dashText(ranges(k.Tasks)))
	if err := table.Flush(); err != nil || len(k.Queues) == 0 {
		return err
	}
	return showQueues(w, k.Queues)
}

func showQueues(w io.Writer, queues []manager.QueueUse) error {
	if err := printf(w, "\nqueues\n"); err != nil {
		return err
	}
	table := cli.NewTable(w, "  CLASS", "QUEUE", "THREADS", "IDLE", "PROCESSING")
	for _, q := range queues {
		table.Row("  "+q.Class, q.Queue, q.Threads, q.Idle, q.Processing)
	}
	return table.Flush()
}

// when is a moment for people; "-" if it has not come.
func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return moment(statemachine.Time(t.UnixMicro()))
}

// workerObject is the JSON form: moments are seconds since 1970, or null;
// durations are seconds.
func workerObject(w *manager.Worker) map[string]any {
	queues := make([]map[string]any, len(w.Queues))
	for i, q := range w.Queues {
		queues[i] = map[string]any{
			"class": q.Class, queueField: q.Queue, "threads": q.Threads, "idle": q.Idle, "processing": q.Processing,
		}
	}
	return map[string]any{
		nameField: w.Name, "id": w.ID, "incarnation": w.Incarnation, nodeField: w.Node, "host": w.Host, "pid": w.PID,
		"version": w.Version, "containment": w.Containment, "labels": jsonList(w.Labels),
		envField: w.Env, "resources": orEmptyMap(w.Resources), "classes": jsonList(w.Classes), maxThreadsField: jsonLimit(w.MaxThreads),
		"state": w.State, "order": w.Order, "reason": w.Reason, "slots": w.Slots, "busy": w.Busy, "stuck": w.Stuck,
		"queues": queues, "tasks": jsonList(w.Tasks), "started": jsonTime(w.Started),
		"heartbeat": jsonTime(w.Heartbeat), "heartbeat_age": w.Silent.Seconds(), "ended": jsonTime(w.Ended),
	}
}

func jsonTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return json.Number(statemachine.Time(t.UnixMicro()).Text())
}
