package cli

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/config"
)

func startDaemon(t *testing.T, name, text string, args ...string) (started *config.File, said string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.cfg")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := &cobra.Command{Use: "tdf-x"}
	flags := AddDaemonFlags(cmd, cmd.PersistentFlags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		err = RunDaemon(cmd, flags, Daemon{Kind: config.ForServer, Role: "server", Name: name, File: file},
			func(_ context.Context, cfg *config.File, _ *slog.Logger) error {
				started = cfg
				return nil
			})
		return err
	}
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	_ = cmd.ExecuteContext(t.Context()) // it is err
	return started, out.String(), err
}

const startConfig = "[redis]\nhost=h\npassword=canary\n[tdf]\nnamespace=n\n"

func TestRunDaemon(t *testing.T) {
	t.Parallel()
	started, said, err := startDaemon(t, "s-1", startConfig, "--set", "server.batch_size=7")
	if err != nil || started == nil {
		t.Fatalf("started %v, %v", started, err)
	}
	if started.TDF.Namespace != "n" || started.Server.BatchSize != 7 {
		t.Errorf("configuration %+v", started)
	}
	for _, want := range []string{"initializing 's-1' for namespace 'n' (config: '", `"server":"s-1"`, `"pid":`, `"message":"stopped"`} {
		if !strings.Contains(said, want) {
			t.Errorf("no %s in\n%s", want, said)
		}
	}
	if strings.Contains(said, "canary") {
		t.Errorf("the password is shown:\n%s", said)
	}
}

func TestRunDaemonAnswers(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{"--check": "configuration ok", "--print-config": "batch_size"} {
		started, said, err := startDaemon(t, "s", startConfig, flag)
		if started != nil || err != nil || !strings.Contains(said, want) || strings.Contains(said, "initializing") {
			t.Errorf("%s: started %v, %v, said\n%s", flag, started, err, said)
		}
	}
}

func TestRunDaemonRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		daemon, text string
		args         []string
	}{
		"a name with a slash": {"a/b", startConfig, nil},
		"no namespace":        {"s", "[redis]\nhost=h\n", nil},
		"an unknown level":    {"s", startConfig, []string{"--log-level", "loud"}},
		"a bad setting":       {"s", startConfig, []string{"--set", "server.batch_size=many"}},
	} {
		started, _, err := startDaemon(t, c.daemon, c.text, c.args...)
		var coded Coded
		if started != nil || !errors.As(err, &coded) || coded.ExitCode() != ExitUsage {
			t.Errorf("%s: started %v, error %v", name, started, err)
		}
	}
}
