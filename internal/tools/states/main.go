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

// write writes the whole document: states.md.tmpl, in which functions stand for what follows from the table and from the states.
func write(doc *bytes.Buffer) error {
	parts := template.New("states").Funcs(template.FuncMap{
		"arrows": arrows, "kind": kind, "transitions": transitions, "fenced": fenced,
	})
	return template.Must(parts.Parse(document)).Execute(doc, nil) //nolint:wrapcheck // the caller does
}

// arrows has one for each pair of states and event, so that rows
// that differ in their actors only do not clutter it.
func arrows() string {
	var doc strings.Builder
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
	fmt.Fprintf(&doc, "    %s --> [*]\n", sm.Archived)
	return doc.String()
}

// kind says where in its life a task is.
func kind(s sm.State) string {
	switch {
	case s.IsOutcome():
		return "outcome"
	case s.Terminal():
		return "final"
	default:
		return "under way"
	}
}

// transitions has a row for each rule; neighbours that differ in the state they start from only share one.
func transitions() string {
	var doc strings.Builder
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
	return doc.String()
}

// rule is a row without the state it starts from.
func rule(row sm.Transition) string {
	return strings.Join([]string{
		code(string(row.Event)), actors(row.Actors), condition(row), to(row), effect(row), row.Why,
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

func condition(row sm.Transition) string {
	if _, always := row.Could(false, false); always {
		return string(row.When)
	}
	return code(string(row.When))
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
		all = append(all, "stamps "+code(row.Via))
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
