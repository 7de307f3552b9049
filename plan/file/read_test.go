package file_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/tdf-go/tdf/plan/file"
	"github.com/tdf-go/tdf/task"
)

// TestErrorsForAnEditor: what is wrong comes with its place, whether it shows in the file, in a task or in a queue of the site.
func TestErrorsForAnEditor(t *testing.T) {
	t.Parallel()
	at := func(err error, line int, field, text string) {
		t.Helper()
		list, ok := errors.AsType[file.Errors](err)
		if !ok || len(list) != 1 {
			t.Fatalf("%T: %v", err, err)
		}
		if one := list[0]; one.File != "p.yaml" || one.Line != line || one.Field != field || one.Err.Error() != text {
			t.Errorf("%+v", one)
		}
	}
	_, err := file.Read("p.yaml", []byte("steps:\n  a: {program: p, needs: b}"), nil)
	at(err, 2, "steps.a.needs", `there is no step "b"; did you mean "a"?`)

	p, err := file.Read("p.yaml", []byte("steps:\n  a:\n    program: p\n    foreach: [1, 2]\n    queue: gpu"), nil)
	if err != nil {
		t.Fatal(err)
	}
	specs, _, err := p.Specs(time.Now())
	if err != nil || len(specs) != 2 {
		t.Fatalf("%v, %+v", err, specs)
	}
	at(p.At(&specs[1], task.ErrNoQueue), 5, "steps.a", task.ErrNoQueue.Error())
}

// TestJSON: names and texts stay as they were written.
func TestJSON(t *testing.T) {
	t.Parallel()
	const yaml = "name: a<b\nsteps:\n  list: {program: p, source: 'http://me:secret@host/p', return_to: 'rsync://me:secret@host/m', variables: {A: canary}}\n" +
		"  each: {program: p, foreach: {lines: list, most: 7}, input: '${item}'}"
	p, err := file.Read("p.yaml", []byte(yaml), nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		t.Fatal(err)
	}
	want := `{"name":"a<b","on_failure":"","tasks":[{"args":"","needs":[],"program":"p","return_to":"rsync://***@host/m","source":"http://***@host/p","step":"list","variables":{"A":"***"}}],` +
		`"later":[{"step":"each","lines":"list","most":7,"needs":[],"tasks":[{"args":"","input":"${item}","program":"p","step":"each"}]}]}` + "\n"
	if out.String() != want {
		t.Errorf("\ngot  %swant %s", out.String(), want)
	}
	if p.String() != "2 steps, 1 tasks and one for each line of list" {
		t.Errorf("%s", p)
	}
}
