package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// report tells Redis how the round ended, until Redis has recorded or refused
// it or ctx leaves no more time. While Redis does not take it the report waits
// on disk too, for a later incarnation. It tells whether the round is recorded
// as a success, and what the slot has to do next, if the report has brought that.
func (r *round) report(ctx context.Context, end *ending) (success bool, next *assignment) {
	r.refuseCut(ctx, end)
	r.countShortage(ctx, end)
	commit, err := r.commit(end)
	if err != nil {
		r.log.Error(fmt.Sprintf("could not report task %d", r.Task.ID), "error", err)
		return false, nil
	}
	spooled, cut := false, false
	for {
		l := &pendingReport{commit: &commit, slot: r.successor(&commit, end, next), patient: r.apart}
		r.worker.reporter.send(ctx, l)
		err := l.err
		if l.next != nil {
			next = l.next
		}
		switch {
		case err == nil && r.crossed(&commit, end, l.outcome.Err):
			continue
		case err == nil:
			r.worker.reporting.answered()
			if spooled {
				r.worker.unspool(r.spoolName())
			}
			return r.reported(ctx, &commit, &l.outcome), next
		case ctx.Err() == nil && !cut && !errors.Is(err, task.ErrUnreachable):
			cut = true
			r.shorten(&commit, end, err)
			continue
		}
		spooled = spooled || r.worker.spoolCommit(r.spoolName(), &commit)
		if ctx.Err() != nil {
			r.log.Error(fmt.Sprintf("stopped without having reported task %d", r.Task.ID), "error", err, "kept_on_disk", spooled)
			return false, next
		}
		timing.Pause(ctx, r.worker.reporting.failed(err))
	}
}

// successor is the slot if it may have another task at once, else nil.
func (r *round) successor(commit *Commit, end *ending, next *assignment) *slot {
	success := commit.Event == statemachine.Report && !commit.Failed
	if r.slot == nil || r.apart || next != nil || end.blocks() || r.worker.shortage.now() != "" ||
		r.worker.opts.pauseAfter(success) > 0 {
		return nil
	}
	return r.slot
}

// crossed decides anew about a round that was to be opened again, where Redis
// says that the task was cancelled meanwhile. It reports whether there is a new
// commit.
func (r *round) crossed(commit *Commit, end *ending, refused error) bool {
	move, ok := withStop(&commit.Move, refused)
	if !ok {
		return false
	}
	r.Task.StopAsked = true
	if end.event == statemachine.HandBack {
		end.trouble = withLine(end.trouble, stoppedCancelled)
	}
	r.journal.add(notOpenedAgain)
	text, aside := end.errorText(r.Spec.FailOn)
	again := r.recorded(move, end, text, aside)
	again.Lines = append(commit.Lines, again.Lines...)
	*commit = again
	return true
}

// shorten replaces a record that Redis does not take by one that says so.
func (r *round) shorten(commit *Commit, end *ending, err error) {
	r.log.Error(fmt.Sprintf("redis does not take the report of task %d", r.Task.ID), "error", err)
	if end.event == statemachine.HandBack {
		return
	}
	short := ending{event: end.event, result: notRun(), retry: end.retry}
	short.fails(nil, &ownError{"the round's output could not be stored: " + err.Error()})
	if end.event != statemachine.Report {
		short.class = end.class
	}
	if again, err := r.commit(&short); err == nil {
		again.Lines = append(commit.Lines, again.Lines...)
		*commit = again
	}
}

// reported logs what became of the report.
func (r *round) reported(ctx context.Context, commit *Commit, outcome *Outcome) bool {
	id := r.Task.ID
	if seen := r.worker.opts.OnReport; seen != nil {
		seen(Reported{
			Queue: r.Spec.Queue, Event: commit.Event, Failed: commit.Failed, Refused: outcome.Err, Waited: r.waited, Ran: r.ran,
		})
	}
	if outcome.Err != nil {
		r.log.Warn(fmt.Sprintf(refusalText(commit.Event), id), "error", outcome.Err)
		return false
	}
	if r.log.Enabled(ctx, slog.LevelInfo) { // as in newRound
		made := commit.Move
		if outcome.Unsettled || outcome.Result == statemachine.Repeated { // then nobody says how far it went
			made = commit.Unsettled()
		}
		for _, edge := range made.Edges() {
			r.log.Info(fmt.Sprintf("moving task %d: %s -> %s", id, edge.From, edge.To))
		}
	}
	switch {
	case commit.Event == statemachine.StopOverdue:
		r.log.Warn(fmt.Sprintf("task %d was terminated (timeout)", id))
	case commit.To == statemachine.Terminated:
		r.log.Info(fmt.Sprintf("task %d was terminated (cancelled)", id))
	}
	return commit.Event == statemachine.Report && !commit.Failed
}

// waitedFor is how long the task has waited for this moment since it could start; negative if that is not known.
func (r *round) waitedFor() time.Duration {
	t := &r.Task
	since := t.StartAfter
	if t.Round > 0 { // after a failure from the end of its rest
		since = t.NotBefore
	}
	if len(r.Spec.Needs) > 0 || t.Round != t.Fails || since <= 0 {
		return -1
	}
	return max(0, timing.ToStd(r.clock.now().Sub(since)))
}

func refusalText(event statemachine.Event) string {
	switch event {
	case statemachine.HandBack:
		return "could not hand back task %d (taken back by the server?)"
	case statemachine.StopOverdue:
		return "could not mark task %d as timed out (timed out by server?)"
	case statemachine.Terminate:
		return "could not mark task %d as terminated (taken back by the server?)"
	default:
		return "could not mark task %d as executed (timed out by server?)"
	}
}

// commit is the decided move with the round's record.
func (r *round) commit(end *ending) (Commit, error) {
	text, aside := end.errorText(r.Spec.FailOn)
	o := statemachine.Occurrence{
		Event: end.event, Actor: statemachine.Worker, Claim: r.Task.Current.Claim, Round: r.Task.Round,
		Failed: text != "", Random: rand.Float64(), Retry: end.retry, Settles: r.settles(),
	}
	if o.Failed {
		o.Class = end.class
	}
	o.ExitCode, o.HasExit = end.result.exit()
	t := r.Task
	if o.Settles {
		t.EndBefore = r.Expiry // by the clock that decides
	}
	move, err := statemachine.Decide(&t, o, r.clock.now())
	if err != nil {
		return Commit{}, err
	}
	return r.recorded(move, end, text, aside), nil
}

// settles reports whether a success of this round is settled here and not by a server, which has more to do for a plan.
func (r *round) settles() bool { return r.worker.opts.Settle == config.SettleByWorker && r.Plan == 0 }

// recorded is a decided move with the record of the round, whose error is text.
func (r *round) recorded(move statemachine.Move, end *ending, text, aside string) Commit {
	t := &r.Task
	commit := Commit{Move: move, Writer: r.worker.opts.Name, Bucket: r.Bucket, Node: end.news(text != ""), Meta: r.newMeta()}
	if move.Event == statemachine.HandBack && move.NextRound {
		r.journal.add("handing back task " + strconv.FormatInt(t.ID, 10) + ": " + end.why.Error())
		commit.Fields = end.refusal(t.Round)
	} else {
		commit.Fields, commit.Cut = end.fields(t.Round, text, aside)
		commit.Fields = append(commit.Fields, begunFields(t)...)
		if move.Failed && move.Retry != 0 {
			commit.Fields = append(commit.Fields, statemachine.RoundField(t.Round, "retry"), move.Retry.Text())
		}
		if at := r.wanted(); !at.IsZero() {
			commit.Fields = append(commit.Fields, statemachine.RoundField(t.Round, "eta"), task.Stamp(at).Text())
		}
		if p, fresh := r.pollProgress(); fresh {
			commit.Fields = append(commit.Fields, statemachine.RoundField(t.Round, "progress"), p.String())
		}
		drop(&commit, dropRound(t.Round, r.worker.opts.KeepRounds))
	}
	commit.Lines = r.journal.take()
	return commit
}

// wanted is when the program or handler wants to run again; zero if it did not say.
func (r *round) wanted() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.handled != nil {
		return r.handled.wanted()
	}
	return r.eta
}

// refusal is what the record says of a round that this worker could not do: nothing where it was another reason.
func (e *ending) refusal(round int) []string {
	class := declined(e.why)
	if left, ok := errors.AsType[*leftError](e.why); ok {
		return []string{statemachine.RoundField(round, "class"), string(statemachine.ClassFetch), avoidField, left.avoid()}
	}
	if class == "" {
		return nil
	}
	return []string{statemachine.RoundField(round, "class"), string(class)}
}

// notOpenedAgain is what the log of a task says where its worker was about to
// have it run again, and finds it cancelled.
const notOpenedAgain = "the task was cancelled: it is not opened again"

// withStop decides anew about a round that was to be opened again, where Redis
// says that a stop was asked for meanwhile. ok is false if it says anything else.
func withStop(m *statemachine.Move, refused error) (again statemachine.Move, ok bool) {
	if !errors.Is(refused, statemachine.ErrStopAsked) || m.StopAsked {
		return again, false
	}
	task := statemachine.Task{
		ID: m.ID, State: m.From, Round: m.Round, Rev: m.Rev, StopAsked: true,
		Current: statemachine.Round{Claim: m.Claim},
	}
	o := statemachine.Occurrence{Event: m.Event, Actor: m.Actor, Claim: m.Claim, Round: m.Round}
	again, err := statemachine.Decide(&task, o, 0) // there is no time left that it could depend on
	return again, err == nil
}

// applySpooled applies a commit from the spool. Where a stop was asked for while it
// lay there, it decides anew, as [round.crossed] does.
func (w *Worker) applySpooled(ctx context.Context, commit Commit) (Outcome, error) {
	outcome, err := w.move(ctx, &commit)
	if err != nil || !cross(&commit, outcome.Err, w.clock.Load().now()) {
		return outcome, err
	}
	return w.move(ctx, &commit)
}

// cross decides anew about a report that was to open its task again, where Redis has refused it because the task was cancelled
// meanwhile. It reports whether there is something to send. All that is known of a round that was to be handed back is that.
func cross(o *Commit, refused error, now statemachine.Time) bool {
	move, ok := withStop(&o.Move, refused)
	if !ok {
		return false
	}
	o.Move = move
	o.Lines = append(o.Lines, Line{At: now, Text: notOpenedAgain})
	if move.Event == statemachine.HandBack {
		o.Fields = append(o.Fields, statemachine.RoundField(move.Round, "error"), stoppedCancelled)
	}
	return true
}

// move sends one commit alone.
func (w *Worker) move(ctx context.Context, commit *Commit) (Outcome, error) {
	turn := w.opts.Backend.Turn(ctx, []Commit{*commit}, nil)
	if turn.Moved != nil {
		return Outcome{}, turn.Moved
	}
	return turn.Outcomes[0], nil
}

// reporter sends the reports of all slots, those that come while a call is under way together after it. It claims in the same
// breath for those that their report makes free, and for idle ones if the dispatcher has left them to it.
type reporter struct {
	worker *Worker

	mu      sync.Mutex
	waiting []*pendingReport
	sending bool
	linger  *time.Timer   // ends the wait of reports that are all patient
	sent    chan struct{} // closed when nothing is sent any more; nil while nobody awaits that
}

// pendingReport is a report on its way.
type pendingReport struct {
	commit *Commit
	slot   *slot     // that would like another task; nil for none
	turn   chan bool // while others send: true to send what waits, false when this one was sent
	// patient says that no slot waits for the report, which came at the moment since: it may wait for others.
	patient bool
	since   time.Time

	outcome Outcome
	err     error
	next    *assignment
}

// Bounds of one call, which blocks Redis: its reports, and the bytes after which it begins no further one.
const (
	mostReports = 40
	mostBytes   = 256 << 10
)

// send returns when the report has its outcome, or an error.
func (o *reporter) send(ctx context.Context, l *pendingReport) {
	l.turn, l.since = make(chan bool, 1), time.Now()
	if !o.enter(l) && !<-l.turn {
		return
	}
	batch := o.take()
	o.sendBatch(ctx, batch)
	for _, other := range batch[1:] {
		other.turn <- false
	}
	o.sendNext()
}

// enter adds a report to those that wait. It returns true if the caller is to send them now.
func (o *reporter) enter(l *pendingReport) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sending || l.patient {
		o.waiting = append(o.waiting, l)
		o.next()
		return false
	}
	o.waiting = append([]*pendingReport{l}, o.waiting...)
	o.sending = true
	return true
}

// take returns what is sent next, the sender's own report first.
func (o *reporter) take() []*pendingReport {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, bytes := 0, 0
	for n < min(len(o.waiting), mostReports) && bytes <= mostBytes {
		for _, text := range o.waiting[n].commit.Fields {
			bytes += len(text)
		}
		n++
	}
	batch := o.waiting[:n:n]
	o.waiting = o.waiting[n:]
	return batch
}

// sendNext lets one of those that wait send, now or in a while.
func (o *reporter) sendNext() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sending = false
	o.next()
	if !o.sending && o.sent != nil {
		close(o.sent)
		o.sent = nil
	}
}

// await waits while reports are sent, which claim for idle slots too meanwhile: a claim beside them would keep them from that, and
// leave more slots idle. It reports whether there were any.
func (o *reporter) await(ctx context.Context) bool {
	o.mu.Lock()
	if o.sending && o.sent == nil {
		o.sent = make(chan struct{})
	}
	sent := o.sent
	o.mu.Unlock()
	if sent == nil {
		return false
	}
	select {
	case <-sent:
	case <-ctx.Done():
	}
	return true
}

// awaited reports whether somebody does so.
func (o *reporter) awaited() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sent != nil
}

// next lets one of those that wait send, if nobody does. If all are patient, it waits until the first has waited long enough.
func (o *reporter) next() {
	if o.sending || len(o.waiting) == 0 {
		return
	}
	patient := !slices.ContainsFunc(o.waiting, func(l *pendingReport) bool { return !l.patient })
	if left := o.worker.pace.gather() - time.Since(o.waiting[0].since); patient && left > 0 {
		if o.linger != nil {
			o.linger.Stop()
		}
		o.linger = time.AfterFunc(left, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.next()
		})
		return
	}
	o.sending = true
	o.waiting[0].turn <- true
}

// sendBatch sends reports. What Redis refuses to carry out as a whole is sent one by one, so that none suffers from another.
func (o *reporter) sendBatch(ctx context.Context, batch []*pendingReport) {
	commits := make([]Commit, len(batch))
	var free []*slot
	for i, l := range batch {
		commits[i] = *l.commit
		if l.slot != nil {
			free = append(free, l.slot)
		}
	}
	outcomes, next, err := o.call(ctx, commits, free)
	for i, l := range batch {
		switch {
		case err == nil:
			l.outcome = outcomes[i]
		case len(batch) > 1 && ctx.Err() == nil && !errors.Is(err, task.ErrUnreachable):
			l.outcome, l.err = o.worker.move(ctx, l.commit)
		default:
			l.err = err
		}
		l.next = next[l.slot]
	}
}

// call makes the moves, and claims for the free slots if that can be now.
func (o *reporter) call(ctx context.Context, commits []Commit, free []*slot) ([]Outcome, map[*slot]*assignment, error) {
	w := o.worker
	request := o.request(len(free))
	turn := w.opts.Backend.Turn(ctx, commits, request)
	if request == nil {
		return turn.Outcomes, nil, turn.Moved
	}
	incarnation := request.Incarnation
	clock, err := w.claims.end(&turn.Reply, turn.Claimed)
	if err != nil { // the dispatcher repeats it once a slot is idle
		w.log.Debug("a claim that went along with a report had no answer", "error", err)
		return turn.Outcomes, nil, turn.Moved
	}
	w.sayClaimed(&turn.Reply)
	if turn.Moved != nil {
		free = nil // they are not
	}
	//nolint:contextcheck // rounds end by the worker's own stages
	return turn.Outcomes, o.assign(turn.Reply.Tasks, clock, incarnation, free), turn.Moved
}

// request returns a claim for n slots and those that are idle, and of further tasks ahead, or nil if there can be none now.
func (o *reporter) request(n int) *ClaimRequest {
	w := o.worker
	free, ahead := w.pool.vacant(), w.further()
	if n+free+ahead == 0 || free > 0 && !o.awaited() || w.whyPaused().kind != "" {
		return nil
	}
	n += free
	session := w.lease.last()
	return w.claims.begin(session.Incarnation, n+ahead, ahead)
}

// assign gives tasks to slots, keeps those claimed ahead, and hands back what none may begin any more.
func (o *reporter) assign(tasks []Claimed, clock redisClock, incarnation int64, free []*slot) map[*slot]*assignment {
	w := o.worker
	next := make(map[*slot]*assignment, len(tasks))
	for i := range tasks {
		a := newAssignment(&tasks[i], clock, incarnation)
		if len(next) < len(free) && slotsOf(&tasks[i]) == 1 {
			s := free[len(next)]
			if first := w.keep(s, a); first != nil {
				next[s] = first
				continue
			}
		}
		w.place(a)
	}
	return next
}
