package verbs

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// jsonList is the list, and [] instead of null for nil.
func jsonList[T any](list []T) []T { return append([]T{}, list...) }

// attribute is one of a queue or a node, as it is written in a set.
type attribute struct{ name, text string }

// queueAttributes are all that can be set, defaults of tasks only where there are.
func queueAttributes(q *task.Queue) []attribute {
	list := make([]attribute, 0, len(q.Defaults)+9)
	list = append(list, []attribute{
		{"description", q.Description}, {"class", q.Class},
		{"threads", limitText(q.Threads)}, {maxThreadsField, limitText(q.MaxThreads)},
		{"nodes_pin", strings.Join(q.Pin, ",")}, {"nodes_ignore", strings.Join(q.Ignore, ",")},
		{pausedField, strconv.FormatBool(q.Paused)}, {"order", string(q.Order)}, {"aging", secondsText(time.Duration(q.Aging))},
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

func limitText(n task.Limit) string {
	if n == task.NoLimit {
		return task.UnlimitedText
	}
	return n.Text()
}

// secondsText is a duration in seconds, as in records.
func secondsText(d time.Duration) string {
	if d == task.Forever {
		return statemachine.Forever.Text()
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
}

// Names of hash fields, which are also those of flags and in JSON.
const (
	workerField     = "worker"
	nodeField       = "node"
	queueField      = "queue"
	programField    = "program"
	roundField      = "round"
	holdField       = "hold"
	pausedField     = "paused"
	envField        = "env"
	openedField     = "opened"
	maxThreadsField = "maxthreads"
	planField       = "plan"
	stepField       = "step"
	inputField      = "input"
	argvField       = "argv"
	labelsField     = "labels"
	resourcesField  = "resources"
	keyField        = "key"
)

const listAlias = "list" // of the verbs ls
