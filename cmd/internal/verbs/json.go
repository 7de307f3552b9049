package verbs

import (
	"strings"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/cli"
)

// jsonArray writes a list element by element.
type jsonArray struct {
	out *cli.Output
	n   int
}

func (a *jsonArray) add(v any) error {
	var text strings.Builder
	if err := clean.WriteJSON(&text, v); err != nil {
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
	paramsField     = "params"
	metaField       = "meta"
	variablesField  = "variables"
	returnField     = "return"
	stdinField      = "stdin"
	keyField        = "key"
	tokenField      = "token"
)

// attrFlag is the flag for metaField, and the verb that changes it.
const attrFlag = "attr"

const listAlias = "list" // of the verbs ls
