package worker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Rules implements [Claims]. The gateway has the rules, and claims by them: the worker is always to ask.
func (r *remote) Rules(context.Context, string) (Rules, error) {
	return Rules{Version: 1, Known: 1, Buckets: []task.Bucket{{}}}, nil
}

// Claim implements [Claims].
func (r *remote) Claim(ctx context.Context, req ClaimRequest) (ClaimReply, error) {
	t := r.turn(ctx, nil, &req, 0)
	return t.Reply, t.Claimed
}

// shortWait is the least time that a wait takes that brings nothing.
const shortWait = 100 * time.Millisecond

// WaitAndClaim implements [Claims]. No wake-up comes to the worker.
func (r *remote) WaitAndClaim(ctx context.Context, _ WaitFor, d time.Duration, req ClaimRequest) (w Waited) {
	if ctx.Err() != nil {
		w.Reply.Stale = true
		return w
	}
	begun := time.Now()
	t := r.turn(ctx, nil, &req, min(d, mostWait))
	w.Reply, w.Claimed = t.Reply, t.Claimed
	if w.Claimed == nil && len(w.Reply.Tasks) == 0 {
		timing.Pause(ctx, min(d, shortWait)-time.Since(begun))
	}
	if errors.Is(w.Claimed, task.ErrUnreachable) && ctx.Err() == nil {
		w.Err = w.Claimed
	}
	return w
}

// PassOn implements [Claims].
func (r *remote) PassOn(context.Context, WakeUp) error { return nil }

// Turn implements [Rounds]. That tasks of a former session are lost the gateway says when the worker registers again.
func (r *remote) Turn(ctx context.Context, commits []Commit, next *ClaimRequest) Turn {
	if len(commits) > 0 && commits[0].Event == statemachine.Lose {
		r.mu.Lock()
		r.yields = true
		r.mu.Unlock()
		outcomes := make([]Outcome, len(commits))
		for i := range commits {
			outcomes[i] = Outcome{ID: commits[i].ID, Result: statemachine.Repeated}
		}
		return Turn{Outcomes: outcomes}
	}
	return r.turn(ctx, commits, next, 0)
}

// turn reports and claims, and waits d for tasks.
func (r *remote) turn(ctx context.Context, commits []Commit, next *ClaimRequest, d time.Duration) (t Turn) {
	request := RoundTurn{Whole: true, Wait: task.Seconds(d)}
	for i := range commits {
		request.Reports = append(request.Reports, reportOf(&commits[i]))
	}
	if next != nil {
		request.Incarnation, request.Slots, request.Ahead, request.Request = next.Incarnation, next.Max, next.Ahead, r.numbered(next.Request)
	}
	var answer RoundAnswer
	err := r.call(ctx, http.MethodPost, "/turn", &request, &answer, d)
	if err == nil && len(answer.Outcomes) != len(commits) {
		err = fmt.Errorf("turn: %d outcomes for %d reports", len(answer.Outcomes), len(commits))
	}
	if err != nil {
		return Turn{Moved: err, Claimed: err}
	}
	for i := range answer.Outcomes {
		t.Outcomes = append(t.Outcomes, r.outcome(&answer.Outcomes[i], &commits[i]))
	}
	switch {
	case next == nil:
	case answer.Incarnation == 0:
		t.Claimed = fmt.Errorf("claim: worker %s, incarnation %d: %w", r.name, next.Incarnation, ErrLeaseLost)
	default:
		t.Reply, t.Claimed = r.reply(&answer)
	}
	return t
}

// numbered is the name of a claim for the gateway, with a number that rises with each other claim.
func (r *remote) numbered(request string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if request != r.last {
		r.last = request
		r.number++
	}
	return r.prefix + "-" + strconv.Itoa(r.number)
}

// reply reads the tasks that the worker got.
func (r *remote) reply(answer *RoundAnswer) (ClaimReply, error) {
	reply := ClaimReply{Now: task.Stamp(answer.Now), Next: statemachine.Never, More: answer.More, Wider: answer.Wider}
	for i := range answer.Tasks {
		var c wholeTask
		if err := gob.NewDecoder(bytes.NewReader(answer.Tasks[i].Claimed)).Decode(&c); err != nil {
			return ClaimReply{}, fmt.Errorf("task %d: %w", answer.Tasks[i].Task, err)
		}
		if c.Words && c.Claimed.Spec.Argv == nil {
			c.Claimed.Spec.Argv = []string{}
		}
		reply.Tasks = append(reply.Tasks, c.Claimed)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range reply.Tasks {
		r.held[c.Task.ID] = c
	}
	return reply, nil
}

// reportOf is a commit as the gateway is told of it, which decides the move again.
func reportOf(c *Commit) RoundEnd {
	e := RoundEnd{RoundRef: RoundRef{Task: c.ID, Round: c.Round, Claim: c.Claim}, Meta: c.Meta}
	e.Record, e.Node, e.Lines, e.StopAsked = map[string]recordText{}, c.Node, linesFor(c.Lines), c.StopAsked
	switch c.Event { //nolint:exhaustive // others are not over HTTP
	case statemachine.StopOverdue:
		e.Ended = EndedOverdue
	case statemachine.Terminate:
		e.Ended = EndedCancelled
	case statemachine.HandBack:
		e.Ended = EndedHandedBack
	}
	for pair := range slices.Chunk(c.Fields, 2) {
		name, text := pair[0], pair[1]
		_, of, ok := statemachine.ParseRoundField(name)
		switch {
		case name == "cut":
			e.Cut = strings.Fields(text)[1:]
		case name == avoidField:
			e.Avoid = text
		case ok && of != "dropped": // the gateway drops
			e.Record[of] = recordText(text)
		}
	}
	if c.Event == statemachine.HandBack && c.NotBefore != 0 {
		e.Record["retry"] = recordText(c.NotBefore.Text())
	}
	return e
}

func linesFor(lines []Line) (all []roundLine) {
	for _, l := range lines {
		all = append(all, roundLine{At: task.Moment(l.At), Text: l.Text})
	}
	return all
}

// outcome is what became of a commit. The round stays held while its worker has to decide again.
func (r *remote) outcome(o *ReportOutcome, c *Commit) Outcome {
	made := Outcome{ID: o.Task, Result: statemachine.Moved, Unsettled: c.Settles()}
	switch o.Outcome {
	case "repeated":
		made.Result = statemachine.Repeated
	case "refused":
		made.Result, made.Err = statemachine.Refused, &refusedReportError{o.Why, o.Code}
	}
	if o.Code != codeStopAsked {
		r.mu.Lock()
		delete(r.held, o.Task)
		r.mu.Unlock()
	}
	return made
}

// refusedReportError is why a report was refused.
type refusedReportError struct{ why, code string }

// Error says why.
func (e *refusedReportError) Error() string { return e.why }

// Is reports whether the code of the refusal stands for target.
func (e *refusedReportError) Is(target error) bool {
	return slices.ContainsFunc(refusals, func(r refusalCode) bool { return r.code == e.code && r.kind == target })
}

// Tell implements [Rounds].
func (r *remote) Tell(ctx context.Context, _ string, t *statemachine.Task, news News) error {
	r.mu.Lock()
	session := r.session
	r.mu.Unlock()
	n := RoundNews{
		RoundRef: RoundRef{Task: t.ID, Round: t.Round, Claim: t.Current.Claim}, Incarnation: session,
		Meta: news.Meta, Lines: linesFor(news.Lines),
	}
	if p := news.Progress; p != nil {
		n.Text = oneLine(p.Text)
		if p.Part >= 0 {
			n.Progress = &p.Part
		}
	}
	for _, c := range news.Chunks {
		if c.Stream == streamNames[0] {
			n.Output, n.OutputOffset = c.Data, c.Offset
		} else {
			n.Error, n.ErrorOffset = c.Data, c.Offset
		}
	}
	return ofRound(r.call(ctx, http.MethodPost, "/news", &n, nil, 0))
}

// ofRound is an error about a round: a conflict means that it is over.
func ofRound(err error) error {
	if statusOf(err) == http.StatusConflict {
		return fmt.Errorf("%w: %w", statemachine.ErrStale, err)
	}
	return err
}

// ask asks about a round that the worker holds, the first one that fits.
func (r *remote) ask(ctx context.Context, q RoundQuestion, fits func(c *Claimed) bool) (a RoundFacts, err error) {
	r.mu.Lock()
	for _, c := range r.held {
		if fits(&c) {
			q.RoundRef = RoundRef{Task: c.Task.ID, Round: c.Task.Round, Claim: c.Task.Current.Claim}
			break
		}
	}
	r.mu.Unlock()
	if q.Task == 0 {
		return a, fmt.Errorf("the worker holds no such round: %w", statemachine.ErrStale)
	}
	err = r.call(ctx, http.MethodPost, "/question", &q, &a, 0)
	return a, ofRound(err)
}

// Results implements [Rounds].
func (r *remote) Results(ctx context.Context, ids []int64) ([]task.Result, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	a, err := r.ask(ctx, RoundQuestion{Results: ids}, func(c *Claimed) bool {
		needs := idsOf(c.Spec.Needs)
		return !slices.ContainsFunc(ids, func(id int64) bool { return !slices.Contains(needs, id) })
	})
	if err == nil && len(a.Results) != len(ids) {
		err = fmt.Errorf("%d results for %d tasks", len(a.Results), len(ids))
	}
	if err != nil {
		return nil, err
	}
	results := make([]task.Result, len(ids))
	for i, b := range a.Results {
		results[i] = task.Result{Task: b.Task, End: statemachine.State(b.State), Cut: b.Cut, Text: string(b.Base64)}
		if b.Result != nil {
			results[i].Text = *b.Result
		}
	}
	return results, nil
}

// Fields implements [Rounds], for tasks that the worker holds.
func (r *remote) Fields(ctx context.Context, ids []int64, names ...string) ([]map[string]string, error) {
	all := make([]map[string]string, len(ids))
	for i, id := range ids {
		a, err := r.ask(ctx, RoundQuestion{Fields: names}, func(c *Claimed) bool { return c.Task.ID == id })
		if err != nil {
			return nil, err
		}
		all[i] = a.Fields
	}
	return all, nil
}

// FirstVersion implements [Rounds], for tasks that the worker holds.
func (r *remote) FirstVersion(ctx context.Context, plan task.PlanID, source, sha256 string) (string, error) {
	a, err := r.ask(ctx, RoundQuestion{First: &firstQuestion{source, sha256}}, func(c *Claimed) bool {
		return cmp.Or(c.Plan, c.Job) == plan && c.Spec.Source == source+task.PinFirst
	})
	return a.Version, err
}

// Keepers implements [Rounds], for tasks that the worker holds.
func (r *remote) Keepers(ctx context.Context, _ string, b task.Bucket, version string) (keep []string, asked int, err error) {
	a, err := r.ask(ctx, RoundQuestion{Keepers: version}, func(c *Claimed) bool {
		return c.Bucket.Name() == b.Name() && strings.HasSuffix(version, "@"+task.SourceSHA256(c.Spec.Source))
	})
	return a.Keep, a.Asked, err
}

// Blob implements [Rounds].
func (r *remote) Blob(ctx context.Context, sha256 string, w io.Writer) error {
	_, err := r.send(ctx, http.MethodGet, "/blobs/"+sha256, http.NoBody, 0, "", func(body io.Reader) error {
		_, err := io.Copy(w, body)
		return err
	})
	if statusOf(err) == http.StatusNotFound {
		return fmt.Errorf("sha256 %s: %w: %w", sha256, task.ErrNoBlob, err)
	}
	return err
}

// PutFiles implements [Rounds].
func (r *remote) PutFiles(ctx context.Context, sha256 string, size int64, content io.ReaderAt, asked bool) error {
	path := "/files/" + sha256
	if !asked {
		path += "?spare=true"
	}
	const kind = "application/octet-stream"
	_, err := r.send(ctx, http.MethodPut, path, io.NewSectionReader(content, 0, size), size, kind, func(io.Reader) error { return nil })
	if s := statusOf(err); s == http.StatusInsufficientStorage || s == http.StatusRequestEntityTooLarge {
		return fmt.Errorf("%w: %w", task.ErrNoRoom, err)
	}
	return ofRound(err)
}
