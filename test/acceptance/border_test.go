package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
)

// speaking says where its control file is, waits, and says something there itself.
const speaking = `echo "$TDF_CONTROL" > "$1.at"; until [ -e "$1.go" ]; do sleep 0.05; done
rm -f "$TDF_CONTROL"; ln -s /etc/passwd "$TDF_CONTROL"; exit 0`

// With run_as, root reads for a task no file that the program's user could not read:
// not through a link in the place of a source, nor in that of the control file.
func TestRootReadsAsTheProgram(t *testing.T) {
	t.Parallel()
	for _, layer := range []string{"group", "pidns"} {
		t.Run(layer, func(t *testing.T) {
			t.Parallel()
			needRoot(t, "have several users")
			w := newWorld(t, "slots=1", "containment="+layer, "run_as=nobody")
			w.worker(t, "w")
			const canary = "canary-of-root"
			secret := w.file(t, "secret", "#!/bin/sh\necho "+canary, 0o700)
			signs := w.own(t, "signs")
			allow(t, signs, 0o777)

			linked := w.script(t, "linked", "")
			source := strings.TrimPrefix(linked.Source, "rsync:")
			if err := os.Remove(source); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(secret, source); err != nil {
				t.Fatal(err)
			}
			if err := os.Lchown(source, nobody, nobody); err != nil {
				t.Fatal(err)
			}
			task := w.await(t, w.open(t, linked)[0], sm.Executed)
			contains(t, "the error", task.Fields["0:error"], "could not fetch program 'linked'", "permission denied",
				"local sources are read as the user that programs run as")
			if _, err := os.Lstat(filepath.Join(w.dir, "w", "linked")); !os.IsNotExist(err) {
				t.Errorf("the program is installed: %v", err)
			}

			speaks := w.script(t, "speaks", speaking)
			speaks.Input = filepath.Join(signs, "s")
			id := w.open(t, speaks)[0]
			made(t, speaks.Input+".at")
			var at string
			wait.Eventually(t, patience, func() bool {
				text, err := os.ReadFile(speaks.Input + ".at")
				at = strings.TrimSpace(string(text))
				return err == nil && at != ""
			}, "the program does not say where its control file is")
			// As a hard link to a file of root's would be.
			if err := os.WriteFile(at, []byte("progress=0.5 "+canary+"\nresult="+canary+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			w.notRead(t, at)
			w.file(t, filepath.Join("signs", "s.go"), "", 0o644)
			task = w.await(t, id, sm.Executed)
			checkFields(t, task, map[string]string{"0:exit_code": "0"})
			if text := fmt.Sprint(w.hash(t, id)); strings.Contains(text, canary) {
				t.Errorf("the record holds what root alone may read: %s", text)
			}
		})
	}
}

// notRead waits until the worker must have looked at a file, which it does each second.
func (w *world) notRead(t *testing.T, file string) {
	t.Helper()
	for range 2 { // a task is heard once a second, and so is its progress
		before := w.redisNow(t)
		wait.Eventually(t, patience, func() bool { return w.redisNow(t) > before+1_100_000 }, "time stands still")
	}
	if _, err := os.Lstat(file); err != nil {
		t.Errorf("the control file is gone: %v", err)
	}
}
