package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/internal/sandbox/capture"
	"github.com/tdf-go/tdf/internal/sandbox/control"
	"github.com/tdf-go/tdf/internal/sandbox/process"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// round is one claimed task while this worker holds it.
type round struct {
	*Claimed
	worker  *Worker
	slot    *slot // nil for one that is handed back at once
	clock   redisClock
	log     *slog.Logger // keeps lines of level info until the worker flushes them
	journal journal
	command string // that is run, in the place of a run.sh
	place
	over  bool // the program ended and nothing of it is left
	alone bool // and it has put nothing into its private directory

	streams atomic.Pointer[streams] // once there
	said    atomic.Pointer[string]  // the result of a program

	mu       sync.Mutex
	followed statemachine.Time // since when somebody reads along, 0 for nobody
	sending  bool              // to a reader who follows
	control  *control.Reader   // of a program
	last     told              // what that said last, for the report
	meta     map[string]string // attributes that it has set
	metaTold map[string]string // those that are recorded
	eta      time.Time         // when it wants to run again, as it has said
	status   int               // what it says became of it; 0 if it has not
	handled  *Job              // of a handler

	results []task.Result // of the tasks that this one needs, once read

	apart    bool          // no slot waits for its report
	waited   time.Duration // when it began (see [Reported]), as ran
	ran      time.Duration
	stopping atomic.Bool // it is cancelled, or overdue
}

func (w *Worker) newRound(ctx context.Context, c *Claimed, clock redisClock, s *slot) *round {
	log := w.turns
	if s == nil {
		log = w.log // it has no turn
	}
	log = log.With("task", c.Task.ID, "round", c.Task.Round)
	if log.Enabled(ctx, slog.LevelInfo) { // the lines are not made for nothing
		from, to := statemachine.ClaimMove()
		log.Info(fmt.Sprintf("moving task %d: %s -> %s", c.Task.ID, from, to))
		log.Info(fmt.Sprintf("claimed task %d", c.Task.ID))
	}
	r := &round{Claimed: c, worker: w, slot: s, clock: clock, log: log}
	r.journal.round = r
	return r
}

// execute does the round's work and judges it. A panic is the round's error: a
// task that causes one must come to its end, and others have to go on.
func (r *round) execute(ctx context.Context) (end ending) {
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			stack := debug.Stack()
			r.log.Error(fmt.Sprintf("panic while executing task %d: %v", r.Task.ID, p), "stack", string(stack))
			end = ending{event: statemachine.Report, result: notRun(), trace: trace(stack)}
			end.fails(nil, &ownError{fmt.Sprintf("internal error of worker '%s': %v", r.worker.opts.Name, p)})
		}
	}()
	result, err := r.run(ctx)
	return r.conclude(ctx, &result, err)
}

// bounded limits the round to the task's timeout, counted from the claim, or from its beginning if it was claimed ahead, and
// to its end_before.
func (r *round) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	end, cause := r.Task.RoundEnd(0), ErrTimeout
	if r.Expiry < end {
		end, cause = r.Expiry, errEndBefore
	}
	if d, ok := r.clock.until(end); ok {
		return context.WithTimeoutCause(ctx, d, cause)
	}
	return ctx, func() {}
}

// run does the work: the handler's, where there is one of the program's name, or
// the program's, which is fetched first where necessary.
func (r *round) run(ctx context.Context) (result, error) {
	if ctx.Err() != nil {
		return notRun(), nil //nolint:nilerr // why it was stopped is judged later
	}
	r.journal.add("executing task " + strconv.FormatInt(r.Task.ID, 10) + ": " + r.Spec.Program + " " + inputText(&r.Spec))
	if err := r.takeResults(ctx); err != nil {
		return notRun(), err
	}
	if name, ok := strings.CutPrefix(r.Spec.Source, task.CommandPrefix); ok {
		src, _ := task.ParseSource(r.Spec.Source) // the error is that of checkCommand
		r.command = cmp.Or(src.Path, name)
	}
	if h := r.worker.opts.Handlers[r.Spec.Program]; h != nil && r.command == "" {
		switch {
		case r.Spec.Return != nil:
			return notRun(), errNoDirectory
		case r.Spec.Stdin != "":
			return notRun(), errNoStdin
		case r.Spec.MemoryMax != 0 || r.Spec.PidsMax != 0 || r.Spec.Nice != 0:
			return notRun(), errNoLimits
		}
		return r.handle(ctx, h)
	}
	version, err := r.ensure(ctx)
	if isGone(ctx, err) {
		err = r.leave(ctx, err)
	}
	if err != nil {
		r.log.Error(fmt.Sprintf("could not fetch program '%s'", oneLine(r.Spec.Program)), "error", err)
		r.journal.add(fmt.Sprintf("could not fetch program '%s'", r.Spec.Program))
		return notRun(), &fetchingError{err}
	}
	if err := r.prepare(ctx, version); err != nil {
		return notRun(), err
	}
	res, err := r.runProgram(ctx, version)
	if r.Spec.Return != nil {
		err = r.returnFiles(ctx, version, &res, err)
	}
	return res, r.explain(err)
}

func (r *round) ensure(ctx context.Context) (fetch.Version, error) {
	program, o := r.Spec.Program, &r.worker.opts
	if r.Spec.MemoryMax != 0 || r.Spec.PidsMax != 0 || r.Spec.Nice != 0 {
		if err := r.checkLimits(); err != nil {
			return fetch.Version{}, err
		}
	}
	if r.command != "" {
		if err := r.checkCommand(); err != nil || task.SourceSHA256(r.Spec.Source) == "" {
			return fetch.Version{}, err
		}
	}
	// The name becomes part of paths here too, so it is not left to Programs; that of a command does not.
	if err := task.ValidProgram(program); err != nil && r.command == "" {
		return fetch.Version{}, &fetch.Error{Program: program, Worker: o.Name, Err: err}
	}
	if o.Programs == nil || o.container == nil {
		return fetch.Version{}, &notOfferedError{program, o.Name, "has no handler of that name and runs no programs"}
	}
	for {
		v, err := r.fetch(ctx)
		if err != nil {
			return v, err
		}
		if err = r.slot.held.keep(v, r.Task.ID); !errors.Is(err, fetch.ErrRemoved) {
			return v, err
		}
	}
}

// fetch has the program fetched, if it is not there.
func (r *round) fetch(ctx context.Context) (fetch.Version, error) {
	ensure := func() (fetch.Version, error) {
		return r.worker.opts.Programs.Ensure(ctx, r.Spec.Program, r.Spec.Source, func(line string) { r.journal.write(ctx, line) })
	}
	if source, first := strings.CutSuffix(r.Spec.Source, task.PinFirst); first {
		return r.fetchFirst(ctx, source, ensure)
	}
	return ensure()
}

// checkCommand refuses what only a foreign client can have asked of this worker: others ask for a
// worker that runs commands.
func (r *round) checkCommand() error {
	_, err := task.ParseSource(r.Spec.Source)
	if o := &r.worker.opts; err == nil && (o.Commands == config.CommandsOff || o.container == nil) {
		err = &notOfferedError{r.Spec.Program, o.Name, "runs no commands"}
	}
	return err
}

// checkLimits refuses limits that are none, and those that this worker cannot keep, as it has told: only a foreign client asks for
// them all the same.
func (r *round) checkLimits() error {
	s, o := &r.Spec, &r.worker.opts
	if err := r.checkFields("memory_max", "pids_max", "nice"); err != nil {
		return err
	}
	for name, lacks := range map[string]bool{
		"memory_max": s.MemoryMax != 0 && o.MemoryMax == 0, "pids_max": s.PidsMax != 0 && o.PidsMax == 0,
	} {
		if lacks {
			return &notOfferedError{s.Program, o.Name, "has no " + name + " of its own, so it cannot keep that of a task"}
		}
	}
	return nil
}

// ownMemory is the memory_max of the task if that is what bounds the round, and else 0.
func (r *round) ownMemory() int64 {
	if own := r.Spec.MemoryMax; own < r.worker.opts.MemoryMax {
		return own
	}
	return 0
}

// runProgram runs the program and takes what it writes.
func (r *round) runProgram(ctx context.Context, version fetch.Version) (result, error) {
	res := notRun()
	defer func() { _ = r.stdin.Close() }() // it was only read, or is none
	s, err := r.openStreams()
	if err != nil {
		return res, err
	}
	r.streams.Store(&streams{s.out.Excerpt, s.err.Excerpt})
	r.listen(filepath.Join(r.private, controlFile))
	res.program = version.SHA256
	var runErr error
	res.Result, runErr = r.slot.run(ctx, r.program(s))
	res.ownMemory = r.ownMemory()
	r.over = runErr == nil
	r.alone = r.over && r.slot.held.Untouched()
	resErr := r.closeControl()
	res.brought, res.status = r.said.Load(), r.status
	var outErr, errErr error
	res.stdout, outErr = s.out.Finish()
	res.stderr, errErr = s.err.Finish()
	if res.stdout.Truncated || res.stderr.Truncated {
		r.keepWhole(ctx, s, &res)
	}
	return res, errors.Join(runErr, outErr, errErr, resErr)
}

// taken is what takes the two streams of a program.
type taken struct{ out, err *capture.Stream }

func (r *round) openStreams() (p taken, err error) {
	o := &r.worker.opts
	options := capture.Options{Limit: o.OutputLimit, Whole: o.OutputMax, WholeFile: func() (*os.File, error) {
		s, err := disk.NewScratch(r.worker.privateDir())
		if err != nil {
			return nil, err
		}
		return s.File, nil
	}}
	options.File, options.Stream = r.fileName(o.OutputFile), "stdout"
	p.out, err = capture.Open(options)
	if err != nil {
		return p, err
	}
	options.File, options.Stream = r.fileName(o.ErrorFile), "stderr"
	p.err, err = capture.Open(options)
	if err != nil {
		_, closeErr := p.out.Finish()
		err = errors.Join(err, closeErr)
	}
	return p, err
}

// explain names program and worker where it could not be started.
func (r *round) explain(err error) error {
	var start *process.StartError
	if !errors.As(err, &start) {
		return err
	}
	what, failed := "program './"+r.Spec.Program+"/run.sh'", "could not start %s at worker '%s': %w"
	if r.command != "" {
		what = "command '" + r.command + "'"
	}
	if start.Reason == process.ReasonMissing || start.Reason == process.ReasonUnknown {
		failed = "%s does not exist at worker '%s': %w"
	}
	return fmt.Errorf(failed, what, r.worker.opts.Name, err)
}

func inputText(s *task.Spec) string {
	if s.Argv != nil {
		return strings.Join(s.Argv, " ")
	}
	return s.Input
}

// longestVariable is the longest value the system passes on in one variable
// (128 KiB with name, equals sign and final zero).
const longestVariable = 128<<10 - len("TDF_INPUT=") - 1

// paramsVariable has the parameters of the task.
const paramsVariable = "TDF_PARAMS"

// controlFile is the file in the private directory through which a program
// tells how far it has come.
const controlFile = ".tdf-control"

// program says how the program is run.
func (r *round) program(s taken) shim.Program {
	w := r.worker
	return shim.Program{
		Dir: r.dir, File: r.command, View: r.view, Args: r.words(),
		Env: process.Environment(w.allow, w.environ, r.variables()), Variables: r.Spec.Variables,
		Stdin: r.stdin, MemoryMax: r.Spec.MemoryMax, PidsMax: r.Spec.PidsMax, Nice: r.Spec.Nice,
		Output:  [2]shim.Taker{s.out, s.err},
		Grace:   w.opts.KillGrace,
		StopNow: func() bool { return r.slot.hard.Load() || w.stoppedNow.Load() },
	}
}

// variables tell the program who it is. TDF_INPUT is missing if the input is
// too long for a variable, TDF_DEADLINE if there is none, TDF_ENV if the worker
// offers none. Of each resource that the task asks for, gpu for example,
// TDF_RESOURCE_GPU says how much the round got and TDF_RESOURCE_GPU_IDS which
// pieces, counted from 0 and separated by commas; the latter is missing if the
// node has too many to tell them apart. TDF_ARGS and TDF_ARGS_DIR are there if the
// task needs others, TDF_META_TENANT if its meta has a tenant, TDF_PARAMS if
// it has parameters.
func (r *round) variables() map[string]string {
	v := map[string]string{
		"TDF_TASK_ID":   strconv.FormatInt(r.Task.ID, 10),
		"TDF_ROUND":     strconv.Itoa(r.Task.Round),
		"TDF_WORKER":    r.worker.opts.Name,
		"TDF_NODE":      r.worker.opts.Node,
		"TDF_NAMESPACE": r.worker.site.Namespace,
		"TDF_PROGRAM":   r.Spec.Program,
		"TDF_QUEUE":     r.Bucket.QueueName(),
		"TDF_PRIORITY":  strconv.Itoa(r.Bucket.Priority),
		"TDF_SLOT":      strconv.Itoa(r.slot.index),
		"TDF_WORKDIR":   r.private,
		"TDF_CONTROL":   filepath.Join(r.private, controlFile),
	}
	if env := r.worker.opts.Env; env != "" {
		v["TDF_ENV"] = env
	}
	allotted(v, r.Resources)
	for name, text := range r.Spec.Meta {
		v["TDF_META_"+strings.ToUpper(name)] = text
	}
	if len(r.Spec.Needs) > 0 {
		v["TDF_ARGS"] = filepath.Join(r.private, argumentsFile)
		v["TDF_ARGS_DIR"] = filepath.Join(r.private, argumentsDir)
	}
	if r.Spec.Params != nil {
		v[paramsVariable] = string(r.Spec.Params)
	}
	if len(r.Spec.Input) <= longestVariable {
		v["TDF_INPUT"] = r.Spec.Input
	}
	if deadline := min(r.Task.EndBefore, r.Task.RoundEnd(0)); deadline != statemachine.Never {
		v["TDF_DEADLINE"] = deadline.Text()
	}
	return v
}

// allotted adds what the round got of its node. Which pieces of x it got is said
// last, should another resource be named x_ids.
func allotted(v map[string]string, got map[string]task.Allotted) {
	variable := func(name string) string { return "TDF_RESOURCE_" + strings.ToUpper(name) }
	for name, part := range got {
		v[variable(name)] = strconv.Itoa(part.Count)
	}
	for name, part := range got {
		if len(part.IDs) > 0 {
			v[variable(name)+"_IDS"] = joinInts(part.IDs)
		}
	}
}

func joinInts(numbers []int) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}

// fileName fills in a template of a file name. Program and worker have been
// checked to be no paths.
func (r *round) fileName(template string) string {
	return strings.NewReplacer(
		"$worker", r.worker.opts.Name,
		"$taskId", strconv.FormatInt(r.Task.ID, 10),
		"$round", strconv.Itoa(r.Task.Round),
		"$program", r.Spec.Program,
	).Replace(template)
}

const (
	// noteTimeout bounds one attempt to write a line at once.
	noteTimeout = 2 * time.Second
	// longestLine bounds what a task's input or program can make a line of.
	longestLine = 1024
)

// journal collects the worker's lines for one task's log. They go along with
// the report, which costs nothing, or are written at once, for what takes long.
type journal struct {
	round *round

	mu     sync.Mutex // a fetch may speak from a goroutine of its own
	lines  []Line
	failed bool // writing at once did not work; not tried again
}

// add keeps a line for the report.
func (j *journal) add(text string) {
	text = oneLine(text)
	j.round.log.Info(text)
	j.round.worker.flush()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, Line{At: j.round.clock.now(), Text: text})
}

// write adds a line and writes all there are at once. If that fails, they
// wait for the report.
func (j *journal) write(ctx context.Context, text string) {
	j.add(text)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	if err := j.round.tell(ctx, News{Lines: j.lines}); err != nil {
		j.failed = true
		j.round.log.Warn(fmt.Sprintf("could not write the log of task %d, it will go along with the report", j.round.Task.ID), "error", err)
		return
	}
	j.lines = nil
}

// take returns the lines not written yet.
func (j *journal) take() []Line {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := j.lines
	j.lines = nil
	return lines
}

// oneLine makes a text from a task fit for one line of a log.
func oneLine(text string) string { return clean.Line(text, longestLine) }
