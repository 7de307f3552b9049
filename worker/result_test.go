package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	sm "github.com/tdf-go/tdf/statemachine"
)

// An output that was cut is no result, unless nobody needs it or there is another
// one.
func TestCutOutput(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	plan, ready := s.plan(t)
	const loud = `head -c 3000 /dev/zero`
	bad := s.planned(t, plan, s.script(t, "bad", loud))
	said := s.planned(t, plan, s.script(t, "said", loud+`; echo result=short > $TDF_CONTROL`))
	leaf := s.planned(t, plan, s.script(t, "loud", loud))
	none := s.planned(t, plan, s.script(t, "show", show), input(""), needs(bad, said))
	one := s.planned(t, plan, s.script(t, "show", show), input(""), needs(said))
	handled := s.planned(t, plan, forHandler("h"))
	s.planned(t, plan, s.script(t, "show", show), needs(handled))
	ready()
	s.start(t, func(o *options) {
		o.OutputLimit = 1000
		o.Handlers = map[string]Handler{"h": func(_ context.Context, j *Job) error {
			_, err := j.Stdout().Write(make([]byte, 3000))
			return err
		}}
	})
	for _, id := range []int64{bad, handled} {
		task := s.finish(t, id, sm.Failed)
		checkFields(t, task, map[string]string{"0:class": "program", "0:output_bytes": "3000"})
		checkContains(t, "error", task.Fields["0:error"], "cut at output_limit (1000 bytes), so it is not a result", "raise the limit", "result=")
	}
	checkFields(t, s.finish(t, one, sm.Succeeded), map[string]string{"0:output": "[short]"})
	s.finish(t, leaf, sm.Succeeded)
	s.finish(t, none, sm.Cancelled)
}

// A result that is said but cannot be taken makes a task of a plan fail, and is
// noted of any other.
func TestResultTooLong(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	plan, ready := s.plan(t)
	p := s.script(t, "p", `echo 1; printf result= > $TDF_CONTROL; head -c 70000 /dev/zero | tr '\0' x >> $TDF_CONTROL`)
	alone, member := s.open(t, p), s.planned(t, plan, p)
	ready()
	s.start(t)
	task := s.finish(t, alone, sm.Succeeded)
	checkFields(t, task, map[string]string{"0:result": "-"})
	checkContains(t, "log", task.Fields["log"], "longer than 64 KiB")
	task = s.finish(t, member, sm.Failed)
	checkFields(t, task, map[string]string{"0:result": "-", "0:class": "program"})
	checkContains(t, "error", task.Fields["0:error"], "longer than 64 KiB", "stdout")
}

// Go functions get results and give them.
func TestHandlerResults(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	plan, ready := s.plan(t)
	a := s.planned(t, plan, forHandler("say"))
	b := s.planned(t, plan, s.script(t, "b", `echo 5`))
	c := s.planned(t, plan, forHandler("show"), needs(b, a, b))
	d := s.planned(t, plan, forHandler("show"), needs(a), files)
	long := s.planned(t, plan, forHandler("long"))
	ready()
	s.start(t, func(o *options) {
		o.OutputLimit = 1000
		o.Handlers = map[string]Handler{
			"say": func(_ context.Context, j *Job) error {
				fmt.Fprintln(j.Stdout(), "noise", len(j.Results))
				j.SetResult("first")
				j.SetResult("a\x00" + strings.Repeat("\xff", 998))
				return nil
			},
			"show": func(_ context.Context, j *Job) error {
				fmt.Fprintf(j.Stdout(), "%d", len(j.Args))
				for i, res := range j.Results {
					if len(j.Args) > 3 && j.Args[3+i] != res.Text {
						return errors.New("another argument")
					}
					fmt.Fprintf(j.Stdout(), " %d %s %.3q %v", res.Task, res.End, res.Text, res.Cut)
				}
				return nil
			},
			"long": func(_ context.Context, j *Job) error { j.SetResult(strings.Repeat("x", 1001)); return nil },
		}
	})
	checkFields(t, s.finish(t, c, sm.Succeeded), map[string]string{
		"0:output": `6 2 succeeded "5" false 1 succeeded "a\x00\xff" false 2 succeeded "5" false`,
	})
	checkFields(t, s.finish(t, d, sm.Succeeded), map[string]string{"0:output": `3 1 succeeded "a\x00\xff" false`})
	checkFields(t, s.Task(t, a), map[string]string{"0:output": "noise 0\n", "0:result": "a\x00" + strings.Repeat("\xff", 998)})
	task := s.finish(t, long, sm.Failed)
	checkFields(t, task, map[string]string{"0:result": "-", "0:class": "program"})
	checkContains(t, "error", task.Fields["0:error"], "1001 bytes", "output_limit is 1000")
}
