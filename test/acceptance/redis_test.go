package acceptance

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/daemontest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// outage is how long Redis is away.
const outage = 5 * time.Second

// A44, T14: Redis is killed in the middle of the work and is back after 5 s.
// All programs carry on, nothing is lost, and nothing counts twice.
func TestRedisOutage(t *testing.T) {
	t.Parallel()
	w := worldOn(t, appendOnly(t))
	w.all(t)
	w.worker(t, "w2")
	ledger := filepath.Join(w.dir, "ledger")
	spec := w.script(t, "p", `echo "$TDF_TASK_ID/$TDF_ROUND" >> "$1"; sleep 0.2; echo done`)
	spec.Input = ledger
	const tasks = 30
	specs := make([]task.Spec, tasks)
	for i := range specs {
		specs[i] = spec
	}
	ids := w.open(t, specs...)
	w.archived(t, ids[3], sm.Succeeded)
	w.Server.Kill(t)
	wait.Never(t, outage, func() bool {
		for _, d := range w.daemons {
			if d.Ended() {
				return true
			}
		}
		return false
	}, "a program has ended while Redis was away")
	w.Server.Restart(t)
	ids = append(ids, w.open(t, spec)...)
	for _, id := range ids {
		task := w.archived(t, id, sm.Succeeded)
		checkFields(t, task, map[string]string{"round": "0", "0:output": "done\n", "0:error": ""})
	}
	text, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if n := strings.Count("\n"+string(text), fmt.Sprintf("\n%d/0\n", id)); n != 1 {
			t.Errorf("round 0 of task %d ran %d times", id, n)
		}
	}
	w.sound(t)
	t.Run("log is JSON", func(t *testing.T) {
		for _, d := range w.daemons {
			for line := range strings.Lines(d.Log.String()) {
				if !json.Valid([]byte(line)) {
					t.Fatalf("%v logs a line that is no JSON: %s", d.Args, line)
				}
			}
		}
	})
}

// A Redis that refuses to answer has not said that tasks are gone: here its
// user is removed while tdf-manager waits for a task. It may give up, but must
// not call the task damaged or unknown.
func TestRefusedReadIsNoDamage(t *testing.T) {
	t.Parallel()
	sp := storetest.On(t, redistest.Start(t))
	sp.Server.Do(t, "ACL", "SETUSER", "guest", "on", ">guest", "~*", "&*", "+@all")
	sp.Where.Username, sp.Where.Password = "guest", "guest"
	w := worldOn(t, sp)
	spec := w.script(t, "p", "true")
	spec.StartAfter = at(w.redisNow(t).Add(3600 * sm.Second))
	w.open(t, spec)
	command := exec.Command(program(t, "tdf-manager"), "--config", w.cfg, "wait", "--timeout", "3")
	var out daemontest.Output
	command.Stdout, command.Stderr = &out, &out
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	wait.Eventually(t, patience, func() bool {
		clients, _ := sp.Server.Do(t, "CLIENT", "LIST").(string)
		return strings.Contains(clients, " sub=1 ") // it listens, so it has seen its task
	}, "tdf-manager does not wait")
	sp.Server.Do(t, "ACL", "DELUSER", "guest")
	_ = command.Wait() // the exit code says it
	if code := command.ProcessState.ExitCode(); code != 3 && code != 4 {
		t.Errorf("wait ended with %d, want 3 (no Redis) or 4 (timed out):\n%s", code, &out)
	}
	if strings.Contains(out.String(), "damaged") || strings.Contains(out.String(), "no such task") {
		t.Errorf("wait says of a task it could not read:\n%s", &out)
	}
}

// A44: password=None without a password, and a password with one,
// from the file and from the environment.
func TestPasswords(t *testing.T) {
	t.Parallel()
	for name, srv := range map[string]*redistest.Server{
		"None": redistest.Shared(t), "some": redistest.Start(t, redistest.WithPassword("pa#ss;word")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.On(t, srv)
			sp.Where = storetest.Where(srv)
			if name == "None" {
				sp.Where.Username, sp.Where.Password = "None", "None"
			}
			w := worldOn(t, sp)
			_, worker, _ := w.all(t)
			w.archived(t, w.open(t, w.script(t, "p", "env"))[0], sm.Succeeded)
			for _, d := range w.daemons {
				if strings.Contains(d.Log.String(), "pa#ss") {
					t.Errorf("%v shows the password", d.Args)
				}
			}
			if strings.Contains(w.hash(t, 1)["0:output"], "pa#ss") || worker.Ended() {
				t.Error("run.sh sees the password, or the worker has ended")
			}
		})
	}
}
