package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/manager"
)

// submission is the verb submit with its flags.
type submission struct {
	form               form
	labels, resources  []string
	eachLine, fromJSON string
	array              string
	requestKey         string
	quiet, dryRun      bool
	json               *bool
}

func (a *app) submit() *cobra.Command {
	sub := &submission{}
	cmd := &cobra.Command{
		Use:   "submit --program NAME [flags] [-- WORDS...]",
		Short: "Open tasks",
		Long: "submit opens one task, one for each line of a file, or one for each number of an array.\n\n" +
			"WORDS are what run.sh is called with. Nothing in them is interpreted, but that with --array every\n" +
			"{} in them is replaced by the number; without any, the number is the last word. What is not given\n" +
			"is taken from the defaults of the queue, then from [task_defaults]. Times are seconds since 1970,\n" +
			"RFC 3339 or +10m from now; durations are seconds or such as 1h30m; inf is a time without end,\n" +
			"unlimited a number without limit, and none an empty list. With --key a second submission opens nothing: it is told the first one's id.",
		Example: "  tdf-manager submit --program sum --source rsync:run.sh -- 1 2 3\n" +
			"  seq 100 | tdf-manager submit --program sum --source rsync:run.sh --each-line -\n" +
			"  tdf-manager submit --program sum --source rsync:run.sh --queue nightly --array 1-100 -- part-{}.txt\n" +
			"  tdf-manager submit --program train --source rsync:run.sh -l disk=ssd --resource gpu=1 --priority 10\n" +
			`  echo '{"program":"sum","source":"rsync:run.sh","input":"1 2"}' | tdf-manager submit --from-json -`,
		RunE: a.withManager(false, noOptions, sub.do),
	}
	sub.taskFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&sub.eachLine, "each-line", "", "open a task for each line of a file (- is stdin); it is the input")
	flags.StringVar(&sub.fromJSON, "from-json", "", "open a task for each line of a file (- is stdin), a JSON object")
	flags.StringVar(&sub.array, "array", "", "open a task for each number, such as 1-100, 0-30:10 or 1,3,5-8")
	flags.StringVar(&sub.requestKey, "request-key", "", "name of this submission: repeated, nothing is opened twice")
	flags.BoolVarP(&sub.quiet, "quiet", "q", false, "print the ids only, one a line")
	dryRunFlag(cmd, &sub.dryRun)
	sub.json = jsonFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("each-line", "from-json", "array")
	cmd.MarkFlagsMutuallyExclusive("quiet", "json")
	return cmd
}

// taskFlags adds the flags that define a task.
func (sub *submission) taskFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	for _, f := range sub.form.texts() {
		flags.StringVar(f.into, strings.ReplaceAll(f.name, "_", "-"), "", f.usage)
	}
	flags.StringArrayVarP(&sub.labels, "label", "l", nil, "label=value that a worker must offer; may be repeated")
	flags.StringArrayVar(&sub.resources, "resource", nil, "name=number that the task takes of its node; may be repeated")
	flags.StringVar(&sub.form.hold, "hold", "", "begin held, until release; --hold=REASON says why")
	flags.Lookup("hold").NoOptDefVal = heldText
}

// do reads and checks everything before it opens anything.
func (sub *submission) do(ctx context.Context, s *session) error {
	if err := sub.checkFlags(s); err != nil {
		return err
	}
	sub.form.labels, sub.form.resources = strings.Join(sub.labels, ","), strings.Join(sub.resources, ",")
	specs, err := sub.specs(ctx, s)
	if err != nil {
		return err
	}
	if sub.dryRun {
		return sub.printDry(s, specs)
	}
	key := sub.requestKey
	if key == "" {
		key = store.NewToken()
	}
	life, err := s.manager.Life(ctx)
	if err != nil {
		return err
	}
	opened, err := s.manager.OpenEach(ctx, slices.Values(specs), manager.WithRequestKey(key))
	if err != nil {
		return sub.halfDone(s, opened, len(specs), err)
	}
	s.warnOfLoss(ctx, life, opened, "--request-key "+cli.Safe(key))
	return sub.print(s, opened, specs)
}

// checkFlags refuses empty values that would silently mean something else.
func (sub *submission) checkFlags(s *session) error {
	flags := s.cmd.Flags()
	for name, remedy := range map[string]string{
		"request-key": "give a name for this submission", "key": "give a name for the task, or leave it out",
		queueField: "give the name of a queue, or leave it out", holdField: "give a reason, or write --hold alone",
		"array": "write numbers such as 1-100",
	} {
		if f := flags.Lookup(name); f.Changed && f.Value.String() == "" {
			return cli.Usagef("--%s is empty; %s", name, remedy)
		}
	}
	if sub.form.hold == heldText && len(s.args) > 0 && s.cmd.ArgsLenAtDash() != 0 {
		return cli.Usagef("with --hold, write WORDS behind -- (a reason is written --hold=REASON)")
	}
	several := flags.Changed("each-line") || flags.Changed("from-json")
	if several && sub.form.key != "" {
		return cli.Usagef("--key %q would be the key of every task; give each its own as field key of --from-json, "+
			"or name the submission by --request-key", sub.form.key)
	}
	return nil
}

// specs are the tasks asked for.
func (sub *submission) specs(ctx context.Context, s *session) ([]manager.Spec, error) {
	now, err := s.manager.Now(ctx)
	if err != nil {
		return nil, err
	}
	read := sub.fromWords
	switch flags := s.cmd.Flags(); {
	case flags.Changed("each-line"):
		read = sub.fromLines
	case flags.Changed("from-json"):
		read = sub.fromObjects
	case flags.Changed("array"):
		read = sub.fromArray
	}
	lines, err := read(s)
	if err != nil {
		return nil, err
	}
	specs := make([]manager.Spec, len(lines))
	queues := queueCheck{ctx: ctx, s: s}
	for i, l := range lines {
		if specs[i], err = l.spec(now); err == nil {
			err = s.manager.Check(specs[i])
		}
		if err == nil {
			err = queues.check(specs[i].Queue)
		}
		if err != nil {
			return nil, l.at(err)
		}
	}
	return specs, nil
}

// fromWords makes one task of the words after the flags: they are its input, or
// its argument list where an input could not say the same.
func (sub *submission) fromWords(s *session) ([]line, error) {
	f := sub.form
	f.setWords(s.args)
	return []line{{form: f}}, nil
}

// setWords makes words the input, or the argument list where an input could not
// say the same.
func (f *form) setWords(words []string) {
	f.input = strings.Join(words, " ")
	if !slices.Equal(strings.Fields(f.input), words) && len(words) > 0 {
		f.input, f.argv = "", words
	}
}

func (l *line) spec(now time.Time) (manager.Spec, error) { return l.form.spec(now) }
