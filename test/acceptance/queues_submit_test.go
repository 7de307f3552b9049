package acceptance

import (
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/tdf-go/tdf/internal/base/cli"
	sm "github.com/tdf-go/tdf/statemachine"
)

// D19, the store side: 1,000 definitions at once become 1,000 tasks, in their
// order; with one bad one among them nothing is opened, and the line is named.
func TestThousandAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queue(t, "q")
	lines := make([]string, 1000)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"program":"p","source":"rsync:/run.sh","input":"%d","queue":"q"}`, i)
	}
	object := w.object(t, 0, "submit", "--from-json", w.file(t, "good", strings.Join(lines, "\n"), 0o600))
	if ids, ok := object["ids"].([]any); !ok || len(ids) != 1000 || ids[0] != 1.0 || ids[999] != 1000.0 {
		t.Errorf("opened %v", object["ids"])
	}
	checkFields(t, w.Task(t, 1), map[string]string{"input": "0", "queue": "q"})
	checkFields(t, w.Task(t, 1000), map[string]string{"input": "999", "queue": "q"})
	for name, bad := range map[string]string{
		"empty": "{}", "unknown queue": strings.ReplaceAll(lines[0], `"q"`, `"qq"`), "priority": `{"program":"p","source":"rsync:/run.sh","priority":1001}`,
	} {
		lines[700] = bad
		_, stderr := w.manage(t, cli.ExitUsage, "submit", "--from-json", w.file(t, "bad", strings.Join(lines, "\n"), 0o600))
		if name != "unknown queue" { // is not known before the store is asked
			contains(t, "the refusal", stderr, "bad:701", "nothing was opened")
		}
		counts, err := w.Store.Count(t.Context())
		if err != nil || counts[sm.Open] != 1000 || counts[sm.Blocked] != 0 {
			t.Errorf("%s: %v, %v; want 1,000 open tasks", name, counts, err)
		}
	}
	w.sound(t)
}

// A key is unique in its queue: a second submission opens nothing and is told the
// id of the first, as are all but one of many at the same moment.
func TestSubmitByKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queue(t, "q")
	p := w.script(t, "p", "true")
	first := w.submitted(t, p, "--key", "night of the 1st")
	out := w.text(t, "submit", "--program", "p", "--source", p.Source, "--key", "night of the 1st")
	contains(t, "the second submission", out, fmt.Sprintf("task %d was there already", first))
	if other := w.submitted(t, p, "--key", "night of the 1st", "--queue", "q"); other == first {
		t.Error("the key of one queue counts in another")
	}
	ids := w.atOnce(t, 6, "submit", "-q", "--program", "p", "--source", p.Source, "--key", "race")
	if len(ids) != 6 || strings.Join(ids, "") != strings.Repeat(ids[0], 6) {
		t.Errorf("submitted at once, the tasks are %v, want one", ids)
	}
	counts, err := w.Store.Count(t.Context())
	if err != nil || counts[sm.Open] != 3 {
		t.Errorf("%v, %v; want 3 open tasks", counts, err)
	}
	w.server(t)
	w.node(t, "n1")
	w.await(t, first, sm.Succeeded) // also of one that has ended
	if again := w.submitted(t, p, "--key", "night of the 1st"); again != first {
		t.Errorf("submitted once more: task %d, want %d", again, first)
	}
}

// atOnce runs n processes of tdf-manager at once and returns the words that
// each of them prints.
func (w *world) atOnce(t *testing.T, n int, args ...string) []string {
	t.Helper()
	var words []string
	var mu sync.Mutex
	var all sync.WaitGroup
	path := program(t, "tdf-manager")
	for range n {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), path, append([]string{"--config", w.cfg}, args...)...)
			cmd.Env = append(cmd.Environ(), raceSettings...)
			out, err := cmd.Output()
			mu.Lock()
			defer mu.Unlock()
			words = append(words, strings.Fields(string(out))...)
			if err != nil {
				t.Errorf("%v: %v", args, err)
			}
		})
	}
	all.Wait()
	return words
}

// D01, D20, the store side, by the command line: queues with and without a name, a
// name that is taken, and limits of lists that cannot be.
func TestQueueNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queue(t, "nightly", "description=at night")
	_, stderr := w.manage(t, cli.ExitTaskFailed, "queue", "add", "nightly")
	contains(t, "the refusal", stderr, `queue "nightly"`, "exists")
	out := w.text(t, "queue", "add")
	contains(t, "the answer", out, "q-")
	if found, err := w.project(t).Queues(t.Context()); err != nil || len(found) != 3 {
		t.Errorf("queues %v, %v; want default, nightly and the one without a name", found, err)
	}
	p := w.script(t, "p", "true")
	for i := range 5 {
		w.submitted(t, p, "--queue", []string{"nightly", "default"}[i%2])
	}
	_, stderr = w.manage(t, cli.ExitUsage, "ls", "--limit", "-1")
	contains(t, "the refusal", stderr, "limit")
	if rows := strings.Count(w.text(t, "ls", "--queue", "nightly"), "open"); rows != 3 {
		t.Errorf("%d tasks of the queue are listed, want 3", rows)
	}
	if rows := strings.Count(w.text(t, "ls", "--limit", "2"), "open"); rows != 2 {
		t.Errorf("%d tasks are listed with --limit 2", rows)
	}
}
