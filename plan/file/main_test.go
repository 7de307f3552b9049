package file

import (
	"errors"
	"testing"
)

// expanded reads a file that has to be right.
func expanded(t *testing.T, yaml string, given map[string]string) *Plan {
	t.Helper()
	p, err := Read("p.yaml", []byte(yaml), given)
	if err != nil {
		t.Fatalf("%v in\n%s", err, yaml)
	}
	return p
}

// refusal is what is wrong with a file, or with the values given.
func refusal(t *testing.T, yaml string, given map[string]string) string {
	t.Helper()
	_, err := Read("p.yaml", []byte(yaml), given)
	if err == nil {
		return ""
	}
	if _, ok := errors.AsType[Errors](err); !ok {
		t.Errorf("not an Errors: %T", err)
	}
	return err.Error()
}
