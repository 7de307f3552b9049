package main

import (
	"context"
	"slices"
	"strconv"

	"github.com/tdf-go/tdf/statemachine"
)

// progressField is the field of a round, and what ls --json calls it.
const progressField = "progress"

// addProgress reads what running tasks say of their progress in their present
// round. Tasks of many rounds are few, so all their round fields are asked of
// all of a page.
func addProgress(ctx context.Context, s *session, tasks []map[string]string) error {
	for part := range slices.Chunk(tasks, page) {
		ids := make([]int64, len(part))
		var names []string
		for i, t := range part {
			ids[i], _ = strconv.ParseInt(t["id"], 10, 64) // it was made from a number
			if name := progressOf(t); name != "" && !slices.Contains(names, name) {
				names = append(names, name)
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
			if text := found[i][progressOf(t)]; text != "" {
				t[progressField] = text
			}
		}
	}
	return nil
}

// progressOf is the name of the task's field; empty if its round is spoilt.
func progressOf(task map[string]string) string {
	round, err := strconv.Atoi(task["round"])
	if err != nil {
		return ""
	}
	return statemachine.RoundField(round, progressField)
}
