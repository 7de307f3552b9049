package workercmd

import (
	"path/filepath"
	"testing"

	"github.com/tdf-go/tdf/internal/base/cli"
)

// A worker that is to reach its site over HTTP says before it starts what is missing, and never what its token is.
func TestURL(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	token := write(t, filepath.Join(dir, "token"), "canary\n", 0o600)
	empty := write(t, filepath.Join(dir, "empty"), "", 0o600)
	slots := write(t, filepath.Join(dir, "worker.cfg"), "[worker]\nslots=3\n", 0o600)
	const secret, at = "TDF_TOKEN=canary", "http://127.0.0.1:1"
	for name, c := range map[string]struct {
		environ []string
		args    []string
		code    int
		want    []string
	}{
		"no token":       {nil, []string{"w", "--url", at}, cli.ExitUsage, []string{"TDF_TOKEN", "token add w --role work"}},
		"two tokens":     {[]string{secret, "TDF_TOKEN_FILE=" + token}, []string{"w", "--url", at}, cli.ExitUsage, []string{"unset one"}},
		"no file":        {[]string{"TDF_TOKEN_FILE=/no/such"}, []string{"w", "--url", at}, cli.ExitUsage, []string{"TDF_TOKEN_FILE", "/no/such"}},
		"empty file":     {[]string{"TDF_TOKEN_FILE=" + empty}, []string{"w", "--url", at}, cli.ExitUsage, []string{"TDF_TOKEN_FILE", "empty"}},
		"no scheme":      {[]string{secret}, []string{"w", "--url", "127.0.0.1:1"}, cli.ExitUsage, []string{"url", "write for example https://"}},
		"not http":       {[]string{secret}, []string{"w", "--url", "ftp://h"}, cli.ExitUsage, []string{"url", "ftp://h"}},
		"a login in it":  {[]string{secret}, []string{"w", "--url", "http://u:p@h"}, cli.ExitUsage, []string{"url"}},
		"three words":    {[]string{secret}, []string{"w", slots, "x", "--url", at}, cli.ExitUsage, []string{"expecting"}},
		"no words":       {[]string{secret}, []string{"--url", at}, cli.ExitUsage, []string{"expecting"}},
		"not to be kept": {[]string{secret}, []string{"w", "--url", at, "--set", "worker.output_limit=2MiB"}, cli.ExitUsage, []string{"output_limit"}},
		"fine":           {[]string{secret}, []string{"w", "--url", at, "--check"}, 0, []string{"configuration ok"}},
		"fine by file":   {[]string{"TDF_TOKEN_FILE=" + token}, []string{"w", slots, "--url", at + "/tdf/", "--print-config"}, 0, []string{"slots=3"}},
		"all by environ": {[]string{secret, "TDF_URL=" + at}, []string{"w", "--check"}, 0, []string{"configuration ok"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := prepare(t, c.args...)
			cmd.Env = append(cmd.Env, c.environ...)
			text := cmd.start(t).exit(t, c.code)
			contains(t, text, c.want...)
			lacks(t, text, "canary")
		})
	}
}
