package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/series"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// workerPrefix begins the names of Flock's workers, which end with their numbers.
const workerPrefix = "flock-"

func workerName(wid int64) string { return workerPrefix + strconv.FormatInt(wid, 10) }

// widOf is the number of a worker, 0 for a worker that is not Flock's.
func widOf(name string) int64 {
	wid, err := strconv.ParseInt(strings.TrimPrefix(name, workerPrefix), 10, 64)
	if err != nil || workerName(wid) != name {
		return 0
	}
	return wid
}

// identity begins what is kept of the process of a worker. It has the token, for which alone the worker speaks.
func identity(c *caller) string { return "flock " + c.ID + " " }

// mostThreads is how many tasks a worker may be said to run at a time: it does not say.
const mostThreads = 1000

// addWorker registers a worker under a number that nobody can guess.
func (f *flock) addWorker(ctx context.Context, q *doorRequest) (*doorAnswer, error) {
	const mostAddress = 128
	ip, err := q.text("ip", mostAddress)
	if err == nil && task.CheckNode(ip) != nil {
		err = q.bad("ip", "an address or the name of a host; write for example 10.0.0.5")
	}
	if err != nil {
		return nil, err
	}
	pid, err := q.whole("pid")
	if err != nil {
		return nil, err
	}
	env, err := q.env("cap")
	if err != nil {
		return nil, err
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // it cannot fail
	wid := max(1, number53(random[:]))
	_, _, err = f.gateway.Register(ctx, workerName(wid), ip, &worker.SessionRequest{
		Slots: mostThreads, PID: int(pid), Classes: class(env), HandlersOnly: true, Identity: identity(q.caller) + rand.Text(),
	})
	return &doorAnswer{
		status: http.StatusCreated, location: "/worker/" + strconv.FormatInt(wid, 10), body: map[string]int64{"wid": wid},
	}, err
}

// flockWorker is a worker that lives.
type flockWorker struct {
	wid         int64
	name        string
	incarnation int64
	held        []int64
}

// worker finds the worker that asks, and lets it live on. What it holds and is to end, because it was cancelled or takes too long, is
// over then: Flock's workers cannot be told.
func (f *flock) worker(ctx context.Context, q *doorRequest) (*flockWorker, error) {
	wid := q.number("wid")
	gone := notHere("worker", wid, "it was silent for too long, or never registered: POST /worker")
	w, err := f.m.Worker(ctx, workerName(wid))
	switch {
	case errors.Is(err, task.ErrNoWorker), err == nil && !w.State.Alive():
		return nil, gone
	case err != nil:
		return nil, err
	case !strings.HasPrefix(w.Identity, "http "+identity(q.caller)):
		return nil, newProblem(http.StatusForbidden, fmt.Sprintf("worker %d has registered with another token; use that", wid))
	}
	standing, err := f.gateway.Renew(ctx, w.Name, &worker.SessionBeat{Incarnation: w.Incarnation, Busy: len(w.Tasks)})
	if errors.Is(err, worker.ErrLeaseLost) {
		return nil, gone
	}
	if err != nil {
		return nil, err
	}
	self := &flockWorker{wid: wid, name: w.Name, incarnation: w.Incarnation, held: w.Tasks}
	return self, f.stop(ctx, self, standing.Stops)
}

// stop ends rounds that a worker is to end.
func (f *flock) stop(ctx context.Context, w *flockWorker, stops []worker.Stop) error {
	if len(stops) == 0 {
		return nil
	}
	ended := make(map[int64]worker.Ended, len(stops))
	for _, stop := range stops {
		ended[stop.Task] = stop.Ended
	}
	rounds, err := f.held(ctx, w)
	if err != nil {
		return err
	}
	for _, t := range rounds {
		how, is := ended[t.ID]
		if !is {
			continue
		}
		if _, err := f.report(ctx, w, &worker.RoundEnd{RoundRef: roundOf(t), Ended: how}); err != nil {
			return err
		}
	}
	return nil
}

// held are the tasks that a worker holds.
func (f *flock) held(ctx context.Context, w *flockWorker) ([]*task.Task, error) {
	found, err := f.m.Tasks(ctx, w.held)
	return slices.DeleteFunc(found, func(t *task.Task) bool {
		return t == nil || t.Err != nil || t.State != statemachine.Running || t.Last() == nil || t.Last().Worker != w.name
	}), err
}

func roundOf(t *task.Task) worker.RoundRef {
	r := t.Last()
	return worker.RoundRef{Task: t.ID, Round: r.Number, Claim: r.Claim}
}

// report reports the end of a round, and reports whether it counts.
func (f *flock) report(ctx context.Context, w *flockWorker, end *worker.RoundEnd) (bool, error) {
	a, err := f.gateway.Turn(ctx, w.name, &worker.RoundTurn{Incarnation: w.incarnation, Reports: []worker.RoundEnd{*end}})
	if len(a.Outcomes) == 1 && a.Outcomes[0].Outcome != "refused" { // also if the session is over by now
		return true, nil
	}
	return false, err
}

// beat is the heartbeat.
func (f *flock) beat(ctx context.Context, q *doorRequest) (*doorAnswer, error) {
	_, err := f.worker(ctx, q)
	return &doorAnswer{status: http.StatusNoContent}, err
}

// reserved is a task that a worker is to process.
type reserved struct {
	TID    int64           `json:"tid"`
	ETA    json.Number     `json:"eta"`
	WID    int64           `json:"wid"`
	FID    int64           `json:"fid"`
	Key    string          `json:"task_key"`
	Params json.RawMessage `json:"params,omitempty"`
}

// reserve gives the worker a task that is due, or nothing.
func (f *flock) reserve(ctx context.Context, q *doorRequest) (*doorAnswer, error) {
	w, err := f.worker(ctx, q)
	if err != nil {
		return nil, err
	}
	turn := &f.turns[w.wid%int64(len(f.turns))]
	turn.Lock()
	defer turn.Unlock()
	whole := context.WithoutCancel(ctx) // what was claimed must be known
	for ctx.Err() == nil {
		got, err := f.claim(whole, w)
		if err != nil || got == nil {
			return &doorAnswer{status: http.StatusNoContent}, err
		}
		r, err := f.reservation(whole, q, w, got)
		if err == nil && r != nil && ctx.Err() == nil {
			return &doorAnswer{status: http.StatusOK, body: r}, nil
		}
		if err != nil || r != nil { // the worker does not hear of it
			_, _ = f.report(whole, w, &worker.RoundEnd{RoundRef: got.RoundRef, Ended: worker.EndedHandedBack, Why: "the answer was lost"})
			return nil, errors.Join(err, ctx.Err())
		}
	}
	return nil, ctx.Err()
}

// claim claims a task, nil if none is due.
func (f *flock) claim(ctx context.Context, w *flockWorker) (*worker.Assigned, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	a, err := f.gateway.Turn(ctx, w.name, &worker.RoundTurn{
		Incarnation: w.incarnation, Slots: 1, Busy: len(w.held), Request: fmt.Sprintf("%s-%d", f.process, f.claims.Add(1)),
	})
	switch {
	case errors.Is(err, worker.ErrLeaseLost):
		return nil, notHere("worker", w.wid, "it was silent for too long: POST /worker")
	case err != nil || len(a.Tasks) == 0:
		return nil, err
	}
	return &a.Tasks[0], nil
}

// reservation is what a worker is told of a task that it has claimed. One that is no longer scheduled ends here, and gives nil.
func (f *flock) reservation(ctx context.Context, q *doorRequest, w *flockWorker, got *worker.Assigned) (*reserved, error) {
	tid := tidOf(got.Meta["series"])
	fid, _ := strconv.ParseInt(got.Meta[metaFunction], 10, 64) // 0 for a task that is not Flock's
	if tid == 0 || fid == 0 || len(got.Argv) != 1 {
		_, err := f.report(ctx, w, &worker.RoundEnd{RoundRef: got.RoundRef, Why: "the task has a class of Flock's, but was not scheduled by it"})
		return nil, err
	}
	t, err := f.m.Task(ctx, got.Task)
	if err != nil {
		return nil, err
	}
	s, err := series.Get(ctx, f.m, seriesKey(tid))
	if err != nil && !errors.Is(err, task.ErrNoRecord) {
		return nil, err
	}
	r := &reserved{TID: tid, WID: w.wid, FID: fid, Key: got.Argv[0], Params: t.Params, ETA: "0"}
	if at, err := time.Parse(time.RFC3339Nano, got.Meta["scheduled"]); err == nil {
		r.ETA = epoch(at)
	}
	switch {
	case t.RetryOf > 0: // an operator wants it again
	case s == nil, !slices.Contains(s.Live, got.Task):
		return nil, f.drop(ctx, q, w, got)
	default:
		r.Params = paramsOf(s, t)
	}
	return r, nil
}

// drop ends what is left of a task that was removed while a worker had it.
func (f *flock) drop(ctx context.Context, q *doorRequest, w *flockWorker, got *worker.Assigned) error {
	if _, err := f.m.Cancel(ctx, []int64{got.Task}, q.change("the task was removed", false)); err != nil {
		return err
	}
	_, err := f.report(ctx, w, &worker.RoundEnd{RoundRef: got.RoundRef, Ended: worker.EndedCancelled})
	return err
}

// mostError is how many bytes of an error are kept.
const mostError = 64 << 10

// ending is the report that a worker makes, but for the round.
func (q *doorRequest) ending() (*worker.RoundEnd, error) {
	var success int
	end := &worker.RoundEnd{ExitCode: &success}
	var err error
	if q.has("new_eta") {
		if end.ETA, err = q.moment("new_eta"); err != nil {
			return nil, err
		}
	}
	var text string
	if q.has("error") && json.Unmarshal(q.member("error"), &text) != nil {
		return nil, q.bad("error", "a text; leave it out if there was no error")
	}
	if text != "" {
		end.ExitCode, end.Why = nil, strings.ToValidUTF8(text[:min(len(text), mostError)], "")
		if !end.ETA.IsZero() {
			end.RetryAfter = never // it is due at that time, and not before
		}
	}
	return end, nil
}

// never is the time to the next round where none is wanted.
const never = task.Seconds(1<<63 - 1)

// complete ends a reservation. It goes by what the worker holds, whether the task is still scheduled or not.
func (f *flock) complete(ctx context.Context, q *doorRequest) (*doorAnswer, error) {
	end, err := q.ending()
	if err != nil {
		return nil, err
	}
	w, err := f.worker(ctx, q)
	if err != nil {
		return nil, err
	}
	rounds, err := f.held(ctx, w)
	if err != nil {
		return nil, err
	}
	tid := q.number("tid")
	at := slices.IndexFunc(rounds, func(t *task.Task) bool { return tid != 0 && tidOf(t.Meta["series"]) == tid })
	why := fmt.Sprintf("worker %d has not reserved task %d, or not any more; nothing was done", w.wid, tid)
	refused := newProblem(http.StatusConflict, why)
	if at < 0 {
		return nil, refused
	}
	end.RoundRef = roundOf(rounds[at])
	if counts, err := f.report(ctx, w, end); err != nil {
		return nil, err
	} else if !counts {
		return nil, refused
	}
	if end.ETA.IsZero() && end.Why == "" {
		err = f.removeDone(ctx, tid, rounds[at].ID, q.change("", false))
	}
	return &doorAnswer{status: http.StatusOK, body: map[string]int64{"tid": tid, "wid": w.wid}}, err
}

// removeDone takes a task out of the schedule whose occurrence was the last, so that its key is free, unless it is due again.
func (f *flock) removeDone(ctx context.Context, tid, id int64, o manager.ChangeOptions) error {
	_, _, err := series.RemoveIf(ctx, f.m, seriesKey(tid), func(s *series.Series) bool {
		return s.Next.IsZero() && s.Fallback.IsZero() && newestTask(s) == id && len(s.Live) <= 1
	}, o)
	if errors.Is(err, task.ErrNoRecord) {
		return nil
	}
	return err
}
