package task_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// record is one of a task that has run twice, in a plan.
var record = map[string]string{
	"id": "7", "namespace": "ns", "state": "archived", "outcome": "failed", "round": "1", "rev": "9", "fails": "2", "losses": "0",
	"program": "p", "source": "https://u:secret@h/p.zip", "argv": `["a <b>"]`, "end_before": "inf", "max_fails": "inf", "timeout": "90.5",
	"start_after": "0", "retry_delay": "0", "failed_nodes": "n1,n2", "needs": "3 4:any", "plan": "2", "step": "s", "labels": "a=1,b=2",
	"resources": "gpu=1", "priority": "odd", "not_before": "1.5", "retry_of": "5", "comment": "why", "doomed_by": "x", "foreign": "f",
	"log":    "2027-01-15 08:00:00 - m   created\n[lines left out]\n2027-01-15 08:00:01 - w   get https://u:secret@h/p.zip\n",
	"0:open": "1700000000.000001", "0:running": "1700000001", "0:executed": "1700000002", "0:failure": "1700000002", "0:output": "x",
	"0:exit_code": "3", "0:error": "bad", "0:user_time": "1.500000", "1:resources": "gpu:2[0 3] mem:9[]", "cut": "1 output files",
}

func TestDecode(t *testing.T) {
	t.Parallel()
	got := task.Decode(7, record)
	if got.ID != 7 || got.State != sm.Archived || got.Outcome != sm.Failed || got.End() != sm.Failed || got.EndState() != sm.Failed ||
		got.Round != 1 || got.Rev != 9 || got.Fails != 2 || got.Losses != 0 || got.Namespace != "ns" || got.IdempotencyKey() != "ns:7:1" ||
		got.Plan != 2 || got.RetryOf != 5 || got.DoomedBy != 0 || got.Skipped || got.Fields["foreign"] != "f" {
		t.Errorf("%+v", got)
	}

	want := task.Spec{
		Program: "p", Source: "https://u:secret@h/p.zip", Argv: []string{"a <b>"}, Timeout: 90500 * time.Millisecond,
		Retry: task.Retry{Limit: task.Unlimited, Backoff: 1}, MaxTimeouts: task.AtMost(0), MaxLosses: task.AtMost(int(sm.DefaultMaxLosses)), MaxFaults: task.AtMost(int(sm.DefaultMaxFaults)),
		FailOn: task.FailOnAny, OnCut: task.OnCutKeep, ReturnOn: task.ReturnOnSuccess, Charge: task.ChargeAll, Archive: task.ArchiveByManager, Workdir: task.WorkdirByWorker, Queue: task.DefaultQueue, KeyUntil: task.KeyUntilTTL, Labels: []string{"a=1", "b=2"}, Resources: map[string]int{"gpu": 1}, Comment: "why", Args: task.ArgsWords, Step: "s",
		Needs: []task.Need{{Task: 3, On: task.NeedsSuccess}, {Task: 4, On: "any"}},
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if len(got.Rounds) != 2 || got.Last() != &got.Rounds[0] || got.Output() != "x" || got.Failure() != "bad" {
		t.Errorf("rounds: %+v", got.Rounds)
	}
	if at := time.Unix(1700000000, 1000).UTC(); got.Created != at || got.NotBefore != time.UnixMicro(1500000).UTC() {
		t.Errorf("created %s, not before %s", got.Created, got.NotBefore)
	}
	lines := make([]string, len(got.Log))
	for i, e := range got.Log {
		lines[i] = e.String() + "\n"
	}
	if strings.Join(lines, "") != record["log"] || !got.Log[1].At.IsZero() || got.Log[0].Text != "m   created" || got.Log[0].At.Second() != 0 {
		t.Errorf("log: %q", lines)
	}
}

// A record of nothing is a task with the defaults.
func TestDecodeNothing(t *testing.T) {
	t.Parallel()
	got := task.Decode(1, nil)
	if got.Queue != task.DefaultQueue || *got.Priority != 0 || got.Retry.Limit != task.AtMost(0) || got.Last() != nil || got.Output() != "" ||
		got.EndState() != sm.None || !got.StartAfter.IsZero() || got.Retry.Delay != 0 || got.Retry.Jitter != 0 || got.Timeout != 0 || !got.EndBefore.IsZero() {
		t.Errorf("%+v", got)
	}
}

func TestTaskJSON(t *testing.T) {
	t.Parallel()
	one := task.Decode(7, record)
	one.Err = errors.New("odd")
	text, err := json.Marshal(one)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(text); strings.Contains(s, "secret") || strings.Contains(s, `foreign`) {
		t.Errorf("it tells too much: %s", s)
	}
	want := `{
		"id": 7, "namespace": "ns", "state": "archived", "outcome": "failed", "status": 2, "round": 1, "rev": 9, "damaged": "odd",
		"fails": 2, "timeouts": 0, "losses": 0, "releases": 0, "faults": 0, "failed_nodes": ["n1", "n2"], "cut": ["output", "files"],
		"created": "2023-11-14T22:13:20.000001Z", "not_before": "1970-01-01T00:00:01.5Z", "retry_of": 5, "plan": 2, "step": "s",
		"program": "p", "source": "https://***@h/p.zip", "argv": ["a <b>"], "end_before": "inf", "timeout": 90.5, "queue": "default",
		"max_fails": "unlimited", "max_timeouts": 0, "max_losses": 3, "max_faults": 10, "fail_on": "any", "on_cut": "keep", "return_on": "success", "key_until": "ttl", "charge": "all", "archive": "manager", "workdir": "worker",
		"retry_delay": 0, "retry_backoff": 1, "retry_max_delay": "inf", "retry_jitter": 0, "priority": 0, "comment": "why",
		"labels": ["a=1", "b=2"], "resources": {"gpu": 1}, "needs": [{"task": 3, "on": "success"}, {"task": 4, "on": "any"}],
		"log": [
			{"at": "2027-01-15T08:00:00Z", "text": "m   created"}, {"text": "[lines left out]"},
			{"at": "2027-01-15T08:00:01Z", "text": "w   get https://***@h/p.zip"}
		],
		"rounds": [
			{"number": 0, "output": "x", "error": "bad", "exit_code": 3, "user_time": 1.5,
				"output_bytes": 1, "output_sha256": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
				"error_bytes": 3, "error_sha256": "6dbda72f53e5e8a1c17e3ec02c0bf7d5fc6adbc7ae1bfbdb0d42ff1bb6a5d3ab",
				"stamps": {"open": "2023-11-14T22:13:20.000001Z", "running": "2023-11-14T22:13:21Z",
					"executed": "2023-11-14T22:13:22Z", "failure": "2023-11-14T22:13:22Z"}},
			{"number": 1, "resources": {"gpu": {"count": 2, "ids": [0, 3]}, "mem": {"count": 9}}}
		]
	}`
	got := jsonValue(t, string(text))
	hash := got["rounds"].([]any)[0].(map[string]any)["error_sha256"]
	wanted := jsonValue(t, want)
	wanted["rounds"].([]any)[0].(map[string]any)["error_sha256"] = hash
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
	if text, err := json.Marshal(task.Task{}); err != nil || !strings.Contains(string(text), `"rounds":[]`) {
		t.Errorf("%s, %v", text, err)
	}
}

func jsonValue(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// What a person has built prints as what was read.
func TestBuiltTask(t *testing.T) {
	t.Parallel()
	built := task.Task{ID: 3, State: sm.Open, Spec: task.Spec{Program: "p", Input: "1 2", Timeout: time.Minute}}
	read := task.Decode(3, map[string]string{"state": "open", "program": "p", "input": "1 2", "timeout": "60"})
	a, err := json.Marshal(built)
	b, err2 := json.Marshal(read)
	if err != nil || err2 != nil || string(a) != string(b) {
		t.Errorf("%v, %v:\n%s\n%s", err, err2, a, b)
	}
}

// When a task was made does not change when it is held or let go.
func TestCreated(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fields map[string]string
		want   int64
	}{
		{map[string]string{}, 0},
		{map[string]string{"0:open": "5"}, 5},
		{map[string]string{"0:blocked": "5"}, 5},
		{map[string]string{"0:blocked": "5", "0:open": "9"}, 5},
		{map[string]string{"0:blocked": "9", "0:open": "5"}, 5},
		{map[string]string{"created": "3", "0:blocked": "9", "0:open": "5"}, 3},
	} {
		var want time.Time
		if c.want > 0 {
			want = time.Unix(c.want, 0)
		}
		if got := task.Decode(1, c.fields).Created; !got.Equal(want) {
			t.Errorf("%v: made at %v, want %v", c.fields, got, want)
		}
	}
}

// Disbatch's numbers, for every state and outcome.
func TestDisbatchStatus(t *testing.T) {
	t.Parallel()
	want := map[sm.State]int{
		sm.Orphaned: -6, sm.Cancelled: -5, sm.Blocked: -4, sm.Terminated: -3, sm.Open: -2, sm.Running: 0, sm.Executed: 0,
		sm.Succeeded: 1, sm.Failed: 2, sm.TimedOut: 3, sm.Expired: 4, sm.None: 2, sm.Archived: 2, "abc": 2,
	}
	for state, number := range want {
		if got := (&task.Task{State: state}).DisbatchStatus(); got != number {
			t.Errorf("%q: %d, want %d", state, got, number)
		}
		if got := (&task.Task{State: sm.Archived, Outcome: state}).DisbatchStatus(); got != number {
			t.Errorf("archived as %q: %d, want %d", state, got, number)
		}
	}
	for _, c := range []struct {
		state sm.State
		said  string
		want  int
	}{{sm.Failed, "7", 7}, {sm.Failed, "1", 2}, {sm.Failed, "-7", 2}, {sm.TimedOut, "7", 3}, {sm.Open, "7", -2}, {sm.Succeeded, "1", 1}} {
		said := task.Decode(1, map[string]string{"state": string(c.state), "round": "1", "0:status": "9", "1:status": c.said})
		if got := said.DisbatchStatus(); got != c.want {
			t.Errorf("%s, reported as %s: %d, want %d", c.state, c.said, got, c.want)
		}
	}
	for _, state := range sm.States() {
		if _, ok := want[state]; !ok {
			t.Errorf("%s has no number", state)
		}
	}
}

// A task that the original has archived has its outcome as its state.
func TestListedIn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ state, listed, want, end sm.State }{
		{sm.Failed, sm.Archived, sm.Archived, sm.Failed},
		{sm.Archived, sm.Archived, sm.Archived, sm.None},
		{sm.Open, sm.Running, sm.Running, sm.Running},
	} {
		one := task.Task{State: c.state}
		if one.ListedIn(c.listed); one.State != c.want || one.End() != c.end {
			t.Errorf("%s in %s: %s, %s", c.state, c.listed, one.State, one.End())
		}
	}
}

// readBack is what the JSON form of a task says of what was opened.
func readBack(t *testing.T, one *task.Task) (spec task.Spec) {
	t.Helper()
	text, err := json.Marshal(one)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	for _, f := range task.Fields() {
		if raw, there := object[f.Name]; there {
			if err := spec.SetJSON(f.Name, raw, time.Time{}); err != nil {
				t.Errorf("%s = %s: %v", f.Name, raw, err)
			}
		}
	}
	return spec
}

// The JSON form of a record that says nothing opens the same task again.
func TestDefaultsAsJSON(t *testing.T) {
	t.Parallel()
	spec := readBack(t, task.Decode(1, map[string]string{"program": "p"}))
	got, err := task.Define(&spec)
	if err != nil {
		t.Fatal(err)
	}
	want, err := task.Define(&task.Spec{Program: "p"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(pairs(t, want.Values()), pairs(t, got.Values())); diff != "" {
		t.Errorf("opened again (-want +got):\n%s", diff)
	}
}
