// Package tour runs what README and docs/TOUR.md tell a newcomer to type.
package tour

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/hosttest"
)

// limit is far above what the tour takes on a machine that has other things to do: some twenty seconds.
const limit = 5 * time.Minute

// late lets servers and workers begin late, as on a machine that has other things to do: what hangs on that shows each time.
const late = `tdf-server() { sleep 1; exec tdf-server "$@"; }
tdf-worker() { sleep 2; exec tdf-worker "$@"; }
`

// daemon is a line that starts a server or a worker.
var daemon = regexp.MustCompile(`(?m)^tdf-(server|worker) (\S+)( \S+)? &$`)

// settled waits for what a block has started, as who types it sees that it is there before typing on: a server that has its Redis,
// workers that are registered.
func settled(block string) (script string) {
	for _, d := range daemon.FindAllStringSubmatch(block, -1) {
		look := "worker ls"
		if d[1] == "worker" {
			look = "worker show " + d[2]
		}
		script += "until tdf-manager --config tour.cfg " + look + " >/dev/null 2>&1; do sleep 0.1; done\n"
	}
	return script
}

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// The five minutes of README and the tour that goes on from there, typed as they
// stand there; only the directory and the port are the test's own. wait must end
// with 1, because one task fails.
func TestLongReadmeTour(t *testing.T) {
	t.Parallel()
	var blocks [][]string
	for _, page := range []string{"../../README.md", "../../docs/TOUR.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, shellBlock.FindAllStringSubmatch(string(text), -1)...)
	}
	if len(blocks) != 9 {
		t.Fatalf("%d blocks of commands in README and TOUR, want 9", len(blocks))
	}
	dir := t.TempDir()
	script := "set -eu\ntrap 'kill $(jobs -p) 2>/dev/null || :' EXIT\n" + late
	for _, b := range blocks {
		script += b[1] + settled(b[1])
	}
	script = strings.NewReplacer(
		"make build && export PATH=$PWD/bin:$PATH", "export PATH="+build(t)+":$PATH",
		"/tmp/tour", dir, "7380", strconv.Itoa(hosttest.Port(t)),
		"\ntdf-manager --config tour.cfg wait\n", "\ntdf-manager --config tour.cfg wait || echo \"wait: $?\"\n",
		"wait 8-14\n", "wait 8-14 || echo \"second wait: $?\"\n",
		"wait %2 %3 %4; kill %1", "wait %2 %3 %4 || :; kill %1; wait || :; echo stopped",
	).Replace(script)
	out := bash(t, script)
	for _, want := range []string{"wait: 1", "hello venus from worker-A", "no air", "hello pluto from worker-A", "wrote 1 to mercury", "drained", "mars", "succeeded", "failed",
		"needs label disk=tape", "cancelled 1", "second wait: 1", "encode", "would", "small", "a sum in two layers", "completed", "\n45\n", "stopped"} {
		if !strings.Contains(out, want) {
			t.Errorf("the tour does not show %q:\n%s", want, out)
		}
	}
}

func bash(t *testing.T, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-m", "-c", script) // job control, as at a prompt
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("the tour: %v\n%s", err, out)
	}
	return string(out)
}

func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "bin")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", bin+string(filepath.Separator), "./cmd/...")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}
