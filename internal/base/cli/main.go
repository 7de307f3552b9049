// Package cli is what the commands of TDF share: version, logger,
// signals, exit codes, and output as table or JSON. Only this package and cmd
// know about signals and the end of the process.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/clean"
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
	err = root.classify(OrSignal(ctx, err))
	if !Silent(err) {
		root.print(executed, err)
	}
	return ExitCode(err)
}

// OrSignal puts the signal in the place of the error of the cancelled context it caused.
func OrSignal(ctx context.Context, err error) error {
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
	r.SetUsageTemplate(strings.ReplaceAll(r.UsageTemplate(), ".FlagUsages |", fmt.Sprintf(".FlagUsagesWrapped %d |", helpWidth)))
	r.hook(r.Command)
}

// hook wraps the functions (RunE; TDF uses no others) and the help of a command and
// of those below it.
func (r *rootCommand) hook(cmd *cobra.Command) {
	if !cmd.Runnable() && cmd.HasSubCommands() {
		cmd.RunE = needCommand
	} else {
		cmd.RunE = r.observe(cmd.RunE)
	}
	cmd.Long = wrap(cmd.Long)
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
	return usage(plain(err))
}

// print reports the error in the form asked for.
func (r *rootCommand) print(executed *cobra.Command, err error) {
	if r.wantsJSON(executed) {
		// The exit code tells of a stdout that cannot be written.
		_ = clean.WriteJSON(r.OutOrStdout(), map[string]any{"error": err.Error(), "code": ExitCode(err)})
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

// UsageError is a wrong use of flags or arguments. Main adds one line that says
// how the command is used, and where more is said. It ends with ExitUsage.
type UsageError struct{ CodedError }

// Usagef makes a UsageError, for arguments that a command checks itself.
func Usagef(format string, values ...any) error { return usage(fmt.Errorf(format, values...)) }

func usage(err error) error { return &UsageError{CodedError{Code: ExitUsage, Err: err}} }

// usageLine stands below a usage error. The whole help would push the error off
// the screen.
func usageLine(cmd *cobra.Command) string {
	use := cmd.UseLine()
	if isGroup(cmd) {
		use = cmd.CommandPath() + " COMMAND"
	}
	return fmt.Sprintf("Usage: %s; see %s --help", use, cmd.CommandPath())
}

// isGroup reports whether a command has only commands below it: it takes no arguments.
func isGroup(cmd *cobra.Command) bool {
	return cmd.HasParent() && cmd.HasAvailableSubCommands() && cmd.Use == cmd.Name()
}

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

// plain puts an error of cobra into our words: one line, which counts arguments as
// the other commands do, and ends with the command that is suggested.
func plain(err error) error {
	problem, names, found := strings.Cut(err.Error(), "\n\nDid you mean this?\n")
	if found {
		return fmt.Errorf("%s; did you mean %s?", problem, strings.Join(strings.Fields(names), " or "))
	}
	for form, bound := range map[string]string{
		"accepts %d arg(s), received %d": "", "accepts at most %d arg(s), received %d": "at most ",
		"requires at least %d arg(s), only received %d": "at least ",
	} {
		var want, given int
		if n, _ := fmt.Sscanf(problem, form, &want, &given); n == 2 {
			plural := map[bool]string{true: "s"}[want != 1]
			return fmt.Errorf("expecting %s%d argument%s (%d given)", bound, want, plural, given)
		}
	}
	if number, _, found := strings.Cut(problem, ": strconv."); found {
		return errors.New(number + ": not a number in range")
	}
	return err
}

// Exit codes of all commands. A shell adds 128 to the number of a signal.
const (
	ExitOK         = 0   // done, and every task asked about succeeded
	ExitTaskFailed = 1   // some task did not succeed, or an error without a code of its own
	ExitUsage      = 2   // wrong flags, arguments or configuration
	ExitRedis      = 3   // Redis cannot be reached or used
	ExitTimeout    = 4   // a wait timed out
	ExitInterrupt  = 130 // ended by SIGINT
	ExitTerminate  = 143 // ended by SIGTERM
)

// Coded is an error that knows the exit code of the command it ends. Packages
// below the commands implement it without importing this one.
type Coded interface {
	error
	ExitCode() int
}

// CodedError gives an error an exit code. Without Err nothing is printed: the
// command has already said everything.
type CodedError struct {
	Code int
	Err  error
}

// WithCode gives err an exit code; nil stays nil.
func WithCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return &CodedError{Code: code, Err: err}
}

// Exit returns an error that ends the command with a code and prints nothing,
// for example after a table that shows which tasks failed. Code 0 is nil.
func Exit(code int) error {
	if code == ExitOK {
		return nil
	}
	return &CodedError{Code: code}
}

// Error returns the text of Err, or names the code.
func (e *CodedError) Error() string {
	if e.Err == nil {
		return "exit code " + strconv.Itoa(e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *CodedError) Unwrap() error { return e.Err }

// ExitCode returns Code.
func (e *CodedError) ExitCode() int { return e.Code }

// ExitCode returns the exit code for an error: 0 for nil, that of the first
// Coded error in its chain, else 1. The status of a program that was executed
// is not ours.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	var coded Coded
	if !errors.As(err, &coded) {
		return ExitTaskFailed
	}
	if _, program := coded.(*exec.ExitError); program {
		return ExitTaskFailed
	}
	return coded.ExitCode()
}

// Silent reports whether the error asks for no message.
func Silent(err error) bool {
	var coded *CodedError
	return errors.As(err, &coded) && coded.Err == nil
}
