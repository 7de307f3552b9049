// Package scenario runs small stories about tasks, written as text, on any
// [World] that has tasks: the state machine alone, in its own tests, and a real
// store. The same files must give the same answers on both. It is imported by
// tests only.
//
// A file holds commands, each followed by the answer that is expected:
//
//	# A15: a task beyond its end_before is not claimed, even before a server looks.
//	> open end_before=1s
//	opened task 1
//
//	> advance 2s
//
//	> claim W1
//	nothing to claim
//
//	> deadline 1
//	task 1: open -> expired, round 0
//
// Times count from the beginning of the story, and stand still except for
// "advance". Workers speak from what they were told at their claim; servers
// and managers decide from what they read now, or, with "by=NAME", from what
// NAME read before with "read".
//
// The commands:
//
//	open [start_after=T] [end_before=T] [timeout=D] [held=yes]
//	     [max_fails=N] [max_timeouts=N] [max_losses=N] [max_faults=N] [charge=program]
//	     [retry_delay=D] [retry_backoff=F] [retry_max_delay=D] [retry_jitter=F]
//	     [retry_exit_codes=N,N...] [fatal_exit_codes=N,N...]
//	claim WORKER                        takes the next due task
//	heartbeat WORKER ID                 learns whether a stop was asked for
//	report WORKER ID ok|error [class=C] [exit_code=N] [retry=T] [settles=yes] [late=D]
//	stop-overdue WORKER ID [random=F]   terminate WORKER ID
//	hand-back WORKER ID [retry=T]
//	deadline ID [grace=D] [random=F] [by=NAME]
//	settle ID [excused=yes] [random=F] [by=NAME]
//	lose ID [by=NAME]                   the server takes it from a lost worker
//	take-back ID [by=NAME]              a worker loses what its name held before
//	archive ID [by=NAME]                hold, unblock, cancel ID [by=NAME]
//	read NAME ID                        what NAME will decide from, once
//	repeat NAME                         sends NAME's last message again
//	try ACTOR EVENT ID                  an event by a kind of actor, allowed or not
//	advance D                           lets time pass
//	show ID                             state, counters and stamps
//
// After every command the runner checks that each task stands in exactly one
// list, the one of its state, that its counters agree with its round, and that
// what was refused or repeated has changed nothing.
package scenario

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	sm "github.com/tdf-go/tdf/statemachine"
)

// World is a place where tasks live. It has one clock, which stands still
// between two calls of Advance and begins anywhere.
//
// Errors other than those named end the story.
type World interface {
	// Open creates a task with the times, limits, backoff, exit codes and charge
	// of spec and returns its id; the first is 1, the next 2. If spec.State is
	// [sm.Blocked] the task begins on hold. No other field of spec is set.
	Open(spec sm.Task) (int64, error)
	// Claim gives a worker the next due task, by the time it is due, then first in,
	// first out. It reports false when no task is due. The task comes as it stands after
	// the claim. The same request again returns the same task.
	Claim(worker, request string) (sm.Task, bool, error)
	// Read returns a task. Past rounds may be missing.
	Read(id int64) (sm.Task, error)
	// Move carries a decision out. If m.Failed, the round's error text becomes
	// one that is not empty; m.Class, m.Retry and, if m.HasExit, m.ExitCode become
	// the round's. A refusal matches [sm.ErrStale], [sm.ErrConflict] or
	// [sm.ErrStopAsked].
	Move(m sm.Move) (sm.Result, error)
	// Stamps returns the recorded moments of a task by their field names:
	// "0:running".
	Stamps(id int64) (map[string]sm.Time, error)
	// Lists returns the state lists in which the task stands.
	Lists(id int64) ([]sm.State, error)
	// Now is the time of the world's clock.
	Now() (sm.Time, error)
	// Advance sets the world's clock forward.
	Advance(d sm.Duration) error
}

// Test plays every *.txt of dir, each as a subtest in a new world of its own,
// and compares. With rewrite the files are given the answers instead.
func Test(t *testing.T, dir string, rewrite bool, newWorld func(*testing.T) World) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories in %s: %v", dir, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			script, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Run(newWorld(t), script)
			if err != nil {
				t.Fatal(err)
			}
			if rewrite {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(script), string(got)); diff != "" {
				t.Errorf("the story goes otherwise (- file, + world):\n%s", diff)
			}
		})
	}
}

// Run plays a story on w and returns it with the answers that w gives. The
// story is as expected if the result equals the script. The error is that of a
// broken promise, of an unknown command, or of the world itself.
func Run(w World, script []byte) ([]byte, error) {
	p, err := newPlay(w)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	answered := false // the lines that follow a command are its old answer
	for n, line := range strings.Split(strings.TrimSuffix(string(script), "\n"), "\n") {
		command, isCommand := strings.CutPrefix(line, "> ")
		switch {
		case isCommand:
			answer, err := p.command(strings.Fields(command))
			if err != nil {
				return nil, fmt.Errorf("line %d: %s: %w", n+1, command, err)
			}
			fmt.Fprintln(&out, line)
			out.WriteString(answer)
			answered = true
		case line == "" || strings.HasPrefix(line, "#"):
			fmt.Fprintln(&out, line)
			answered = false
		case !answered:
			return nil, fmt.Errorf("line %d: %q answers no command", n+1, line)
		}
	}
	return out.Bytes(), nil
}
