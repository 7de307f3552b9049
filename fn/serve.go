package fn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// Function is a Func, Func0, Func2 or Func3.
type Function interface {
	// Name is the name by which workers know it: the program of its tasks.
	Name() string
	// serve is nil if there is nothing to be called.
	serve() worker.Handler
}

// Handlers are functions for the Handlers of worker.Options, by their names. As
// http.ServeMux does, it panics on a mistake of the programmer: a name that cannot be that of a
// program and a class, a name used twice, or a nil function.
func Handlers(functions ...Function) map[string]worker.Handler {
	handlers := make(map[string]worker.Handler, len(functions))
	for _, f := range functions {
		handler := f.serve()
		switch err := errors.Join(config.ValidName("function", f.Name()), task.CheckClass(f.Name())); {
		case err != nil:
			panic("fn: " + err.Error())
		case handler == nil:
			panic(fmt.Sprintf("fn: function %q is nil", f.Name()))
		case handlers[f.Name()] != nil:
			panic(fmt.Sprintf("fn: function %q is there twice: give one of them another name", f.Name()))
		}
		handlers[f.Name()] = handler
	}
	return handlers
}

// input is what a round has for a function.
type input struct {
	function string
	job      *worker.Job
	err      error // of the first argument that cannot be taken
}

// serve makes a handler of a function with that number of arguments.
func serve[R any](function string, takes int, bind func(*input) func(context.Context) (R, error)) worker.Handler {
	return func(ctx context.Context, j *worker.Job) error {
		if got := len(j.Args); got != takes {
			return worker.Permanent(fmt.Errorf("function %s takes %d arguments and is called with %d: "+
				"is the worker of the same release as the caller?", function, takes, got))
		}
		in := &input{function: function, job: j}
		do := bind(in)
		if in.err != nil {
			return in.err
		}
		r, err := do(context.WithValue(ctx, jobKey{}, j))
		if err != nil {
			return err
		}
		text, err := encode(r)
		if err == nil && j.OutputLimit > 0 && int64(len(text)) > j.OutputLimit {
			err = fmt.Errorf("it has %d bytes, and output_limit is %d: return less, or raise the limit of the workers",
				len(text), j.OutputLimit)
		}
		if err != nil {
			return &ValueError{Function: function, Err: err}
		}
		j.SetResult(text)
		return nil
	}
}

// take decodes an argument; after one that cannot be, it does nothing.
func take[A any](in *input, place int) (a A) {
	if in.err == nil {
		in.err = in.decode(place, &a)
	}
	return a
}

func (in *input) decode(place int, into any) error {
	text := in.job.Args[place]
	refs, several, err := references(text)
	var of int64 // whose result it is
	switch {
	case err != nil:
	case several:
		of, err = in.decodeAll(refs, into)
	case len(refs) == 1:
		of, err = in.decodeResult(refs[0], into)
	default:
		err = decode(text, false, into)
	}
	if err != nil {
		return &ValueError{Function: in.function, Argument: place + 1, Task: of, Err: err}
	}
	return nil
}

// decodeAll makes a slice of results. It returns the task whose result is wrong.
func (in *input) decodeAll(refs []ref, into any) (of int64, err error) {
	v := reflect.ValueOf(into).Elem()
	if v.Kind() != reflect.Slice {
		return 0, fmt.Errorf("a list of results is no %s", v.Type())
	}
	v.Set(reflect.MakeSlice(v.Type(), len(refs), len(refs)))
	for i, r := range refs {
		if of, err := in.decodeResult(r, v.Index(i).Addr().Interface()); err != nil {
			return of, err
		}
	}
	return 0, nil
}

func (in *input) decodeResult(r ref, into any) (of int64, err error) {
	if r.need > len(in.job.Results) {
		return 0, fmt.Errorf("it is the result of need %d, and the task has %d needs", r.need, len(in.job.Results))
	}
	res := &in.job.Results[r.need-1]
	if res.End != statemachine.Succeeded {
		return res.Task, fmt.Errorf("it has ended %s, without a result", res.End)
	}
	return res.Task, decode(res.Text, r.text, into)
}

// jobKey is where a context has the job.
type jobKey struct{}

// Job returns the round in which a function runs, given the context of the function. It
// is nil for any other context, such as that of a test which calls the function itself.
func Job(ctx context.Context) *worker.Job {
	j, _ := ctx.Value(jobKey{}).(*worker.Job)
	return j
}

// Grow returns the plan in which a function runs, given the context of the function,
// so that the function can add calls to it. They run after p.Send, and the plan does
// not end before they have ended. A function must not wait for what it adds, since
// it keeps a slot; let it return ids ([Future.ID]), for others to read by [Result].
//
// A function may be run more than once; what it adds in each of its rounds is there
// once, if it sends the same calls in the same portions. A task that was retried by
// hand is another one, and adds again. The error matches [ErrNoJob], or is that of
// plan.Load.
func Grow(ctx context.Context, m *manager.Manager) (*plan.Plan, error) {
	j := Job(ctx)
	if j == nil || j.Task.Plan == 0 {
		return nil, ErrNoJob
	}
	return plan.Load(ctx, m, j.Task.Plan, plan.WithRequestKey(fmt.Sprintf("fn of task %d", j.Task.ID)))
}

// encode writes a value as it travels.
func encode(v any) (string, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // it is for functions and programs
	if err := e.Encode(v); err != nil {
		return "", fmt.Errorf("it cannot be written as JSON: %w", err)
	}
	return string(bytes.TrimSuffix(text.Bytes(), []byte("\n"))), nil
}

// decode reads what was encoded or, of an output, what a program has written.
func decode(from string, output bool, into any) error {
	v := reflect.ValueOf(into).Elem()
	switch {
	case output && v.Kind() == reflect.String:
		v.SetString(from)
		return nil
	case output && v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		v.SetBytes([]byte(from))
		return nil
	}
	if err := json.Unmarshal([]byte(from), into); err != nil {
		return fmt.Errorf("%s is no %s: %w", excerpt(from), v.Type(), err)
	}
	return nil
}

func excerpt(text string) string {
	const longest = 60
	if len(text) > longest {
		return fmt.Sprintf("%q...", text[:longest])
	}
	return fmt.Sprintf("%q", text)
}
