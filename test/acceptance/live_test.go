package acceptance

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
)

// A reader in another directory sees a line while the program still runs, and
// then the rest; what nobody follows is not sent.
func TestFollow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "slots=2")
	w.server(t)
	w.worker(t, "w")
	spec := w.script(t, "p", `printf 'one\ntw'; echo begun > "$1.$TDF_TASK_ID"
until [ -e "$1.go" ]; do sleep 0.05; done; echo o; echo bad >&2; echo three`)
	spec.Input = filepath.Join(w.dir, "sign")
	ids := w.open(t, spec, spec)
	for _, id := range ids {
		made(t, spec.Input+"."+id2text(id))
	}
	seen := w.start(t, &exec.Cmd{Path: program(t, "tdf-manager"), Dir: t.TempDir(), Args: []string{
		"tdf-manager", "--config", w.cfg, "logs", "--follow", id2text(ids[0]),
	}})
	seen.Says(t, "one\ntw")
	if w.state(t, ids[0]) != sm.Running || strings.Contains(seen.Log.String(), "three") || seen.Ended() {
		t.Errorf("the task is %s, the reader says %q", w.state(t, ids[0]), seen.Log)
	}
	w.file(t, "sign.go", "", 0o644)
	wait.Closed(t, patience, seen.Done, "the reader does not end")
	if got := seen.Log.String(); got != "one\ntwo\nthree\n" {
		t.Errorf("the reader says %q", got)
	}
	w.await(t, ids[1], sm.Failed)
	if n := w.Raw.Exists(t.Context(), w.Key("live:"+id2text(ids[1]))).Val(); n != 0 {
		t.Error("what nobody follows was sent")
	}
	if n := w.Raw.Exists(t.Context(), w.Key("live:"+id2text(ids[0]))).Val(); n != 1 {
		t.Error("what is followed is not where it is looked for: the test would prove nothing")
	}
}
