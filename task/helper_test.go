package task_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// refused wants a *FieldError with that field that says what to write.
func refused(t *testing.T, err error, field string) {
	t.Helper()
	fe, ok := errors.AsType[*statemachine.FieldError](err)
	if !ok || fe.Field != field || fe.Want == "" {
		t.Errorf("error %v; want one about field %s", err, field)
	}
}

// pairs makes a map of what Fields returned.
func pairs(t *testing.T, fields []string) map[string]string {
	t.Helper()
	if len(fields)%2 != 0 {
		t.Fatalf("a field without a value in %q", fields)
	}
	m := map[string]string{}
	for i := 0; i < len(fields); i += 2 {
		if _, twice := m[fields[i]]; twice {
			t.Fatalf("field %s twice in %q", fields[i], fields)
		}
		m[fields[i]] = fields[i+1]
	}
	return m
}

// Small alphabets, so that tasks and workers meet often enough. Generators are
// made anew for each test: they are not for two at a time.
func of(words ...string) *rapid.Generator[string] { return rapid.SampledFrom(words) }

func anEnv() *rapid.Generator[string]  { return of("", "python", "go") }
func aNode() *rapid.Generator[string]  { return of("n1", "n2", "n3") }
func aLabel() *rapid.Generator[string] { return of("gpu=a", "gpu=b", "zone=eu", "zone=us") }

// someLabels is a text of labels; now and then one that no client of ours writes.
func someLabels(t *rapid.T) string {
	return rapid.OneOf(
		rapid.Map(rapid.SliceOfN(aLabel(), 0, 2), mustLabels),
		of("", "odd", "gpu=a,,zone=eu", ","),
	).Draw(t, "labels")
}

func someResources() *rapid.Generator[task.Resources] {
	return rapid.Custom(func(t *rapid.T) task.Resources {
		return rapid.MapOfN(of("gpu", "mem", "lic"), rapid.IntRange(1, 3), 0, 3).Draw(t, "resources")
	})
}

func aBucket() *rapid.Generator[task.Bucket] {
	return rapid.Custom(func(t *rapid.T) task.Bucket {
		return task.Bucket{
			Queue: of("", "default", "q", "r", "s").Draw(t, "queue"), Env: anEnv().Draw(t, "env"), Labels: someLabels(t),
			Resources: rapid.OneOf(
				rapid.Map(someResources(), task.Resources.Text), of("gpu=x", "gpu", "gpu=0", "gpu=-1", ",", "a=1,"),
			).Draw(t, "asked"),
			Class:    of("", "render", "rend", "index").Draw(t, "class"),
			Priority: rapid.IntRange(-2, 2).Draw(t, "priority"),
		}
	})
}

func queueNamed(t *rapid.T, name string) task.QueueSpec {
	q := task.ParseQueue(name, nil)
	q.Paused = rapid.IntRange(0, 3).Draw(t, "paused") == 0
	q.Pin = rapid.SliceOfN(aNode(), 0, 2).Draw(t, "pin")
	q.Ignore = rapid.SliceOfN(aNode(), 0, 2).Draw(t, "ignore")
	q.Class = of("", "render", "rend", "index").Draw(t, "class")
	return q
}

func aWorker() *rapid.Generator[task.Offer] {
	return rapid.Custom(func(t *rapid.T) task.Offer {
		return task.Offer{
			Worker: "w", Node: aNode().Draw(t, "node"), Env: anEnv().Draw(t, "env"),
			Labels:    rapid.SliceOfN(aLabel(), 0, 3).Draw(t, "labels"),
			Resources: someResources().Draw(t, "resources"),
			Classes:   rapid.SliceOfN(of("render", "render=2", "index", "index=", "rend", "x"), 0, 2).Draw(t, "classes"),

			HandlersOnly: rapid.Bool().Draw(t, "handlers only"),
		}
	})
}
