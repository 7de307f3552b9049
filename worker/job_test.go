package worker

import (
	"context"
	"fmt"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// What is passed on with a task is there for a handler, and for a program.
func TestMeta(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start(t, func(o *options) {
		o.Handlers = map[string]Handler{"h": func(_ context.Context, j *Job) error {
			_, err := fmt.Fprint(j.Stdout(), j.Task.Meta["tenant"], len(j.Task.Meta), string(j.Task.Params))
			return err
		}}
	})
	passed := func(sp *task.Definition) {
		storetest.Set(sp, "meta", `{"tenant":"acme","trace_id":"a,b=c"}`, "params", `{"n":[1,"é"]}`)
	}
	checkFields(t, s.await(t, s.open(t, forHandler("h"), passed), sm.Executed), map[string]string{"0:output": `acme2{"n":[1,"é"]}`})
	program := s.open(t, s.script(t, "p", `echo "$TDF_META_TENANT $TDF_META_TRACE_ID $TDF_PARAMS"`), passed)
	checkFields(t, s.await(t, program, sm.Executed), map[string]string{"0:output": `acme a,b=c {"n":[1,"é"]}` + "\n"})
}
