package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/cli"
	"github.com/tdf-go/tdf/manager"
)

// submission is the verb submit with its flags.
type submission struct {
	form               form
	eachLine, fromJSON string
	requestKey         string
	quiet              bool
	json               *bool
}

func (a *app) submit() *cobra.Command {
	sub := &submission{}
	cmd := &cobra.Command{
		Use:   "submit --program NAME [flags] [-- WORDS...]",
		Short: "Open tasks",
		Long: "submit opens one task, or one for each line of a file.\n\n" +
			"WORDS are what run.sh is called with. Nothing in them is interpreted. What is not given\n" +
			"is taken from [task_defaults]. Times are seconds since 1970, RFC 3339 or +10m from now;\n" +
			"durations are seconds or such as 1h30m; inf means no limit.",
		Example: "  tdf-manager submit --program sum --source rsync:run.sh -- 1 2 3\n" +
			"  seq 100 | tdf-manager submit --program sum --source rsync:run.sh --each-line -\n" +
			`  echo '{"program":"sum","source":"rsync:run.sh","input":"1 2"}' | tdf-manager submit --from-json -`,
		RunE: a.withManager(false, noOptions, sub.do),
	}
	sub.taskFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&sub.eachLine, "each-line", "", "open a task for each line of a file (- is stdin); it is the input")
	flags.StringVar(&sub.fromJSON, "from-json", "", "open a task for each line of a file (- is stdin), a JSON object")
	flags.StringVar(&sub.requestKey, "request-key", "", "name of this submission: repeated, nothing is opened twice")
	flags.BoolVarP(&sub.quiet, "quiet", "q", false, "print the ids only, one a line")
	sub.json = jsonFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("each-line", "from-json")
	cmd.MarkFlagsMutuallyExclusive("quiet", "json")
	return cmd
}

// taskFlags adds the flags that define a task.
func (sub *submission) taskFlags(cmd *cobra.Command) {
	flags, f := cmd.Flags(), &sub.form
	flags.StringVar(&f.program, "program", "", "name of the program")
	flags.StringVar(&f.source, "source", "", "where to get it: https://..., rsync:...")
	flags.StringVar(&f.startAfter, "start-after", "", "earliest start")
	flags.StringVar(&f.endBefore, "end-before", "", "latest moment of being executed")
	flags.StringVar(&f.timeout, "timeout", "", "longest time of a round")
	flags.StringVar(&f.maxFails, "max-fails", "", "how often the task may fail and be opened again")
	flags.StringVar(&f.maxTimeouts, "max-timeouts", "", "how often it may time out and be opened again")
	flags.StringVar(&f.maxLosses, "max-losses", "", "how often it may lose its worker and be opened again")
	flags.StringVar(&f.failOn, "fail-on", "", "what makes a round a failure: any, stderr or exit")
}

// do reads and checks everything before it opens anything.
func (sub *submission) do(ctx context.Context, s *session) error {
	if s.cmd.Flags().Changed("request-key") && sub.requestKey == "" {
		return cli.Usagef("--request-key is empty; give a name for this submission")
	}
	specs, err := sub.specs(ctx, s)
	if err != nil {
		return err
	}
	var opts []manager.OpenOption
	if sub.requestKey != "" {
		opts = append(opts, manager.WithRequestKey(sub.requestKey))
	}
	ids, err := s.manager.OpenAll(ctx, slices.Values(specs), opts...)
	if err != nil {
		return sub.halfDone(s, ids, len(specs), err)
	}
	return sub.print(s, ids, specs)
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
	}
	lines, err := read(s)
	if err != nil {
		return nil, err
	}
	specs := make([]manager.Spec, len(lines))
	for i, l := range lines {
		if specs[i], err = l.spec(now); err == nil {
			err = s.manager.Check(specs[i])
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
	f.input = strings.Join(s.args, " ")
	if !slices.Equal(strings.Fields(f.input), s.args) && len(s.args) > 0 {
		f.input, f.argv = "", s.args
	}
	return []line{{form: f}}, nil
}

// halfDone says what was opened before the error, and how to go on.
func (sub *submission) halfDone(s *session, ids []int64, total int, err error) error {
	var broken *manager.SubmissionError
	if !errors.As(err, &broken) {
		return err
	}
	if len(ids) == 0 {
		return fmt.Errorf("no task was opened: %w", broken.Err)
	}
	if sub.quiet {
		if err := sub.print(s, ids, nil); err != nil {
			return err
		}
	}
	return fmt.Errorf("only %d of %d tasks were opened (%s): %w; "+
		"to open the others, and none twice, repeat it with --request-key %s",
		len(ids), total, ranges(ids), broken.Err, broken.RequestKey)
}

func (sub *submission) print(s *session, ids []int64, specs []manager.Spec) error {
	switch {
	case *sub.json:
		return cli.WriteJSON(s.out, map[string]any{"ids": slices.Concat([]int64{}, ids)})
	case sub.quiet:
		var text strings.Builder
		for _, id := range ids {
			fmt.Fprintln(&text, id)
		}
		return printf(s.out, "%s", text.String())
	case len(ids) == 0:
		return printf(s.out, "there was nothing to open\n")
	case len(ids) == 1:
		words := inputText(specs[0].Input, specs[0].Argv)
		return printf(s.out, "opened task %d: %s %s\n", ids[0], cli.Safe(specs[0].Program), cli.Safe(words))
	default:
		return printf(s.out, "opened %d tasks: %s\n", len(ids), ranges(ids))
	}
}

// line is a task with the place it was read from.
type line struct {
	form
	file   string
	number int
}

// at says where in the file an error is.
func (l *line) at(err error) error {
	if l.number == 0 {
		return err
	}
	return fmt.Errorf("%s:%d: %w; nothing was opened", l.file, l.number, err)
}

func (l *line) spec(now time.Time) (manager.Spec, error) { return l.form.spec(now) }
