package main

import (
	"fmt"
	"strings"
)

const namespace = "bench"

func keyTaskPrefix() string        { return namespace + ":task:" }
func keyTask(id string) string     { return keyTaskPrefix() + id }
func keyTaskID() string            { return namespace + ":task_id" }
func keyState(state string) string { return namespace + ":" + state }
func keyReady(b bucket) string     { return namespace + ":ready:" + b.String() }

// keysDue returns three keys, of which a layout uses none, the first or all.
func keysDue() []string {
	return []string{namespace + ":due", namespace + ":due:timeout", namespace + ":due:lease"}
}

// bucket is the set of properties that decide who may claim a task, and when. Empty values are the defaults.
type bucket struct {
	queue, env, labels string
	priority           int
}

// String writes priorities so that they sort as text.
func (b bucket) String() string {
	return strings.Join([]string{fmt.Sprintf("%03d", b.priority), b.queue, b.env, b.labels}, "|")
}

// buckets are those the tasks are spread over, most of them in the default one.
func buckets() []bucket {
	return []bucket{
		{}, {}, {}, {}, {}, {}, {},
		{queue: "mail"},
		{queue: "render", env: "gpu", labels: "disk=ssd,zone=a"},
		{priority: 5},
	}
}

// readyKeys returns each bucket's key once, and the place of every element of buckets among them.
func readyKeys() (keys []string, place []int) {
	seen := map[bucket]int{}
	for _, b := range buckets() {
		if _, ok := seen[b]; !ok {
			seen[b] = len(keys)
			keys = append(keys, keyReady(b))
		}
		place = append(place, seen[b])
	}
	return keys, place
}
