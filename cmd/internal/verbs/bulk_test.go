package verbs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// ids makes the text of a JSON list of ids.
func ids(v any) string { return strings.Trim(fmt.Sprint(v), "[]") }

func TestCancel(t *testing.T) {
	t.Parallel()
	b := played(t)
	w := b.worker("w1")
	b.must("submit", "--program", "p", "--hold=later")
	b.must("submit", "--program", "p")
	w.claim()
	r := b.run("cancel", "1,5-7,99", "--reason", "wrong input")
	if r.code != 1 {
		t.Errorf("ended with %d, want 1: a finished and a missing task were named", r.code)
	}
	wantText(t, r.out, "cancelled 2, asked workers to stop 1, 1 were finished already (unchanged), 1 not found\n",
		"task 1 is archived: it is over", "no such task: 99\n")
	for id, want := range map[int64]string{1: "succeeded", 5: "cancelled", 6: "cancelled", 7: "running"} {
		task, err := b.store.Task(t.Context(), id)
		if err != nil || string(cmp.Or(task.Outcome, task.State)) != want || id != 1 && task.Fields["cancel_reason"] != "wrong input" {
			t.Errorf("task %d: %v, %v, want %s with a reason", id, task, err, want)
		}
	}
	out := b.must("show", "5")
	wantText(t, out, "cancel reason  wrong input", "cancelled by "+operator()+": wrong input")
	wantText(t, b.must("show", "7"), "stop asked for", "stop asked for by")
	if r := b.run("cancel", "7"); r.code != 0 { // once more is no error
		t.Errorf("%+v", r)
	}
}

func TestCancelJSON(t *testing.T) {
	t.Parallel()
	b := played(t)
	object := b.value(1, "cancel", "4-6").(map[string]any)
	if ids(object["cancelled"]) != "5" || ids(object["unchanged"]) != "4" || ids(object["not_found"]) != "6" ||
		ids(object["asked"]) != "" || object["dry_run"] != false {
		t.Errorf("JSON: %v", object)
	}
	reason := object["reasons"].([]any)[0].(map[string]any)
	if reason["id"] != 4.0 || reason["state"] != "archived" || reason["reason"] == "" {
		t.Errorf("reason: %v", reason)
	}
	object = b.value(0, "cancel", "--program", "nobody").(map[string]any)
	if object["cancelled"] == nil || len(object["cancelled"].([]any)) != 0 {
		t.Errorf("nothing: %v", object)
	}
}

// All of a namespace is not cancelled or retried by a slip.
func TestAllNeedsYes(t *testing.T) {
	t.Parallel()
	b := played(t)
	for verb, n := range map[string]string{"cancel": "all 1 tasks", "retry": "all 4 tasks"} {
		r := b.unchanged(verb, "all")
		if r.code != 2 {
			t.Errorf("%s all: ended with %d, want 2", verb, r.code)
		}
		wantText(t, r.err, n, "--yes", "--dry-run")
		if r := b.unchanged(verb); r.code != 2 || !strings.Contains(r.err, "which tasks?") {
			t.Errorf("%s of nothing: %+v", verb, r)
		}
	}
	wantText(t, b.must("cancel", "all", "--yes"), "cancelled 1\n")
	wantText(t, b.must("cancel", "all", "--yes"), "no task fits: nothing to do\n")
	wantText(t, b.must("retry", "all", "--yes"), "opened 5 again: 6-10\n")
}

func TestHoldAndRelease(t *testing.T) {
	t.Parallel()
	b := played(t)
	wantText(t, b.must("hold", "all", "--reason", "late"), "held 1\n")
	wantText(t, b.must("show", "5"), "state        blocked", "held         late")
	r := b.run("hold", "2,5")
	wantText(t, r.out, "1 were finished already (unchanged), 1 were blocked (unchanged)\n", "task 5 is blocked: it is held already")
	if r.code != 1 {
		t.Errorf("ended with %d, want 1", r.code)
	}
	wantText(t, b.must("release", "last"), "released 1\n")
	if object := b.value(1, "release", "5").(map[string]any); ids(object["unchanged"]) != "5" {
		t.Errorf("released twice: %v", object)
	}
	if r := b.run("hold", "5", "--reason", "two\nlines"); r.code != 2 || !strings.Contains(r.err, "reason") {
		t.Errorf("bad reason: %+v", r)
	}
}

// Tasks are changed a page at a time, all of them and each once; the conditions
// are put together.
func TestBulkPages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must("queue", "add", "big")
	b.must("submit", "--program", "p", "--queue", "big", "--array", "1-1203")
	b.must("submit", "--program", "other", "--queue", "big")
	b.must("submit", "--program", "p")
	wantText(t, b.must("hold", "--queue", "big", "--program", "p"), "held 1203\n")
	wantText(t, b.must("release", "1-1000,900-1100"), "released 1100\n")
	object := b.value(0, "cancel", "--queue", "big", "--state", "blocked,open").(map[string]any)
	if n := len(object["cancelled"].([]any)); n != 1204 {
		t.Errorf("cancelled %d, want 1204", n)
	}
	counts, err := b.store.Count(t.Context())
	if err != nil || counts[statemachine.Archived] != 1204 || counts[statemachine.Open] != 1 {
		t.Errorf("%v, %v", counts, err)
	}
}

// An unknown queue is not the same as one in which nothing fits.
func TestBulkUnknownQueue(t *testing.T) {
	t.Parallel()
	b := played(t)
	b.must("queue", "add", "nightly")
	for _, verb := range []string{"cancel", "hold", "release", "retry --failed", "ls", "wait"} {
		r := b.run(append(fields(verb), "--queue", "nightyl")...)
		if r.code != 2 || !strings.Contains(r.err, `did you mean "nightly"?`) {
			t.Errorf("%s: %+v", verb, r)
		}
		if r := b.run(append(fields(verb), "--queue", "nightly")...); r.code != 0 {
			t.Errorf("%s: %+v", verb, r)
		}
		if r := b.run(append(fields(verb), "--queue", "")...); r.code != 2 || !strings.Contains(r.err, "--queue is empty") {
			t.Errorf("%s: %+v", verb, r)
		}
	}
}

// What ends the work in the middle does not hide what was done before.
func TestBulkInTheMiddle(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must("submit", "--program", "p", "--array", "1-1203")
	for _, flag := range []string{"--json=false", "--json"} {
		ctx, send := signalled(syscall.SIGINT)
		root := &cobra.Command{Use: "tdf-manager"}
		a := &app{file: b.file, program: Manager, flags: cli.AddDaemonFlags(root, root.PersistentFlags())}
		v := &bulkVerb{change: bulk.Hold()}
		v.change.Do = func(ctx context.Context, m *manager.Manager, ids []int64, o manager.ChangeOptions, done *bulk.Tally) error {
			err := bulk.Hold().Do(ctx, m, ids, o, done)
			send() // after the first page
			return err
		}
		root.AddCommand(v.command(a, "hold", "", "", ""))
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(io.Discard)
		if code := cli.Run(ctx, root, []string{"hold", "all", flag}); code != 130 {
			t.Errorf("ended with %d, want 130", code)
		}
		if flag != "--json" {
			wantText(t, out.String(), "ended in the middle; so far: held 500\n")
			continue
		}
		object := oneValue(t, out.String()).(map[string]any)
		if object["code"] != 130.0 || object["error"] == "" || len(object["held"].([]any)) != 500 {
			t.Errorf("JSON: %v", object)
		}
	}
}

// Words with an equals sign are attributes, the others say which tasks get them.
func TestAttr(t *testing.T) {
	t.Parallel()
	b := played(t) // tasks 1 to 5
	wantText(t, b.must("attr", "1,5", "4", "phase=first", "owner=ann", "--reason", "a look"), "set for 3\n")
	wantText(t, b.must("show", "1"), "owner=ann, phase=first", "attributes owner, phase set by "+operator()+": a look")
	wantText(t, b.must("attr", "--attr", "phase=first", "--attr", "none=", "--dry-run", "owner="), "would set for 3: 1,4-5\n")
	if object := b.value(1, "attr", "4,9", "owner=").(map[string]any); ids(object["set"]) != "4" || ids(object["not_found"]) != "9" {
		t.Errorf("%v", object)
	}
	if list := b.value(0, "ls", "--attr", "phase=first", "--attr", "owner=").([]any); len(list) != 1 || list[0].(map[string]any)["id"] != 4.0 {
		t.Errorf("%v", list)
	}
	wantText(t, b.must("results", "1", "--jsonl"), `"meta":{"owner":"ann","phase":"first"}`)
	for args, say := range map[string]string{
		"attr 1": "say which attributes to set, as name=text", "attr x=1": "which tasks", "attr all x=1": "add --yes",
		"attr 1 No=1": "small letters", "ls --attr phase": "write name=text", "ls --attr No=1": "small letters",
	} {
		if r := b.run(strings.Fields(args)...); r.code != 2 || !strings.Contains(r.err, say) {
			t.Errorf("%s: %+v", args, r)
		}
	}
}

// The last word is the object, the others say which tasks get it; those that do not wait keep theirs.
func TestParams(t *testing.T) {
	t.Parallel()
	b := played(t) // tasks 1 to 5
	b.must("submit", "-q", "--program", "p", "--hold", "--params", `{"depth": 1}`)
	b.must("submit", "-q", "--program", "p")
	wantText(t, b.must("params", "6,7", `{"depth": 2}`, "--reason", "a look"), "set for 2\n")
	wantText(t, b.must("show", "7"), `params       {"depth":2}`, "params set by "+operator()+": a look")
	if got := b.value(0, "show", "6").(map[string]any)["params"]; fmt.Sprint(got) != "map[depth:2]" {
		t.Errorf("%v", got)
	}
	if object := b.value(1, "params", "2,6,9", `{"x":1}`).(map[string]any); ids(object["set"]) != "6" || ids(object["not_found"]) != "9" || ids(object["unchanged"]) != "2" ||
		!strings.Contains(fmt.Sprint(object["reasons"]), "only tasks that wait can have other parameters") {
		t.Errorf("%v", object)
	}
	b.must("params", "6", "{}")
	if got := b.value(0, "show", "6").(map[string]any)["params"]; got != nil {
		t.Errorf("%v", got)
	}
	for args, say := range map[string]string{
		"params 6": "give the parameters last", "params": "give the parameters last", `params {"a":1}`: "which tasks", `params all {"a":1}`: "add --yes",
		`params 6 {"a":}`: "a JSON object", `submit --program p --params [1]`: "a JSON object",
	} {
		if r := b.run(strings.Fields(args)...); r.code != 2 || !strings.Contains(r.err, say) {
			t.Errorf("%s: %+v", args, r)
		}
	}
}
