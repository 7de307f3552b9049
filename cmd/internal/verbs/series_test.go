package verbs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/task"
)

// A series is made, shown, changed, paused, run and removed.
func TestSeries(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if r := b.run("series", "ls"); r.code != 0 || r.out != "" || !strings.Contains(r.err, "series add KEY") {
		t.Errorf("none: %+v", r)
	}
	wantText(t, b.unchanged("series", "add", "nightly", "--every", "1h", "-n", "--", "backup").out, "would add series nightly; it is due first at ")
	wantText(t, b.must("series", "add", "nightly", "--cron", "30 2 * * 1-5", "--zone", "Europe/Berlin", "--overlap", "queue", "--timeout", "1h",
		"--end-before", "+2h", "-e", "TOKEN=secret", "--", "backup", "--all"), "added series nightly; it is due first at ")
	wantText(t, b.must("series", "add", "poll", "--every", "90", "--jitter", "5s", "--max-behind", "10m", "--missed", "skip", "--program", "p", "--source", "https://h/p.zip"), "added series poll")
	wantText(t, b.must("series", "add", "crawl", "--eta", "--start", "+24h", "--", "crawl"), "added series crawl")
	list := b.must("series", "ls")
	wantText(t, list, "KEY", "crawl    -      as it says", "nightly  -      30 2 * * 1-5 Europe/Berlin", "poll     -      every 1m30s", "queue", "skip")
	shown := b.must("series", "show", "nightly")
	wantText(t, shown, "cron", "30 2 * * 1-5", "zone", "Europe/Berlin", "task_source", "command:backup", "task_end_before", "+2h", `{"TOKEN":"***"}`)
	if all := shown + b.must("series", "show", "nightly", "--json") + b.must("series", "ls", "--json"); strings.Contains(all, "secret") {
		t.Errorf("a variable is shown: %s", all)
	}
	wantText(t, b.unchanged("series", "set", "nightly", "overlap=replace", "-n").out, "would change series nightly: overlap queue -> replace")
	wantText(t, b.must("series", "set", "nightly", "task_priority=5", "cron=0 4 * * *", "task_timeout="), "cron 30 2 * * 1-5 -> 0 4 * * *", "task_timeout 3600 -> none", "task_priority none -> 5")
	wantText(t, b.must("series", "set", "nightly", "overlap=queue"), "is so already")
	wantText(t, b.must("series", "pause", "nightly", "poll"), "series nightly: paused", "series poll: paused")
	wantText(t, b.must("series", "ls"), "nightly  paused")
	wantText(t, b.unchanged("series", "run", "nightly", "-n").out, "would begin an occurrence")
	wantText(t, b.must("series", "run", "nightly"), "began occurrence 1, task 1")
	if got, err := b.store.Task(t.Context(), 1); err != nil || got.Fields["priority"] != "5" || got.Fields["variables"] != `{"TOKEN":"secret"}` ||
		got.Fields["input"] != "--all" || got.Fields["archive"] != task.ArchiveAtOnce {
		t.Errorf("%v, error %v", got.Fields, err)
	}
	wantText(t, b.must("series", "show", "nightly"), "by hand", "occurrence 1, task 1")
	wantText(t, b.must("ls", "--attr", "series=nightly"), "backup")
	wantText(t, b.must("series", "resume", "nightly"), "series nightly: resumed")
	wantText(t, b.unchanged("series", "rm", "poll", "-n").out, "would remove series poll")
	if out := b.must("series", "rm", "poll", "nightly"); out != "removed series poll\nremoved series nightly\n" {
		t.Errorf("removed %q", out)
	}
	if left := b.value(0, "series", "ls").([]any); len(left) != 1 {
		t.Errorf("left %v", left)
	}
}

// What an occurrence needs is taken along, once for all.
func TestSeriesTakesAlong(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"run": "#!/bin/sh\ncat\n", "in": "from a file"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	b.must("series", "add", "k", "--every", "1h", "--upload", dir, "--stdin", filepath.Join(dir, "in"), "--", "./run")
	b.must("series", "run", "k")
	if got := stdinOf(t, b, 1); got != "from a file" {
		t.Errorf("it reads %q", got)
	}
	got, err := b.store.Task(t.Context(), 1)
	if err != nil || !strings.HasPrefix(got.Fields["source"], "command:./run#sha256=") {
		t.Errorf("%+v, error %v", got, err)
	}
}

func TestSeriesRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must("series", "add", "nightly", "--every", "1h", "--", "backup")
	for args, say := range map[string]string{
		"add k --every 1h":                             "--program is missing",
		"add k backup --every 1h":                      "the command behind --",
		"add k -- backup":                              "cron",
		"add k --every 1h --cron @daily -- backup":     "leave out one",
		"add k --cron x -- backup":                     "30 4 * * 1-5",
		"add k --cron @daily --zone Nowhere -- backup": "Europe/Berlin",
		"add k --every soon -- backup":                 "1h30m",
		"add k --every 1h --overlap forbid -- backup":  "skip, queue, allow or replace",
		"add k --every 1h --queue none -- backup":      "none",
		"add k --every 1h --key x -- backup":           "--key",
		"add k --every 1h --program p --source file:p": "--upload",
		"add k --every 1h -- ./backup":                 "--upload",
		"set nightly evry=1h":                          `did you mean "every"?`,
		"set nightly task_prioriti=1":                  "priority",
		"set nightli every=1h":                         `did you mean "nightly"?`,
		"show nightli":                                 `did you mean "nightly"?`,
		"run nightly other":                            "series ls",
		"rm other":                                     "series ls",
		"set nightly eta=yes":                          "true or false",
		"set nightly start=soon":                       "2026-11-21T08:00:00Z",
	} {
		if r := b.unchanged(append([]string{"series"}, fields(args)...)...); r.code != 2 || !strings.Contains(r.err, say) {
			t.Errorf("series %s: %+v, want 2 and %q", args, r, say)
		}
	}
	if r := b.unchanged("series", "add", "nightly", "--every", "1h", "--", "backup"); r.code != 1 || !strings.Contains(r.err, "the series exists") {
		t.Errorf("a second one: %+v", r)
	}
}
