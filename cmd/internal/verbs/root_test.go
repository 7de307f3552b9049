package verbs

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-go/tdf/internal/base/cli"
)

func TestUsage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []struct{ args, say string }{
		{"", "verb is missing"}, {"frobnicate", "unknown command"}, {"show", "expecting 1 argument (0 given)"}, {"queue set", "expecting at least 2 arguments (0 given)"}, {"why 1 2", "expecting at most 1 argument (2 given)"}, {"show x", "id of one task"},
		{"show 0", "id of one task"}, {"show 1 2", "expecting 1 argument (2 given)"}, {"ls --limit x", `argument "x" for "--limit" flag: not a number in range`}, {"show 99", "no such task"}, {"logs 99", "no such task"},
		{"ls extra", "3-9"}, {"ls -o xml", "table or wide"}, {"ls --state lost", "timed_out"}, {"ls --match (", "regular expression"}, {"wait 1-", "3-9"}, {"wait 5-3", "3-9"}, {"wait 1,all", "all stands alone"},
		{"wait 1-99999999999", "use all"}, {"wait 99", "no such task"}, {"wait --timeout never", "timeout"},
		{"stats --log-level loud", ""}, {"--set tdf.namespac=x stats", "namespac"},
	} {
		if c.args == "stats --log-level loud" {
			continue // stats logs nothing
		}
		r := b.run(strings.Fields(c.args)...)
		if r.code != 2 || !strings.Contains(r.err, c.say) {
			t.Errorf("%q: ended with %d, %q, want 2 and %q", c.args, r.code, r.err, c.say)
		}
	}
}

// With --json an error is one JSON value on stdout.
func TestJSONErrors(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	away := writeConfig(t, "/nonexistent.sock", b.ns)
	for _, c := range []struct {
		config, args string
		code         int
	}{
		{b.file, "show 99", 2}, {b.file, "show x", 2}, {b.file, "logs 99", 2}, {b.file, "wait 99", 2}, {b.file, "ls --limit x", 2},
		{away, "stats", 3}, {away, "ls", 3}, {away, "verify", 3}, {away, "show 1", 3}, {"/nonexistent.cfg", "stats", 2},
	} {
		r := execute(t.Context(), "", append([]string{"--config", c.config}, append(strings.Fields(c.args), "--json")...)...)
		object, ok := oneValue(t, r.out).(map[string]any)
		if r.code != c.code || !ok || object["error"] == "" || object["error"] == nil {
			t.Errorf("%s: ended with %d, want %d: %s", c.args, r.code, c.code, r.out)
		}
	}
}

func TestConfiguration(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if out := b.must("--check"); out != "configuration ok\n" {
		t.Errorf("--check: %q", out)
	}
	if out := b.must("stats", "--check"); out != "configuration ok\n" {
		t.Errorf("stats --check: %q", out)
	}
	wantText(t, b.must("--print-config"), "namespace="+b.ns, "batch_size=100")
	wantText(t, b.must("--version"), "tdf-manager ", "go1.")
	wantText(t, b.must("version"), "tdf-manager ")
	var build cli.Build
	if err := json.Unmarshal([]byte(b.must("version", "--json")), &build); err != nil || build.Go == "" {
		t.Errorf("version --json: %+v, %v", build, err)
	}
	wantText(t, b.must("completion", "bash"), "tdf-manager")
	secret := filepath.Join(t.TempDir(), "s.cfg")
	if err := os.WriteFile(secret, []byte("[redis]\npassword=sesame\n[tdf]\nnamespace=n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := execute(t.Context(), "", "--config", secret, "--print-config"); r.code != 0 || strings.Contains(r.out, "sesame") {
		t.Errorf("%+v", r)
	}
}

// The file is --config, else TDF_CONFIG, else manager.cfg here, else none.
func TestConfigFile(t *testing.T) { //nolint:paralleltest // environment and working directory
	b := newBench(t)
	t.Chdir(t.TempDir())
	if r := execute(t.Context(), "", "stats"); r.code != 2 || !strings.Contains(r.err, "manager.cfg") {
		t.Errorf("no file: %+v", r)
	}
	set := []string{"--set", "redis.host=" + b.srv.Socket(), "--set", "tdf.namespace=" + b.ns, "stats"}
	if r := execute(t.Context(), "", set...); r.code != 0 {
		t.Errorf("all on the command line: %+v", r)
	}
	t.Setenv("TDF_CONFIG", b.file)
	if r := execute(t.Context(), "", "stats"); r.code != 0 {
		t.Errorf("TDF_CONFIG: %+v", r)
	}
}

func TestRedisUnfit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []struct {
		args []string
		say  string
	}{
		{[]string{"--set", "redis.host=/nonexistent.sock"}, "redis-server"},
		{[]string{"--set", "redis.db=999"}, "[redis] db"},
	} {
		for _, verb := range []string{"stats", "submit"} {
			r := b.run(append(c.args, verb)...)
			if r.code != 3 || !strings.Contains(r.err, c.say) {
				t.Errorf("%v %s: %+v, want 3 and %q", c.args, verb, r, c.say)
			}
		}
	}
}

func signalled(sig syscall.Signal) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	return ctx, func() { cancel(&cli.SignalError{Signal: sig}) }
}
