package verbs

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/server"
	"github.com/tdf-go/tdf/statemachine"
)

// retire lets a server remove all archived tasks, into a directory unless that is empty.
func (b *bench) retire(dir string) {
	b.t.Helper()
	var all []upkeep.Retention
	for _, outcome := range statemachine.Outcomes() {
		all = append(all, upkeep.Retention{Outcome: outcome})
	}
	srv, err := server.New(b.site(), server.Options{Version: "test", Settings: server.Settings{
		RoundDuration: 20 * time.Millisecond, ArchiveRetention: all, ArchiveDir: dir,
	}})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	wait.Eventually(b.t, limit, func() bool {
		n, err := b.store.Count(b.t.Context())
		return err == nil && n[statemachine.Archived] == 0
	}, "archived tasks do not leave Redis")
	cancel()
	if err := wait.Receive(b.t, limit, done, "the server does not stop"); err != nil {
		b.t.Error(err)
	}
	b.srv.Do(b.t, "HDEL", b.ns+":meta", "purging") // the next one need not wait for the end of its turn
}

// cellar is a namespace with archived tasks of several kinds: 1 to 5 have succeeded, of which 3 is in another queue, 6 and 7 have
// failed, 6 in its second round, 8 was called off.
func cellar(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.must("queue", "add", "q")
	const task = "submit --program p --archive manager --source rsync:run.sh --end-before inf "
	submit := func(words string) { b.must(fields(task + words)...) }
	submit("-- one")
	submit("--priority 0 -- two words")
	submit("--key k3")
	submit("--program r -- x")
	submit("-- five")
	worktest.Drain(t, b.store, worktest.Echo)
	submit("--max-fails 1")
	submit("--max-fails 0")
	worktest.Drain(t, b.store, worktest.Fail)
	submit("--queue q")
	b.must("cancel", "8")
	b.srv.Do(t, "HSET", b.ns+":task:1", "0:output", "bytes \xff\xfe\x00\n", "0:worker", "w1", "0:node", "n1")
	b.archiveAll()
	return b
}

// archiveAll archives all that has ended.
func (b *bench) archiveAll() {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	run := b.start(ctx, "run")
	wait.Eventually(b.t, limit, func() bool {
		n, err := b.store.Count(b.t.Context())
		return err == nil && n[statemachine.Succeeded]+n[statemachine.Failed]+n[statemachine.Cancelled] == 0
	}, "tasks are not archived")
	cancel()
	wait.Receive(b.t, limit, run.done, "run does not end")
}

// object is a JSON value with which others can be compared.
func object(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// byID makes a list of tasks one that can be compared whatever its order is.
func byID(v any) map[string]any {
	all := map[string]any{}
	list, _ := v.([]any)
	for _, one := range list {
		task, _ := one.(map[string]any)
		all[fmt.Sprint(task["id"])] = one
	}
	return all
}

// What ls, show and logs say of a task is the same from Redis and, when it has left that, from the archive.
func TestArchiveSaysTheSame(t *testing.T) {
	t.Parallel()
	b := cellar(t)
	dir := filepath.Join(t.TempDir(), "archive")
	verbs := []string{
		"show 1", "show 1 --json", "show 6", "show 6 --json", "show 8", "logs 1", "logs 1 --json", "logs 6 --stderr", "logs 6 --round 0 --stderr",
		"ls 1-8", "ls 1-8 -o wide", "ls 2,4", "ls 1-8 --program r",
	}
	lists := []string{"ls --json", "ls 1-8 --json", "ls 1-8 --queue q --json", "ls 1-8 --match broke --json"}
	before := map[string]result{}
	for _, verb := range append(verbs, lists...) {
		before[verb] = b.run(fields(verb)...)
	}
	b.retire(dir)
	cold := func(verb string) result {
		return execute(t.Context(), "", append(fields(verb), "--archive", dir)...) // without a configuration
	}
	for _, verb := range verbs {
		if got, want := cold(verb), before[verb]; got != want || want.code != 0 {
			t.Errorf("%s: %+v\nfrom Redis it was %+v", verb, got, want)
		}
	}
	for _, verb := range lists {
		got, want := byID(object(t, cold(verb).out)), byID(object(t, before[verb].out))
		if !reflect.DeepEqual(got, want) || len(want) == 0 {
			t.Errorf("%s: %v\nfrom Redis it was %v", verb, got, want)
		}
	}
	gone := b.run("show", "1")
	wantText(t, gone.err, "has left Redis", "--archive")
	if gone.code != 2 {
		t.Errorf("ended with %d", gone.code)
	}
	for _, verb := range []string{"cancel 1", "hold 1", "release 1", "retry 1", "cancel 1 --dry-run"} {
		gone := b.run(fields(verb)...)
		wantText(t, gone.out+gone.err, "task 1 was archived, and has left Redis")
		if gone.code == 0 {
			t.Errorf("%s ended with 0", verb)
		}
	}
}

// ls of an archive takes the conditions that ls has, and tells what it leaves out.
func TestArchiveList(t *testing.T) {
	t.Parallel()
	b := cellar(t)
	dir := filepath.Join(t.TempDir(), "archive")
	b.retire(dir)
	for args, want := range map[string]string{
		"":                             "1 2 3 4 5 6 7 8",
		"--limit 0":                    "1 2 3 4 5 6 7 8",
		"--state failed":               "6 7",
		"--state failed,cancelled":     "6 7 8",
		"--state archived":             "1 2 3 4 5 6 7 8",
		"--state archived,failed":      "1 2 3 4 5 6 7 8",
		"--queue q":                    "8",
		"--program r":                  "4",
		"--match broke":                "6 7",
		"--match broke --limit 0 all":  "6 7",
		"--state succeeded 3-7":        "3 4 5",
		"--queue none":                 "",
		"--queue none --limit 0":       "",
		"--state failed --program p 6": "6",
	} {
		r := b.run(append(fields("ls --json --archive "+dir), fields(args)...)...)
		all := byID(object(t, r.out))
		var ids []string
		for i := 1; i <= 8; i++ {
			if all[fmt.Sprint(i)] != nil {
				ids = append(ids, fmt.Sprint(i))
			}
		}
		if got := strings.Join(ids, " "); got != want || r.code != 0 {
			t.Errorf("ls %s: %q, want %q; ended with %d: %s", args, got, want, r.code, r.err)
		}
	}
	limited := b.run("ls", "--archive", dir, "--limit", "2")
	wantText(t, limited.err, "more tasks than these", "--limit 0")
	if n := strings.Count(limited.out, "\n"); n != 3 {
		t.Errorf("%d lines, want 3:\n%s", n, limited.out)
	}
	missing := b.run("ls", "7-9,11", "--archive", dir)
	wantText(t, missing.err, "not in the archive: 9,11")
	if missing.code != 1 {
		t.Errorf("ended with %d, want 1", missing.code)
	}
	wantText(t, b.run("ls", "--queue", "none", "--archive", dir).err, "no task of the archive fits")
}

// What cannot be together, or is not there, is refused by name.
func TestArchiveRefuses(t *testing.T) {
	t.Parallel()
	b := cellar(t)
	dir := filepath.Join(t.TempDir(), "archive")
	b.retire(dir)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"ls last":          "last",
		"show last":        "last",
		"ls --state open":  "--state open",
		"ls --state opn":   "not a state",
		"ls --limit -1":    "--limit -1",
		"ls -o short":      "--output",
		"ls --queue=":      "--queue is empty",
		"logs 1 --follow":  "follow",
		"logs 1 --round 7": "no round 7",
		"show 9":           "no such task in " + dir,
		"show x":           "id of one task",
	} {
		r := b.run(append(fields(args), "--archive", dir)...)
		if r.code != 2 || !strings.Contains(r.err, want) {
			t.Errorf("%s: ended with %d, want 2: %s", args, r.code, r.err)
		}
	}
	for _, where := range []string{filepath.Join(dir, "none"), file} {
		for _, verb := range []string{"ls", "show 1"} {
			if r := b.run(append(fields(verb), "--archive", where)...); r.code == 0 || !strings.Contains(r.err, where) {
				t.Errorf("%s of %s: ended with %d: %s", verb, where, r.code, r.err)
			}
		}
	}
	if r := execute(t.Context(), "", "ls", "--archive", t.TempDir()); r.code != 2 || !strings.Contains(r.err, "no segment") {
		t.Errorf("an empty directory: %d, %s", r.code, r.err)
	}
}

// A damaged segment is named, the others are read, and the end is not a good one.
func TestArchiveDamaged(t *testing.T) {
	t.Parallel()
	b := cellar(t)
	dir := filepath.Join(t.TempDir(), "archive")
	b.retire(dir)
	b.must("submit", "--program", "p", "--source", "rsync:run.sh", "--end-before", "inf")
	worktest.Drain(t, b.store, worktest.Echo)
	b.archiveAll()
	b.retire(dir)
	segments, err := filepath.Glob(filepath.Join(dir, "*.zst"))
	if err != nil || len(segments) != 2 {
		t.Fatal(segments, err)
	}
	for _, path := range segments {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, info.Size()/2); err != nil {
			t.Fatal(err)
		}
		for verb, lists := range map[string]bool{"ls": true, "ls --limit 0": true, "ls --json": true} {
			r := b.run(append(fields(verb), "--archive", dir)...)
			if r.code != 1 || strings.Count(r.err, path) != 1 || !strings.Contains(r.err, "backup") || lists && r.out == "" {
				t.Errorf("%s: ended with %d: %s%s", verb, r.code, r.out, r.err)
			}
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.must("ls", "--archive", dir)
}

// After a flush the ids begin again: show takes the task that was opened last, and says that there is another.
func TestArchiveAfterFlush(t *testing.T) {
	t.Parallel()
	b := cellar(t)
	dir := filepath.Join(t.TempDir(), "archive")
	b.retire(dir)
	b.must("flush", "--yes")
	b.must("submit", "--program", "p", "--source", "rsync:run.sh", "--end-before", "inf", "--", "second life")
	worktest.Drain(t, b.store, worktest.Echo)
	b.archiveAll()
	b.retire(dir)
	r := b.run("show", "1", "--archive", dir)
	wantText(t, r.out, "second life")
	wantText(t, r.err, "2 tasks had the id 1")
	if n := strings.Count(b.must("ls", "1", "--archive", dir), "succeeded"); n != 2 {
		t.Errorf("%d tasks with the id 1, want 2", n)
	}
}

// Where the directories have several namespaces, the configuration says which is meant.
func TestArchiveOfTwoNamespaces(t *testing.T) {
	t.Parallel()
	a, b := cellar(t), cellar(t)
	dir := filepath.Join(t.TempDir(), "archive")
	a.retire(dir)
	b.retire(dir)
	if r := execute(t.Context(), "", "ls", "--archive", dir); r.code != 2 || !strings.Contains(r.err, a.ns) || !strings.Contains(r.err, b.ns) {
		t.Errorf("%d, %s", r.code, r.err)
	}
	if n := len(byID(object(t, a.must("ls", "--json", "--archive", dir)))); n != 8 {
		t.Errorf("%d tasks", n)
	}
}

// Nobody who looks at a task sees the values of its variables, wherever it is; only what repeats it has them.
func TestVariablesAreMasked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	b.must("submit", "--program", "p", "-e", "PASSWORD=canary", "--end-before", "inf", "--archive", "manager")
	views := []string{"show 1", "show 1 --json", "ls --json", "why 1", "logs 1", "results 1", "results 1 --jsonl", "export 1", "audit", "doctor"}
	look := func(more string) (all string) {
		for _, view := range views {
			r := b.run(fields(view + more)...)
			if all += r.out; strings.Contains(r.out+r.err, "canary") {
				t.Errorf("%s%s: %+v", view, more, r)
			}
		}
		return all
	}
	wantText(t, look(""), "PASSWORD=***", `"PASSWORD": "***"`)
	worktest.Drain(t, b.store, worktest.Fail)
	b.archiveAll()
	wantText(t, look(""), "PASSWORD=***", `"variables":"{\"PASSWORD\":\"***\"}"`)
	b.must("retry", "1")
	wantFields(t, b, 2, map[string]string{"variables": `{"PASSWORD":"canary"}`})
	b.must("replay", "1", "--no-wait")
	wantFields(t, b, 3, map[string]string{"variables": `{"PASSWORD":"canary"}`})
	b.must("cancel", "2-3")
	b.archiveAll()
	b.retire(dir)
	views = []string{"show 1", "show 1 --json", "ls --json", "logs 1", "results 1 --jsonl"}
	wantText(t, look(" --archive "+dir), "PASSWORD=***", `"PASSWORD": "***"`)
}
