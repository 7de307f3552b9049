package task_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Each role may do what its row says, and nobody may do what has no role.
func TestTokenRoleMay(t *testing.T) {
	t.Parallel()
	needs := []task.TokenRole{task.TokenRead, task.TokenSubmit, task.TokenOperate, task.TokenAdmin, "", "king"}
	for role, row := range map[task.TokenRole]string{
		task.TokenRead:    "read",
		task.TokenSubmit:  "read submit",
		task.TokenOperate: "read submit operate",
		task.TokenAdmin:   "read submit operate admin",
		"":                "",
		"king":            "",
	} {
		for _, need := range needs {
			want := slices.Contains(strings.Fields(row), string(need))
			if got := role.May(need); got != want {
				t.Errorf("%q may do what needs %q: %v, want %v", role, need, got, want)
			}
		}
	}
}

// A token has a name like a queue, and one of the roles.
func TestTokenSpecCheck(t *testing.T) {
	t.Parallel()
	for _, role := range []task.TokenRole{task.TokenRead, task.TokenSubmit, task.TokenOperate, task.TokenAdmin} {
		if err := (&task.TokenSpec{Name: "ci-2.x_y", Role: role}).Check(); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct{ name, role, field string }{
		{"", "read", "name"}, {"a b", "read", "name"}, {"-a", "read", "name"}, {strings.Repeat("a", 65), "read", "name"},
		{"ci", "", "role"}, {"ci", "king", "role"}, {"ci", "Read", "role"},
	} {
		err := (&task.TokenSpec{Name: c.name, Role: task.TokenRole(c.role)}).Check()
		if fe, ok := errors.AsType[*statemachine.FieldError](err); !ok || fe.Field != c.field {
			t.Errorf("%+v: %v, want the field %s", c, err, c.field)
		}
	}
}

// What never expires has no such field.
func TestTokenJSON(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	token := task.Token{ID: "x", By: "ann", Created: at, TokenSpec: task.TokenSpec{Name: "ci", Role: task.TokenRead}}
	for expires, want := range map[time.Time]string{
		{}: `{"id":"x","name":"ci","role":"read","created":"2030-01-02T03:04:05Z","by":"ann"}`,
		at: `{"id":"x","name":"ci","role":"read","expires":"2030-01-02T03:04:05Z","created":"2030-01-02T03:04:05Z","by":"ann"}`,
	} {
		token.Expires = expires
		if text, err := json.Marshal(token); err != nil || string(text) != want {
			t.Errorf("%s, %v, want %s", text, err, want)
		}
	}
}
