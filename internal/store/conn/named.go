package conn

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Subject says whose keys a script is called with. Which keys these are, and in which order, its header says alone; more
// are those that have no name there and follow.
type Subject struct {
	Task                          int64
	Plan                          task.PlanID
	Worker, Node, Bucket, Request string
	Family                        Family // of Blob
	Blob                          string
	More                          []string
}

// keyName is what a script means by a name: keys that begin so after the namespace, and end with what whose says.
type keyName struct {
	begins string
	whose  func(*Subject) string
	many   bool // a namespace has not one such key, but one for each subject
}

// keyNames are the keys as scripts name them.
var keyNames = sync.OnceValue(func() map[string]keyName {
	names := map[string]keyName{}
	namespace := func(*Subject) string { return "" }
	for name, key := range map[string]func(Keys) string{
		"meta": Keys.Meta, "taskID": Keys.TaskID, "buckets": Keys.Buckets, "wakeServer": Keys.WakeServer, "due": Keys.Due,
		"setAside": Keys.DeadLetters, "managers": Keys.Managers, "handling": Keys.Handling, "worker": Keys.Worker,
		"workerIDs": Keys.WorkerIDs, "lease": Keys.Lease, "follow": Keys.Follow, "changed": Keys.Changed, "queues": Keys.Queues,
		"nodes": Keys.Nodes, "full": Keys.Full, "epochs": Keys.Epochs, "planID": Keys.PlanID, "plans": Keys.Plans,
		"draining": Keys.Draining, "keepers": Keys.Keepers, "purged": Keys.Purged, "purgedIDs": Keys.PurgedIDs,
		"suspects": Keys.Suspects, "rules": Keys.Rules, "tokens": Keys.Tokens,
		"changes": Keys.Changes, "changesGone": Keys.ChangesGone,
	} {
		names[name] = keyName{begins: key(Keys{}), whose: namespace}
	}
	for _, st := range statemachine.States() {
		names[string(st)] = keyName{begins: Keys{}.State(st), whose: namespace}
	}
	each(names, func(of *Subject) string { return IDText(of.Task) }, map[string]func(Keys, int64) string{
		"task": Keys.Task, "live": Keys.Live, "dependants": Keys.Dependants, "stuck": Keys.Stuck,
	})
	each(names, func(of *Subject) string { return IDText(of.Plan) }, map[string]func(Keys, task.PlanID) string{
		"plan": Keys.Plan, "planTasks": Keys.PlanTasks, "freed": Keys.Freed, "growth": Keys.Growth,
	})
	each(names, func(of *Subject) string { return of.Worker }, map[string]func(Keys, string) string{
		"workerID": Keys.WorkerID, "workerDoc": Keys.WorkerDoc, "held": Keys.Held, "lastClaim": Keys.LastClaim,
		"halt": Keys.Halt, "stop": Keys.Stop, "call": Keys.Call,
	})
	each(names, func(of *Subject) string { return of.Node }, map[string]func(Keys, string) string{
		"node": Keys.Node, "busyNode": Keys.BusyNode, "used": Keys.Used, "wakeNode": Keys.WakeNode,
	})
	each(names, func(of *Subject) string { return of.Bucket }, map[string]func(Keys, string) string{
		"ready": Keys.Ready, "wake": Keys.Wake,
	})
	each(names, func(of *Subject) string { return of.Request }, map[string]func(Keys, string) string{"request": Keys.Request})
	names["submitted"] = keyName{begins: "key:", whose: namespace, many: true}
	names["blobs"] = keyName{whose: func(of *Subject) string { return Keys{}.Blobs(of.Family) }}
	names["blob"] = keyName{whose: func(of *Subject) string { return Keys{}.Blob(of.Family, of.Blob) }, many: true}
	each(names, namespace, map[string]func(Keys, string) string{
		"queue": Keys.Queue, "busyQueue": Keys.BusyQueue, "wakeQueue": Keys.WakeQueue, "tally": Keys.Tally,
		"evidence": Keys.Evidence, "kept": Keys.Kept, "record": Keys.Record, "records": Keys.Records,
		"recordsDue": Keys.RecordsDue, "recordsEnded": Keys.RecordsEnded,
		"archivedAs": func(k Keys, outcome string) string { return k.ArchivedAs(statemachine.State(outcome)) },
		"busyBoth":   func(k Keys, _ string) string { return strings.TrimSuffix(k.BusyBoth("", ""), "0::") },
	})
	return names
})

// each adds names of keys that end with what whose says: of nothing, a key is what they begin with.
func each[T any](names map[string]keyName, whose func(*Subject) string, keys map[string]func(Keys, T) string) {
	for name, key := range keys {
		names[name] = keyName{begins: key(Keys{}, *new(T)), whose: whose, many: true}
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

// keysOf returns the keys that the header of a script names. It panics on an unknown name, which only a broken build has.
func keysOf(script string, h header) []keyName {
	list := make([]keyName, len(h.keys))
	for i, name := range h.keys {
		key, known := keyNames()[name]
		if !known {
			panic(fmt.Sprintf("store: script %s: no key is called %q", script, name))
		}
		list[i] = key
	}
	return list
}

// placed puts places for the names in the text of a script: KEYS[2] for a key that its header lists, ARGV[1] for an argument,
// and for another key the text that makes it. A table of them would cost each call time. Words are replaced as well.
func placed(text string, h header, words map[string]string) string {
	places := map[string]string{}
	maps.Copy(places, words)
	for name, key := range keyNames() {
		if key.many {
			places["K."+name+"("] = "(namespace .. '" + key.begins + "' .. "
		} else {
			places["K."+name] = "(namespace .. '" + key.begins + "')"
		}
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
