package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// UsageError is a wrong use of flags or arguments. Main adds one line that says
// how the command is used, and where more is said. It ends with ExitUsage.
type UsageError struct{ Err error }

// Usagef makes a UsageError, for arguments that a command checks itself.
func Usagef(format string, values ...any) error {
	return &UsageError{Err: fmt.Errorf(format, values...)}
}

// Error returns the text of Err.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *UsageError) Unwrap() error { return e.Err }

// ExitCode is ExitUsage.
func (e *UsageError) ExitCode() int { return ExitUsage }

// usageLine stands below a usage error. The whole help would push the error off
// the screen.
func usageLine(cmd *cobra.Command) string {
	use := cmd.UseLine()
	if isGroup(cmd) {
		use = cmd.CommandPath() + " COMMAND"
	}
	return fmt.Sprintf("Usage: %s; see %s --help", use, cmd.CommandPath())
}

// isGroup reports whether a command has only commands below it.
func isGroup(cmd *cobra.Command) bool { return cmd.HasParent() && cmd.HasAvailableSubCommands() }

// needCommand is what a command does that has only commands below it.
func needCommand(cmd *cobra.Command, args []string) error {
	problem := "a command is missing"
	if len(args) > 0 {
		problem = fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" && sub.Name() != "completion" {
			names = append(names, sub.Name())
		}
	}
	return Usagef("%s; write one of %s", problem, strings.Join(names, ", "))
}

// suggested puts what cobra suggests for an unknown command into the one line of
// the error.
func suggested(err error) error {
	problem, names, found := strings.Cut(err.Error(), "\n\nDid you mean this?\n")
	if !found {
		return err
	}
	return fmt.Errorf("%s; did you mean %s?", problem, strings.Join(strings.Fields(names), " or "))
}
