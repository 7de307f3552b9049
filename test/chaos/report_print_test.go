package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
)

// print shows the report, writes it where it is wanted, and fails the test if a
// promise was broken.
func (r *report) print(t *testing.T) {
	t.Helper()
	t.Logf("\n%s", r.table())
	if r.settings.report != "" {
		text, err := json.MarshalIndent(r, "", "  ")
		if err == nil {
			err = os.WriteFile(r.settings.report, append(text, '\n'), 0o600)
		}
		if err != nil {
			t.Error(err)
		}
	}
	const shown = 60
	for i, v := range r.Violations {
		if i == shown {
			t.Errorf("and %d more", len(r.Violations)-shown)
			break
		}
		t.Error(v)
	}
	if len(r.Violations) > 0 {
		t.Errorf("repeat with: make chaos SEED=%d DURATION=%s", r.Seed, r.settings.duration)
	}
}

// table is the report for people.
func (r *report) table() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	line("seed %d, harm for %s, all archived %.1f s after its end", r.Seed, r.settings.duration, r.Seconds.Drain)
	line("\nfault\ttimes\twent on after\tmedian\tmax")
	for _, c := range classes {
		if why, out := r.LeftOut[c]; out {
			line("%s\tleft out: %s", c, why)
			continue
		}
		if took := r.Recovery[c]; took.Times > 0 {
			line("%s\t%d\t%d times\t%.2f s\t%.2f s", c, r.Faults[c], took.Times, took.Median, took.Max)
		} else {
			line("%s\t%d\t-", c, r.Faults[c])
		}
	}
	line("\n%d tasks\t%v", r.Tasks, r.Ends)
	line("%d executions\t%d losses, %d timeouts, %d fails, %d releases", r.Executions, r.Losses, r.Timeouts, r.Fails, r.Releases)
	line("%d verdicts\tof servers over workers", r.Verdicts)
	line("%d restarts\tof members that gave up while Redis, disk or network were away", r.Restarts)
	line("%d tasks\thandled again", r.HandledAgain)
	line("%d tasks\tbegun that were claimed ahead", r.Ahead)
	line("%d mounts\tleft by programs that were killed", r.Mounts)
	line("%d losses\tof history noticed: %d tasks forgotten, %d rounds run again", r.HistoryLosses, r.Forgotten, r.RunAgain)
	line("%d rounds\treported over HTTP, in %d requests: outcomes %v; %d restarts", r.OverHTTP.Reported, r.OverHTTP.Requests, r.OverHTTP.Outcomes,
		r.OverHTTP.Restarts)
	line("%d steps\treplayed against the state machine", r.Events)
	line("\nbroken\ttimes")
	for _, p := range promises {
		line("%s\t%d", p, r.Broken[p])
	}
	_ = w.Flush()
	return b.String()
}
