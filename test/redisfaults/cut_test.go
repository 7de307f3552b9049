package redisfaults

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
)

// A loss of power cuts the append-only file in the middle of a transaction. Mended as
// docs/OPERATIONS.md says, Redis never carries out the half that is left.
func TestHalfATransactionIsCutOff(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.WithAppendOnly()) // everysec may write later, when the disk is busy
	const script = "for _, k in ipairs(ARGV) do redis.call('SET', k, 1) end"
	srv.Do(t, "EVAL", script, "0", "whole1", "whole2")
	srv.Do(t, "EVAL", script, "0", "half1", "half2", "half3")
	srv.Kill(t)
	dir := filepath.Join(filepath.Dir(srv.Socket()), "appendonlydir")
	parts, err := filepath.Glob(filepath.Join(dir, "*.incr.aof"))
	if err != nil || len(parts) != 1 {
		t.Fatalf("append-only files %v: %v", parts, err)
	}
	text, err := os.ReadFile(parts[0])
	if err != nil {
		t.Fatal(err)
	}
	cut := strings.LastIndex(string(text), "half3")
	if err := os.Truncate(parts[0], int64(cut)); err != nil {
		t.Fatal(err)
	}
	fix := exec.CommandContext(t.Context(), "redis-check-aof", "--fix", filepath.Join(dir, "appendonly.aof.manifest"))
	fix.Stdin = strings.NewReader("y\n")
	if out, err := fix.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", fix.Args, err, out)
	}
	for range 2 { // what is left is carried out at the second start
		srv.Restart(t)
		srv.Do(t, "EVAL", script, "0", "later1", "later2")
		if got := srv.Do(t, "EXISTS", "whole1", "whole2", "half1", "half2", "half3"); got != int64(2) {
			t.Errorf("%v keys are there, want the 2 of the whole transaction", got)
		}
		srv.Kill(t)
	}
}
