package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	sm "github.com/tdf-go/tdf/statemachine"
)

// spy reads whatever it can of what is not its own: environments, command lines
// and descriptors of all processes, what other rounds have in their private
// directories, and the files named by its words.
// Descriptor 3 of ls is that of the directory it reads.
const spy = `echo descriptors: $(ls /proc/self/fd), stdin: $(readlink /proc/self/fd/0)
for p in /proc/[0-9]*; do
	for f in environ cmdline; do tr '\0' '\n' < $p/$f; done
	for f in $p/fd/*; do readlink $f; [ ! -f $f ] || head -c 10000 $f; done; :
done 2>/dev/null
for f in "$@" "$TDF_WORKDIR"/../*/secret; do cat $f && echo "read $f"; done 2>/dev/null
env; echo end`

// hoard keeps a secret in its private directory until it is told to go.
const hoard = `umask 0; echo canary-private > "$TDF_WORKDIR/secret"; echo > "$1.begun"
until [ -e "$1.go" ]; do sleep 0.05; done`

// F5: a program finds no secret of its worker, nor of rounds of another user:
// not in environments, configuration, descriptors nor private directories.
func TestProgramsFindNoSecrets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		user bool // the worker is an ordinary user
		set  []string
	}{
		"pidns, run_as": {false, []string{"containment=pidns", "run_as=nobody"}},
		"group, run_as": {false, []string{"containment=group", "run_as=nobody"}},
		"group, user":   {true, []string{"containment=group"}},
		"pidns, user":   {true, []string{"containment=pidns"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needRoot(t, "have several users")
			srv := redistest.Shared(t)
			w := worldOn(t, reachable(t, srv), "require_containment=true", "slots=1")
			out := w.spied(t, c.user, c.set)
			contains(t, "the program's output", out, "descriptors: 0 1 2 3, stdin: /dev/null\n", "TDF_TASK_ID=2\n", "\nend\n")
			secrets := []string{w.envSecret(), "canary-file", "canary-private", srv.Socket()} // others may be those of other tests
			if !c.user {                                                                      // what its own user can read is no secret
				secrets = append(secrets, w.Where.Password)
			}
			for _, secret := range secrets {
				if strings.Contains(out, secret) {
					t.Errorf("the program has found %s", secret)
				}
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

// envSecret is a secret in the environment of this worker alone: that of another test's, which is just
// starting as the same user, may be found.
func (w *world) envSecret() string { return "canary-" + w.Namespace }

// spied runs the spy beside a round that has a secret, and returns what it wrote.
func (w *world) spied(t *testing.T, user bool, set []string) string {
	t.Helper()
	signs := w.own(t, "signs")
	hoarder, spies := w.script(t, "hoarder", hoard), w.script(t, "spy", spy)
	leak, err := os.Open(w.file(t, "leak", "canary-file", 0o600)) // inherited by the worker
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = leak.Close() }()
	cmd := &exec.Cmd{Path: program(t, "tdf-worker"), Dir: w.own(t, "w"), Env: []string{"SECRET_TOKEN=" + w.envSecret()}}
	cmd.Args = append([]string{"tdf-worker"}, w.workerArgs("w", set...)...)
	cmd.ExtraFiles = []*os.File{leak, leak}
	if user {
		w.asUser(t, cmd)
	}
	hoarder.Input = filepath.Join(signs, "sign")
	w.open(t, hoarder)
	w.worker(t, "other")
	made(t, hoarder.Input+".begun")
	w.start(t, cmd)
	spies.Input = w.cfg
	task := w.await(t, w.open(t, spies)[0], sm.Executed)
	w.file(t, filepath.Join("signs", "sign.go"), "", 0o644)
	return task.Fields["0:output"]
}
