package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A test can call a handler with a job of its own, and see what the handler says.
func TestZeroJob(t *testing.T) {
	t.Parallel()
	job := &Job{}
	if said := job.Said(); said != (Said{}) {
		t.Errorf("before it has said anything: %+v", said)
	}
	h := func(_ context.Context, j *Job) error {
		fmt.Fprint(j.Stdout(), "out ", j.Task.Input, len(j.Args))
		fmt.Fprint(j.Stderr(), "err")
		j.SetResult("first")
		j.SetResult("last")
		j.Progress(0.5, "half way")
		j.Logger().Debug("heard by nobody")
		select {
		case <-j.Draining():
			return HandBack(0)
		default:
			return nil
		}
	}
	if err := h(t.Context(), job); err != nil {
		t.Error(err)
	}
	said := job.Said()
	if said.Stdout != "out 0" || said.Stderr != "err" || *said.Result != "last" {
		t.Errorf("%+v", said)
	}
	if p := said.Progress; p.Part == nil || *p.Part != 0.5 || p.Text != "half way" {
		t.Errorf("%+v", p)
	}
	short := &Job{OutputLimit: 3}
	if err := h(t.Context(), short); err != nil {
		t.Error(err)
	}
	if _, err := short.result(); err == nil {
		t.Error("a result beyond the limit is taken")
	}
	if said := short.Said(); len(said.Stdout) < 3 || said.Stdout == "out 0" {
		t.Errorf("not cut: %+v", said)
	}
}

// A handler knows which try it is, and logs as its worker does.
func TestAttempt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w := s.start(t, handlers(map[string]Handler{"h": func(_ context.Context, j *Job) error {
		j.Logger().Info("trying", "attempt", j.Attempt)
		fmt.Fprint(j.Stdout(), j.Attempt)
		switch j.Task.Round {
		case 0, 2:
			return HandBack(0)
		case 1:
			return errors.New("it broke")
		}
		return nil
	}}))
	id := s.open(t, forHandler("h"), func(sp *task.Definition) { storetest.Set(sp, "max_fails", "1") })
	checkFields(t, s.finish(t, id, sm.Succeeded), map[string]string{"round": "3", "1:output": "1", "3:output": "2"})
	checkContains(t, "log", w.log.String(), `"msg":"trying","worker":"w","task":1,"round":3,"attempt":2`)
}

// What is passed on with a task is there for a handler, and for a program.
func TestMeta(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start(t, func(o *options) {
		o.Handlers = map[string]Handler{"h": func(_ context.Context, j *Job) error {
			_, err := fmt.Fprint(j.Stdout(), j.Task.Meta["tenant"], len(j.Task.Meta))
			return err
		}}
	})
	passed := func(sp *task.Definition) { storetest.Set(sp, "meta", `{"tenant":"acme","trace_id":"a,b=c"}`) }
	checkFields(t, s.await(t, s.open(t, forHandler("h"), passed), sm.Executed), map[string]string{"0:output": "acme2"})
	program := s.open(t, s.script(t, "p", `echo "$TDF_META_TENANT $TDF_META_TRACE_ID"`), passed)
	checkFields(t, s.await(t, program, sm.Executed), map[string]string{"0:output": "acme a,b=c\n"})
}
