package store_test

import (
	"errors"
	"strconv"

	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// someBuckets are where the tasks of the model wait.
var someBuckets = []task.Bucket{
	{}, {Priority: 2}, {Env: "java", Labels: "gpu=1"},
	{Queue: "q"}, {Queue: "q", Priority: -1}, {Queue: "q", Resources: "gpu=1"}, {Queue: "q", Resources: "gpu=2", Priority: 1},
}

func (w *twins) open(rt *rapid.T) {
	n := rapid.IntRange(1, 3).Draw(rt, "tasks")
	specs := make([]task.Definition, n)
	for i := range specs {
		specs[i] = w.spec(rt)
	}
	ids, err := w.sp.Store.Open(w.t.Context(), tasks.OpenRequest{Key: w.token("o"), Specs: specs})
	if err != nil {
		rt.Fatal(err)
	}
	for i, id := range ids {
		if _, taken := w.tasks[id]; taken {
			rt.Fatalf("id %d is given twice", id)
		}
		w.tasks[id] = w.create(rt, id, &specs[i])
	}
}

// spec draws a task: deadlines near enough to be met, limits small enough to be
// exceeded, and the spellings of infinity.
func (w *twins) spec(rt *rapid.T) task.Definition {
	at := func(most int) string {
		return w.now.Add(statemachine.Duration(rapid.IntRange(0, most).Draw(rt, "seconds")) * second / 2).Text()
	}
	infinite := rapid.SampledFrom([]string{"inf", "+inf", "Infinity"})
	limit := rapid.SampledFrom([]string{"0", "1", "2", "inf"})
	return storetest.Spec(func(s *task.Definition) {
		storetest.Set(s, "start_after", rapid.SampledFrom([]string{"0", at(6), w.now.Add(-3 * second).Text()}).Draw(rt, "start"))
		storetest.Set(s, "end_before", rapid.SampledFrom([]string{infinite.Draw(rt, "never"), w.now.Add(4 * second).Text(), "1900000000"}).Draw(rt, "end_before"))
		storetest.Set(s, "timeout", rapid.SampledFrom([]string{infinite.Draw(rt, "forever"), "0.5", "3"}).Draw(rt, "timeout"))
		storetest.Set(s, "max_fails", limit.Draw(rt, "fails"), "max_timeouts", limit.Draw(rt, "timeouts"), "max_losses", limit.Draw(rt, "losses"))
		storetest.SetBucket(s, rapid.SampledFrom(someBuckets).Draw(rt, "bucket"))
		storetest.Set(s, "max_faults", limit.Draw(rt, "faults"), "charge", rapid.SampledFrom([]string{"", "all", "program"}).Draw(rt, "charge"))
		storetest.Set(s, "archive", rapid.SampledFrom([]string{"", "manager", "at_once"}).Draw(rt, "archive"))
		storetest.Set(s, "retry_delay", rapid.SampledFrom([]string{"", "0", "0.5", "3"}).Draw(rt, "delay"))
		storetest.Set(s, "retry_backoff", rapid.SampledFrom([]string{"", "1", "2.5"}).Draw(rt, "backoff"))
		storetest.Set(s, "retry_max_delay", rapid.SampledFrom([]string{"", "inf", "4"}).Draw(rt, "max delay"))
		storetest.Set(s, "retry_exit_codes", rapid.SampledFrom([]string{"", "", "1,75"}).Draw(rt, "codes"))
		storetest.Set(s, "fatal_exit_codes", rapid.SampledFrom([]string{"", "", "2"}).Draw(rt, "fatal"))
		storetest.Set(s, "hold", rapid.SampledFrom([]string{"", "", "", "why"}).Draw(rt, "held"))
	})
}

// create is the model's side of open.
func (w *twins) create(rt *rapid.T, id int64, s *task.Definition) *twin {
	must := func(err error) {
		if err != nil {
			rt.Fatal(err)
		}
	}
	t := &twin{bucket: s.Bucket(), stamps: map[string]statemachine.Time{}}
	var err error
	t.ID = id
	t.StartAfter, err = statemachine.ParseTime(s.Text("start_after"))
	must(err)
	t.EndBefore, err = statemachine.ParseTime(s.Text("end_before"))
	must(err)
	t.Timeout, err = statemachine.ParseDuration(s.Text("timeout"))
	must(err)
	for name, limit := range map[string]*statemachine.Limit{
		"max_fails": &t.MaxFails, "max_timeouts": &t.MaxTimeouts, "max_losses": &t.MaxLosses, "max_faults": &t.MaxFaults,
	} {
		*limit, err = statemachine.ParseLimit(s.Text(name))
		must(err)
	}
	must(t.retries(s))
	m, err := statemachine.Decide(&t.Task, statemachine.Occurrence{
		Event: statemachine.Create, Actor: statemachine.Manager, Held: s.Text("hold") != "",
	}, w.now)
	must(err)
	w.tasks[id] = t
	if _, err = w.model(m); err != nil {
		rt.Fatal(err)
	}
	t.Rev = 0 // Redis does not count the creation
	return t
}

// retries reads what says when a failed task is run again.
func (t *twin) retries(s *task.Definition) error {
	t.ChargeProgram = s.Text("charge") == "program"
	t.AtOnce = s.Text("archive") == task.ArchiveAtOnce
	codes := map[string][]int{"1,75": {1, 75}, "2": {2}}
	t.RetryCodes, t.FatalCodes = codes[s.Text("retry_exit_codes")], codes[s.Text("fatal_exit_codes")]
	var errs [3]error
	span := func(text string) (statemachine.Duration, error) {
		if text == "" || text == "inf" && s.Text("retry_max_delay") == text || text == "0" {
			return 0, nil
		}
		return statemachine.ParseDuration(text)
	}
	t.Backoff.Delay, errs[0] = span(s.Text("retry_delay"))
	t.Backoff.Max, errs[1] = span(s.Text("retry_max_delay"))
	if s.Text("retry_backoff") != "" && s.Text("retry_backoff") != "1" {
		t.Backoff.Factor, errs[2] = strconv.ParseFloat(s.Text("retry_backoff"), 64)
	}
	return errors.Join(errs[:]...)
}

func (w *twins) token(kind string) string {
	w.count++
	return kind + strconv.Itoa(w.count)
}

func (w *twins) claim(rt *rapid.T) {
	worker, s := w.someWorker(rt)
	req := w.request(rt, worker)
	if len(s.issued) > 0 && rapid.Bool().Draw(rt, "under a session") {
		req.Incarnation = s.incarnation
		if rapid.IntRange(0, 3).Draw(rt, "old") == 0 {
			req.Incarnation = rapid.SampledFrom(s.issued).Draw(rt, "session").Incarnation
		}
	}
	w.claimAs(rt, worker, req)
}

func (w *twins) compareClaimed(rt *rapid.T, c *tasks.Claimed) {
	want := w.tasks[c.Task.ID]
	got := c.Task
	got.Past, got.Current.End = want.Past, want.Current.End
	if !sameAllotted(c.Resources, want.allotted) {
		rt.Fatalf("claimed task %d with %+v, the model %+v", c.Task.ID, c.Resources, want.allotted)
	}
	if diff := diffTask(want.Task, got); diff != "" || c.Bucket != want.bucket {
		rt.Fatalf("claimed task %d of bucket %q (- model, + redis):\n%s", c.Task.ID, c.Bucket.Name(), diff)
	}
}

// worker ends a round, perhaps one that is over since long.
func (w *twins) worker(rt *rapid.T) {
	if len(w.held) == 0 {
		rt.Skip("nothing claimed")
	}
	c := rapid.SampledFrom(w.held).Draw(rt, "held")
	o := statemachine.Occurrence{
		Actor: statemachine.Worker, Claim: c.Task.Current.Claim, Round: c.Task.Round,
		Event: rapid.SampledFrom([]statemachine.Event{
			statemachine.Report, statemachine.StopOverdue, statemachine.HandBack, statemachine.Terminate,
		}).Draw(rt, "event"),
		Settles: rapid.Bool().Draw(rt, "settles"),
	}
	var fields []string
	if o.Event == statemachine.Report {
		text := rapid.SampledFrom([]string{"", "bad"}).Draw(rt, "error")
		o.Failed = text != ""
		o.Class = rapid.SampledFrom([]statemachine.Class{"", statemachine.ClassProgram, statemachine.ClassHost}).Draw(rt, "class")
		o.ExitCode = rapid.IntRange(0, 2).Draw(rt, "exit code")
		o.HasExit = o.ExitCode > 0
		o.Retry = rapid.SampledFrom([]statemachine.Time{0, 0, w.now.Add(3 * second), statemachine.Never}).Draw(rt, "retry")
		fields = []string{statemachine.RoundField(c.Task.Round, "error"), text}
	}
	if o.Event == statemachine.HandBack {
		o.Retry = rapid.SampledFrom([]statemachine.Time{0, w.now.Add(second)}).Draw(rt, "not before")
	}
	c.Task.StopAsked = rapid.Bool().Draw(rt, "heard of a stop") && w.tasks[c.Task.ID].StopAsked
	m, err := statemachine.Decide(&c.Task, o, w.now)
	if err != nil {
		rt.Fatal(err)
	}
	if o.Event == statemachine.Report {
		m.Failed = false // the text is in fields already
		fields = append(fields, resultFields(&m)...)
		m.Failed = o.Failed
	}
	w.apply(rt, tasks.Commit{Move: m, Writer: "w", Bucket: c.Bucket, Fields: fields})
}

// clerk is a server or a manager that decides and acts at once.
func (w *twins) clerk(rt *rapid.T) { w.apply(rt, w.decided(rt)) }

// decideOnly keeps a decision for later.
func (w *twins) decideOnly(rt *rapid.T) { w.commits = append(w.commits, w.decided(rt)) }

// decided draws a task and an event that can happen to it.
func (w *twins) decided(rt *rapid.T) tasks.Commit {
	var can []tasks.Commit
	for _, id := range w.ids() {
		t := w.tasks[id]
		for _, actor := range []statemachine.Actor{statemachine.Server, statemachine.Manager} {
			for _, event := range statemachine.Events() {
				o := statemachine.Occurrence{Event: event, Actor: actor, Grace: grace, Excused: w.count%3 == 0}
				if m, err := statemachine.Decide(&t.Task, o, w.now); err == nil {
					can = append(can, tasks.Commit{Move: m, Writer: string(actor), Bucket: t.bucket})
				}
			}
		}
	}
	if len(can) == 0 {
		rt.Skip("nothing can happen")
	}
	return rapid.SampledFrom(can).Draw(rt, "order")
}

// late carries out some decisions of any age in one call.
func (w *twins) late(rt *rapid.T) {
	if len(w.commits) == 0 {
		rt.Skip("no decision yet")
	}
	w.apply(rt, rapid.SliceOfN(rapid.SampledFrom(w.commits), 1, 4).Draw(rt, "commits")...)
}

// repeat sends the last decision again.
func (w *twins) repeat(rt *rapid.T) {
	if len(w.commits) == 0 {
		rt.Skip("no decision yet")
	}
	w.apply(rt, w.commits[len(w.commits)-1])
}

func (w *twins) tick(rt *rapid.T) {
	w.now = w.now.Add(statemachine.Duration(rapid.SampledFrom([]int64{1, 500_000, 1_000_000, 2_500_001, 5_000_000}).Draw(rt, "us")))
	w.sp.SetClock(w.t, w.now)
}

func claimedIDs(tasks []tasks.Claimed) []int64 {
	var ids []int64
	for i := range tasks {
		ids = append(ids, tasks[i].Task.ID)
	}
	return ids
}
