// Package servercmd is the command tdf-server, which settles the tasks of one namespace.
package servercmd

import (
	"context"

	"log/slog"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/embedded"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/series"
	"github.com/tdf-go/tdf/server"
)

const long = `tdf-server settles tasks: executed ones become succeeded, failed or open again,
overdue ones expire or time out, and those of dead workers are opened again
(worker_timeout). Any number of servers may work on one namespace.

With "host = embedded" in [redis] the server runs its own Redis, for trials: the
data ends with it.`

// New returns the command.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "tdf-server [NAME] server.cfg",
		Short:   "Settle the tasks of a namespace",
		Long:    long,
		Example: "  tdf-server server.cfg\n  tdf-server server-A server.cfg --log-format json",
	}
	flags := cli.AddDaemonFlags(cmd, cmd.Flags())
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 && len(args) != 2 {
			return cli.Usagef("expecting 1 or 2 arguments (%d given): [NAME] server.cfg", len(args))
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name := "server"
		if len(args) == 2 {
			name = args[0]
		}
		daemon := cli.Daemon{Kind: config.ForServer, Role: "server", Name: name, File: args[len(args)-1]}
		return cli.RunDaemon(cmd, flags, daemon, func(ctx context.Context, cfg *config.File, log *slog.Logger) error {
			where, end, err := redisOf(cfg, log)
			if err != nil {
				return cli.WithCode(cli.ExitUsage, err)
			}
			defer end()
			return serve(ctx, name, where, cfg, log)
		})
	}
	return cmd
}

// redisOf starts the embedded Redis where the configuration asks for it.
func redisOf(cfg *config.File, log *slog.Logger) (config.Redis, func(), error) {
	if !cfg.Redis.Embedded() {
		cli.UseProcessors(1) // passes follow one another, and wait for Redis
		return cfg.Redis, func() {}, nil
	}
	where, end, err := embedded.Start(cfg.Redis)
	if err != nil {
		return where, nil, err
	}
	log.Warn("EMBEDDED REDIS, FOR TRIALS ONLY: every task is lost when this server ends", "host", where.Host, "port", where.Port)
	return where, end, nil
}

func serve(ctx context.Context, name string, where config.Redis, cfg *config.File, log *slog.Logger) error {
	cfg.TaskDefaults.ArchiveAtOnce() // as of what the command line opens
	there := *cfg
	there.Redis = where
	internal, err := store.Open(&there, log)
	if err != nil {
		return err
	}
	site := &tdf.Site{Internal: internal}
	defer func() { _ = site.Close() }() // of which only what is served over HTTP asks
	s, err := server.New(site, server.Options{Name: name, Version: cli.ThisBuild().Version})
	if err != nil {
		return cli.WithCode(cli.ExitUsage, err)
	}
	stop, err := serveHTTP(ctx, site, s, name, cfg, log)
	if err != nil {
		return cli.WithCode(cli.ExitUsage, err)
	}
	defer stop()
	ctx, end := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer end()
	beside.Go(func() { runSeries(ctx, site, name, log) })
	return s.Run(ctx)
}

// runSeries opens the tasks of series, once Redis is known to be one to work with: until then the server says what is wrong.
func runSeries(ctx context.Context, site *tdf.Site, name string, log *slog.Logger) {
	log = log.With("server", name)
	for site.Check(ctx) != nil && ctx.Err() == nil {
		timing.Pause(ctx, time.Second)
	}
	runner := series.NewRunner(manager.New(site, name, manager.Options{Logger: log}), series.Options{Logger: log})
	_ = runner.Run(ctx) // it ends when ctx does, with nothing to say
}
