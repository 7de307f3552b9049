package httpapi

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/series"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// newRegistry is where the schemas of all types are, as their JSON is.
func newRegistry() huma.Registry {
	r := huma.NewMapRegistry("#/components/schemas/", schemaName)
	for _, own := range []struct{ of, like reflect.Type }{
		{reflect.TypeFor[task.Limit](), reflect.TypeFor[limitLike]()},
		{reflect.TypeFor[task.Seconds](), reflect.TypeFor[secondsLike]()},
		{reflect.TypeFor[task.Damage](), reflect.TypeFor[[]statemachine.FieldError]()},
		{reflect.TypeFor[task.Resources](), reflect.TypeFor[map[string]int]()},
		{reflect.TypeFor[task.Defaults](), reflect.TypeFor[map[string]any]()},
		{reflect.TypeFor[series.Task](), reflect.TypeFor[map[string]any]()},
		{reflect.TypeFor[task.LogEntry](), reflect.TypeFor[logEntryLike]()},
		{reflect.TypeFor[task.Round](), reflect.TypeFor[roundLike]()},
		{reflect.TypeFor[task.Task](), reflect.TypeFor[taskLike]()},
		{reflect.TypeFor[manager.PlanView](), reflect.TypeFor[planViewLike]()},
		{reflect.TypeFor[answer.Compared](), reflect.TypeFor[comparedLike]()},
		{reflect.TypeFor[worker.RoundEnd](), reflect.TypeFor[roundEndLike]()},
		{reflect.TypeFor[worker.RoundNews](), reflect.TypeFor[roundNewsLike]()},
	} {
		r.RegisterTypeAlias(own.of, own.like)
	}
	return r
}

// schemaName is the name of a type in the description.
func schemaName(t reflect.Type, hint string) string {
	name := strings.TrimSuffix(huma.DefaultSchemaNamer(t, hint), "Like")
	if name == "" { // of a list of what has no name
		return ""
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// The JSON of these types is not what their fields say.
type (
	limitLike    struct{}
	secondsLike  struct{}
	logEntryLike task.LogEntry
	roundLike    task.Round
	taskLike     task.Task
	planViewLike manager.PlanView
	comparedLike answer.Compared

	roundEndLike  worker.RoundEnd
	roundNewsLike worker.RoundNews
)

// Schema implements [huma.SchemaProvider].
func (limitLike) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Nullable: true, Description: "null for no limit"}
}

// Schema implements [huma.SchemaProvider].
func (secondsLike) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeNumber, Nullable: true, Description: "seconds; null for no end"}
}

// TransformSchema implements [huma.SchemaTransformer].
func (roundLike) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	for _, stream := range []string{"output", "error"} {
		s.Properties[stream+"_bytes"] = &huma.Schema{Type: huma.TypeInteger, Description: "How much the program wrote."}
		s.Properties[stream+"_sha256"] = &huma.Schema{Type: huma.TypeString, Description: "Hash of all that the program wrote."}
	}
	for _, name := range []string{"user_time", "system_time"} {
		s.Properties[name] = &huma.Schema{Type: huma.TypeNumber, Description: "CPU seconds."}
	}
	return s
}

// TransformSchema implements [huma.SchemaTransformer].
func (taskLike) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	maps.Copy(s.Properties, taskFields(true))
	s.Properties["status"] = &huma.Schema{Type: huma.TypeInteger, Description: "The state as Disbatch numbers it."}
	s.Properties["damaged"] = &huma.Schema{Type: huma.TypeString, Description: "What is wrong with the record."}
	s.Properties["needs"] = &huma.Schema{Type: huma.TypeArray, Description: "The tasks of its plan that it waits for.",
		Items: &huma.Schema{Type: huma.TypeObject}}
	s.Required = append(s.Required, "status")
	return s
}

// TransformSchema implements [huma.SchemaTransformer].
func (planViewLike) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return orNull(s, "estimate", "What is still to come; null once the plan is over.")
}

// TransformSchema implements [huma.SchemaTransformer].
func (comparedLike) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return orNull(s, "second", "The round of the replay; null if no worker has begun it.")
}

// orNull says that a property may be null.
func orNull(s *huma.Schema, property, means string) *huma.Schema {
	s.Properties[property] = &huma.Schema{AnyOf: []*huma.Schema{s.Properties[property], {Type: "null"}}, Description: means}
	return s
}

// newTask is the schema of a task to open.
func newTask() *huma.Schema {
	s := &huma.Schema{
		Type: huma.TypeObject, Properties: taskFields(false), AdditionalProperties: false,
		Description: "What is left out is as the task's queue says, or the configuration of the server. Numbers may be texts.",
		Examples:    []any{map[string]any{"source": "command:seq", "input": "1 10", "queue": task.DefaultQueue}},
	}
	s.PrecomputeMessages()
	return s
}

// taskFields are what an opener can set, those of plans too if planned.
func taskFields(planned bool) map[string]*huma.Schema {
	all := map[string]*huma.Schema{}
	for _, f := range task.Fields() {
		if planned || !f.Planned {
			all[f.Name] = fieldSchema(&f)
		}
	}
	return all
}

// fieldSchema describes the value of a field.
func fieldSchema(f *task.Field) *huma.Schema {
	s := &huma.Schema{Description: f.Doc}
	switch t := f.ValueType(); {
	case t == reflect.TypeFor[json.RawMessage]():
		s.Type, s.AdditionalProperties = huma.TypeObject, true
	case t.Kind() == reflect.Slice:
		s.Type, s.Items = huma.TypeArray, &huma.Schema{Type: simpleType(t.Elem())}
	case t.Kind() == reflect.Map:
		s.Type, s.AdditionalProperties = huma.TypeObject, &huma.Schema{Type: simpleType(t.Elem())}
	default:
		if kind := simpleType(t); kind == huma.TypeString {
			s.Type = kind
		} else {
			s.OneOf = []*huma.Schema{{Type: kind}, {Type: huma.TypeString, Description: "such as inf, or unlimited"}}
		}
	}
	return s
}

// simpleType is the type in JSON of a value that is neither a list nor an object.
func simpleType(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[task.Limit]():
		return huma.TypeInteger
	case t.Kind() == reflect.String:
		return huma.TypeString
	case t.String() == "time.Time", t.String() == "time.Duration", t.Kind() == reflect.Float64:
		return huma.TypeNumber
	case slices.Contains([]reflect.Kind{reflect.Int, reflect.Int64}, t.Kind()):
		return huma.TypeInteger
	}
	return huma.TypeString
}

// TransformSchema implements [huma.SchemaTransformer].
func (roundEndLike) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return withBytes(s)
}

// TransformSchema implements [huma.SchemaTransformer].
func (roundNewsLike) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return withBytes(s)
}

// withBytes lets streams be empty: huma takes that for no base64.
func withBytes(s *huma.Schema) *huma.Schema {
	for _, name := range []string{"output", "error"} {
		p := s.Properties[name]
		p.ContentEncoding, p.Pattern = "", "^[A-Za-z0-9+/]*={0,2}$"
		p.PrecomputeMessages()
	}
	return s
}
