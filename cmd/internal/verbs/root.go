// Package verbs holds the verbs of the commands tdf and tdf-manager: they open, list, wait for and archive tasks, and
// check a namespace.
package verbs

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"log/slog"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/base/config"
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
	root.AddCommand(a.submit(), a.ls(), a.show(), a.history(), a.logs(), a.why(), a.stats(), a.top(), a.wait(),
		a.cancel(), a.hold(), a.release(), a.retry(), a.replay(), a.queue(), a.node(), a.worker(), a.plan(),
		a.run(), a.export(), a.verify(), a.doctor(), a.acl(), a.flush(), a.version())
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
	cfg, err = config.Load(a.path(), config.ForManager, config.WithSettings(a.flags.Settings...))
	if err != nil {
		return nil, false, err
	}
	done, err = a.flags.Answer(cmd.OutOrStdout(), cfg)
	return cfg, done, err
}

func (a *app) asked() bool { return a.flags.Check || a.flags.PrintConfig }

// path names the configuration file. It is empty where there is none and the
// environment or --set names the namespace.
func (a *app) path() string {
	if a.file != "" {
		return a.file
	}
	if file := os.Getenv("TDF_CONFIG"); file != "" {
		return file
	}
	_, err := os.Stat(defaultConfig)
	elsewhere := os.Getenv("TDF_TDF_NAMESPACE") != "" || slices.ContainsFunc(a.flags.Settings, func(s string) bool {
		return strings.HasPrefix(s, "tdf.namespace=")
	})
	if errors.Is(err, fs.ErrNotExist) && elsewhere {
		return ""
	}
	return defaultConfig
}

// logger is what the flags ask for. Verbs that end soon only tell of errors
// unless asked for more: they say on stdout what they do.
func (a *app) logger(cmd *cobra.Command, daemon bool) (*slog.Logger, error) {
	flags := *a.flags.Log
	if !daemon && !cmd.Flags().Changed("log-level") {
		flags.Level = "error"
	}
	return flags.Logger(cmd.ErrOrStderr())
}

func (a *app) version() *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		build := cli.ThisBuild()
		if *asJSON {
			return cli.WriteJSON(cmd.OutOrStdout(), build)
		}
		return printf(cmd.OutOrStdout(), "%s %s\n", a.program, build)
	}
	return cmd
}
