package verbs

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// jsonValue is the JSON value of a default that a queue gives to its tasks.
func jsonValue(name, text string) any {
	if task.Number(name) && json.Valid([]byte(text)) {
		return json.Number(text)
	}
	return text
}

// inputText shows what run.sh is called with: quoted words for an argv.
func inputText(input string, argv []string) string {
	if argv == nil {
		return input
	}
	quoted := make([]string, len(argv))
	for i, word := range argv {
		quoted[i] = word
		if word == "" || strings.ContainsAny(word, " \t\n\"'\\") {
			quoted[i] = strconv.Quote(word)
		}
	}
	return strings.Join(quoted, " ")
}

// objectsOf makes the JSON objects of a list; [] and not null of an empty one.
func objectsOf[T any](list []T, object func(*T) map[string]any) []map[string]any {
	objects := make([]map[string]any, len(list))
	for i := range list {
		objects[i] = object(&list[i])
	}
	return objects
}

// jsonList is the list, and [] instead of null for nil.
func jsonList[T any](list []T) []T { return append([]T{}, list...) }

// attribute is one of a queue or a node, as it is written in a set.
type attribute struct{ name, text string }

// queueAttributes are all that can be set, defaults of tasks only where there are.
func queueAttributes(q *manager.Queue) []attribute {
	list := make([]attribute, 0, len(q.Defaults)+9)
	list = append(list, []attribute{
		{"description", q.Description}, {"class", q.Class},
		{"threads", limitText(q.Threads)}, {maxThreadsField, limitText(q.MaxThreads)},
		{"nodes_pin", strings.Join(q.Pin, ",")}, {"nodes_ignore", strings.Join(q.Ignore, ",")},
		{pausedField, strconv.FormatBool(q.Paused)}, {"order", q.Order}, {"aging", secondsText(q.Aging)},
	}...)
	for _, name := range slices.Sorted(maps.Keys(q.Defaults)) {
		list = append(list, attribute{defaultPrefix + name, defaultText(name, q.Defaults[name])})
	}
	return list
}

// defaultText is a default as people read it; records have another word for no limit.
func defaultText(name, text string) string {
	if strings.HasPrefix(name, "max_") && text == statemachine.Unlimited.Text() {
		return task.UnlimitedText
	}
	return text
}

func limitText(n int) string {
	if n == manager.NoLimit {
		return task.UnlimitedText
	}
	return strconv.Itoa(n)
}

// secondsText is a duration in seconds, as in records.
func secondsText(d time.Duration) string {
	if d == task.Forever {
		return statemachine.Forever.Text()
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
}

// jsonLimit is null for no limit.
func jsonLimit(n int) any {
	if n == manager.NoLimit {
		return nil
	}
	return n
}

// queueObject is the JSON form: moments are seconds since 1970, or null; durations
// are seconds; no limit is null.
func queueObject(q *manager.Queue) map[string]any {
	defaults := map[string]any{}
	for name, text := range q.Defaults {
		defaults[name] = jsonValue(name, text)
	}
	var aging any = secondsText(q.Aging)
	if q.Aging != task.Forever {
		aging = json.Number(secondsText(q.Aging))
	}
	return map[string]any{
		nameField: q.Name, "description": q.Description, "class": q.Class,
		"threads": jsonLimit(q.Threads), maxThreadsField: jsonLimit(q.MaxThreads),
		"nodes_pin": jsonList(q.Pin), "nodes_ignore": jsonList(q.Ignore),
		"paused": q.Paused, "damaged": q.Damaged, "order": q.Order, "aging": aging, "defaults": defaults, "created": jsonTime(q.Created),
		"waiting": q.Waiting, "due": q.Due, "oldest": jsonTime(q.Oldest), "running": q.Running,
		"running_by_node": orEmptyMap(q.RunningByNode), "ended": orEmptyMap(q.Ended),
	}
}

// orEmptyMap keeps null out of JSON.
func orEmptyMap[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	return m
}

func changeObjects(list []change) map[string]any {
	object := map[string]any{}
	for _, c := range list {
		object[c.name] = []string{c.before, c.after}
	}
	return object
}

// Names of hash fields, which are also those of flags and in JSON.
const (
	nameField    = "name"
	workerField  = "worker"
	nodeField    = "node"
	queueField   = "queue"
	programField = "program"
	sourceField  = "source"
	roundField   = "round"
	holdField    = "hold"
	pausedField  = "paused"
	envField     = "env"
	dryRunField  = "dry_run"
	openedField  = "opened"

	maxThreadsField = "maxthreads"

	listAlias = "list" // of the verbs ls
)
