package unittest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/tdftest"
	"github.com/tdf-go/tdf/worker"
)

// thumb is the handler under test.
func thumb(_ context.Context, job *worker.Job) error {
	name, ok := strings.CutSuffix(job.Task.Input, ".png")
	if !ok {
		return worker.Permanent(fmt.Errorf("%q is no picture", job.Task.Input))
	}
	_, err := fmt.Fprint(job.Stdout(), name+"-small.png")
	return err
}

// A handler alone: a job is a value.
func TestThumb(t *testing.T) {
	job := &worker.Job{}
	job.Task.Input = "cat.png"
	if err := thumb(t.Context(), job); err != nil || job.Said().Stdout != "cat-small.png" {
		t.Errorf("%+v, %v", job.Said(), err)
	}
	job.Task.Input = "cat.txt"
	if err := thumb(t.Context(), job); err == nil {
		t.Error("a text is a picture")
	}
}

// The way from the manager to the worker and back, without Redis.
func TestThumbs(t *testing.T) {
	site, _ := tdftest.New(t)
	m := manager.New(site, "test", manager.Options{})
	for _, input := range []string{"a.png", "b.txt"} {
		if _, err := m.Submit(t.Context(), task.Spec{Program: "thumb", Class: "thumb", Input: input}); err != nil {
			t.Fatal(err)
		}
	}
	tdftest.Work(t, site, map[string]worker.Handler{"thumb": thumb})
	counts, err := m.Count(t.Context())
	if err != nil || counts["succeeded"] != 1 || counts["failed"] != 1 {
		t.Errorf("%v, %v", counts, err)
	}
}
