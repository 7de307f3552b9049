package verbs

import (
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/task"
)

// NewTDF returns the command tdf: the verbs, and the two daemons beside them.
func NewTDF(server, worker *cobra.Command) *cobra.Command {
	root := New(TDF)
	group, _, _ := root.Find([]string{workerField}) // it is there
	root.RemoveCommand(group)
	withVerbs(worker, group)
	for _, daemon := range []*cobra.Command{server, worker} {
		_, daemon.Use, _ = strings.Cut(daemon.Use, "-")
		daemon.Flags().Var(&refused{}, "config", "")
		_ = daemon.Flags().MarkHidden("config") // it is there
		root.AddCommand(daemon)
	}
	rename(root)
	worker.Long += "\n\nA worker that has the name of such a command is started by tdf-worker."
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
	worker.Short += "; list the workers, and drain or stop them"
	worker.Long += "\n\nWith one of its commands in the place of NAME, " + group.Long
	worker.Example += "\n" + group.Example
	worker.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) != 2 {
			return cli.Usagef("expecting NAME worker.cfg, or one of %s", strings.Join(names, ", "))
		}
		near := task.Nearest(args[0], names)
		if _, err := os.Stat(args[1]); err != nil && near != "" {
			return cli.Usagef("unknown command %q for %q; did you mean %s?", args[0], cmd.CommandPath(), near)
		}
		return nil
	}
	worker.AddCommand(verbs...)
}

// refused is the value of --config, which is not for daemons.
type refused struct{ pflag.Value }

// Set refuses all.
func (*refused) Set(string) error {
	return errors.New("the configuration file of a daemon is its last argument")
}

// Type is that of a text.
func (*refused) Type() string { return "string" }

// String is what help shows of it: nothing.
func (*refused) String() string { return "" }

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
