package audit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/statemachine"
)

// spoil does one random thing to a namespace, and returns its commands.
func spoil(t *rapid.T, ns string) []string {
	id := rapid.IntRange(1, 13).Draw(t, "id")
	state := rapid.SampledFrom(statemachine.States()).Draw(t, "state")
	member := fmt.Sprintf("%c%d", 'a'+len(fmt.Sprint(id))-1, id)
	set := func(name string) string { return ns + ":" + name }
	worker := rapid.SampledFrom([]string{"l", "m"}).Draw(t, "worker")
	text := fmt.Sprint(id)
	return rapid.SampledFrom([][]string{
		{"ZREM", set("lease"), worker},
		{"ZREM", set(string(state)), text},
		{"ZADD", set(string(state)), "1", text},
		{"DEL", set("task:" + text)},
		{"DEL", set(string(state))},
		{"DEL", set("due")},
		{"DEL", set("ready:default:::0")},
		{"DEL", set("buckets")},
		{"ZADD", set("due"), "1", text},
		{"ZADD", set("due"), "9000009000", text},
		{"ZADD", set("ready:default:::0"), "1", member},
		{"ZADD", set("ready:default:::7"), "1", member},
		{"ZADD", set(string(state)), "1", "no id"},
		{"SADD", set("held:" + worker), text},
		{"SADD", set("stop:" + worker), text},
		{"SADD", set("busy:queue:default"), text},
		{"SREM", set("held:" + worker), text},
		{"DEL", set("stop:" + worker)},
		{"DEL", set("busy:queue:default")},
		{"DEL", set("busy:node:node-1")},
	}).Draw(t, "damage")
}

// TestLongRandomDamage: whatever was done to sets, indices and hashes, a server leaves nothing but what it sets aside or is lost, and
// no record that was there is gone.
func TestLongRandomDamage(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		ns, s, _ := world(t)
		for range rapid.IntRange(1, 6).Draw(rt, "times") {
			words := spoil(rt, ns)
			redistest.Shared(t).Do(t, words...)
		}
		before := records(t, s)
		served(t, ns, s, func(r *Report) bool {
			return !slices.ContainsFunc(r.Violations, func(v Violation) bool { return !mayStay(v) })
		})
		after := records(t, s)
		for id, was := range before {
			if after[id]["input"] != was["input"] || after[id]["state"] == "" && was["state"] != "" {
				rt.Errorf("the record of task %d has changed:\n%v\n%v", id, was, after[id])
			}
		}
	})
}

// mayStay reports whether it is lost or a dead letter, or about a task that a client of the original may have archived, which leaves no stamp.
func mayStay(v Violation) bool {
	archived := (v.Kind == Sets || v.Kind == Stamps) && strings.Contains(v.Text, string(statemachine.Archived))
	return archived || v.Kind == Lost || v.Kind == Path || v.Kind == DeadLetter
}
