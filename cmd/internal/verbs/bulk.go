package verbs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// page is how many tasks are read in one go: those of a [manager.Selection] and those of an archive.
const page = 500

// bulkVerb is a verb that changes all tasks that are meant, a page at a time, and
// counts what became of them.
type bulkVerb struct {
	choice choice
	// states are those of the tasks that the verb can change: what is looked
	// through where tasks are not named by their ids.
	states []statemachine.State
	// careful verbs want --yes for all tasks at once.
	careful bool
	// effects are what the verb can do to a task, in the order of the report.
	effects []effect
	// change does it to a page of tasks and tells the tally. It may have changed
	// some of them also with an error.
	change func(ctx context.Context, s *session, ids []int64, t *bulk.Tally) error
	// remedy is what to do instead about a task that the verb cannot change.
	remedy func(before statemachine.State) string

	yes bool
}

// effect is a thing a verb does to tasks: the name of the list in JSON, and what
// the report says of n tasks, done and in a dry run.
type effect struct{ name, done, would string }

// command makes the command of the verb with the flags all have.
func (b *bulkVerb) command(a *app, verb, short, long, example string) *cobra.Command {
	cmd := withJSON(withDryRun(&cobra.Command{
		Use: verb + " [TASKS]", Short: short, Long: long + "\n\n" + selectorHelp + "\n\n" +
			"It ends with 1 if a task named by its id could not be changed, or does not exist.",
		Example: example,
		RunE:    a.withManager(b.do),
	}))
	b.choice.flags(cmd)
	if b.careful {
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
	err = s.manager.EachPage(ctx, sel, func(ids []int64) error {
		defer far.done.Add(int64(len(ids)))
		return b.change(ctx, s, ids, t)
	})
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
	if p.total = job.Total; !slices.ContainsFunc(b.states, statemachine.State.IsOutcome) {
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
	case sel.All && !b.choice.Narrow() && b.careful && !b.yes && !s.dryRun:
		return sel, b.unsure(ctx, s)
	case sel.All && len(sel.States) == 0:
		sel.States = b.states
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
	for _, state := range b.states {
		n += counts[state]
	}
	if slices.ContainsFunc(b.states, statemachine.State.IsOutcome) {
		n += counts[statemachine.Archived]
	}
	return cli.WithCode(cli.ExitUsage, fmt.Errorf("%s all means all %d tasks of namespace %s that it can change; "+
		"add --yes, or --dry-run to see what it would do", s.cmd.Name(), n, cli.Safe(s.manager.Namespace())))
}

// How many refused tasks are told one by one, to people and in JSON.
const (
	refusalsShown = 5
	refusalsJSON  = 1000
)

// report says what became of the tasks and makes the exit code. named says that
// they were named by their ids; broken is what ended the work in the middle.
func (b *bulkVerb) report(ctx context.Context, s *session, t *bulk.Tally, named bool, broken error) error {
	if broken != nil {
		broken = s.finish(cli.OrSignal(ctx, broken))
	}
	if s.json {
		s.out.JSON(b.object(s, t, broken))
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
	for _, e := range b.effects {
		if n := len(t.Done[e.name]); n > 0 {
			text := e.done
			if s.dryRun {
				text = e.would
			}
			parts = append(parts, fmt.Sprintf(text, n)+namedText(t.Done[e.name], s.dryRun))
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
		return ": " + ranges(opened)
	case dryRun:
		return ": " + shortRanges(changed)
	default:
		return ""
	}
}

// shortRanges is ranges for people, who read no thousand of them.
func shortRanges(ids []int64) string {
	const most = 500
	text := ranges(ids)
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
func (b *bulkVerb) refusals(t *bulk.Tally) string {
	var text strings.Builder
	for i := range t.Refused[:min(len(t.Refused), refusalsShown)] {
		fmt.Fprintln(&text, cli.Safe(b.refusal(&t.Refused[i])))
	}
	if more := len(t.Refused) - refusalsShown; more > 0 {
		fmt.Fprintf(&text, "and %d more\n", more)
	}
	if len(t.Missing) > 0 {
		fmt.Fprintf(&text, "no such task: %s\n", someIDs(t.Missing))
	}
	return text.String()
}

func (b *bulkVerb) refusal(r *bulk.Refusal) string {
	if errors.Is(r.Err, task.ErrPurged) {
		return r.Err.Error() // it names the task
	}
	if !r.WrongState() {
		return fmt.Sprintf("task %d: %v", r.ID, r.Err)
	}
	text := fmt.Sprintf("task %d is %s", r.ID, r.State)
	if remedy := b.remedy(r.State); remedy != "" {
		text += ": " + remedy
	}
	return text
}

// bulkReport is the JSON form: a list of ids for each effect that the verb has, or of
// the old and the new id where tasks were opened.
type bulkReport struct {
	DryRun    bool            `json:"dry_run"`
	Cancelled []int64         `json:"cancelled,omitzero"`
	Asked     []int64         `json:"asked,omitzero"`
	Reported  []int64         `json:"reported,omitzero"`
	Ended     []int64         `json:"terminated,omitzero"`
	Held      []int64         `json:"held,omitzero"`
	Released  []int64         `json:"released,omitzero"`
	Set       []int64         `json:"set,omitzero"`
	Opened    []bulk.Affected `json:"opened,omitzero"`
	Existing  []bulk.Affected `json:"existing,omitzero"`
	Unchanged []int64         `json:"unchanged"`
	NotFound  []int64         `json:"not_found"`
	Reasons   []refusedTask   `json:"reasons"`
	// Error and Code are of a report in the middle.
	Error string `json:"error,omitempty"`
	Code  int    `json:"code,omitempty"`
}

// refusedTask is a task that stays as it is.
type refusedTask struct {
	ID     int64              `json:"id"`
	State  statemachine.State `json:"state"`
	Reason string             `json:"reason"`
}

func (b *bulkVerb) object(s *session, t *bulk.Tally, broken error) *bulkReport {
	report := &bulkReport{DryRun: s.dryRun, Unchanged: []int64{}, NotFound: jsonList(t.Missing), Reasons: []refusedTask{}}
	changed := map[string]*[]int64{
		"cancelled": &report.Cancelled, "asked": &report.Asked, "reported": &report.Reported, "terminated": &report.Ended,
		"held": &report.Held, "released": &report.Released, "set": &report.Set,
	}
	opened := map[string]*[]bulk.Affected{openedField: &report.Opened, "existing": &report.Existing}
	for _, e := range b.effects {
		done := jsonList(t.Done[e.name])
		if list := opened[e.name]; list != nil {
			*list = done
			continue
		}
		ids := make([]int64, len(done))
		for i := range done {
			ids[i] = done[i].ID
		}
		*changed[e.name] = ids
	}
	for i := range t.Refused {
		r := &t.Refused[i]
		report.Unchanged = append(report.Unchanged, r.ID)
		if i < refusalsJSON {
			report.Reasons = append(report.Reasons, refusedTask{r.ID, r.State, b.refusal(r)})
		}
	}
	if broken != nil {
		report.Error, report.Code = broken.Error(), cli.ExitCode(broken)
	}
	return report
}
