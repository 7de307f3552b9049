package main

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tdf-go/tdf/bench/contend"
	"github.com/tdf-go/tdf/bench/frametest"
	"github.com/tdf-go/tdf/bench/stats"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/internal/testkit/proctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLongWholeProgram(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	args := []string{"-tasks", "30", "-rounds", "1", "-parallel", "2", "-bin", frametest.Build(t), "-peers", "../peers"}
	if err := run(t.Context(), args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	frametest.Has(t, out.String(),
		"| xargs -P2 |", "| asynq, sh run.sh |", "| asynq, handler does nothing |",
		"| TDF, workers x slots 1x2, auto |", "| TDF, workers x slots 2x1, auto |", "| of xargs -P2 | of asynq, sh run.sh |",
		"| Go, contains nothing |", "| shim, group |", "| xargs -P2 in CPU time |",
	)
}

func TestLongUnreachableRedis(t *testing.T) {
	t.Parallel()
	args := []string{"-tasks", "1", "-rounds", "1", "-redis", "127.0.0.1:1", "-peers", "../peers"}
	err := run(t.Context(), args, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("the error should name the address: %v", err)
	}
}

func TestClaimsTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	args := []string{"-table", "claims", "-tasks", "20", "-rounds", "1", "-waiting", "2000"}
	if err := run(t.Context(), args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	frametest.Has(t, out.String(), "| behind 4 that fit nobody |", "| behind 2000 that fit nobody |")
}

// All ways to start the program give the same, and a wrong output is an error.
func TestStartersCheckOutput(t *testing.T) {
	t.Parallel()
	container, err := openContainer(shim.Group)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = container.Close() }()
	for text, wantErr := range map[string]bool{contend.Program: false, "#!/bin/sh\necho nonsense\n": true, "#!/bin/sh\necho $1; exit 1\n": true} {
		dir := t.TempDir()
		script := filepath.Join(dir, "run.sh")
		proctest.WriteProgram(t, script, text, 0o755)
		for _, c := range []contend.Contender{
			contend.Plain(2, script), (&crew{container: container, script: script, temp: t.TempDir(), slots: 2}).contender(),
		} {
			if took, err := c.Run(t.Context(), 5); (err != nil) != wantErr || took <= 0 {
				t.Errorf("%s, program %q: %v, %v", c.Name, text, took, err)
			}
		}
	}
}

func TestCostTable(t *testing.T) {
	t.Parallel()
	all := []contend.Contender{{Name: "xargs"}, {Name: "slow"}}
	samples := [][]sample{{{rate: 100, cpu: time.Millisecond}}, {{rate: 50, cpu: 4 * time.Millisecond}}}
	text := costTable(options{}, all, samples, []absent{{shim.Cgroup, errors.New("no such luck")}})
	for _, want := range []string{
		"| slow | 50 | 50-50 | 0.50 | 4.00 | 0.25 |\n", "| shim, cgroup | not here |", "cgroup is not available here: no such luck",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if err := tooSlow(all[1:], samples[1:], samples[0]); !errors.Is(err, errTooSlow) {
		t.Errorf("half of xargs is enough: %v", err)
	}
	if err := tooSlow(all[:1], samples[:1], samples[0]); err != nil {
		t.Error(err)
	}
}

func TestMedianAndRatios(t *testing.T) {
	t.Parallel()
	if got := stats.Median([]float64{9, 1, 5}); got != 5 {
		t.Errorf("median of 1, 5, 9: %v", got)
	}
	if got := stats.Median(stats.Ratios([]float64{2, 30}, []float64{1, 10})); got != 2.5 {
		t.Errorf("median of 2/1 and 30/10: %v", got)
	}
}

func TestBadFlags(t *testing.T) {
	t.Parallel()
	frametest.Refuses(t, run, map[string]string{
		"-tasks=0": "-tasks=0: must be at least 1", "-rounds=0": "-rounds=0", "-parallel=-1": "-parallel=-1", "-tasks=x": "flag -tasks",
		"-table=x": "-table=x: use one of", "-containment=x": "-containment=x: use some of",
	})
}
