package worker

import (
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A program reports a status: 1 changes nothing, any other one makes its round a failure that says so.
func TestStatus(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	open := func(name, script string, pairs ...string) int64 {
		return s.open(t, s.script(t, name, script), func(sp *task.Definition) { storetest.Set(sp, pairs...) })
	}
	well := open("well", `echo status=1 > $TDF_CONTROL`)
	ill := open("ill", `printf status=7 > $TDF_CONTROL; echo noted >&2`, "fail_on", "exit")
	strange := open("strange", `echo status=abc > $TDF_CONTROL`, "fail_on", "stderr")
	exits := open("exits", `echo status=1 > $TDF_CONTROL; exit 3`)
	again := open("again", `[ $TDF_ROUND = 1 ] || echo status=5 > $TDF_CONTROL`, "max_fails", "1")
	s.start(t)
	checkFields(t, s.finish(t, well, sm.Succeeded), map[string]string{"0:status": "1", "0:error": ""})
	checkFields(t, s.finish(t, ill, sm.Failed), map[string]string{"0:status": "7", "0:error": "noted\nthe program reported status 7", "0:class": "program"})
	told := s.finish(t, strange, sm.Failed)
	checkFields(t, told, map[string]string{"0:status": "2", "0:error": "the program reported status 2"})
	checkContains(t, "log", told.Fields["log"], "control file: status=abc: want 1")
	checkFields(t, s.finish(t, exits, sm.Failed), map[string]string{"0:status": "1", "0:error": "exit status 3"})
	checkFields(t, s.finish(t, again, sm.Succeeded), map[string]string{"0:status": "5", "1:status": "-"})
}
