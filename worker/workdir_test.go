package worker

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// leaving are ways to leave something in the private directory, and whether the slot keeps
// the directory without that.
var leaving = map[string]bool{
	"touch f": true, "touch .f": true, "mkdir -m 0 d": true, "ln -s x l": true, "mkfifo p": true, `echo progress=0.5 > "$TDF_CONTROL"`: true,
	"touch ../$TDF_TASK_ID; ln ../$TDF_TASK_ID h; rm ../$TDF_TASK_ID": true,
	"chmod 755 .": false, "echo : >> run.sh": false, "rm run.sh; mkdir run.sh": false, `rm -r "$TDF_WORKDIR"`: false,
	`mv "$TDF_WORKDIR" "$TDF_WORKDIR.x"; mkdir -m 700 "$TDF_WORKDIR"; touch "$TDF_WORKDIR/f"`: false,
}

// A round finds in its directory the program and nothing else, whatever the rounds before
// have left in theirs: at once, and when the slot has kept one for a while. The worker
// leaves nothing at its end but what a program has moved out of its directory.
func TestPrivateDirectoryIsClean(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.script(t, "p", `stat -c %a .; pwd; ls -A; md5sum < run.sh; eval "$1"`)
	r := s.start(t)
	sum := ""
	round := func(leave string) (dir string) {
		t.Helper()
		words := func(d *task.Definition) { storetest.Set(d, "argv", `["`+strings.ReplaceAll(leave, `"`, `\"`)+`"]`) }
		task := s.await(t, s.open(t, p, words), sm.Executed)
		out := strings.Fields(task.Fields["0:output"])
		if len(out) != 5 || out[0] != "700" || out[2] != "run.sh" || sum != "" && out[3] != sum || task.Fields["0:error"] != "" {
			t.Fatalf("before %q: output %q, error %q", leave, task.Fields["0:output"], task.Fields["0:error"])
		}
		if told := task.Fields["0:progress"]; (told != "") != strings.Contains(leave, "progress") {
			t.Errorf("%q: progress %q", leave, told)
		}
		sum = out[3]
		return out[1]
	}
	last := round(":")
	for leave, keeps := range leaving {
		for range 6 { // after some of them a look at the times is enough
			if dir := round(":"); dir != last {
				t.Errorf("before %q: a directory that was left alone was not kept", leave)
				last = dir
			}
		}
		round(leave)
		if dir := round(leave); keeps != (dir == last) { // in the next, the first look is not enough
			t.Errorf("%q: the directory is %s after %s", leave, dir, last)
		}
		last = round(":")
	}
	r.stop(t)
	left, err := os.ReadDir(r.opts.TempDir)
	if err == nil && len(left) == 1 {
		left, err = os.ReadDir(r.opts.TempDir + "/" + left[0].Name())
	}
	if err != nil || len(left) != 2 || !strings.HasSuffix(left[0].Name()+left[1].Name(), ".x") {
		t.Errorf("left are %v, %v", left, err)
	}
}

// The task says where its program runs, and else the worker does. A shared directory lies
// outside of the versions, and keeps what rounds write there.
func TestWorkdir(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const where = `pwd; cat seen 2>/dev/null; echo "$1" >> seen`
	hand := filepath.Join(s.programs, "hand")
	if err := os.MkdirAll(hand, 0o755); err != nil {
		t.Fatal(err)
	}
	hosttest.WriteProgram(t, filepath.Join(hand, "run.sh"), "#!/bin/sh\n"+where, 0o755)
	p := s.script(t, "p", where)
	run := func(open ...func(*task.Definition)) string {
		t.Helper()
		task := s.await(t, s.open(t, open...), sm.Executed)
		checkFields(t, task, map[string]string{"0:error": ""})
		return task.Fields["0:output"]
	}
	in := func(where string) func(*task.Definition) {
		return func(d *task.Definition) { storetest.Set(d, "workdir", where) }
	}
	byHand := func(d *task.Definition) { storetest.Set(d, "program", "hand", "source", "") }
	r := s.start(t)
	for range 2 {
		for _, open := range []func(*task.Definition){p, byHand} {
			if out := run(open, in("worker")); strings.Count(out, "\n") != 1 || !strings.HasPrefix(out, r.opts.TempDir) {
				t.Errorf("by default it ran in %q", out)
			}
		}
	}
	first := run(p, input("1"), in("shared"))
	dir := strings.TrimSpace(first)
	if again := run(p, input("2"), in("shared")); again != first+"1\n" || !strings.HasPrefix(dir, filepath.Join(s.programs, ".tdf")) {
		t.Errorf("shared are %q and %q", first, again)
	}
	if out := run(byHand, input("1"), in("shared")); out != hand+"\n" {
		t.Errorf("put there by hand it runs in %q", out)
	}
	r.stop(t)
	r = s.start(t, setting(t, "workdir=shared"))
	if out := run(p, input("3")); out != first+"1\n2\n" {
		t.Errorf("after a restart the directory holds %q", out)
	}
	if out := run(p, in("private")); strings.Count(out, "\n") != 1 || !strings.HasPrefix(out, r.opts.TempDir) {
		t.Errorf("private is %q", out)
	}
	if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) != 1 {
		t.Errorf("beside the shared directory are %v, %v", left, err)
	}
}

// Versions of one program, and several programs, are never mixed in a slot.
func TestDirectoriesOfPrograms(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start(t, setting(t, "slots=1"))
	for range 3 {
		for _, name := range []string{"a", "b"} {
			task := s.await(t, s.open(t, s.script(t, name, `ls; cat run.sh | tail -n 1 # `+name)), sm.Executed)
			if out := task.Fields["0:output"]; out != "run.sh\n"+`ls; cat run.sh | tail -n 1 # `+name {
				t.Errorf("%s: %q", name, out)
			}
		}
	}
}

// A host that cannot mount what a round needs hands its task back, and says why.
func TestNoViewIsNoFailure(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount")
	}
	s := newSite(t)
	dir := t.TempDir()
	hosttest.WriteProgram(t, filepath.Join(dir, "run.sh"), "#!/bin/sh\necho ran\n", 0o755)
	for i := range 20 { // so that it is not small
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := shim.New(shim.Options{Want: shim.PIDNamespace, Name: s.Namespace})
	if err != nil {
		t.Fatal(err)
	}
	if !c.Views() {
		t.Skip("nothing can be mounted here")
	}
	r := s.start(t, func(o *options) {
		o.container = c
		o.Programs = fakePrograms(func(context.Context, func(string)) (fetch.Version, error) {
			return fetch.Version{Dir: dir, SHA256: strings.Repeat("0", 64)}, nil
		})
	})
	checkFields(t, s.await(t, s.open(t), sm.Executed), map[string]string{"0:output": "ran\n", "0:error": ""})
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	id := s.open(t)
	r.log.await(t, "this host cannot run programs now; the worker rests")
	r.log.await(t, "the view of the round cannot be had")
	wait.Eventually(t, patience, func() bool { return s.Task(t, id).Fields["releases"] != "" }, "the task is not handed back")
	if got := s.Task(t, id); got.Fields["fails"] != "0" {
		t.Errorf("it failed: %v", got.Fields)
	}
}
