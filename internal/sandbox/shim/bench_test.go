package shim

import (
	"context"
	"os/exec"
	"testing"
)

// A no-op round in each layer, and the plain way of the standard library, which
// contains nothing.

func BenchmarkRunNoop(b *testing.B) {
	for _, layer := range layers {
		b.Run(string(layer), func(b *testing.B) {
			s := open(b, Options{Want: layer})
			benchmarkRun(b, s)
		})
	}
	b.Run("launcher", func(b *testing.B) {
		benchmarkRun(b, open(b, Options{Rlimits: map[string]uint64{"core": 0}}))
	})
}

func benchmarkRun(b *testing.B, s *Slot) {
	b.Helper()
	p := Program{Dir: script(b, ":"), Env: []string{path}}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Run(ctx, p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkExecNoop(b *testing.B) {
	dir := script(b, ":")
	b.ReportAllocs()
	for b.Loop() {
		cmd := exec.Command("./run.sh")
		cmd.Dir, cmd.Env = dir, []string{path}
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
	}
}
