package verbs

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// jsonList is the list, and [] instead of null for nil.
func jsonList[T any](list []T) []T { return append([]T{}, list...) }

// jsonArray writes a list element by element.
type jsonArray struct {
	out *cli.Output
	n   int
}

func (a *jsonArray) add(v any) error {
	var text strings.Builder
	if err := cli.WriteJSON(&text, v); err != nil {
		return err
	}
	a.out.Printf("%s\n  %s", map[bool]string{true: "[", false: ","}[a.n == 0],
		strings.ReplaceAll(strings.TrimSuffix(text.String(), "\n"), "\n", "\n  "))
	a.n++
	return a.out.Err()
}

func (a *jsonArray) end() {
	a.out.Printf("%s", map[bool]string{true: "[]\n", false: "\n]\n"}[a.n == 0])
}

// attribute is one of a queue or a node, as it is written in a set.
type attribute struct{ name, text string }

// queueAttributes are all that can be set, defaults of tasks only where there are. Some have other words in records.
func queueAttributes(q *task.Queue) []attribute {
	var list []attribute
	for pair := range slices.Chunk(q.Fields(), 2) {
		a := attribute{pair[0], pair[1]}
		switch name, ofTasks := strings.CutPrefix(a.name, defaultPrefix); {
		case name == "created":
			continue
		case name == pausedField:
			a.text = strconv.FormatBool(q.Paused)
		case strings.HasSuffix(name, threadsField) && a.text == task.Unlimited.Text(),
			ofTasks && strings.HasPrefix(name, "max_") && a.text == statemachine.Unlimited.Text():
			a.text = string(task.Unlimited)
		}
		list = append(list, a)
	}
	return list
}

// Names of hash fields, which are also those of flags and in JSON.
const (
	workerField     = "worker"
	nodeField       = "node"
	queueField      = "queue"
	programField    = "program"
	sourceField     = "source"
	roundField      = "round"
	holdField       = "hold"
	pausedField     = "paused"
	envField        = "env"
	openedField     = "opened"
	threadsField    = "threads"
	maxThreadsField = "max" + threadsField
	planField       = "plan"
	stepField       = "step"
	inputField      = "input"
	argvField       = "argv"
	labelsField     = "labels"
	resourcesField  = "resources"
	metaField       = "meta"
	variablesField  = "variables"
	returnField     = "return"
	stdinField      = "stdin"
	keyField        = "key"
)

// attrFlag is the flag for metaField, and the verb that changes it.
const attrFlag = "attr"

const listAlias = "list" // of the verbs ls
