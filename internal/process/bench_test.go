package process

import (
	"context"
	"os/exec"
	"testing"
)

// The two benchmarks do the same no-op round, ours and the plain way of the
// standard library, which does not contain it.

func BenchmarkRunNoop(b *testing.B) {
	dir := script(b, ":")
	s := Spec{Dir: dir, TempDir: b.TempDir()}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Run(context.Background(), s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkExecNoop(b *testing.B) {
	dir := script(b, ":")
	b.ReportAllocs()
	for b.Loop() {
		cmd := exec.Command("./" + programFile)
		cmd.Dir = dir
		cmd.Env = []string{}
		if _, err := cmd.CombinedOutput(); err != nil {
			b.Fatal(err)
		}
	}
}
