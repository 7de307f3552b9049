package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

func (a *app) queuePause() *cobra.Command {
	return a.pausing(true, &cobra.Command{
		Use: "pause NAME...", Short: "Let no worker take from queues; what runs goes on",
		Example: "  tdf-manager queue pause nightly\n  tdf-manager queue pause nightly default --dry-run",
	})
}

func (a *app) queueResume() *cobra.Command {
	return a.pausing(false, &cobra.Command{
		Use: "resume NAME...", Short: "Let workers take from paused queues again",
		Example: "  tdf-manager queue resume nightly\n  tdf-manager queue resume nightly default",
	})
}

// pausing makes the verbs pause and resume.
func (a *app) pausing(pause bool, cmd *cobra.Command) *cobra.Command {
	var dryRun bool
	cmd.Args = cobra.MinimumNArgs(1)
	dryRunFlag(cmd, &dryRun)
	asJSON := jsonFlag(cmd)
	cmd.RunE = a.withManager(false, noOptions, func(ctx context.Context, s *session) error {
		queues, err := s.readQueues(ctx, s.args)
		if err != nil {
			return err
		}
		objects := []map[string]any{}
		for i := range queues {
			q := &queues[i]
			set := map[string]string{pausedField: strconv.FormatBool(pause)}
			if _, err := s.manager.SetQueue(ctx, q.Name, set, changeOptions(dryRun)...); err != nil {
				return err
			}
			if *asJSON {
				objects = append(objects, map[string]any{
					nameField: q.Name, "paused": pause, "was": q.Paused, "running": q.Running, dryRunField: dryRun,
				})
			} else if err := printf(s.out, "queue %s: %s\n", cli.Safe(q.Name), pauseText(q, pause, dryRun)); err != nil {
				return err
			}
		}
		if *asJSON {
			return cli.WriteJSON(s.out, objects)
		}
		return nil
	})
	return cmd
}

func pauseText(q *manager.Queue, pause, dryRun bool) string {
	text := map[bool]string{true: "paused", false: "resumed"}[pause]
	if dryRun {
		text = map[bool]string{true: "would pause", false: "would resume"}[pause]
	}
	if q.Paused == pause {
		text = map[bool]string{true: "it is paused already", false: "it is not paused"}[pause]
	}
	if pause && q.Running > 0 {
		text += "; " + strconv.FormatInt(q.Running, 10) + " running tasks go on"
	}
	return text
}
