package servercmd

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/testkit/daemontest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func configured(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "server.cfg")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func execute(ctx context.Context, args ...string) (code int, stdout, stderr *daemontest.Output) {
	stdout, stderr = &daemontest.Output{}, &daemontest.Output{}
	cmd := New() //nolint:contextcheck // Run gives it the context
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	return cli.Run(ctx, cmd, args), stdout, stderr
}

const embeddedConfig = "[redis]\nhost=embedded\nport=0\npassword=canary\n[tdf]\nnamespace=n\n"

func TestUsage(t *testing.T) {
	t.Parallel()
	good := configured(t, embeddedConfig)
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no argument":     {[]string{}, cli.ExitUsage, "expecting 1 or 2 arguments (0 given)"},
		"three arguments": {[]string{"a", "b", "c"}, cli.ExitUsage, "(3 given)"},
		"bad name":        {[]string{"a/b", good}, cli.ExitUsage, "a/b"},
		"no file":         {[]string{"/nowhere/x.cfg"}, cli.ExitUsage, "/nowhere/x.cfg"},
		"bad level":       {[]string{good, "--log-level", "loud"}, cli.ExitUsage, "loud"},
		"check":           {[]string{good, "--check"}, cli.ExitOK, "configuration ok"},
		"print":           {[]string{"name", good, "--print-config"}, cli.ExitOK, "host=embedded"},
		"version":         {[]string{"--version"}, cli.ExitOK, "tdf-server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := execute(t.Context(), c.args...)
			all := stdout.String() + stderr.String()
			if code != c.code || !strings.Contains(all, c.says) {
				t.Errorf("exit code %d, want %d and %q in:\n%s", code, c.code, c.says, all)
			}
			if strings.Contains(all, "canary") {
				t.Errorf("the password is shown:\n%s", all)
			}
		})
	}
}

// With host = embedded the server says loudly that nothing lasts, and at which
// port others can join.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cmd, stderr, done := New(), &daemontest.Output{}, make(chan int, 1)
	cmd.SetErr(stderr)
	go func() {
		done <- cli.Run(ctx, cmd, []string{"server-A", configured(t, embeddedConfig), "--set", "server.round_duration=0.05"})
	}()
	wait.Eventually(t, 10*time.Second, func() bool { return strings.Contains(stderr.String(), `"message":"processed"`) }, "no round: %s", stderr)
	cancel()
	if code := wait.Receive(t, 5*time.Second, done, "does not stop"); code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{`"server":"server-A"`, "initializing 'server-A' for namespace 'n' (config: '", `"pid":`, `"namespace":"n"`, "EMBEDDED REDIS, FOR TRIALS ONLY", `"port":`, "stopped"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("no %s in\n%s", want, stderr)
		}
	}
	if strings.Contains(stderr.String(), "canary") {
		t.Errorf("the password is logged:\n%s", stderr)
	}
}
