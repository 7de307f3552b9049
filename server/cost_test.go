package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A pass costs what is due: 10,000 open tasks with deadlines to come, 100 that
// run and 5 workers that live cost as many commands as nothing at all. Commands
// within scripts count as well.
func TestPassCostsWhatIsDue(t *testing.T) {
	t.Parallel()
	sp := storetest.On(t, redistest.Start(t))
	s, _ := newServer(t, sp, leased)
	sp.SetClock(t, at(0))
	steadied(t, s)
	pass(t, s) // from now on all scripts are known
	empty := costOfPass(t, sp, s)

	openMany(t, sp, 10_100, func(s *task.Definition) { storetest.Set(s, "end_before", at(1000).Text(), "timeout", "100") })
	for i := range 5 {
		register(t, sp.Store, fmt.Sprint("w-", i), 20)
	}
	sp.SetClock(t, at(0.5))
	steadied(t, s)
	pass(t, s)
	full := costOfPass(t, sp, s)
	t.Logf("%d commands for an idle pass, %d with 10,100 tasks and 5 workers", empty, full)
	if full > empty+1 || full > 30 { // one to read when the first lease ends
		t.Errorf("a pass costs %d commands, %d without tasks", full, empty)
	}
	counts, err := sp.Store.Count(t.Context())
	if err != nil || counts[statemachine.Open] != 10_000 || counts[statemachine.Running] != 100 {
		t.Errorf("counts %v, %v", counts, err)
	}
}

// costOfPass is how many commands Redis carries out for one pass.
func costOfPass(t *testing.T, sp *storetest.Space, s *Server) int {
	t.Helper()
	sp.Server.Do(t, "CONFIG", "RESETSTAT")
	if n := pass(t, s); n != 0 {
		t.Errorf("the pass moved %d tasks", n)
	}
	calls := 0
	text, _ := sp.Server.Do(t, "INFO", "commandstats").(string)
	for line := range strings.Lines(text) {
		var n int
		name, rest, _ := strings.Cut(line, ":")
		if _, err := fmt.Sscanf(rest, "calls=%d,", &n); err == nil && name != "cmdstat_config|resetstat" {
			calls += n
		}
	}
	return calls
}
