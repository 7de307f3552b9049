package main

import (
	"context"
	"slices"
	"strconv"

	"github.com/tdf-go/tdf/statemachine"
)

// Fields of a round, and what ls --json calls them.
const (
	progressField = "progress"
	workerField   = "worker"
	nodeField     = "node"
)

// addRounds reads what is told of the present round of tasks: of those that run
// the progress, and of all, if asked for, where they run or ran.
func addRounds(ctx context.Context, s *session, tasks []map[string]string, places bool) error {
	if places {
		if err := addRound(ctx, s, tasks, workerField, nodeField); err != nil {
			return err
		}
	}
	running := slices.DeleteFunc(slices.Clone(tasks), func(t map[string]string) bool {
		return t["state"] != string(statemachine.Running)
	})
	return addRound(ctx, s, running, progressField)
}

// addRound reads fields of the present round. Tasks of many rounds are few, so
// all their round fields are asked of all of a page.
func addRound(ctx context.Context, s *session, tasks []map[string]string, fields ...string) error {
	for part := range slices.Chunk(tasks, page) {
		ids := make([]int64, len(part))
		var names []string
		for i, t := range part {
			ids[i], _ = strconv.ParseInt(t["id"], 10, 64) // it was made from a number
			for _, field := range fields {
				if name := ofRound(t, field); name != "" && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
		if len(names) == 0 {
			continue
		}
		found, err := s.store.Fields(ctx, ids, names...)
		if err != nil {
			return err
		}
		for i, t := range part {
			for _, field := range fields {
				if text := found[i][ofRound(t, field)]; text != "" {
					t[field] = text
				}
			}
		}
	}
	return nil
}

// ofRound is the name of the field in the task's round; empty if that is spoilt.
func ofRound(task map[string]string, field string) string {
	round, err := strconv.Atoi(task["round"])
	if err != nil {
		return ""
	}
	return statemachine.RoundField(round, field)
}
