package verbs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// page is how many tasks are read in one go: those of a [manager.Selection] and those of an archive.
const page = 500

// bulkVerb is a verb that changes all tasks that are meant.
type bulkVerb struct {
	choice choice
	change *bulk.Change
	yes    bool
}

// effectTexts are what the report says of n tasks, done and in a dry run, by the effects of changes.
var effectTexts = map[string]struct{ done, would string }{
	"cancelled":  {"cancelled %d", "would cancel %d"},
	"asked":      {"asked workers to stop %d", "would ask workers to stop %d"},
	"reported":   {"%d have run and will not be opened again", "%d have run and would not be opened again"},
	"terminated": {"took %d from another client's workers", "would take %d from another client's workers"},
	"held":       {"held %d", "would hold %d"},
	"released":   {"released %d", "would release %d"},
	"set":        {"set for %d", "would set for %d"},
	openedField:  {"opened %d again", "would open %d again"},
	"existing":   {"%d were opened again before", "%d were opened again before"},
}

// command makes the command of the verb with the flags all have.
func (b *bulkVerb) command(a *app, verb, short, long, example string) *cobra.Command {
	cmd := withJSON(withDryRun(&cobra.Command{
		Use: verb + " [TASKS]", Short: short, Long: long + "\n\n" + selectorHelp + "\n\n" +
			"It ends with 1 if a task named by its id could not be changed, or does not exist.",
		Example: example,
		RunE:    a.withManager(b.do),
	}))
	b.choice.flags(cmd)
	if b.change.Careful {
		cmd.Flags().BoolVar(&b.yes, "yes", false, "confirm that all tasks of the namespace are meant")
	}
	return cmd
}

func (b *bulkVerb) do(ctx context.Context, s *session) error {
	sel, err := b.selection(ctx, s)
	if err != nil {
		return err
	}
	t := &bulk.Tally{}
	far, err := b.progress(ctx, s, sel)
	if err != nil {
		return err
	}
	display := newDisplay(ctx, s, far)
	err = b.change.Run(ctx, s.manager, sel, s.change(), t, func(n int) { far.done.Add(int64(n)) })
	display.close()
	if err == nil && t.Empty() {
		err = b.choice.nothing(ctx, s)
	}
	if err != nil && t.Empty() {
		return err
	}
	return b.report(ctx, s, t, sel.IDs != nil && !b.choice.Narrow(), err)
}

// bulkProgress is how many tasks a verb has come by, of how many if that is known.
type bulkProgress struct {
	total int64
	done  atomic.Int64
}

func (b *bulkVerb) progress(ctx context.Context, s *session, sel manager.Selection) (*bulkProgress, error) {
	p := &bulkProgress{}
	for _, r := range sel.IDs {
		p.total += r.Last - r.First + 1
	}
	if !b.choice.OnlyJob() {
		return p, nil
	}
	job, err := s.manager.Plan(ctx, sel.Plan)
	if err != nil {
		return nil, s.noJob(sel.Plan, err)
	}
	if p.total = job.Total; !slices.ContainsFunc(b.change.States, statemachine.State.IsOutcome) {
		p.total = job.Left
	}
	return p, nil
}

func (*bulkProgress) look(context.Context) {}

func (p *bulkProgress) lines(terminal bool) []string {
	done := p.done.Load()
	if p.total == 0 {
		return []string{fmt.Sprintf("%d tasks", done)}
	}
	return []string{doneText(min(done, p.total), p.total, terminal)}
}

// selection is which tasks to look at.
func (b *bulkVerb) selection(ctx context.Context, s *session) (manager.Selection, error) {
	sel, err := b.choice.selection(ctx, s)
	if err != nil {
		return sel, err
	}
	switch {
	case sel.IDs == nil && !sel.All:
		return sel, cli.Usagef(whichTasks)
	case sel.All && !b.choice.Narrow() && b.change.Careful && !b.yes && !s.dryRun:
		return sel, b.unsure(ctx, s)
	}
	return sel, nil
}

// unsure is the answer to all without --yes.
func (b *bulkVerb) unsure(ctx context.Context, s *session) error {
	counts, err := s.manager.Count(ctx)
	if err != nil {
		return err
	}
	n := int64(0)
	for _, state := range b.change.States {
		n += counts[state]
	}
	if slices.ContainsFunc(b.change.States, statemachine.State.IsOutcome) {
		n += counts[statemachine.Archived]
	}
	return cli.WithCode(cli.ExitUsage, fmt.Errorf("%s all means all %d tasks of namespace %s that it can change; "+
		"add --yes, or --dry-run to see what it would do", s.cmd.Name(), n, cli.Safe(s.manager.Namespace())))
}

// refusalsShown is how many refused tasks are told one by one.
const refusalsShown = 5

// report says what became of the tasks and makes the exit code. named says that
// they were named by their ids; broken is what ended the work in the middle.
func (b *bulkVerb) report(ctx context.Context, s *session, t *bulk.Tally, named bool, broken error) error {
	if broken != nil {
		broken = s.finish(cli.OrSignal(ctx, broken))
	}
	if s.json {
		report := b.change.Report(t, s.dryRun)
		if broken != nil {
			report.Error, report.Code = broken.Error(), cli.ExitCode(broken)
		}
		s.out.JSON(report)
		return b.end(t, named, broken, cli.Exit(cli.ExitCode(broken)))
	}
	if broken != nil {
		s.printf("ended in the middle; so far: ")
	}
	s.printf("%s\n%s", b.summary(s, t), b.refusals(t))
	return b.end(t, named, broken, broken)
}

func (b *bulkVerb) end(t *bulk.Tally, named bool, broken, err error) error {
	if broken == nil && named && len(t.Refused)+len(t.Missing) > 0 {
		return cli.Exit(cli.ExitTaskFailed)
	}
	return err
}

// summary counts: "cancelled 812, 3 were finished already (unchanged)".
func (b *bulkVerb) summary(s *session, t *bulk.Tally) string {
	var parts []string
	for _, name := range b.change.Effects {
		if n := len(t.Done[name]); n > 0 {
			text := effectTexts[name].done
			if s.dryRun {
				text = effectTexts[name].would
			}
			parts = append(parts, fmt.Sprintf(text, n)+namedText(t.Done[name], s.dryRun))
		}
	}
	parts = append(parts, unchangedTexts(t.Refused)...)
	if n := len(t.Missing); n > 0 {
		parts = append(parts, fmt.Sprintf("%d not found", n))
	}
	if len(parts) == 0 {
		return "no task fits: nothing to do"
	}
	return strings.Join(parts, ", ")
}

// namedText names the tasks that were opened, if any were, and in a dry run those
// that would be changed.
func namedText(tasks []bulk.Affected, dryRun bool) string {
	var opened []int64
	changed := make([]int64, 0, len(tasks))
	for _, one := range tasks {
		changed = append(changed, one.ID)
		if one.New > 0 {
			opened = append(opened, one.New)
		}
	}
	switch {
	case opened != nil:
		return ": " + clean.Ranges(opened)
	case dryRun:
		return ": " + shortRanges(changed)
	default:
		return ""
	}
}

// shortRanges is ranges for people, who read no thousand of them.
func shortRanges(ids []int64) string {
	const most = 500
	text := clean.Ranges(ids)
	if len(text) <= most {
		return text
	}
	whole := text[:strings.LastIndexByte(text[:most], ',')]
	return whole + ",... (--json has all of them)"
}

// unchangedTexts counts refused tasks by why they were.
func unchangedTexts(refused []bulk.Refusal) []string {
	finished, damaged := 0, 0
	others := map[statemachine.State]int{}
	for i := range refused {
		switch r := &refused[i]; {
		case !r.WrongState():
			damaged++
		case r.State.Terminal():
			finished++
		default:
			others[r.State]++
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

// refusals tells the first refused tasks one by one.

// refusals tells the first refused tasks one by one.
func (b *bulkVerb) refusals(t *bulk.Tally) string {
	var text strings.Builder
	for i := range t.Refused[:min(len(t.Refused), refusalsShown)] {
		fmt.Fprintln(&text, cli.Safe(b.change.Reason(&t.Refused[i])))
	}
	if more := len(t.Refused) - refusalsShown; more > 0 {
		fmt.Fprintf(&text, "and %d more\n", more)
	}
	if len(t.Missing) > 0 {
		fmt.Fprintf(&text, "no such task: %s\n", someIDs(t.Missing))
	}
	return text.String()
}
