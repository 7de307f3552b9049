package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/task"
)

// queue is the group of verbs that look at queues and change them.
func (a *app) queue() *cobra.Command {
	cmd := &cobra.Command{
		Use: queueField, Aliases: []string{"queues"}, Short: "List the queues, add them, and change them",
		Long: "queue lists and changes the queues of the namespace, also while their tasks run. Lowering a limit\n" +
			"stops no running task. Attributes are " + strings.Join(plainKeys(), ", ") + "; default_NAME is the value for tasks that do not set it.",
		Example: "  tdf-manager queue add nightly threads=20 maxthreads=2 nodes_pin=node-1,node-2\n" +
			"  tdf-manager queue set nightly threads=unlimited default_max_fails=3\n" +
			"  tdf-manager queue pause nightly\n" +
			"  tdf-manager queue ls",
	}
	cmd.AddCommand(a.queueLs(), a.queueShow(), a.queueAdd(), a.queueSet(), a.queuePause(), a.queueResume(), a.queueRm())
	return cmd
}

// plainKeys are the attributes of a queue but for the defaults of its tasks.
func plainKeys() []string {
	var keys []string
	for _, key := range task.QueueKeys() {
		if !strings.HasPrefix(key, defaultPrefix) {
			keys = append(keys, key)
		}
	}
	return keys
}

// defaultPrefix is before the name of a task's value that a queue gives.
const defaultPrefix = "default_"

// readQueue reads a queue by its name.
func readQueue(ctx context.Context, s *session, name string) (*task.Queue, error) {
	q, err := s.manager.Queue(ctx, name)
	return &q, s.unknownQueue(ctx, name, err)
}

// parsePairs reads words of the form name=value. notPair and twice are the errors for another word and for a name that
// comes again, with a verb for it.
func parsePairs(words []string, notPair, twice string) (map[string]string, error) {
	set := map[string]string{}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			return nil, cli.Usagef(notPair, word)
		}
		if _, again := set[name]; again {
			return nil, cli.Usagef(twice, name)
		}
		set[name] = value
	}
	return set, nil
}

func parseAttributes(words []string) (map[string]string, error) {
	return parsePairs(words, "%q is not an attribute; write name=value such as maxthreads=2", "attribute %s is given twice; give it once")
}

// changesText is for people: "threads none -> 20, paused false -> true".
func changesText(list []answer.Difference) string {
	parts := make([]string, len(list))
	for i, d := range list {
		parts[i] = fmt.Sprintf("%s %s -> %s", d.Name, cmp.Or(d.Before, answer.None), cmp.Or(d.After, answer.None))
	}
	return strings.Join(parts, ", ")
}

func (a *app) queueLs() *cobra.Command {
	return withJSON(&cobra.Command{
		Use: "ls", Aliases: []string{listAlias}, Short: "List the queues and count their tasks",
		Long: "ls lists the queues by name. WAITING tasks are open, DUE ones may start now, OLDEST is how long the\n" +
			"first of them has been due. THREADS is the limit of running tasks in the whole fleet, MAXTHREADS\n" +
			"that on each node. ENDED counts the tasks that have ended since the queue was made.",
		Example: "  tdf-manager queue ls\n  tdf-manager queue ls --json | jq '.[] | select(.paused).name'", Args: cobra.NoArgs,
		RunE: a.withManager(func(ctx context.Context, s *session) error {
			queues, err := s.manager.Queues(ctx)
			if err != nil {
				return err
			}
			now, err := s.shownAt(ctx)
			if err != nil {
				return err
			}
			return s.result(queues, func() { listQueues(s, queues, now) })
		}),
	})
}

func listQueues(s *session, queues []task.Queue, now time.Time) {
	table := s.out.Table("NAME", "PAUSED", "WAITING", "DUE", "RUNNING", "THREADS", "MAXTHREADS", "OLDEST", "ENDED")
	for i := range queues {
		q := &queues[i]
		paused := "-"
		if q.Paused {
			paused = pausedField
		}
		if len(q.Damaged) > 0 {
			paused = "damaged"
		}
		table.Row(q.Name, paused, q.Waiting, q.Due, q.Running, q.Threads, q.MaxThreads,
			waited(q.Oldest, now), dashText(endedText(q.Ended, q.Retried)))
	}
	table.Flush()
	if len(queues) < 2 {
		s.note("there is only the default queue; make another with %s", s.command("queue add NAME"))
	}
}

// waited is how long a task has been due.
func waited(since, now time.Time) string {
	if since.IsZero() {
		return "-"
	}
	return rounded(max(0, now.Sub(since)))
}

// rounded is a duration as people read it.
func rounded(d time.Duration) string {
	precision := time.Second
	if d < time.Minute {
		precision = 100 * time.Millisecond
	}
	return d.Round(precision).String()
}

func (a *app) queueShow() *cobra.Command {
	return showing(a, &cobra.Command{
		Use: "show NAME", Short: "Show the attributes of a queue, and count its tasks",
		Example: "  tdf-manager queue show default\n  tdf-manager queue show nightly --json",
	}, readQueue, showQueue)
}

// showing makes the verb that shows one thing by its name.
func showing[T any](
	a *app, cmd *cobra.Command, read func(context.Context, *session, string) (*T, error), show func(context.Context, *session, *T) error,
) *cobra.Command {
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = a.withManager(func(ctx context.Context, s *session) error {
		one, err := read(ctx, s, s.args[0])
		if err != nil {
			return err
		}
		if s.json {
			s.out.JSON(one)
			return nil
		}
		return show(ctx, s, one)
	})
	return withJSON(cmd)
}

func showQueue(ctx context.Context, s *session, q *task.Queue) error {
	now, err := s.manager.Now(ctx)
	if err != nil {
		return err
	}
	table := s.out.Table()
	table.Row("queue", q.Name)
	if len(q.Damaged) > 0 {
		table.Row("damaged", q.Damaged.Text()+"; nothing is taken from the queue until this is set anew")
	}
	for _, a := range answer.QueueAttributes(q) {
		table.Row(a.Name, dashText(a.Text))
	}
	if !q.Created.IsZero() {
		table.Row("created", when(q.Created))
	}
	table.Row("waiting", fmt.Sprintf("%d, %d of them due", q.Waiting, q.Due))
	table.Row("oldest", waited(q.Oldest, now))
	table.Row("running", runningOn(q))
	table.Row("ended", dashText(endedText(q.Ended, q.Retried)))
	table.Flush()
	return nil
}

func dashText(text string) string { return cmp.Or(text, "-") }

// runningOn is the number of rounds under way, and where.
func runningOn(q *task.Queue) string {
	text := strconv.FormatInt(q.Running, 10)
	if len(q.RunningByNode) > 0 {
		text += " (" + joined(q.RunningByNode, func(node string, n int64) string { return fmt.Sprintf("%s %d", node, n) }) + ")"
	}
	return text
}

func (a *app) queueAdd() *cobra.Command {
	return withJSON(withDryRun(&cobra.Command{
		Use: "add [NAME] [ATTRIBUTE=VALUE...]", Short: "Make a queue",
		Long: "add makes a queue; without NAME it makes up a name and prints it. See queue for the attributes.",
		Example: "  tdf-manager queue add nightly threads=20 maxthreads=2\n" +
			"  tdf-manager queue add gpu default_resources=gpu=1 nodes_pin=node-1,node-2\n" +
			"  tdf-manager queue add --dry-run nightly order=lifo",
		RunE: a.withManager(addQueue),
	}))
}

func addQueue(ctx context.Context, s *session) error {
	name, words := "", s.args
	if len(words) > 0 && !strings.Contains(words[0], "=") {
		name, words = words[0], words[1:]
		if name == "" {
			return cli.Usagef("the name is empty; leave it out to get one made")
		}
	}
	set, err := parseAttributes(words)
	if err != nil {
		return err
	}
	added, err := answer.AddQueue(ctx, s.manager, name, set, s.change())
	if errors.Is(err, task.ErrQueueExists) {
		return fmt.Errorf("%w; change it with %s", err, s.command("queue set %s", name))
	}
	if err != nil {
		return err
	}
	return s.result(added, func() { printAdded(s, added.Queue) })
}

func printAdded(s *session, q *task.Queue) {
	empty := task.ParseQueue(q.Name, nil).Empty()
	empty.Aging = q.Aging
	text := "added queue " + q.Name
	if s.dryRun {
		text = "would add queue " + q.Name
	}
	if set := answer.Differences(answer.QueueAttributes(&empty), answer.QueueAttributes(q)); len(set) > 0 {
		text += ": " + changesText(set)
	}
	s.printf("%s\n", cli.Safe(text))
}

func (a *app) queueSet() *cobra.Command {
	return withJSON(withDryRun(&cobra.Command{
		Use: "set NAME ATTRIBUTE=VALUE...", Short: "Change attributes of a queue, all of them or none",
		Long: "set changes attributes of a queue from the next claim on, and stops no running task. An empty value\n" +
			"restores the default. See queue for the attributes.",
		Example: "  tdf-manager queue set nightly maxthreads=2 nodes_pin=node-1,node-2\n" +
			"  tdf-manager queue set nightly threads=unlimited nodes_pin=\n" +
			"  tdf-manager queue set default threads=0 --dry-run",
		Args: cobra.MinimumNArgs(2), RunE: a.withManager(setQueue),
	}))
}

func setQueue(ctx context.Context, s *session) error {
	set, err := parseAttributes(s.args[1:])
	if err != nil {
		return err
	}
	q, err := answer.SetQueue(ctx, s.manager, s.args[0], set, s.change())
	if err != nil {
		return s.unknownQueue(ctx, s.args[0], err)
	}
	return s.result(q, func() { printSet(s, "queue "+q.Name, q.Differences) })
}

// printSet says what has changed of a queue or a node, also where others have changed
// more meanwhile.
func printSet(s *session, what string, changes []answer.Difference) {
	text := what + ": " + changesText(changes)
	switch {
	case len(changes) == 0:
		text = what + " is so already; nothing changes"
	case s.dryRun:
		text = "would change " + text
	}
	s.printf("%s\n", cli.Safe(text))
}

func (a *app) queuePause() *cobra.Command {
	return a.pausing(true, &cobra.Command{
		Use: "pause NAME...", Short: "Stop claims from queues; running tasks go on",
		Example: "  tdf-manager queue pause nightly\n  tdf-manager queue pause nightly default --dry-run",
	})
}

func (a *app) queueResume() *cobra.Command {
	return a.pausing(false, &cobra.Command{
		Use: "resume NAME...", Short: "Allow claims from paused queues again",
		Example: "  tdf-manager queue resume nightly\n  tdf-manager queue resume nightly default",
	})
}

// pausing makes the verbs pause and resume.
func (a *app) pausing(pause bool, cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.RunE = a.withManager(func(ctx context.Context, s *session) error {
		queues, err := readAll(ctx, s, readQueue)
		if err != nil {
			return err
		}
		all := []*answer.QueuePaused{}
		err = s.logged(ctx, "queue "+cmd.Name(), func(ctx context.Context) error {
			for _, q := range queues {
				done, err := answer.PauseQueue(ctx, s.manager, q, pause, s.change())
				if err != nil {
					return err
				}
				all = append(all, done)
				if !s.json {
					s.printf("queue %s: %s\n", cli.Safe(q.Name), pauseText(q, pause, s.dryRun))
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		return s.result(all, func() {})
	})
	return withJSON(withDryRun(cmd))
}

func pauseText(q *task.Queue, pause, dryRun bool) string {
	text := map[bool]string{true: "paused", false: "resumed"}[pause]
	if dryRun {
		text = map[bool]string{true: "would pause", false: "would resume"}[pause]
	}
	if q.Paused == pause {
		text = map[bool]string{true: "it is paused already", false: "it is not paused"}[pause]
	}
	if pause && q.Running > 0 {
		text += "; " + strconv.FormatInt(q.Running, 10) + " running tasks go on"
	}
	return text
}
