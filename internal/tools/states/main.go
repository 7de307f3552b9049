// Command states writes docs/STATES.md from the transition table, so that the
// document cannot say anything else than the code.
package main

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/template"

	sm "github.com/tdf-go/tdf/statemachine"
)

func main() {
	out := flag.String("o", "", "file to write (default: standard output)")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, "states:", err)
		os.Exit(1)
	}
}

func run(out string) error {
	var doc bytes.Buffer
	if err := write(&doc); err != nil {
		return fmt.Errorf("filling in states.md.tmpl: %w", err)
	}
	if out == "" {
		_, err := os.Stdout.Write(doc.Bytes())
		return err
	}
	return os.WriteFile(out, doc.Bytes(), 0o644)
}

//go:embed states.md.tmpl
var document string

// write writes the whole document: states.md.tmpl, in which functions stand for what follows from the table.
func write(doc *bytes.Buffer) error {
	parts := template.New("states").Funcs(template.FuncMap{
		"diagram": diagram, "states": states, "events": events, "transitions": transitions, "fenced": fenced,
	})
	return template.Must(parts.Parse(document)).Execute(doc, nil) //nolint:wrapcheck // the caller does
}

// diagram draws one arrow for each pair of states and event, so that rows
// that differ in their actors only do not clutter it.
func diagram() string {
	var doc strings.Builder
	doc.WriteString("## The picture\n\n```mermaid\nstateDiagram-v2\n")
	drawn := map[string]bool{}
	for _, row := range sm.Table() {
		from, label := string(row.From), string(row.Event)
		if row.From == sm.None {
			from = "[*]"
		}
		if row.NextRound {
			label += " (next round)"
		}
		if row.AskStop {
			label += " (stop asked for)"
		}
		arrow := fmt.Sprintf("    %s --> %s: %s\n", from, row.To, label)
		if !drawn[arrow] {
			doc.WriteString(arrow)
		}
		drawn[arrow] = true
	}
	fmt.Fprintf(&doc, "    %s --> [*]\n```\n\n", sm.Archived)
	return doc.String()
}

func states() string {
	var doc strings.Builder
	doc.WriteString("## The states\n\n| state | kind | meaning |\n|---|---|---|\n")
	for _, s := range sm.States() {
		kind := "under way"
		switch {
		case s.Ended():
			kind = "outcome"
		case s.Settled():
			kind = "final"
		}
		fmt.Fprintf(&doc, "| `%s` | %s | %s |\n", s, kind, stateMeaning[s])
	}
	doc.WriteString("\n")
	return doc.String()
}

func events() string {
	var doc strings.Builder
	doc.WriteString("## The events\n\n| event | meaning |\n|---|---|\n")
	for _, e := range sm.Events() {
		fmt.Fprintf(&doc, "| `%s` | %s |\n", e, eventMeaning[e])
	}
	doc.WriteString("\n")
	return doc.String()
}

// transitions has a row for each rule; neighbours that differ in the state they start from only share one.
func transitions() string {
	var doc strings.Builder
	doc.WriteString("| from | event | by | when | to | effect | why |\n|---|---|---|---|---|---|---|\n")
	var from []string
	table := sm.Table()
	for i, row := range table {
		from = append(from, code(string(row.From)))
		rest := rule(row)
		if i+1 < len(table) && rule(table[i+1]) == rest {
			continue
		}
		fmt.Fprintf(&doc, "| %s | %s |\n", strings.Join(from, ", "), rest)
		from = nil
	}
	doc.WriteString("\n")
	return doc.String()
}

// rule is a row without the state it starts from.
func rule(row sm.Transition) string {
	return strings.Join([]string{
		code(string(row.Event)), actors(row.Actors), condition(row.When), to(row), effect(row), row.Why,
	}, " | ")
}

func to(row sm.Transition) string {
	if row.AskStop {
		return code(string(row.To)) + " (stop asked for)"
	}
	return code(string(row.To))
}

func code(text string) string {
	if text == "" {
		return "-"
	}
	return "`" + text + "`"
}

func condition(c sm.Condition) string {
	if c == sm.Always {
		return string(c)
	}
	return code(string(c))
}

func actors(all []sm.Actor) string {
	names := make([]string, 0, len(all))
	for _, a := range all {
		names = append(names, string(a))
	}
	return strings.Join(names, ", ")
}

// effect is what the move does beside the state: the stamp on its way, the counter it raises, the next round.
func effect(row sm.Transition) string {
	var all []string
	if row.Via != "" {
		all = append(all, "stamps "+code(string(row.Via)))
	}
	if row.Count != "" {
		all = append(all, code(string(row.Count)+" + 1"))
	}
	if row.NextRound {
		all = append(all, "next round")
	}
	if len(all) == 0 {
		return "-"
	}
	return strings.Join(all, ", ")
}

// fenced are the events whose moves compare the claim.
func fenced() string {
	var events []string
	for _, row := range sm.Table() {
		if event := code(string(row.Event)); row.Fenced && !slices.Contains(events, event) {
			events = append(events, event)
		}
	}
	return strings.Join(events, ", ")
}

// stateMeaning explains each state to a newcomer.
var stateMeaning = map[sm.State]string{
	sm.Blocked:   "Waits for something other than time: an operator's hold, or another task. It cannot be claimed.",
	sm.Open:      "Waits for a worker. It may be claimed from `start_after`, or from the end of its rest after a failure, to `end_before`.",
	sm.Running:   "A worker holds it under a claim and runs its program.",
	sm.Executed:  "The worker has handed in output and error; the server has not settled it yet.",
	sm.Succeeded: "Executed in time and without an error.",
	sm.Failed: "Failed more often than `max_fails`, with a final exit code, or after a stop was asked for; " +
		"or was excused more often than `max_faults`.",
	sm.TimedOut:   "Ran longer than `timeout` more often than `max_timeouts`, or once after a stop was asked for.",
	sm.Expired:    "Was not executed by `end_before`.",
	sm.Cancelled:  "Was cancelled before it ran.",
	sm.Terminated: "Was stopped on request while it ran, or left by its worker after a stop was asked for.",
	sm.Orphaned:   "Lost its worker more often than `max_losses`; a task that kills its workers ends here.",
	sm.Archived:   "A manager has handled the outcome, which is kept in the field `outcome`.",
}

// eventMeaning explains each event.
var eventMeaning = map[sm.Event]string{
	sm.Create:      "A task is opened.",
	sm.Claim:       "A worker takes an open task.",
	sm.Report:      "A worker hands in the result of its round.",
	sm.StopOverdue: "A worker has stopped its own round after its timeout.",
	sm.HandBack:    "A worker gives its task back unharmed, for example when it drains.",
	sm.Deadline:    "A server looks at a task because one of its times has come.",
	sm.Settle:      "A server decides what an executed round was.",
	sm.Lose:        "The worker that held the task is gone.",
	sm.Hold:        "An operator keeps an open task from starting.",
	sm.Unblock:     "A blocked task may start.",
	sm.Cancel:      "A task is cancelled: at once if it waits; else its worker is asked to stop, and it is not opened again.",
	sm.Terminate:   "A running task was stopped on request.",
	sm.Archive:     "A manager has handled an outcome.",
}
