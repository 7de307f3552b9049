package cli

import (
	"os"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

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
}

// Started is what a daemon begins with.
type Started struct {
	Config *config.File
	Log    zerolog.Logger
}

// StartDaemon does what all daemons do first: it checks the name, loads the
// configuration, answers --check and --print-config, makes the logger, and logs
// that it initializes and what is unwise in the configuration. It returns nil
// and no error if the command has nothing more to do; else the process outlives
// its connection from then on.
func StartDaemon(cmd *cobra.Command, flags *DaemonFlags, d Daemon) (*Started, error) {
	if err := config.ValidName(d.Role, d.Name); err != nil {
		return nil, err
	}
	cfg, err := config.Load(d.File, d.Kind, config.WithSettings(flags.Settings...))
	if err != nil {
		return nil, err
	}
	if done, err := flags.Answer(cmd.OutOrStdout(), cfg); done {
		return nil, err
	}
	log, err := flags.Log.Logger(cmd.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	OutliveConnection()
	log.Info().Str(d.Role, d.Name).Str("namespace", cfg.TDF.Namespace).Str("config", d.File).Int("pid", os.Getpid()).
		Msgf("initializing '%s' for namespace '%s' (config: '%s')", d.Name, cfg.TDF.Namespace, d.File)
	LogWarnings(log, cfg)
	return &Started{Config: cfg, Log: log}, nil
}
