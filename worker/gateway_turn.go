package worker

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// RoundTurn is what a worker behind a [Gateway] says when rounds have ended, or when it has room for more.
type RoundTurn struct {
	Incarnation int64 `json:"incarnation" minimum:"0" doc:"Number of the session; 0, with whole, for reports alone."`
	// Reports say how rounds ended.
	Reports []RoundEnd `json:"reports,omitempty" maxItems:"40" doc:"How rounds ended."`
	// Slots is for how many tasks the worker has room, once the reports are made; 0 claims nothing.
	Slots int `json:"slots,omitempty" minimum:"0" maximum:"1000" doc:"For how many tasks it has room now; without it none are given out."`
	// Request names the claim, as a name for the process and a number that rises with each claim: NAME-NUMBER. Sent again, it gets
	// the same tasks, and none once there is a later one. One claim of a worker is under way at a time.
	Request string `json:"request,omitempty" pattern:"^[A-Za-z0-9_-]{1,48}-[0-9]{1,15}$" doc:"With slots: NAME-NUMBER, such as a-7."`
	// Wait is how long to wait if no task is due, at most a minute. Default: not at all.
	Wait task.Seconds `json:"wait,omitempty" doc:"How long to wait for a task, in seconds, at most 60."`
	// Busy is how many rounds it runs, for those who look at workers.
	Busy int `json:"busy,omitempty" minimum:"0" maximum:"1000" doc:"How many rounds it runs, for those who look at workers."`
	// Whole says that a tdf-worker speaks. It sends its heartbeats itself, and heeds orders by itself, so that the turn does neither;
	// it records its rounds itself, and reads its tasks whole. A session that is over has incarnation 0 in the answer.
	Whole bool `json:"whole,omitempty" doc:"For a tdf-worker: reports have a record, tasks are claimed, a session that is over is 0."`
	// Ahead is for how many of Slots it has no room yet.
	Ahead int `json:"ahead,omitempty" minimum:"0" maximum:"1000" doc:"For a tdf-worker: how many of the slots are not free yet."`
}

// mostWait is the longest that a turn waits.
const mostWait = time.Minute

func (t *RoundTurn) check() (err error) {
	switch {
	case t.Ahead > t.Slots:
		return &statemachine.FieldError{Field: "ahead", Value: strconv.Itoa(t.Ahead), Want: "at most slots"}
	case t.Slots > 0 && t.Request == "":
		return &statemachine.FieldError{Field: "request", Value: "", Want: "a name and a number, such as a-1: numbers rise with each claim"}
	case t.Wait < 0 || time.Duration(t.Wait) > mostWait:
		return &statemachine.FieldError{Field: "wait", Value: t.Wait.String(), Want: fmt.Sprintf("from 0 to %v", mostWait)}
	}
	for i := range t.Reports {
		e := &t.Reports[i]
		if e.whole = t.Whole; e.whole {
			err = e.checkRecord()
		} else {
			err = e.check()
		}
		if err != nil {
			return fmt.Errorf("report %d: %w", i+1, err)
		}
	}
	if t.Incarnation == 0 && (t.Slots > 0 || !t.Whole) {
		return &statemachine.FieldError{Field: "incarnation", Value: "0", Want: "the number of the session, for a claim"}
	}
	return nil
}

// RoundAnswer is the answer to a [RoundTurn].
type RoundAnswer struct {
	Standing

	// Outcomes are what became of the reports, in their order.
	Outcomes []ReportOutcome `json:"outcomes" doc:"What became of the reports, in their order."`
	// Tasks are what the worker is to run.
	Tasks []Assigned `json:"tasks" doc:"What it is to run now, each to be reported on."`
	// More says that further tasks are due, Wider that there are some for which more slots must be free.
	More  bool `json:"more,omitempty" doc:"Further tasks are due."`
	Wider bool `json:"wider,omitempty" doc:"Tasks are due that take more slots than are free."`
}

// ReportOutcome is what became of the report of a round.
type ReportOutcome struct {
	Task int64 `json:"task" doc:"Id of the task."`
	// Outcome is recorded, repeated or refused.
	Outcome string `json:"outcome" doc:"recorded, repeated (it had been recorded before) or refused."`
	// Why is the reason of a refusal.
	Why string `json:"why,omitempty" doc:"Why it was refused."`
	// Code is the kind of a refusal.
	Code string `json:"code,omitempty" doc:"Kind of refusal: stale (it is over), conflict, stop_asked (cancelled), damaged, invalid."`
}

type refusalCode struct {
	code string
	kind error
}

// codeStopAsked refuses a report whose task was cancelled meanwhile: its worker decides again.
const codeStopAsked = "stop_asked"

// refusals are the codes of refused reports, by what their errors match.
var refusals = []refusalCode{
	{"stale", statemachine.ErrStale}, {"conflict", statemachine.ErrConflict}, {codeStopAsked, statemachine.ErrStopAsked},
	{"damaged", task.ErrDamaged},
}

// refuse says why.
func (o *ReportOutcome) refuse(err error) {
	o.Outcome, o.Why, o.Code = "refused", err.Error(), "invalid"
	for _, r := range refusals {
		if errors.Is(err, r.kind) {
			o.Code = r.code
			return
		}
	}
}

// Turn makes reports, each fenced by its claim, and then claims tasks. If none are due it waits for one, as long as the turn
// says or until ctx is done. The error matches [ErrLeaseLost] if the session is over; the reports have been made then.
func (g *Gateway) Turn(ctx context.Context, name string, t *RoundTurn) (a RoundAnswer, err error) {
	if err := t.check(); err != nil {
		return a, err
	}
	a.Standing, a.Tasks = noStanding(0), []Assigned{}
	p := poll{gateway: g, turn: t}
	var over error
	if t.Incarnation != 0 {
		p.guest, over = g.session(ctx, name, t.Incarnation)
	}
	if a.Outcomes, err = p.report(ctx, name); err != nil || t.Incarnation == 0 {
		return a, err
	}
	if err = over; err == nil {
		err = p.next(ctx, &a)
	}
	if t.Whole && errors.Is(err, ErrLeaseLost) { // the worker has to hear of its reports
		a.Standing, err = noStanding(0), nil
	}
	return a, err
}

// next claims, or is a heartbeat.
func (p *poll) next(ctx context.Context, a *RoundAnswer) (err error) {
	g, s, t, got := p.gateway, p.guest, p.turn, []Claimed{}
	p.end = time.Now().Add(time.Duration(t.Wait))
	if t.Slots > 0 {
		got, err = p.claim(ctx)
	} else if s.due() && !t.Whole {
		err = g.renew(ctx, s, &SessionBeat{Busy: t.Busy})
	}
	if err != nil {
		return err
	}
	a.More, a.Wider = p.more, p.wider
	if t.Whole {
		a.Tasks, err = s.whole(got)
	} else {
		a.Tasks, err = g.assigned(ctx, s, got)
	}
	a.Standing = s.standing()
	return err
}

// along returns the claim that goes to Redis together with the reports. It is nil if the turn claims nothing, or a heartbeat or an order
// comes first.
func (p *poll) along(ctx context.Context) *ClaimRequest {
	if s, t := p.guest, p.turn; s != nil && t.Slots > 0 && !s.due() && !s.ordered() {
		if request, err := s.claims.named(ctx, t, s.Incarnation); err == nil { // else the claim behind the reports says why
			return request
		}
	}
	return nil
}

// report makes the moves of reports, and the claim that goes along.
func (p *poll) report(ctx context.Context, name string) ([]ReportOutcome, error) {
	g, reports := p.gateway, p.turn.Reports
	outcomes := make([]ReportOutcome, len(reports))
	if len(reports) == 0 {
		return outcomes, nil
	}
	refs := make([]RoundRef, len(reports))
	for i := range reports {
		refs[i] = reports[i].RoundRef
	}
	rounds, err := g.facts(ctx, name, refs...)
	if err != nil {
		return nil, err
	}
	tasks, now, err := g.before(ctx, reports)
	if err != nil {
		return nil, err
	}
	var commits []Commit
	var of []int
	for i := range reports {
		e := &reports[i]
		outcomes[i].Task = e.Task
		commit, err := Commit{}, rounds[i].err
		if err == nil {
			commit, err = e.decide(name, tasks[i], rounds[i].fields, now)
		}
		if err != nil {
			outcomes[i].refuse(err)
			continue
		}
		commits, of = append(commits, commit), append(of, i)
	}
	if len(commits) == 0 {
		return outcomes, nil
	}
	next := p.along(ctx)
	made, err := g.commit(ctx, commits, next, now, reports[0].whole)
	if err != nil {
		return nil, err
	}
	for i := range made.Outcomes {
		outcomes[of[i]].set(&made.Outcomes[i])
	}
	if next != nil {
		p.first = &made
	}
	return outcomes, nil
}

func (o *ReportOutcome) set(made *Outcome) {
	switch {
	case made.Err != nil:
		o.refuse(made.Err)
	case made.Result == statemachine.Repeated:
		o.Outcome = "repeated"
	default:
		o.Outcome = "recorded"
	}
}

// before are the tasks as the reports found them, and the time of the site. The report of a round that ended by itself needs
// neither; what a tdf-worker records has its times.
func (g *Gateway) before(ctx context.Context, reports []RoundEnd) ([]*Former, statemachine.Time, error) {
	tasks := make([]*Former, len(reports))
	ids := make([]int64, 0, len(reports))
	plain := true
	for i := range reports {
		e := &reports[i]
		tasks[i] = &Former{Task: *e.task()}
		plain = plain && e.Ended == EndedItself && e.RetryAfter == 0
		ids = append(ids, e.Task)
	}
	if plain {
		return tasks, 0, nil
	}
	now, err := g.site.Now(ctx)
	if err != nil {
		return nil, 0, err
	}
	found, err := g.site.TasksByID(ctx, ids)
	for i, t := range found {
		if t != nil && t.Err == nil {
			tasks[i] = reports[i].as(t)
		}
	}
	return tasks, now, err
}

// commit makes moves, at least one, and claims if next is not nil. It makes a move anew where the task was cancelled meanwhile, unless its
// worker is to say what it records then.
func (g *Gateway) commit(ctx context.Context, commits []Commit, next *ClaimRequest, now statemachine.Time, whole bool) (Turn, error) {
	turn := g.site.Turn(ctx, commits, next)
	if turn.Moved != nil {
		return turn, turn.Moved
	}
	for i, c := range commits {
		if whole || !cross(&c, turn.Outcomes[i].Err, now) {
			continue
		}
		again := g.site.Turn(ctx, []Commit{c}, nil)
		if again.Moved != nil {
			return turn, again.Moved
		}
		turn.Outcomes[i] = again.Outcomes[0]
	}
	return turn, nil
}

// claim claims tasks, unless the reports have brought some. If none are due it waits for one, until the time of the turn is over or the
// worker is to do something else.
func (p *poll) claim(ctx context.Context) ([]Claimed, error) {
	if p.first != nil {
		reply := &p.first.Reply
		if err := p.guest.answered(reply, p.first.Claimed); err != nil || len(reply.Tasks) > 0 {
			p.more, p.wider = reply.More, reply.Wider
			return reply.Tasks, err
		}
		p.missed(reply)
	}
	for {
		if got, over, err := p.step(ctx); over || err != nil {
			return got, err
		}
	}
}

// poll is a claim that waits.
type poll struct {
	gateway *Gateway
	guest   *guest
	turn    *RoundTurn
	end     time.Time
	first   *Turn       // the answer to the reports, if a claim went along
	last    *ClaimReply // when nothing was due: what was in the way; nil to claim at once
	stale   bool        // the claim before was

	more, wider bool // as the last claim said
}

// left is how long the claim may wait, once a heartbeat was sent if that is due. The claims of a tdf-worker are enough.
func (p *poll) left(ctx context.Context) (time.Duration, error) {
	s := p.guest
	if p.turn.Whole {
		return min(time.Until(p.end), s.beats()), p.gateway.orderOf(ctx, s)
	}
	if s.due() || s.ordered() {
		if err := p.gateway.renew(ctx, s, &SessionBeat{Busy: p.turn.Busy}); err != nil {
			return 0, err
		}
	}
	return min(time.Until(p.end), s.untilBeat()), nil
}

// orderOf reads anew what a tdf-worker is ordered, if anything: another gateway may have heard that it is undrained.
func (g *Gateway) orderOf(ctx context.Context, s *guest) error {
	if !s.ordered() {
		return nil
	}
	w, _, err := g.site.Worker(ctx, s.Name)
	if err == nil {
		s.mu.Lock()
		s.Order = w.Order
		s.mu.Unlock()
	}
	return err
}

// step claims once. It is over if there is an answer for the worker.
func (p *poll) step(ctx context.Context) (got []Claimed, over bool, err error) {
	g, s := p.gateway, p.guest
	left, err := p.left(ctx)
	switch {
	case err != nil:
		return nil, true, err
	case ctx.Err() != nil:
		return nil, true, nil //nolint:nilerr // nobody hears the answer
	case p.last != nil && (!p.turn.Whole && s.untold() || !time.Now().Before(p.end)):
		got, err = g.callOff(ctx, s, p.turn)
		return got, true, err
	case s.ordered():
		p.last = &ClaimReply{Next: statemachine.Never}
		timing.Pause(ctx, min(max(left, 0), drainLook))
		return nil, false, nil
	}
	reply, err := g.claimOnce(ctx, s, p.turn, p.last, left)
	if err != nil || len(reply.Tasks) > 0 {
		p.more, p.wider = reply.More, reply.Wider
		return reply.Tasks, true, err
	}
	if reply.Stale && p.stale { // not because of the rules, which were read: the claim was called off
		got, err = g.callOff(ctx, s, p.turn)
		return got, true, err
	}
	p.missed(&reply)
	return nil, false, nil
}

// missed takes note of an answer without tasks.
func (p *poll) missed(reply *ClaimReply) {
	p.more, p.wider = reply.More, reply.Wider
	p.last, p.stale = reply, reply.Stale
	if claimAgain(reply) || reply.More {
		p.last = nil
	}
}

// drainLook is how often it is looked whether a worker that drains is undrained.
const drainLook = time.Second

// claimOnce claims, behind a wait of at most d if the last claim got nothing.
func (g *Gateway) claimOnce(ctx context.Context, s *guest, t *RoundTurn, last *ClaimReply, d time.Duration) (ClaimReply, error) {
	waiting, end := g.untilRules(ctx) // before they are read
	defer end()
	request, err := s.claims.named(ctx, t, s.Incarnation)
	if err != nil {
		return ClaimReply{}, err
	}
	if last == nil {
		reply, err := g.site.Claim(ctx, *request)
		return reply, s.answered(&reply, err)
	}
	w := WaitFor{
		Worker: request.Worker, Node: request.Node, Candidates: request.Candidates,
		Full: last.Full, Elsewhere: last.Elsewhere, NodeFull: last.NodeFull, Now: s.now(),
	}
	if last.Wider {
		w.Slots = t.Slots
	}
	if last.NodeFull || last.Wider || len(last.Full) > 0 {
		d = min(d, turnedAwayWait)
	}
	if next := timing.ToStd(last.Next.Sub(last.Now)); last.Next != statemachine.Never {
		d = min(d, next)
	}
	got := g.site.WaitAndClaim(waiting, w, max(d, time.Millisecond), *request)
	if got.Woken != "" && (got.Claimed != nil || got.Reply.Unused || got.Reply.Stale) {
		g.passOn(ctx, got.Woken)
	}
	if got.Claimed != nil && waiting.Err() != nil && ctx.Err() == nil { // the rules changed: who knows what became of the claim
		return g.claimed(ctx, s, request)
	}
	return got.Reply, s.answered(&got.Reply, got.Claimed)
}

// claimed repeats a claim without a wait before it.
func (g *Gateway) claimed(ctx context.Context, s *guest, request *ClaimRequest) (ClaimReply, error) {
	request.Waited = true
	reply, err := g.site.Claim(ctx, *request)
	return reply, s.answered(&reply, err)
}

// passOn gives a wake-up to another worker.
func (g *Gateway) passOn(ctx context.Context, woken WakeUp) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	_ = g.site.PassOn(ctx, woken) // others poll
}

// callOff ends a claim before it is answered with nothing. Redis may still carry out what was sent behind a wait that broke; the
// worker would get tasks then that nobody tells it of. It returns those that the claim has got.
func (g *Gateway) callOff(ctx context.Context, s *guest, t *RoundTurn) ([]Claimed, error) {
	request, err := s.claims.named(ctx, t, s.Incarnation)
	if err != nil {
		return nil, err
	}
	reply, err := g.claimed(ctx, s, request)
	return reply.Tasks, err
}

// named is a claim under the name that a worker has given it.
func (c *claimer) named(ctx context.Context, t *RoundTurn, incarnation int64) (*ClaimRequest, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, err := c.rules.current(ctx)
	if err != nil {
		return nil, err
	}
	request := c.request(v, incarnation, t.Slots)
	request.Request, request.Ahead = t.Request, t.Ahead
	return request, nil
}

// answered takes note of the answer to a claim.
func (s *guest) answered(reply *ClaimReply, err error) error {
	s.claims.mu.Lock()
	clock, err := s.claims.answered(reply, err)
	s.claims.mu.Unlock()
	if err == nil && !reply.Stale {
		s.mu.Lock()
		s.clock = clock
		s.mu.Unlock()
	}
	return err
}

// Assigned is a task that a worker behind a [Gateway] is to run.
type Assigned struct {
	RoundRef

	// Program and Source say what is to be run, or which handler is asked for.
	Program string `json:"program" doc:"Name of the program."`
	Source  string `json:"source" doc:"Where the program is, with its version: a URL, blob:sha256=HASH, or command:NAME."`
	Class   string `json:"class,omitempty" doc:"Its class, if it has one."`
	Queue   string `json:"queue" doc:"The queue that it waited in."`
	// Argv are the arguments: those of the task, and then the results of the tasks that it needs, unless Args is files.
	Argv []string `json:"argv" doc:"The arguments: the task's own, and then, unless args is files, the results of the tasks that it needs."`
	Args string   `json:"args,omitempty" doc:"files, if the results are to be files and not arguments."`
	// Results are what those tasks have brought, in their order; a text that is no UTF-8 as base64.
	Results []argument `json:"results,omitempty" doc:"What the tasks that it needs have brought, in their order."`
	Stdin   string     `json:"stdin,omitempty" doc:"What it reads from stdin: blob:sha256=HASH, which GET /blobs/HASH has."`
	// Variables are for its environment, its parameters among them, as TDF_PARAMS.
	Variables map[string]string `json:"variables,omitempty" doc:"Variables for its environment, its parameters among them, as TDF_PARAMS."`
	Meta      map[string]string `json:"meta,omitempty" doc:"Attributes of the task."`
	// Resources are what it may use of the node.
	Resources map[string]task.Allotted `json:"resources,omitempty" doc:"What it may use of the node."`
	MemoryMax int64                    `json:"memory_max,omitempty" doc:"The most memory that it may use, in bytes."`
	// Left is how long the round may take from now on.
	Left task.Seconds `json:"left" doc:"How long the round may take from now on, in seconds; null for no end."`
	// Claimed is all that a tdf-worker reads of the task, in its own form.
	Claimed []byte `json:"claimed,omitempty" doc:"For a tdf-worker alone: the task in its own form, in base64. The rest is left out."`
}

// wholeTask is a task as a tdf-worker gets it. Words says that it has a list of words, which may be empty.
type wholeTask struct {
	Claimed Claimed
	Words   bool
}

// whole are claimed tasks for a tdf-worker, in the form of its spool: bytes stay as they are.
func (s *guest) whole(claimed []Claimed) ([]Assigned, error) {
	all := make([]Assigned, len(claimed))
	for i := range claimed {
		var data bytes.Buffer
		c := wholeTask{Claimed: claimed[i], Words: claimed[i].Spec.Argv != nil}
		if err := gob.NewEncoder(&data).Encode(&c); err != nil {
			return nil, fmt.Errorf("task %d: %w", claimed[i].Task.ID, err)
		}
		r := &round{Claimed: &claimed[i]}
		all[i] = Assigned{RoundRef: r.ref(), Claimed: data.Bytes(), Argv: []string{}}
	}
	return all, nil
}

// assigned completes claimed tasks. Those whose arguments are not there, or cannot be passed on, end here.
func (g *Gateway) assigned(ctx context.Context, s *guest, claimed []Claimed) ([]Assigned, error) {
	all := make([]Assigned, 0, len(claimed))
	for i := range claimed {
		r := &round{Claimed: &claimed[i], clock: s.at()}
		err := g.results(ctx, r)
		switch {
		case err == nil:
			all = append(all, r.assigned())
			continue
		case is[*argumentError](err):
			err = g.refuse(ctx, s, r, err, statemachine.ClassProgram)
		case is[*ownError](err):
			err = g.refuse(ctx, s, r, err, statemachine.ClassInfrastructure)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// at is the clock of the site.
func (s *guest) at() redisClock {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock
}

// results reads what the tasks that a round needs have brought.
func (g *Gateway) results(ctx context.Context, r *round) error {
	for len(r.results) < len(r.Spec.Needs) {
		page := r.Spec.Needs[len(r.results):]
		page = page[:min(len(page), resultsPage)]
		found, err := g.site.Results(ctx, idsOf(page))
		if err != nil {
			return err
		}
		for i := range found {
			if err := checkResult(page[i].Task, &found[i]); err != nil {
				return err
			}
		}
		r.results = append(r.results, found...)
	}
	if err := r.checkWords(); err != nil {
		return err
	}
	return r.checkFields("params")
}

// refuse ends a round that has no usable arguments, as a worker does that runs it.
func (g *Gateway) refuse(ctx context.Context, s *guest, r *round, why error, class statemachine.Class) error {
	end := RoundEnd{RoundRef: r.ref(), Why: why.Error(), Class: class}
	now := s.now()
	commit, err := end.decide(s.Name, &Former{Task: r.Task, Bucket: r.Bucket}, nil, now)
	if err != nil {
		return err
	}
	commit.Node = "" // no fault of this node
	_, err = g.commit(ctx, []Commit{commit}, nil, now, false)
	return err
}

func (r *round) ref() RoundRef {
	return RoundRef{Task: r.Task.ID, Round: r.Task.Round, Claim: r.Task.Current.Claim}
}

// assigned is a round as its worker is told of it.
func (r *round) assigned() Assigned {
	spec := &r.Spec
	a := Assigned{
		RoundRef: r.ref(), Program: spec.Program, Source: spec.Source, Class: spec.Class, Queue: spec.Queue,
		Argv: append([]string{}, r.words()...), Args: spec.Args, Stdin: spec.Stdin, Variables: spec.Variables,
		Meta: spec.Meta, Resources: r.Resources, MemoryMax: spec.MemoryMax,
	}
	for i := range r.results {
		a.Results = append(a.Results, argumentOf(&r.results[i]))
	}
	if spec.Params != nil {
		a.Variables = maps.Clone(a.Variables)
		if a.Variables == nil {
			a.Variables = map[string]string{}
		}
		a.Variables[paramsVariable] = string(spec.Params)
	}
	left, bounded := r.clock.until(min(r.Task.RoundEnd(0), r.Expiry))
	if !bounded {
		left = timing.ToStd(statemachine.Forever)
	}
	a.Left = task.Seconds(left)
	return a
}
