// Package workercmd is the command tdf-worker, which executes the tasks of one namespace.
package workercmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"

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
the same from any host.

With --url the worker needs no Redis: it asks a tdf-server with [http] listen for
everything. NAME is that of its token (tdf-manager token add NAME --role work), which
is in TDF_TOKEN, or in the file that TDF_TOKEN_FILE names. [redis] and [tdf] are not
needed then, and a configuration only for what is not to be as it is by default.`

// New returns the command.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tdf-worker NAME worker.cfg",
		Short: "Execute the tasks of a namespace",
		Long:  long,
		Example: "  tdf-worker worker-A worker.cfg\n  tdf-worker worker-A worker.cfg --set worker.slots=4\n" +
			"  tdf-worker \"$(hostname)\" worker.cfg --log-format json\n  tdf-worker lab-1 --url https://tdf.example.org:7480",
	}
	flags, url := cli.AddDaemonFlags(cmd, cmd.Flags()), ""
	cmd.Flags().StringVar(&url, "url", "", "reach the site over HTTP at this server, not Redis; default: $TDF_URL")
	cmd.Args = func(_ *cobra.Command, args []string) error {
		url = cmp.Or(url, os.Getenv("TDF_URL"))
		if len(args) != 2 && (len(args) != 1 || url == "") {
			return cli.Usagef("expecting 2 arguments (%d given): NAME worker.cfg", len(args))
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o := worker.Options{Name: args[0], Version: cli.ThisBuild().Version}
		if url != "" {
			var err error
			if o.Backend, err = remote(cmd, url, o.Name); err != nil {
				return cli.WithCode(cli.ExitUsage, err)
			}
		}
		daemon := cli.Daemon{Kind: config.ForWorker, Role: "worker", Name: args[0], File: strings.Join(args[1:], ""), URL: url, Before: seal}
		return cli.RunDaemon(cmd, flags, daemon, func(ctx context.Context, cfg *config.File, log *slog.Logger) error {
			return run(ctx, o, cfg, log)
		})
	}
	return cmd
}

// remote is the site as a worker of that name has it from a server.
func remote(cmd *cobra.Command, url, name string) (worker.Backend, error) {
	manager := "tdf-manager"
	if cmd.HasParent() {
		manager = cmd.Root().Name() // one program for all
	}
	token, file := os.Getenv("TDF_TOKEN"), os.Getenv("TDF_TOKEN_FILE")
	switch {
	case token == "" && file == "":
		return nil, errors.New("no token for " + url + ": set TDF_TOKEN, or TDF_TOKEN_FILE to the name of a file with it; " +
			manager + " token add " + name + " --role work makes one")
	case token != "" && file != "":
		return nil, errors.New("TDF_TOKEN and TDF_TOKEN_FILE are both set: unset one of them")
	case file != "":
		var err error
		if token, err = config.ReadPassword(file); err != nil {
			return nil, fmt.Errorf("TDF_TOKEN_FILE: %w", err)
		}
	}
	return worker.Remote(url, name, token)
}

// seal keeps what this process inherited, and what it knows, from the programs that it will start.
func seal(cfg *config.File) error {
	cli.UseProcessors(processors(cfg.Worker.Slots))
	if err := errors.Join(process.SealDescriptors(), shim.Conceal()); err != nil {
		return fmt.Errorf("keep this worker's files and memory from its programs: %w", err)
	}
	return nil
}

func run(ctx context.Context, o worker.Options, cfg *config.File, log *slog.Logger) error {
	site := &tdf.Site{Internal: store.Site{File: cfg, Log: log}}
	if o.Backend == nil {
		var err error
		if site.Internal, err = store.Open(cfg, log); err != nil {
			return err
		}
		defer func() { _ = site.Close() }() // nothing was asked of its own connections
	}
	if cfg.HTTP.WorkerListen != "" {
		m := newMetrics()
		stop, err := m.serve(ctx, o.Name, cfg, log)
		if err != nil {
			return refused(err)
		}
		defer stop()
		o.OnReport = m.reported
	}
	w, err := worker.New(site, o)
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
