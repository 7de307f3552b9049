package manager_test

import (
	"errors"
	"testing"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

func TestCheckSpecs(t *testing.T) {
	t.Setenv("TDF_TASK_DEFAULTS_MAX_FAILS", "many") // is not looked at
	good := manager.Spec{Program: "p", Source: "rsync:run.sh"}
	if err := manager.CheckSpecs([]manager.Spec{good, good}); err != nil {
		t.Error(err)
	}
	err := manager.CheckSpecs([]manager.Spec{good, {Program: "a/b", Source: "rsync:run.sh"}})
	spec, ok := errors.AsType[*manager.SpecError](err)
	if !ok || spec.Index != 1 {
		t.Fatalf("%v", err)
	}
	if field, ok := errors.AsType[*statemachine.FieldError](err); !ok || field.Field != "program" {
		t.Errorf("%v", err)
	}
}
