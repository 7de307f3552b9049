package acceptance

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mholt/archiver/v4"

	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// full is what every round has to say that met a full disk.
const full = "no space left on device"

// E6: the worker's disk is full while a program is fetched, is unpacked, or
// writes its output, or while its files are packed. That round fails and says why; the next one works, and with
// no room at all nothing is claimed until there is some again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("not compressed, so it is as big as it looks\n", 5<<20/44)
	archive := tarOf(t, entry{name: "run.sh", body: "#!/bin/sh\n", mode: 0o755}, entry{name: "big", body: big, mode: 0o644})
	// The worker's own steps are tried again before that counts.
	short := map[string]string{"releases": "3", "0:class": "shortage", "3:class": "shortage", "3:output": "", "3:exit_code": "-"}
	cases := map[string]struct {
		set  []string // settings that use the disk DISK
		spec func(s *shelf, w *world) task.Spec
		want map[string]string
	}{
		"fetch": {[]string{"program_dir=DISK"}, func(s *shelf, _ *world) task.Spec {
			return task.Spec{Program: "big", Source: s.url + "/big.tar"}
		}, short},
		"unpack": {[]string{"program_dir=DISK"}, func(s *shelf, _ *world) task.Spec {
			return task.Spec{Program: "big", Source: s.url + "/big.tar.gz"}
		}, short},
		"output": {[]string{"program_dir=DISK", "task_output_filename=DISK/out"}, func(_ *shelf, w *world) task.Spec {
			return w.script(t, "writer", "head -c 5000000 /dev/zero; echo end")
		}, map[string]string{"0:output": "*", "0:output_bytes": "5000004", "0:exit_code": "0"}},
		"private": {[]string{"temp_dir=DISK"}, func(_ *shelf, w *world) task.Spec {
			return w.script(t, "hoarder", `head -c 5000000 /dev/zero > "$TDF_WORKDIR/hoard"`)
		}, map[string]string{"0:exit_code": "1"}},
		"return": {[]string{"temp_dir=DISK"}, func(_ *shelf, w *world) task.Spec {
			spec := w.script(t, "noisy", "head -c 1800000 /dev/urandom > noise")
			spec.Return = []string{"noise"}
			return spec
		}, map[string]string{"0:exit_code": "0", "0:class": "infrastructure", "0:files": "-", "cut": "0 files"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := hosttest.SmallDisk(t, "3m")
			allow(t, disk, 0o777)
			w := newWorld(t, "disk_reserve=1MiB", "slots=1")
			s := newShelf(t, w, map[string][]byte{"big.tar": archive, "big.tar.gz": packed(t, archiver.Gz{}, archive)})
			set := strings.Split(strings.ReplaceAll(strings.Join(c.set, "\n"), "DISK", disk), "\n")
			worker := w.worker(t, "w", set...)
			id := w.open(t, c.spec(s, w))[0]
			task := w.await(t, id, sm.Executed)
			contains(t, "error", strings.ToLower(last(task, "error")), full)
			checkFields(t, task, c.want)
			if name == "output" {
				_ = os.Remove(filepath.Join(disk, "out")) // it is kept, as far as it came
			}
			w.pauses(t, worker, disk)
		})
	}
}

// pauses fills the disk: the worker claims nothing and says so, and goes on by
// itself when there is room.
func (w *world) pauses(t *testing.T, worker *daemon, disk string) {
	t.Helper()
	small := w.script(t, "small", "echo fits")
	w.await(t, w.open(t, small)[0], sm.Executed)
	filler := hosttest.FillDisk(t, disk)
	worker.Says(t, "claiming nothing")
	worker.Says(t, "disk_reserve")
	wait.Eventually(t, patience, func() bool {
		info, _, err := w.Store.Worker(t.Context(), "w")
		return err == nil && strings.Contains(info.Reason, disk)
	}, "the registry does not say why nothing is claimed")
	id := w.open(t, small)[0]
	wait.Never(t, time.Second, func() bool { return w.state(t, id) != sm.Open }, "a task was claimed with a full disk")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if task := w.await(t, id, sm.Executed); last(task, "output") != "fits\n" || last(task, "error") != "" {
		t.Errorf("output %q, error %q", last(task, "output"), last(task, "error"))
	}
	worker.Says(t, "claiming again")
	wait.Eventually(t, patience, func() bool {
		info, _, err := w.Store.Worker(t.Context(), "w")
		return err == nil && info.Reason == ""
	}, "the registry still says why nothing is claimed")
	if worker.Ended() {
		t.Error("the worker has ended")
	}
}

// E6, the spool: Redis is away and the disk for results is full. The result
// waits in memory, the worker says so, and nothing is lost when Redis is back.
func TestFullSpool(t *testing.T) {
	t.Parallel()
	disk := hosttest.SmallDisk(t, "1m")
	allow(t, disk, 0o777)
	w := worldOn(t, appendOnly(t), "disk_reserve=64KiB", "slots=1", "on_redis_loss=finish")
	worker := w.worker(t, "w", "spool_dir="+filepath.Join(disk, "spool"))
	spec := w.script(t, "p", `echo > "$1.begun"; until [ -e "$1.go" ]; do sleep 0.02; done; echo done`)
	spec.Input = filepath.Join(w.dir, "sign")
	ids := w.open(t, spec, spec) // a Redis that was started anew opens none before a server has confirmed it
	id, again := ids[0], ids[1]
	made(t, spec.Input+".begun")
	filler := hosttest.FillDisk(t, disk)
	w.Server.Kill(t)
	w.file(t, "sign.go", "", 0o644)
	worker.Says(t, "could not keep a result on disk")
	worker.Says(t, full)
	w.Server.Restart(t)
	checkFields(t, w.await(t, id, sm.Executed), map[string]string{"0:output": "done\n", "0:error": "", "round": "0"})
	worker.Says(t, "claiming nothing")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	w.await(t, again, sm.Executed)
}

// The disk that files are returned to is full: the round fails, through no fault of its program, says what to do and leaves nothing
// there. A retry has them when there is room, and so has the next round of a task that is not charged for what is not its fault.
func TestReturnToAFullDisk(t *testing.T) {
	t.Parallel()
	disk := hosttest.SmallDisk(t, "3m")
	allow(t, disk, 0o777)
	w := newWorld(t, "slots=2", "output_limit=1KiB")
	w.all(t)
	filler := hosttest.FillDisk(t, disk)
	wantThere := func(want ...string) {
		t.Helper()
		entries, err := os.ReadDir(disk)
		names := make([]string, 0, len(entries))
		for _, e := range entries {
			if name := filepath.Join(disk, e.Name()); name != filler {
				names = append(names, e.Name())
			}
		}
		if !slices.Equal(names, want) || err != nil {
			t.Errorf("there are %v, want %v: %v", names, want, err)
		}
	}
	const write = "mkdir out; seq 20000 > out/one; seq 20000 > out/two; seq 2000"
	w.manage(t, 1, "submit", "--wait", "--return", "out", "--return-to", disk, "--", "sh", "-c", write)
	wantThere()
	failed := w.hash(t, 1)
	for field, want := range map[string]string{"state": "archived", "outcome": "failed", "0:class": "infrastructure", "0:exit_code": "0", "cut": "0 output files"} {
		if failed[field] != want {
			t.Errorf("%s is %q, want %q", field, failed[field], want)
		}
	}
	contains(t, "error", failed["0:error"], "could not return files: destination file:"+disk+": ", full, "make room there")
	contains(t, "log", failed["log"], "not all of output is kept: destination file:"+disk+": ", full)
	_, stderr := w.manage(t, 1, "wait", "1")
	contains(t, "wait", stderr, "1 lost a part of their output or files")
	w.manage(t, 0, "submit", "--return", "out", "--return-to", disk, "--charge", "program", "--max-faults", "unlimited", "--retry-delay", "0.1",
		"--", "sh", "-c", write)
	wait.Eventually(t, patience, func() bool { return w.hash(t, 2)["1:class"] == "infrastructure" }, "it is not tried again")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	w.manage(t, 0, "wait", "2")
	round := w.hash(t, 2)["round"]
	wantThere("2."+round, "2."+round+".logs")
	w.manage(t, 0, "retry", "1")
	w.manage(t, 0, "wait", "3")
	wantThere("2."+round, "2."+round+".logs", "3.0", "3.0.logs")
	dir := filepath.Join(w.dir, "results")
	w.manage(t, 0, "results", "--dir", dir, "2-3")
	for _, name := range []string{"2/files/out/two", "3/files/out/two", "3/output"} {
		lines := map[bool]int{true: 2000, false: 20000}[filepath.Base(name) == "output"]
		if text, err := os.ReadFile(filepath.Join(dir, name)); strings.Count(string(text), "\n") != lines || err != nil {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
	}
	w.sound(t)
}
