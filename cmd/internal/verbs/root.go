// Package verbs holds the verbs of the commands tdf and tdf-manager: they open, list, wait for and archive tasks, and
// check a namespace.
package verbs

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"log/slog"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/task"
)

// The programs that have the verbs.
const (
	TDF     = "tdf"
	Manager = "tdf-manager"
)

// app holds what all verbs share.
type app struct {
	program string
	file    string
	flags   *cli.DaemonFlags
}

// defaultConfig is read if neither --config nor TDF_CONFIG names a file.
const defaultConfig = "manager.cfg"

// New returns the command of a program. Its help calls the program tdf-manager.
func New(program string) *cobra.Command {
	a := &app{program: program}
	root := &cobra.Command{
		Use:   program + " [--config manager.cfg] VERB",
		Short: "Open, watch and archive the tasks of a namespace",
		Long: "tdf-manager opens, watches and archives the tasks of a namespace.\n\n" +
			"Exit codes: 0 ok, and all tasks asked about succeeded; 1 some task did not succeed;\n" +
			"2 wrong usage or configuration; 3 Redis cannot be reached or used; 4 a wait timed out;\n" +
			"130 or 143 ended by a signal.",
		RunE: a.withoutVerb,
	}
	root.PersistentFlags().StringVar(&a.file, "config", "",
		"configuration file (default $TDF_CONFIG, else ./"+defaultConfig+")")
	a.flags = cli.AddDaemonFlags(root, root.PersistentFlags())
	root.AddCommand(a.submit(), a.ls(), a.show(), a.history(), a.logs(), a.results(), a.why(), a.stats(), a.top(), a.jobs(), a.wait(),
		a.cancel(), a.hold(), a.release(), a.attr(), a.params(), a.retry(), a.replay(), a.queue(), a.node(), a.worker(), a.programs(),
		a.plan(), a.series(), a.token(), a.changes(), a.run(), a.export(), a.verify(), a.doctor(), a.acl(), a.flush(), a.version())
	return root
}

// withoutVerb serves --check and --print-config.
func (a *app) withoutVerb(cmd *cobra.Command, _ []string) error {
	_, done, err := a.load(cmd)
	if err == nil && !done {
		return cli.Usagef("a verb is missing")
	}
	return err
}

// load reads the configuration, and does what --check and --print-config ask
// for: then done is true.
func (a *app) load(cmd *cobra.Command) (cfg *config.File, done bool, err error) {
	if !a.asked() && cmd.Parent() == nil {
		return nil, false, nil
	}
	file := a.path()
	if file == defaultConfig && missing(file) {
		return nil, false, cli.WithCode(cli.ExitUsage, errors.New("there is no "+defaultConfig+
			" in this directory; write one, or name a configuration file with --config or TDF_CONFIG"))
	}
	cfg, err = config.Load(file, config.ForManager, config.WithSettings(a.flags.Settings...))
	if err != nil {
		return nil, false, err
	}
	done, err = a.flags.Answer(cmd.OutOrStdout(), cfg)
	return cfg, done, err
}

func (a *app) asked() bool { return a.flags.Check || a.flags.PrintConfig }

// path returns the name of the configuration file. It is empty if the default file
// is missing and the environment or --set names the namespace.
func (a *app) path() string {
	if file := cmp.Or(a.file, os.Getenv("TDF_CONFIG")); file != "" {
		return file
	}
	elsewhere := os.Getenv("TDF_TDF_NAMESPACE") != "" || slices.ContainsFunc(a.flags.Settings, func(s string) bool {
		return strings.HasPrefix(s, "tdf.namespace=")
	})
	if elsewhere && missing(defaultConfig) {
		return ""
	}
	return defaultConfig
}

func missing(file string) bool {
	_, err := os.Stat(file)
	return errors.Is(err, fs.ErrNotExist)
}

// logger is what the flags ask for. Verbs that end soon only tell of errors
// unless asked for more: they say on stdout what they do.
func (a *app) logger(cmd *cobra.Command, daemon bool) (*slog.Logger, error) {
	level := a.flags.LogLevel
	if !daemon && !cmd.Flags().Changed("log-level") {
		level = "error"
	}
	return cli.NewLogger(cmd.ErrOrStderr(), level, a.flags.LogFormat)
}

func (a *app) version() *cobra.Command {
	return withJSON(&cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, build := a.session(cmd, args), cli.ThisBuild()
			return s.result(build, func() { s.printf("%s %s\n", a.program, build) })
		},
	})
}

// NewTDF returns the command tdf: the verbs, and the two daemons beside them.
func NewTDF(server, worker *cobra.Command) *cobra.Command {
	root := New(TDF)
	group, _, _ := root.Find([]string{workerField}) // it is there
	root.RemoveCommand(group)
	withVerbs(worker, group)
	for _, daemon := range []*cobra.Command{server, worker} {
		_, daemon.Use, _ = strings.Cut(daemon.Use, "-")
		daemon.Flags().Func("config", "", func(string) error { return errors.New("the configuration file of a daemon is its last argument") })
		_ = daemon.Flags().MarkHidden("config") // it is there
		root.AddCommand(daemon)
	}
	rename(root)
	worker.Long += "\n\nStart a worker that has the name of a command with tdf-worker."
	return root
}

// withVerbs gives the worker the verbs about workers.
func withVerbs(worker, group *cobra.Command) {
	verbs := group.Commands()
	names := make([]string, len(verbs))
	for i, verb := range verbs {
		names[i] = verb.Name()
	}
	worker.Aliases = group.Aliases
	worker.Short += "; list, drain and stop workers"
	worker.Long += "\n\nWith a command instead of NAME, " + group.Long
	worker.Example += "\n" + group.Example
	start := worker.Args
	worker.Args = func(cmd *cobra.Command, args []string) error {
		if start(cmd, args) != nil {
			return cli.Usagef("expecting NAME worker.cfg, or one of %s", strings.Join(names, ", "))
		}
		near := task.Nearest(args[0], names)
		if _, err := os.Stat(args[len(args)-1]); len(args) == 2 && err != nil && near != "" {
			return cli.Usagef("unknown command %q for %q; did you mean %s?", args[0], cmd.CommandPath(), near)
		}
		return nil
	}
	worker.AddCommand(verbs...)
}

// asTDF has the names of the programs as tdf calls them.
var asTDF = strings.NewReplacer("tdf-manager run", "tdf manager", "tdf-manager", "tdf",
	"tdf-server", "tdf server", "tdf-worker", "tdf worker")

// rename makes the help call the programs as tdf has them.
func rename(cmd *cobra.Command) {
	cmd.Short, cmd.Long, cmd.Example = asTDF.Replace(cmd.Short), asTDF.Replace(cmd.Long), asTDF.Replace(cmd.Example)
	for _, sub := range cmd.Commands() {
		rename(sub)
	}
}
