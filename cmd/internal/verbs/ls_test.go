package verbs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/task"
)

func TestLsSelects(t *testing.T) {
	t.Parallel()
	b := played(t)
	b.must("queue", "add", "nightly")
	b.must("submit", "--program", "other", "--queue", "nightly", "--environment", "lab", "--resource", "gpu=1", "--start-after", "4000000000")
	for args, want := range map[string]string{
		"2-4": "2 3 4", "last": "6", "5,last": "5 6", "--program other": "6", "--queue default --state open": "5", "--match ^one": "2",
		"1-5 --state succeeded": "1 4", "all --state failed,timed_out": "2 3", "--program nobody": "",
	} {
		var got []string
		for _, one := range b.value(0, append([]string{"ls"}, fields(args)...)...).([]any) {
			got = append(got, ids(one.(map[string]any)["id"]))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("ls %s: %s, want %s", args, text, want)
		}
	}
	r := b.run("ls", "5,99")
	if r.code != 1 || !strings.Contains(r.out, "open") || !strings.Contains(r.err, "no such task: 99") {
		t.Errorf("a missing task: %+v", r)
	}
	r = b.run("ls", "--program", "p", "--limit", "1")
	wantText(t, r.err, "more tasks than these are archived; see them with --limit 0")
	if r := b.run("ls", "--program", "nobody"); !strings.Contains(r.err, "no task fits") {
		t.Errorf("nothing: %+v", r)
	}
	if r := newBench(t).run("ls"); !strings.Contains(r.err, "tdf-manager submit") {
		t.Errorf("no tasks: %+v", r)
	}
}

func TestLsColumns(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.worker("w1")
	b.must("submit", "--program", "p")
	w.claim()
	w.beat(task.WorkerReady, 1, 0, "")
	if strings.Contains(b.must("ls"), "QUEUE") {
		t.Error("a column QUEUE, and all are in the default queue")
	}
	wantText(t, b.must("ls", "-o", "wide"), "QUEUE    PRIORITY  WORKER  NODE    ASKS", "default  0         w1      node-1  -")
	b.must("queue", "add", "q")
	b.must("submit", "--program", "p", "--queue", "q", "--environment", "lab", "-l", "disk=ssd", "--resource", "gpu=1", "--priority", "3")
	wantText(t, b.must("ls"), "QUEUE ", "  q  ")
	wantText(t, b.must("ls", "-o", "wide"), "env lab disk=ssd gpu=1")
	list := b.value(0, "ls", "1,2").([]any)
	one, two := list[0].(map[string]any), list[1].(map[string]any)
	if r := roundOf(t, one, 0); r["worker"] != "w1" || r["node"] != "node-1" || one["status"] != 0.0 || one["queue"] != "default" || two["priority"] != 3.0 {
		t.Errorf("JSON: %v", one)
	}
	if two["status"] != -2.0 || two["queue"] != "q" || two["env"] != "lab" || fmt.Sprint(two["labels"], two["resources"]) != "[disk=ssd] map[gpu:1]" || len(two["rounds"].([]any)) != 0 {
		t.Errorf("JSON: %v", two)
	}
	object := b.value(0, "show", "2").(map[string]any)
	if object["status"] != -2.0 || object["queue"] != "q" {
		t.Errorf("show: %v", object)
	}
}

func TestShowOrders(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must("queue", "add", "q")
	b.must("submit", "--program", "p", "--queue", "q", "--environment", "lab", "-l", "disk=ssd", "--resource", "gpu=1,mem=4", "--charge", "program", "--archive", "at_once",
		"--retry-delay", "30", "--fatal-exit-codes", "2,3", "--hold=later", "--key", "k", "--priority", "-5")
	b.srv.Do(t, "HSET", b.ns+":task:1", "not_before", "4000000000", "0:class", "host", "0:error", "bad disk")
	wantText(t, b.must("show", "last"), "held              later", "queue             q", "priority          -5", "env               lab",
		"labels            disk=ssd", "resources         gpu=1, mem=4", "key               k", "not_before        2096-10-02",
		"faults            0 (at most 10", "charge            program", "archive           at_once", "retry_delay       30", "fatal_exit_codes  2,3", "class host")
}

func TestWaitSelects(t *testing.T) {
	t.Parallel()
	b := played(t)
	if p := b.value(1, "wait", "--state", "failed,succeeded").(map[string]any); p["total"] != 3.0 || p["unsuccessful"] != 1.0 {
		t.Errorf("%v", p)
	}
	if p := b.value(0, "wait", "--program", "nobody").(map[string]any); p["total"] != 0.0 {
		t.Errorf("nothing: %v", p)
	}
	longEnough(t, func(timeout string) bool {
		p := b.value(4, "wait", "last", "--timeout", timeout).(map[string]any)
		if p["total"] == 1.0 && p["timed_out"] != true {
			t.Errorf("last: %v", p)
		}
		return p["total"] == 1.0
	})
}
