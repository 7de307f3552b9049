package acceptance

import (
	"path/filepath"
	"strings"
	"testing"
)

// Of a job with a window no more run at a time than that on two workers; what comes after it begins when all of it has ended, and what
// was to follow its failure is cancelled. Its name stands for its tasks.
func TestJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "slots=4")
	w.server(t)
	for _, name := range []string{"one", "two"} {
		w.worker(t, name, "program_dir="+w.own(t, "empty-"+name))
	}
	here := t.TempDir()
	// Each says how many are there, itself included, at its beginning and after a while.
	w.manage(t, 0, "submit", "--array", "1-20%3", "--name", "window", "--", "sh", "-c",
		"cd "+here+" && mkdir {} && ls | wc -l && sleep 0.05 && ls | wc -l && rmdir {}")
	w.manage(t, 0, "submit", "--after", "j1", "--array", "1-5", "--", "sh", "-c", "ls "+here+" | wc -l; exit $(({} % 2))")
	w.manage(t, 0, "submit", "--after", "j2:failure", "--after", "j1", "--", "echo", "mended")
	w.manage(t, 0, "submit", "--after", "j1:failure", "--", "touch", filepath.Join(here, "never"))
	w.manage(t, 0, "wait", "j3", "--timeout", "2m")
	w.manage(t, 1, "wait", "j4", "--timeout", "2m")

	output, _ := w.manage(t, 0, "logs", "j1")
	at := map[string]int{}
	for line := range strings.Lines(output) {
		if n := strings.TrimSpace(line); n != "" && !strings.HasPrefix(n, "==>") {
			at[n]++
		}
	}
	if at["1"]+at["2"]+at["3"] != 40 {
		t.Errorf("so many were there at a time, and how often: %v; want at most 3", at)
	}
	if output, _ = w.manage(t, 0, "logs", "j2"); strings.Count(output, "\n0\n") != 5 {
		t.Errorf("some of j1 were there when j2 ran:\n%s", output)
	}
	table, _ := w.manage(t, 0, "jobs")
	for _, want := range []string{"j4 touch cancelled 1 0 0 cancelled 1", "j3 echo completed 1 0 0 succeeded 1",
		"j2 sh failed 5 0 0 succeeded 2 failed 3", "j1 window completed 20 0 0 succeeded 20"} {
		if !strings.Contains(strings.Join(strings.Fields(table), " "), want) {
			t.Errorf("jobs lacks %q:\n%s", want, table)
		}
	}
	w.manage(t, 0, "retry", "j2", "--failed")
	w.manage(t, 1, "wait", "j2", "--timeout", "2m")
	if text, _ := w.manage(t, 0, "results", "--csv", "j1"); strings.Count(text, ",succeeded,") != 20 {
		t.Errorf("results of j1:\n%s", text)
	}
	w.manage(t, 0, "verify")
}
