package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result is what a command left behind.
type result struct {
	code        int
	out, errOut string
}

// run executes a tree of commands like those of TDF; verb is what "show" does.
func run(ctx context.Context, verb func() error, args ...string) result {
	root := &cobra.Command{Use: "tdf-test"}
	AddDaemonFlags(root, root.PersistentFlags())
	show := &cobra.Command{Use: "show ID", Args: cobra.ExactArgs(1), RunE: func(*cobra.Command, []string) error { return verb() }}
	show.Flags().Bool("json", false, "")
	need := &cobra.Command{Use: "need", RunE: func(*cobra.Command, []string) error { return nil }}
	need.Flags().String("file", "", "")
	if err := need.MarkFlagRequired("file"); err != nil {
		panic(err)
	}
	group := &cobra.Command{Use: "group"}
	group.AddCommand(&cobra.Command{Use: "member", Run: func(*cobra.Command, []string) {}})
	root.AddCommand(show, need, group)
	var out, errOut bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&errOut)
	code := Run(ctx, root, args)
	return result{code, out.String(), errOut.String()}
}

func succeed() error { return nil }

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, "a command is missing"},
		{[]string{"shw"}, `unknown command "shw" for "tdf-test"; did you mean show?`},
		{[]string{"frobnicate"}, `unknown command "frobnicate" for "tdf-test"` + "\n"},
		{[]string{"show"}, "expecting 1 argument (0 given)"},
		{[]string{"show", "1", "2"}, "expecting 1 argument (2 given)"},
		{[]string{"show", "1", "--nope"}, "unknown flag: --nope"},
		{[]string{"show", "1", "--log-level"}, "flag needs an argument"},
		{[]string{"--nope"}, "unknown flag: --nope"},
		{[]string{"need"}, `required flag(s) "file" not set`},
		{[]string{"group"}, "a command is missing; write one of member"},
		{[]string{"group", "x"}, `unknown command "x" for "tdf-test group"; write one of member`},
	} {
		r := run(t.Context(), succeed, tc.args...)
		if r.code != ExitUsage || !strings.HasPrefix(r.errOut, "tdf-test: "+tc.want) || !strings.Contains(r.errOut, "Usage:") || r.out != "" {
			t.Errorf("%q: %+v; want exit 2 and %q with usage on stderr", tc.args, r, tc.want)
		}
		// The error, and one line that says where there is more.
		if strings.Count(r.errOut, "\n") != 2 || !strings.HasSuffix(r.errOut, " --help\n") {
			t.Errorf("%q: want two lines and a pointer to --help: %s", tc.args, r.errOut)
		}
		if n := strings.Count(r.errOut, tc.want); n != 1 {
			t.Errorf("%q: error printed %d times", tc.args, n)
		}
	}
}

func TestCommandErrors(t *testing.T) {
	t.Parallel()
	program := exec.Command("sh", "-c", "exit 3").Run()
	for _, tc := range []struct {
		name   string
		err    error
		code   int
		stderr string
	}{
		{"none", nil, 0, ""},
		{"plain", errors.New("broken"), 1, "tdf-test: broken\n"},
		{"coded", fmt.Errorf("show: %w", WithCode(ExitRedis, errors.New("no redis"))), 3, "tdf-test: show: no redis\n"},
		{"coded nil", WithCode(ExitRedis, nil), 0, ""},
		{"silent", Exit(ExitTaskFailed), 1, ""},
		{"silent nil", Exit(ExitOK), 0, ""},
		{"two lines", errors.Join(errors.New("one"), errors.New("two")), 1, "tdf-test: one\ntdf-test: two\n"},
		{"control characters", errors.New("a\x1b[2Jb\rc"), 1, `tdf-test: a\x1b[2Jb\rc` + "\n"},
		{"program", fmt.Errorf("rsync: %w", program), 1, "tdf-test: rsync: exit status 3\n"},
		{"cancelled by nobody", context.Canceled, 1, "tdf-test: context canceled\n"},
	} {
		r := run(t.Context(), func() error { return tc.err }, "show", "1")
		if want := (result{tc.code, "", tc.stderr}); r != want {
			t.Errorf("%s: got %+v; want %+v", tc.name, r, want)
		}
	}
	r := run(t.Context(), func() error { return Usagef("bad id %q", "x") }, "show", "1")
	if r.code != ExitUsage || r.errOut != "tdf-test: bad id \"x\"\nUsage: tdf-test show ID [flags]; see tdf-test show --help\n" {
		t.Errorf("usage error of the command: %+v", r)
	}
}

func TestJSONErrors(t *testing.T) {
	t.Parallel()
	broken := func() error { return WithCode(ExitRedis, errors.New("no <redis>")) }
	for _, tc := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"show", "1", "--json"}, 3, "no <redis>"},
		{[]string{"show", "--json"}, 2, "expecting 1 argument (0 given)"},
		{[]string{"show", "--nope", "--json", "1"}, 2, "unknown flag: --nope"},
	} {
		r := run(t.Context(), broken, tc.args...)
		var got struct {
			Error string
			Code  int
		}
		dec := json.NewDecoder(strings.NewReader(r.out))
		if err := dec.Decode(&got); err != nil || dec.More() || r.errOut != "" {
			t.Errorf("%q: not one JSON value: %v, %+v", tc.args, err, r)
		}
		if got.Error != tc.text || got.Code != tc.code || r.code != tc.code {
			t.Errorf("%q: %+v", tc.args, r)
		}
	}
	for _, args := range [][]string{{"show", "1", "--json=false"}, {"show", "--", "--json", "2"}, {"show", "1"}} {
		if r := run(t.Context(), broken, args...); r.out != "" || r.errOut == "" {
			t.Errorf("%q: JSON that nobody asked for: %+v", args, r)
		}
	}
	if r := run(t.Context(), func() error { return Exit(1) }, "show", "1", "--json"); r != (result{code: 1}) {
		t.Errorf("silent: %+v", r)
	}
}

func TestHelpAndVersionSucceed(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--help"}, {"show", "--help"}, {"help", "show"}, {"--version"}, {"completion", "bash"}} {
		if r := run(t.Context(), succeed, args...); r.code != 0 || r.out == "" || r.errOut != "" {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if r := run(t.Context(), succeed, "--version"); !strings.HasPrefix(r.out, "tdf-test ") || !strings.Contains(r.out, "go1.") {
		t.Errorf("version: %+v", r)
	}
}

func TestExitCodeOfSignals(t *testing.T) {
	t.Parallel()
	for sig, want := range map[syscall.Signal]int{syscall.SIGINT: ExitInterrupt, syscall.SIGTERM: ExitTerminate} {
		ctx, cancel := context.WithCancelCause(t.Context())
		r := run(ctx, func() error {
			cancel(&SignalError{sig})
			return fmt.Errorf("wait: %w", ctx.Err())
		}, "show", "1")
		if r.code != want || !strings.Contains(r.errOut, "stopped by signal") {
			t.Errorf("%v: %+v", sig, r)
		}
	}
}
