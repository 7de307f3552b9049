package top

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The panels, in the order of their keys.
const (
	queues = iota
	workers
	failures
	panels // how many there are
)

// titles of the panels.
var titles = [panels]string{"Queues", "Workers", "Newest failures"}

// tables makes the table of each panel from a snapshot.
func tables(s Snapshot, m *meters) [panels]table {
	return [panels]table{
		queues:   queueTable(s.Queues, m, s.At),
		workers:  workerTable(s.Workers, s.At),
		failures: failureTable(s.Failures, s.At),
	}
}

func queueTable(list []Queue, m *meters, now time.Time) table {
	t := table{columns: []column{
		{title: "QUEUE", floor: 10},
		{title: "STATE", rank: 2},
		{title: "WAITING", right: true},
		{title: "RUNNING", right: true, rank: 1},
		{title: "PER NODE", right: true, rank: 5},
		{title: "DONE/S", right: true, rank: 3},
		{title: "OLDEST DUE", right: true, rank: 4},
	}}
	for _, q := range list {
		state := "active"
		if q.Paused {
			state = "paused"
		}
		t.rows = append(t.rows, row{faint: q.Paused, cells: []string{
			text(q.Name), state,
			strconv.FormatInt(q.Waiting, 10), fmt.Sprintf("%d/%s", q.Running, limit(q.Limit)), limit(q.NodeLimit),
			m.queue(q.Name).String(), age(now, q.OldestDue),
		}})
	}
	return t
}

func workerTable(list []Worker, now time.Time) table {
	t := table{columns: []column{
		{title: "WORKER", floor: 10},
		{title: "NODE", floor: 8, rank: 5},
		{title: "STATE", rank: 1},
		{title: "SLOTS", right: true, rank: 2},
		{title: "HEARTBEAT", right: true, rank: 3},
		{title: "RUNS", floor: 12, rank: 4},
	}}
	for _, w := range list {
		t.rows = append(t.rows, row{cells: []string{
			text(w.Name), text(w.Node), text(w.State), fmt.Sprintf("%d/%d", w.Busy, w.Slots),
			age(now, w.Heartbeat), text(strings.Join(w.Tasks, ", ")),
		}})
	}
	return t
}

func failureTable(list []Failure, now time.Time) table {
	t := table{columns: []column{
		{title: "TASK", floor: 10},
		{title: "PROGRAM", floor: 8, rank: 3},
		{title: "WORKER", floor: 8, rank: 4},
		{title: "CLASS", rank: 2},
		{title: "AGE", right: true, rank: 1},
		{title: "ERROR", floor: 12},
	}}
	for _, f := range list {
		t.rows = append(t.rows, row{cells: []string{
			text(f.Task), text(f.Program), text(f.Worker), text(f.Class), age(now, f.At), firstLine(f.Error),
		}})
	}
	return t
}

// matching is the table with only the rows that have the words of a filter in
// some cell, in either case.
func (t table) matching(filter string) table {
	if filter == "" {
		return t
	}
	filter = strings.ToLower(filter)
	kept := make([]row, 0, len(t.rows))
	for _, r := range t.rows {
		if slices.ContainsFunc(r.cells, func(cell string) bool { return strings.Contains(strings.ToLower(cell), filter) }) {
			kept = append(kept, r)
		}
	}
	t.rows = kept
	return t
}
