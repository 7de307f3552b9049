package cli

import (
	"fmt"
	"io"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
)

// DaemonFlags holds what all three commands understand, beside --version.
type DaemonFlags struct {
	// Check and PrintConfig end the command after its configuration was
	// validated; see Answer.
	Check, PrintConfig bool
	// Settings are the values of --set, each "section.key=value", for
	// config.WithSettings.
	Settings []string
	// Log holds --log-level and --log-format.
	Log *LogFlags
}

// AddDaemonFlags adds --check, --print-config, --set, --log-level, --log-format
// and --version to a command and, except the last, to those below it.
func AddDaemonFlags(cmd *cobra.Command) *DaemonFlags {
	f := &DaemonFlags{Log: AddLogFlags(cmd)}
	flags := cmd.PersistentFlags()
	flags.BoolVar(&f.Check, "check", false, "validate the configuration and exit")
	flags.BoolVar(&f.PrintConfig, "print-config", false, "print the merged configuration, secrets hidden, and exit")
	flags.StringArrayVar(&f.Settings, "set", nil, "set one value as section.key=value; may be repeated")
	cmd.Version = ThisBuild().String()
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
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
func LogWarnings(log zerolog.Logger, c Configuration) {
	for _, warning := range c.Warnings() {
		log.Warn().Msg(warning)
	}
}
