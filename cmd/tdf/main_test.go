package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tdf-go/tdf/cmd/internal/servercmd"
	"github.com/tdf-go/tdf/cmd/internal/verbs"
	"github.com/tdf-go/tdf/cmd/internal/workercmd"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/testkit/daemontest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// asCommand makes the test binary be the command.
const asCommand = "RUN_AS_TDF"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	redistest.Main(m)
}

const patience = 20 * time.Second

// site is a directory with a configuration for all.
type site struct {
	t   *testing.T
	dir string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir()}
	s.write("all.cfg", fmt.Sprintf("[redis]\nhost=%s\n[tdf]\nnamespace=%s\n[server]\nround_duration=0.05\n"+
		"[manager]\nround_duration=0.05\n[worker]\nslots=2\nkill_grace=1\n", redistest.Shared(t).Socket(), redistest.Namespace(t)), 0o600)
	return s
}

func (s *site) write(name, text string, mode os.FileMode) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), mode); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir, cmd.Env = s.dir, []string{asCommand + "=1", "TDF_CONFIG=all.cfg"}
	return cmd
}

func (s *site) start(args ...string) *daemontest.Daemon {
	s.t.Helper()
	d := daemontest.Start(s.t, patience, s.command(args...))
	s.t.Cleanup(func() {
		_ = d.Process.Kill() // those that have ended do not mind
		<-d.Done
	})
	return d
}

// says runs a command, and looks for texts in what it prints.
func (s *site) says(code int, args string, want ...string) string {
	s.t.Helper()
	out, problems, got := daemontest.Run(s.t, s.command(strings.Fields(args)...))
	if got != code {
		s.t.Errorf("tdf %s ended with %d, want %d: %s%s", args, got, code, out, problems)
	}
	for _, text := range want {
		if !strings.Contains(out+problems, text) {
			s.t.Errorf("tdf %s does not say %q: %s%s", args, text, out, problems)
		}
	}
	return out + problems
}

// One program is server, worker and manager; the worker's helpers are it too.
func TestOneProgramDoesATask(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.write("run.sh", "#!/bin/sh\nexpr $1 + $2\n", 0o755)
	server, worker := s.start("server", "server-A", "all.cfg"), s.start("worker", "worker-A", "all.cfg")
	s.says(0, "submit --program sum --source rsync:"+filepath.Join(s.dir, "run.sh")+" -- 2 3", "opened task 1")
	s.says(0, "wait 1 --timeout 20", "1 of 1 tasks have ended")
	s.says(0, "logs 1", "5\n")
	s.says(0, "worker ls", "worker-A")
	manager := s.start("manager")
	manager.Says(t, `"message":"processed"`)
	wait.Eventually(t, patience, func() bool { return strings.Contains(s.says(0, "show 1"), "archived") }, "nothing is archived")
	daemontest.Stop(t, []*daemontest.Daemon{server, worker, manager})
	for _, d := range []*daemontest.Daemon{server, worker} {
		d.Says(t, `"message":"stopped"`)
	}
}

// A worker called by tdf takes signals as tdf-worker does: the second kills what runs.
func TestSignalsOfTheWorker(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.write("run.sh", "#!/bin/sh\nsleep 300\n", 0o755)
	worker := s.start("worker", "worker-A", "all.cfg", "--log-level", "debug")
	s.says(0, "submit --program nap --source rsync:"+filepath.Join(s.dir, "run.sh"), "opened task 1")
	worker.Says(t, `"task":1`)
	worker.Signal(t, syscall.SIGTERM)
	worker.Says(t, "drain")
	worker.Signal(t, syscall.SIGTERM)
	worker.Finish(t)
	s.says(0, "show 1", "open")
}

// All that is said calls the program tdf.
func TestNames(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, test := range []struct {
		code int
		args string
		want []string
	}{
		{0, "--version", []string{"tdf "}},
		{0, "version", []string{"tdf "}},
		{0, "server --version", []string{"tdf server "}},
		{0, "completion bash", []string{"__start_tdf"}},
		{0, "ls --help", []string{"tdf ls [TASKS]", "  tdf ls --state failed"}},
		{0, "manager --help", []string{"tdf manager [flags]"}},
		{0, "server --help", []string{"tdf server settles tasks", "  tdf server server.cfg"}},
		{0, "worker --help", []string{"tdf worker claims", "  tdf worker ls\n"}},
		{0, "server all.cfg --check", []string{"configuration ok"}},
		{0, "worker w all.cfg --print-config", []string{"slots=2"}},
		{0, "worker ls --set worker.slots=3 --print-config", []string{"namespace="}},
		{0, "ls", []string{"open one with tdf submit"}},
		{2, "", []string{"tdf: a verb is missing", "see tdf --help"}},
		{2, "run", []string{`tdf: unknown command "run" for "tdf"` + "\n"}},
		{2, "sever all.cfg", []string{"did you mean server?"}},
		{2, "server", []string{"tdf: expecting 1 or 2 arguments (0 given)", "Usage: tdf server [NAME] server.cfg"}},
		{2, "server --config all.cfg", []string{"the configuration file of a daemon is its last argument"}},
		{2, "worker", []string{"expecting NAME worker.cfg, or one of drain, ls, show, stop, undrain"}},
		{2, "worker drai w1", []string{"did you mean drain?"}},
		{2, "worker show w1", []string{"see tdf worker ls --all"}},
		{2, "worker w1 none.cfg", []string{"none.cfg"}},
		{2, "worker w1 --url http://h", []string{"TDF_TOKEN", "tdf token add w1 --role work"}},
		{2, "plan show last", []string{"tdf plan submit FILE"}},
	} {
		out := s.says(test.code, test.args, test.want...)
		if test.code == 2 && strings.Contains(out, "tdf-") {
			t.Errorf("tdf %s names another program: %s", test.args, out)
		}
	}
}

// The help of every verb fits a terminal of 80 columns.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	var look func(cmd *cobra.Command, path ...string)
	helps := 0
	look = func(cmd *cobra.Command, path ...string) {
		var out bytes.Buffer
		fresh := verbs.NewTDF(servercmd.New(), workercmd.New())
		fresh.SetOut(&out)
		if code := cli.Run(t.Context(), fresh, append(path, "--help")); code != 0 {
			t.Fatalf("%v --help ended with %d", path, code)
		}
		helps++
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%v --help: %d columns: %s", path, n, line)
			}
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if strings.Contains(f.Usage, "\n") {
				t.Errorf("%v --help: --%s breaks its lines itself, and they are broken again", path, f.Name)
			}
		})
		for _, sub := range cmd.Commands() {
			look(sub, append(slices.Clone(path), sub.Name())...)
		}
	}
	look(verbs.NewTDF(servercmd.New(), workercmd.New()))
	if helps < 40 {
		t.Errorf("%d helps were looked at", helps)
	}
}
