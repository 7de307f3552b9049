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
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

const shippedConf = "../configs/redis.conf"

// build makes the programs that are measured and returns the directory they are in.
func build(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "../cmd/tdf-server", "../cmd/tdf-worker", "../cmd/tdf-manager")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// matches looks for each of the regular expressions in what was printed, has for each of the texts.
func matches(t *testing.T, printed string, rows ...string) {
	t.Helper()
	for _, row := range rows {
		if !regexp.MustCompile(row).MatchString(printed) {
			t.Errorf("no %s in\n%s", row, printed)
		}
	}
}

func has(t *testing.T, printed string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		matches(t, printed, regexp.QuoteMeta(text))
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A small run with the peers that are everywhere does all that a large one does, and can be checked.
func TestLongPeers(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	dir, bin := t.TempDir(), build(t)
	markdown, file := filepath.Join(dir, "RESULTS.md"), filepath.Join(dir, "results.json")
	args := []string{
		"programs", "wide", "handlers", "latency", "-contenders", "TDF,xargs,Go,asynq", "-rounds", "1", "-tasks", "40", "-slots", "2",
		"-set", "manager.batch_size=50,worker.keep_rounds=2", "-bin", bin, "-peers", "peers", "-markdown", markdown, "-json", file,
	}
	if err := run(t.Context(), args, &out, t.Output()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(markdown)
	if err != nil || !bytes.Equal(text, out.Bytes()) {
		t.Errorf("the file is not what was printed: %v", err)
	}
	has(t, out.String(),
		"1 interleaved rounds", "| programs | TDF, containment group | xargs -P2 | tasks a second |", "| GNU parallel -j2 | tasks a second | - | - | 4 | 5 | not measured |",
		"| xargs -P2 |", "| Go, os/exec |", "| asynq, sh run.sh |", "| TDF, default containment, 2 workers of 1 slot |", "## Wide", "## Handlers", "## Opening", "## Latency", "| TDF |", "| redis-server | Redis", "not the defaults: manager.batch_size=50",
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
	for i := range before.Tables {
		for j := range before.Tables[i].Ratios {
			before.Tables[i].Ratios[j].Median *= 1e9
		}
	}
	if err := before.write(file); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	args := []string{"programs", "-check", file, "-contenders", "TDF,xargs", "-rounds", "1", "-bin", bin, "-peers", "peers"}
	err = run(t.Context(), args, &out, t.Output())
	if !errors.Is(err, errWorse) || !strings.Contains(err.Error(), "table programs, TDF, containment group in xargs -P2, per_second: ") {
		t.Errorf("worse than before: %v", err)
	}
	has(t, out.String(), "40 a run", "100 % worse**", "not compared: not measured both times")
}

func TestBadFlags(t *testing.T) {
	t.Parallel()
	broken := filepath.Join(t.TempDir(), "results.json")
	if err := os.WriteFile(broken, []byte(`{"tables":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"-check", broken}, {"-check", broken + "x"}, {},
	} {
		if err := run(t.Context(), append(args, "-peers=peers"), io.Discard, io.Discard); err == nil {
			t.Errorf("%v: accepted", args)
		}
	}
	for args, says := range map[string]string{
		"nothing": `no table "nothing"`, "programs -rounds=0": "-rounds=0: must be at least 1", "programs -slots=x": "flag -slots",
		"programs -tasks=0": "-tasks=0: must be at least 1", "programs -slots=-1": "-slots=-1: must be at least 1",
		"programs -tolerance=-1": "-tolerance=-1", "programs -contenders=TDF,xarg,sargs": `begins with "sargs"`,
		"handlers -contenders=xargs": "no contender is left", "programs -containments=x": "-containments=x: use some of",
		"plans -tasks=0": "-tasks=0: must be at least 1", "plans -needs=x": "flag -needs", "plans -rounds=0": "-rounds", "plans -layer=5 -needs=6": "-needs=6",
		"scale -few=7 -many=6": "-few=7: more than -many=6", "quiet -watch=0s": "-watch=0s: must be above 0",
		"memory disk": `no table "disk"`, "-limit=1ns memory -conf=" + shippedConf: "-limit=1ns is over",
		"fleet -workers=0": "-workers=0: must be at least 1", "fleet -work=1s,soon": `"soon" is not a time`, "fleet -work=-1s": `"-1s" is not a time`,
		"fleet -delay=-1s": "-delay=-1s", "fleet -workers=1000000000": "open files are needed",
		"flow -tasks=0": "-tasks=0: must be at least 1", "flow -age=0s": "-age=0s: must be above 0", "flow -opening=-1s": "-opening=-1s: must be above 0",
		"flow -json=/none/flow.json -tasks=10 -batch=10 -age=1s -conf=" + shippedConf: "/none/flow.json",
	} {
		err := run(t.Context(), append(strings.Fields(args), "-peers=peers"), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", args, err, says)
		}
	}
}

// What is measured ends with its limit, and says which of the two reasons it was.
func TestWithin(t *testing.T) {
	t.Parallel()
	why, broken := errors.New("interrupted"), errors.New("broken")
	for name, c := range map[string]struct {
		interrupt error
		limit     time.Duration
		measure   func(context.Context) error
		want      string
	}{
		"in time":     {nil, time.Hour, func(context.Context) error { return nil }, ""},
		"it fails":    {nil, time.Hour, func(context.Context) error { return broken }, "broken"},
		"too long":    {nil, time.Millisecond, func(ctx context.Context) error { <-ctx.Done(); return broken }, "-limit=1ms is over"},
		"interrupted": {why, time.Hour, func(ctx context.Context) error { return ctx.Err() }, "interrupted"},
		"just done":   {why, time.Hour, func(context.Context) error { return nil }, ""},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if c.interrupt != nil {
			cancel(c.interrupt)
		}
		if err := within(ctx, c.limit, c.measure); (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		cancel(nil)
	}
}

// Names and options come in any order; an earlier result says which tables, and how large.
func TestParse(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "results.json")
	before := &Results{Sizes: map[string]size{"memory": {Tasks: 7, Slots: 3}, "plans": {Tasks: 9, Rounds: 2}}, Tables: []Table{{Name: "memory"}}}
	if err := before.write(file); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string][]size{
		"quiet -tasks 5 memory -slots 4": {{Tasks: 5, Slots: 4}, {Tasks: 5, Slots: 4}},
		"flow":                           {{Tasks: 2_000_000, Slots: 16}},
		"-check " + file:                 {{Tasks: 9, Rounds: 20, Workers: 2, Slots: 8}, {Tasks: 7, Slots: 3}},
		"-rounds 3 plans -check " + file: {{Tasks: 9, Rounds: 3, Workers: 2, Slots: 8}},
		"plans -tasks 1 -check " + file:  {{Tasks: 1, Rounds: 20, Workers: 2, Slots: 8}},
	} {
		o, err := parse(strings.Fields(args), io.Discard)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		var got []size
		for _, d := range o.tables {
			got = append(got, o.given.or(d.size))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", args, got, want)
		}
	}
}

// ended is a run that gives a rate.
func ended(perSecond float64) func(context.Context) (reading, error) {
	return func(context.Context) (reading, error) { return reading{rate.Name: perSecond}, nil }
}

func newBench(t *testing.T, rounds int) *bench {
	t.Helper()
	return &bench{options: &options{runLimit: time.Minute}, size: size{Rounds: rounds}, dir: t.TempDir(), progress: t.Output(), results: &Results{}}
}

// Each round begins with another contender; one that fails is absent, unless it is ours.
func TestRounds(t *testing.T) {
	t.Parallel()
	var order []string
	all := make([]*contender, 3)
	for i, name := range []string{"T", "a", "b"} {
		all[i] = &contender{name: name, peer: i > 0, run: func(context.Context) (reading, error) {
			order = append(order, name)
			if name == "b" && len(order) > 3 {
				return nil, errors.New("b is broken\nwhich is a pity")
			}
			return reading{rate.Name: 1}, nil
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
		return nil, command(ctx, "sleep", "3600").Run()
	}
	b := newBench(t, 1)
	b.runLimit = 10 * time.Millisecond
	_, err := b.rounds(t.Context(), []*contender{{name: "TDF", run: hang}})
	if err == nil || !strings.Contains(err.Error(), "-run-limit=10ms is over") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	peer := &contender{name: "peer", peer: true, run: func(ctx context.Context) (reading, error) {
		cancel()
		return hang(ctx)
	}}
	if _, err := newBench(t, 1).rounds(ctx, []*contender{peer}); !errors.Is(err, context.Canceled) || peer.absent != "" {
		t.Errorf("%v, %q", err, peer.absent)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	all := []*contender{
		{name: "TDF", run: ended(20)}, {name: "a", peer: true, run: ended(10)}, {name: "b", peer: true, run: ended(30)},
		{name: "c", peer: true, run: ended(80)}, {name: "gone", peer: true, absent: "why not"}, {name: "TDF, elsewhere", absent: "why not"},
	}
	b := newBench(t, 2)
	b.strict = true
	tables, err := b.compare(t.Context(), all, comparison{
		Table: Table{Name: "x", Metrics: []Metric{rate}, Reference: "a"}, ratios: []Metric{rate},
		targets: []target{
			{"TDF", "a", rate, 1.5, 2.5}, {"TDF", "c", rate, 0.5, 1}, {"TDF", "gone", rate, 1, 1},
			{"unselected", "a", rate, 1, 1}, {"TDF, elsewhere", "a", rate, 1, 1},
		},
	})
	if !errors.Is(err, errMissed) || !strings.HasSuffix(err.Error(), "TDF in c, tasks a second: 0.25, want 0.5") || len(tables) != 1 {
		t.Fatalf("%v, %d tables", err, len(tables))
	}
	got := tables[0]
	want := map[string]string{
		"a": "2.00 reached", "c": "0.25 not reached", "gone": "0 not measured", "b": "0.67 ",
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
	for _, part := range []string{"| b | 30 | 30-30 | 3.00 |\n", "| gone | absent | | |\n", "; 2 interleaved rounds.\n", "\ngone is absent: why not.\n", "- TDF in b, tasks a second: 0.67 (0.67-0.67)\n"} {
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
	if got := percentiles([]float64{4, 1, 3, 2}); got[p50.Name] != 3 || got[p99.Name] != 4 {
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
		r := Ratio{Row: "TDF", Of: "a", Metric: rate.Name, Spread: Spread{Median: median, Rounds: []float64{median}}}
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
	b.cache = t.TempDir()
	if p := b.bullmq(t.Context()); p.absent != notInstalled {
		t.Errorf("BullMQ: %q", p.absent)
	}
	b.peers = b.cache
	if p := b.asynq(t.Context()); !strings.HasPrefix(p.absent, "go list: ") {
		t.Errorf("asynq: %q", p.absent)
	}
	if c := b.spawn(t.Context(), "run.sh"); c.absent == "" {
		t.Error("a C program that is not there was compiled")
	}
	if absent := b.have(t.Context(), "x", "false"); absent == "" || len(b.results.Versions) > 1 {
		t.Errorf("%q, %v", absent, b.results.Versions)
	}
}

// What the program of a peer reports is the reading, if it is whole.
func TestPeer(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.Rate = 10
	for report, want := range map[string][2]string{
		`{"enqueue_seconds": 1, "process_seconds": 4}`: {"20 tasks a second, 25 without opening, 100 opened a second", ""},
		`{"latencies_ms": [2, 1]}`:                     {"", "2.00 p50 ms, 2.00 p99 ms"},
		`{}`:                                           {},
		`sorry`:                                        {},
	} {
		p := &peer{name: "peer", share: 1, command: func(ctx context.Context, _ string) *exec.Cmd {
			return command(ctx, "sh", "-c", "echo '"+report+"'")
		}}
		for i, n := range []int{100, 2} {
			b.Tasks = n
			c := []*contender{p.life(b), p.latency(b, p.name)}[i]
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

func TestMedianAndRatios(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{7}, 7}, {[]float64{9, 1, 5}, 5}, {[]float64{9, 1, 5, 6}, 5.5}} {
		before := slices.Clone(tc.values)
		if got := median(tc.values); got != tc.want {
			t.Errorf("median of %v: %v", tc.values, got)
		}
		if !slices.Equal(before, tc.values) {
			t.Errorf("%v was sorted in place", before)
		}
	}
	if got := ratios([]float64{4, 9}, []float64{2, 3}); !slices.Equal(got, []float64{2, 3}) {
		t.Error(got)
	}
}
