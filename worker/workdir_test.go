package worker

import (
	"os"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// leaving are ways to leave something in the private directory.
var leaving = []string{
	"touch f", "touch .f", "mkdir d", "ln -s x l", "mkfifo p", "touch ../$TDF_TASK_ID; ln ../$TDF_TASK_ID h; rm ../$TDF_TASK_ID", "chmod 755 .",
	`mv "$TDF_WORKDIR" "$TDF_WORKDIR.x"; mkdir -m 700 "$TDF_WORKDIR"; touch "$TDF_WORKDIR/f"`,
	`rmdir "$TDF_WORKDIR"`, `echo progress=0.5 > "$TDF_CONTROL"`,
}

// A round finds its directory empty and its own, whatever the rounds before have left in
// theirs: at once, and when the slot has kept one for a while. The worker leaves nothing
// at its end but what a program has moved out of its directory.
func TestPrivateDirectoryIsClean(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.script(t, "p", `cd "$TDF_WORKDIR" || exit; stat -c '%a %i' .; ls -A; eval "$1"`)
	r := s.start(t)
	round := func(leave string) (inode string) {
		t.Helper()
		words := func(d *task.Definition) { storetest.Set(d, "argv", `["`+strings.ReplaceAll(leave, `"`, `\"`)+`"]`) }
		task := s.await(t, s.open(t, p, words), sm.Executed)
		out := strings.Fields(task.Fields["0:output"])
		if len(out) != 2 || out[0] != "700" || task.Fields["0:error"] != "" {
			t.Fatalf("before %q: output %q, error %q", leave, task.Fields["0:output"], task.Fields["0:error"])
		}
		if told := task.Fields["0:progress"]; (told != "") != strings.Contains(leave, "progress") {
			t.Errorf("%q: progress %q", leave, told)
		}
		return out[1]
	}
	last := round(":")
	for _, leave := range leaving {
		for range 6 { // after some of them one look is enough
			if inode := round(":"); inode != last {
				t.Errorf("before %q: a directory that was left alone was not kept", leave)
				last = inode
			}
		}
		if inode := round(leave); inode != last {
			t.Errorf("%q: a directory that was left alone was not kept", leave)
		}
		round(leave) // in the next, the first look is not enough
		last = round(":")
	}
	r.stop(t)
	left, err := os.ReadDir(r.opts.TempDir)
	if err == nil && len(left) == 1 {
		left, err = os.ReadDir(r.opts.TempDir + "/" + left[0].Name())
	}
	if err != nil || len(left) != 2 || !strings.HasSuffix(left[0].Name()+left[1].Name(), ".x") {
		t.Errorf("left are %v, %v", left, err)
	}
}
