package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A07, A08, A40, A41: both streams byte-exact, exit code beside them.
func TestRunReportsStreamsAndExit(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		body, stdout, stderr string
		exit                 int
		signal               syscall.Signal
	}{
		"A07 output":            {body: `printf 'a\nb\n'`, stdout: "a\nb\n"},
		"A08 one byte of error": {body: `printf x >&2`, stderr: "x"},
		"A40 exit code":         {body: `exit 7`, exit: 7},
		"A41 warning":           {body: `echo out; echo warn >&2`, stdout: "out\n", stderr: "warn\n"},
		"exit 255":              {body: `exit 255`, exit: 255},
		"signal":                {body: `echo before; kill -SEGV $$`, stdout: "before\n", exit: -1, signal: syscall.SIGSEGV},
		"stdin is empty":        {body: `cat; echo end`, stdout: "end\n"},
		"no terminal":           {body: `(: < /dev/tty) 2>/dev/null || echo none`, stdout: "none\n"},
		"truncated by itself":   {body: `echo long; echo b > /dev/stdout; echo c`, stdout: "b\nc\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := mustRun(t, Spec{Dir: script(t, c.body)})
			if string(r.Stdout) != c.stdout || string(r.Stderr) != c.stderr {
				t.Errorf("stdout %q, stderr %q; want %q, %q", r.Stdout, r.Stderr, c.stdout, c.stderr)
			}
			if r.ExitCode != c.exit || r.Signal != c.signal {
				t.Errorf("exit %d, signal %v; want %d, %v", r.ExitCode, r.Signal, c.exit, c.signal)
			}
			if r.StdoutBytes != int64(len(c.stdout)) || r.StderrBytes != int64(len(c.stderr)) {
				t.Errorf("sizes %d, %d", r.StdoutBytes, r.StderrBytes)
			}
			if r.TimedOut || r.Cancelled || r.StdoutTruncated || r.StderrTruncated {
				t.Errorf("unexpected flags: %+v", r)
			}
		})
	}
}

func TestRunAccountsTimeAndMemory(t *testing.T) {
	t.Parallel()
	before := time.Now()
	r := mustRun(t, Spec{Dir: script(t, `i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done`)})
	if r.Started.Before(before) || r.Duration <= 0 || r.Duration > time.Since(before) {
		t.Errorf("Started %v, Duration %v", r.Started, r.Duration)
	}
	if r.UserTime <= 0 || r.UserTime > r.Duration*2 {
		t.Errorf("UserTime %v in Duration %v", r.UserTime, r.Duration)
	}
	if r.MaxRSS < 512<<10 || r.MaxRSS > 1<<31 {
		t.Errorf("MaxRSS %d is no plausible number of bytes", r.MaxRSS)
	}
}

// A37: no word of the input is ever interpreted.
func TestRunPassesWordsLiterally(t *testing.T) {
	t.Parallel()
	input := "0; touch x\t$(id) `id` > f * ? ~ $HOME 'a b' \"q\" \\ && | -n -- ä\n#no"
	words := SplitInput(input)
	dir := script(t, `for w in "$@"; do printf '%s\0' "$w"; done`)
	r := mustRun(t, Spec{Dir: dir, Args: words})
	got := strings.Split(strings.TrimSuffix(string(r.Stdout), "\x00"), "\x00")
	if diff := cmp.Diff(words, got); diff != "" {
		t.Errorf("words changed on their way (-sent +seen):\n%s", diff)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("directory holds %v (%v), want run.sh only", entries, err)
	}
}

// A38, and arguments that only an argument vector can carry.
func TestRunCountsArguments(t *testing.T) {
	t.Parallel()
	dir := script(t, `echo $#`)
	for want, args := range map[string][]string{
		"0\n": SplitInput(" \n"),
		"3\n": SplitInput("10 11 12"),
		"2\n": {"", "a b"},
	} {
		if r := mustRun(t, Spec{Dir: dir, Args: args}); string(r.Stdout) != want {
			t.Errorf("%q: $# is %q, want %q", args, r.Stdout, want)
		}
	}
}

func TestRunGivesExactlyTheEnvironment(t *testing.T) {
	t.Parallel()
	env, err := filepath.Abs("/usr/bin/env")
	if err != nil {
		t.Fatal(err)
	}
	dir := program(t, "#!"+env+"\n")
	r := mustRun(t, Spec{Dir: script(t, "exec "+env), Env: []string{"B=2", "A=1 x"}})
	seen := map[string]bool{}
	for line := range strings.Lines(string(r.Stdout)) {
		seen[strings.TrimSpace(line)] = true
	}
	delete(seen, "PWD="+dir)
	for line := range seen {
		// The shell itself adds PWD and friends; nothing of the worker's may be there.
		name, _, _ := strings.Cut(line, "=")
		if name != "A" && name != "B" && name != "PWD" && name != "OLDPWD" && name != "SHLVL" && name != "_" {
			t.Errorf("unexpected %q", line)
		}
	}
	if !seen["A=1 x"] || !seen["B=2"] {
		t.Errorf("environment is %q", r.Stdout)
	}
}

func TestRunWorksInTheProgramDirectory(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(script(t, `pwd -P; echo "$0"`))
	if err != nil {
		t.Fatal(err)
	}
	if r := mustRun(t, Spec{Dir: dir}); string(r.Stdout) != dir+"\n./run.sh\n" {
		t.Errorf("got %q", r.Stdout)
	}
}

func TestRunCancelledBeforeStartRunsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := script(t, `: > ran`)
	r, err := Run(ctx, Spec{Dir: dir})
	if err != nil || !r.Cancelled || r.ExitCode != -1 || !r.Started.IsZero() {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); !os.IsNotExist(err) {
		t.Errorf("the program ran: %v", err)
	}
}

func TestRunManyAtOnce(t *testing.T) {
	t.Parallel()
	dir := script(t, `echo $1; echo e$1 >&2; exit $1`)
	temp := t.TempDir()
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			s := Spec{Dir: dir, Args: []string{fmt.Sprint(i)}, TempDir: temp, Timeout: time.Minute}
			r, err := Run(context.Background(), s)
			if err != nil || r.ExitCode != i || string(r.Stdout) != fmt.Sprintf("%d\n", i) ||
				string(r.Stderr) != fmt.Sprintf("e%d\n", i) {
				t.Errorf("round %d: %+v, %v", i, r, err)
			}
		})
	}
	wg.Wait()
	if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
		t.Errorf("temporary files left: %v, %v", left, err)
	}
}
