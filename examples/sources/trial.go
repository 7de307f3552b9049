package main

import (
	"fmt"
	"strings"

	"github.com/tdf-go/tdf/manager"
)

// trial is a source, and what should become of a task that uses it.
type trial struct {
	program, source, input string
	want                   outcome
}

// outcome is what became of a task.
type outcome struct {
	state string
	// lines is how many lines the program wrote to stdout.
	lines int
	// fetched is whether the worker tried to fetch the program.
	fetched bool
	// reason is the error, or a part of it where an outcome is expected.
	reason string
}

// trials are the tasks of one pass. The programs of the first pass are still
// there in the second, except those that could not be fetched.
func trials(s *site, o options, pass int) []trial {
	good := outcome{state: "succeeded", lines: 2, fetched: pass == 1}
	var all []trial
	for _, k := range kinds() {
		all = append(all, trial{"source-rsync--" + k.name, s.file(k.file), o.pause, good})
	}
	for _, k := range kinds() {
		all = append(all, trial{"source-http--" + k.name, s.web(k.file), o.pause, good})
	}
	bad := func(reason string) outcome { return outcome{state: "failed", fetched: true, reason: reason} }
	all = append(all,
		trial{"source-rsync--invalid", "rsync:this/path/is/invalid/program.wrongExtension", o.pause,
			bad("invalid type of archive / program")},
		trial{"source-rsync--non-existing", "rsync:this/path/does/not/exist/blafasel.zip", o.pause,
			bad("no such file or directory")})
	for i := range all {
		all[i].program += o.suffix
	}
	return all
}

// outcomeOf reads it from a task that has ended.
func outcomeOf(t *manager.Task) outcome {
	return outcome{
		state:   string(t.EndState()),
		lines:   strings.Count(t.Output(), "\n"),
		fetched: strings.Contains(t.Log, "attempting to fetch program"),
		reason:  strings.TrimSpace(t.Last().Error),
	}
}

// meets tells whether an outcome is as expected.
func (o outcome) meets(want outcome) bool {
	if !strings.Contains(o.reason, want.reason) || (o.reason == "") != (want.reason == "") {
		return false
	}
	o.reason = want.reason
	return o == want
}

// String is for the table: "succeeded, fetched, 2 lines".
func (o outcome) String() string {
	if o.state == "" {
		return "nothing"
	}
	fetch := "present"
	if o.fetched {
		fetch = "fetched"
	}
	if o.state == "failed" && o.reason != "" {
		return fmt.Sprintf("failed: %s", o.reason)
	}
	return fmt.Sprintf("%s, %s, %d lines", o.state, fetch, o.lines)
}
