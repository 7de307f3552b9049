package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

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
