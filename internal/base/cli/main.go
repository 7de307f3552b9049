package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Main runs a command with the arguments of the process under a context that
// signals cancel, prints its error, and returns the exit code for os.Exit.
//
// An error is printed once: on stderr with the name of the program, or, if
// --json was asked for, on stdout as {"error": ..., "code": ...}. Errors in
// flags and arguments add one line of usage and end with ExitUsage. A command
// that returns its context's error after a signal ends with 130 or 143; one
// that returns nil has stopped in good order and ends with 0.
func Main(cmd *cobra.Command) int {
	ctx, stop := SignalContext(context.Background())
	defer stop()
	return Run(ctx, cmd, os.Args[1:])
}

// Run is Main with the context and the arguments given; output goes to the
// command's own writers.
func Run(ctx context.Context, cmd *cobra.Command, args []string) int {
	root := &rootCommand{Command: cmd, args: args}
	root.prepare()
	executed, err := cmd.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	err = root.classify(afterSignal(ctx, err))
	if !silent(err) {
		root.print(executed, err)
	}
	return ExitCode(err)
}

// afterSignal puts the signal in the place of the cancelled context it caused.
func afterSignal(ctx context.Context, err error) error {
	var bySignal *SignalError
	if errors.Is(err, context.Canceled) && errors.As(context.Cause(ctx), &bySignal) {
		return bySignal
	}
	return err
}

// rootCommand is a command while it runs, with what is needed to tell errors
// of cobra (usage) from those of the command itself.
type rootCommand struct {
	*cobra.Command
	args   []string
	hooked bool // the error came from a function of the command
}

// prepare makes the tree of commands leave all printing to us.
func (r *rootCommand) prepare() {
	r.SetArgs(r.args)
	r.SilenceErrors, r.SilenceUsage = true, true
	r.hook(r.Command)
}

// hook wraps the functions (RunE; TDF uses no others) of a command and of those
// below it.
func (r *rootCommand) hook(cmd *cobra.Command) {
	if !cmd.Runnable() && cmd.HasSubCommands() {
		cmd.RunE = needCommand
	} else {
		cmd.RunE = r.observe(cmd.RunE)
	}
	for _, sub := range cmd.Commands() {
		r.hook(sub)
	}
}

type runFunc func(cmd *cobra.Command, args []string) error

func (r *rootCommand) observe(run runFunc) runFunc {
	if run == nil {
		return nil
	}
	return func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		r.hooked = r.hooked || err != nil
		return err
	}
}

// classify makes what cobra itself found wrong a UsageError.
func (r *rootCommand) classify(err error) error {
	if r.hooked {
		return err
	}
	if _, ok := errors.AsType[*UsageError](err); ok {
		return err
	}
	return &UsageError{Err: suggested(err)}
}

// print reports the error in the form asked for.
func (r *rootCommand) print(executed *cobra.Command, err error) {
	if r.wantsJSON(executed) {
		// The exit code tells of a stdout that cannot be written.
		_ = WriteJSON(r.OutOrStdout(), map[string]any{"error": err.Error(), "code": ExitCode(err)})
		return
	}
	printError(r.ErrOrStderr(), r.Name(), err)
	if _, ok := errors.AsType[*UsageError](err); ok {
		fmt.Fprintln(r.ErrOrStderr(), usageLine(executed))
	}
}

func printError(w io.Writer, name string, err error) {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(w, "%s: %s\n", name, Safe(strings.TrimSuffix(line, "\n")))
	}
}

// wantsJSON looks at the flag, and, as parsing may have failed before it, at
// the arguments.
func (r *rootCommand) wantsJSON(executed *cobra.Command) bool {
	flag := executed.Flags().Lookup("json")
	if flag == nil {
		return false
	}
	own := r.args
	if end := slices.Index(own, "--"); end >= 0 {
		own = own[:end]
	}
	return flag.Value.String() == "true" || (!flag.Changed && slices.Contains(own, "--json"))
}
