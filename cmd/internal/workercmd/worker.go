// Package workercmd is the command tdf-worker, which executes the tasks of one namespace.
package workercmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/sandbox/process"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/worker"
)

const long = `tdf-worker claims open tasks for its slots, fetches their programs, runs
./run.sh with the task's input, and reports its output.

NAME identifies this worker in its namespace: while it is alive, no other worker
can use it. On SIGTERM or SIGINT the worker drains: it claims nothing more, lets its
programs go on for [worker] drain_timeout, then stops those that are left and
hands their tasks back. A second signal kills them and hands back at once, a
third ends the worker immediately. tdf-manager worker drain, undrain and stop do
the same from any host.`

// New returns the command.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tdf-worker NAME worker.cfg",
		Short: "Execute the tasks of a namespace",
		Long:  long,
		Example: "  tdf-worker worker-A worker.cfg\n  tdf-worker worker-A worker.cfg --set worker.slots=4\n" +
			"  tdf-worker \"$(hostname)\" worker.cfg --log-format json",
	}
	flags := cli.AddDaemonFlags(cmd, cmd.Flags())
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 2 {
			return cli.Usagef("expecting 2 arguments (%d given): NAME worker.cfg", len(args))
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		daemon := cli.Daemon{Kind: config.ForWorker, Role: "worker", Name: args[0], File: args[1], Before: seal}
		return cli.RunDaemon(cmd, flags, daemon, func(ctx context.Context, cfg *config.File, log *slog.Logger) error {
			return run(ctx, args[0], cfg, log)
		})
	}
	return cmd
}

// seal keeps what this process inherited, and what it knows, from the programs that it will start.
func seal(cfg *config.File) error {
	cli.UseProcessors(processors(cfg.Worker.Slots))
	if err := errors.Join(process.SealDescriptors(), shim.Conceal()); err != nil {
		return fmt.Errorf("keep this worker's files and memory from its programs: %w", err)
	}
	return nil
}

func run(ctx context.Context, name string, cfg *config.File, log *slog.Logger) error {
	internal, err := store.Open(cfg, log)
	if err != nil {
		return err
	}
	site := &tdf.Site{Internal: internal}
	defer func() { _ = site.Close() }() // nothing was asked of its own connections
	options := worker.Options{Name: name, Version: cli.ThisBuild().Version}
	if cfg.HTTP.WorkerListen != "" {
		m := newMetrics()
		stop, err := m.serve(ctx, name, cfg, log)
		if err != nil {
			return refused(err)
		}
		defer stop()
		options.OnReport = m.reported
	}
	w, err := worker.New(site, options)
	if err != nil {
		return refused(err)
	}
	cli.OnSecondSignal(ctx, w.StopNow)
	err = w.Run(ctx)
	if errors.Is(err, conn.ErrNameTaken) {
		return refused(err)
	}
	return err
}

// processors is on how many this worker's own code is to run: one can serve sixteen slots whose programs take some
// milliseconds each. No slots stand for one for each processor.
func processors(slots int) int {
	if slots == 0 {
		slots = runtime.NumCPU()
	}
	return 1 + slots/16
}

// refused is for what the configuration or the arguments must be changed for,
// unless the error knows better.
func refused(err error) error {
	if coded := cli.Coded(nil); errors.As(err, &coded) {
		return err
	}
	return cli.WithCode(cli.ExitUsage, err)
}
