package main

import (
	"context"
	"os"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/cli"
	"github.com/tdf-go/tdf/internal/config"
	"github.com/tdf-go/tdf/internal/embedded"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/server"
)

const long = `tdf-server settles tasks: executed ones become succeeded, failed or open again,
overdue ones expire or time out. Any number of servers may work on one namespace.

With "host = embedded" in [redis] the server brings its own Redis, for trials:
nothing survives its end.`

func newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "tdf-server [NAME] server.cfg",
		Short:   "settle the tasks of a namespace",
		Long:    long,
		Example: "  tdf-server server.cfg\n  tdf-server server-A server.cfg --log-format json",
	}
	flags := cli.AddDaemonFlags(cmd)
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
		return run(cmd, flags, name, args[len(args)-1])
	}
	return cmd
}

func run(cmd *cobra.Command, flags *cli.DaemonFlags, name, file string) error {
	if err := config.ValidName("server", name); err != nil {
		return cli.WithCode(cli.ExitUsage, err)
	}
	cfg, err := config.Load(file, config.ForServer, config.WithSettings(flags.Settings...))
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
	cli.LogWarnings(log, cfg)
	log.Info().Str("server", name).Str("namespace", cfg.TDF.Namespace).Str("config", file).Int("pid", os.Getpid()).
		Msg("initializing")
	where, end, err := redisOf(cfg, log)
	if err != nil {
		return cli.WithCode(cli.ExitUsage, err)
	}
	defer end()
	return serve(cmd.Context(), name, where, cfg, log)
}

// redisOf starts the embedded Redis where the configuration asks for it.
func redisOf(cfg *config.File, log zerolog.Logger) (config.Redis, func(), error) {
	if !cfg.Redis.Embedded() {
		return cfg.Redis, func() {}, nil
	}
	where, end, err := embedded.Start(cfg.Redis)
	if err != nil {
		return where, nil, err
	}
	log.Warn().Str("host", where.Host).Int("port", where.Port).
		Msg("EMBEDDED REDIS, FOR TRIALS ONLY: every task is lost when this server ends")
	return where, end, nil
}

func serve(ctx context.Context, name string, where config.Redis, cfg *config.File, log zerolog.Logger) error {
	st, err := store.Dial(where, cfg.TDF.Namespace)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	opt := server.FromConfig(cfg.Server)
	opt.Name, opt.Store, opt.Log = name, st, log
	s, err := server.New(opt)
	if err != nil {
		return cli.WithCode(cli.ExitUsage, err)
	}
	if err := s.Run(ctx); err != nil {
		return err
	}
	log.Info().Msg("stopped")
	return nil
}
