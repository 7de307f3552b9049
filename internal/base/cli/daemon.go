package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tdf-go/tdf/internal/base/config"
)

// Daemon says which daemon a command is to start.
type Daemon struct {
	// Kind is the program, Role what it is called in names and in the log:
	// "server", "worker".
	Kind config.Kind
	Role string
	// Name is the name of this one, File its configuration.
	Name, File string
	// URL is where it reaches its site, if not at Redis.
	URL string
	// Before, if not nil, comes before anything is served.
	Before func(*config.File) error
}

// RunDaemon does what all daemons do first: it checks the name, loads the
// configuration, answers --check and --print-config, makes the logger, and logs
// that it initializes and what is unwise in the configuration. Then, unless the
// command has nothing more to do, it runs the daemon, as [Outlive] does.
func RunDaemon(cmd *cobra.Command, flags *DaemonFlags, d Daemon, run func(context.Context, *config.File, *slog.Logger) error) error {
	if err := config.ValidName(d.Role, d.Name); err != nil {
		return err
	}
	opts := []config.Option{config.WithSettings(flags.Settings...)}
	if d.URL != "" {
		opts = append(opts, config.WithoutRedis())
	}
	cfg, err := config.Load(d.File, d.Kind, opts...)
	if err != nil {
		return err
	}
	if done, err := flags.Answer(cmd.OutOrStdout(), cfg); done {
		return err
	}
	log, err := NewLogger(cmd.ErrOrStderr(), flags.LogLevel, flags.LogFormat)
	if err != nil {
		return err
	}
	outliveConnection()
	kind, site := "namespace", cfg.TDF.Namespace
	if d.URL != "" {
		kind, site = "url", d.URL
	}
	log.Info(fmt.Sprintf("initializing '%s' for %s '%s' (config: '%s')", d.Name, kind, site, d.File),
		d.Role, d.Name, kind, site, "config", d.File, "pid", os.Getpid())
	LogWarnings(log, cfg)
	if d.Before != nil {
		if err := d.Before(cfg); err != nil {
			return err
		}
	}
	return profiled(cmd.Context(), cfg, log, func(ctx context.Context) error {
		if err := run(ctx, cfg, log); err != nil {
			return err
		}
		log.Info("stopped", d.Role, d.Name)
		return nil
	})
}

// Outlive runs a daemon that goes on when the terminal or the connection over which it was started is gone, and serves profiles
// meanwhile if the configuration asks for them.
func Outlive(ctx context.Context, cfg *config.File, log *slog.Logger, run func(context.Context) error) error {
	outliveConnection()
	return profiled(ctx, cfg, log, run)
}

func profiled(ctx context.Context, cfg *config.File, log *slog.Logger, run func(context.Context) error) error {
	unprofile, err := serveProfiles(ctx, cfg.TDF.Pprof, log)
	if err != nil {
		return err
	}
	defer unprofile()
	return run(ctx)
}

// DaemonFlags holds what all commands understand, beside --version.
type DaemonFlags struct {
	// Check and PrintConfig end the command after its configuration was
	// validated; see Answer.
	Check, PrintConfig bool
	// Settings are the values of --set, each "section.key=value", for
	// config.WithSettings.
	Settings []string
	// LogLevel and LogFormat are those of [NewLogger].
	LogLevel, LogFormat string
}

// AddDaemonFlags adds --check, --print-config, --set, --log-level and --log-format
// to flags of a command, and --version to the command.
func AddDaemonFlags(cmd *cobra.Command, flags *pflag.FlagSet) *DaemonFlags {
	f := &DaemonFlags{}
	flags.StringVar(&f.LogLevel, "log-level", "info", "lowest level logged: trace, debug, info, warn, error, disabled")
	flags.StringVar(&f.LogFormat, "log-format", FormatAuto, "auto (console on a terminal, json otherwise), console or json")
	flags.BoolVar(&f.Check, "check", false, "validate the configuration and exit")
	flags.BoolVar(&f.PrintConfig, "print-config", false, "print the merged configuration, secrets hidden, and exit")
	flags.StringArrayVar(&f.Settings, "set", nil, "set one value as section.key=value; may be repeated")
	cmd.Version = ThisBuild().String()
	cmd.SetVersionTemplate("{{.CommandPath}} {{.Version}}\n")
	return f
}

// Configuration is a loaded configuration (*config.File).
type Configuration interface {
	Print(w io.Writer) error
	Warnings() []string
}

// Answer does what --print-config and --check ask for, on w. If it reports done,
// the command has nothing more to do.
func (f *DaemonFlags) Answer(w io.Writer, c Configuration) (done bool, err error) {
	if f.PrintConfig {
		return true, c.Print(w)
	}
	if !f.Check {
		return false, nil
	}
	for _, warning := range c.Warnings() {
		fmt.Fprintf(w, "warning: %s\n", Safe(warning))
	}
	if _, err := fmt.Fprintln(w, "configuration ok"); err != nil {
		return true, fmt.Errorf("write the answer: %w", err)
	}
	return true, nil
}

// LogWarnings logs what is legal but unwise in a configuration.
func LogWarnings(log *slog.Logger, c Configuration) {
	for _, warning := range c.Warnings() {
		log.Warn(warning)
	}
}

// UseProcessors says on how many processors at a time the code of a daemon itself is run: at least 1, at most as many as
// there are. Programs are not concerned, they are processes of their own. On more processors than a daemon has work for, the
// runtime of Go spends much of its time on putting them to sleep and waking them, and takes it from the programs. Who sets
// GOMAXPROCS in the environment decides himself.
func UseProcessors(n int) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(min(max(n, 1), runtime.GOMAXPROCS(0)))
	}
}

// Version and Commit are set by the linker:
//
//	-ldflags "-X github.com/tdf-go/tdf/internal/base/cli.Version=v0.1.0 -X github.com/tdf-go/tdf/internal/base/cli.Commit=abc"
//
// Without them, Build falls back to what the Go tool recorded.
var (
	Version string
	Commit  string
)

// Build says what a binary was built from.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

// ThisBuild returns the build of the running binary; unknown parts read "unknown".
func ThisBuild() Build {
	info, _ := debug.ReadBuildInfo()
	return buildOf(Version, Commit, info)
}

func buildOf(version, commit string, info *debug.BuildInfo) Build {
	b := Build{Version: version, Commit: commit, Go: runtime.Version()}
	if info != nil {
		b.Version = cmp.Or(b.Version, info.Main.Version)
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Commit = cmp.Or(b.Commit, s.Value)
			}
		}
	}
	b.Version, b.Commit = cmp.Or(b.Version, "unknown"), cmp.Or(b.Commit, "unknown")
	return b
}

// String returns for example "v0.1.0 (commit 1a2b3c, go1.26.8)".
func (b Build) String() string {
	return fmt.Sprintf("%s (commit %s, %s)", b.Version, b.Commit, b.Go)
}
