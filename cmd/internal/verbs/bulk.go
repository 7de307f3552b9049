package verbs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// page is how many tasks are read, and changed, in one go.
const page = 500

// bulk is a verb that changes all tasks that are meant, a page at a time, and
// counts what became of them.
type bulk struct {
	choice choice
	// states are those of the tasks that the verb can change: what is looked
	// through where tasks are not named by their ids. outcomes are the same for
	// verbs that work on ended tasks, archived or not.
	states, outcomes []statemachine.State
	// narrowed says that the outcomes count also beside ids, and that they are
	// enough to say which tasks are meant.
	narrowed bool
	// careful verbs want --yes for all tasks at once.
	careful bool
	// effects are what the verb can do to a task, in the order of the report.
	effects []effect
	// change does it to a page of tasks and tells the tally. It may have changed
	// some of them also with an error.
	change func(ctx context.Context, s *session, ids []int64, t *tally) error
	// remedy is what to do instead about a task that the verb cannot change.
	remedy func(before statemachine.State) string

	dryRun, yes bool
	json        *bool
}

// effect is a thing a verb does to tasks: the name of the list in JSON, and what
// the report says of n tasks, done and in a dry run.
type effect struct{ name, done, would string }

// command makes the command of the verb with the flags all have.
func (b *bulk) command(a *app, verb, short, long, example string) *cobra.Command {
	cmd := &cobra.Command{
		Use: verb + " [TASKS]", Short: short, Long: long + "\n\n" + selectorHelp + "\n\n" +
			"It ends with 1 if a task named by its id could not be changed, or is not there.",
		Example: example,
		RunE:    a.withManager(false, noOptions, b.do),
	}
	b.choice.flags(cmd)
	dryRunFlag(cmd, &b.dryRun)
	if b.careful {
		cmd.Flags().BoolVar(&b.yes, "yes", false, "really do it to all tasks of the namespace")
	}
	b.json = jsonFlag(cmd)
	return cmd
}

// dryRunFlag adds -n to a verb that changes something.
func dryRunFlag(cmd *cobra.Command, into *bool) {
	cmd.Flags().BoolVarP(into, "dry-run", "n", false, "only say what would be done, and end as if it were")
}

// changeOptions go with every change: who wants it, and whether it is meant.
func changeOptions(dryRun bool) []manager.ChangeOption {
	opts := []manager.ChangeOption{manager.By(operator())}
	if dryRun {
		opts = append(opts, manager.DryRun())
	}
	return opts
}

// operator is who is at work, for the logs of tasks.
func operator() string {
	who, err := user.Current()
	if err != nil {
		return "tdf-manager"
	}
	host, err := os.Hostname()
	if err != nil {
		return cli.Safe(who.Username)
	}
	return cli.Safe(who.Username + "@" + host)
}

func (b *bulk) do(ctx context.Context, s *session) error {
	sel, err := b.selection(ctx, s)
	if err != nil {
		return err
	}
	t := newTally(b.effects, b.dryRun)
	err = b.pages(ctx, s, sel, t)
	if err == nil && t.empty() {
		err = b.choice.nothing(ctx, s)
	}
	if err != nil && t.empty() {
		return err
	}
	return b.report(ctx, s, t, sel.IDs != nil && !b.choice.narrow() && !b.narrowed, err)
}

// selection is which tasks to look at.
func (b *bulk) selection(ctx context.Context, s *session) (manager.Selection, error) {
	sel, err := b.choice.selection(ctx, s)
	if err != nil {
		return sel, err
	}
	if b.narrowed {
		sel.Outcomes, sel.All = b.outcomes, sel.IDs == nil
	}
	switch {
	case sel.IDs == nil && !sel.All:
		return sel, cli.Usagef("which tasks? Name them as 7, 3-9, last or all, or narrow them by --state, --queue, --program, --match")
	case sel.All && !b.choice.narrow() && !b.narrowed && b.careful && !b.yes && !b.dryRun:
		return sel, b.unsure(ctx, s)
	case sel.All && len(sel.States) == 0 && !b.narrowed:
		sel.States, sel.Outcomes = b.states, b.outcomes
	}
	return sel, nil
}

// unsure is the answer to all without --yes.
func (b *bulk) unsure(ctx context.Context, s *session) error {
	counts, err := s.manager.Count(ctx)
	if err != nil {
		return err
	}
	n := int64(0)
	for _, state := range slices.Concat(b.states, b.outcomes) {
		n += counts[state]
	}
	if len(b.outcomes) > 0 {
		n += counts[statemachine.Archived]
	}
	return cli.WithCode(cli.ExitUsage, fmt.Errorf("%s all means all %d tasks of namespace %s that it can change; "+
		"add --yes, or --dry-run to see what it would do", s.cmd.Name(), n, cli.Safe(s.manager.Namespace())))
}

// pages changes what is meant, page by page.
func (b *bulk) pages(ctx context.Context, s *session, sel manager.Selection, t *tally) error {
	for found, err := range s.manager.Select(ctx, sel, page) {
		if err != nil {
			return err
		}
		ids := make([]int64, len(found))
		for i := range found {
			ids[i] = found[i].ID
		}
		if err := b.change(ctx, s, ids, t); err != nil {
			return err
		}
	}
	return nil
}

// tally is what became of tasks so far.
type tally struct {
	effects []effect
	dryRun  bool
	// done are the tasks by the name of the effect.
	done map[string][]affected
	// refused are those that did not change, with the state they are in;
	// missing are not there.
	refused []refusal
	missing []int64
}

// affected is a task that was changed, and the one opened for it if there is one.
type affected struct{ id, opened int64 }

// refusal is a task that stays as it is.
type refusal struct {
	id    int64
	state statemachine.State
	err   error
}

func newTally(effects []effect, dryRun bool) *tally {
	return &tally{effects: effects, dryRun: dryRun, done: map[string][]affected{}}
}

func (t *tally) add(effect string, task affected) { t.done[effect] = append(t.done[effect], task) }

// refuse notes a task that did not change.
func (t *tally) refuse(id int64, state statemachine.State, err error) {
	if errors.Is(err, manager.ErrNotFound) && !errors.Is(err, manager.ErrPurged) {
		t.missing = append(t.missing, id)
		return
	}
	t.refused = append(t.refused, refusal{id: id, state: state, err: err})
}

// changed is the number of tasks that were changed.
func (t *tally) changed() int {
	n := 0
	for _, tasks := range t.done {
		n += len(tasks)
	}
	return n
}

func (t *tally) empty() bool { return t.changed()+len(t.refused)+len(t.missing) == 0 }

// refusedIDs are the tasks that did not change.
func (t *tally) refusedIDs() []int64 {
	ids := make([]int64, len(t.refused))
	for i := range t.refused {
		ids[i] = t.refused[i].id
	}
	return ids
}

// How many refused tasks are told one by one, to people and in JSON.
const (
	refusalsShown = 5
	refusalsJSON  = 1000
)

// report says what became of the tasks and makes the exit code. named says that
// they were named by their ids; broken is what ended the work in the middle.
func (b *bulk) report(ctx context.Context, s *session, t *tally, named bool, broken error) error {
	if broken != nil {
		broken = s.finish(orSignal(ctx, broken))
	}
	if *b.json {
		if err := cli.WriteJSON(s.out, b.object(t, broken)); err != nil {
			return err
		}
		return b.end(t, named, broken, cli.Exit(cli.ExitCode(broken)))
	}
	text := b.summary(t)
	if broken != nil {
		text = "ended in the middle; so far: " + text
	}
	if err := printf(s.out, "%s\n%s", text, b.refusals(t)); err != nil {
		return err
	}
	return b.end(t, named, broken, broken)
}

func (b *bulk) end(t *tally, named bool, broken, err error) error {
	if broken == nil && named && len(t.refused)+len(t.missing) > 0 {
		return cli.Exit(cli.ExitTaskFailed)
	}
	return err
}

// orSignal puts the signal in the place of the context's error it caused.
func orSignal(ctx context.Context, err error) error {
	var signal *cli.SignalError
	if errors.Is(err, context.Canceled) && errors.As(context.Cause(ctx), &signal) {
		return signal
	}
	return err
}

// summary counts: "cancelled 812, 3 were finished already (unchanged)".
func (b *bulk) summary(t *tally) string {
	var parts []string
	for _, e := range t.effects {
		if n := len(t.done[e.name]); n > 0 {
			text := e.done
			if t.dryRun {
				text = e.would
			}
			parts = append(parts, fmt.Sprintf(text, n)+namedText(t.done[e.name], t.dryRun))
		}
	}
	parts = append(parts, unchangedTexts(t.refused)...)
	if n := len(t.missing); n > 0 {
		parts = append(parts, fmt.Sprintf("%d not found", n))
	}
	if len(parts) == 0 {
		return "no task fits: nothing to do"
	}
	return strings.Join(parts, ", ")
}

// namedText names the tasks that were opened, if any were, and in a dry run those
// that would be changed.
func namedText(tasks []affected, dryRun bool) string {
	var opened []int64
	changed := make([]int64, 0, len(tasks))
	for _, one := range tasks {
		changed = append(changed, one.id)
		if one.opened > 0 {
			opened = append(opened, one.opened)
		}
	}
	switch {
	case opened != nil:
		return ": " + ranges(opened)
	case dryRun:
		return ": " + shortRanges(changed)
	default:
		return ""
	}
}

// unchangedTexts counts refused tasks by why they were.
func unchangedTexts(refused []refusal) []string {
	finished, damaged := 0, 0
	others := map[statemachine.State]int{}
	for i := range refused {
		switch r := &refused[i]; {
		case !wrongState(r.err):
			damaged++
		case r.state.Settled():
			finished++
		default:
			others[r.state]++
		}
	}
	var texts []string
	add := func(n int, format string) {
		if n > 0 {
			texts = append(texts, fmt.Sprintf(format, n))
		}
	}
	add(finished, "%d were finished already (unchanged)")
	for _, state := range statemachine.States() {
		add(others[state], "%d were "+string(state)+" (unchanged)")
	}
	add(damaged, "%d could not be changed")
	return texts
}

// wrongState reports whether a task is in the wrong state, and nothing else is
// wrong with it.
func wrongState(err error) bool {
	var wrong *statemachine.TransitionError
	return errors.As(err, &wrong) || errors.Is(err, manager.ErrNotEnded)
}

// refusals tells the first refused tasks one by one.
func (b *bulk) refusals(t *tally) string {
	var text strings.Builder
	for i := range t.refused[:min(len(t.refused), refusalsShown)] {
		fmt.Fprintln(&text, cli.Safe(b.refusal(&t.refused[i])))
	}
	if more := len(t.refused) - refusalsShown; more > 0 {
		fmt.Fprintf(&text, "and %d more\n", more)
	}
	if len(t.missing) > 0 {
		const most = 100
		fmt.Fprintf(&text, "no such task: %s\n", shorten(ranges(t.missing), most))
	}
	return text.String()
}

func (b *bulk) refusal(r *refusal) string {
	if errors.Is(r.err, manager.ErrPurged) {
		return r.err.Error() // it names the task
	}
	if !wrongState(r.err) {
		return fmt.Sprintf("task %d: %v", r.id, r.err)
	}
	text := fmt.Sprintf("task %d is %s", r.id, r.state)
	if remedy := b.remedy(r.state); remedy != "" {
		text += ": " + remedy
	}
	return text
}

// object is the JSON form: a list of ids for each effect, or of the old and the
// new id where tasks were opened.
func (b *bulk) object(t *tally, broken error) map[string]any {
	object := map[string]any{
		dryRunField: t.dryRun, "unchanged": t.refusedIDs(), "not_found": jsonList(t.missing),
	}
	for _, e := range t.effects {
		object[e.name] = affectedObjects(t.done[e.name], len(b.outcomes) > 0)
	}
	told := t.refused[:min(len(t.refused), refusalsJSON)]
	reasons := make([]map[string]any, len(told))
	for i := range told {
		r := &told[i]
		reasons[i] = map[string]any{"id": r.id, "state": r.state, "reason": b.refusal(r)}
	}
	object["reasons"] = reasons
	if broken != nil {
		object["error"], object["code"] = broken.Error(), cli.ExitCode(broken)
	}
	return object
}

func affectedObjects(tasks []affected, opening bool) []any {
	list := make([]any, len(tasks))
	for i, one := range tasks {
		list[i] = one.id
		if opening {
			list[i] = map[string]any{"id": one.id, "new": orNull(one.opened)}
		}
	}
	return list
}

// orNull is null for the id of no task.
func orNull(id int64) any {
	if id == 0 {
		return nil
	}
	return id
}
