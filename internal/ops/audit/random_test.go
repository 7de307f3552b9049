package audit

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
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

// TestLongRandomDamage: whatever was done to sets, indices and hashes, after a repair and with a server
// at work nothing is left but what was set aside or is lost, and no record that was there
// is gone.
func TestLongRandomDamage(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		ns, s, _ := world(t)
		var gone []int64
		for range rapid.IntRange(1, 6).Draw(rt, "times") {
			words := spoil(rt, ns)
			redistest.Shared(t).Do(t, words...)
		}
		before := records(t, s)
		did, err := repair(t, s, RepairOptions{SetAside: true})
		if err != nil {
			rt.Fatal(err)
		}
		after := records(t, s)
		for id := range before {
			if fmt.Sprint(before[id]) != fmt.Sprint(after[id]) {
				rt.Errorf("the record of task %d has changed:\n%v\n%v", id, before[id], after[id])
			}
		}
		r, err := verify(t, s)
		if err != nil {
			rt.Fatal(err)
		}
		for _, v := range did.Left {
			gone = append(gone, v.ID)
		}
		for _, v := range r.Violations {
			if v.Kind == SetAside {
				gone = append(gone, v.ID)
			}
			if !slices.Contains(gone, v.ID) {
				rt.Errorf("left, and not said: %+v", v)
			}
		}
		mayStay(rt, did.Left)
		if rapid.IntRange(0, 3).Draw(rt, "server") == 0 {
			serveOnce(t, rt, s, gone)
		}
	})
}

// mayStay: only what is gone, or may have been archived by somebody, is left.
func mayStay(rt *rapid.T, left []Violation) {
	for _, v := range left {
		archived := (v.Kind == Sets || v.Kind == Stamps) && strings.Contains(v.Text, string(statemachine.Archived))
		if v.Kind != Lost && v.Kind != Path && !archived {
			rt.Errorf("left: %+v", v)
		}
	}
}

// serveOnce lets a server look at everything, and waits until nothing is left but
// what is gone.
func serveOnce(t *testing.T, rt *rapid.T, s *store.Store, gone []int64) {
	t.Helper()
	defer serve(t, s.Namespace())()
	var last Report
	wait.Eventually(t, 20*time.Second, func() bool {
		r, err := verify(t, s)
		last = r
		return err == nil && !slices.ContainsFunc(r.Violations, func(v Violation) bool { return !slices.Contains(gone, v.ID) })
	}, "a server leaves %v", &last.Violations)
	if rt.Failed() {
		rt.Logf("%+v", last)
	}
}
