package upgrade

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
)

// checkRefusals lets the programs of both releases meet a namespace of the next
// major version: each must say so and leave it alone.
func checkRefusals(t *testing.T, b builds) {
	t.Helper()
	sp := storetest.On(t, redistest.Shared(t))
	dir := prepare(t, sp)
	if err := sp.Raw.HSet(t.Context(), sp.Key("meta"), "protocol", "2.0").Err(); err != nil {
		t.Fatal(err)
	}
	for _, bin := range b {
		for _, args := range [][]string{
			{"tdf-server", "server-1", "crew.cfg"},
			{"tdf-worker", "worker-1", "crew.cfg"},
			{"tdf-manager", "stats", "--config", "crew.cfg"},
		} {
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin, args[0]), args[1:]...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), `protocol "2.0"`) {
				t.Errorf("%s in a namespace of protocol 2.0: %v, want a refusal that says so\n%s", cmd.Path, err, out)
			}
		}
	}
	if keys, err := sp.Raw.Keys(t.Context(), sp.Key("*")).Result(); err != nil || len(keys) != 1 {
		t.Errorf("they left the keys %v (%v), want the one that was there", keys, err)
	}
}
