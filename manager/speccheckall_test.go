package manager_test

import (
	"errors"
	"testing"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func TestCheckSpecs(t *testing.T) {
	t.Setenv("TDF_TASK_DEFAULTS_MAX_FAILS", "many") // is not looked at
	good := task.Spec{Program: "p", Source: "rsync:run.sh"}
	if err := manager.CheckSpecs([]task.Spec{good, good}); err != nil {
		t.Error(err)
	}
	err := manager.CheckSpecs([]task.Spec{good, {Program: "a/b", Source: "rsync:run.sh"}})
	spec, ok := errors.AsType[*manager.SpecError](err)
	if !ok || spec.Index != 1 {
		t.Fatalf("%v", err)
	}
	if field, ok := errors.AsType[*statemachine.FieldError](err); !ok || field.Field != "program" {
		t.Errorf("%v", err)
	}
}
