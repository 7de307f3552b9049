package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/sandbox/capture"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// What the error field says of a round that was stopped.
const (
	stoppedOverdue   = "TERMINATED - execution timed out..."
	stoppedEndBefore = "TERMINATED - end_before has passed"
	stoppedCancelled = "TERMINATED - cancelled"
)

// result is what a program or handler did.
type result struct {
	shim.Result
	stdout, stderr capture.Captured
	program        string  // hash of the program
	brought        *string // its result, if it said one
	status         int     // what it says became of it; 0 if it did not say
	files          task.Files
	whole          []string // as the record has them
	full           []string // the names of those in whole; a stream that was cut there too has another
	unreturned     bool     // files that it was to return could not be
	ownMemory      int64    // the memory_max of the task, where that is what bounds the round
	handled        bool     // by a handler, whose error says what its exit code means
}

// notRun is the result of a program that was not started.
func notRun() result { return result{Result: shim.Result{ExitCode: -1}} }

// ending is how a round ended: what to tell Redis, and what to record.
type ending struct {
	event  statemachine.Event
	result result
	// trouble is what a step of the worker has to say; not empty, it makes the
	// round a failure whatever the program did.
	trouble string
	// class is the kind of failure, if it was one.
	class statemachine.Class
	// foreign is set if other tasks are to blame, whose results cannot be used.
	foreign bool
	// why the task is handed back, for HandBack.
	why error
	// trace is the stack of a panic.
	trace string
	// retry is what a handler says of the next round (see [statemachine.Round]).
	retry statemachine.Time
	// stuck is set if what ran may still run: it waits a while and reports
	// whether that has ended.
	stuck func(context.Context) bool
}

// conclude says what a result means. Why ctx is done decides what becomes of a
// round that was stopped.
func (r *round) conclude(ctx context.Context, res *result, err error) ending {
	if !res.Started && short(err) {
		err = &hostError{err}
	}
	end := ending{event: statemachine.Report, result: *res, retry: nextTry(err, r.Task.Current.Running, r.clock.now())}
	end.fails(nil, err)
	if panicked, ok := errors.AsType[*panicError](err); ok {
		end.trace = trace(panicked.stack)
	}
	_, end.foreign = errors.AsType[*argumentError](err)
	end.stuck = r.stillRuns(err)
	cause := context.Cause(ctx)
	if res.Cause != shim.Cancelled && res.Cause != shim.Killed && end.stuck == nil && res.Started && !errors.Is(err, shim.ErrShimLost) {
		cause = nil // it ended by itself
	}
	if why := handsBack(cause, res, err); why != nil {
		end.event, end.why = statemachine.HandBack, why
		return end
	}
	switch {
	case errors.Is(cause, errEndBefore):
		end.fails(cause, err, stoppedEndBefore)
	case errors.Is(cause, ErrTimeout):
		end.event = statemachine.StopOverdue
		end.fails(cause, err, stoppedOverdue)
	case errors.Is(cause, ErrCancelled):
		end.event = statemachine.Terminate
		end.fails(cause, err, stoppedCancelled)
	}
	return end
}

// handsBack is why a round is handed back, nil if it is not. cause is why it was
// stopped, nil if it was not.
func handsBack(cause error, res *result, err error) error {
	switch {
	case is[*hostError](err), is[*notOfferedError](err), cause == nil && is[*leftError](err):
		return err
	case res.Cause == shim.LeaseOver: // by the shim, while this process was frozen
		return errLeaseOver
	case cause == nil && is[*handBackError](err):
		return err
	case errors.Is(cause, ErrTimeout), errors.Is(cause, ErrCancelled):
		return nil
	default:
		return cause
	}
}

// is reports whether err is an E or wraps one.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// stillRuns waits for what may still run after an error, and reports whether that has ended; nil if nothing may.
func (r *round) stillRuns(err error) func(context.Context) bool {
	if stuck, ok := errors.AsType[*stuckError](err); ok {
		return stuck.ended
	}
	if errors.Is(err, shim.ErrUnkillable) {
		return r.slot.unkillable
	}
	return nil
}

// fails records the trouble outside the program, and the class of the round in
// case it is a failure. stopped is why the worker ended the round, nil if it did
// not, and lines are the text about that.
func (e *ending) fails(stopped, err error, lines ...string) {
	e.trouble, e.class = "", classify(stopped, &e.result, err)
	if err != nil {
		e.trouble = err.Error()
	}
	for _, line := range lines {
		e.trouble = withLine(e.trouble, line)
	}
}

// errorText is the round's error, empty for a success: by default what stands on
// stderr or, if that is empty, a bad exit, and a status that says so. aside is what the program wrote to stderr
// where that is no error.
func (e *ending) errorText(failOn string) (text, aside string) {
	text = string(e.result.stderr.Data)
	bad, status := badExit(&e.result), badStatus(e.result.status)
	switch {
	case failOn == task.FailOnExit && bad == "" && status == "" && e.trouble == "":
		return "", text
	case failOn != task.FailOnStderr && text == "":
		text = bad
	}
	for _, line := range []string{status, e.trouble} {
		if line != "" {
			text = withLine(text, line)
		}
	}
	return text, ""
}

// badStatus says what a program has reported, empty if that is no failure.
func badStatus(status int) string {
	if status <= 1 {
		return ""
	}
	return fmt.Sprintf("the program reported status %d", status)
}

// badExit says how a program ended that did not end well by itself.
func badExit(res *result) string {
	switch {
	case !res.Started || res.Cause != shim.Ended || res.handled:
		return ""
	case res.OutOfMemory && res.ownMemory > 0:
		return "out of memory: memory_max of the task, " + clean.SizeText(res.ownMemory) + ", was reached"
	case res.OutOfMemory:
		return "out of memory: memory_max was reached"
	case res.Signal != 0:
		return fmt.Sprintf("killed by signal %s", res.Signal)
	case res.ExitCode > 0:
		return fmt.Sprintf("exit status %d", res.ExitCode)
	default:
		return ""
	}
}

// withLine appends a line to a text that may lack a line end.
func withLine(text, line string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + line
}

// short reports whether this host has no more of what the worker needs to begin a
// round: descriptors, processes, memory, room on its disk, mounts.
func short(err error) bool {
	return disk.Full(err) || errors.Is(err, shim.ErrView) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM)
}

// shortage is how long the worker claims nothing because its host could not begin
// a round. The zero value is no shortage.
type shortage struct {
	mu    sync.Mutex
	pause timing.Backoff
	until time.Time
	why   string
}

// begin starts a rest, longer than the one before if no program ran meanwhile.
func (s *shortage) begin(why error) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pause.First, s.pause.Most = 500*time.Millisecond, 30*time.Second
	if time.Now().Before(s.until) {
		return time.Until(s.until) // another slot has met it in the same moment
	}
	rest := s.pause.Next()
	s.until, s.why = time.Now().Add(rest), why.Error()
	return rest
}

// over is called when a program could be started.
func (s *shortage) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pause.Reset()
}

// now is why the worker rests, "" if it does not.
func (s *shortage) now() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().Before(s.until) {
		return s.why
	}
	return ""
}

// countShortage makes a round that this host could not begin a fault, where its
// task was handed back for that often enough. Only here are the rounds before this
// one asked for.
func (r *round) countShortage(ctx context.Context, end *ending) {
	unable, ok := errors.AsType[*hostError](end.why)
	if !ok || end.event != statemachine.HandBack {
		return
	}
	nodes, err := r.shortBefore(ctx)
	if err != nil {
		r.log.Debug("could not read how the rounds before ended; the task is handed back", "error", err)
		return
	}
	if statemachine.ShortageCounts(nodes, r.worker.opts.Node) {
		end.event = statemachine.Report
		end.fails(nil, unable)
		end.class = statemachine.ClassShortage
	}
}

// shortBefore are the nodes of the rounds right before this one, the latest first, that
// their nodes could not begin, as far as they matter.
func (r *round) shortBefore(ctx context.Context) (nodes []string, err error) {
	first := max(0, r.Task.Round-statemachine.MostShortages)
	var names []string
	for n := first; n < r.Task.Round; n++ {
		names = append(names, statemachine.RoundField(n, "class"), statemachine.RoundField(n, "node"))
	}
	if len(names) == 0 {
		return nil, nil
	}
	found, err := r.worker.opts.Backend.Fields(ctx, []int64{r.Task.ID}, names...)
	if err != nil {
		return nil, err
	}
	for n := r.Task.Round - 1; n >= first; n-- {
		if statemachine.Class(found[0][statemachine.RoundField(n, "class")]) != statemachine.ClassShortage {
			break
		}
		nodes = append(nodes, found[0][statemachine.RoundField(n, "node")])
	}
	return nodes, nil
}

// record gathers the fields of one round: names and values in turn.
type record struct {
	round  int
	fields []string
}

// usualTexts is how many texts a round leaves that was neither cut nor named anything special.
const usualTexts = 16

func (c *record) set(name, value string) {
	c.fields = append(c.fields, statemachine.RoundField(c.round, name), value)
}

// fields are the record of the round; cut says that a part of its output or files is lost.
func (e *ending) fields(round int, text, aside string) (fields []string, cut bool) {
	c := &record{round: round, fields: make([]string, 0, usualTexts)}
	res := &e.result
	c.set("output", string(res.stdout.Data))
	c.set("error", text)
	if aside != "" {
		c.set("stderr", aside)
	}
	if res.brought != nil {
		c.set("result", *res.brought)
	}
	if res.status != 0 {
		c.set("status", strconv.Itoa(res.status))
	}
	if e.trace != "" {
		c.set("trace", e.trace)
	}
	if text != "" && (e.event == statemachine.Report || e.event == statemachine.StopOverdue) {
		c.set("class", string(e.class))
	}
	c.size("output", &res.stdout)
	c.size("error", &res.stderr)
	if res.program != "" {
		c.set("program_sha256", res.program)
	}
	if res.files.Count > 0 {
		c.set("files", res.files.Text())
	}
	if res.whole != nil {
		c.set("whole", strings.Join(res.whole, " "))
	}
	if res.Started {
		c.usage(res)
	}
	if res.unreturned || res.stdout.Truncated || res.stderr.Truncated {
		cut = c.cut(res)
	}
	return c.fields, cut
}

// cut says, at the head of the record, what of the round is kept nowhere in full, and reports whether there is such.
func (c *record) cut(res *result) bool {
	names := res.cut()
	if res.unreturned {
		names = append(names, "files")
	}
	if names != nil {
		c.fields = append(c.fields, "cut", strconv.Itoa(c.round)+" "+strings.Join(names, " "))
	}
	return names != nil
}

// cut names the streams of which not all is kept anywhere.
func (res *result) cut() (names []string) {
	for i, s := range [...]*capture.Captured{&res.stdout, &res.stderr} {
		if name := streamNames[i]; s.Truncated && !slices.Contains(res.full, name) {
			names = append(names, name)
		}
	}
	return names
}

// streamNames are stdout and stderr in records.
var streamNames = [...]string{"output", "error"}

// exit is the exit code of a program that had one.
func (res *result) exit() (code int, ok bool) {
	if !res.Started || res.Signal != 0 || res.ExitCode < 0 {
		return 0, false
	}
	return res.ExitCode, true
}

// usage is how the program ended and what it took.
func (c *record) usage(res *result) {
	if res.Signal != 0 {
		c.set("signal", res.Signal.String())
	} else if code, ok := res.exit(); ok {
		c.set("exit_code", strconv.Itoa(code))
	}
	c.set("user_time", timing.FromStd(res.UserTime).Text())
	c.set("system_time", timing.FromStd(res.SystemTime).Text())
	c.set("max_memory", strconv.FormatInt(res.MaxMemory, 10))
}

// size describes a stream of which not all is stored; of any other, size and
// hash can be had from what is stored.
func (c *record) size(stream string, s *capture.Captured) {
	if s.Truncated {
		c.set(stream+"_bytes", strconv.FormatInt(s.Size, 10))
		if s.SHA256 != "" {
			c.set(stream+"_sha256", s.SHA256)
		}
	}
}

// dropRound is the round that loses its output when round is recorded and the task
// keeps the output of keep rounds: the first half of them and the last half, rounded
// up. It is negative for none.
func dropRound(round, keep int) int {
	first := keep / 2
	if drop := round - (keep - first); keep > 0 && drop >= first {
		return drop
	}
	return -1
}

// drop takes the output of a middle round out of the task, visibly.
func drop(order *Commit, round int) {
	if round < 0 {
		return
	}
	order.Fields = append(order.Fields, statemachine.RoundField(round, "dropped"), "1")
	for _, name := range []string{"output", "error", "stderr", "result", "trace", "whole"} {
		order.Drop = append(order.Drop, statemachine.RoundField(round, name))
	}
}
