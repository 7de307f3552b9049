package verbs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func (a *app) cancel() *cobra.Command {
	b := &bulkVerb{change: bulk.Cancel()}
	return withReason(b.command(a, "cancel", "Cancel tasks, and stop running ones",
		"cancel ends a waiting task at once. The worker of a running task stops its whole process tree; the\n"+
			"task ends terminated, with the output written so far. An ended task stays as it is.",
		"  tdf-manager cancel 7 --reason \"wrong input\"\n"+
			"  tdf-manager cancel --queue nightly --state open --dry-run\n"+
			"  tdf-manager cancel all --yes"))
}

func (a *app) hold() *cobra.Command {
	b := &bulkVerb{change: bulk.Hold()}
	return withReason(b.command(a, "hold", "Keep open tasks from starting until they are released",
		"hold blocks open tasks: no worker claims them until release.",
		"  tdf-manager hold 3-9 --reason \"input is late\"\n"+
			"  tdf-manager hold --queue nightly\n"+
			"  tdf-manager hold all --dry-run"))
}

func (a *app) release() *cobra.Command {
	b := &bulkVerb{change: bulk.Release()}
	return b.command(a, "release", "Open tasks that are held",
		"release opens tasks that are blocked: those held, and those submitted with --hold.",
		"  tdf-manager release 3-9\n  tdf-manager release --queue nightly\n  tdf-manager release all")
}

func (a *app) attr() *cobra.Command {
	b := &bulkVerb{change: bulk.SetMeta(nil)}
	cmd := withReason(b.command(a, attrFlag, "Set attributes of tasks",
		"attr sets attributes of tasks in whichever state they are, archived ones too; name= removes one. A\n"+
			"program has them as TDF_META_NAME from its next round on; show, results and ls --attr read them.",
		"  tdf-manager attr 7 reviewed=yes\n"+
			"  tdf-manager attr j7 phase=second owner=\n"+
			"  tdf-manager attr --queue nightly --attr phase=first phase=second"))
	cmd.Use, cmd.RunE = attrFlag+" [TASKS] NAME=TEXT...", a.withManager(b.setMeta)
	return cmd
}

// setMeta does what the verb attr says: it takes the attributes out of the words.
func (b *bulkVerb) setMeta(ctx context.Context, s *session) error {
	pair := func(word string) bool { return strings.Contains(word, "=") }
	words := s.args
	s.args = slices.DeleteFunc(slices.Clone(words), pair)
	set, err := pairs(slices.DeleteFunc(words, func(word string) bool { return !pair(word) }), noText)
	if err == nil && set == nil {
		err = cli.Usagef("say which attributes to set, as name=text, such as phase=load; name= removes one")
	}
	if err == nil {
		err = task.CheckMeta(set)
	}
	if err != nil {
		return err
	}
	b.change = bulk.SetMeta(set)
	return b.do(ctx, s)
}

func (a *app) params() *cobra.Command {
	b := &bulkVerb{change: bulk.SetParams(nil)}
	cmd := withReason(b.command(a, paramsField, "Give tasks that wait other parameters",
		"params gives tasks that are open or blocked other parameters, a JSON object, in the place of those that they\n"+
			"have; {} for none. The program has them as TDF_PARAMS. A task that has begun keeps its own.",
		"  tdf-manager params 7 '{\"depth\":3}'\n"+
			"  tdf-manager params --queue nightly '{\"depth\":3}' --dry-run"))
	cmd.Use, cmd.RunE = paramsField+" [TASKS] JSON", a.withManager(b.setParams)
	return cmd
}

// setParams does what the verb params says: the last word is the object.
func (b *bulkVerb) setParams(ctx context.Context, s *session) error {
	last := len(s.args) - 1
	if last < 0 || !strings.HasPrefix(strings.TrimSpace(s.args[last]), "{") {
		return cli.Usagef("give the parameters last, a JSON object such as '{\"depth\":3}', or '{}' for none")
	}
	given, err := task.Parse(paramsField, s.args[last])
	if err != nil {
		return err
	}
	s.args = s.args[:last]
	b.change = bulk.SetParams(json.RawMessage(given))
	return b.do(ctx, s)
}

// retrying is the verb retry with its flags.
type retrying struct {
	bulkVerb

	failed, again bool
	endBefore     string
}

// failedStates are what --failed means: work that was begun and did not get done.
var failedStates = []string{string(statemachine.Failed), string(statemachine.TimedOut), string(statemachine.Orphaned)}

func (a *app) retry() *cobra.Command {
	r := &retrying{bulkVerb: bulkVerb{change: bulk.Retry(manager.RetryOptions{})}}
	cmd := r.command(a, "retry", "Open new tasks from ended ones, with the same definition",
		"retry opens for each ended task a new one with the same definition, linked by retry_of. A task that\n"+
			"has a retry gets no second one. --failed selects tasks that failed, timed out or lost their workers\n"+
			"too often, archived or not, but none that were cancelled, terminated or expired.",
		"  tdf-manager retry 7\n"+
			"  tdf-manager retry --failed --match 'No space left' --queue nightly\n"+
			"  tdf-manager retry --failed --dry-run")
	flags := cmd.Flags()
	flags.BoolVar(&r.failed, "failed", false, "only tasks that failed, timed out or were orphaned")
	flags.BoolVar(&r.again, "again", false, "also tasks that have a retry")
	flags.StringVar(&r.endBefore, "end-before", "", "latest end of the execution, instead of the former one")
	cmd.MarkFlagsMutuallyExclusive("failed", "state")
	cmd.RunE = a.withManager(r.do)
	return cmd
}

func (r *retrying) do(ctx context.Context, s *session) error {
	if r.failed {
		r.choice.States = failedStates
	}
	if len(s.args) == 0 && len(r.choice.States) == 0 && r.choice.Narrow() {
		return cli.Usagef("without ids, add --failed or --state; or say all, which means those that succeeded too")
	}
	o := manager.RetryOptions{Again: r.again}
	if s.cmd.Flags().Changed("end-before") {
		now, err := s.manager.Now(ctx)
		if err != nil {
			return err
		}
		end, err := parseWhen("end_before", r.endBefore, now)
		if err == nil && end.IsZero() {
			err = cli.Usagef("--end-before is empty; write a time such as +1h, or inf")
		}
		if err != nil {
			return err
		}
		o.EndBefore = end
	}
	r.change = bulk.Retry(o)
	return r.bulkVerb.do(ctx, s)
}

// selectorHelp tells how tasks are named, in the help of all verbs that take some.
const selectorHelp = "Name tasks as 7, 3-9, 1,3,5-8 or all, or a job as j7 (see jobs), or last, the job of the task opened\n" +
	"last. --state, --queue, --program, --attr and --match select among them, or, without names, among all tasks."

// retriedHelp says what --state leaves out in verbs that look at tasks. Those that go on with them take it too.
const retriedHelp = "--state failed, or another end, leaves it out."

// choice is what words and flags say about which tasks are meant.
type choice struct{ bulk.Filter }

func (c *choice) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&c.States, "state", nil, "only tasks in these states, separated by commas")
	flags.StringVar(&c.Queue, "queue", "", "only tasks of this queue")
	flags.StringVar(&c.Program, "program", "", "only tasks of this program")
	flags.Func(attrFlag, "only tasks with this attribute, as `name=text`, or name= for those without; may be repeated", c.attr)
	flags.StringVar(&c.Match, "match", "", "only tasks whose last error matches this regular expression")
}

func (c *choice) attr(text string) error {
	one, err := pairs([]string{text}, noText)
	if err == nil {
		err = task.CheckMeta(one)
	}
	if c.Meta == nil {
		c.Meta = map[string]string{}
	}
	maps.Copy(c.Meta, one)
	return err
}

// selection puts words and flags together.
func (c *choice) selection(ctx context.Context, s *session) (manager.Selection, error) {
	return c.read(s, c.Selection, bulk.Newest(ctx, s.manager))
}

// archived is selection of tasks of an archive. newest says what the word last means.
func (c *choice) archived(s *session, newest func() (bulk.Last, error)) (manager.Selection, error) {
	return c.read(s, c.Archived, newest)
}

func (c *choice) read(
	s *session, parse func(newest func() (bulk.Last, error)) (manager.Selection, error), newest func() (bulk.Last, error),
) (manager.Selection, error) {
	for _, name := range []string{queueField, programField, "match"} {
		if flag := s.cmd.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
			return manager.Selection{}, cli.Usagef("--%s is empty; leave it out, or say what to look for", name)
		}
	}
	c.Tasks = s.args
	sel, err := parse(newest)
	if wrong, ok := errors.AsType[*bulk.FilterError](err); ok && s.cmd.Flags().Lookup(wrong.Field) != nil {
		err = cli.Usagef("--%w", err)
	}
	return sel, err
}

// nothing is what to say where no task fits: an unknown queue explains it.
func (c *choice) nothing(ctx context.Context, s *session) error {
	if c.Queue == "" {
		return nil
	}
	_, err := s.manager.Queue(ctx, c.Queue)
	return s.unknownQueue(ctx, c.Queue, err)
}

// unknownQueue adds to the error for a queue that is not there which one may have
// been meant.
func (s *session) unknownQueue(ctx context.Context, name string, err error) error {
	if !errors.Is(err, task.ErrNoQueue) {
		return err
	}
	queues, listErr := s.manager.Queues(ctx)
	if listErr != nil {
		return err // it says enough
	}
	known := make([]string, len(queues))
	for i := range queues {
		known[i] = queues[i].Name
	}
	return cli.WithCode(cli.ExitUsage, fmt.Errorf("%w; %s", err, answer.Meant(name, known, "see "+s.command("queue ls"))))
}

// someIDs is ranges where a few of them say enough.
func someIDs(ids []int64) string {
	const most = 100
	return clean.Shorten(clean.Ranges(ids), most)
}
