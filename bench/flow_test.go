package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/ops/audit"
	"github.com/tdf-go/tdf/statemachine"
)

// A small run does all that a large one does: tasks leave Redis by number and by age, and each is accounted for.
func TestLongFlow(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	file := filepath.Join(t.TempDir(), "flow.json")
	args := []string{
		"flow", "-conf", shippedConf, "-tasks", "3000", "-slots", "1", "-backlog", "200", "-batch", "100", "-failing", "10", "-keep", "300", "-age", "100ms",
		"-every", "100",
		"-json", file, "-archive", filepath.Join(t.TempDir(), "archive"),
	}
	if err := run(t.Context(), args, &out, t.Output()); err != nil {
		t.Fatal(err)
	}
	matches(t, out.String(),
		`## Flow\n\n3000 tasks in \d+ s, 300 of those that succeeded kept`, `\| used_memory, MB \| \d+\.\d \| \d+\.\d \| \d+\.\d \| \d\.\d{3} \|`,
		"\\| `task:…` \\| \\d+ \\| \\d+ \\| \\d+ \\| \\d+ \\|", `3000 opened = \d+ in a state \+ \d+ purged, in \d+ ranges of ids; 0 violations`,
		`2700 purged = 2700 in the archive, in 2700 records`, `Flat within 10 %: (yes|no)`,
	)
	text, err := os.ReadFile(file)
	var written struct{ Tables []struct{ Figures result } }
	if err != nil || json.Unmarshal(text, &written) != nil || len(written.Tables) != 1 {
		t.Fatalf("%v\n%s", err, text)
	}
	r := &written.Tables[0].Figures
	if r.WarmUp == 0 || r.WarmUp >= len(r.Samples) || r.Kinds["task:…"].Bytes[1] == 0 || r.Kept != 300 ||
		r.Account.Purged != 2700 || r.Archive.Tasks != 2700 {
		t.Errorf("%s", text)
	}
}

// A run that takes too long to open its tasks ends in order, and accounts for those that there are.
func TestFlowOfFewerTasks(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	args := []string{"flow", "-conf", shippedConf, "-aof", "no", "-age", "1s", "-backlog", "100", "-batch", "100", "-opening", "100ms", "-strict"}
	err := run(t.Context(), args, &out, t.Output())
	if err == nil || !strings.Contains(err.Error(), "not flat") {
		t.Errorf("%v, want that nothing shows it to be flat", err)
	}
	if !strings.Contains(out.String(), "not known, as the run ended before the retention was reached") {
		t.Error(out.String())
	}
}

func TestFlat(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		want   bool
	}{
		{[]float64{100, 101, 99, 100, 102, 100, 98, 100, 100, 100}, true},
		{[]float64{100, 101, 99, 100, 112, 100, 98, 100, 100, 100}, false},
		{[]float64{100, 101, 99, 100, 102, 100, 88, 100, 100, 100}, false},
		{[]float64{95, 95, 95, 100, 100, 100, 102, 105, 106, 106}, false}, // each is near the median, but it grows
		{[]float64{100}, true},
	} {
		if s := spanOf(c.values); s.flat() != c.want {
			t.Errorf("%v: %+v is flat: %v", c.values, s, s.flat())
		}
	}
}

// What does not add up is named.
func TestWrong(t *testing.T) {
	t.Parallel()
	good := func() *result {
		return &result{
			Opened: 100, Ran: 100, Failing: 10, Keep: 30, Kept: 30, Account: audit.Account{Opened: 100, Purged: 70}, Purged: 70,
			States: map[statemachine.State]int64{statemachine.Archived: 30}, Archive: &audit.ArchiveReport{Tasks: 70, Records: 70},
		}
	}
	if err := good().wrong(); err != nil {
		t.Error(err)
	}
	for says, spoil := range map[string]func(*result){
		"99 ids given out, want 100":                              func(r *result) { r.Account.Opened = 99 },
		"101 calls of the handler, want 100":                      func(r *result) { r.Ran = 101 },
		"99 tasks that are archived or have left Redis, want 100": func(r *result) { r.Purged = 69 },
		"29 tasks that succeeded and are left, want 30":           func(r *result) { r.Kept = 29 },
		"90 tasks that succeeded and are left, want 30":           func(r *result) { r.Kept = 90 },
		"80 tasks that succeeded and are left, want 90":           func(r *result) { r.Keep, r.Kept = 1000, 80 },
		"10 ranges of ids that have left Redis beyond":            func(r *result) { r.Ranges = 41 },
		"69 tasks in the archive, want 70":                        func(r *result) { r.Archive.Tasks = 69 },
		"71 records in the archive, want 70":                      func(r *result) { r.Archive.Records = 71 },
		"31 tasks that are archived, want 30":                     func(r *result) { r.States[statemachine.Archived] = 31 },
		"1 violations, want 0":                                    func(r *result) { r.Violations = []audit.Violation{{}} },
	} {
		r := good()
		spoil(r)
		if err := r.check(false); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}
