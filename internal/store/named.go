package store

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tdf-go/tdf/statemachine"
)

// subject says whose keys a script is called with. Which keys these are, and in which order, its header says alone; more
// are those that have no name there and follow.
type subject struct {
	task, plan                    int64
	worker, node, bucket, request string
	more                          []string
}

// keyFunc makes a key of a subject. Of none it is what such keys begin with.
type keyFunc func(keys, *subject) string

// keyNames are the keys as scripts name them: those that a namespace has once, and those of which it has many.
var keyNames = sync.OnceValues(func() (once, many map[string]keyFunc) {
	once, many = map[string]keyFunc{}, map[string]keyFunc{}
	for name, key := range map[string]func(keys) string{
		"meta": keys.meta, "taskID": keys.taskID, "buckets": keys.buckets, "wakeServer": keys.wakeServer, "due": keys.due,
		"setAside": keys.setAside, "managers": keys.managers, "handling": keys.handling, "worker": keys.worker,
		"workerIDs": keys.workerIDs, "lease": keys.lease, "follow": keys.follow, "changed": keys.changed, "queues": keys.queues,
		"nodes": keys.nodes, "full": keys.full, "epochs": keys.epochs, "planID": keys.planID, "plans": keys.plans,
		"draining": keys.draining, "keepers": keys.keepers, "purged": keys.purged, "purgedIDs": keys.purgedIDs,
		"suspects": keys.suspects, "rules": keys.rules,
	} {
		once[name] = func(k keys, _ *subject) string { return key(k) }
	}
	for _, st := range statemachine.States() {
		once[string(st)] = func(k keys, _ *subject) string { return k.state(st) }
	}
	each(many, func(of *subject) int64 { return of.task }, map[string]func(keys, int64) string{
		"task": keys.task, "live": keys.live, "dependants": keys.dependants, "stuck": keys.stuck,
	})
	each(many, func(of *subject) int64 { return of.plan }, map[string]func(keys, int64) string{
		"plan": keys.plan, "planTasks": keys.planTasks, "freed": keys.freed, "growth": keys.growth,
	})
	each(many, func(of *subject) string { return of.worker }, map[string]func(keys, string) string{
		"workerID": keys.workerID, "workerDoc": keys.workerDoc, "held": keys.held, "lastClaim": keys.lastClaim,
		"halt": keys.halt, "stop": keys.stop, "call": keys.call,
	})
	each(many, func(of *subject) string { return of.node }, map[string]func(keys, string) string{
		"node": keys.node, "busyNode": keys.busyNode, "used": keys.used, "wakeNode": keys.wakeNode,
	})
	each(many, func(of *subject) string { return of.bucket }, map[string]func(keys, string) string{
		"ready": keys.ready, "wake": keys.wake,
	})
	each(many, func(of *subject) string { return of.request }, map[string]func(keys, string) string{"request": keys.request})
	each(many, func(*subject) string { return "" }, map[string]func(keys, string) string{
		"queue": keys.queue, "busyQueue": keys.busyQueue, "wakeQueue": keys.wakeQueue, "tally": keys.tally,
		"evidence": keys.evidence, "kept": keys.kept,
		"archivedAs": func(k keys, outcome string) string { return k.archivedAs(statemachine.State(outcome)) },
		"busyBoth":   func(k keys, _ string) string { return strings.TrimSuffix(k.busyBoth("", ""), "0::") },
	})
	return once, many
})

func each[T any](many map[string]keyFunc, whose func(*subject) T, names map[string]func(keys, T) string) {
	for name, key := range names {
		many[name] = func(k keys, of *subject) string { return key(k, whose(of)) }
	}
}

// header is what a script is called with, as far as its file gives it names.
type header struct{ keys, args []string }

var headerRemark = regexp.MustCompile(`\([^)]*\)|\n--`)

// headerOf reads the names, which have remarks in parentheses and end at a semicolon, or where what is returned follows.
func headerOf(text string) header {
	names := func(kind string) (names []string) {
		_, part, found := strings.Cut(text, "\n-- "+kind+" ")
		if !found {
			return nil
		}
		for _, end := range []string{"\n-- ARGV", "\n-- Returns"} {
			part, _, _ = strings.Cut(part, end)
		}
		part, _, _ = strings.Cut(headerRemark.ReplaceAllString(part, ""), ";")
		for name := range strings.SplitSeq(part, ",") {
			names = append(names, strings.TrimSpace(name))
		}
		return names
	}
	return header{keys: names("KEYS"), args: names("ARGV")}
}

// keysOf are the keys that the header of a script names. A name that is none panics: only a broken build has one.
func keysOf(script string, h header) []keyFunc {
	once, many := keyNames()
	list := make([]keyFunc, len(h.keys))
	for i, name := range h.keys {
		if list[i] = once[name]; list[i] == nil {
			list[i] = many[name]
		}
		if list[i] == nil {
			panic(fmt.Sprintf("store: script %s: no key is called %q", script, name))
		}
	}
	return list
}

// declared are the KEYS of a call, with room for one more.
func (k keys) declared(script *script, of *subject) []string {
	list := make([]string, 0, len(script.keys)+len(of.more)+1)
	for _, key := range script.keys {
		list = append(list, key(k, of))
	}
	return append(list, of.more...)
}

// placed puts places for the names in the text of a script: KEYS[2] for a key that its header lists, ARGV[1] for an argument,
// and for another key the text that makes it. A table of them would cost each call time. Words are replaced as well.
func placed(text string, h header, words map[string]string) string {
	places := map[string]string{}
	maps.Copy(places, words)
	once, many := keyNames()
	for name, key := range once {
		places["K."+name] = "(namespace .. '" + key(keys{}, &subject{}) + "')"
	}
	for name, key := range many {
		places["K."+name+"("] = "(namespace .. '" + key(keys{}, &subject{}) + "' .. "
	}
	for i, name := range h.keys {
		places["K."+name] = "KEYS[" + strconv.Itoa(i+1) + "]"
	}
	for i, name := range h.args {
		place := "ARGV[" + strconv.Itoa(i+1) + "]"
		places["A."+name], places["#A."+name] = place, "#"+place
	}
	places["#K"], places["#A"] = strconv.Itoa(len(h.keys)), strconv.Itoa(len(h.args))
	places["#KEYS"], places["#ARGV"] = "#KEYS", "#ARGV" // which begin like these two
	var pairs []string
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(places))) { // of names that begin alike the longest counts
		pairs = append(pairs, name, places[name])
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
