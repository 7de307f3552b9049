package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/cli"
	"github.com/tdf-go/tdf/internal/config"
	"github.com/tdf-go/tdf/internal/process"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/worker"
)

const long = `tdf-worker claims open tasks one at a time, fetches their programs, runs
./run.sh with the task's input, and reports what it wrote.

NAME should be unique among the workers of a namespace. On SIGTERM or SIGINT the
program that runs is stopped and its task is open again; a second signal ends
the worker at once.`

func newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "tdf-worker NAME worker.cfg",
		Short:   "execute the tasks of a namespace",
		Long:    long,
		Example: "  tdf-worker worker-A worker.cfg\n  tdf-worker worker-A worker.cfg --log-format json",
	}
	flags := cli.AddDaemonFlags(cmd)
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 2 {
			return cli.Usagef("expecting 2 arguments (%d given): NAME worker.cfg", len(args))
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd, flags, args[0], args[1]) }
	return cmd
}

func run(cmd *cobra.Command, flags *cli.DaemonFlags, name, file string) error {
	if err := config.ValidName("worker", name); err != nil {
		return err
	}
	cfg, err := config.Load(file, config.ForWorker, config.WithSettings(flags.Settings...))
	if err != nil {
		return err
	}
	if done, err := flags.Answer(cmd.OutOrStdout(), cfg); done {
		return err
	}
	log, err := flags.Log.Logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	log.Info().Str("worker", name).Str("namespace", cfg.TDF.Namespace).Str("config", file).
		Msgf("initializing '%s' for namespace '%s' (config: '%s')", name, cfg.TDF.Namespace, file)
	cli.LogWarnings(log, cfg)
	// What this process inherited is not for the programs it will start.
	if err := process.SealDescriptors(); err != nil {
		return fmt.Errorf("close inherited files for programs: %w", err)
	}
	return work(cmd.Context(), name, cfg, log)
}

func work(ctx context.Context, name string, cfg *config.File, log zerolog.Logger) error {
	programs, err := fetch.New(fetchOptions(name, cfg.Worker))
	if err != nil {
		return cli.WithCode(cli.ExitUsage, err)
	}
	defer func() { _ = programs.Close() }() // nothing is written through it
	st, err := store.Dial(cfg.Redis, cfg.TDF.Namespace)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }() // every call has been answered or given up
	opts := worker.FromConfig(cfg.Worker)
	opts.Name, opts.Store, opts.Programs, opts.Log = name, st, programs, log
	w, err := worker.New(opts)
	if err != nil {
		return cli.WithCode(cli.ExitUsage, err)
	}
	if err := w.Run(ctx); err != nil {
		return err
	}
	log.Info().Str("worker", name).Msg("stopped")
	return nil
}

// fetchOptions are what the section [worker] says about fetching.
func fetchOptions(name string, c config.Worker) fetch.Options {
	o := fetch.DefaultOptions()
	o.Dir, o.Worker = c.ProgramDir, name
	o.MaxDownloadBytes, o.MaxBytes = c.FetchMaxBytes, c.FetchMaxBytes
	o.MaxFileBytes, o.MaxEntries = c.FetchMaxFileBytes, c.FetchMaxEntries
	o.MaxRedirects, o.Timeout = c.FetchMaxRedirects, c.FetchTimeout
	o.NetrcFile, o.CAFile = c.NetrcFile, c.CAFile
	o.SSHOptions = append(o.SSHOptions, strings.Fields(c.SSHOptions)...)
	o.RsyncPath, o.RequirePinned = c.RsyncPath, c.RequirePinned
	return o
}
