package acceptance

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/sandbox/capture"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
)

// flood writes 10 GiB; floodHash is
// (echo begin; head -c 10737418230 /dev/zero; echo end) | sha256sum.
const (
	flood     = "echo begin; head -c 10737418230 /dev/zero; echo end"
	floodSize = 10 << 30
	floodHash = "569c81df4c1349173a1637903731c89497cd6cf97663db0fee276d42ef704b67"
)

// mostMemory is what a worker and each shim may take, in bytes.
const mostMemory = 100 << 20

// E1: 10 GiB on stdout. The task finishes, head, tail and hash are right, and
// neither worker nor shim nor Redis have grown by more than a few MB.
func TestLongFlood(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes 20 s")
	}
	w := worldOn(t, storetest.On(t, redistest.Start(t)), "output_limit=1MiB")
	if err := w.Store.LoadScripts(t.Context()); err != nil { // which are not of the flood
		t.Fatal(err)
	}
	before := w.redisMemory(t)
	worker := w.start(t, &exec.Cmd{
		Path: plainWorker(t), Dir: w.own(t, "w"), Args: append([]string{"tdf-worker"}, w.workerArgs("w")...),
	})
	id := w.open(t, w.script(t, "flood", flood))[0]
	wait.Eventually(t, 4*patience, func() bool { return w.state(t, id) == sm.Executed }, "the flood does not end")
	for _, pid := range append(shimsOf(t, worker), worker.Process.Pid) {
		peak := peakMemory(t, pid)
		t.Logf("process %d took %d MiB at most", pid, peak>>20)
		if peak > mostMemory {
			t.Error("that is too much")
		}
	}
	// What the report passed through, buffers and garbage of the script, Redis gives back soon.
	wait.Eventually(t, patience, func() bool { return w.redisMemory(t)-before <= 4<<20 }, "redis has grown by more than 4 MiB")
	t.Logf("redis has grown by %d KiB", (w.redisMemory(t)-before)>>10)
	task := w.Task(t, id)
	checkFields(t, task, map[string]string{
		"0:exit_code": "0", "0:error": "", "0:output_bytes": strconv.Itoa(floodSize), "0:output_sha256": floodHash,
		"0:output": "begin\n" + strings.Repeat("\x00", 1<<19-6) + capture.Marker(floodSize-1<<20) +
			strings.Repeat("\x00", 1<<19-4) + "end\n",
	})
	if worker.Ended() {
		t.Error("the worker has ended")
	}
}

// plainWorker builds tdf-worker as users do, without the race detector.
func plainWorker(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-o", dir, "github.com/tdf-go/tdf/cmd/tdf-worker")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return filepath.Join(dir, "tdf-worker")
}

// peakMemory is the most resident memory a process had, in bytes.
func peakMemory(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, found := strings.Cut(string(status), "\nVmHWM:")
	var kib int64
	if _, scanErr := fmt.Sscan(rest, &kib); err != nil || !found || scanErr != nil {
		t.Fatalf("memory of process %d: %v, %v", pid, err, scanErr)
	}
	return kib << 10
}

// redisMemory is what Redis uses, in bytes.
func (w *world) redisMemory(t *testing.T) int64 {
	t.Helper()
	info, err := w.Raw.Info(t.Context(), "memory").Result()
	_, rest, found := strings.Cut(info, "used_memory:")
	var used int64
	if _, scanErr := fmt.Sscan(rest, &used); err != nil || !found || scanErr != nil {
		t.Fatalf("memory of redis: %v, %v", err, scanErr)
	}
	return used
}

// E2: what comes drop by drop, without a line end, or is no text at all is
// recorded byte by byte up to the limit.
func TestOddOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "output_limit=1MiB", "slots=3")
	w.worker(t, "w")
	const long = 100_000_000
	binary := bytes.Repeat([]byte("\x00a\xff\xfe\xc3\x28\r\n\x1b[0m\xed\xa0\x80"), 3000)
	data := w.file(t, "data", string(binary), 0o644)
	var drops strings.Builder
	for i := range 300 {
		fmt.Fprint(&drops, (i+1)%10)
	}
	half := strings.Repeat("x", 1<<19)
	sum := sha256.Sum256(bytes.Repeat([]byte("x"), long))
	cases := map[string]struct {
		body string
		want map[string]string
	}{
		"drops": {"for i in $(seq 300); do printf $((i % 10)); sleep 0.001; done", map[string]string{
			"0:output": drops.String(), "0:output_bytes": "-", "0:output_sha256": "-",
		}},
		"one line": {fmt.Sprintf(`head -c %d /dev/zero | tr '\0' x`, long), map[string]string{
			"0:output":       half + capture.Marker(long-1<<20) + half,
			"0:output_bytes": strconv.Itoa(long), "0:output_sha256": hex.EncodeToString(sum[:]),
		}},
		"binary": {"cat " + data, map[string]string{"0:output": string(binary), "0:output_bytes": "-"}},
	}
	ids := map[string]int64{}
	for name, c := range cases {
		ids[name] = w.open(t, w.script(t, strings.ReplaceAll(name, " ", "-"), c.body))[0]
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			task := w.await(t, ids[name], sm.Executed)
			checkFields(t, task, map[string]string{"0:exit_code": "0", "0:error": ""})
			checkFields(t, task, c.want)
		})
	}
}

// 100 MB of output and 50 files come back to the last byte. Of output beyond output_max, the loss is named, or fails the task that
// forbids it; the files come back.
func TestMuchOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "slots=1")
	w.server(t)
	w.worker(t, "roomy", "env=roomy", "output_max=128MiB")
	w.worker(t, "narrow", "env=narrow", "output_max=2MiB")
	const size = 100_000_000
	command := fmt.Sprintf("mkdir out; for n in $(seq 50); do echo $n > out/$n; done; head -c %d /dev/zero", size)
	submit := func(code int, env string, flags ...string) (said string) {
		t.Helper()
		args := append([]string{"submit", "--wait", "--return", "out", "--environment", env}, flags...)
		_, said = w.manage(t, code, append(args, "--", "sh", "-c", command)...)
		return said
	}
	dir := filepath.Join(w.dir, "results")
	collect := func(code int, id string) {
		t.Helper()
		w.manage(t, code, "results", "--dir", dir, id)
		if all, err := os.ReadDir(filepath.Join(dir, id, "files", "out")); err != nil || len(all) != 50 {
			t.Errorf("task %s has returned %d files, %v", id, len(all), err)
		}
	}
	if said := submit(0, "roomy"); strings.Contains(said, "lost") {
		t.Errorf("nothing is lost: %s", said)
	}
	collect(0, "1")
	if info, err := os.Stat(filepath.Join(dir, "1", "output")); err != nil || info.Size() != size {
		t.Errorf("output: %v, %v", info, err)
	}
	contains(t, "wait", submit(0, "narrow"), "1 lost a part of their output or files")
	contains(t, "ls", w.text(t, "ls", "2"), "succeeded (cut)")
	collect(1, "2")
	submit(1, "narrow", "--on-cut", "fail")
	contains(t, "error", w.hash(t, 3)["0:error"], "output_max (2097152 bytes)", "on_cut is fail")
	w.sound(t)
}
