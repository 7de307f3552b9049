package main

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

// column is one of the table of tasks.
type column struct {
	head string
	cell func(map[string]string) string
}

func fieldColumn(head, field string) column {
	return column{head: head, cell: func(t map[string]string) string { return t[field] }}
}

// columns are those that help: some only where a task has something to say.
func (l *listing) columns(tasks []map[string]string) []column {
	wide := l.output == wideOutput
	some := func(says func(map[string]string) bool) bool { return slices.ContainsFunc(tasks, says) }
	list := []column{fieldColumn("ID", "id"), {"STATE", stateCell}, fieldColumn("ROUND", "round")}
	if wide || some(func(t map[string]string) bool { return t["queue"] != manager.DefaultQueue }) {
		list = append(list, fieldColumn("QUEUE", "queue"))
	}
	if wide {
		list = append(list, column{"PRIORITY", func(t map[string]string) string { return cmp.Or(t["priority"], "0") }},
			column{"WORKER", dash(workerField)}, column{"NODE", dash(nodeField)}, column{"ASKS", asksCell})
	}
	list = append(list, fieldColumn("PROGRAM", "program"), column{"INPUT", inputCell})
	if some(func(t map[string]string) bool { return t[progressField] != "" }) {
		list = append(list, column{"PROGRESS", progressCell})
	}
	return list
}

// table prints tasks, the first of them below the heads of the columns.
func (l *listing) table(s *session, columns []column, tasks []map[string]string, first bool) error {
	var heads []string
	for _, c := range columns {
		if first {
			heads = append(heads, c.head)
		}
	}
	table := cli.NewTable(s.out, heads...)
	for _, t := range tasks {
		cells := make([]any, len(columns))
		for i, c := range columns {
			cells[i] = c.cell(t)
		}
		table.Row(cells...)
	}
	return table.Flush()
}

func stateCell(t map[string]string) string {
	if t["outcome"] != "" {
		return t["state"] + " (" + t["outcome"] + ")"
	}
	return t["state"]
}

// dash is the cell of a field, "-" where it says nothing.
func dash(field string) func(map[string]string) string {
	return func(t map[string]string) string { return cmp.Or(t[field], "-") }
}

// asksCell is what the task asks of a worker and its node.
func asksCell(t map[string]string) string {
	var parts []string
	if t[envField] != "" {
		parts = append(parts, "env "+t[envField])
	}
	for _, list := range []string{t["labels"], t["resources"]} {
		if list != "" {
			parts = append(parts, list)
		}
	}
	return cmp.Or(strings.Join(parts, " "), "-")
}

func inputCell(t map[string]string) string {
	const width = 60
	var argv []string
	if t["argv"] != "" && json.Unmarshal([]byte(t["argv"]), &argv) != nil {
		argv = nil
	}
	return shorten(inputText(t["input"], argv), width)
}

func progressCell(t map[string]string) string {
	const width = 40
	return shorten(manager.ParseProgress(t[progressField]).String(), width)
}

// shorten keeps a table readable: at most so many characters.
func shorten(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most]) + "..."
}
