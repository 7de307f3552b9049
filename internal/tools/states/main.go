// Command states writes docs/STATES.md from the transition table, so that the
// document cannot say anything else than the code.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

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
	write(&doc)
	if out == "" {
		_, err := os.Stdout.Write(doc.Bytes())
		return err
	}
	return os.WriteFile(out, doc.Bytes(), 0o644)
}

// write writes the whole document.
func write(doc *bytes.Buffer) {
	doc.WriteString(introduction)
	writeDiagram(doc)
	writeStates(doc)
	writeEvents(doc)
	fmt.Fprintf(doc, tableIntroduction, strings.Join(fenced(), ", "))
	writeTransitions(doc)
	doc.WriteString(conditions)
	doc.WriteString(invariants)
}

// writeDiagram draws one arrow for each pair of states and event, so that rows
// that differ in their actors only do not clutter it.
func writeDiagram(doc *bytes.Buffer) {
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
	fmt.Fprintf(doc, "    %s --> [*]\n```\n\n", sm.Archived)
}

func writeStates(doc *bytes.Buffer) {
	doc.WriteString("## The states\n\n| state | kind | meaning |\n|---|---|---|\n")
	for _, s := range sm.States() {
		kind := "under way"
		switch {
		case s.Ended():
			kind = "outcome"
		case s.Settled():
			kind = "final"
		}
		fmt.Fprintf(doc, "| `%s` | %s | %s |\n", s, kind, stateMeaning[s])
	}
	doc.WriteString("\n")
}

func writeEvents(doc *bytes.Buffer) {
	doc.WriteString("## The events\n\n| event | meaning |\n|---|---|\n")
	for _, e := range sm.Events() {
		fmt.Fprintf(doc, "| `%s` | %s |\n", e, eventMeaning[e])
	}
	doc.WriteString("\n")
}

// writeTransitions writes a row for each rule; neighbours that differ in the state they start from only share one.
func writeTransitions(doc *bytes.Buffer) {
	doc.WriteString("| from | event | by | when | to | effect | why |\n|---|---|---|---|---|---|---|\n")
	var from []string
	table := sm.Table()
	for i, row := range table {
		from = append(from, code(string(row.From)))
		rest := rule(row)
		if i+1 < len(table) && rule(table[i+1]) == rest {
			continue
		}
		fmt.Fprintf(doc, "| %s | %s |\n", strings.Join(from, ", "), rest)
		from = nil
	}
	doc.WriteString("\n")
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
func fenced() []string {
	var events []string
	for _, row := range sm.Table() {
		if event := code(string(row.Event)); row.Fenced && !slices.Contains(events, event) {
			events = append(events, event)
		}
	}
	return events
}
