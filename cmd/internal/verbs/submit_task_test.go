package verbs

import (
	"github.com/tdf-go/tdf/task"

	"slices"
	"strings"
	"testing"
)

// what is a field of a task that was opened, in JSON and on the command line the
// same.
func wantFields(t *testing.T, b *bench, id int64, want map[string]string) {
	t.Helper()
	task, err := b.store.Task(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for field, text := range want {
		if got := task.Fields[field]; got != text {
			t.Errorf("task %d: %s = %q, want %q", id, field, got, text)
		}
	}
}

func TestSubmitDemands(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must("queue", "add", "q", "default_labels=disk=hdd", "default_resources=gpu=4")
	want := map[string]string{
		"queue": "q", "env": "lab", "labels": "a=1,disk=ssd", "resources": "gpu=1,mem=2048", "priority": "7", "max_faults": "3",
		"retry_delay": "30", "retry_backoff": "2", "retry_max_delay": "3600", "retry_jitter": "0.5",
		"retry_exit_codes": "75,111", "fatal_exit_codes": "2", "charge": "program", "key": "k1", "hold": "by hand", "state": "blocked",
	}
	b.must("submit", "--program", "p", "--queue", "q", "--environment", "lab", "-l", "disk=ssd", "--label", "a=1", "--resource", "mem=2048",
		"--resource", "gpu=1", "--priority", "7", "--max-faults", "3", "--retry-delay", "30", "--retry-backoff", "2",
		"--retry-max-delay", "1h", "--retry-jitter", "0.5", "--retry-exit-codes", "75,111", "--fatal-exit-codes", "2",
		"--charge", "program", "--key", "k1", "--hold=by hand")
	wantFields(t, b, 1, want)
	line := `{"program":"p","queue":"q","env":"lab","labels":{"disk":"ssd","a":1},"resources":{"mem":2048,"gpu":1},"priority":7,` +
		`"max_faults":3,"retry_delay":30,"retry_backoff":2,"retry_max_delay":"1h","retry_jitter":0.5,` +
		`"retry_exit_codes":[75,111],"fatal_exit_codes":"2","charge":"program","key":"k2","hold":"by hand"}` + "\n" +
		`{"program":"p","queue":"q","labels":[],"resources":{},"hold":true}` + "\n" +
		`{"program":"p","queue":"q","labels":["x=y"],"resources":"gpu=2","hold":false}`
	if r := b.runWith(t.Context(), line, "submit", "--from-json", "-"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	want["key"] = "k2"
	wantFields(t, b, 2, want)
	wantFields(t, b, 3, map[string]string{"labels": "", "resources": "", "state": "blocked", "hold": task.HeldText})
	wantFields(t, b, 4, map[string]string{"labels": "x=y", "resources": "gpu=2", "state": "open", "hold": ""})
	b.must("submit", "--program", "p", "--queue", "q", "--label", "none", "--resource", "none")
	wantFields(t, b, 5, map[string]string{"labels": "", "resources": ""})
	b.must("submit", "--program", "p", "--queue", "q", "--hold", "--comment", "with more memory", "--attr", "tenant=acme",
		"--attr", "trace=a=1,b=2")
	wantFields(t, b, 6, map[string]string{"labels": "disk=hdd", "resources": "gpu=4", "hold": task.HeldText, "comment": "with more memory",
		"meta": `{"tenant":"acme","trace":"a=1,b=2"}`})
	wantText(t, b.must("show", "6"), "with more memory", "tenant=acme, trace=a=1,b=2")
	b.must("submit", "--program", "p", "--cpus", "4", "--resource", "mem=64")
	wantFields(t, b, 7, map[string]string{"resources": "cpus=4,mem=64"})
	b.must("submit", "--program", "p", "--return-to", "/x") // output beyond the record goes there
	wantFields(t, b, 8, map[string]string{"return_to": "file:/x"})
	for flag, say := range map[string]string{"--attr": "--attr \"tenant\": write name=text", "--meta": "the flag is --attr now; write --attr tenant"} {
		if r := b.run("submit", "--program", "p", flag, "tenant"); r.code != 2 || !strings.Contains(r.err, say) {
			t.Errorf("%+v", r)
		}
	}
}

func TestSubmitRequestKey(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for range 2 {
		wantText(t, b.must("submit", "--program", "p", "--request-key", "r", "a"), "opened task 1: p a\n")
	}
	r := b.run("submit", "--program", "p", "--request-key", "r", "b")
	if r.code != 2 || !strings.Contains(r.err, `no task was opened: --request-key "r" was used for other tasks; give another key`) {
		t.Errorf("%+v", r)
	}
}

func TestSubmitKey(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	args := []string{"submit", "--program", "p", "--key", "nightly-7"}
	wantText(t, b.must(args...), "opened task 1: p \n")
	wantText(t, b.must(args...), "task 1 was there already: key nightly-7\n")
	object := b.value(0, args...).(map[string]any)
	if ids(object["ids"]) != "1" || ids(object["existing"]) != "1" {
		t.Errorf("JSON: %v", object)
	}
	if out := b.must(append(args, "-q")...); out != "1\n" {
		t.Errorf("quiet: %q", out)
	}
	b.must("submit", "--program", "p", "--key", "part-{}", "--array", "1-3")
	wantText(t, b.must("submit", "--program", "p", "--key", "part-{}", "--array", "2-5"), "opened 2 tasks: 5-6, as job j6; 2 were there already by their keys: 3-4\n")
	for says, args := range map[string][]string{
		`key "nightly-7": task 1 has it`: {"--key", "nightly-7"},
		"key_until = end needs":          {"--key-until", "end"},
	} {
		if r := b.run(append([]string{"submit", "--program", "other"}, args...)...); r.code != 2 || !strings.Contains(r.err, says) {
			t.Errorf("%v: %d, %s", args, r.code, r.err)
		}
	}
	b.must("submit", "--program", "p", "--key", "part-{}", "--array", "6")
	wantFields(t, b, 7, map[string]string{"key": "part-6"}) // no other one was opened
}

func TestSubmitArray(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	wantText(t, b.must("submit", "--program", "p", "--array", "0-6:3,9", "--", "part-{}.txt", "{}{}"), "opened 4 tasks: 1-4, as job j1\n")
	wantFields(t, b, 2, map[string]string{"input": "part-3.txt 33"})
	wantFields(t, b, 4, map[string]string{"input": "part-9.txt 99"})
	b.must("submit", "--program", "p", "--array", "7", "--", "a b", "c")
	wantFields(t, b, 5, map[string]string{"argv": `["a b","c","7"]`})
	b.must("submit", "--program", "p", "--array", "8")
	wantFields(t, b, 6, map[string]string{"input": "8"})
}

func TestParseArray(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]int{"4": {4}, "1-3": {1, 2, 3}, "0-5:2,9": {0, 2, 4, 9}, "3,1": {3, 1}} {
		if got, err := parseArray(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

func TestSubmitRefusesDemands(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must("queue", "add", "nightly")
	for args, say := range map[string][]string{
		"--queue nightli":            {`no such queue`, `did you mean "nightly"?`},
		"--queue bad/name":           {"queue", "bad/name"},
		"--queue=":                   {"--queue is empty"},
		"--label disk":               {"labels", "disk"},
		"--resource gpu=0":           {"resources", "gpu"},
		"--cpus 0":                   {"resources", "cpus=0", "numbers from 1"},
		"--cpus 2 --resource cpus=4": {"resources", "cpus=4,cpus=2"},
		"--resource GPU=1":           {"resources"},
		"--priority 1001":            {"priority", "1001"},
		"--priority high":            {"priority", "high"},
		"--environment a/b":          {"env"},
		"--max-faults=-1":            {"max_faults"},
		"--retry-delay soon":         {"retry_delay", "soon"},
		"--retry-backoff 0.5":        {"retry_backoff", "0.5"},
		"--retry-backoff x":          {"retry_backoff", "x"},
		"--retry-jitter 2":           {"retry_jitter"},
		"--retry-exit-codes 1,x":     {"retry_exit_codes"},
		"--fatal-exit-codes 999":     {"fatal_exit_codes"},
		"--charge nobody":            {"charge"},
		"--key=":                     {"--key is empty"},
		"--hold late":                {"--hold=REASON"},
		"--array 1-100%":             {`"" is not how many may run at a time`},
		"--array 1-100%0":            {`"0" is not how many may run at a time`},
		"--array 1-9 --after 6":      {`--after "6" is no job; write j6`},
		"--array 1-9 --after=":       {"--after is empty"},
		"--array 1-9 --after j6:ok":  {`--after "j6:ok" is no job`},
		"--array 5-1":                {"--array", "5-1"},
		"--array 1-999999999":        {"more than"},
		"--array 1-9:0":              {"1-9:0"},
		"--array -1":                 {"--array"},
		"--array=":                   {"--array is empty"},
		"--array 1-3 --key k":        {"--key", "{}"},
		"--array 1-3 --each-line -":  {"none of the others"},
		"--each-line - --key k":      {"--key", "--request-key"},
		"--from-json - --array 1":    {"none of the others"},
	} {
		r := b.unchanged(append([]string{"submit", "--program", "p"}, fields(args)...)...)
		if r.code != 2 {
			t.Errorf("%s: ended with %d, want 2: %s%s", args, r.code, r.out, r.err)
		}
		wantText(t, r.err, say...)
	}
	for line, say := range map[string]string{
		`{"queue":"nightli"}`: "stdin:1", `{"labels":7}`: "labels", `{"labels":null}`: "labels", `{"resources":{"gpu":"x"}}`: "resources",
		`{"hold":7}`: "hold", `{"hold":null}`: "hold", `{"retry_exit_codes":[1.5]}`: "retry_exit_codes", `{"retry_exit_codes":null}`: "retry_exit_codes",
		`{"queues":"x"}`: `did you mean "queue"?`, `{"charge":3}`: "charge", `{"wholly-unknown":3}`: "known are archive, argv, charge",
	} {
		r := b.runWith(t.Context(), line, "submit", "--program", "p", "--from-json", "-")
		if r.code != 2 || !strings.Contains(r.err, say) {
			t.Errorf("%s: %+v, want 2 and %q", line, r, say)
		}
	}
}

func TestSubmitDry(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must("queue", "add", "q")
	r := b.unchanged("submit", "--program", "p", "--array", "1-3", "-n", "--json")
	object := oneValue(t, r.out).(map[string]any)
	if r.code != 0 || object["count"] != 3.0 || object["dry_run"] != true || len(object["ids"].([]any)) != 0 {
		t.Errorf("%+v", r)
	}
	if r := b.unchanged("submit", "--program", "p", "-n", "--queue", "nobody"); r.code != 2 {
		t.Errorf("unknown queue: %+v", r)
	}
}

// The environment of the program is given by the flag that was that of routing.
func TestSubmitVariables(t *testing.T) {
	t.Setenv("HERE", "from here")
	b := newBench(t)
	b.must("submit", "-e", "A=x=y", "--env", "HERE", "--env", "EMPTY=", "--env", "A=last", "--", "true")
	wantFields(t, b, 1, map[string]string{"variables": `{"A":"last","EMPTY":"","HERE":"from here"}`, "env": ""})
	b.must("submit", "-e", "N=canary", "--array", "1-2", "--", "true")
	wantFields(t, b, 3, map[string]string{"variables": `{"N":"canary"}`})
	for args, say := range map[string]string{
		"--env python":    "no variable of that name is set here; write --env python=VALUE, or, for the environment that a worker must share, --environment python",
		"-e TDF_X=canary": "begin with TDF_", "-e a-b=canary": "letters, digits", "-e A=***": "as submit --env A=VALUE does",
	} {
		r := b.run(append(append([]string{"submit"}, strings.Fields(args)...), "--", "true")...)
		if r.code != 2 || !strings.Contains(r.err, say) || strings.Contains(r.err, "canary") {
			t.Errorf("%s: %+v", args, r)
		}
	}
}

// Limits of a task, and the label with which it finds a worker that can keep them.
func TestSubmitLimits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must("submit", "--memory-max", "2GiB", "--pids-max", "100", "--nice", "10", "-l", "disk=ssd", "--", "true")
	wantFields(t, b, 1, map[string]string{
		"memory_max": "2147483648", "pids_max": "100", "nice": "10", "labels": "commands=on,disk=ssd,memory_max=on,pids_max=on",
	})
	wantText(t, b.must("show", "1"), "memory_max   2GiB", "pids_max     100", "nice         10")
	wantText(t, b.must("show", "1", "--json"), `"memory_max": 2147483648`, `"nice": 10`)
	wantText(t, b.must("why", "1"), "no worker is alive", "memory_max = 1024TiB; pids_max = 4194304; labels = disk=ssd")
	b.worker("w1")
	wantText(t, b.must("why", "1"), "-> set [worker] memory_max = 1024TiB, or to the most that a round may have, for worker w1, and start it again\n")
	b.must("submit", "--memory-max", "0", "--nice", "0", "--", "true")
	wantFields(t, b, 2, map[string]string{"memory_max": "", "nice": "", "labels": "commands=on"})
	for args, say := range map[string]string{"--memory-max 5": "memory_max", "--nice=-5": "nice", "--pids-max many": "pids_max"} {
		r := b.run(append(append([]string{"submit"}, strings.Fields(args)...), "--", "true")...)
		if r.code != 2 || !strings.Contains(r.err, say) {
			t.Errorf("%s: %+v", args, r)
		}
	}
}
