package verbs

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/ops/access"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/server"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// keepers is a bench with a server and three workers, with the login of workers, that run programs: a1 and a2 share a directory on node a, b has its own.
type keepers struct {
	*bench

	dirs map[string]string // by worker
}

func newKeepers(t *testing.T) *keepers {
	t.Helper()
	k := &keepers{newBench(t), map[string]string{}}
	k.must("stats") // loads the scripts, which workers may not
	u, where := k.user(access.Worker), storetest.Where(k.srv)
	where.Username, where.Password = u.Login(), "secret"
	srv, err := server.New(k.site(), server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	k.background(srv.Run)
	shared := t.TempDir()
	for name, dir := range map[string]string{"a1": shared, "a2": shared, "b": t.TempDir()} {
		k.dirs[name] = dir
		w, err := worker.New(storetest.At(t, where, k.ns, nil), worker.Options{Name: name, Settings: worker.Settings{
			Node: name[:1], ProgramDir: dir, Slots: 1, Labels: []string{"at=" + name}, Containment: "group",
			SpoolDir: t.TempDir(), TempDir: t.TempDir(), DiskReserve: -1, KillGrace: 100 * time.Millisecond,
		}})
		if err != nil {
			t.Fatal(err)
		}
		k.background(w.Run)
	}
	return k
}

// source is a program of its own text.
func (k *keepers) source(text string) string {
	k.t.Helper()
	file := filepath.Join(k.t.TempDir(), "run.sh")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		k.t.Fatal(err)
	}
	return "rsync:" + file
}

// ran runs a program at workers.
func (k *keepers) ran(program, source string, workers ...string) {
	k.t.Helper()
	for _, name := range workers {
		ctx, cancel := context.WithTimeout(k.t.Context(), limit)
		r := k.runWith(ctx, "", "submit", "--program", program, "--source", source, "-l", "at="+name, "--wait", "x")
		cancel()
		if r.code != 0 {
			k.t.Fatalf("%s at %s: %+v\n%s", program, name, r, k.run("show", "last").out)
		}
	}
}

// versions are the hashes that a worker has of a program.
func (k *keepers) versions(name, program string) (hashes []string) {
	k.t.Helper()
	entries, err := os.ReadDir(filepath.Join(k.dirs[name], program))
	if err != nil && !os.IsNotExist(err) {
		k.t.Fatal(err)
	}
	for _, e := range entries {
		if len(e.Name()) == 64 {
			hashes = append(hashes, e.Name())
		}
	}
	return hashes
}

// byHand puts a program into a directory as a person does.
func (k *keepers) byHand(name, program string) {
	k.t.Helper()
	dir := filepath.Join(k.dirs[name], program)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		k.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "run.sh"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		k.t.Fatal(err)
	}
}

// silence registers a worker that does not answer.
func (k *keepers) silence() { k.worker("mute") }

func TestProgramLsAndShow(t *testing.T) {
	t.Parallel()
	k := newKeepers(t)
	wantText(t, k.must("program", "ls"), "no worker that has answered keeps such a program")
	one, two := k.source("echo 1"), k.source("echo 2")
	k.ran("sum", one, "a1", "a2", "b")
	k.ran("sum", two, "b")
	k.byHand("b", "hand")
	hash := k.versions("a1", "sum")[0]
	out := k.must("program", "ls")
	wantText(t, out, "PROGRAM  VERSION", "hand     (by hand)", hash[:12], "a, b", " ago")
	var line string
	for l := range strings.Lines(out) {
		if strings.Contains(l, hash[:12]) {
			line = l
		}
	}
	if f := fields(line); len(strings.Split(strings.TrimSpace(out), "\n")) != 4 || f[4] != "3" {
		t.Errorf("want four lines, and 3 workers for %s, whose disks are two:\n%s", hash[:12], out)
	}
	all := k.value(0, "program", "ls", "sum@"+hash).([]any)
	sizes := map[string]any{}
	for _, s := range all {
		stock := s.(map[string]any)
		v := stock["versions"].([]any)[0].(map[string]any)
		sizes[stock["worker"].(string)] = v["bytes"]
		if len(stock["versions"].([]any)) != 1 || v["sha256"] != hash || v["source"] != one || v["files"] != 1.0 || !isMoment(v["used"]) || v["rounds"] != 0.0 {
			t.Errorf("JSON: %v", stock)
		}
	}
	if len(all) != 3 || sizes["a1"] != sizes["b"] {
		t.Errorf("JSON: %v", all)
	}
	out = k.must("program", "show", "sum")
	wantText(t, out, "sum "+hash, "a1, a2 on node a", k.dirs["b"], "source     "+one, "1 files", "0 rounds run it")
	if n := strings.Count(out, "directory"); n != 3 {
		t.Errorf("%d directories, want 3:\n%s", n, out)
	}
	if out := k.must("program", "ls", "--node", "a"); strings.Contains(out, "hand") || !strings.Contains(out, hash[:12]) {
		t.Errorf("node a:\n%s", out)
	}
	if out := k.must("program", "ls", "--worker", "b", "hand"); !strings.Contains(out, "hand") || strings.Contains(out, "sum") {
		t.Errorf("worker b:\n%s", out)
	}
}

func TestProgramRefuses(t *testing.T) {
	t.Parallel()
	k := newKeepers(t)
	k.ran("sum", k.source("echo 1"), "b")
	for args, say := range map[string]string{
		"rm ../sum": "version", "rm sum@../b": "version", "show sum@xyz": "version", "ls .tdf": "version", "rm": "at least 1 argument",
		"rm none": "no worker that was asked keeps none", "show sum@0000": "keeps sum@0000", "ls --worker bb": `did you mean "b"?`,
		"ls --node bb": "no such node", "gc --unused-for 0": "--unused-for", "gc --unused-for 3x": "12h or 30d", "ls --timeout 0": "--timeout", "ls --timeout inf": "--timeout",
	} {
		if r := k.run(append([]string{"program"}, fields(args)...)...); r.code != 2 || !strings.Contains(r.err, say) {
			t.Errorf("%s: %+v, want 2 and %q", args, r, say)
		}
	}
	if len(k.versions("b", "sum")) != 1 {
		t.Error("something was removed")
	}
}

// rm removes a version from all disks, also one that slots have run last; it names what a word may mean.
func TestProgramRm(t *testing.T) {
	t.Parallel()
	k := newKeepers(t)
	var sources []string
	for i := range 17 { // so that two hashes begin alike
		sources = append(sources, k.source("echo "+string(rune('a'+i))))
		k.ran("sum", sources[i], "b")
	}
	k.ran("sum", sources[0], "a1", "a2")
	k.ran("other", sources[0], "a1")
	k.ran("sum", sources[0], "a1")
	k.byHand("b", "sum")
	first := k.versions("a1", "sum")[0]
	alike := map[byte][]string{}
	for _, hash := range k.versions("b", "sum") {
		alike[hash[0]] = append(alike[hash[0]], hash)
	}
	for digit, hashes := range alike {
		if len(hashes) > 1 {
			r := k.run("program", "rm", "sum@"+string(digit))
			if r.code != 2 || !strings.Contains(r.err, "ambiguous") || !strings.Contains(r.err, "sum@"+hashes[0]) {
				t.Errorf("ambiguous: %+v", r)
			}
		}
	}
	wantText(t, k.must("program", "rm", "sum@"+first[:20], "--dry-run"), "would remove sum@"+first[:12]+" of a1, a2", "of b: ", "would remove 2 versions")
	if len(k.versions("b", "sum")) != 17 || len(k.versions("a2", "sum")) != 1 {
		t.Error("a dry run has removed something")
	}
	wantText(t, k.must("program", "rm", "sum@"+first[:20]), "removed sum@"+first[:12]+" of a", "removed 2 versions")
	if len(k.versions("b", "sum")) != 16 || len(k.versions("a2", "sum")) != 0 || len(k.versions("a1", "other")) != 1 {
		t.Error("something else was removed, or the version was not")
	}
	k.ran("sum", sources[0], "a1", "a2", "b") // it is fetched again
	r := k.run("program", "rm", "sum", "--worker", "b")
	if r.code != 1 || !strings.Contains(r.out, "by hand; remove "+filepath.Join(k.dirs["b"], "sum")) || !strings.Contains(r.out, "removed 17 versions") {
		t.Errorf("all of a program, with one by hand: %+v", r)
	}
	if len(k.versions("b", "sum")) != 0 || len(k.versions("a2", "sum")) != 1 {
		t.Error("other workers' versions were removed, or that worker's were not")
	}
	if _, err := os.Stat(filepath.Join(k.dirs["b"], "sum", "run.sh")); err != nil {
		t.Error(err)
	}
}

// What a round runs stays, wherever it runs, until it ends.
func TestProgramRmInUse(t *testing.T) {
	t.Parallel()
	k := newKeepers(t)
	dir := t.TempDir()
	started, release := filepath.Join(dir, "started"), filepath.Join(dir, "release")
	source := k.source("touch " + started + "; until [ -e " + release + " ]; do sleep 0.05; done")
	run := k.start(t.Context(), "submit", "--program", "sum", "--source", source, "-l", "at=a1", "--wait", "x")
	wait.Eventually(t, limit, func() bool { _, err := os.Stat(started); return err == nil }, "the program does not start")
	wantText(t, k.must("program", "show", "sum"), "1 rounds run it, 1 slots hold it")
	if r := k.run("program", "rm", "sum", "-n"); r.code != 1 || !strings.Contains(r.out, "1 rounds run it") {
		t.Errorf("dry run: %+v", r)
	}
	for _, all := range [][]string{{}, {"--worker", "a2"}} {
		wait.Eventually(t, limit, func() bool { // else both workers look at once, and one is in the way of the other
			r := k.run(append([]string{"program", "rm", "sum"}, all...)...)
			if r.code != 1 || len(k.versions("a1", "sum")) != 1 {
				t.Fatalf("%v: %+v", all, r)
			}
			return strings.Contains(r.out, "a slot runs it")
		}, "%v: nothing says that a slot runs it", all)
	}
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run.ends(t, 0)
	wantText(t, k.must("program", "rm", "sum"), "removed 1 versions")
}

// gc removes what was not used for a while, but for what a slot has run last and what was put there by hand.
func TestProgramGc(t *testing.T) {
	t.Parallel()
	k := newKeepers(t)
	old, held := k.source("echo old"), k.source("echo held")
	k.ran("sum", old, "b")
	first := k.versions("b", "sum")[0]
	k.ran("other", old, "b")
	k.ran("sum", held, "b")
	k.byHand("b", "hand")
	then := time.Now().Add(-40 * 24 * time.Hour)
	for _, program := range []string{"sum", "hand"} {
		files, err := filepath.Glob(filepath.Join(k.dirs["b"], program, "*", ".tdf-manifest.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range append(files, filepath.Join(k.dirs["b"], "hand", "run.sh")) {
			if err := os.Chtimes(file, then, then); err != nil {
				t.Fatal(err)
			}
		}
	}
	wantText(t, k.must("program", "gc", "--unused-for", "41d"), "removed 0 versions")
	wantText(t, k.must("program", "gc", "--dry-run"), "would remove sum@"+first[:12]+" of b", "would remove 1 versions")
	wantText(t, k.must("program", "gc"), "removed sum@"+first[:12]+" of b", "removed 1 versions")
	if left := append(k.versions("b", "sum"), k.versions("b", "other")...); len(left) != 2 || left[0] == first {
		t.Errorf("left are %v", left)
	}
}

// Who does not answer is named, with the exit code of a wait; the others' answers count.
func TestProgramSilence(t *testing.T) {
	t.Parallel()
	k := newKeepers(t)
	k.ran("sum", k.source("echo 1"), "b")
	k.silence()
	longEnough(t, func(timeout string) bool {
		r := k.run("program", "ls", "--timeout", timeout)
		if r.code != 4 || !strings.Contains(r.err, "no answer in time from ") || !strings.Contains(r.err, "mute;") {
			t.Errorf("%+v", r)
		}
		return strings.Contains(r.err, "from mute;") && strings.Contains(r.out, "sum")
	})
	list := k.value(4, "program", "ls", "--timeout", "0.5").([]any)
	if last := list[len(list)-1].(map[string]any); len(list) != 4 || last["worker"] != "mute" || last["silent"] != true || last["node"] != "node-1" {
		t.Errorf("JSON: %v", list)
	}
	if r := k.run("program", "rm", "none", "--timeout", "0.5"); r.code != 4 {
		t.Errorf("what may be there: %+v", r)
	}
	k.must("program", "ls", "--worker", "a1,a2,b")
}

// A worker of Go functions alone is not asked.
func TestProgramsOfHandlers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w, err := worker.New(b.site(), worker.Options{
		Name: "w", Handlers: map[string]worker.Handler{"h": func(context.Context, *worker.Job) error { return nil }},
		Settings: worker.Settings{SpoolDir: t.TempDir(), DiskReserve: -1},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.background(w.Run)
	wait.Eventually(t, limit, func() bool {
		all, _, err := b.store.Workers(t.Context())
		return err == nil && len(all) == 1 && all[0].State == task.WorkerReady
	}, "the worker does not register")
	if list := b.value(0, "program", "ls").([]any); len(list) != 0 {
		t.Errorf("JSON: %v", list)
	}
}

// The login of a manager is enough, and that of a viewer is not.
func TestProgramRoles(t *testing.T) {
	t.Parallel()
	k := newKeepers(t)
	k.ran("sum", k.source("echo 1"), "b")
	k.as(access.Manager)
	wantText(t, k.must("program", "ls"), "sum")
	k.as(access.Viewer)
	for _, args := range []string{"ls", "rm sum", "gc"} {
		if r := k.run(append([]string{"program"}, fields(args)...)...); r.code != 3 || !strings.Contains(r.err, "acl manager") {
			t.Errorf("%s as a viewer: %+v", args, r)
		}
	}
	k.as(access.Manager)
	wantText(t, k.must("program", "rm", "sum"), "removed 1 versions")
}

// A version that only one worker has any more runs there, with no more rights than workers have; one that none has waits, and why says for
// what.
func TestVersionsThatAreGone(t *testing.T) {
	t.Parallel()
	k := newKeepers(t)
	source := k.source("echo first")
	text, err := os.ReadFile(strings.TrimPrefix(source, "rsync:"))
	if err != nil {
		t.Fatal(err)
	}
	hash := fmt.Sprintf("%x", sha256.Sum256(text))
	pinned := source + task.Pin(hash)
	k.ran("sum", pinned, "b")
	if err := os.Remove(strings.TrimPrefix(source, "rsync:")); err != nil {
		t.Fatal(err)
	}
	k.must("submit", "--program", "sum", "--source", pinned, "--array", "1-20", "--wait")
	for line := range strings.SplitSeq(strings.TrimSpace(k.must("results", "last", "--jsonl")), "\n") {
		if !strings.Contains(line, `"worker":"b"`) || !strings.Contains(line, `first\n`) {
			t.Errorf("it ran elsewhere: %s", line)
		}
	}
	k.must("program", "rm", "sum")
	k.must("submit", "--program", "sum", "--source", pinned, "x")
	wait.Eventually(t, limit, func() bool {
		return strings.Contains(k.must("why", "22"), "no worker had version "+hash+" of program sum")
	},
		"why does not name the version: %s", k.run("why", "22").out)
	k.must("cancel", "22")
}
