package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// command is a task with one, as its opener defines it.
func command(t *testing.T, name string, words ...string) func(*task.Definition) {
	t.Helper()
	made, err := task.Define(&task.Spec{Source: task.CommandPrefix + name, Argv: words})
	if err != nil {
		t.Fatal(err)
	}
	return func(d *task.Definition) { *d = made }
}

// A command runs as a program does, in an empty directory of its own, and needs nothing but Redis.
func TestCommand(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	bin := t.TempDir()
	hosttest.WriteProgram(t, filepath.Join(bin, "chatty"), "#!/bin/sh\necho note >&2\nexit $1\n", 0o755)
	echo, err := exec.LookPath("echo")
	if err != nil {
		t.Fatal(err)
	}
	r := s.start(t, setting(t, "workdir=shared"), func(o *options) {
		o.environ = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		o.Handlers = map[string]Handler{"echo": func(context.Context, *Job) error { return errors.New("this is the handler") }}
	})
	const look = `pwd; ls -A | grep -v "^\.tdf-"; echo "$TDF_WORKDIR $TDF_PROGRAM $# $1" | tee file`
	for _, c := range []struct {
		open func(*task.Definition)
		want map[string]string
	}{
		{command(t, echo, "a  b", "", "$HOME", "ü"), map[string]string{"0:output": "a  b  $HOME ü\n"}},
		{command(t, "echo", "x"), map[string]string{"0:output": "x\n", "0:program_sha256": "-"}}, // and not the handler
		{command(t, "chatty", "0"), map[string]string{"0:stderr": "note\n", "0:error": "", "0:exit_code": "0"}},
		{command(t, "chatty", "3"), map[string]string{"0:error": "*", "0:exit_code": "3", "0:class": "program"}},
		{command(t, "no-such-command"), map[string]string{"0:error": "*", "0:class": "host"}},
		{command(t, "/no/such/command"), map[string]string{"0:error": "*", "0:class": "host"}},
	} {
		got := s.await(t, s.open(t, c.open), sm.Executed)
		checkFields(t, got, c.want)
		if c.want["0:class"] == "host" {
			if text := got.Fields["0:error"]; !strings.HasPrefix(text, "command '") || !strings.Contains(text, "does not exist at worker 'w'") {
				t.Errorf("the error is %q", text)
			}
		}
	}
	for range 2 { // the second finds nothing of the first
		got := s.await(t, s.open(t, command(t, "sh", "-c", look, "sh", "a b")), sm.Executed)
		lines := strings.Split(got.Fields["0:output"], "\n")
		if len(lines) != 3 || !strings.HasPrefix(lines[0], r.opts.TempDir) || lines[1] != lines[0]+" sh 1 a b" {
			t.Errorf("it ran in %q", lines)
		}
	}
}

// A worker with commands = off leaves commands to others, and hands back what a foreign client gives it.
func TestCommandsOff(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	left := s.open(t, command(t, "echo", "x"))
	r := s.start(t, setting(t, "commands=off"))
	s.await(t, s.open(t, s.script(t, "p", "true")), sm.Executed)
	checkFields(t, s.Task(t, left), map[string]string{"state": "open", "0:worker": "-"})
	foreign := s.open(t, command(t, "echo", "y"), func(d *task.Definition) { storetest.Set(d, "labels", "") })
	wait.Eventually(t, patience, func() bool { return s.Task(t, foreign).Fields["releases"] != "" }, "it was not handed back")
	r.log.await(t, "runs no commands")
	if got := s.worker(t).Labels; len(got) != 1 || got[0] != "commands=off" {
		t.Errorf("offers %q", got)
	}
	r.stop(t)
	s.start(t)
	s.await(t, left, sm.Executed)
	s.await(t, foreign, sm.Executed)
}

// What the worker says of its commands is not the user's to say; one that wants hashes runs none.
func TestCommandsLabel(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	pinned := s.options(t, s.Store)
	setting(t, "require_pinned=true")(&pinned)
	if got := pinned.offer().Labels; len(got) != 1 || got[0] != "commands=off" {
		t.Errorf("with require_pinned it offers %q", got)
	}
	o := s.options(t, s.Store)
	o.Labels = []string{task.CommandsLabel}
	if _, err := assemble(o); err == nil || !strings.Contains(err.Error(), "set commands") {
		t.Errorf("got %v", err)
	}
}

// Variables are those of the program: they win over the worker's, and what starts it or fetches it has none of them.
func TestVariables(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	bin, wrong := t.TempDir(), t.TempDir()
	hosttest.WriteProgram(t, filepath.Join(bin, "tool"), "#!/bin/sh\n/bin/echo $PATH $HOME $TDF_WORKER $LD_PRELOAD\n", 0o755)
	hosttest.WriteProgram(t, filepath.Join(wrong, "tool"), "#!/bin/sh\n/bin/echo wrong\n", 0o755)
	record := filepath.Join(t.TempDir(), "env")
	rsync := programFile(t, "rsync", "#!/bin/sh\nenv > "+record+"\nfor dst; do :; done\nprintf '#!/bin/sh\\n/usr/bin/env' > $dst/run.sh\nchmod +x $dst/run.sh\n")
	set := func(d *task.Definition) {
		storetest.Set(d, "variables", `{"PATH":"`+wrong+`","HOME":"/h","LD_PRELOAD":"","GODEBUG":"inittrace=1","CANARY":"7"}`)
	}
	s.start(t, func(o *options) {
		o.environ = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		fo := fetch.DefaultOptions()
		fo.Dir, fo.Worker, fo.RsyncPath = s.programs, "w", rsync
		fetcher, err := fetch.New(fo)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = fetcher.Close() })
		o.Programs = fetcher
	})
	found := s.await(t, s.open(t, command(t, "tool"), set), sm.Executed)
	checkFields(t, found, map[string]string{"0:output": wrong + " /h w\n", "0:stderr": "-", "0:error": ""})
	fetched := s.await(t, s.open(t, func(d *task.Definition) { storetest.Set(d, "program", "p", "source", "rsync:host:run.sh") }, set), sm.Executed)
	if env, err := os.ReadFile(record); err != nil || strings.Contains(string(env), "CANARY") || strings.Contains(string(env), wrong) {
		t.Errorf("the fetch had %s, %v", env, err)
	}
	checkContains(t, "output", fetched.Fields["0:output"], "CANARY=7\n", "GODEBUG=inittrace=1\n", "PATH="+wrong+"\n")
}

// A foreign client does not set what the worker says, and a handler, which may print its job, has no variables.
func TestVariablesThatAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.open(t, command(t, "env"))
	handled := s.open(t, func(d *task.Definition) { storetest.Set(d, "program", "h", "variables", `{"A":"canary"}`) })
	s.Raw.HSet(t.Context(), s.Key("task:"+strconv.FormatInt(id, 10)), "variables", `{"TDF_WORKER":"canary"}`)
	damaged := s.open(t, command(t, "env"))
	s.Raw.HSet(t.Context(), s.Key("task:"+strconv.FormatInt(damaged, 10)), "params", `{"a":`)
	s.start(t, func(o *options) {
		o.Handlers = map[string]Handler{"h": func(_ context.Context, j *Job) error {
			_, err := fmt.Fprint(j.Stdout(), len(j.Task.Variables))
			return err
		}}
	})
	got := s.await(t, id, sm.Executed)
	checkContains(t, "error", got.Fields["0:error"], "variables", "TDF_WORKER")
	if strings.Contains(got.Fields["0:error"], "canary") {
		t.Errorf("the error shows a value: %s", got.Fields["0:error"])
	}
	checkContains(t, "error", s.await(t, damaged, sm.Executed).Fields["0:error"], "params", "is not a JSON object")
	checkFields(t, s.await(t, handled, sm.Executed), map[string]string{"0:output": "0"})
}
