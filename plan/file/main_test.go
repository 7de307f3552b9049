package file

import (
	"errors"
	"testing"
)

var taskFields = []string{"program", "source", "input", "argv", "queue", "timeout", "max_fails", "labels", "retry_exit_codes"}

// parsed reads a file that has to be right.
func parsed(t *testing.T, yaml string) *File {
	t.Helper()
	f, err := Parse("p.yaml", []byte(yaml), taskFields)
	if err != nil {
		t.Fatalf("%v in\n%s", err, yaml)
	}
	return f
}

func expanded(t *testing.T, yaml string, given map[string]string) *Plan {
	t.Helper()
	p, err := parsed(t, yaml).Expand(given)
	if err != nil {
		t.Fatalf("%v in\n%s", err, yaml)
	}
	return p
}

// refusal is what is wrong with a file, or with the values given.
func refusal(t *testing.T, yaml string, given map[string]string) string {
	t.Helper()
	f, err := Parse("p.yaml", []byte(yaml), taskFields)
	if err == nil {
		_, err = f.Expand(given)
	}
	if err == nil {
		return ""
	}
	list, ok := errors.AsType[Errors](err)
	if !ok || list.ExitCode() != 2 {
		t.Errorf("not an Errors: %T", err)
	}
	return err.Error()
}
