package main

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/statemachine"
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
	case "id", roundField, "rev", "start_after", "end_before", "timeout", "failure", "exit_code", "priority",
		"max_fails", "max_timeouts", "max_losses", "fails", "timeouts", "losses", "releases", "incarnation",
		"faults", "max_faults", "status", "not_before", "cancel_requested", "retry_delay", "retry_backoff", "retry_max_delay",
		"retry_jitter", "retry_of", "retried_by", "replay_of", "replay_round",
		"user_time", "system_time", "max_memory", "output_bytes", "error_bytes":
		return true
	default:
		return statemachine.State(name).Valid()
	}
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

// jsonList is the list, and [] and not null where there is none.
func jsonList[T any](list []T) []T { return append([]T{}, list...) }
