package verbs

import (
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/crewtest"
)

// TestPlanExample runs examples/pipeline as its README says.
func TestPlanExample(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const dir = "../../../examples/pipeline"
	crewtest.Start(t, crewtest.Crew{
		Dir: dir, Place: crewtest.Place{Host: b.srv.Socket(), Namespace: b.ns}, Workers: []string{"worker"},
	})
	r := b.run("plan", "run", dir+"/pipeline.yaml", "-p", "day=2026-11-21")
	if r.code != 0 {
		t.Fatalf("%+v", r)
	}
	wantText(t, r.out, "completed; 8 of 8 tasks have ended: succeeded 7  skipped 1\n")
	wantText(t, b.must("plan", "ls"), "succeeded 7  skipped 1")
	wantText(t, b.must("logs", "7"), "Readings of 2026-11-21 (1 bad):\neast 876\nnorth 900\nsouth 900\nwest ")
	r = b.run("plan", "run", dir+"/pipeline.yaml", "-p", "max_bad=0")
	if r.code != 1 {
		t.Fatalf("%+v", r)
	}
	wantText(t, r.out, "succeeded 6  failed 1  cancelled 1\n", "1 readings are no numbers, at most 0 may be")
	if text := b.must("plan", "show", "2", "--graph", "text"); !strings.Contains(text, "alarm 2026-11-20  succeeded  <- 13 failure") {
		t.Error(text)
	}
}
