package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// The record of a round has everything about it.
func TestRecord(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	long := strings.Repeat("x", 3000) + "\n"
	id := s.open(t, s.script(t, "p", `i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; head -c 3000 /dev/zero | tr '\0' x; echo; exit 3`))
	w := s.start(t, setting(t, "output_limit=1KiB", "node=node-7"))
	task := s.await(t, id, sm.Executed)
	hash := sha256.Sum256([]byte(long))
	checkFields(t, task, map[string]string{
		"0:worker": "w", "0:node": "node-7", "0:incarnation": "1", "0:claim": "*", "0:running": "*", "0:executed": "*",
		"0:exit_code": "3", "0:signal": "-", "0:user_time": "*", "0:system_time": "*", "0:max_memory": "*",
		"0:output_bytes": "3001", "0:output_sha256": hex.EncodeToString(hash[:]), "0:error_bytes": "-", "0:program_sha256": "*",
	})
	if user, err := sm.ParseDuration(task.Fields["0:user_time"]); err != nil || user == 0 {
		t.Errorf("user time %q", task.Fields["0:user_time"])
	}
	if n, err := strconv.Atoi(task.Fields["0:max_memory"]); err != nil || n < 100<<10 || n > 1<<30 {
		t.Errorf("max_memory %q, want that of a shell, in bytes", task.Fields["0:max_memory"])
	}
	version := filepath.Join(w.opts.ProgramDir, "p", task.Fields["0:program_sha256"])
	if _, err := os.Stat(filepath.Join(version, "run.sh")); err != nil || len(task.Fields["0:program_sha256"]) != 64 {
		t.Errorf("program_sha256 %q, want the version that has run: %v", task.Fields["0:program_sha256"], err)
	}
}

func TestDropRound(t *testing.T) {
	t.Parallel()
	for keep, want := range map[int][]int{
		0: nil, 1: {0, 1, 2, 3, 4, 5, 6}, 2: {1, 2, 3, 4, 5, 6}, 3: {1, 2, 3, 4, 5}, 5: {2, 3, 4}, 100: nil,
	} {
		var gone []int
		for round := range 8 {
			if d := dropRound(round, keep); d >= 0 {
				gone = append(gone, d)
			}
		}
		if !slices.Equal(gone, want) {
			t.Errorf("keeping %d of 8 rounds drops %v, want %v", keep, gone, want)
		}
	}
}

// A task that fails again and again keeps its first and last outputs.
func TestKeepRounds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.open(t, s.script(t, "p", `echo out $TDF_ROUND; echo bad >&2`), func(sp *task.Definition) { storetest.Set(sp, "max_fails", "5") })
	s.start(t, setting(t, "keep_rounds=3"))
	task := s.settle(t, id, sm.Failed)
	for round := range 6 {
		want := map[string]string{"output": "out " + strconv.Itoa(round) + "\n", "error": "bad\n", "dropped": "-"}
		if round > 0 && round < 4 {
			want = map[string]string{"output": "-", "error": "-", "dropped": "1"}
		}
		for name, value := range want {
			checkFields(t, task, map[string]string{sm.RoundField(round, name): value})
		}
	}
}

// It does so too with output that is kept beside its record.
func TestKeepRoundsOfWholeOutput(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.open(t, s.script(t, "p", "head -c 1100 /dev/zero; exit 1"), func(sp *task.Definition) { storetest.Set(sp, "max_fails", "2") })
	s.start(t, setting(t, "keep_rounds=2", "output_limit=1KiB"))
	task := s.settle(t, id, sm.Failed)
	for round, want := range []string{"*", "-", "*"} {
		checkFields(t, task, map[string]string{sm.RoundField(round, "whole"): want})
	}
}

// A program says how far it has come.
func TestProgramProgress(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	started, release := twoFiles(t)
	id := s.open(t, s.script(t, "p", `echo "progress=0.25 first" > $TDF_CONTROL; echo progress=0.5 second >> $TDF_CONTROL; `+waiting),
		input(started+" "+release))
	s.start(t)
	awaitFile(t, started)
	wait.Eventually(t, patience, func() bool { return s.Task(t, id).Fields["0:progress"] == "0.5 second" }, "no progress")
	touch(t, release)
	s.await(t, id, sm.Executed)
}

// What a program says last is recorded, also if it ends at once.
func TestLastProgress(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.open(t, s.script(t, "p", `echo progress=1 all done > $TDF_CONTROL; echo what=ever >> $TDF_CONTROL`))
	s.start(t)
	task := s.await(t, id, sm.Executed)
	checkFields(t, task, map[string]string{"0:progress": "1 all done"})
	checkContains(t, "log", task.Fields["log"], "control file: ", "what")
}

// What a program says of its attributes is recorded, while it runs and when it ends; its next round has it. What others set meanwhile stays.
func TestProgramAttributes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	started, release := twoFiles(t)
	script := `if [ $TDF_ROUND = 1 ]; then echo "$TDF_META_PHASE $TDF_META_OWNER $TDF_META_LAST"; exit; fi
		echo "attr phase=load" > $TDF_CONTROL; ` + waiting + `; echo "attr  last = =end" >> $TDF_CONTROL; echo "attr No=x" >> $TDF_CONTROL; exit 1`
	id := s.open(t, s.script(t, "p", script), input(started+" "+release), func(sp *task.Definition) {
		storetest.Set(sp, "max_fails", "1", "meta", `{"owner":"ann","phase":"new"}`)
	})
	s.start(t)
	awaitFile(t, started)
	meta := func() map[string]string { return task.Decode(id, s.Task(t, id).Fields).Meta }
	wait.Eventually(t, patience, func() bool { return meta()["phase"] == "load" }, "no attribute")
	if _, _, err := s.Store.SetMeta(t.Context(), []int64{id}, tasks.MetaChange{Set: map[string]string{"phase": "by hand"}}); err != nil {
		t.Fatal(err)
	}
	touch(t, release)
	got := s.finish(t, id, sm.Succeeded)
	if is := meta(); is["phase"] != "by hand" || is["last"] != "=end" || is["owner"] != "ann" || len(is) != 3 {
		t.Errorf("the attributes are %q", is)
	}
	checkFields(t, got, map[string]string{"1:output": "by hand ann =end\n"})
	checkContains(t, "log", got.Fields["log"], "control file: attr No: field meta: ", "small letters")
}

// A program that sets more attributes than a task may have finds that in the log, and the others stay.
func TestTooManyAttributes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	started, release := twoFiles(t)
	id := s.open(t, s.script(t, "p", `for i in $(seq 33); do echo "attr n$i=x"; done > $TDF_CONTROL; `+waiting), input(started+" "+release))
	s.start(t)
	awaitFile(t, started)
	touch(t, release)
	got := s.await(t, id, sm.Executed)
	checkContains(t, "log", got.Fields["log"], "at most 32 attributes", "remove some first")
	checkFields(t, got, map[string]string{"meta": "-"})
}

// Somebody who follows a task sees what it writes while it runs.
func TestLiveOutput(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	started, release := twoFiles(t)
	id := s.open(t, s.script(t, "p", `echo early; echo aside >&2; `+waiting), input(started+" "+release),
		func(sp *task.Definition) { storetest.Set(sp, "fail_on", "exit") })
	s.start(t)
	awaitFile(t, started)
	if n := s.Raw.Exists(t.Context(), s.Key("live:1")).Val(); n != 0 {
		t.Error("output is sent although nobody follows")
	}
	if err := s.Store.Follow(t.Context(), id, 10*time.Second, true); err != nil {
		t.Fatal(err)
	}
	seen, after := map[string]string{}, ""
	wait.Eventually(t, patience, func() bool {
		chunks, next, err := s.Store.Chunks(t.Context(), id, after, 0)
		if err != nil {
			t.Fatal(err)
		}
		after = next
		for _, c := range chunks {
			seen[c.Stream] += string(c.Data)
		}
		return seen["output"] == "early\n" && seen["error"] == "aside\n"
	}, "the output is not sent: %v", seen)
	if state := s.Task(t, id).State; state != sm.Running {
		t.Errorf("the task is %s", state)
	}
	touch(t, release)
	s.await(t, id, sm.Executed)
}
