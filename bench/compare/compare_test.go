package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tdf-go/tdf/bench/contend"
	"github.com/tdf-go/tdf/bench/frame"
	"github.com/tdf-go/tdf/bench/frametest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A small run with the peers that are everywhere does all that a large one does, and can be checked.
func TestLongWholeProgram(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	dir, bin := t.TempDir(), frametest.Build(t)
	markdown, file := filepath.Join(dir, "RESULTS.md"), filepath.Join(dir, "results.json")
	args := []string{
		"-contenders", "TDF,xargs,Go", "-rounds", "1", "-programs", "20", "-handlers", "200", "-latencies", "40", "-worker-slots", "4",
		"-set", "manager.batch_size=50,worker.keep_rounds=2", "-bin", bin, "-peers", "../peers", "-markdown", markdown, "-json", file,
	}
	if err := run(t.Context(), args, &out, t.Output()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(markdown)
	if err != nil || !bytes.Equal(text, out.Bytes()) {
		t.Errorf("the file is not what was printed: %v", err)
	}
	frametest.Has(t, out.String(),
		"1 interleaved rounds", "| programs | TDF, containment group | xargs -P2 | tasks a second |", "| GNU parallel -j2 | tasks a second | - | - | 4 | 5 | not measured |",
		"| xargs -P2 |", "| Go, os/exec |", "## Handlers", "## Opening", "## Latency", "| TDF |", "| redis-server | Redis", "not the defaults: manager.batch_size=50",
		"- TDF, default containment in Go, os/exec, tasks a second: ",
	)
	checkAgain(t, file, bin)
}

// checkAgain makes the results of before better than any machine is fast or slow: the check must say which ratio is worse.
func checkAgain(t *testing.T, file, bin string) {
	t.Helper()
	before, err := readResults(file)
	if err != nil {
		t.Fatal(err)
	}
	before.Sizes.Tables = []string{programsTable}
	for i := range before.Tables {
		for j := range before.Tables[i].Ratios {
			before.Tables[i].Ratios[j].Median *= 1e9
		}
	}
	if err := frame.WriteJSON(file, before); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	args := []string{"-check", file, "-contenders", "TDF,xargs", "-rounds", "1", "-bin", bin, "-peers", "../peers"}
	err = run(t.Context(), args, &out, t.Output())
	if !errors.Is(err, errWorse) || !strings.Contains(err.Error(), "table programs, TDF, containment group in xargs -P2, per_second: ") {
		t.Errorf("worse than before: %v", err)
	}
	frametest.Has(t, out.String(), "20 a run", "100 % worse**", "not compared: not measured both times")
}

func TestBadFlags(t *testing.T) {
	t.Parallel()
	broken := filepath.Join(t.TempDir(), "results.json")
	if err := os.WriteFile(broken, []byte(`{"tables":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"-tables=x"}, {"-rounds=0"}, {"-slots=x"}, {"-tolerance=-1"}, {"-check", broken}, {"-check", broken + "x"},
		{"-contenders=TDF,xarg,sargs", "-tables=programs"}, {"-contenders=xargs", "-tables=handlers"},
	} {
		if err := run(t.Context(), append(args, "-peers=../peers"), io.Discard, io.Discard); err == nil {
			t.Errorf("%v: accepted", args)
		}
	}
}

// ended is a run that gives a rate.
func ended(perSecond float64) func(context.Context) (reading, error) {
	return func(context.Context) (reading, error) { return reading{rate.name: perSecond}, nil }
}

func newBench(t *testing.T, rounds int) *bench {
	t.Helper()
	return &bench{o: options{sizes: sizes{Rounds: rounds}, runLimit: time.Minute}, dir: t.TempDir(), progress: t.Output()}
}

// Each round begins with another contender; one that fails is absent, unless it is ours.
func TestRounds(t *testing.T) {
	t.Parallel()
	var order []string
	all := make([]*contender, 3)
	for i, name := range []string{"T", "a", "b"} {
		all[i] = &contender{name: name, ours: i == 0, run: func(context.Context) (reading, error) {
			order = append(order, name)
			if name == "b" && len(order) > 3 {
				return nil, errors.New("b is broken\nwhich is a pity")
			}
			return reading{rate.name: 1}, nil
		}}
	}
	samples, err := newBench(t, 3).rounds(t.Context(), all)
	if err != nil || strings.Join(order, "") != "TababTTa" {
		t.Errorf("%v, %v", order, err)
	}
	if len(samples["a"]) != 3 || all[2].absent != "failed: b is broken" {
		t.Errorf("%v, b: %q", samples, all[2].absent)
	}
	broken := errors.New("broken")
	all[0].run = func(context.Context) (reading, error) { return nil, broken }
	if _, err := newBench(t, 1).rounds(t.Context(), all); !errors.Is(err, broken) {
		t.Errorf("TDF fails: %v", err)
	}
}

// Who hangs is ended by the limit of a run, and an interrupt ends all.
func TestRunsAreBounded(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context) (reading, error) {
		return nil, contend.Command(ctx, "sleep", "3600").Run()
	}
	b := newBench(t, 1)
	b.o.runLimit = 10 * time.Millisecond
	_, err := b.rounds(t.Context(), []*contender{{name: "TDF", ours: true, run: hang}})
	if err == nil || !strings.Contains(err.Error(), "-run-limit=10ms is over") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	peer := &contender{name: "peer", run: func(ctx context.Context) (reading, error) {
		cancel()
		return hang(ctx)
	}}
	if _, err := newBench(t, 1).rounds(ctx, []*contender{peer}); !errors.Is(err, context.Canceled) || peer.absent != "" {
		t.Errorf("%v, %q", err, peer.absent)
	}
}

// figures are the result of a table with contenders that reach the same each round.
func figures(t *testing.T, tab table, all ...*contender) Table {
	t.Helper()
	samples, err := newBench(t, 2).rounds(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	return tab.result(all, samples)
}

func TestTable(t *testing.T) {
	t.Parallel()
	tab := table{
		name: "x", metrics: []metric{rate}, ratios: []metric{rate}, reference: "a",
		targets: []target{
			{"TDF", []string{"a"}, rate, 1.5, 2.5}, {"TDF", []string{"b", "c"}, rate, 0.5, 1}, {"TDF", []string{"gone"}, rate, 1, 1},
			{"elsewhere", []string{"a"}, rate, 1, 1},
		},
	}
	got := figures(t, tab, &contender{name: "TDF", ours: true, run: ended(20)}, &contender{name: "a", run: ended(10)},
		&contender{name: "b", run: ended(30)}, &contender{name: "c", run: ended(80)}, &contender{name: "gone", absent: "why not"})
	want := map[string]string{
		"a": "2.00 reached", "b or c, the better one here": "0.25 not reached", "gone": "0 not measured", "b": "0.67 ", "c": "0.25 ",
	}
	for _, r := range got.Ratios {
		if said := short(r.Median) + " " + r.Verdict; said != want[r.Of] {
			t.Errorf("in %s: %q, want %q", r.Of, said, want[r.Of])
		}
		delete(want, r.Of)
	}
	if len(want) > 0 {
		t.Errorf("no ratio in %v", want)
	}
	text := (&Results{Tables: []Table{got}}).markdown()
	for _, part := range []string{"| b | 30 | 30-30 | 3.00 |\n", "| gone | absent | | |\n", "\ngone is absent: why not.\n", "- TDF in c, tasks a second: 0.25 (0.25-0.25)\n"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

// Of latencies less is better.
func TestLess(t *testing.T) {
	t.Parallel()
	g := latencyTargets()[0]
	for ratio, want := range map[float64]string{0.5: "aim reached", 1: "aim reached", 1.1: "reached", 1.2: "reached", 1.3: "not reached"} {
		if got := g.verdict(ratio); got != want {
			t.Errorf("%v: %s, want %s", ratio, got, want)
		}
	}
	if got := better(p50, []float64{1, 5}, []float64{2, 4}); got[0] != 1 || got[1] != 4 {
		t.Errorf("better: %v", got)
	}
	if got := percentiles([]float64{4, 1, 3, 2}); got[p50.name] != 3 || got[p99.name] != 4 {
		t.Errorf("percentiles: %v", got)
	}
	old := Ratio{Less: true, Spread: Spread{Median: 1}}
	for now, worse := range map[float64]bool{0.5: false, 1.05: false, 1.2: true} {
		if _, err := judge("x", old, Ratio{Less: true, Spread: Spread{Median: now}}, 0.1); errors.Is(err, errWorse) != worse {
			t.Errorf("1, then %v: %v", now, err)
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	results := func(median float64) *Results {
		r := Ratio{Row: "TDF", Of: "a", Metric: rate.name, Spread: Spread{Median: median, Rounds: []float64{median}}}
		return &Results{Tables: []Table{{Name: "x", Ratios: []Ratio{r}}}}
	}
	for _, tc := range []struct {
		now   float64
		worse bool
		says  string
	}{{1, false, "0 % better"}, {2, false, "100 % better"}, {0.9, false, "10 % worse, which is within"}, {0.8, true, "**20 % worse**"}} {
		report, err := compare(results(1), results(tc.now), 0.15, 0.5)
		if errors.Is(err, errWorse) != tc.worse || !strings.Contains(report, tc.says) {
			t.Errorf("%v: %v\n%s", tc.now, err, report)
		}
	}
	if _, err := compare(results(1), &Results{}, 1, 1); err == nil || errors.Is(err, errWorse) {
		t.Errorf("nothing to compare: %v", err)
	}
}

// A peer that is not installed is absent, and says why.
func TestPeersThatAreNotHere(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.o.cache = t.TempDir()
	if p := b.bullmq(t.Context()); p.absent != notInstalled {
		t.Errorf("BullMQ: %q", p.absent)
	}
	b.o.peers = b.o.cache
	if p := b.asynq(t.Context()); !strings.HasPrefix(p.absent, "go list: ") {
		t.Errorf("asynq: %q", p.absent)
	}
	if _, absent := b.buildSpawn(t.Context()); absent == "" {
		t.Error("a C program that is not there was compiled")
	}
	if absent := b.have(t.Context(), "x", "false"); absent == "" || len(b.found) > 1 {
		t.Errorf("%q, %v", absent, b.found)
	}
}

// What the program of a peer reports is the reading, if it is whole.
func TestPeer(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.o.Handlers, b.o.Latencies, b.o.Rate = 100, 2, 10
	for report, want := range map[string][2]string{
		`{"enqueue_seconds": 1, "process_seconds": 4}`: {"20 tasks a second, 25 without opening, 100 opened a second", ""},
		`{"latencies_ms": [2, 1]}`:                     {"", "2.00 p50 ms, 2.00 p99 ms"},
		`{}`:                                           {},
		`sorry`:                                        {},
	} {
		p := &peer{name: "peer", share: 1, dashes: "--", command: func(ctx context.Context, _ string) *exec.Cmd {
			return contend.Command(ctx, "sh", "-c", "echo '"+report+"'")
		}}
		for i, c := range []*contender{p.life(b), p.latency(b, p.name)} {
			got, err := c.run(t.Context())
			if (err == nil) != (want[i] != "") || !strings.HasPrefix(got.String(), want[i]) {
				t.Errorf("%s, %d: %v, %v", report, i, got, err)
			}
		}
	}
}

func TestMachine(t *testing.T) {
	t.Parallel()
	m := thisMachine()
	if text, err := json.Marshal(m); err != nil || strings.Contains(string(text), "unknown") || m.Cores < 1 {
		t.Errorf("%s, %v", text, err)
	}
	for load, busy := range map[string]bool{"1.5": false, "2.5": true, "unknown": false} {
		text := (&Results{Machine: Machine{Cores: 2, Load: load}}).markdown()
		if strings.Contains(text, "The machine was busy") != busy {
			t.Errorf("two cores, load %s:\n%s", load, text)
		}
	}
	if got := value("/no/such", "name", ":"); got != "unknown name" {
		t.Errorf("%q", got)
	}
}
