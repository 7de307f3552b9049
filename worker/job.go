package worker

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/sandbox/capture"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Job is one round of a task for a [Handler]. The zero value is usable in a test that
// calls a handler itself: set what the handler reads, and look at [Job.Said]
// afterwards. A Job must not be copied.
type Job struct {
	// Task is what a worker reads of the task: ID, Round, State, Rev, Plan and the
	// counters, and of its Spec Program, Source, Input, Argv, Params, FailOn, Queue, Class, Needs,
	// Args and Meta; other fields are zero. ID and Round identify the round: a task may be
	// started more than once, each time in a round of its own. Program is the name
	// the handler is registered by, Input what the task brings.
	Task task.Task
	// Attempt says which try of the task this is, from 1. Rounds that were handed back do
	// not count.
	Attempt int
	// Args are its words as a program would get them: with the texts of Results
	// behind them, unless the task has args = files.
	Args []string
	// Results are those of the tasks of its plan that this one needs, in the order in
	// which it names them.
	Results []task.Result
	// Resources is the share of its node that the round has, by name. It must not be
	// changed.
	Resources map[string]task.Allotted
	// OutputLimit is how many bytes of each stream are stored, and the most that
	// SetResult takes; see Settings.OutputLimit. 0 in a test stands for the default.
	OutputLimit int64

	log      *slog.Logger
	draining <-chan struct{}
	once     sync.Once
	streams  *streams
	said     atomic.Pointer[string]

	mu   sync.Mutex
	told told
	meta map[string]string
	eta  time.Time
}

// told is progress that a handler tells by a call.
type told struct {
	progress Progress
	fresh    bool
}

// job is the round as its handler sees it.
func (r *round) job() *Job {
	t, spec := &r.Task, r.Spec
	spec.Variables = nil // they are for programs, and a handler may print its job
	j := &Job{
		Task: task.Task{
			ID: t.ID, State: t.State, Round: t.Round, Rev: t.Rev, Plan: r.Plan, Spec: spec,
			Fails: t.Fails, Timeouts: t.Timeouts, Losses: t.Losses, Releases: t.Releases, Faults: t.Faults,
		},
		Attempt: t.Round - t.Releases + 1,
		Args:    r.words(), Results: r.results, Resources: r.Resources, OutputLimit: r.worker.opts.OutputLimit,
		log: r.worker.log, draining: r.worker.serving.Load().Done(),
	}
	r.streams.Store(j.written())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handled = j
	return j
}

// Stdout is recorded as a program's output is.
func (j *Job) Stdout() io.Writer { return j.written().out }

// Stderr is recorded as what a program writes to stderr; see the task's fail_on.
func (j *Job) Stderr() io.Writer { return j.written().err }

// written are the streams, made when they are first asked for.
func (j *Job) written() *streams {
	j.once.Do(func() {
		j.streams = &streams{capture.NewExcerpt(j.limit()), capture.NewExcerpt(j.limit())}
	})
	return j.streams
}

func (j *Job) limit() int64 {
	if j.OutputLimit == 0 {
		return config.Defaults().Worker.OutputLimit
	}
	return j.OutputLimit
}

// Logger is that of the worker, with the task and the round; slog.Default in a test.
func (j *Job) Logger() *slog.Logger {
	if j.log == nil {
		return slog.Default()
	}
	return j.log.With("task", j.Task.ID, "round", j.Task.Round)
}

// Draining is closed when the worker drains: it claims nothing more, and goes on with
// what it has until its DrainTimeout is over, without a limit if an operator drains
// it. A long handler can then keep what it has reached, and return [HandBack]. In a
// test it is nil.
func (j *Job) Draining() <-chan struct{} { return j.draining }

// Progress says how far the job is: part is from 0 to 1, text a few words. It is
// recorded within about a second.
func (j *Job) Progress(part float64, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.told = told{progress: Progress{Part: min(max(part, 0), 1), Text: oneLine(text)}, fresh: true}
}

// SetMeta sets an attribute of the task, by its name, beside those in Task.Meta; an empty text removes it. It is recorded
// within about a second. The error is a [*statemachine.FieldError], for a name or text that no attribute has.
func (j *Job) SetMeta(name, text string) error {
	if err := checkAttr(name, text); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.meta == nil {
		j.meta = map[string]string{}
	}
	j.meta[name] = text
	return nil
}

func checkAttr(name, text string) error {
	return task.CheckMeta(map[string]string{name: text})
}

// saidMeta are the attributes set so far.
func (j *Job) saidMeta() map[string]string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.meta)
}

// takeProgress is what was told last; fresh unless it was taken before.
func (j *Job) takeProgress() (p Progress, fresh bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fresh = j.told.fresh
	j.told.fresh = false
	return j.told.progress, fresh
}

// SetResult sets the result that the tasks which need this one get, in place of
// what the job writes to Stdout; the last call counts. It may have as many bytes as
// the worker's OutputLimit: with more the round is a failure.
func (j *Job) SetResult(text string) { j.said.Store(&text) }

// SetETA says when the task of a series wants to run again, if the series leaves that to its program (see package series); the last call
// counts. The error is a [*statemachine.FieldError], for a time before 1970 or after the year 9999.
func (j *Job) SetETA(at time.Time) error {
	if at.Unix() < 1 || at.UTC().Year() > 9999 {
		return &statemachine.FieldError{Field: "eta", Value: at.Format(time.RFC3339), Want: "a time from 1970 to the year 9999"}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.eta = at
	return nil
}

// wanted is what SetETA was told.
func (j *Job) wanted() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.eta
}

// result is what the job brings, nil for nothing said.
func (j *Job) result() (*string, error) {
	said := j.said.Load()
	if limit := j.limit(); said != nil && int64(len(*said)) > limit {
		return nil, fmt.Errorf("the handler's result has %d bytes, and output_limit is %d: return less, or raise the limit",
			len(*said), limit)
	}
	return said, nil
}

// Said is what a handler has said of its job so far.
type Said struct {
	// Stdout and Stderr are what it wrote there, cut at the OutputLimit.
	Stdout, Stderr string
	// Result is what it gave to SetResult, nil for nothing.
	Result *string
	// Progress is what it told last.
	Progress task.Progress
	// Meta are the attributes that it has set, with an empty text those that it has removed.
	Meta map[string]string
	// ETA is what it gave to SetETA.
	ETA time.Time
}

// Said is what the handler has said so far, for tests of handlers.
func (j *Job) Said() Said {
	live := j.written()
	out, err := live.out.Captured(), live.err.Captured()
	j.mu.Lock()
	defer j.mu.Unlock()
	s := Said{Stdout: string(out.Data), Stderr: string(err.Data), Result: j.said.Load(), Meta: maps.Clone(j.meta), ETA: j.eta}
	if j.told != (told{}) {
		s.Progress = task.ParseProgress(j.told.progress.String())
	}
	return s
}
