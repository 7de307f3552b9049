package verbs

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// jsonFields makes the JSON object of a task: the names are those of Redis' hash
// fields, numbers are numbers, infinite ones the text "inf". The source is masked,
// which may be a URL with a token.
func jsonFields(fields map[string]string) map[string]any {
	object := make(map[string]any, len(fields))
	for name, text := range fields {
		object[name] = jsonValue(name, text)
	}
	return object
}

func jsonValue(name, text string) any {
	if _, rest, ok := statemachine.CutRoundField(name); ok {
		name = rest
	}
	valid := json.Valid([]byte(text))
	switch {
	case isNumber(name) && valid && strings.Trim(text, "-.0123456789eE+") == "":
		return json.Number(text)
	case name == "argv" && valid:
		return json.RawMessage(text)
	case name == sourceField:
		return clean.Source(text)
	case name == "log":
		return clean.URLs(text)
	default:
		return text
	}
}

// isNumber reports whether a hash field, without its round, is a number.
func isNumber(name string) bool {
	switch name {
	case "id", roundField, "rev", "status", "fails", "timeouts", "losses", "releases", "faults", "not_before", "cancel_requested",
		"retry_of", "retried_by", "replay_of", "replay_round",
		"incarnation", "timeout", "failure", "exit_code", "user_time", "system_time", "max_memory", "output_bytes", "error_bytes":
		return true
	default:
		return task.Number(name) || statemachine.State(name).Valid()
	}
}

// jsonList is the list, and [] and not null where there is none.
func jsonList[T any](list []T) []T { return append([]T{}, list...) }

// taskObject is the JSON form of a task: the fields as they stand in Redis, and
// for each round sizes and hashes also where the worker did not record them
// because nothing was cut. queue is always there, and status, the number Disbatch
// has for the state.
func taskObject(t *manager.Task) map[string]any {
	object := jsonFields(t.Fields)
	object["status"], object["queue"] = t.DisbatchStatus(), t.Queue
	for _, r := range t.Rounds() {
		add := func(name string, value any, known bool) {
			name = statemachine.RoundField(r.Number, name)
			if _, there := object[name]; known && !there {
				object[name] = value
			}
		}
		_, ran := r.Stamps[string(statemachine.Executed)]
		ran = (ran || r.Output != "" || r.Error != "") && !r.Dropped
		add("output_bytes", r.OutputBytes, ran)
		add("error_bytes", r.ErrorBytes, ran)
		add("output_sha256", r.OutputSHA256(), ran)
		add("error_sha256", r.ErrorSHA256(), ran)
	}
	return object
}

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
	nameField    = "name"
	queueField   = "queue"
	programField = "program"
	sourceField  = "source"
	roundField   = "round"
	holdField    = "hold"
	pausedField  = "paused"
	envField     = "env"
	dryRunField  = "dry_run"

	maxThreadsField = "maxthreads"

	listAlias = "list" // of the verbs ls
)
