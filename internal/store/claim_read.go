package store

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/statemachine"
)

func decodeClaim(r reply) ClaimReply {
	c := ClaimReply{Now: r.time(0), More: r.text(1) != "", Next: r.time(2)}
	for i := range r.list(3) {
		c.Damaged = append(c.Damaged, r.list(3).number(i))
	}
	at := clockOf(r, 9)
	for i := range r.list(4) {
		t := decodeClaimed(r.list(4).list(i))
		t.Expiry = at.moment(t.EndBefore)
		c.Tasks = append(c.Tasks, t)
	}
	c.NewBuckets, c.NodeFull = r.text(5) != "", r.text(7) != ""
	c.Full, c.Elsewhere = r.list(6).texts(), r.list(8).texts()
	return c
}

// decodeClaimed reads what the script has checked: the numbers are numbers.
// Argv that is no list is left to the worker, as an error of the round.
func decodeClaimed(r reply) Claimed {
	f := fieldReader{get: func(name string) string {
		if i, ok := claimFields[name]; ok {
			return r.text(4 + i)
		}
		return ""
	}}
	t := Claimed{
		Program: f.get("program"), Source: f.get("source"), Input: f.get("input"), FailOn: f.get("fail_on"),
	}
	t.Task, t.Bucket = f.task(r.number(0)), f.bucket()
	t.State = statemachine.Running
	t.Current = statemachine.Round{Claim: r.text(1), Running: r.time(2)}
	t.Resources = decodeAllotted(r.text(3))
	t.Plan, t.Needs, t.ArgsAs = int64(f.count("plan")), ParseNeeds(f.get("needs")), f.get("args")
	if text := f.get("argv"); text != "" {
		t.Argv = decodeArgv(text)
	}
	return t
}

// decodeArgv reads the JSON array of the field argv; a text that is none
// becomes the only argument, so that the program can complain about it.
func decodeArgv(text string) []string {
	argv := []string{}
	if err := json.Unmarshal([]byte(text), &argv); err != nil {
		return []string{text}
	}
	return argv
}

// allotment is one resource as the claim script writes it: gpu:2[0 3].
var allotment = regexp.MustCompile(`(\w+):(\d+)\[([\d ]*)\]`)

// decodeAllotted reads what a round got; nil for nothing.
func decodeAllotted(text string) map[string]Allotted {
	var got map[string]Allotted
	for _, m := range allotment.FindAllStringSubmatch(text, -1) {
		if got == nil {
			got = map[string]Allotted{}
		}
		var a Allotted
		a.Count, _ = strconv.Atoi(m[2])
		for id := range strings.FieldsSeq(m[3]) {
			n, _ := strconv.Atoi(id)
			a.IDs = append(a.IDs, n)
		}
		got[m[1]] = a
	}
	return got
}

// claimFields is where the fields stand in a task that the script returns.
var claimFields = map[string]int{
	"state": 0, "round": 1, "rev": 2, "start_after": 3, "end_before": 4, "timeout": 5,
	"fails": 6, "timeouts": 7, "max_fails": 8, "max_timeouts": 9, "program": 10, "source": 11,
	"input": 12, "argv": 13, "fail_on": 14, "losses": 15, "releases": 16, "max_losses": 17,
	queueField: 18, "env": 19, "labels": 20, "priority": 21, resourcesField: 22, "faults": 23, "max_faults": 24,
	"retry_delay": 25, "retry_backoff": 26, "retry_max_delay": 27, "retry_jitter": 28,
	"not_before": 29, "charge": 30, "retry_exit_codes": 31, "fatal_exit_codes": 32, "cancel_requested": 33,
	"plan": 34, "needs": 35, "args": 36,
}

// writer pads a name as the original's log lines do.
func writer(name string) string { return fmt.Sprintf("%-10s", name) }
